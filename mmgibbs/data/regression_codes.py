"""What the table of a regression may hold in place of missing values: -9 and 999 in columns of numbers, and words for
unknown among classes and groups. The questions are those that a mixed model asks of its traits, covariates and levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from mmgibbs.config import Model
from mmgibbs.data.alike_levels import describe_alike, describe_unknown
from mmgibbs.data.covariate_codes import advise_on_table
from mmgibbs.data.missing_codes import MissingCodes, find_missing_codes, written_codes
from mmgibbs.data.phenotypes import SHOWN, Phenotypes
from pedigree.tables import counted, quoted


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
    """Of the first columns with a code a warning each, then how many more there are."""
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
