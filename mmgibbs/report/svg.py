"""Figures as inline SVG, drawn in the colours of the page's style sheet for each theme.

Every figure has a title and a description that says in words and numbers what it shows.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

import numpy as np

from mmgibbs.report.marks import FAINT, GRID, Axis, Mark, Plot, Ticks

UNITS_PER_INCH = 72
TOP, RIGHT = 0.06, 0.03  # shares of the size that stay free
LINE = 0.6  # units: the width of axes and of the grid
DIGIT, GAP = 5.4, 6.0  # units: the width of a digit of a label (0.6 of its size), and from a label to its axis
BELOW_TICK, BELOW_AXIS = 12.8, 23.8  # units from the axis to the feet of labels
FLAT_WIDTH = 1.4  # of points that are short lines
SHADES = "Blues"  # matplotlib's name of the colours of a matrix
DASHES = (4.0, 3.0)  # drawn and left out, in widths of a line
ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)  # steps from tick to tick, times a power of ten
PLAIN = (1e-3, 1e7)  # the range of labels without a power of ten


def draw_svg(
    plot: Plot,
    name: str,
    title: str,
    description: str,
    size: tuple[float, float],
    left: float,
    bottom: float,
    x_label: str = "",
) -> str:
    """Draw a plot as an element of a page.

    name: of the element, for ids. size: inches. left, bottom: shares of the size for the labels there.
    """
    width, height = (inches * UNITS_PER_INCH for inches in size)
    frame = _make_frame(plot, width, height, left, bottom)
    parts = [
        f'<svg class="plot" viewBox="0 0 {_units(width)} {_units(height)}" role="img" '
        f'aria-labelledby="{name}-title {name}-text">',
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-text">{escape(description)}</desc>',
        f'<clipPath id="{name}-clip"><rect x="{_units(frame.x.start)}" y="{_units(frame.y.end)}" '
        f'width="{_units(frame.x.end - frame.x.start)}" height="{_units(frame.y.start - frame.y.end)}"/></clipPath>',
        *_grid(plot, frame),
        f'<g clip-path="url(#{name}-clip)">',
        *(_draw_mark(mark, frame) for mark in plot.marks),
        "</g>",
        *_axes(plot, frame, x_label),
        "</svg>",
    ]
    return "".join(parts)


# ------------------------------------------------------------------------------------------------ axes


@dataclass(frozen=True)
class Scale:
    """Data to units of the drawing, in one direction, with the ticks there."""

    low: float
    high: float
    start: float  # where `low` is
    end: float
    ticks: Ticks

    def __call__(self, values: np.ndarray | float) -> np.ndarray:
        return self.start + (np.asarray(values) - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True)
class Frame:
    """The part of a drawing inside its axes."""

    x: Scale
    y: Scale


def _make_frame(plot: Plot, width: float, height: float, left: float, bottom: float) -> Frame:
    """Place the axes; their sides move in where labels of ticks would stick out of the drawing.

    A browser has its own font, so widths of labels are those of as many wide digits.
    """
    (x_low, x_high), (y_low, y_high) = plot.limits("x"), plot.limits("y")
    start, end, foot, head = left * width, (1 - RIGHT) * width, (1 - bottom) * height, TOP * height
    if plot.is_equal:
        unit = max((x_high - x_low) / (end - start), (y_high - y_low) / (foot - head))
        x_low, x_high = _widen(x_low, x_high, unit * (end - start))
        y_low, y_high = _widen(y_low, y_high, unit * (foot - head))
    x_ticks, y_ticks = make_ticks(plot.x, x_low, x_high), make_ticks(plot.y, y_low, y_high)
    start = max([start, *(len(text) * DIGIT + GAP for _, text in y_ticks)])
    for at, text in x_ticks:
        share = (at - x_low) / (x_high - x_low)
        if share > 0.5:
            end = min(end, start + (width - len(text) * DIGIT / 2 - start) / share)
    return Frame(Scale(x_low, x_high, start, end, x_ticks), Scale(y_low, y_high, foot, head, y_ticks))


def _widen(low: float, high: float, length: float) -> tuple[float, float]:
    middle = (low + high) / 2
    return middle - length / 2, middle + length / 2


def make_ticks(axis: Axis, low: float, high: float) -> Ticks:
    """(place, label) of each tick between both ends of an axis."""
    if axis.ticks is not None:
        return [(at, text) for at, text in axis.ticks if low <= at <= high]
    places, step = round_places(low, high, axis.most_intervals, axis.is_whole)
    return list(zip(places, tick_labels(places, step), strict=True))


def round_places(low: float, high: float, most_intervals: int, is_whole: bool = False) -> tuple[list[float], float]:
    """Multiples of a round step between low and high, in at most so many intervals; and the step."""
    least = (high - low) / most_intervals
    least = max(1.0, least) if is_whole else least
    power = 10.0 ** math.floor(math.log10(least))
    steps = (factor * power for factor in ROUND)
    step = next(s for s in steps if s >= least * (1 - 1e-9) and not (is_whole and s % 1))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)], step


def tick_labels(places: list[float], step: float) -> list[str]:
    """Labels that differ, with as few digits as that takes."""
    largest = max(map(abs, places), default=0.0)
    if largest == 0.0 or PLAIN[0] <= largest < PLAIN[1]:
        digits = next(d for d in range(20) if math.isclose(round(step, d), step, rel_tol=1e-6))
        texts = [f"{round(at, digits) + 0.0:.{digits}f}" for at in places]
    else:
        digits = math.ceil(math.log10(largest / step)) + 2
        texts = [f"{at:.{digits}g}".replace("e+0", "e").replace("e-0", "e-") for at in places]
    return [text.replace("-", "\u2212") for text in texts]


def _grid(plot: Plot, frame: Frame) -> list[str]:
    vertical = [f"M{_units(frame.x(at))} {_units(frame.y.end)}V{_units(frame.y.start)}" for at, _ in frame.x.ticks]
    horizontal = [f"M{_units(frame.x.start)} {_units(frame.y(at))}H{_units(frame.x.end)}" for at, _ in frame.y.ticks]
    lines = vertical * plot.x.has_grid + horizontal * plot.y.has_grid
    return [_path(lines, GRID, LINE)]


def _axes(plot: Plot, frame: Frame, x_label: str) -> list[str]:
    start, end, foot = _units(frame.x.start), _units(frame.x.end), frame.y.start
    lines = [f"M{start} {_units(foot)}H{end}"] * plot.x.has_line
    lines += [f"M{start} {_units(foot)}V{_units(frame.y.end)}"] * plot.y.has_line
    if plot.x.mark_length:
        lines += [f"M{_units(frame.x(at))} {_units(foot)}v{plot.x.mark_length}" for at, _ in frame.x.ticks]
    texts = [_text(frame.x(at), foot + BELOW_TICK, text, "middle") for at, text in frame.x.ticks]
    texts += [_text(frame.x.start - 3.5, frame.y(at) + 3.2, text, "end") for at, text in frame.y.ticks]
    texts += [_text((frame.x.start + frame.x.end) / 2, foot + BELOW_AXIS, x_label, "middle")]
    return [_path(lines, FAINT, LINE), *texts]


def _text(x: np.ndarray | float, y: np.ndarray | float, text: str, anchor: str) -> str:
    style = f"font-size: 9px; text-anchor: {anchor}; fill: var({FAINT})"
    return f'<text style="{style}" x="{_units(x)}" y="{_units(y)}">{escape(text)}</text>' if text else ""


# ------------------------------------------------------------------------------------------------ marks


def _draw_mark(mark: Mark, frame: Frame) -> str:
    c = mark.columns
    match mark.form:
        case "line":
            x, y = frame.x(c["x"]), frame.y(c["y"])
            line = _path(_lines(x, y), mark.colour, mark.width, mark)
            return line + (_circles(x, y, mark) if mark.size else "")
        case "points":
            x, y = frame.x(c["x"]), frame.y(c["y"])
            if not mark.is_flat:
                return _circles(x, y, mark)
            lines = [f"M{_units(a - mark.size / 2)} {_units(b)}h{mark.size:g}" for a, b in _finite(x, y)]
            return _path(lines, mark.colour, FLAT_WIDTH, mark)
        case "band":
            x = frame.x(np.concatenate([c["x"], c["x"][::-1]]))
            y = frame.y(np.concatenate([c["low"], c["high"][::-1]]))
            known = np.isfinite(x) & np.isfinite(y)
            return _area([*_lines(x[known], y[known]), "z"] if known.any() else [], mark)
        case "bars":
            edges = zip(frame.x(c["x"]), frame.x(c["x_end"]), frame.y(c["y"] + mark.base), strict=True)
            foot = _units(frame.y(mark.base))
            return _area((f"M{_units(a)} {foot}V{_units(top)}H{_units(b)}V{foot}z" for a, b, top in edges), mark)
        case "intervals":
            ends = _finite(frame.x(c["x"]), frame.y(c["low"]), frame.y(c["high"]))
            lines = [f"M{_units(at)} {_units(low)}V{_units(high)}" for at, low, high in ends]
            return _path(lines, mark.colour, mark.width, mark)
        case "vertical line":
            lines = [f"M{_units(at)} {_units(frame.y.start)}V{_units(frame.y.end)}" for at in frame.x(c["x"])]
            return _path(lines, mark.colour, mark.width, mark)
        case "horizontal line":
            lines = [f"M{_units(frame.x.start)} {_units(at)}H{_units(frame.x.end)}" for at in frame.y(c["y"])]
            return _path(lines, mark.colour, mark.width, mark)
        case "matrix":
            return _picture(mark, frame)


def _lines(x: np.ndarray, y: np.ndarray) -> list[str]:
    """A line from point to point, which ends before each that is not finite and begins anew behind it."""
    known = np.isfinite(x) & np.isfinite(y)
    begins = known & ~np.append(False, known[:-1])
    return [
        f"{'M' if b else 'L'}{_units(a)} {_units(h)}" for a, h, b in zip(x[known], y[known], begins[known], strict=True)
    ]


def _finite(*arrays: np.ndarray) -> Iterable[tuple[float, ...]]:
    known = np.isfinite(arrays).all(axis=0)
    return zip(*(a[known].tolist() for a in arrays), strict=True)


def _path(lines: Iterable[str], colour: str, width: float, mark: Mark | None = None) -> str:
    d = "".join(lines)
    style = f"fill: none; stroke: var({colour}); stroke-width: {width:g}"
    if mark is not None and mark.is_dashed:
        style += f"; stroke-dasharray: {DASHES[0] * width:.3g} {DASHES[1] * width:.3g}"
    if mark is not None and mark.opacity < 1:
        style += f"; stroke-opacity: {mark.opacity:g}"
    return f'<path d="{d}" style="{style}"/>' if d else ""


def _area(lines: Iterable[str], mark: Mark) -> str:
    opacity = f"; fill-opacity: {mark.opacity:g}" if mark.opacity < 1 else ""
    d = "".join(lines)
    return f'<path d="{d}" style="fill: var({mark.colour}){opacity}"/>' if d else ""


def _circles(x: np.ndarray, y: np.ndarray, mark: Mark) -> str:
    circles = "".join(f'<circle cx="{_units(a)}" cy="{_units(b)}" r="{mark.size / 2:.3g}"/>' for a, b in _finite(x, y))
    opacity = f"; fill-opacity: {mark.opacity:g}" if mark.opacity < 1 else ""
    return f'<g style="fill: var({mark.colour}){opacity}">{circles}</g>'


def _picture(mark: Mark, frame: Frame) -> str:
    """A matrix as a picture of one pixel for each element, as large as the frame has room for."""
    from matplotlib.image import imsave  # late: only pages with genotypes have such a figure

    png, (low, high) = io.BytesIO(), mark.shades
    imsave(png, mark.square(), vmin=low, vmax=high, cmap=SHADES, format="png")
    place = f'x="{_units(frame.x.start)}" y="{_units(frame.y.end)}"'
    extent = f'width="{_units(frame.x.end - frame.x.start)}" height="{_units(frame.y.start - frame.y.end)}"'
    content = base64.b64encode(png.getvalue()).decode()
    return f'<image {place} {extent} style="image-rendering: pixelated" href="data:image/png;base64,{content}"/>'


def _units(value: np.ndarray | float) -> str:
    """A coordinate with one decimal at most."""
    return f"{float(value):.1f}".removesuffix(".0")
