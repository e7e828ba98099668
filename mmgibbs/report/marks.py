"""A figure as plain data: its marks, its axes, and the table of what it shows. `svg.py` draws it on a page,
`saved_figures.py` in a file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

# Variables of the style sheet, which has their colours for each theme.
INK, FAINT, GRID, BAND = "--ink", "--faint", "--grid", "--band"
SERIES = tuple(f"--series-{i}" for i in range(1, 7))
# Of the data of a figure; those without values are left out.
COLUMNS = ("series", "x", "x_end", "y", "low", "high", "value")
MARGIN = 0.05  # on each side of the data, as a share of their range

Form = Literal["line", "points", "band", "bars", "intervals", "vertical line", "horizontal line", "matrix"]
Values = npt.ArrayLike
Ticks = list[tuple[float, str]]  # places and labels


@dataclass(frozen=True)
class Mark:
    """What a figure draws at once: a line, points, the bars of a histogram.

    columns: of COLUMNS, arrays of one length. width, size: of lines and of points, in units of 1/72 inch; 0 for none.
    """

    form: Form
    columns: dict[str, np.ndarray]
    colour: str = INK
    width: float = 0.0
    size: float = 0.0
    opacity: float = 1.0
    is_dashed: bool = False
    is_flat: bool = False  # points are short horizontal lines
    base: float = 0.0  # on which bars stand
    shades: tuple[float, float] = (0.0, 1.0)  # of a matrix: the values of the lightest and the darkest one
    label: str | None = None

    def square(self) -> np.ndarray:
        """The matrix whose elements the columns have."""
        n = math.isqrt(self.columns["value"].size)
        return self.columns["value"].reshape(n, n)

    def places(self, axis: str) -> np.ndarray:
        """Where the axis 'x' or 'y' has to reach."""
        columns = self.columns
        if self.form == "bars":
            columns = columns | {"y": columns["y"] + self.base, "low": np.full(1, self.base)}
        names = ("x", "x_end") if axis == "x" else ("y", "low", "high")
        values = np.concatenate([np.empty(0), *(columns[name] for name in names if name in columns)])
        return values[np.isfinite(values)]


@dataclass
class Axis:
    """Limits, ticks and lines in one direction of a plot."""

    most_intervals: int  # between ticks
    mark_length: float = 0.0  # of ticks
    limits: tuple[float | None, float | None] = (None, None)  # None: as the data have it
    ticks: Ticks | None = None  # None: at round values
    is_whole: bool = False  # ticks are whole numbers
    has_grid: bool = False
    has_line: bool = True


@dataclass
class Plot:
    """Marks, in the order in which they are drawn, between two axes."""

    x: Axis = field(default_factory=lambda: Axis(5, 2.5))
    y: Axis = field(default_factory=lambda: Axis(4))
    is_equal: bool = False  # one unit is as long in both directions
    marks: list[Mark] = field(default_factory=list)

    def line(self, x: Values, y: Values, colour: str, width: float = 1.0, **more: Any) -> None:
        """Draw a line, with points where a `size` is given."""
        self._add("line", {"x": x, "y": y}, colour=colour, width=width, **more)

    def points(self, x: Values, y: Values, colour: str, size: float, **more: Any) -> None:
        """Draw points."""
        self._add("points", {"x": x, "y": y}, colour=colour, size=size, **more)

    def band(self, x: Values, low: Values, high: Values, colour: str, **more: Any) -> None:
        """Shade between two lines."""
        self._add("band", {"x": x, "low": low, "high": high}, colour=colour, **more)

    def bars(self, edges: np.ndarray, heights: Values, colour: str, **more: Any) -> None:
        """Draw the bars of a histogram."""
        self._add("bars", {"x": edges[:-1], "x_end": edges[1:], "y": heights}, colour=colour, **more)

    def intervals(self, x: Values, low: Values, high: Values, colour: str, width: float, **more: Any) -> None:
        """Draw vertical intervals."""
        self._add("intervals", {"x": x, "low": low, "high": high}, colour=colour, width=width, **more)

    def vertical(self, x: float, colour: str, width: float, **more: Any) -> None:
        """Draw a vertical line of reference."""
        self._add("vertical line", {"x": x}, colour=colour, width=width, **more)

    def horizontal(self, y: float, colour: str, width: float, **more: Any) -> None:
        """Draw a horizontal line of reference."""
        self._add("horizontal line", {"y": y}, colour=colour, width=width, **more)

    def matrix(self, K: np.ndarray, low: float, high: float) -> None:
        """Draw a square matrix as shades, the darkest from `high` on."""
        rows, columns = np.indices(K.shape) + 1
        self._add("matrix", {"x": columns, "y": rows, "value": K}, shades=(low, high))

    def _add(self, form: Form, columns: dict[str, Values], **more: Any) -> None:
        arrays = np.broadcast_arrays(*(np.asarray(values, float).ravel() for values in columns.values()))
        self.marks.append(Mark(form, dict(zip(columns, arrays, strict=True)), **more))

    def limits(self, axis: str) -> tuple[float, float]:
        """Both ends of the axis 'x' or 'y', which differ: those that are set, else a margin beyond the data."""
        settings = self.x if axis == "x" else self.y
        values = np.concatenate([np.empty(0), *(mark.places(axis) for mark in self.marks)])
        low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
        margin = MARGIN * (high - low)
        has_base = axis == "y" and any(mark.form == "bars" and mark.base == low for mark in self.marks)
        first, last = settings.limits
        low = first if first is not None else low if has_base else low - margin
        high = last if last is not None else high + margin
        if low == high:
            margin = MARGIN * (abs(low) or 1.0)
            low, high = low - margin, high + margin
        return low, high

    def data(self) -> pl.DataFrame:
        """Every mark, one below the other.

        A series is named by its label, else by its form; the second of the same form is 'line 2'.
        """
        tables: list[pl.DataFrame] = []
        numbers: dict[str, int] = {}
        for mark in self.marks:
            number = numbers[mark.form] = numbers.get(mark.form, 0) + (not mark.label)
            name = mark.label or (mark.form if number == 1 else f"{mark.form} {number}")
            table = pl.DataFrame(mark.columns)
            tables.append(table.select(pl.lit(name).alias("series"), pl.all()))
        table = pl.concat(tables, how="diagonal") if tables else pl.DataFrame(schema={"series": pl.String})
        return table.select(name for name in COLUMNS if name in table.columns)
