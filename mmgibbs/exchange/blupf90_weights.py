"""WEIGHT(S) of a parameter file -> the one column of weights that an analysis has.

With a weight w_t for each trait, residuals of a record have the covariances R_ts / sqrt(w_t w_s); an analysis divides
all of R by one weight. The two are the same model where

- the traits that a record has share their weight, or
- R is diagonal: a record may then be divided into one for each weight, which changes no likelihood.

Otherwise weights are not carried over.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from mmgibbs.errors import DataError
from mmgibbs.exchange.blupf90_context import Context
from mmgibbs.exchange.blupf90_pedigree import WARNING

COLUMN = "weight"


def weights_of_each_trait(context: Context) -> bool:
    """Whether traits have weights in different columns."""
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
