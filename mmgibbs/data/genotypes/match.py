"""Who is genotyped, has records, is in the pedigree: ids of three tables checked against each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.data.genotypes.file import GenotypeFile
from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.errors import DataError
from pedigree.read import Pedigree
from pedigree.tables import counted, quoted


@dataclass(frozen=True)
class Matched:
    """The n genotyped animals among the others."""

    recorded: np.ndarray  # (n,) bool: has a record of a trait
    pedigree_code: np.ndarray  # (n,) int64 in the pedigree, -1 where it is not there, or there is none
    counts: dict
    notes: tuple[str, ...]


def match_ids(file: GenotypeFile, recorded: pl.Series | None, pedigree: Pedigree | None) -> Matched:
    """recorded: ids of the records, None where no column names animals.

    Raises DataError where no genotyped animal has a record or is in the pedigree: then ids are not written alike.
    """
    own = np.zeros(file.n_animals, bool)
    code = np.full(file.n_animals, -1, np.int64)
    counts: dict = {"animals": file.n_animals}
    notes: list[str] = []
    if pedigree is not None:
        code = pedigree.codes(file.ids).fill_null(-1).to_numpy().astype(np.int64)
        counts["in_pedigree"] = int(np.count_nonzero(code >= 0))
        notes += _note(file, ("genotyped animal", "is", "not in the pedigree"), file.ids.filter(pl.Series(code < 0)))
    if recorded is not None:
        recorded = recorded.drop_nulls().unique(maintain_order=True)
        own = file.ids.is_in(recorded.implode()).to_numpy()
        counts["with_records"] = int(own.sum())
        without = recorded.filter(~recorded.is_in(file.ids.implode()))
        counts["records_of_others"] = len(without)
        notes += _note(file, ("genotyped animal", "has", "no record"), file.ids.filter(pl.Series(~own)))
        notes += _note(file, ("recorded animal", "is", "not genotyped"), without)
        if not own.any() and not (code >= 0).any():
            raise DataError(
                f"{file.id_file}: none of the {file.n_animals:,} genotyped animals has a record"
                f"{'' if pedigree is None else ' or is in the pedigree'}; are ids written in the same way? "
                f"Genotypes have "
                f"{quoted(file.ids[0])}, records {quoted(recorded[0])} (data.genotypes)"
            )
    return Matched(own, code, counts, tuple(notes))


def _note(file: GenotypeFile, what: tuple[str, str, str], ids: pl.Series) -> list[str]:
    if not len(ids):
        return []
    noun, verb, rest = what
    return [f"{file.name}: {counted(len(ids), noun, verb)} {rest}, such as {', '.join(ids.head(SHOWN))}"]
