"""Which records are left out: folds of cross-validation, focal animals of the LR method."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.data.levels import lookup
from mmgibbs.data.prepared import Prepared
from mmgibbs.errors import ConfigError, DataError, option, option_name
from mmgibbs.models.design import Design
from mmgibbs.pedigree.read import Pedigree
from mmgibbs.pedigree.tables import counted, quoted
from mmgibbs.validation.evaluation import Recorded
from mmgibbs.validation.options import FOLD_DRAWS, ValidationPlan, check_number


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
    """Make a fold of each of the last `folds` values of time (n,) float64, predicted from the records before it."""
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


def record_birth_years(years: pl.Series | None, codes: np.ndarray, wanted_for: str, otherwise: str) -> np.ndarray:
    """(m,) float64 birth years of animals by pedigree code (-1: none), NaN where unknown; ConfigError where all are.

    years: of the animals of the pedigree, None without births.
    """
    if years is None or years.null_count() == len(years):
        raise ConfigError(
            f"validate: found no birth years, which {wanted_for} needs; needed a pedigree with births "
            f"(data.pedigree_columns.birth), or {otherwise}"
        )
    return np.where(codes >= 0, years.cast(pl.Float64).fill_null(np.nan).to_numpy()[codes], np.nan)


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


def fold_times(records: Recorded, codes: np.ndarray, birth_years: pl.Series | None, column: str | None) -> np.ndarray:
    """(n,) float64 time of each record: a column of the table, or the birth year of its animal."""
    if column is not None:
        given = option_name("time")
        time, what = records.phenotypes.numbers(column, given), f"value in column '{column}' ({given})"
    else:
        year = record_birth_years(birth_years, codes, option("by", "time"), option("time", "COLUMN"))
        time, what = year, "birth year of their animal"
    unknown = np.isnan(time)
    if unknown.any():
        raise DataError(
            f"{records.phenotypes.name}: found {counted(int(np.count_nonzero(unknown)), 'record')} without a {what}, "
            f"the first in row {records.phenotypes.rows[unknown][0]}; needed one for {option('by', 'time')}"
        )
    return time


# ------------------------------------------------------------ focal animals

MIN_FOCAL_ANIMALS = 3  # animals to compare


@dataclass(frozen=True)
class Focal:
    animals: pl.Series  # (m,) String ids of those compared
    masked: np.ndarray  # (n,) bool: records that the partial data lack
    what: str  # whose records these are
    cutoff: float | None  # birth year
    notes: list[str]
    file: str | None = None  # that lists the animals
    lines: tuple[int, ...] = ()  # of the file, for each of them

    def levels(self, ids: pl.Series, term: str) -> np.ndarray:
        """(m,) int64 level codes of the animals among the ids of a term. ConfigError for one that is none of them."""
        code = lookup(self.animals, ids)
        if code.null_count():
            first = int(code.is_null().to_numpy().argmax())
            where = "validate" if self.file is None else f"{option('focal', str(self.file))} line {self.lines[first]}"
            raise ConfigError(f"{where}: focal animal {quoted(self.animals[first])} is not a level of '{term}'")
        return code.to_numpy().astype(np.int64)


def choose_focal(
    records: Recorded,
    birth_years: pl.Series | None,
    codes: np.ndarray,
    cutoff: float | None,
    file: str | os.PathLike | None,
) -> Focal:
    """The records of animals born from `cutoff` on, or of the animals of `file` where there is no cutoff, are left out.

    codes: (n,) pedigree code of each record's animal. Without both, the last birth year with records is the cutoff.
    Compared are the animals of `file`, by default those whose records are left out. ConfigError: none or all of the
    records, too few animals, no birth years.
    """
    listed, lines = (None, ()) if file is None else read_ids(file)
    notes, year = [], np.full(codes.size, np.nan)
    if listed is not None and cutoff is None:
        masked = records.animal.is_in(listed.implode()).fill_null(False).to_numpy()
        what = f"the {records.units} of {file}"
    else:
        year = record_birth_years(birth_years, codes, "the LR method", list_alternatives(OR_A_FILE))
        unknown = np.isnan(year)
        if unknown.all():
            raise ConfigError(
                f"validate: found no birth year of {records.units} with records, which the LR method needs; needed "
                f"births of them (data.pedigree_columns.birth), or {list_alternatives(OR_A_FILE)}"
            )
        cutoff = float(np.max(year, initial=-np.inf, where=~unknown)) if cutoff is None else cutoff
        masked, what = year >= cutoff, f"{records.units} born from {cutoff:.15g} on"
        if unknown.any():
            notes.append(
                f"{counted(int(np.count_nonzero(unknown)), 'record')} of {records.units} without a birth year, left in "
                "the partial data"
            )
    if not masked.any() or masked.all():
        share = "all" if masked.any() else "none"
        raise ConfigError(
            f"validate: {what} have {share} of the {masked.size:,} records, of which the LR method leaves out some; "
            f"needed {list_alternatives(ways_that_work(year, records, listed is None))}"
        )
    masked_animals = records.animal.filter(pl.Series(masked)).drop_nulls().unique(maintain_order=True)
    animals = masked_animals if listed is None else listed
    if len(animals) < MIN_FOCAL_ANIMALS:
        problem = f"validate: found {len(animals)} focal {records.units}, needed at least {MIN_FOCAL_ANIMALS}"
        if listed is not None:
            raise ConfigError(f"{problem} in {file}")
        ways = list_alternatives(ways_that_work(year, records, True))
        raise ConfigError(f"{problem}: {what} are too few; needed {ways}")
    return Focal(animals, masked, what, cutoff, notes, None if file is None else os.fspath(file), lines)


Way = tuple[str, object, str]  # what would do: option, its value, what is said of it
FOLDS: Way = ("method", "kfold", ", which needs no young animals")
OR_A_FILE: list[Way] = [("focal", "FILE", " (ids, one per line)"), FOLDS]


def list_alternatives(ways: Sequence[Way]) -> str:
    """'--cutoff 2010, or --focal FILE (ids, one per line), or ...'."""
    return ", or ".join(f"{option(name, value)}{said}" for name, value, said in ways)


def ways_that_work(year: np.ndarray, records: Recorded, compared: bool) -> list[Way]:
    """List ways that leave out some records, not all.

    These are the last birth year with enough animals from it on, where there is one, and ways that need none. year:
    (n,) of the records, NaN where it is not known or not asked for; compared: it is the animals whose records are left
    out that are compared, not those of a file.
    """
    for last in np.unique(year[~np.isnan(year)])[::-1].tolist():
        masked = year >= last
        n = records.animal.filter(pl.Series(masked)).drop_nulls().n_unique()
        if n >= (MIN_FOCAL_ANIMALS if compared else 1) and not masked.all():
            shown = int(last) if last.is_integer() else last
            return [("cutoff", shown, f" ({n:,} {records.units} with records)"), *OR_A_FILE]
    return OR_A_FILE


def read_ids(file: str | os.PathLike) -> tuple[pl.Series, tuple[int, ...]]:
    """The ids of a text file, one per line, each once, and the lines where they are."""
    try:
        lines = [line.strip() for line in Path(file).read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise ConfigError(f"{option('focal', str(file))}: cannot be read: {reason}") from None
    first = {line: n for n, line in reversed(list(enumerate(lines, 1))) if line}
    first = dict(sorted(first.items(), key=lambda item: item[1]))
    return pl.Series("id", list(first), pl.String), tuple(first.values())


# ------------------------------------------------------------ what a plan asks for


def pedigree_codes(animals: pl.Series, ids: pl.Series | None) -> np.ndarray:
    """(n,) int64 code of each animal; without a pedigree animals are numbered as they appear, unknown ones -1."""
    ids = animals.drop_nulls().unique(maintain_order=True) if ids is None else ids
    return lookup(animals, ids).fill_null(-1).to_numpy().astype(np.int64)


@dataclass(frozen=True)
class Split:
    """Records that are left out."""

    folds: list[Fold]  # none where there is no cross-validation
    focal: Focal | None  # None without the LR method


def choose(records: Recorded, prepared: Prepared, plan: ValidationPlan) -> Split:
    """Everything is checked before the first of many solutions."""
    if prepared.pedigree is not None:
        records = replace(records, animal=prepared.pedigree.spelled(records.animal))
    codes = pedigree_codes(records.animal, None if prepared.pedigree is None else prepared.pedigree.ids)
    folds = chosen_folds(records, plan, codes, prepared) if plan.method in ("kfold", "both") else []
    return Split(folds, chosen_focal(records, prepared, plan, codes) if plan.method in ("lr", "both") else None)


def chosen_folds(records: Recorded, plan: ValidationPlan, codes: np.ndarray, prepared: Prepared) -> list[Fold]:
    folds = _assign_folds(records, plan, codes, prepared)
    check_folds(prepared.design, folds, plan.by)
    return folds


def _assign_folds(records: Recorded, plan: ValidationPlan, codes: np.ndarray, prepared: Prepared) -> list[Fold]:
    pedigree = prepared.pedigree
    if plan.by == "column":
        assert plan.column is not None, "a settled plan has it"
        return given_folds(records.phenotypes.text(plan.column, option_name("column")), plan.column)
    assert plan.folds is not None, "a settled plan has it"
    if plan.by == "time":
        return forward_folds(fold_times(records, codes, prepared.birth_years, plan.time), plan.folds)
    rng, n = (
        np.random.default_rng([plan.seed, FOLD_DRAWS]),
        int(codes.max(initial=-1)) + 1 if pedigree is None else len(pedigree.ids),
    )
    units = animal_units(records.animal, codes, n)
    if plan.by == "cell":
        return balanced_folds(_number_cells(records, units, plan.column), plan.folds, rng, "cells")
    if plan.by == "random":
        return balanced_folds(units, plan.folds, rng, records.units)
    if pedigree is None:
        raise ConfigError(f"validate: found no pedigree, needed one for {option('by', 'family')}")
    return balanced_folds(families(pedigree, units), plan.folds, rng, "half-sib families")


def _number_cells(records: Recorded, units: np.ndarray, column: str | None) -> np.ndarray:
    """(n,) int64 combination of unit and environment of each record; column: of the environments, None: of traits."""
    by_trait = dict.fromkeys(c for trait in records.analysis.traits for c in trait.where)
    column = next(iter(by_trait), None) if column is None else column
    if column is None:
        raise ConfigError(
            f"validate: expected {option('column', 'NAME')} with {option('by', 'cell')}, the column of the "
            "environments; or traits by environment (traits: {TRAIT: {by: NAME}})"
        )
    environment = records.phenotypes.text(column, option_name("column"))
    _, code = np.unique(environment.fill_null("").to_numpy(), return_inverse=True)
    return units * (int(code.max(initial=0)) + 1) + code


def chosen_focal(records: Recorded, prepared: Prepared, plan: ValidationPlan, codes: np.ndarray) -> Focal:
    if not related_terms(prepared.design) and not prepared.design.markers:
        raise ConfigError(
            "validate: found no random effect with a relationship, and no SNP effects, whose breeding values the LR "
            f"method would compare; needed one, or {option('method', 'kfold')}"
        )
    focal = choose_focal(records, prepared.birth_years, codes, plan.cutoff, plan.focal)
    focal_levels(focal, prepared)
    return focal


def focal_levels(focal: Focal, prepared: Prepared) -> dict[int, np.ndarray]:
    """Term with relationships -> (n,) level codes of the focal animals."""
    related = related_terms(prepared.design)
    return {i: focal.levels(prepared.levels[i].ids, prepared.design.terms[i].name) for i in related}


def focal_families(focal: Focal, pedigree: Pedigree | None) -> np.ndarray:
    """(n,) int64 half-sib family of each focal animal."""
    codes = pedigree_codes(focal.animals, None if pedigree is None else pedigree.ids)
    n = len(focal.animals) if pedigree is None else len(pedigree.ids)
    return families(pedigree, animal_units(focal.animals, codes, n))


MIN_RECORDS_OF_FOLD = 3  # records of a trait in a fold


def check_folds(design: Design, folds: Sequence[Fold], by: str | None) -> None:
    """DataError for a fold with too few records of a trait; by: what the folds are, 'column' for its values."""
    mend = f"fewer {option_name('folds')}"
    if by == "column":
        mend = (
            "a column with more records of each value; to leave out whole environments, one trait over all of them, "
            'with a random effect such as "line:site"'
        )
    observed = ~np.isnan(design.y)
    for fold in folds:
        for trait, n in zip(design.traits, np.count_nonzero(observed & fold.tested[:, None], axis=0), strict=True):
            if n < MIN_RECORDS_OF_FOLD:
                raise DataError(
                    f"validate: {fold.name} has {counted(int(n), 'record')} of trait '{trait}', needed at least "
                    f"{MIN_RECORDS_OF_FOLD}: {mend}"
                )


def related_terms(design: Design) -> list[int]:
    """Terms whose levels are related animals."""
    return [i for i, t in enumerate(design.terms) if t.relationship.related]
