"""Who is genotyped, has records, is in the pedigree: ids of three tables checked against each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.data.genotypes.file import GenotypeFile
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.errors import DataError
from pedigree.read import Pedigree
from pedigree.spelling import find_respelled
from pedigree.tables import counted, quoted


@dataclass(frozen=True)
class Matched:
    """The n genotyped animals among the others."""

    recorded: np.ndarray  # (n,) bool: has a record of a trait
    pedigree_code: np.ndarray  # (n,) int64 in the pedigree, -1 where it is not there, or there is none
    counts: dict
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def match_ids(file: GenotypeFile, recorded: pl.Series | None, pedigree: Pedigree | None) -> Matched:
    """recorded: ids of the records, None where no column names animals.

    Raises DataError where no genotyped animal has a record or is in the pedigree: then ids are not written alike.
    """
    with_record = np.zeros(file.n_animals, bool)
    code = np.full(file.n_animals, -1, np.int64)
    counts: dict = {"animals": file.n_animals}
    notes: list[str] = []
    warnings: list[str] = []
    if pedigree is not None:
        code = pedigree.codes(file.ids).fill_null(-1).to_numpy().astype(np.int64)
        counts["in_pedigree"] = int(np.count_nonzero(code >= 0))
        strangers = file.ids.filter(pl.Series(code < 0))
        notes += _note(file, ("genotyped animal", "is", "not in the pedigree"), strangers)
        warnings += _respelled(file, strangers, pedigree.ids, "the pedigree")
    if recorded is not None:
        recorded = recorded.drop_nulls().unique(maintain_order=True)
        with_record = file.ids.is_in(recorded.implode()).to_numpy()
        counts["with_records"] = int(with_record.sum())
        without = recorded.filter(~recorded.is_in(file.ids.implode()))
        counts["records_of_others"] = len(without)
        ungenotyped = file.ids.filter(pl.Series(~with_record))
        notes += _note(file, ("genotyped animal", "has", "no record"), ungenotyped)
        notes += _note(file, ("recorded animal", "is", "not genotyped"), without)
        unknown = file.ids.filter(pl.Series(~with_record & (code < 0)))  # those of the pedigree are who they are
        warnings += _respelled(file, unknown, without, "the records")
        if not with_record.any() and not (code >= 0).any():
            raise DataError(
                f"{file.id_file}: none of the {file.n_animals:,} genotyped animals has a record"
                f"{'' if pedigree is None else ' or is in the pedigree'}; are ids written in the same way? "
                f"Genotypes have {quoted(file.ids[0])}, records {quoted(recorded[0])} (data.genotypes)"
                + "".join(f"\n{warning}" for warning in warnings)
            )
    return Matched(with_record, code, counts, tuple(notes), tuple(warnings))


def _respelled(file: GenotypeFile, ids: pl.Series, known: pl.Series, where: str) -> list[str]:
    """A warning of ids that a table may have in another spelling: '007' and '7', 'dk12' and 'DK12'."""
    if not len(ids) or not len(known):
        return []
    pairs = find_respelled(ids, known)
    if not pairs.height:
        return []
    shown = ", ".join(f"{quoted(text)} = {quoted(id)}" for text, id, _ in pairs.head(SHOWN).iter_rows())
    return [
        f"{file.id_file}: {counted(pairs.height, 'genotyped animal', 'is')} in {where} in another spelling only, such "
        f"as {shown}: these count as other animals; needed each id in one spelling"
    ]


def _note(file: GenotypeFile, what: tuple[str, str, str], ids: pl.Series) -> list[str]:
    if not len(ids):
        return []
    noun, verb, rest = what
    return [f"{file.name}: {counted(len(ids), noun, verb)} {rest}, such as {', '.join(ids.head(SHOWN))}"]
