"""The pictures of the page as files for a paper, each with the data that it draws beside it.

Axes of matplotlib that remember the data which are drawn on them.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import warnings
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import Collection
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from mmgibbs.errors import ConfigError, option_name
from mmgibbs.machine.output_places import (
    check_folder_can_be_written,
    list_run_inputs,
    name_some,
    refuse_inputs,
    refuse_links,
)
from mmgibbs.report import plots
from mmgibbs.report.finished import read_finished
from mmgibbs.report.make import FORMATS
from mmgibbs.report.page import page
from mmgibbs.report.parameters import match_names
from mmgibbs.results.csv_files import is_escaped, write_csv

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
        """Concatenate the series, one below the other."""
        table = pl.concat(self.rows, how="diagonal") if self.rows else pl.DataFrame(schema={"series": pl.String})
        return table.select(name for name in COLUMNS if name in table.columns)


FOLDER = "figures"  # in the run folder
INDEX = "figures.csv"  # of the folder: what each file shows
INDEX_COLUMNS = ("file", "data", "title", "caption")
PNG_DOTS_PER_INCH = 300
TITLE_INCHES, LEGEND_INCHES = 0.3, 0.8  # added to the drawing
MAX_NAME_CHARACTERS = 120  # of a file
_VARIABLE = re.compile(r"(--[\w-]+): (#[0-9a-f]{6});")


@dataclass(frozen=True)
class PendingFigure:
    """A figure of the page that is still to be drawn."""

    paint: plots.Painter
    title: str
    caption: str
    x_label: str
    size: tuple[float, float]


@dataclass(frozen=True)
class SavedFigure:
    """A row of the index of a folder of figures."""

    name: str  # of its files, without the suffix
    title: str
    caption: str


class SavedFigures(plots.Figures):
    """Keeps what the figures of a page are drawn by, and draws those that are wanted into files of a folder."""

    def __init__(self, folder: Path, format: str, escaped: bool) -> None:
        super().__init__()
        self.escaped = escaped
        self.folder, self.format = folder, format
        self.pending: dict[str, PendingFigure] = {}  # by name
        self.saved: list[SavedFigure] = []

    def draw(
        self,
        paint: plots.Painter,
        title: str,
        description: str,
        left: float = 0.15,
        x_label: str = "",
        size: tuple[float, float] = plots.SIZE,
        bottom: float = 0.22,
    ) -> str:
        """Keep a figure to be saved; the page that is made meanwhile has none."""
        self.pending[file_name(title, self.pending)] = PendingFigure(paint, title, description, x_label, size)
        return ""

    def save(self, only: str | Sequence[str] | None) -> None:
        """Write the figures whose names fit `only`, or all, and their data."""
        if not self.pending:
            raise ConfigError(
                "figures: the page of this run has no pictures; its tables are csv files of the run folder"
            )
        chosen = list(self.pending) if only is None else match_names("figures", "picture", only, self.pending)
        for name in chosen:
            figure, data = draw_figure(self.pending[name])
            with plots.ONE_AT_A_TIME, matplotlib.rc_context(file_settings()), ignore_missing_glyphs():
                path = self.folder / f"{name}.{self.format}"
                figure.savefig(path, dpi=PNG_DOTS_PER_INCH, metadata=_metadata(self.format))
            write_csv(data, self.folder / f"{name}.csv", self.escaped)
            self.saved.append(SavedFigure(name, self.pending[name].title, self.pending[name].caption))


def save_figures(
    directory: str | os.PathLike,
    output: str | os.PathLike | None = None,
    format: str = "pdf",
    only: str | Sequence[str] | None = None,
) -> list[Path]:
    """Write every picture of the page of a finished run as a file, its data beside it, and an index of captions.

    output: the folder, by default 'figures' in that of the run. only: names, or patterns such as 'trace-*'. Returns the
    paths of the pictures. Raises ConfigError: no finished run, another format, a name of no picture, a folder that
    cannot be written.
    """
    if format not in FORMATS:
        raise ConfigError(f"figures: format: expected {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, got {format!r}")
    if output is not None and (not isinstance(output, (str, os.PathLike)) or not str(output)):
        raise ConfigError(f"figures: expected the path of a folder to write to, got {output!r}")
    run = read_finished(directory)
    folder = Path(output) if output is not None else run.directory / FOLDER
    shown = f"figures: '{folder}'"
    check_folder_can_be_written(folder.resolve(), shown)
    refuse_links(run.directory if output is None else folder, (FOLDER, INDEX), shown)
    place = folder.resolve()  # which has a name, as '.' has not
    work = place.with_name(f".{place.name}.{secrets.token_hex(4)}") if place.name else place / secrets.token_hex(4)
    try:
        index = _rows_of_other_pictures(folder / INDEX)
        work.mkdir(parents=True)
        figures = SavedFigures(work, format, is_escaped(run.record))
        page(run, figures=figures)
        figures.save(only)
        rows = pl.DataFrame(
            [(f"{f.name}.{format}", f"{f.name}.csv", f.title, f.caption) for f in figures.saved],
            schema=dict.fromkeys(INDEX_COLUMNS, pl.String),
            orient="row",
        )
        kept = index.join(rows, on="file", how="anti", maintain_order="left")
        write_csv(pl.concat([rows, kept]), work / INDEX, is_escaped(run.record))
        names = [path.name for path in sorted(work.iterdir())]
        refuse_links(folder, names, shown)
        written = {INDEX, *index["file"], *index["data"]}
        foreign = [name for name in names if (folder / name).exists() and name not in written]
        if foreign:
            raise ConfigError(
                f"{shown} holds {name_some(foreign)}, which is not listed in a {INDEX} as a picture; needed another "
                "folder, or that file moved"
            )
        inputs = list_run_inputs(run.directory, run.record)
        refuse_inputs([folder / name for name in names], inputs, option_name("output"))
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            os.replace(work / name, folder / name)
    except OSError as error:
        raise ConfigError(f"figures: cannot write '{folder}': {error.strerror}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return [folder / f"{figure.name}.{format}" for figure in figures.saved]


def _rows_of_other_pictures(path: Path) -> pl.DataFrame:
    """Read the rows of an existing index whose pictures exist. ConfigError: the file is another table."""
    if not path.exists():
        return pl.DataFrame(schema=dict.fromkeys(INDEX_COLUMNS, pl.String))
    try:
        index = pl.read_csv(path, infer_schema=False, glob=False)
    except pl.exceptions.PolarsError:
        index = pl.DataFrame()
    if tuple(index.columns) != INDEX_COLUMNS:
        raise ConfigError(
            f"figures: '{path}' is not an index of pictures, which has the columns {', '.join(INDEX_COLUMNS)}; "
            "expected another folder, or that file renamed"
        )
    return index.filter(pl.Series([(path.parent / name).exists() for name in index["file"]], dtype=pl.Boolean))


def file_name(title: str, taken: Container[str]) -> str:
    """'Trace of h2[weight]' -> 'trace-of-h2-weight'; a number is added where the name is `taken`."""
    words = re.sub(r"\W+", "-", title.lower()).strip("-.")[:MAX_NAME_CHARACTERS] or "figure"
    name, number = words, 2
    while name in taken:
        name, number = f"{words}-{number}", number + 1
    return name


# ------------------------------------------------------------------------------------------------ drawing


def light_palette() -> dict[str, str]:
    """Stand-in colour of a drawing -> that of the light theme in the style sheet of the page."""
    css = (resources.files("mmgibbs.report") / "templates" / "page.css").read_text(encoding="utf-8")
    variables = dict(_VARIABLE.findall(css[: css.index("@media")]))
    return {colour: variables[variable] for colour, variable in plots.VARIABLES.items()}


def file_settings() -> dict[Any, Any]:
    """Settings of drawings with the colours of the light theme, on white, with text that other programs can edit."""
    palette = light_palette()
    coloured = {
        key: palette.get(value, value) if isinstance(value, str) else value for key, value in plots.SETTINGS.items()
    }
    return coloured | {"figure.facecolor": "white", "axes.facecolor": "white", "pdf.fonttype": 42}


def draw_figure(pending: PendingFigure) -> tuple[Figure, pl.DataFrame]:
    """The figure with its title, a legend where several series are named, and the data that it draws."""
    with plots.ONE_AT_A_TIME, matplotlib.rc_context(file_settings()), ignore_missing_glyphs():
        figure = Figure(figsize=(pending.size[0], pending.size[1] + TITLE_INCHES), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot(axes_class=RecordedAxes)
        assert isinstance(axes, RecordedAxes)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.set_xlabel(pending.x_label, labelpad=2)
        figure.suptitle(pending.title, fontsize=9, parse_math=False, wrap=True, x=0.02, ha="left")
        pending.paint(axes)
        named, labels = axes.get_legend_handles_labels()
        if len(labels) > 1:
            figure.set_size_inches(pending.size[0] + LEGEND_INCHES, pending.size[1] + TITLE_INCHES)
            figure.legend(named, labels, loc="outside right center", fontsize=7, frameon=False, handlelength=1.0)
        recolour(figure, light_palette())
    return figure, axes.data()


def recolour(figure: Figure, palette: dict[str, str]) -> None:
    """Replace the stand-in colours of everything drawn, keeping transparency."""
    changed = lambda colour: to_rgba(palette.get(to_hex(colour), to_hex(colour)), to_rgba(colour)[3])
    for artist in figure.findobj():
        if isinstance(artist, Line2D):
            artist.set_color(changed(artist.get_color()))
            for attribute in ("markerfacecolor", "markeredgecolor"):
                colour = getattr(artist, f"get_{attribute}")()
                if not isinstance(colour, str) or colour != "none":
                    getattr(artist, f"set_{attribute}")(changed(colour))
        elif isinstance(artist, Collection):
            artist.set_facecolor([changed(colour) for colour in artist.get_facecolor()])
            artist.set_edgecolor([changed(colour) for colour in artist.get_edgecolor()])
        elif isinstance(artist, Patch):
            face, edge = artist.get_facecolor(), artist.get_edgecolor()
            artist.set_facecolor(changed(face))
            artist.set_edgecolor(changed(edge))
        elif isinstance(artist, Text):
            artist.set_color(changed(artist.get_color()))


@contextmanager
def ignore_missing_glyphs() -> Iterator[None]:
    """A title in letters that the font lacks is drawn with boxes, and has no warning for each of them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _metadata(format: str) -> dict[str, Any]:
    """Return metadata without the time, so that equal figures are equal files."""
    return {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}[format]
