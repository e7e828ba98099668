"""Figures of a result for Python and notebooks: matplotlib figures, to be shown, changed and saved like any other."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmgibbs.errors import ConfigError
from mmgibbs.report.parameters import bounds, match_names
from mmgibbs.report.plots import density, thin_values, thinned

COLOURS = ("#0072b2", "#c75000", "#00855f", "#a9518a", "#8a6d00", "#4b5fa8")  # of the report in a light theme
INK, BAND = "#1c2126", "#d5e3ef"
MOST = 6  # parameters of a figure where none are named
ROW = 1.9  # inches


class Picture(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=110)
        return out.getvalue()


def chosen(draws: Mapping[str, np.ndarray], parameters: str | Sequence[str] | None) -> list[str]:
    """Names of parameters that fit the patterns, such as 'h2[*]'; by default heritabilities and what else varies, MOST
    at most. ConfigError for a pattern that fits none.
    """
    if parameters is None:
        moving = [name for name, values in draws.items() if np.ptp(values) > 0]
        return sorted(moving, key=lambda name: not name.startswith("h2["))[:MOST]
    return match_names("parameters", "parameter", parameters, draws)


def trace(draws: Mapping[str, np.ndarray], parameters: str | Sequence[str] | None = None) -> Picture:
    """A row for each parameter: its kept draws in order, a colour for each chain."""

    def paint(axes: Axes, name: str) -> None:
        for chain, values in enumerate(draws[name]):
            axes.plot(*thinned(values), color=COLOURS[chain % len(COLOURS)], linewidth=0.7, label=f"chain {chain + 1}")
        axes.set_xlim(1, max(2, draws[name].shape[1]))
        axes.set_title(name, loc="left", fontsize=10)

    names = chosen(draws, parameters)
    picture = _rows(names, paint)
    if names and len(draws[names[0]]) > 1:
        picture.axes[0].legend(loc="upper right", fontsize=8, ncols=4, frameon=False)
    if names:
        picture.axes[-1].set_xlabel("kept draw")
    return picture


def posterior(
    draws: Mapping[str, np.ndarray], summary: pl.DataFrame, parameters: str | Sequence[str] | None = None
) -> Picture:
    """A row for each parameter: its posterior density, the 95 % highest-density interval shaded, a line at the mean."""
    rows = {row["parameter"]: row for row in summary.iter_rows(named=True)}

    def paint(axes: Axes, name: str) -> None:
        row, values = rows[name], draws[name].reshape(-1)
        x, f = density(thin_values(values, 2000), bounds=bounds(name, values))
        if row["hpd_low"] is not None and np.isfinite(row["hpd_low"]):
            inside = (x >= row["hpd_low"]) & (x <= row["hpd_high"])
            axes.fill_between(x[inside], f[inside], color=BAND, linewidth=0)
        axes.plot(x, f, color=INK, linewidth=1.3)
        axes.axvline(row["mean"], color=INK, linewidth=0.8, dashes=(4, 3))
        axes.set_yticks([])
        axes.set_ylim(0)
        axes.set_title(name, loc="left", fontsize=10)

    return _rows([name for name in chosen(draws, parameters) if name in rows], paint)


def breeding_values(values: pl.DataFrame, top: int = 30) -> Picture:
    """A panel for each effect and trait: the `top` highest with intervals of 1.96 posterior standard deviations.

    values: rows of the solutions.
    """
    panels = values.partition_by("term", "effect", "trait", maintain_order=True)

    def paint(axes: Axes, number: int) -> None:
        best = panels[number].sort("mean", descending=True).head(top)
        at = np.arange(best.height)
        mean, sd = best["mean"].to_numpy(), best["sd"].fill_null(0).to_numpy()
        axes.errorbar(at, mean, 1.96 * sd, fmt="o", color=COLOURS[0], ecolor=BAND, elinewidth=3, markersize=4)
        axes.set_xticks(at, best["level"].to_list(), rotation=90, fontsize=7)
        axes.axhline(0, color=INK, linewidth=0.6)
        effect = ":".join(name for name in (best["term"][0], best["effect"][0], best["trait"][0]) if name)
        axes.set_title(f"{effect}: the {best.height} highest", loc="left", fontsize=10)

    return _rows(list(range(len(panels))), paint, 2.9)


def _rows(items: Sequence, paint: Callable, height: float = ROW) -> Picture:
    """Paint one panel below the other. ConfigError where there is nothing to draw."""
    if not items:
        raise ConfigError("plot: found no parameter that varies, needed a result with draws")
    picture = Picture(figsize=(7.5, height * len(items)), layout="constrained")
    for axes, item in zip(np.atleast_1d(picture.subplots(len(items))), items, strict=True):
        axes.spines[["top", "right"]].set_visible(False)
        paint(axes, item)
    return picture
