"""Trends of field trials on the page: a map of each trial, and the sample variogram of trend and error together."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from mmgibbs.report import plots
from mmgibbs.report.finished import Finished
from mmgibbs.report.html_tables import (
    NORMAL_95,
    Table,
    counted,
    decimals,
    describe_first,
    figure,
    make_table,
    number_column,
)
from mmgibbs.report.model_words import component_label

MAX_TRIALS = 12  # of which there is a map
MIN_PAIRS = 30  # of a displacement that is shown: the semivariance of fewer says little
MAX_DISPLACEMENTS = 20  # in the table; variogram.parquet has all
DIRECTIONS = ("row", "column")


def field_section(run: Finished, figures: plots.Figures) -> list[dict[str, Any]]:
    """Maps, figures of the variogram and its table, of each effect with a trend on each trait."""
    if run.plots is None:
        return []
    trends = run.plots.partition_by("term", "effect", "trait", maintain_order=True)
    return [_item(run, trend, figures) for trend in trends]


def _item(run: Finished, trend: pl.DataFrame, figures: plots.Figures) -> dict[str, Any]:
    term, effect, trait = (str(trend[name][0]) for name in ("term", "effect", "trait"))
    label = component_label(effect, trait, term, True)
    trials = trend["trial"].unique(maintain_order=True).to_list()
    shown = trend.filter(pl.col("trial").is_in(trials[:MAX_TRIALS]))
    limit = float(shown["mean"].abs().max() or 0.0) or 1.0  # type: ignore[arg-type]
    out: dict[str, Any] = {
        "label": label,
        "words": describe_first(MAX_TRIALS, len(trials), "trial", "field.parquet"),
        "maps": [
            _map(plots_of_trial, label, limit, figures)
            for plots_of_trial in shown.partition_by("trial", maintain_order=True)
        ],
    }
    variogram = _pool(run.variogram, term, effect, trait)
    return out | _variogram(variogram, label, len(trials), figures)


# ------------------------------------------------------------------------------------------------ the trend


def _map(plots_of_trial: pl.DataFrame, label: str, limit: float, figures: plots.Figures) -> tuple[str, str, str]:
    """A map of the plots; of plots in one direction a line."""
    trial = str(plots_of_trial["trial"][0])
    title = f"Trend of {label}" + (f" in {trial}" if trial else "")
    heading = trial or "Trend"
    directions = [name for name in DIRECTIONS if plots_of_trial[name].null_count() == 0]
    if len(directions) == 1:
        return heading, *_line(plots_of_trial, directions[0], title, figures)
    row, column, mean = (plots_of_trial[name].to_numpy() for name in (*DIRECTIONS, "mean"))
    at = row - row.min(), column - column.min()
    size = int(np.ptp(row)) + 1, int(np.ptp(column)) + 1
    values, is_empty = np.full(size, np.nan), np.zeros(size, bool)
    values[at], is_empty[at] = mean, plots_of_trial["records"].to_numpy() == 0
    high, low = int(np.nanargmax(mean)), int(np.nanargmin(mean))
    caption = (
        f"Rows (up) and columns (right), from {figure(-limit)} (red) to {figure(limit)} (blue). The highest is "
        f"{figure(float(mean[high]))} in row {row[high]}, column {column[high]}, the lowest "
        f"{figure(float(mean[low]))} in row {row[low]}, column {column[low]}."
    )
    if is_empty.any():
        n = counted(int(is_empty.sum()), "plot")
        caption += f" A dot: a plot without a record ({n})."
    paint = plots.paint_plots(values, int(row.min()), int(column.min()), limit, is_empty)
    return heading, figures.draw(paint, title, caption, left=0.1, x_label="column", size=(3.6, 2.6)), caption


def _line(plots_of_trial: pl.DataFrame, direction: str, title: str, figures: plots.Figures) -> tuple[str, str]:
    """(figure, caption) of the trend along rows or columns, with intervals where there are errors."""
    at, mean = plots_of_trial[direction].to_numpy(), plots_of_trial["mean"].to_numpy()
    half = NORMAL_95 * plots_of_trial["sd"].fill_null(0.0).to_numpy()
    high, low = int(np.argmax(mean)), int(np.argmin(mean))
    caption = (
        f"Trend along {direction}s (right). The highest is {figure(float(mean[high]))} in {direction} {at[high]}, the "
        f"lowest {figure(float(mean[low]))} in {direction} {at[low]}."
    )
    if half.any():
        caption += " The band is the 95 % interval at each plot."
    paint = plots.paint_by_year(at, mean, mean - half, mean + half)
    return figures.draw(paint, title, caption, x_label=direction), caption


# ------------------------------------------------------------------------------------------------ the variogram


def _pool(variogram: pl.DataFrame | None, term: str, effect: str, trait: str) -> pl.DataFrame:
    """Mean semivariances over the pairs of all trials, of displacements with enough pairs."""
    if variogram is None:
        return pl.DataFrame()
    pairs, sums = pl.col("pairs"), pl.col("pairs") * pl.col("semivariance")
    return (
        variogram.filter(term=term, effect=effect, trait=trait)
        .group_by("row_displacement", "column_displacement")
        .agg(pairs.sum(), (sums.sum() / pairs.sum()).alias("semivariance"))
        .filter(pl.col("pairs") >= MIN_PAIRS)
        .sort("row_displacement", "column_displacement")
    )


def _variogram(variogram: pl.DataFrame, label: str, trials: int, figures: plots.Figures) -> dict[str, Any]:
    if variogram.is_empty():
        return {"variogram": []}
    faces = {name: _face(variogram, name) for name in DIRECTIONS}
    faces = {name: face for name, face in faces.items() if face.height}
    of_pairs = f"displacements with at least {MIN_PAIRS} pairs" + (" within trials" if trials > 1 else "")
    drawn = []
    d, c, v = (variogram[name].to_numpy() for name in ("row_displacement", "column_displacement", "semivariance"))
    if d.any() and c.any():
        values = np.full((int(d.max()) + 1, int(c.max()) + 1), np.nan)
        values[d, c] = v
        caption = (
            f"Half the mean squared difference of plots by rows (up) and columns (right) between them: darker is "
            f"larger, up to {figure(float(v.max()))}; {of_pairs}. Differences are of the records less all effects but "
            "the trend."
        )
        paint = plots.paint_semivariances(values)
        title = f"Sample variogram of {label}"
        svg = figures.draw(paint, title, caption, left=0.1, x_label="columns apart", size=(3.6, 2.6))
        drawn.append(("Sample variogram", svg, caption))
    lines = [
        (f"along {name}s", face["displacement"].to_numpy(), face["semivariance"].to_numpy())
        for name, face in faces.items()
    ]
    if lines:
        both = len(lines) > 1
        ends = ", ".join(f"{figure(float(y[0]))} to {figure(float(y[-1]))} {name}" for name, _, y in lines)
        what = "plots in the same column or row" if both else "plots"
        caption = f"Semivariance of {what}, by their distance (right): {ends}; {of_pairs}."
        heading = "Along rows and columns" if both else "Sample variogram"
        title = f"Sample variogram{' along rows and columns' if both else ''} of {label}"
        svg = figures.draw(plots.paint_lines(lines), title, caption, x_label="plots apart", size=(3.6, 2.6))
        drawn.append((heading, svg, caption))
    legend = [(n, name) for n, (name, _, _) in enumerate(lines, 1)] if len(lines) > 1 else []
    return {"variogram": drawn, "legend": legend, "table": _table(faces, of_pairs)}


def _face(variogram: pl.DataFrame, direction: str) -> pl.DataFrame:
    """displacement, pairs, semivariance of plots that differ in one direction alone."""
    other = DIRECTIONS[1 - DIRECTIONS.index(direction)]
    face = variogram.filter(pl.col(f"{other}_displacement") == 0)
    return face.select(pl.col(f"{direction}_displacement").alias("displacement"), "pairs", "semivariance")


def _table(faces: dict[str, pl.DataFrame], of_pairs: str) -> Table:
    last = max((int(face["displacement"].max()) for face in faces.values()), default=0)  # type: ignore[arg-type]
    shown = range(1, min(last, MAX_DISPLACEMENTS) + 1)
    columns = [number_column("Plots apart", shown)]
    for name, face in faces.items():
        at = {d: (pairs, v) for d, pairs, v in face.iter_rows()}
        pairs, values = zip(*(at.get(d, (None, None)) for d in shown), strict=True)
        places = decimals(float(face["semivariance"].median() or 0.0), 3)  # type: ignore[arg-type]
        what = f"semivariance of plots that differ in their {name} alone"
        columns += [number_column(f"Along {name}s", values, places, what), number_column("Pairs", pairs)]
    more = describe_first(MAX_DISPLACEMENTS, last, "displacement", "variogram.parquet")
    return make_table("Sample variogram", columns, f"Semivariances of {of_pairs}.", more)
