"""OPTION cat of a parameter file -> binary and ordinal traits, on the scale that an analysis has for them.

GIBBSF90+ and THRGIBBS1F90 number categories from 1, hold two thresholds (0 and 1, or those of OPTION thresholds) and
sample the residual variance R. Here R is 1, the first threshold 0 and the others are sampled: the same model with
another unit of the liability, so that

    variances / R        covariances with a normal trait / sqrt(R)        solutions / sqrt(R)
    (thresholds - the first one) / sqrt(R)                                h2 as it is

WEIGHT(S) of a parameter file -> the one column of weights that an analysis has.

With a weight w_t for each trait, residuals of a record have the covariances R_ts / sqrt(w_t w_s); an analysis divides
all of R by one weight. The two are the same model where

- the traits that a record has share their weight, or
- R is diagonal: a record may then be divided into one for each weight, which changes no likelihood.

Otherwise weights are not carried over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.config.text import spelled
from mmgibbs.errors import DataError
from mmgibbs.exchange.blupf90_context import Context
from mmgibbs.exchange.blupf90_pedigree import WARNING

CONVERSION = (
    "has a residual variance of 1 and its first threshold at 0 here: divide variances of GIBBSF90+ or THRGIBBS1F90 by "
    "their residual variance R, solutions and differences of thresholds by sqrt(R), draw by draw, to compare"
)


def numbers_of_categories(context: Context) -> tuple[int, ...]:
    """(T,) K of each trait of the last OPTION cat, 0 where it is normal."""
    T = len(context.traits)
    option = next((o for o in reversed(context.parameters.options) if o.value[0] == "cat"), None)
    if option is None:
        return (0,) * T
    words = option.value[1:]
    if len(words) != T or not all(word.isdecimal() for word in words) or "1" in words:
        needed = f"{T} number{'s' * (T > 1)}, one for each trait: 0 for a normal one, or how many categories it has"
        raise context.refuse(option.line, f"OPTION {' '.join(option.value)}: needed {needed} (two or more)")
    if not any(int(word) for word in words):
        context.note(option.line, f"OPTION {' '.join(option.value)}: every trait is normal")
    elif "WEIGHT(S)" in context.parameters.stated and context.parameters.stated["WEIGHT(S)"].value:
        line = context.parameters.stated["WEIGHT(S)"].line
        raise context.refuse(line, f"WEIGHT(S): cannot be combined with OPTION cat (line {option.line}); needed none")
    return tuple(int(word) for word in words)


def divisors(context: Context, categories: Sequence[int]) -> np.ndarray:
    """(T,) the stated residual variance of each trait in categories, which becomes 1; 1 for the others."""
    residual = np.diag(context.parameters.stated["RESIDUAL_VARIANCE"].value)
    out = np.ones(len(categories))
    for t, K in enumerate(categories[: len(residual)]):
        if K and residual[t] > 0:
            out[t] = residual[t]
    return out


def keys_of_type(context: Context, trait: int, K: int, missing: str, missing_is_stated: bool) -> dict:
    """type, categories or positive, and missing of a trait with K categories; what its column holds decides on 0."""
    line = next(o.line for o in reversed(context.parameters.options) if o.value[0] == "cat")
    position = context.parameters.stated["TRAITS"].value[trait]
    values = context.values(position)
    cells = values.drop_nulls().unique().to_list()
    spellings = {spelled(cell) for cell in cells}
    codes, name = [str(k) for k in range(1, K + 1)], context.traits[trait]
    where = f"column {position} of {context.data.name}"
    if K == 2 and spellings == {"0", "1"} and spelled(missing) == "0" and not missing_is_stated:
        context.note(
            line,
            f"{WARNING}{where} ({name}) has only 0 and 1: 0 is the first category here, not a missing value as for "
            "the BLUPF90 programs; if it means missing, the trait has only one category and cannot be analysed",
        )
        codes, missing = ["0", "1"], ""
    known = {*codes, spelled(missing)} if missing else set(codes)
    wrong = sorted(spellings - known)
    if wrong:
        record = next(i for i, v in enumerate(values.to_list()) if v is not None and spelled(v) in wrong)
        cell = values[record]
        raise DataError(
            f"{context.data.name} row {context.row(record)}: found {cell!r} in column {position}, needed "
            f"{_listed(codes)}{f', or {missing} (missing)' if missing else ''}: OPTION cat has {K} categories for "
            f"{name}"
        )
    empty = [code for code in codes if code not in spellings]
    if empty:
        raise context.refuse(
            line,
            f"OPTION cat: found no record of category {' and '.join(empty)} in {where} ({name}), where {missing} is "
            "missing; needed records in each (codes begin with 1; fewer categories, or OPTION missing)",
        )
    absent = sum(v is not None and spelled(v) == spelled(missing) for v in values.to_list()) if missing else 0
    kind = "binary" if K == 2 else "ordinal"
    void = f", {missing} is missing ({absent} records)" if missing else ""
    context.note(line, f"OPTION cat: {name} is {kind}, {codes[0]} to {codes[-1]}{void}; it {CONVERSION}")
    keys = {"type": "binary", "positive": codes[-1]} if K == 2 else {"type": "ordinal", "categories": codes}
    return keys | {"missing": [missing] if missing else []}


def _listed(codes: Sequence[str]) -> str:
    return f"{codes[0]} or {codes[1]}" if len(codes) == 2 else f"{codes[0]} to {codes[-1]}"


def tell_of_scale(context: Context) -> None:
    """Note where stated variances are those of another unit."""
    for t in np.flatnonzero(context.divisor != 1.0).tolist():
        context.note(
            context.parameters.stated["RESIDUAL_VARIANCE"].line,
            f"RESIDUAL_VARIANCE: {context.divisor[t]:g} of {context.traits[t]} becomes 1, and its other (co)variances "
            "are divided by it (by its root with other traits)",
        )


COLUMN = "weight"


def weights_of_each_trait(context: Context) -> bool:
    """Check whether traits have weights in different columns."""
    stated = context.parameters.stated
    return "WEIGHT(S)" in stated and len(set(stated["WEIGHT(S)"].value)) > 1


def enter_weights(
    context: Context, missing: str, data: dict[str, Any], traits: dict[str, dict], variances: dict
) -> None:
    """Enter weights that differ between traits: a new table of the data, and what says so in the analysis.

    missing: the text of a missing observation. DataError names the row of a weight that is none.
    """
    line, positions = (context.parameters.stated["WEIGHT(S)"].line, context.parameters.stated["WEIGHT(S)"].value)
    R = context.parameters.stated["RESIDUAL_VARIANCE"].value
    frame = context.table()
    observed = np.stack([_observed(frame[keys["column"]], missing) for keys in traits.values()], axis=1)
    weight = np.stack([_numbers(context, frame, position, line) for position in positions], axis=1)
    _refuse_no_weight(context, frame, positions, observed & ~(weight > 0), line)
    low, high = (f(np.where(observed, weight, w), axis=1) for f, w in ((np.min, np.inf), (np.max, -np.inf)))
    name = context.name_of_new_data
    if (low >= high).all():  # a record without traits has no weight at all
        context.tables[name] = frame.with_columns(_column(np.where(observed.any(axis=1), high, 1.0)))
        context.note(line, f"WEIGHT(S): column {COLUMN} of {name} has the weight of the traits that a record has")
    elif not np.any(R - np.diag(np.diag(R))):
        context.tables[name] = _divided(frame, positions, observed, weight, traits)
        for trait, keys in traits.items():
            keys["column"] = trait
        residual = (
            variances["residual"] if isinstance(variances["residual"], dict) else {"start": variances["residual"]}
        )
        variances["residual"] = residual | {"structure": "diagonal"}
        context.note(
            line,
            f"WEIGHT(S): {name} has a record for each weight, {context.tables[name].height:,} for {frame.height:,}: "
            "residuals of the traits are independent, so that this is the same model",
        )
    else:
        context.note(
            line,
            f"{WARNING}WEIGHT(S): a weight for each trait is not carried over where RESIDUAL_VARIANCE has covariances "
            "and a record has traits of different weights: every weight is 1",
        )
        return
    data["weights"], data["phenotypes"] = COLUMN, name
    for key in ("separator", "header"):
        data.pop(key, None)


def _observed(cells: pl.Series, missing: str) -> np.ndarray:
    """(n,) bool: not empty and not the missing value, as text or as number."""
    number = pl.Series([missing]).cast(pl.Float64, strict=False)[0]
    absent = cells.is_null() | (cells == missing).fill_null(False)
    if number is not None:
        absent |= (cells.cast(pl.Float64, strict=False) == number).fill_null(False)
    return ~absent.to_numpy()


def _numbers(context: Context, frame: pl.DataFrame, position: int, line: int) -> np.ndarray:
    """(n,) float64, NaN where a cell is no number."""
    context.check(line, "WEIGHT(S)", [position])
    return frame[context.columns[position]].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def _refuse_no_weight(
    context: Context, frame: pl.DataFrame, positions: tuple[int, ...], wrong: np.ndarray, line: int
) -> None:
    """wrong: (n, T) bool, a trait that is observed and has no weight above 0."""
    if not wrong.any():
        return
    row, t = (int(i[0]) for i in np.nonzero(wrong))
    cell = frame[context.columns[positions[t]]][row]
    raise DataError(
        f"{context.data.name} row {context.row(row)}: found {'an empty cell' if cell is None else repr(cell)} in "
        f"column {positions[t]}, needed a weight above 0: {context.traits[t]} is observed (WEIGHT(S) of "
        f"{context.parameters.path.name} line {line})"
    )


def _column(weight: np.ndarray) -> pl.Series:
    return pl.Series(COLUMN, weight)


def _divided(
    frame: pl.DataFrame,
    positions: tuple[int, ...],
    observed: np.ndarray,
    weight: np.ndarray,
    traits: dict[str, dict],
) -> pl.DataFrame:
    """The records once for each column of weights, with the traits of it; one without traits stays one record."""
    groups = list(dict.fromkeys(positions))
    of_group = [[t for t, p in enumerate(positions) if p == group] for group in groups]
    group_of_row = [observed[:, ts].any(axis=1) for ts in of_group]
    group_of_row[0] = group_of_row[0] | ~observed.any(axis=1)
    out = []
    for ts, rows in zip(of_group, group_of_row, strict=True):
        values = [
            (frame[keys["column"]] if t in ts else pl.Series([None] * frame.height, dtype=pl.String)).alias(trait)
            for t, (trait, keys) in enumerate(traits.items())
        ]
        w = np.where(observed[:, ts].any(axis=1), weight[:, ts[0]], 1.0)
        out.append(frame.with_columns(*values, _column(w)).filter(pl.Series(rows)))
    return pl.concat(out)
