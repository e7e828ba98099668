"""Sires and dams of the records beside those of the pedigree."""

from __future__ import annotations

import numpy as np

from mmgibbs.config import Analysis
from mmgibbs.data.animal_ids import guess_parent_role
from mmgibbs.data.phenotypes import SHOWN, Phenotypes
from mmgibbs.data.random import animal_column, unknown_values
from pedigree.read import Pedigree
from pedigree.tables import counted, quoted


def warn_of_other_parents(analysis: Analysis, phenotypes: Phenotypes, pedigree: Pedigree) -> tuple[str, ...]:
    """A warning for each column of sires or dams, used as a level, whose animals are not the pedigree's parents.

    Both must be known. It may be right: the dam of a record is the recipient of an embryo, or a foster mother.
    """
    animal = animal_column(analysis.model.random, phenotypes)
    if animal is None or not phenotypes.has(animal):
        return ()
    random = analysis.model.random.values()
    effects = {e.level: e for r in random for e in r.effects.values() if e.level != animal and phenotypes.has(e.level)}
    columns = [(c, role, effect) for c, effect in effects.items() if (role := guess_parent_role(c)) is not None]
    if not columns:
        return ()
    unknown = analysis.data.unknown_parent
    codes = _codes(pedigree, phenotypes, animal, unknown)
    out = []
    for column, role, effect in columns:
        pedigree_parents = np.where(codes >= 0, getattr(pedigree, role)[codes], -1)
        pedigree_parents = np.where(
            pedigree_parents < len(pedigree.ids), pedigree_parents, -1
        )  # an unknown-parent group is no animal
        text = phenotypes.text(column, "level", unknown_values(effect, True, analysis.data))
        stated = pedigree.codes(text).fill_null(-1).to_numpy()
        both = (pedigree_parents >= 0) & (stated >= 0)
        differs = np.flatnonzero(both & (pedigree_parents != stated))
        if not differs.size:
            continue
        shown = "; ".join(
            f"row {phenotypes.rows[i]}, animal {quoted(pedigree.ids[int(codes[i])])}: {quoted(text[int(i)])}, in the "
            f"pedigree {quoted(pedigree.ids[int(pedigree_parents[i])])}"
            for i in differs[:SHOWN]
        )
        out.append(
            f"{phenotypes.name}: column {quoted(column)} names another {role} than the pedigree in {differs.size:,} of "
            f"{counted(int(both.sum()), 'record')} with both ({shown}). It is used as it is, which is right for "
            f"recipients and foster parents; else correct it, or leave it out: the {role}s are then the pedigree's"
        )
    return tuple(out)


def _codes(pedigree: Pedigree, phenotypes: Phenotypes, column: str, unknown: tuple[str, ...]) -> np.ndarray:
    """(n,) int code of each record's animal, -1 where it is not in the pedigree."""
    return pedigree.codes(phenotypes.text(column, "level", unknown)).fill_null(-1).to_numpy()
