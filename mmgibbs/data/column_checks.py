"""Columns whose cells may mean something else: levels that may be one, codes for a missing value, dates as numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from mmgibbs.config import Analysis, Model
from mmgibbs.config.relationships import Identity
from mmgibbs.data.alike_levels import Advice, describe_alike, describe_unknown, group_alike
from mmgibbs.data.animal_ids import guess_parent_role
from mmgibbs.data.dates import are_dates_as_numbers
from mmgibbs.data.missing_codes import MissingCodes, find_missing_codes, written_codes
from mmgibbs.data.phenotypes import SHOWN, Phenotypes
from mmgibbs.data.random import ANIMAL_COLUMNS, PARENT_COLUMNS
from mmgibbs.data.traits import Records, observing
from mmgibbs.pedigree.tables import counted, quoted

_FIRST_DATE, _LAST_DATE = 190001, 31122099  # as numbers


class _Numbers(NamedTuple):
    """A column that is read as a number beside the traits."""

    path: str  # in the analysis file
    column: str
    traits: tuple[str, ...]  # that it acts on
    missing: tuple[str, ...] = ()  # of the effect
    effect: str = ""  # the path of the effect, where it has a key for missing values
    zeros_are_values: bool = False


def warn_of_codes(analysis: Analysis, records: Records) -> tuple[str, ...]:
    """Return a warning for each column of a covariate, and that of the weights, with such a number."""
    phenotypes, seen, out = records.phenotypes, set(), []
    for numbers in _columns_of_numbers(analysis):
        if numbers.column in seen or not phenotypes.has(numbers.column):
            continue
        seen.add(numbers.column)
        needed = observing(records.observed, [i for i, t in enumerate(analysis.traits) if t.name in numbers.traits])
        values = np.where(needed, phenotypes.numbers(numbers.column, numbers.path, numbers.missing), np.nan)
        if numbers.path != "data.weights" and (date := _example_of_dates(values)) is not None:
            out.append(
                f"{phenotypes.name}: {numbers.path}: column '{numbers.column}' has dates written as numbers ({date}), "
                "between which differences are no times: needed days since the first of them, say, or an age in days"
            )
            continue
        codes = find_missing_codes(values)
        if codes is None or (numbers.zeros_are_values and any(code.value == 0 for code in codes.codes)):
            continue
        where = f" (the first in row {phenotypes.rows[codes.rows(values)[0]]})"
        advice = _advice(numbers, codes, phenotypes.missing)
        out.append(f"{phenotypes.name}: {codes.describe(numbers.path, numbers.column, advice, where)}")
    return tuple(out)


def _example_of_dates(values: np.ndarray) -> str | None:
    """Return one of the values (n,), NaN where not needed, if all of them are dates without separators."""
    different = np.unique(values[np.isfinite(values)])
    if not different.size or different[0] < _FIRST_DATE or (different % 1 != 0).any() or different[-1] > _LAST_DATE:
        return None
    text = pl.Series(different.astype(np.int64)).cast(pl.String)
    return str(text[0]) if are_dates_as_numbers(text) else None


def _advice(numbers: _Numbers, codes: MissingCodes, missing_of_data: tuple[str, ...]) -> str:
    if numbers.effect:
        return advise_on_fixed(numbers.effect, codes.written(numbers.missing))
    return advise_on_table(codes.written(missing_of_data))


def advise_on_table(cells: str) -> str:
    """Return what to do with missing values of columns without a key of their own; cells: the value of data.missing."""
    return (
        "correct these records or leave them out, as each needs a value there (data.missing: "
        f"{cells}, which holds for every column, names their rows)"
    )


def advise_on_fixed(path: str, cells: str) -> str:
    """Return what to write for missing values of a fixed effect; cells: the value of its key `missing`."""
    return (
        f"write {path}.missing: {cells}, and correct these records, or leave them out with {path}.without_value: drop"
    )


def _columns_of_numbers(analysis: Analysis) -> Iterator[_Numbers]:
    every = tuple(t.name for t in analysis.traits)
    if analysis.data.weights is not None:
        yield _Numbers("data.weights", analysis.data.weights, every)
    for trait in analysis.traits:
        if trait.exposure:
            yield _Numbers(f"traits.{trait.name}.exposure", trait.exposure, (trait.name,))
    for name, fixed in analysis.model.fixed.items():
        path = f"model.fixed.{name}"
        for column in fixed.number_columns:
            yield _Numbers(path, column, tuple(fixed.traits), fixed.missing, path)
    for name, random in analysis.model.random.items():
        for of_effect, effect in random.effects.items():
            path = f"model.random.{name}" + (f".effects.{of_effect}" if of_effect else "")
            for column in effect.covariates or ():  # 0: a record has none of it
                yield _Numbers(f"{path}.covariates", column, tuple(effect.traits), zeros_are_values=True)
            if effect.legendre:
                yield _Numbers(f"{path}.legendre", effect.legendre.column, tuple(effect.traits))


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
    """List every column of classes, once. missing: data.missing as it is.

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


def warn_of_regression_codes(
    model: Model, table: Phenotypes, predictors: np.ndarray, names: Sequence[str], response: np.ndarray
) -> tuple[str, ...]:
    """A warning for each such column. predictors: (n, p), names (p,); response: (n,) numbers or text, or (n, K)."""
    out = []
    if response.dtype.kind != "f":
        out += _class_codes(table, model.response[0], "model.response", "")
    else:
        columns = response.reshape(len(table), -1).T
        for column, values in zip(model.response, columns, strict=True):
            codes = find_missing_codes(values)
            if codes is not None and not (_has_zero(codes) and len(columns) > 1):  # a class without trials
                advice = f"write data.missing: {codes.written(table.missing)}, which holds for every column"
                said = codes.describe("model.response", column, advice, _first(table, values, codes))
                out.append(f"{table.name}: {said}")
    if model.groups is not None:
        needs = ", and correct these records or leave them out, as each needs a group"
        out += _class_codes(table, model.groups, "model.groups", needs)
    numbers = [*_codes(table, "model.predictors", zip(names, predictors.T, strict=True))]
    of_groups = ((c, table.numbers(c, "model.group_predictors")) for c in model.group_predictors)
    return (*out, *numbers, *_codes(table, "model.group_predictors", of_groups))


def _codes(table: Phenotypes, path: str, columns: Iterator[tuple[str, np.ndarray]]) -> Iterator[str]:
    """Warn of the first columns with a code for missing, then of how many more there are."""
    coded = []
    for column, values in columns:
        codes = find_missing_codes(values)
        if codes is not None and not _has_zero(codes):  # 0: a record has none of it
            coded.append((column, values, codes))
    for column, values, codes in coded[:SHOWN]:
        advice = advise_on_table(codes.written(table.missing))
        yield f"{table.name}: {codes.describe(path, column, advice, _first(table, values, codes))}"
    if len(coded) > SHOWN:
        more = counted(len(coded) - SHOWN, "column")
        yield f"{table.name}: {path}: such numbers in {more} more, from column {quoted(coded[SHOWN][0])}"


def _class_codes(table: Phenotypes, column: str, path: str, after: str) -> list[str]:
    text: pl.Series = table.text(column, path)
    same = describe_alike(text, column)
    unknown = describe_unknown(
        text, column, lambda cells: f"write data.missing: {written_codes((*table.missing, *cells))}"
    )
    out = [] if same is None else [f"{table.name}: {path}: {same}"]
    return out if unknown is None else [*out, f"{table.name}: {path}: {unknown}{after}"]


def _has_zero(codes: MissingCodes) -> bool:
    return any(code.value == 0 for code in codes.codes)


def _first(table: Phenotypes, values: np.ndarray, codes: MissingCodes) -> str:
    return f" (the first in row {table.rows[codes.rows(values)[0]]})"
