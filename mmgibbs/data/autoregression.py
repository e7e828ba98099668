"""Plots and times of the records as the levels of an autoregression (models/relationships/ar1.py).

A field has all plots of the rectangle that the records of a trial span, also those without a record. In time the levels
are the distinct times of each level of `within`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.config.relationships import Autoregression
from mmgibbs.data.levels import code_levels
from mmgibbs.data.phenotypes import SHOWN, Phenotypes, refuse_rows
from mmgibbs.errors import DataError
from mmgibbs.models.relationships.ar1 import Field, FirstOrder, Lattice, TimeSeries
from pedigree.tables import counted, format_number, quoted

MAX_PLOTS_PER_RECORD = 50  # beyond them rows and columns are hardly those of a field
MIN_PLOTS_REFUSED = 10_000


@dataclass(frozen=True)
class Places:
    """The levels that were found."""

    relationship: FirstOrder
    ids: pl.Series  # (q,) String
    levels: list[np.ndarray]  # per effect (n,) int32, -1: none
    what: str  # 'plot' or 'time'

    def find_repeated(self, phenotypes: Phenotypes, term: str, observed: Mapping[str, np.ndarray]) -> list[str]:
        """Return a warning for plots with several records of a trait: trials may have been taken for one."""
        level = self.levels[0]
        for trait, is_observed in observed.items() if self.what == "plot" else ():
            met = np.flatnonzero(is_observed & (level >= 0))
            counts = np.bincount(level[met], minlength=len(self.ids))
            repeated = np.flatnonzero(counts > 1)
            if repeated.size:
                rows = phenotypes.rows[met[level[met] == repeated[0]]][:2]
                plot = quoted(self.ids[int(repeated[0])])
                return [
                    f"{phenotypes.name}: rows {rows[0]} and {rows[1]} are of one plot, {plot} (model.random.{term}."
                    f"relationship), and both have {trait}; so have records of {counted(repeated.size, 'plot')} in "
                    "all: if they are of several trials, name their column in within"
                ]
        return []


def build_autoregression(
    phenotypes: Phenotypes, term: str, spec: Autoregression, is_met: Sequence[np.ndarray]
) -> Places:
    """Find the levels of each effect; is_met: (n,) per effect, whether a record has one."""
    path, needed = f"model.random.{term}.relationship", np.logical_or.reduce(list(is_met))
    if not needed.any():
        raise DataError(f"{phenotypes.name}: found no record with a level of model.random.{term}; needed some")
    group, names = np.zeros(len(phenotypes), np.int64), pl.Series("id", [""])
    if spec.within is not None:
        text = phenotypes.text(spec.within, f"{path}.within")
        names, (codes,) = code_levels([text.to_frame("id").select(pl.when(pl.Series(needed)).then("id"))["id"]])
        group = codes.astype(np.int64)
    build = _build_series if spec.time is not None else _build_field
    relationship, ids, level = build(phenotypes, path, spec, np.flatnonzero(needed), group, names)
    levels = [np.where(met, level, -1).astype(np.int32) for met in is_met]
    return Places(relationship, ids, levels, "time" if spec.time is not None else "plot")


def _build_field(
    phenotypes: Phenotypes, path: str, spec: Autoregression, rows: np.ndarray, group: np.ndarray, names: pl.Series
) -> tuple[FirstOrder, pl.Series, np.ndarray]:
    at = {
        key: _read_whole(phenotypes, column, f"{path}.{key}", rows)
        for key, column in (("row", spec.row), ("column", spec.column))
    }
    g, n = group[rows], len(names)
    low = {key: _smallest(values, g, n) for key, values in at.items()}
    size = {key: 1 - low[key] - _smallest(-values, g, n) for key, values in at.items()}
    for key in spec.parameters:
        if size[key].max() < 2:
            raise DataError(
                f"{phenotypes.name}: found one {key} in every trial (column {quoted(getattr(spec, key))}, {path}."
                f"{key}), which leaves no neighbours; needed two or more, or no {key}"
            )
    plots = int(np.sum(size["row"].astype(float) * size["column"]))
    if plots > max(MAX_PLOTS_PER_RECORD * rows.size, MIN_PLOTS_REFUSED):
        largest = int(np.argmax(size["row"].astype(float) * size["column"]))
        spans = " and ".join(f"{size[key][largest]:,} {key}s" for key in spec.parameters)
        where = f" in {quoted(names[largest])}" if spec.within is not None else ""
        raise DataError(
            f"{phenotypes.name}: found {spans}{where} for {counted(rows.size, 'record')} ({path}): {plots:,} plots in "
            "all; needed the numbers of rows and columns within a trial, and within: COLUMN where there are several"
        )
    first = np.concatenate([[0], np.cumsum(size["row"] * size["column"])])
    level = np.full(len(phenotypes), -1, np.int64)
    row, column = at["row"] - low["row"][g], at["column"] - low["column"][g]
    level[rows] = first[g] + row * size["column"][g] + column
    lattices = tuple(Lattice(int(r), int(c)) for r, c in zip(size["row"], size["column"], strict=True))
    structure = Field(lattices, spec.parameters)
    within = np.repeat(np.arange(n), np.diff(first))
    place = np.arange(first[-1]) - first[within]
    numbers = {
        "row": place // size["column"][within] + low["row"][within],
        "column": place % size["column"][within] + low["column"][within],
    }
    return _finish(spec, structure, level, names, within, [pl.Series(numbers[key]) for key in spec.parameters])


def _build_series(
    phenotypes: Phenotypes, path: str, spec: Autoregression, rows: np.ndarray, group: np.ndarray, names: pl.Series
) -> tuple[FirstOrder, pl.Series, np.ndarray]:
    assert spec.time is not None
    time = phenotypes.numbers(spec.time, f"{path}.time")[rows]
    pairs, number = np.unique(np.column_stack([group[rows], time]), axis=0, return_inverse=True)
    within = pairs[:, 0].astype(np.int64)
    distance = np.where(np.diff(within, prepend=-1) == 0, np.diff(pairs[:, 1], prepend=0.0), 0.0)
    if not distance.any():
        what = "record has one time" if spec.within is None else f"level of {quoted(spec.within)} has one time"
        raise DataError(
            f"{phenotypes.name}: every {what} (column {quoted(spec.time)}, {path}.time), which leaves no neighbours; "
            "needed several times of some"
        )
    step = spec.step or float(distance[distance > 0].min())
    level = np.full(len(phenotypes), -1, np.int64)
    level[rows] = number.ravel()
    shown = pl.Series([format_number(t) for t in pairs[:, 1]], dtype=pl.String)
    structure = TimeSeries(np.round(distance / step, 9), spec.time, step)
    return _finish(spec, structure, level, names, within, [shown])


def _finish(
    spec: Autoregression,
    structure: Field | TimeSeries,
    level: np.ndarray,
    names: pl.Series,
    within: np.ndarray,
    parts: list[pl.Series],
) -> tuple[FirstOrder, pl.Series, np.ndarray]:
    """K, the labels of its levels ('S1:3:12') and the level of each record."""
    columns = [names.gather(within), *parts] if spec.within is not None else parts
    frame = pl.DataFrame([c.cast(pl.String).alias(str(i)) for i, c in enumerate(columns)])
    ids = frame.select(id=pl.concat_str(frame.columns, separator=":"))["id"]
    rho = np.clip(spec.starts(), *structure.bounds.T)
    return FirstOrder.build(structure, spec.parameters, rho, spec.fixed), ids, level


def _read_whole(phenotypes: Phenotypes, column: str | None, path: str, rows: np.ndarray) -> np.ndarray:
    """(rows,) int64 whole numbers; 0 without a column."""
    if column is None:
        return np.zeros(rows.size, np.int64)
    values = phenotypes.numbers(column, path)[rows]
    wrong = np.flatnonzero(values != np.round(values))
    if wrong.size:
        problems = [f"found {format_number(values[i])} in column {quoted(column)} ({path})" for i in wrong[:SHOWN]]
        needed = "a whole number that counts the rows or columns of the field"
        raise refuse_rows(phenotypes.name, phenotypes.rows[rows[wrong]], problems, needed)
    return values.astype(np.int64)


def _smallest(values: np.ndarray, group: np.ndarray, n: int) -> np.ndarray:
    """(n,) of each group."""
    out = np.full(n, np.iinfo(np.int64).max)
    np.minimum.at(out, group, values)
    return out
