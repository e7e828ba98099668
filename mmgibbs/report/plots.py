"""The figures of pages: what each of them shows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from mmgibbs.report.marks import BAND, FAINT, INK, SERIES, Plot, Ticks
from mmgibbs.report.svg import draw_svg

SIZE, SMALL = (3.6, 2.1), (2.9, 1.9)  # inches: three or four side by side on a wide screen
WIDE = (7.6, 2.1)  # of a page
GENOME_POINTS = 3000  # of a figure along the genome; of more the highest, and an even sample of the others
TRACE_POINTS = 300  # of one chain; longer chains are drawn by the lowest and highest draw of each stretch


class Figures:
    """The figures of one page; their ids are unique in it."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)

    def draw(
        self,
        plot: Plot,
        title: str,
        description: str,
        left: float = 0.15,
        x_label: str = "",
        size: tuple[float, float] = SIZE,
        bottom: float = 0.22,
    ) -> str:
        """The SVG of a plot; left, bottom: shares of the size for the labels there."""
        name = f"plot-{next(self.numbers)}"
        return draw_svg(plot, name, title, description, size, left, bottom, x_label)


# ------------------------------------------------------------------------------------------------ chains


def thinned(draws: np.ndarray, most: int = TRACE_POINTS) -> tuple[np.ndarray, np.ndarray]:
    """(numbers, draws) of about `most` points of one chain; of longer ones the extremes of each stretch."""
    n = len(draws)
    if n <= most:
        return np.arange(1, n + 1), draws
    edges = np.linspace(0, n, most // 2 + 1).astype(int)[:-1]
    ends = np.append(edges[1:], n)
    picked = [
        sorted((a + int(np.argmin(draws[a:b])), a + int(np.argmax(draws[a:b]))))
        for a, b in zip(edges, ends, strict=True)
    ]
    at = np.unique(np.array(picked).ravel())
    return at + 1, draws[at]


def chain_label(chain: int) -> str:
    """What a chain is called where figures have a legend, and in their data; chain counts from 0."""
    return f"chain {chain + 1}"


def paint_trace(draws: np.ndarray) -> Plot:
    plot = Plot()
    for chain, values in enumerate(draws):
        plot.line(*thinned(values), SERIES[chain % len(SERIES)], 0.7, label=chain_label(chain))
    plot.x.limits = (1, draws.shape[1])
    return plot


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


def paint_ranks(shares: np.ndarray) -> Plot:
    chains, bins = shares.shape
    plot, step = Plot(), 2.4 / bins
    for chain, share in enumerate(shares):
        base = (chains - 1 - chain) * step
        heights, edges = np.minimum(share, step), np.linspace(0, 1, bins + 1)
        plot.bars(edges, heights, SERIES[chain % len(SERIES)], base=base, label=chain_label(chain))
        plot.horizontal(base + 1 / bins, INK, 0.6, is_dashed=True)
    every = max(1, chains // 6)
    plot.y.ticks = [((chains - 1 - c) * step + 0.5 / bins, str(c + 1)) for c in range(0, chains, every)]
    plot.y.has_line = False
    plot.x.limits, plot.y.limits = (0, 1), (0, chains * step)
    return plot


def autocorrelations(draws: np.ndarray, lags: int = 50) -> np.ndarray:
    """(chains, lags + 1), as far as a third of the draws; 0 for a chain that does not move."""
    from arviz_stats.base.array import array_stats

    lags = min(lags, draws.shape[1] // 3)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(array_stats.autocorr(draws, axis=-1)[:, : lags + 1])


def paint_autocorrelation(values: np.ndarray) -> Plot:
    plot = Plot()
    plot.horizontal(0, FAINT, 0.6)
    for chain, row in enumerate(values):
        plot.line(np.arange(len(row)), row, SERIES[chain % len(SERIES)], 1.1, label=chain_label(chain))
    plot.x.limits, plot.y.limits = (0, values.shape[1] - 1), (min(-0.2, values.min() - 0.05), 1.02)
    return plot


def bandwidth(values: np.ndarray) -> float:
    """Of a Gaussian kernel density: 0.9 min(SD, interquartile range / 1.34) n^(-1/5) (Silverman 1986)."""
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


def paint_density(
    draws: np.ndarray,
    mean: float,
    low: float | None,
    high: float | None,
    bounds: tuple[float | None, float | None] = (None, None),
) -> Plot:
    plot = Plot()
    every = thin_values(draws.reshape(-1), 2000)
    width = bandwidth(every)  # of each chain as well: the density of all is then the mean of theirs
    x, f = density(every, bounds=bounds, width=width)
    if low is not None and high is not None:
        inside = (x >= low) & (x <= high)
        plot.band(x[inside], 0, f[inside], BAND)
    if len(draws) > 1:
        for chain, values in enumerate(draws):
            chain_density = density(thin_values(values, 500), 60, (x[0], x[-1]), bounds, width)
            plot.line(*chain_density, SERIES[chain % len(SERIES)], 0.7, label=chain_label(chain))
    plot.line(x, f, INK, 1.3, label="all chains" if len(draws) > 1 else None)
    plot.vertical(mean, INK, 0.8, is_dashed=True)
    plot.y.ticks, plot.y.has_line = [], False
    plot.x.limits, plot.y.limits = (x[0], x[-1]), (0, None)
    return plot


def thin_values(values: np.ndarray, most: int) -> np.ndarray:
    return values[:: -(-len(values) // most)]


# ------------------------------------------------------------------------------------------------ breeding values


def paint_histogram(values: np.ndarray) -> Plot:
    plot = _plot_with_grid()
    counts, edges = np.histogram(values, int(np.clip(2 * np.cbrt(len(values)), 8, 40)))
    plot.bars(edges, counts, SERIES[0])
    plot.vertical(0, INK, 0.8, is_dashed=True)
    return plot


def _plot_with_grid() -> Plot:
    """A plot whose y axis is a grid of horizontal lines."""
    plot = Plot()
    plot.y.has_grid, plot.y.has_line = True, False
    return plot


def paint_by_year(
    years: np.ndarray,
    middle: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    floor: float | None = None,
    ceiling: float | None = None,
    integer_years: bool = True,
) -> Plot:
    """A line with a band over the years; `floor` and `ceiling` bound the axis where the quantity itself is bounded.

    integer_years: they are whole numbers, and so are the ticks.
    """
    plot = _plot_with_grid()
    plot.band(years, low, high, BAND)
    plot.line(years, middle, SERIES[0], 1.5, size=2.5 if len(years) < 30 else 0.0)
    if floor is None and low.min() < 0 < high.max():
        plot.horizontal(0, FAINT, 0.6)
    plot.x.is_whole, plot.y.limits = integer_years, (floor, ceiling)
    return plot


# ------------------------------------------------------------------------------------------------ categories


def paint_categories(mean: float, sd: float, thresholds: Sequence[float]) -> Plot:
    """The normal density of a liability, the area of each category in a colour of its own, a line at each threshold."""
    plot = Plot()
    ends = (min(mean - 3.5 * sd, thresholds[0] - 0.3 * sd), max(mean + 3.5 * sd, thresholds[-1] + 0.3 * sd))
    normal = lambda x: np.exp(-0.5 * ((x - mean) / sd) ** 2)
    for k, (low, high) in enumerate(itertools.pairwise([ends[0], *thresholds, ends[1]])):
        x = np.linspace(low, high, 80)
        plot.band(x, 0, normal(x), SERIES[k % len(SERIES)], opacity=0.55, label=f"category {k + 1}")
    x = np.linspace(*ends, 200)
    plot.line(x, normal(x), INK, 1.2)
    for threshold in thresholds:
        plot.vertical(threshold, INK, 0.8, is_dashed=True)
    plot.y.ticks, plot.y.has_line = [], False
    plot.x.limits, plot.y.limits = ends, (0, None)
    return plot


def paint_observed(
    observed: np.ndarray, predicted: np.ndarray, low: np.ndarray, high: np.ndarray, first: int = 0
) -> Plot:
    """Classes side by side, (classes, columns): intervals of what is predicted, a tick at its mean, dots observed.

    first: number of the colour of the first column.
    """
    classes, columns = observed.shape
    plot = _plot_with_grid()
    for k in range(columns):
        x = np.arange(classes) + (k - (columns - 1) / 2) * 0.7 / columns
        colour = SERIES[(first + k) % len(SERIES)]
        plot.intervals(x, low[:, k], high[:, k], colour, 3.5, opacity=0.45)
        plot.points(x, predicted[:, k], colour, 7, is_flat=True)
        plot.points(x, observed[:, k], INK, 2.8)
    plot.x.ticks = [(i, str(i + 1)) for i in range(classes)]
    plot.x.limits, plot.y.limits = (-0.6, classes - 0.4), (0, None)
    return plot


# ------------------------------------------------------------------------------------------------ the genome


def highest_and_some(values: np.ndarray, most: int = GENOME_POINTS) -> np.ndarray:
    """(m,) places of at most `most` values in their order: the highest half of them, and an even sample of the rest."""
    if len(values) <= most:
        return np.arange(len(values))
    order = np.argsort(-values, kind="stable")
    rest = np.sort(order[most // 2 :])
    even = rest[np.linspace(0, len(rest) - 1, most - most // 2).astype(np.int64)]
    return np.sort(np.concatenate([order[: most // 2], even]))


def paint_along_genome(
    at: np.ndarray,
    values: np.ndarray,
    chromosome: np.ndarray,
    ticks: Ticks,
    ceiling: bool = False,
    stems: bool = False,
) -> Plot:
    """Points, or stems, in two colours by turns; chromosome (n,) int counts up. ceiling: values are probabilities."""
    plot = _plot_with_grid()
    shown = highest_and_some(np.nan_to_num(values))
    for turn in (0, 1):
        positions = shown[chromosome[shown] % 2 == turn]
        if stems:
            plot.intervals(at[positions], 0, values[positions], SERIES[turn], 1.2)
        else:
            plot.points(at[positions], values[positions], SERIES[turn], 1.8)
    span = max(float(at.max() - at.min()), 1.0)
    plot.x.limits = (at.min() - 0.01 * span, at.max() + 0.01 * span)
    plot.y.limits = (0, 1.02 if ceiling else None)
    if len(ticks) > 1:
        plot.x.ticks, plot.x.mark_length = _spaced_labels(ticks, span), 0.0
    return plot


def _spaced_labels(ticks: Ticks, span: float) -> Ticks:
    """The ticks, without names that overlap the one before them."""
    spaced, last = [], -span
    for at, name in ticks:
        fits = at - last > 0.025 * span
        spaced.append((at, name if fits else ""))
        last = at if fits else last
    return spaced


def paint_in_order(values: np.ndarray) -> Plot:
    """values (n,) of 0 or more, the largest first."""
    plot, n = _plot_with_grid(), np.arange(1, len(values) + 1)
    plot.band(n, 0, values, BAND)
    plot.line(n, values, SERIES[0], 1.5)
    plot.y.limits = (0, None)
    return plot


def paint_cloud(x: np.ndarray, y: np.ndarray, most: int = 1500) -> Plot:
    """Points on one scale in both directions; of more than `most` an even sample."""
    plot, every = Plot(is_equal=True), slice(None, None, -(-len(x) // most))
    plot.points(x[every], y[every], SERIES[0], 1.8, opacity=0.6)
    plot.horizontal(0, FAINT, 0.6)
    plot.vertical(0, FAINT, 0.6)
    plot.x.has_grid = plot.y.has_grid = True
    return plot


def paint_heat_map(K: np.ndarray, low: float, high: float) -> Plot:
    """A square matrix as shades of one colour, darkest from `high` on."""
    plot = Plot()
    plot.matrix(K, low, max(high, low + 1e-9))
    plot.x.limits, plot.y.limits = (0.5, len(K) + 0.5), (len(K) + 0.5, 0.5)  # the first row is on top
    for axis in (plot.x, plot.y):
        axis.ticks, axis.has_line = [], False
    return plot


# ------------------------------------------------------------------------------------------------ several runs


def paint_intervals(means: Sequence[float | None], lows: Sequence[float | None], highs: Sequence[float | None]) -> Plot:
    """One row per run: its mean, and its interval where there is one; None: the run does not have the parameter."""
    plot, n = Plot(), len(means)
    for i, (mean, low, high) in enumerate(zip(means, lows, highs, strict=True)):
        colour = SERIES[i % len(SERIES)]
        if low is not None and high is not None:
            plot.line([low, high], [n - i, n - i], colour, 2)
        if mean is not None:
            plot.points([mean], [n - i], colour, 5)
    plot.y.limits, plot.y.ticks = (0.4, n + 0.6), [(n - i, str(i + 1)) for i in range(n)]
    plot.x.has_grid, plot.y.has_line = True, False
    return plot


def paint_scatter(x: np.ndarray, y: np.ndarray, most: int = 1500) -> Plot:
    """Points of two runs with the line of equality; of more than `most` an even sample."""
    plot, every = Plot(), slice(None, None, -(-len(x) // most))
    ends = [min(x.min(), y.min()), max(x.max(), y.max())]
    plot.line(ends, ends, INK, 0.8, is_dashed=True)
    plot.points(x[every], y[every], SERIES[0], 1.6, opacity=0.5)
    plot.x.has_grid = plot.y.has_grid = True
    return plot
