"""Tables of the page: numbers with sensible digits that line up at the decimal point, and bars of intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

FIGURE_SPACE, POINT_SPACE = "\u2007", "\u2008"  # as wide as a digit, as wide as a full stop
MINUS = "\u2212"
MOST = 12  # decimals of a value without an error
NORMAL_95 = 1.96  # half width of a 95 % interval in posterior standard deviations, where only these are kept


@dataclass(frozen=True)
class Number:
    """A number as shown, and as sorted by; None sorts last.

    alert: beyond what it should be. heat: from -1 to 1, the colour of its cell.
    """

    text: str
    value: float | None
    alert: bool = False
    heat: float | None = None


@dataclass(frozen=True)
class Bar:
    """Interval and mean on the common scale of a column, in per cent of its width; zero: where 0 lies, if inside."""

    low: float
    high: float
    mean: float | None  # None: outside
    zero: float | None
    beyond: tuple[str, ...] = ()  # 'low', 'high': ends outside the scale


@dataclass(frozen=True)
class Column:
    label: str
    kind: str = "text"  # 'text' | 'wide' (sentences) | 'id' (not wrapped) | 'number' | 'bar'
    help: str = ""


Cell = str | Number | Bar | None  # None: empty


@dataclass(frozen=True)
class Table:
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    classes: Sequence[str] = field(default=())  # of each row


FilledColumn = tuple[Column, Collection[Cell]]  # a column and its cells


def text_column(label: str, values: Collection[Any], kind: str = "text", help: str = "") -> FilledColumn:
    return Column(label, kind, help), values


def number_column(
    label: str, values: Collection[float | None], places: int | Sequence[int] = 0, help: str = ""
) -> FilledColumn:
    """A column of numbers; `places`: decimals of all or of each."""
    return cell_column(label, numbers(values, places), help)


def cell_column(label: str, cells: Collection[Cell], help: str = "") -> FilledColumn:
    """A column of numbers that are made already."""
    return Column(label, "number", help), cells


def bar_column(label: str, cells: Collection[Cell]) -> FilledColumn:
    return Column(label, "bar"), cells


def make_table(caption: str, columns: Sequence[FilledColumn], *sentences: str) -> Table:
    """The table with these columns, and below it the sentences that are not empty."""
    rows = list(zip(*(cells for _, cells in columns), strict=True))
    return Table(caption, [column for column, _ in columns], rows, " ".join(filter(None, sentences)))


def describe_shown_rows(shown: int, total: int, file: str, noun: str = "") -> str:
    """Describe how many rows of a longer table are shown, and which file has all; '' where all are shown."""
    return f"{shown:,} of {total:,}{noun and f' {noun}'}; {file} has all of them." if shown < total else ""


def describe_first(shown: int, total: int, noun: str, file: str) -> str:
    """Sentence on how many of a longer list are shown, and which file has all; '' where all are shown."""
    return f"The first {shown} of {counted(total, noun)} are shown; {file} has all of them." if shown < total else ""


def drop_empty_columns(table: Table) -> Table:
    """Drop the columns that are empty in every row."""
    is_empty = lambda cell: cell is None or (isinstance(cell, Number) and cell.value is None)
    kept = [c for c in range(len(table.columns)) if not all(is_empty(row[c]) for row in table.rows)]
    rows = [[row[c] for c in kept] for row in table.rows]
    return replace(table, columns=[table.columns[c] for c in kept], rows=rows) if table.rows else table


def known(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def as_number(value: object) -> float | None:
    """Return what Polars makes of a column of numbers (its mean, median, ...); None where there are none."""
    return value if isinstance(value, (int, float)) else None


def decimals(spread: float | None, digits: int = 2, most: int = 8) -> int:
    """Decimals that show `digits` digits of `spread`."""
    if not known(spread) or spread <= 0:
        return digits
    return min(most, max(0, digits - 1 - math.floor(math.log10(spread))))


def count_decimals(estimate: float | None, error: float | None) -> int:
    """Decimals that show two digits of the error; of a value without one those it has, six figures at most."""
    if known(error) and error:
        return decimals(error)
    if not known(estimate) or not estimate:
        return 0
    figures = f"{estimate:.{min(MOST, max(0, 5 - math.floor(math.log10(abs(estimate)))))}f}"
    return len(figures.rstrip("0").partition(".")[2]) if figures.strip("-0.") else MOST


def number(value: float | None, places: int) -> str:
    """'1,234.5' with a true minus sign; '' where unknown. Very large or small numbers in powers of ten."""
    if not known(value):
        return ""
    text = f"{value:.{places}e}" if abs(value) >= 1e9 else f"{value:,.{places}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("-")
    return text.replace("-", MINUS)


def figure(value: float | None, digits: int = 3) -> str:
    """A number of `digits` significant digits for running text."""
    return (
        number(value, decimals(abs(value), digits)) if known(value) and value != 0 else "0" if value == 0 else "unknown"
    )


def aligned(texts: Sequence[str]) -> list[str]:
    """The texts, right-aligned, with their decimal points in one line: spaces in place of missing decimals."""
    places = [len(t) - t.index(".") - 1 if "." in t else 0 for t in texts]
    most = max(places, default=0)
    return [
        t if not t or p == most else t + (POINT_SPACE if p == 0 else "") + FIGURE_SPACE * (most - p)
        for t, p in zip(texts, places, strict=True)
    ]


def numbers(values: Collection[float | None], places: int | Sequence[int]) -> list[Number]:
    """A column of numbers; `places`: decimals of all or of each."""
    places = [places] * len(values) if isinstance(places, int) else places
    texts = aligned([number(v, p) for v, p in zip(values, places, strict=True)])
    return [Number(t, float(v) if known(v) else None) for t, v in zip(texts, values, strict=True)]


def counts(values: Collection[float | None]) -> list[Number]:
    return numbers(values, 0)


def percent(values: Iterable[float | None]) -> list[float | None]:
    return [100 * v if known(v) else None for v in values]


def marked(column: Sequence[Number], beyond: Callable[[float], bool]) -> list[Number]:
    """The column with an alert on every known value for which `beyond` holds."""
    return [replace(n, alert=n.value is not None and beyond(n.value)) for n in column]


def note_if_marked(column: Sequence[Cell], note: str) -> str:
    """The note on what is marked, where anything in the column is."""
    return note if any(isinstance(cell, Number) and cell.alert for cell in column) else ""


def interval_range(lows: Collection[float | None], highs: Collection[float | None]) -> tuple[float, float]:
    """Find the range from the lowest low to the highest high; (0, 0) where there is no interval."""
    ends = [v for v in (*lows, *highs) if known(v)]
    return min(ends, default=0.0), max(ends, default=0.0)


def normal_intervals(
    means: Collection[float | None], sd: Collection[float | None]
) -> tuple[list[float | None], list[float | None]]:
    """Return the ends of 95 % intervals of normal distributions; None where there is no mean or deviation."""
    low, high = (
        [m + sign * NORMAL_95 * s if known(m) and known(s) else None for m, s in zip(means, sd, strict=True)]
        for sign in (-1, 1)
    )
    return low, high


def bars(
    means: Collection[float | None],
    lows: Collection[float | None],
    highs: Collection[float | None],
    scale: tuple[float, float] | None = None,
) -> list[Bar | None]:
    """Intervals on one scale, by default from the lowest low to the highest high; None where there is no interval."""
    low, high = scale or interval_range(lows, highs)
    width = high - low

    def place(value: float) -> float:
        return round(min(max(100 * (value - low) / width, 0.0), 100.0), 2)

    def bar(m: float, a: float, b: float) -> Bar:
        beyond = tuple(end for end, outside in (("low", a < low), ("high", b > high)) if outside)
        return Bar(place(a), place(b), place(m) if low <= m <= high else None, zero, beyond)

    zero = place(0.0) if width > 0 and low <= 0 <= high else None
    return [
        bar(m, a, b) if width > 0 and known(m) and known(a) and known(b) else None
        for m, a, b in zip(means, lows, highs, strict=True)
    ]


def bars_words(
    scales: Mapping[str, tuple[float, float]],
    drawn: Sequence[Bar | None],
    places: Mapping[str, tuple[int, int]] | int,
) -> list[str]:
    """Describe the scales of the bars of a table; nothing without bars.

    scales: what each is of ('': all) -> its ends; places: decimals that the table shows the ends with, of
    each scale (low, high) or of all.
    """
    if all(bar is None for bar in drawn):
        return []
    phrases = []
    for name, ends in scales.items():
        decimals = (places, places) if isinstance(places, int) else places[name]
        phrases.append(" to ".join(map(number, ends, decimals)) + (f" ({name})" if name else ""))
    return [
        f"The bars run from {listed(phrases, most=12)}.",
        *lines_words(drawn, ", which leaves out intervals much wider than most"),
    ]


def lines_words(drawn: Sequence[Bar | None], why: str = "") -> list[str]:
    """Describe the thin line in bars and the arrows at their ends, where there are any; why: bars go beyond."""
    shown, words = [bar for bar in drawn if bar is not None], []
    if any(bar.zero is not None for bar in shown):
        words.append("The thin line is 0.")
    if any(bar.beyond for bar in shown):
        words.append(f"A bar with an arrow goes on beyond this scale{why}.")
    return words


def interval(low: float | None, high: float | None, places: int) -> str:
    return f"{number(low, places)} to {number(high, places)}" if known(low) and known(high) else ""


def listed(items: Sequence[str], last: str = "and", most: int = 8) -> str:
    """'a, b and c'; of more than `most` the first ones and the number of the others."""
    items = [str(i) for i in items]
    if len(items) > most:
        items = [*items[: most - 1], f"{len(items) - most + 1:,} more"]
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}" if items else "none"


def counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
