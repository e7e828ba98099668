"""Covariates and weights whose numbers mean something else: missing values (-9, 999), dates (20110304)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from mmgibbs.config import Analysis
from mmgibbs.data.dates import are_dates_as_numbers
from mmgibbs.data.missing_codes import MissingCodes, find_missing_codes
from mmgibbs.data.traits import Records, observing

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
    """One of the values (n,), NaN where not needed, if all of them are dates without separators."""
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
