"""Plots and times of the records as the levels of an autoregression (models/relationships/ar1.py).

A field has all plots of the rectangle that the records of a trial span, also those without a record. In time the levels
are the distinct times of each level of `within`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.config.smooth_relationships import Autoregression
from mmgibbs.data.phenotypes import Phenotypes
from mmgibbs.data.series import FoundSteps, Placed, Step, code_classes, find_series, find_steps, read_positions
from mmgibbs.errors import DataError
from mmgibbs.models.relationships.ar1 import Field, FirstOrder, Lattice, TimeSeries
from mmgibbs.pedigree.tables import counted, format_number, quoted

MAX_PLOTS_PER_RECORD = 50  # beyond them rows and columns are hardly those of a field
MIN_PLOTS_REFUSED = 10_000


@dataclass(frozen=True)
class Places:
    """The levels that were found."""

    relationship: FirstOrder
    ids: pl.Series  # (q,) String
    levels: list[np.ndarray]  # per effect (n,) int32, -1: none
    plots: pl.DataFrame | None  # (q,) trial, row and column of each level; None: the levels are times
    steps: FoundSteps

    def find_repeated(self, phenotypes: Phenotypes, term: str, observed: Mapping[str, np.ndarray]) -> list[str]:
        """Return a warning for plots with several records of a trait: trials may have been taken for one."""
        level = self.levels[0]
        for trait, is_observed in observed.items() if self.plots is not None else ():
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
    phenotypes: Phenotypes,
    place: str,
    spec: Autoregression,
    is_met: Sequence[np.ndarray],
    steps: FoundSteps | None = None,
) -> Places:
    """Find the levels of each effect; is_met: (n,) per effect, whether a record has one.

    place: what is autoregressive, as a path of the YAML: 'model.random.TERM' or 'variances.residual'. steps: those of
    all classes and traits. Default: those of these records.
    """
    path, needed = f"{place}.relationship", np.logical_or.reduce(list(is_met))
    if not needed.any():
        raise DataError(f"{phenotypes.name}: found no record with a level of {place}; needed some")
    rows = np.flatnonzero(needed)
    group, names = code_classes(phenotypes, spec.within, f"{path}.within", needed)
    placed = Placed(phenotypes, path, spec, rows, group, names)
    steps = steps or find_steps(placed)
    build = _build_series if spec.time is not None else build_field
    structure, level, within, positions = build(placed, steps.of)
    trial = names.gather(within)
    columns = {key: positions[key] for key in spec.parameters}
    parts = [c.cast(pl.String) for c in ([trial] if spec.within is not None else []) + list(columns.values())]
    frame = pl.DataFrame([part.alias(str(i)) for i, part in enumerate(parts)])
    ids = frame.select(id=pl.concat_str(frame.columns, separator=":"))["id"]  # 'S1:3:12'
    rho = _place_correlations(phenotypes, path, spec, structure)
    relationship = FirstOrder.build(structure, spec.parameters, rho.tolist(), spec.fixed)
    levels = [np.where(met, level, -1).astype(np.int32) for met in is_met]
    plots = name_plots(trial, columns) if spec.time is None else None
    return Places(relationship, ids, levels, plots, steps)


def _place_correlations(
    phenotypes: Phenotypes, path: str, spec: Autoregression, structure: Field | TimeSeries
) -> np.ndarray:
    """Known correlations as they are, or where estimates begin. DataError for known ones that these times forbid."""
    rho, low = np.array(spec.starts()), structure.bounds[:, 0]
    if not spec.fixed:
        return structure.convert_to_steps(rho) if spec.rho is None else np.clip(rho, *structure.bounds.T)
    if ((rho < 0) & (low > 0)).any():
        raise DataError(
            f"{phenotypes.name}: found times in column {quoted(spec.time or '')} that are no whole number of steps "
            f"apart, over which a correlation of {rho.min():g} ({path}.rho) has no power; needed one of 0 or more"
        )
    return rho


def name_plots(trial: pl.Series, columns: Mapping[str, pl.Series]) -> pl.DataFrame:
    absent = pl.Series([None] * len(trial), dtype=pl.Int64)
    return pl.DataFrame({"trial": trial, **{key: columns.get(key, absent) for key in ("row", "column")}})


def build_field(
    placed: Placed, steps: Mapping[str, Step]
) -> tuple[Field, np.ndarray, np.ndarray, dict[str, pl.Series]]:
    """Return the plots, the level of each record, and of each level its trial, row and column."""
    phenotypes, path, spec, rows, group, names = placed
    step = {key: int(steps[key].length) if key in steps else 1 for key in ("row", "column")}
    at = {
        key: np.zeros(rows.size, np.int64)
        if column is None
        else read_positions(phenotypes, column, f"{path}.{key}", rows)[0].astype(np.int64)
        for key, column in (("row", spec.row), ("column", spec.column))
    }
    g, n = group[rows], len(names)
    low = {key: _smallest(values, g, n) for key, values in at.items()}
    size = {key: 1 + (-_smallest(-values, g, n) - low[key]) // step[key] for key, values in at.items()}
    for key in spec.directions:
        if size[key].max() < 2:
            raise DataError(
                f"{phenotypes.name}: found one {key} in every trial (column {quoted(getattr(spec, key))}, {path}."
                f"{key}), which leaves no neighbours; needed two or more, or "
                + (f"no {key}" if isinstance(spec, Autoregression) else "a model without this effect")
            )
    plots = int(np.sum(size["row"].astype(float) * size["column"]))
    if plots > max(MAX_PLOTS_PER_RECORD * rows.size, MIN_PLOTS_REFUSED):
        largest = int(np.argmax(size["row"].astype(float) * size["column"]))
        spans = " and ".join(f"{size[key][largest]:,} {key}s" for key in spec.directions)
        where = f" in {quoted(names[largest])}" if spec.within is not None else ""
        raise DataError(
            f"{phenotypes.name}: found {spans}{where} for {counted(rows.size, 'record')} ({path}): {plots:,} plots in "
            "all; needed the numbers of rows and columns within a trial, and within: COLUMN where there are several"
        )
    first = np.concatenate([[0], np.cumsum(size["row"] * size["column"])])
    level = np.full(len(phenotypes), -1, np.int64)
    row, column = ((at[key] - low[key][g]) // step[key] for key in ("row", "column"))
    level[rows] = first[g] + row * size["column"][g] + column
    lattices = tuple(Lattice(int(r), int(c)) for r, c in zip(size["row"], size["column"], strict=True))
    structure = Field(lattices, spec.directions)
    within = np.repeat(np.arange(n), np.diff(first))
    place = np.arange(first[-1]) - first[within]
    numbers = {
        "row": place // size["column"][within] * step["row"] + low["row"][within],
        "column": place % size["column"][within] * step["column"] + low["column"][within],
    }
    return structure, level, within, {key: pl.Series(values, dtype=pl.Int64) for key, values in numbers.items()}


def _build_series(
    placed: Placed, steps: Mapping[str, Step]
) -> tuple[Field | TimeSeries, np.ndarray, np.ndarray, dict[str, pl.Series]]:
    """Return the times, the level of each record, and of each level its class and time."""
    phenotypes, path, spec, rows, group, _ = placed
    assert isinstance(spec, Autoregression) and spec.time is not None
    series = find_series(phenotypes, spec.time, f"{path}.time", rows, group)
    distance = series.gap
    if not distance.any():
        what = "record has one time" if spec.within is None else f"level of {quoted(spec.within)} has one time"
        raise DataError(
            f"{phenotypes.name}: every {what} (column {quoted(spec.time)}, {path}.time), which leaves no neighbours; "
            "needed several times of some"
        )
    step = steps["time"].length
    gap = np.round(distance / step, 9)  # equal distances are one
    lost = np.flatnonzero((distance > 0) & (gap == 0))
    if lost.size:
        low, high = (series.shown[int(lost[0]) - before] for before in (1, 0))
        raise DataError(
            f"{phenotypes.name}: found times {low} and {high} in column {quoted(spec.time)} ({path}.time), which are "
            f"less than a billionth of a step ({format_number(step)}) apart; needed rounded times, or a shorter step"
        )
    structure = TimeSeries(gap, spec.time, step)
    return structure, series.number, series.within, {"time": series.shown}


def _smallest(values: np.ndarray, group: np.ndarray, n: int) -> np.ndarray:
    """(n,) of each group."""
    out = np.full(n, np.iinfo(np.int64).max)
    np.minimum.at(out, group, values)
    return out
