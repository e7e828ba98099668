"""report.html while the chains run: how far they are, the draws so far, and a page that loads itself again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.report.render import render

RELOAD = 15  # seconds between two loads
SHOWN = 12  # parameters with a trace: those that mix worst
FEWEST = 8  # draws of a chain that are worth a trace
_CHAIN = re.compile(r'<dt>(.*?)</dt>\s*<dd><progress max="(\d+)" value="(\d+)">')  # of the template
_LEFT = re.compile(r'<span class="state running">Running</span> ([^<]*)</p>')


@dataclass(frozen=True)
class ChainProgress:
    """Progress of a chain."""

    label: str
    sweep: int
    total: int

    @property
    def percent(self) -> float:
        return round(100 * self.sweep / self.total, 1) if self.total else 0.0


@dataclass(frozen=True)
class Running:
    """State of a run that has not ended, or that has been stopped."""

    name: str
    at: str  # when this was written, UTC
    burn_in: int  # sweeps
    chains: Sequence[ChainProgress]
    left: str = ""  # '0:12:30 left, done about 16:40 UTC'
    draws: Mapping[str, np.ndarray] = field(default_factory=dict)  # parameter -> (chains, draws) so far
    summary: pl.DataFrame | None = None  # of these draws, see results/tables.py
    left_out: int = 0  # parameters that are too many to be shown here
    stopped: str = ""  # why it does not run any more

    @property
    def kept(self) -> tuple[int, int]:
        """(chains, draws of each) that the figures are made from."""
        shape = next((draws.shape for draws in self.draws.values()), (0, 0))
        return shape[0], shape[1]


def write_running(running: Running, path: Path) -> Path:
    """Write the page whole or not at all. Raises ConfigError where it cannot be written."""
    return render("running.html.j2", page(running), path)


def read_progress(path: Path) -> tuple[list[ChainProgress], str]:
    """Read the chains, and the time that is left, from a page of `write_running`; there are none in any other file."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # replaced just now, or not there
        return [], ""
    chains = [ChainProgress(unescape(label), int(sweep), int(total)) for label, total, sweep in _CHAIN.findall(text)]
    left = _LEFT.search(text)
    return chains, unescape(left[1]) if left else ""


def page(running: Running) -> dict:
    """Prepare the values that the template shows."""
    chains, draws = running.kept
    drawn = draws >= FEWEST and running.summary is not None
    return {
        "title": running.name,
        "reload": 0 if running.stopped else RELOAD,
        "run": running,
        "chains": chains,
        "draws": draws,
        **(_diagnosed(running) if drawn else {"parameters": [], "traces": [], "legend": [], "total": 0}),
    }


def _diagnosed(running: Running) -> dict:
    """Tables and traces; matplotlib is imported here."""
    from mmgibbs.report import figure_words, plots
    from mmgibbs.report.findings import ORDER, attention, diagnosis, excess
    from mmgibbs.report.html_tables import known
    from mmgibbs.report.page import legend, make_parameter_tables
    from mmgibbs.report.parameters import lower_triangle

    assert running.summary is not None, "draws come with their summary"
    summary = lower_triangle(running.summary)
    rows = [row for row in summary.iter_rows(named=True) if known(row["sd"]) and row["sd"] > 0]
    rows.sort(key=lambda row: -excess(row))
    figures, traces = plots.Figures(), []
    for row in rows[:SHOWN]:
        name, draws = row["parameter"], running.draws[row["parameter"]]
        said = figure_words.trace_words(draws, row)
        svg = figures.draw(plots.paint_trace(draws), f"Trace of {name}", said, 0.18, "kept draw", plots.SMALL)
        traces.append({"name": name, "svg": svg, "diagnosis": diagnosis(row), "attention": attention(row)})
    return {
        "parameters": make_parameter_tables(summary),
        "traces": traces,
        "legend": legend(running.kept[0]),
        "total": len(rows),
        "order": ORDER,
    }
