"""Every column of classes that an analysis names: warnings of levels that may be one, and of codes for an unknown one.

What is alike is decided in alike_levels.py. The columns of `traits.TRAIT.by` and `where` are those of environments.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from mmgibbs.config import Analysis
from mmgibbs.config.relationships import Identity
from mmgibbs.data.alike_levels import Advice, describe_alike, describe_unknown, group_alike
from mmgibbs.data.animal_ids import guess_parent_role
from mmgibbs.data.covariate_codes import advise_on_fixed
from mmgibbs.data.missing_codes import written_codes
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.data.random import ANIMAL_COLUMNS, PARENT_COLUMNS
from mmgibbs.data.traits import Records, observing
from pedigree.tables import quoted


def warn_of_similar_levels(analysis: Analysis, records: Records) -> tuple[str, ...]:
    """Return a warning for each class column, fixed or random, with levels that may be one, or may be none."""
    phenotypes, out = records.phenotypes, []
    for of_class in _class_columns(analysis, phenotypes.missing):
        column, path = of_class.column, of_class.path
        if not phenotypes.has(column):
            continue  # parents that the pedigree has
        needed = observing(records.observed, [i for i, t in enumerate(analysis.traits) if t.name in of_class.traits])
        text = phenotypes.text(column, path, of_class.missing).filter(pl.Series(needed))
        for said in (describe_alike(text, column), describe_unknown(text, column, of_class.advise)):
            out += [] if said is None else [f"{phenotypes.name}: {path}: {said}"]
    return tuple(out)


def warn_of_similar_groups(analysis: Analysis, groups: Sequence[str]) -> tuple[str, ...]:
    """Return a warning where names of unknown-parent groups may be one."""
    names = pl.Series(groups, dtype=pl.String)
    alike = [" and ".join(map(quoted, group)) for group in group_alike(groups, names)]
    if not alike:
        return ()
    key = "column" if analysis.data.groups is not None and analysis.data.groups.column is not None else "parents"
    more = f"; and {len(alike) - SHOWN} more such" if len(alike) > SHOWN else ""
    return (
        f"data.groups.{key}: groups differ only in how they are written, and are different groups: "
        f"{'; '.join(alike[:SHOWN])}{more}. Where they mean the same, write it in one way in the pedigree",
    )


class _ClassColumn(NamedTuple):
    """A column of classes."""

    column: str
    path: str  # in the analysis file
    traits: tuple[str, ...]  # that it acts on
    missing: tuple[str, ...]  # of the effect
    advise: Advice


def _class_columns(analysis: Analysis, missing: Sequence[str]) -> list[_ClassColumn]:
    """Every column of classes, once. missing: data.missing as it is.

    Ids of animals are none: the pedigree and the genotypes say how these are written. Nor are numbers of rows, columns
    and times, and columns of environments.
    """

    def advise_for_table(cells: Sequence[str]) -> str:
        return (
            f"write data.missing: {written_codes((*missing, *cells))}, and correct these records or leave them out, as "
            "each needs a level"
        )

    def advise_for_fixed(path: str, present: Sequence[str]) -> Advice:
        return lambda cells: advise_on_fixed(path, written_codes((*present, *cells)))

    def advise_for_random(path: str, present: Sequence[str], omit: str) -> Advice:
        return lambda cells: f"write {path}.missing: {written_codes((*present, *cells))}{omit}"

    model = analysis.model
    columns: list[_ClassColumn] = []
    ids = {*ANIMAL_COLUMNS, *PARENT_COLUMNS, *(m.level for m in model.markers.values())}
    ids |= {column for trait in analysis.traits for column in trait.where}
    for random in model.random.values():
        levels = {c for e in random.effects.values() for c in e.level_columns}
        ids |= {c for c in levels if random.relationship.related or guess_parent_role(c) is not None}
    for name, fixed in model.fixed.items():
        path, traits = f"model.fixed.{name}", tuple(fixed.traits)
        if fixed.kind == "class" or fixed.interaction:
            advise = advise_for_fixed(path, fixed.missing)
            columns += [_ClassColumn(c, path, traits, fixed.missing, advise) for c in fixed.class_columns]
        elif fixed.by is not None:
            columns.append(_ClassColumn(fixed.by, f"{path}.by", traits, (), advise_for_table))
    residual, every = analysis.variances.residual, tuple(t.name for t in analysis.traits)
    of_residuals = [("by", residual.by), ("relationship.within", getattr(residual.relationship, "within", None))]
    of_residuals += [
        (f"classes.{name}.relationship.within", getattr(section.relationship, "within", None))
        for name, section in residual.classes.items()
    ]
    columns += [
        _ClassColumn(column, f"variances.residual.{key}", every, (), advise_for_table)
        for key, column in of_residuals
        if column is not None
    ]
    for name, random in model.random.items():
        for of_effect, effect in random.effects.items():
            path = f"model.random.{name}" + (f".effects.{of_effect}" if of_effect else "")
            omit = "" if effect.unknown_level == "omit" else f" and {path}.unknown_level: omit"
            advise = advise_for_random(path, effect.missing, omit)
            traits, within = tuple(effect.traits), getattr(random.relationship, "within", None)
            chosen = {c: path for c in effect.level_columns if isinstance(random.relationship, Identity)}
            chosen |= {} if within is None else {within: f"model.random.{name}.relationship.within"}
            chosen |= {} if effect.mates is None else {effect.mates.group: f"{path}.level.group"}
            columns += [_ClassColumn(c, at, traits, effect.missing, advise) for c, at in chosen.items()]
    first = {of_class.column: of_class for of_class in reversed(columns)}
    return [of_class for of_class in columns if of_class is first[of_class.column] and of_class.column not in ids]
