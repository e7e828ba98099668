"""Levels in the order in which people count them: 2 before 10, '<2' before '2-4', '5-9' before '10+'."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FIRST_NUMBER = re.compile(r"([<>≤≥]?)=?([+-]?[0-9]+(?:\.[0-9]+)?)")
_SIDE = {"<": -1, "≤": -1, "": 0, ">": 1, "≥": 1}
_WHOLE_NUMBER = re.compile(r"([0-9]+)")


def natural(level: str) -> tuple:
    """What to sort a level by: those that begin with a number by its value, then the others as text; digits within the
    text count as whole numbers, so that 'F2:slope' comes before 'F10:slope'.
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
