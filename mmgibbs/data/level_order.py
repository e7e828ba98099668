"""The order of the levels of a column: from `data.order`, the type of the column, numbers or dates; or a likely one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from mmgibbs.config.orders import Levels, level_numbers
from mmgibbs.data.dates import parse_dates
from mmgibbs.data.natural_order import natural
from mmgibbs.errors import ConfigError, nearest
from pedigree.tables import agreeing, quoted

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
    """What to sort words by: months and weekdays by the calendar, dates by time, others as people count them."""
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
