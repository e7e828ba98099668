"""Figures as inline SVG: drawn by matplotlib in stand-in colours, for which the style sheet has those of each theme.

Every figure carries a title and a description that says in words and numbers what it shows. Names that users gave never
enter a drawing, so that no font, no markup and no formula syntax can trip over them.
"""

from __future__ import annotations

import io
import itertools
import re
import threading
from collections.abc import Callable, Sequence
from functools import wraps
from html import escape
from typing import Any, Concatenate, ParamSpec

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

Painter = Callable[[Axes], None]
P = ParamSpec("P")
SIZE, SMALL = (3.6, 2.1), (2.9, 1.9)  # inches of 72 units: three or four side by side on a wide screen
WIDE = (7.6, 2.1)  # of a page
DIGIT, GAP = 5.4, 6.0  # units: the width of a digit of a label (0.6 of its size), and from a label to its axis
GENOME_POINTS = 3000  # of a figure along the genome; of more the highest, and an even sample of the others
CLOUD_POINTS = 1500  # of two values against each other; of more an even sample
TRACE_POINTS = 300  # of one chain; longer chains are drawn by the lowest and highest draw of each stretch
# Colours that represent a variable of the style sheet, one each.
INK, FAINT, GRID, BAND = "#010101", "#020202", "#030303", "#040404"
SERIES = tuple(f"#0500{i:02x}" for i in range(1, 7))
VARIABLES = {INK: "--ink", FAINT: "--faint", GRID: "--grid", BAND: "--band"} | {
    c: f"--series-{i}" for i, c in enumerate(SERIES, 1)
}
SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mmgibbs",
    "font.size": 9,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.unicode_minus": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": FAINT,
    "axes.axisbelow": True,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.major.size": 2.5,
    "ytick.major.size": 0,
    "xtick.major.width": 0.6,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "lines.solid_capstyle": "round",
    "path.simplify": True,
}
ONE_AT_A_TIME = threading.Lock()  # settings are those of the whole process
_LONG = re.compile(r"-?\d+\.\d{2,}")


def painter(function: Callable[Concatenate[Axes, P], None]) -> Callable[P, Painter]:
    """Make a function that draws on axes one that takes its other arguments and returns a Painter."""

    @wraps(function)
    def make(*arguments: P.args, **settings: P.kwargs) -> Painter:
        return lambda axes: function(axes, *arguments, **settings)

    return make


class Figures:
    """The figures of one page; their ids are unique in it."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)

    def draw(
        self,
        paint: Painter,
        title: str,
        description: str,
        left: float = 0.15,
        x_label: str = "",
        size: tuple[float, float] = SIZE,
        bottom: float = 0.22,
    ) -> str:
        """The SVG of what `paint(axes)` draws; left, bottom: shares of the size for the labels there."""
        with ONE_AT_A_TIME, matplotlib.rc_context(SETTINGS):
            figure = Figure(figsize=size)
            axes = figure.add_axes((left, bottom, 0.97 - left, 0.94 - bottom))
            axes.xaxis.set_major_locator(MaxNLocator(5))
            axes.yaxis.set_major_locator(MaxNLocator(4))
            axes.set_xlabel(x_label, labelpad=2)
            paint(axes)
            _widen_margin(axes, size[0] * 72)
            text = io.StringIO()
            FigureCanvasSVG(figure).print_svg(text, metadata={"Date": None})
        return inline(text.getvalue(), f"plot-{next(self.numbers)}", title, description)

    def draw_item(
        self, heading: str, paint: Painter, title: str, caption: str, **settings: Any
    ) -> tuple[str, str, str]:
        """(heading, SVG, caption), as templates show a figure; settings: of `draw`."""
        return heading, self.draw(paint, title, caption, **settings), caption


def _widen_margin(axes: Axes, width: float) -> None:
    """Move the sides of the axes in where labels of ticks would stick out of a drawing of this width, in units.

    A browser has its own font, so that widths of labels are those of as many wide digits.
    """
    axes.apply_aspect()
    place = axes.get_position()
    left, right = place.x0, place.x1
    labels = [text for at, text in _ticks(axes.yaxis) if 0 <= at <= 1]
    left = max([left, *((len(text) * DIGIT + GAP) / width for text in labels)])
    for at, text in _ticks(axes.xaxis):
        if 0.5 < at <= 1:
            right = min(right, left + (1 - len(text) * DIGIT / 2 / width - left) / at)
    axes.set_position((left, place.y0, right - left, place.height))


def _ticks(axis: Axis) -> list[tuple[float, str]]:
    """(place as a share of the axis, label) of each tick."""
    low, high = axis.get_view_interval()
    at = axis.get_majorticklocs()
    labels = axis.get_major_formatter().format_ticks(at.tolist())
    return [((x - low) / (high - low), text) for x, text in zip(at, labels, strict=True)] if high != low else []


def inline(svg: str, name: str, title: str, description: str) -> str:
    """matplotlib's SVG as an element of a page: own ids, the page's font and colours, short numbers, words."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"\s*<metadata>.*?</metadata>|\s*<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg).replace("<g/>", "")
    svg = svg.replace("xlink:href", "href").replace('="#', f'="#{name}-').replace("url(#", f"url(#{name}-")
    svg = svg.replace(' id="', f' id="{name}-')
    svg = re.sub(r"font-family: [^;\"]*(?:'[^']*'[^;\"]*)*;? ?", "", svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    svg = re.sub(
        r' (?:d|x|y|width|height|transform)="[^"]*"',
        lambda a: _LONG.sub(lambda m: f"{float(m[0]):.1f}".removesuffix(".0"), a[0]),
        svg,
    )
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    svg = re.sub(r"\s*\n\s*", " ", svg)
    view = re.search(r'viewBox="[^"]*"', svg)
    assert view is not None, "matplotlib writes the size of every drawing"
    head = f'<svg class="plot" {view[0]} role="img" aria-labelledby="{name}-title {name}-text">'
    words = f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-text">{escape(description)}</desc>'
    return head + words + svg[svg.index(">") + 1 :].strip()


# ------------------------------------------------------------------------------------------------ chains


def thinned(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(numbers, draws) of about TRACE_POINTS points of one chain; of longer ones the extremes of each stretch."""
    n = len(draws)
    if n <= TRACE_POINTS:
        return np.arange(1, n + 1), draws
    edges = np.linspace(0, n, TRACE_POINTS // 2 + 1).astype(int)[:-1]
    ends = np.append(edges[1:], n)
    picked = [
        sorted((a + int(np.argmin(draws[a:b])), a + int(np.argmax(draws[a:b]))))
        for a, b in zip(edges, ends, strict=True)
    ]
    at = np.unique(np.array(picked).ravel())
    return at + 1, draws[at]


def chain_label(chain: int) -> str:
    """Label a chain where figures have a legend, and in their data; chain counts from 0."""
    return f"chain {chain + 1}"


@painter
def paint_trace(axes: Axes, draws: np.ndarray) -> None:
    for chain, values in enumerate(draws):
        axes.plot(*thinned(values), color=SERIES[chain % len(SERIES)], linewidth=0.7, label=chain_label(chain))
    axes.set_xlim(1, draws.shape[1])
    axes.margins(y=0.04)


def rank_shares(draws: np.ndarray, bins: int = 20) -> np.ndarray:
    """(chains, bins): share of each chain in every bin of the ranks of all draws; 1/bins where chains agree.

    Equal draws, as of whole numbers, are put in order at random: their mean rank would leave most bins empty and fill
    others, whatever the chains do.
    """
    values = draws.ravel()
    order = np.lexsort((np.random.default_rng(0).permutation(values.size), values))
    ranks = np.empty(values.size)
    ranks[order] = np.arange(values.size)
    ranks = (ranks.reshape(draws.shape) + 0.5) / draws.size
    return np.stack([np.histogram(r, bins, (0, 1))[0] / draws.shape[1] for r in ranks])


@painter
def paint_ranks(axes: Axes, shares: np.ndarray) -> None:
    chains, bins = shares.shape
    step = 2.4 / bins
    for chain, share in enumerate(shares):
        base = (chains - 1 - chain) * step
        axes.stairs(
            base + np.minimum(share, step),
            np.linspace(0, 1, bins + 1),
            baseline=base,
            fill=True,
            color=SERIES[chain % len(SERIES)],
            linewidth=0,
            label=chain_label(chain),
        )
        axes.axhline(base + 1 / bins, color=INK, linewidth=0.6, dashes=(4, 3))
    every = max(1, chains // 6)
    axes.set_yticks(
        [(chains - 1 - c) * step + 0.5 / bins for c in range(0, chains, every)],
        [str(c + 1) for c in range(0, chains, every)],
    )
    axes.spines["left"].set_visible(False)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, chains * step)


def autocorrelations(draws: np.ndarray, lags: int = 50) -> np.ndarray:
    """(chains, lags + 1), as far as a third of the draws; 0 for a chain that does not move."""
    from arviz_stats.base.array import array_stats

    lags = min(lags, draws.shape[1] // 3)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(array_stats.autocorr(draws, axis=-1)[:, : lags + 1])


@painter
def paint_autocorrelation(axes: Axes, values: np.ndarray) -> None:
    axes.axhline(0, color=FAINT, linewidth=0.6)
    for chain, row in enumerate(values):
        colour = SERIES[chain % len(SERIES)]
        axes.plot(np.arange(len(row)), row, color=colour, linewidth=1.1, label=chain_label(chain))
    axes.set_xlim(0, values.shape[1] - 1)
    axes.set_ylim(min(-0.2, values.min() - 0.05), 1.02)


def bandwidth(values: np.ndarray) -> float:
    """Choose the bandwidth of a Gaussian kernel density: 0.9 min(SD, IQR / 1.34) n^(-1/5) (Silverman 1986)."""
    lower, upper = np.percentile(values, (25, 75))
    return 0.9 * (min(values.std(), (upper - lower) / 1.34) or values.std() or 1.0) * len(values) ** -0.2


def density(
    values: np.ndarray,
    points: int = 120,
    ends: tuple[float, float] | None = None,
    bounds: tuple[float | None, float | None] = (None, None),
    width: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """(x, f(x)): a Gaussian kernel density, from below the lowest draw, or at the `ends`.

    bounds: (floor, ceiling) that no value can be beyond. The density ends there, and what the kernels have beyond is
    reflected, so that the area stays 1. width: of the kernels, by default their `bandwidth`.
    """
    width = bandwidth(values) if width is None else width
    first, last = ends or (values.min() - 2 * width, values.max() + 2 * width)
    floor, ceiling = (b if b is not None else end for b, end in zip(bounds, (-np.inf, np.inf), strict=True))
    x = np.linspace(max(first, floor), min(last, ceiling), points)
    kernels = lambda x: np.exp(-0.5 * ((x[:, None] - values) / width) ** 2).sum(axis=1)
    f = kernels(x) + sum(kernels(2 * bound - x) for bound in bounds if bound is not None)
    return x, f / (len(values) * width * np.sqrt(2 * np.pi))


@painter
def paint_density(
    axes: Axes,
    draws: np.ndarray,
    mean: float,
    low: float | None,
    high: float | None,
    bounds: tuple[float | None, float | None] = (None, None),
) -> None:
    every = thin_values(draws.reshape(-1), 2000)
    width = bandwidth(every)  # of each chain as well: the density of all is then the mean of theirs
    x, f = density(every, bounds=bounds, width=width)
    if low is not None and high is not None:
        inside = (x >= low) & (x <= high)
        axes.fill_between(x[inside], f[inside], color=BAND, linewidth=0)
    if len(draws) > 1:
        for chain, values in enumerate(draws):
            chain_density = density(thin_values(values, 500), 60, (x[0], x[-1]), bounds, width)
            axes.plot(*chain_density, color=SERIES[chain % len(SERIES)], linewidth=0.7, label=chain_label(chain))
    axes.plot(x, f, color=INK, linewidth=1.3, label="all chains" if len(draws) > 1 else None)
    axes.axvline(mean, color=INK, linewidth=0.8, dashes=(4, 3))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(0)


def thin_values(values: np.ndarray, most: int) -> np.ndarray:
    return values[:: -(-len(values) // most)]


# ------------------------------------------------------------------------------------------------ breeding values


@painter
def paint_histogram(axes: Axes, values: np.ndarray) -> None:
    counts, edges = np.histogram(values, int(np.clip(2 * np.cbrt(len(values)), 8, 40)))
    axes.stairs(counts, edges, fill=True, color=SERIES[0], linewidth=0)
    axes.axvline(0, color=INK, linewidth=0.8, dashes=(4, 3))
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)


@painter
def paint_by_year(
    axes: Axes,
    years: np.ndarray,
    middle: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    floor: float | None = None,
    ceiling: float | None = None,
    integer_years: bool = True,
) -> None:
    """A line with a band over the years; `floor` and `ceiling` bound the axis where the quantity itself is bounded.

    whole: they are whole numbers, and so are the ticks.
    """
    axes.fill_between(years, low, high, color=BAND, linewidth=0)
    axes.plot(years, middle, color=SERIES[0], linewidth=1.5, marker="o" if len(years) < 30 else None, markersize=2.5)
    if floor is None and low.min() < 0 < high.max():
        axes.axhline(0, color=FAINT, linewidth=0.6)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=integer_years))
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)
    if floor is not None or ceiling is not None:
        axes.set_ylim(floor, ceiling)


# ------------------------------------------------------------------------------------------------ categories


@painter
def paint_categories(axes: Axes, mean: float, sd: float, thresholds: Sequence[float]) -> None:
    """The normal density of a liability, the area of each category in a colour of its own, a line at each threshold."""
    ends = [min(mean - 3.5 * sd, thresholds[0] - 0.3 * sd), max(mean + 3.5 * sd, thresholds[-1] + 0.3 * sd)]
    edges = [ends[0], *thresholds, ends[1]]
    normal = lambda x: np.exp(-0.5 * ((x - mean) / sd) ** 2)
    for k, (low, high) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
        x = np.linspace(low, high, 80)
        colour = SERIES[k % len(SERIES)]
        axes.fill_between(x, normal(x), color=colour, alpha=0.55, linewidth=0, label=f"category {k + 1}")
    x = np.linspace(ends[0], ends[1], 200)
    axes.plot(x, normal(x), color=INK, linewidth=1.2)
    for t in thresholds:
        axes.axvline(t, color=INK, linewidth=0.8, dashes=(4, 3))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlim(*ends)
    axes.set_ylim(0)


@painter
def paint_observed(
    axes: Axes, observed: np.ndarray, predicted: np.ndarray, low: np.ndarray, high: np.ndarray, first: int = 0
) -> None:
    """Classes side by side, (classes, columns): intervals of what is predicted, a tick at its mean, dots observed.

    first: number of the colour of the first column.
    """
    classes, columns = observed.shape
    for k in range(columns):
        x = np.arange(classes) + (k - (columns - 1) / 2) * 0.7 / columns
        colour = SERIES[(first + k) % len(SERIES)]
        axes.vlines(x, low[:, k], high[:, k], color=colour, linewidth=3.5, alpha=0.45)
        axes.plot(x, predicted[:, k], "_", color=colour, markersize=7, markeredgewidth=1.4)
        axes.plot(x, observed[:, k], "o", color=INK, markersize=2.8)
    axes.set_xticks(range(classes), [str(i + 1) for i in range(classes)])
    axes.set_xlim(-0.6, classes - 0.4)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)


# ------------------------------------------------------------------------------------------------ the genome


def highest_and_some(values: np.ndarray, most: int = GENOME_POINTS) -> np.ndarray:
    """(m,) places of at most `most` values in their order: the highest half of them, and an even sample of the rest."""
    if len(values) <= most:
        return np.arange(len(values))
    order = np.argsort(-values, kind="stable")
    rest = np.sort(order[most // 2 :])
    even = rest[np.linspace(0, len(rest) - 1, most - most // 2).astype(np.int64)]
    return np.sort(np.concatenate([order[: most // 2], even]))


@painter
def paint_along_genome(
    axes: Axes,
    at: np.ndarray,
    values: np.ndarray,
    chromosome: np.ndarray,
    ticks: Sequence[tuple[float, str]],
    ceiling: bool = False,
    stems: bool = False,
) -> None:
    """Points, or stems, in two colours by turns; chromosome (n,) int counts up. ceiling: values are probabilities."""
    shown = highest_and_some(np.nan_to_num(values))
    for turn in (0, 1):
        positions = shown[chromosome[shown] % 2 == turn]
        if stems:
            axes.vlines(at[positions], 0, values[positions], color=SERIES[turn], linewidth=1.2)
        else:
            axes.plot(at[positions], values[positions], "o", color=SERIES[turn], markersize=1.8, markeredgewidth=0)
    span = max(float(at.max() - at.min()), 1.0)
    axes.set_xlim(at.min() - 0.01 * span, at.max() + 0.01 * span)
    axes.set_ylim(0, 1.02 if ceiling else None)
    if len(ticks) > 1:
        axes.set_xticks([x for x, _ in ticks], _spaced_labels(ticks, span))
        axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)


def _spaced_labels(ticks: Sequence[tuple[float, str]], span: float) -> list[str]:
    """Names that do not overlap the one before them."""
    out, last = [], -span
    for at, name in ticks:
        fits = at - last > 0.025 * span
        out.append(name if fits else "")
        last = at if fits else last
    return out


@painter
def paint_in_order(axes: Axes, values: np.ndarray) -> None:
    """values (n,) of 0 or more, the largest first."""
    n = np.arange(1, len(values) + 1)
    axes.fill_between(n, values, color=BAND, linewidth=0)
    axes.plot(n, values, color=SERIES[0], linewidth=1.5)
    axes.set_ylim(0)
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)


def _paint_points(axes: Axes, x: np.ndarray, y: np.ndarray, size: float, alpha: float) -> None:
    x, y = thin_values(x, CLOUD_POINTS), thin_values(y, CLOUD_POINTS)
    axes.plot(x, y, "o", color=SERIES[0], markersize=size, alpha=alpha, markeredgewidth=0)


@painter
def paint_cloud(axes: Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Points on one scale in both directions; of more than CLOUD_POINTS an even sample."""
    _paint_points(axes, x, y, 1.8, 0.6)
    axes.axhline(0, color=FAINT, linewidth=0.6)
    axes.axvline(0, color=FAINT, linewidth=0.6)
    axes.set_aspect("equal", adjustable="datalim")
    axes.grid()


@painter
def paint_labelled(axes: Axes, x: np.ndarray, y: np.ndarray, labels: Sequence[str]) -> None:
    """Points, the first of which have labels; of more than CLOUD_POINTS an even sample."""
    _paint_points(axes, x, y, 2.2, 0.6)
    for label, at, height in zip(labels, x, y, strict=False):
        axes.annotate(label, (at, height), (0, 3), textcoords="offset points", ha="center", fontsize=6, color=INK)
    axes.set_ylim(bottom=0, top=1.15 * float(y.max() or 1.0))
    axes.margins(x=0.08)
    axes.grid()


@painter
def paint_heat_map(axes: Axes, K: np.ndarray, low: float, high: float) -> None:
    """A square matrix as shades of one colour, darkest from `high` on."""
    axes.imshow(K, cmap="Blues", vmin=low, vmax=max(high, low + 1e-9), interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])


# ------------------------------------------------------------------------------------------------ field trials


@painter
def paint_plots(
    axes: Axes, values: np.ndarray, first_row: int, first_column: int, limit: float, is_empty: np.ndarray
) -> None:
    """The plots of a trial (rows, columns) as shades from -limit (red) to limit (blue); a dot: a plot that is empty.

    Rows run from below. NaN: no plot.
    """
    rows, columns = values.shape
    extent = (first_column - 0.5, first_column + columns - 0.5, first_row - 0.5, first_row + rows - 0.5)
    settings: dict[str, Any] = {"origin": "lower", "extent": extent, "aspect": "auto", "interpolation": "nearest"}
    axes.imshow(values, cmap="RdBu", vmin=-limit, vmax=limit, **settings)
    row, column = np.nonzero(is_empty)
    if row.size:
        size = float(np.clip(60.0 / max(rows, columns), 0.5, 2.0))
        at = column + first_column, row + first_row
        axes.plot(*at, "o", color=INK, markersize=size, markeredgewidth=0, label="plots without a record")
    axes.set_xlim(*extent[:2])
    axes.set_ylim(*extent[2:])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True))


@painter
def paint_semivariances(axes: Axes, values: np.ndarray) -> None:
    """Semivariances (rows apart, columns apart) as shades of one colour, darkest the largest; NaN: none."""
    rows, columns = values.shape
    extent = (-0.5, columns - 0.5, -0.5, rows - 0.5)
    settings: dict[str, Any] = {"origin": "lower", "extent": extent, "aspect": "auto", "interpolation": "nearest"}
    axes.imshow(values, cmap="Blues", vmin=0.0, vmax=float(np.nanmax(values)) or 1.0, **settings)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True))


@painter
def paint_lines(axes: Axes, lines: Sequence[tuple[str, np.ndarray, np.ndarray]]) -> None:
    """Points joined by a line for each (name, x, y), x whole numbers and y from 0."""
    for n, (name, x, y) in enumerate(lines):
        axes.plot(x, y, color=SERIES[n % len(SERIES)], linewidth=1.3, marker="o", markersize=2.5, label=name)
    axes.set_ylim(0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)


# ------------------------------------------------------------------------------------------------ several runs


@painter
def paint_intervals(
    axes: Axes, means: Sequence[float | None], lows: Sequence[float | None], highs: Sequence[float | None]
) -> None:
    """Paint a row for each run: its mean, and its interval, if any; None: the run does not have the parameter."""
    n = len(means)
    for i, (mean, low, high) in enumerate(zip(means, lows, highs, strict=True)):
        colour = SERIES[i % len(SERIES)]
        if low is not None and high is not None:
            axes.plot([low, high], [n - i, n - i], color=colour, linewidth=2)
        if mean is not None:
            axes.plot([mean], [n - i], "o", color=colour, markersize=5)
    axes.set_ylim(0.4, n + 0.6)
    axes.set_yticks(range(n, 0, -1), [str(i + 1) for i in range(n)])
    axes.grid(axis="x")
    axes.spines["left"].set_visible(False)


@painter
def paint_scatter(axes: Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Points of two runs with the line of equality; of more than CLOUD_POINTS an even sample."""
    ends = [min(x.min(), y.min()), max(x.max(), y.max())]
    axes.plot(ends, ends, color=INK, linewidth=0.8, dashes=(4, 3))
    _paint_points(axes, x, y, 1.6, 0.5)
    axes.grid()
