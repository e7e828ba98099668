"""Axes of matplotlib that remember the data which are drawn on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

# Of the data of a figure; those without values are left out.
COLUMNS = ("series", "x", "x_end", "y", "low", "high", "value")


class RecordedAxes(Axes):
    """Axes that keep the data which are drawn on them, as rows of COLUMNS. The methods are those of matplotlib.

    A series has the label that it was drawn with, else the name of its form; the second of the same form is 'line 2'.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self.rows: list[pl.DataFrame] = []
        self._series: dict[str, int] = {}
        super().__init__(*arguments, **settings)

    def record(self, form: str, label: object, **columns: Any) -> None:
        """Append a series. columns: arrays or numbers, by name."""
        name = str(label) if label else self._number(form)
        length = max(np.size(values) for values in columns.values())
        data = {
            key: np.broadcast_to(np.asarray(values, dtype=float).ravel(), length) for key, values in columns.items()
        }
        self.rows.append(pl.DataFrame({"series": [name] * length} | data))

    def _number(self, form: str) -> str:
        self._series[form] = self._series.get(form, 0) + 1
        return form if self._series[form] == 1 else f"{form} {self._series[form]}"

    def plot(self, *arguments: Any, **settings: Any) -> list[Line2D]:
        """Draw lines or points."""
        lines = super().plot(*arguments, **settings)
        for line in lines:
            form = "points" if line.get_linestyle() == "None" else "line"
            self.record(form, settings.get("label"), x=line.get_xdata(), y=line.get_ydata())
        return lines

    def fill_between(self, x: Any, y1: Any, y2: Any = 0, **settings: Any) -> Any:  # type: ignore[override]
        """Shade between two lines."""
        self.record("band", settings.get("label"), x=x, low=np.minimum(y1, y2), high=np.maximum(y1, y2))
        return super().fill_between(x, y1, y2, **settings)

    def stairs(self, values: Any, edges: Any = None, *, baseline: Any = 0, **settings: Any) -> Any:
        """Draw the bars of a histogram."""
        self.record("bars", settings.get("label"), x=edges[:-1], x_end=edges[1:], y=np.asarray(values) - baseline)
        return super().stairs(values, edges, baseline=baseline, **settings)

    def vlines(self, x: Any, ymin: Any, ymax: Any, **settings: Any) -> Any:  # type: ignore[override]
        """Draw vertical intervals."""
        self.record("intervals", settings.get("label"), x=x, low=ymin, high=ymax)
        return super().vlines(x, ymin, ymax, **settings)

    def axvline(self, x: Any = 0, *arguments: Any, **settings: Any) -> Line2D:
        """Draw a vertical reference line."""
        self.record("vertical line", settings.get("label"), x=x)
        return super().axvline(x, *arguments, **settings)

    def axhline(self, y: Any = 0, *arguments: Any, **settings: Any) -> Line2D:
        """Draw a horizontal reference line."""
        self.record("horizontal line", settings.get("label"), y=y)
        return super().axhline(y, *arguments, **settings)

    def imshow(self, X: Any, **settings: Any) -> Any:  # type: ignore[override]
        """Draw a matrix as shades."""
        rows, columns = np.indices(np.shape(X))
        left, _, bottom, _ = settings.get("extent") or (0.5, 0.0, 0.5, 0.0)  # cells are 1 wide
        self.record("matrix", settings.get("label"), x=columns + left + 0.5, y=rows + bottom + 0.5, value=X)
        return super().imshow(X, **settings)

    def data(self) -> pl.DataFrame:
        """Every series, one below the other."""
        table = pl.concat(self.rows, how="diagonal") if self.rows else pl.DataFrame(schema={"series": pl.String})
        return table.select(name for name in COLUMNS if name in table.columns)
