"""Levels of class effects and of random effects: coded once, in an order that a reader expects.

The order is that of `data.order`, of the type of the column, of numbers or dates, or the one in which people count: 2
before 10, '<2' before '2-4', '5-9' before '10+'.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.config.orders import Levels, level_numbers
from mmgibbs.data.dates import parse_dates
from mmgibbs.errors import ConfigError, nearest
from mmgibbs.pedigree.tables import agreeing, quoted

_WHOLE = r"^[+-]?[0-9]{1,18}$"


def level_order(ids: pl.Series) -> pl.Series:
    """Unique ids, without null: in numeric order where all are whole numbers, else as strings."""
    frame = pl.DataFrame({"id": ids.drop_nulls().unique()})
    if frame["id"].str.contains(_WHOLE).all():
        return frame.sort(pl.col("id").cast(pl.Int64), "id")["id"]
    return frame.sort("id")["id"]


def code_levels(columns: Sequence[pl.Series]) -> tuple[pl.Series, list[np.ndarray]]:
    """(ids (q,) String in level order, one (n,) int32 code array per column; -1 where null): columns that share
    levels."""
    ids = level_order(pl.concat([c.rename("id") for c in columns]))
    return ids, [encode_levels(c, ids) for c in columns]


def encode_levels(column: pl.Series, ids: pl.Series) -> np.ndarray:
    """(n,) int32 position of each value in `ids`, -1 where null; every other value must be among the ids."""
    if len(ids) == 0:
        return np.full(len(column), -1, np.int32)
    return column.cast(pl.Enum(ids)).to_physical().cast(pl.Int32).fill_null(-1).to_numpy().copy()


def lookup(column: pl.Series, ids: pl.Series) -> pl.Series:
    """(n,) Int32 position of each value in `ids`, null where it is null or not among them."""
    table = pl.DataFrame({"id": ids, "code": pl.int_range(0, len(ids), dtype=pl.Int32, eager=True)})
    return pl.DataFrame({"id": column}).join(table, on="id", how="left", maintain_order="left")["code"]


_FIRST_NUMBER = re.compile(r"([<>≤≥]?)=?([+-]?[0-9]+(?:\.[0-9]+)?)")
_SIDE = {"<": -1, "≤": -1, "": 0, ">": 1, "≥": 1}
_WHOLE_NUMBER = re.compile(r"([0-9]+)")


def natural(level: str) -> tuple:
    """Return the key to sort a level by.

    Levels that begin with a number are sorted by its value, then the others as text; digits within the text count as
    whole numbers, so that 'F2:slope' comes before 'F10:slope'.
    """
    first = _FIRST_NUMBER.match(level)
    rest = level[first.end() :] if first else level
    # (0, text) and (1, number): a piece of text is never compared with a number
    pieces = [(1, int(p)) if p.isdigit() and p.isascii() else (0, p) for p in _WHOLE_NUMBER.split(rest) if p]
    return (0, float(first[2]), _SIDE[first[1]], pieces, level) if first else (1, 0.0, 0, pieces, level)


def natural_order(levels: Iterable[str]) -> list[int]:
    """Places of the levels, in natural order."""
    names = list(levels)
    return sorted(range(len(names)), key=lambda i: natural(names[i]))


SHOWN = 5  # levels in a message
_ISO = re.compile(r"\d{4}-\d{2}(?:-\d{2}(?:[T ]\d{2}:\d{2}.*)?)?")
_MONTHS = "january february march april may june july august september october november december".split()
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_MIN_LETTERS = 3  # of an abbreviated name


def order_levels(
    levels: Sequence[str], column: str, kind: pl.DataType, orders: Mapping[str, Sequence[str]], place: str
) -> Levels:
    """Sort levels. kind: type of the column; orders: `data.order`; place: what a message calls the column.

    ConfigError for a level that the stated order lacks.
    """
    stated = orders.get(column)
    if stated is not None:
        refuse_unlisted(levels, column, stated, place)
    elif isinstance(kind, pl.Enum):
        stated = [level.strip() for level in kind.categories]
    if stated is not None:
        at = {level: i for i, level in enumerate(stated)}
        return Levels(sorted(levels, key=lambda level: at[level]), True)
    numbers = level_numbers(levels)
    if numbers is not None:
        of_level = dict(zip(levels, numbers, strict=True))
        return Levels(sorted(levels, key=of_level.__getitem__), True)
    if kind.is_temporal() or all(_ISO.fullmatch(level) for level in levels):
        return Levels(sorted(levels), True)
    return Levels(sorted(levels, key=_likely_key(levels)), False)


def refuse_unlisted(levels: Sequence[str], column: str, stated: Sequence[str], place: str) -> None:
    """ConfigError for levels of a column that its stated order lacks."""
    lacking = [level for level in levels if level not in stated]
    if lacking:
        names = ", ".join(map(quoted, lacking[:SHOWN])) + (", ..." if len(lacking) > SHOWN else "")
        raise ConfigError(
            f"data.order.{column}: expected every level of {place}, got none of {names}, which "
            f"{agreeing(len(lacking), 'is')} in the table; {nearest(lacking[0], stated, 'the list has')}"
        )


def _likely_key(levels: Sequence[str]) -> Callable[[str], Any]:
    """Return the key to sort words by.

    Months and weekdays are sorted by the calendar, dates by time, others as people count them.
    """
    for names in (_MONTHS, _WEEKDAYS):
        numbers = {level: _find_name(level, names) for level in levels}
        if all(number is not None for number in numbers.values()):
            return numbers.__getitem__
    dates = parse_dates(pl.Series(levels, dtype=pl.String))
    if dates is not None:
        return dict(zip(levels, dates, strict=True)).__getitem__
    return natural


def _find_name(level: str, names: Sequence[str]) -> int | None:
    word = level.casefold().strip().rstrip(".")
    return next((i for i, name in enumerate(names) if len(word) >= _MIN_LETTERS and name.startswith(word)), None)
