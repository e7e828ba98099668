"""The table of a regression: response, predictors by name or pattern, groups;
and the row to name when a value cannot be used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.config import Analysis, Model
from mmgibbs.data.column_checks import warn_of_regression_codes
from mmgibbs.data.number_format import parse_column
from mmgibbs.data.phenotypes import SHOWN, Phenotypes, read_phenotypes, refuse_rows
from mmgibbs.errors import DataError
from mmgibbs.pedigree.tables import format_number, nearest, open_table, quoted


@dataclass(frozen=True)
class RegressionTable:
    """Records with a response, in the order of the file."""

    predictors: np.ndarray  # (n, p) in the narrowest of uint8, float32, float64 that holds every value
    names: tuple[str, ...]  # (p,)
    response: np.ndarray  # (n,) numbers or text, (n, K) counts for several columns
    response_names: tuple[str, ...]
    groups: np.ndarray | None  # (n,) text
    group_predictors: np.ndarray | None  # (groups, q), in the order of numpy.unique(groups)
    rows: np.ndarray  # (n,) line of each record in the file
    counts: dict  # for run.json
    notes: tuple[str, ...] = ()  # how numbers were read that can be read in two ways
    warnings: tuple[str, ...] = ()  # values that may mean something else


def read_regression(analysis: Analysis) -> RegressionTable:
    """Read and check the table of an analysis with `model.plugin`. DataError names file, row and column.

    Records without a response are left out, and counted; a missing predictor, group or group predictor is refused.
    """
    data, model = analysis.data, analysis.model
    header = True if data.header is None else list(data.header)
    columns = open_table(
        data.phenotypes,
        data.widths or data.separator,
        header,
        "phenotypes" if isinstance(data.phenotypes, pl.DataFrame) else None,
        data.encoding,
    ).names
    names = _matching(model, columns, data.phenotypes)
    used_columns = [*model.response, *([model.groups] if model.groups else []), *model.group_predictors]
    table = read_phenotypes(data, [*names, *used_columns])
    read = len(table)
    for path, wanted in (("model.response", model.response), ("model.groups", [model.groups] if model.groups else [])):
        for column in wanted:
            table.need(column, path)
    absent = _lacks_response(table, model.response)
    table = table.keep(~absent)
    if not len(table):
        raise DataError(f"{table.name}: no record has a response ({', '.join(model.response)}); needed at least one")
    groups = None if model.groups is None else _complete_text(table, model.groups, "model.groups")
    of_groups = None
    if groups is not None and model.group_predictors:
        of_groups = _group_predictors(table, groups, model.group_predictors)
    predictors, response = _predictors(table, names), _response(table, model.response)
    return RegressionTable(
        predictors=predictors,
        names=names,
        response=response,
        response_names=model.response,
        groups=groups,
        group_predictors=of_groups,
        rows=table.rows,
        counts={
            "records": {"read": read, "used": len(table), "left_out": {"without a response": int(absent.sum())}},
            "predictors": len(names),
        },
        notes=table.notes,
        warnings=(*table.warnings, *warn_of_regression_codes(model, table, predictors, names, response)),
    )


def _matching(model: Model, columns: Sequence[str], source: Path | pl.DataFrame) -> tuple[str, ...]:
    """The columns that the names and patterns of model.predictors mean, each once, in the order of the file for a
    pattern.
    """
    chosen: dict[str, None] = {}
    taken = {*model.response, *model.group_predictors, model.groups}
    for wanted in model.predictors:
        if wanted in columns:
            chosen[wanted] = None
            continue
        matches = [c for c in columns if fnmatchcase(c, wanted) and c not in taken]
        if not matches:
            what = "no column matches" if any(sign in wanted for sign in "*?[") else "there is no column"
            raise DataError(f"{_name(source)}: {what} {quoted(wanted)} (model.predictors); {nearest(wanted, columns)}")
        chosen |= dict.fromkeys(matches)
    for column in chosen:
        if column in taken:
            raise DataError(f"model.predictors: {quoted(column)} is the response or a group too; needed another column")
    return tuple(chosen)


def _name(source: Path | pl.DataFrame) -> str:
    return "phenotypes" if isinstance(source, pl.DataFrame) else source.name


def _predictors(table: Phenotypes, names: Sequence[str]) -> np.ndarray:
    """(n, p), C order, narrowest type."""
    columns = []
    for name in names:
        values = table.numbers(name, "model.predictors")
        missing = np.flatnonzero(np.isnan(values))
        if missing.size:
            problems = [f"no value in column '{name}' (model.predictors)"] * min(SHOWN, missing.size)
            raise refuse_rows(
                table.name, table.rows[missing], problems, "a number in every predictor of a record with a response"
            )
        columns.append(values)
    small = all(((c >= 0) & (c <= 255) & (c == np.floor(c))).all() for c in columns)
    out = np.empty((len(table), len(names)), np.uint8 if small else np.float64)
    for j, values in enumerate(columns):
        out[:, j] = values
    return out


def _lacks_response(table: Phenotypes, columns: Sequence[str]) -> np.ndarray:
    """(n,) bool: the cell of one of the columns is missing, as a text or as a number ('-9.0' where '-9' is)."""
    absent = np.zeros(len(table), bool)
    for column in columns:
        text = table.text(column, "model.response")
        absent |= text.is_null().to_numpy()
        if len(columns) > 1 or not (parse_column(text, (), table.decimal).values.is_null() & text.is_not_null()).any():
            absent |= np.isnan(table.numbers(column, "model.response"))
    return absent


def _response(table: Phenotypes, columns: Sequence[str]) -> np.ndarray:
    """Numbers where every value is one, else text; (n, K) for several columns, which must be numbers."""
    if len(columns) > 1:
        return np.column_stack([table.numbers(c, "model.response") for c in columns])
    text = table.text(columns[0], "model.response")
    numbers = parse_column(text, (), table.decimal).values
    return text.to_numpy().astype(str) if numbers.is_null().any() else table.numbers(columns[0], "model.response")


def _complete_text(table: Phenotypes, column: str, path: str) -> np.ndarray:
    text = table.text(column, path)
    missing = np.flatnonzero(text.is_null().to_numpy())
    if missing.size:
        problems = [f"no value in column '{column}' ({path})"] * min(SHOWN, missing.size)
        raise refuse_rows(table.name, table.rows[missing], problems, "a group for every record with a response")
    return text.to_numpy().astype(str)


def _group_predictors(table: Phenotypes, groups: np.ndarray, columns: Sequence[str]) -> np.ndarray:
    """(groups, q): the value of a group, which must be the same in all of its records."""
    labels, first, which = np.unique(groups, return_index=True, return_inverse=True)
    out = np.empty((labels.size, len(columns)))
    for j, column in enumerate(columns):
        values = table.numbers(column, "model.group_predictors")
        out[:, j] = values[first]
        wrong = np.flatnonzero(~(values == out[which, j]))
        if wrong.size:
            i = wrong[:SHOWN]
            problems = [
                f"found {format_number(values[r])} in column '{column}' (model.group_predictors), "
                f"{format_number(out[which[r], j])} earlier in group {groups[r]}"
                for r in i
            ]
            raise refuse_rows(table.name, table.rows[wrong], problems, "one value for all records of a group")
    return out
