"""Which records a fold leaves out, and which of them it predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from mmgibbs.data.births import birth_years
from mmgibbs.errors import ConfigError, DataError, option, option_name
from pedigree.read import Pedigree
from pedigree.tables import counted

if TYPE_CHECKING:
    from mmgibbs.validation.evaluation import Recorded


@dataclass(frozen=True)
class Fold:
    name: str
    masked: np.ndarray  # (n,) bool: records that are left out
    tested: np.ndarray  # (n,) bool: those of them that are predicted


def balanced_folds(group: np.ndarray, folds: int, rng: np.random.Generator, what: str) -> list[Fold]:
    """Folds of whole groups (n,) int of records, equal in size where they can be: the largest first, to the smallest
    fold.

    Groups of equal size come in random order. Raises ConfigError for fewer groups than folds.
    """
    check_number(folds)
    _, group, size = np.unique(group, return_inverse=True, return_counts=True)
    if size.size < folds:
        raise ConfigError(f"validate: found {size.size} {what} with records for {folds} folds; needed one or more each")
    shuffled = rng.permutation(size.size)
    filled, fold = np.zeros(folds, np.int64), np.empty(size.size, np.int64)
    for g in shuffled[np.argsort(-size[shuffled], kind="stable")]:
        fold[g] = np.argmin(filled)
        filled[fold[g]] += size[g]
    of_record = fold[group]
    return [Fold(f"fold {k + 1}", of_record == k, of_record == k) for k in range(folds)]


def forward_folds(time: np.ndarray, folds: int) -> list[Fold]:
    """Each of the last `folds` values of time (n,) float64, predicted from the records before it."""
    check_number(folds)
    values = np.unique(time)
    if values.size <= folds:
        raise ConfigError(
            f"validate: found records of {values.size} times for {folds} folds forward in time; needed at least "
            f"{folds + 1}, or fewer {option_name('folds')}"
        )
    return [Fold(f"{value:.15g}", time >= value, time == value) for value in values[-folds:]]


def given_folds(of_record: pl.Series, column: str) -> list[Fold]:
    """A fold for each value of a column (n,) String of the records, in their order; without one a record is never left
    out.
    """
    values = of_record.drop_nulls().unique()
    numbers = values.cast(pl.Float64, strict=False)
    values = values.sort() if numbers.null_count() else values.gather(numbers.arg_sort())
    if len(values) < 2:
        raise ConfigError(
            f"validate: found {counted(len(values), 'value')} in column '{column}' ({option_name('column')}), needed "
            "one for each fold and at least two"
        )
    masks = [(of_record == value).fill_null(False).to_numpy() for value in values]
    return [Fold(f"{column} {value}", mask, mask) for value, mask in zip(values, masks, strict=True)]


def check_number(folds: int) -> None:
    """ConfigError for fewer than two folds."""
    if folds < 2:
        raise ConfigError(f"validate: found {option('folds', folds)}, needed at least 2")


def birth_year_of(pedigree: Pedigree | None, codes: np.ndarray, wanted_for: str, otherwise: str) -> np.ndarray:
    """(m,) float64 birth years of animals by pedigree code (-1: none), NaN where unknown; ConfigError where all are."""
    birth = None if pedigree is None else pedigree.birth
    if birth is None or np.isnan(birth).all():
        raise ConfigError(
            f"validate: found no birth years, which {wanted_for} needs; needed a pedigree with births "
            f"(data.pedigree_columns.birth), or {otherwise}"
        )
    year = (
        birth_years(pl.Series(birth, nan_to_null=True), most=len(birth)).cast(pl.Float64).fill_null(np.nan).to_numpy()
    )
    return np.where(codes >= 0, year[codes], np.nan)


def animal_units(animals: pl.Series, codes: np.ndarray, n: int) -> np.ndarray:
    """(m,) int64 `codes` of animals 0 .. n - 1, where those without a code (-1) are numbered on from n: by their id,
    and each by itself where it has none."""
    out, unknown = codes.astype(np.int64), np.flatnonzero(codes < 0)
    ids = animals.gather(unknown).to_frame("id")
    place: dict[str | int, int] = {}
    out[unknown] = [n + place.setdefault(i if v is None else v, len(place)) for i, (v,) in enumerate(ids.iter_rows())]
    return out


def families(pedigree: Pedigree | None, units: np.ndarray) -> np.ndarray:
    """(m,) int64 half-sib family of animals: their sire; without one a family of its own.

    units: pedigree codes, and for animals that it does not hold numbers beyond them, of `animal_units`.
    """
    n = 0 if pedigree is None else len(pedigree.ids)
    sire, held = np.full(units.size, -1), units < n
    if pedigree is not None:
        sire[held] = pedigree.sire[units[held]]
    return np.where((sire >= 0) & (sire < n), sire, n + units).astype(np.int64)


def fold_times(records: Recorded, codes: np.ndarray, pedigree: Pedigree | None, column: str | None) -> np.ndarray:
    """(n,) float64 time of each record: a column of the table, or the birth year of its animal."""
    if column is not None:
        given = option_name("time")
        time, what = records.phenotypes.numbers(column, given), f"value in column '{column}' ({given})"
    else:
        year = birth_year_of(pedigree, codes, option("by", "time"), option("time", "COLUMN"))
        time, what = year, "birth year of their animal"
    unknown = np.isnan(time)
    if unknown.any():
        raise DataError(
            f"{records.phenotypes.name}: found {counted(int(np.count_nonzero(unknown)), 'record')} without a {what}, "
            f"the first in row {records.phenotypes.rows[unknown][0]}; needed one for {option('by', 'time')}"
        )
    return time
