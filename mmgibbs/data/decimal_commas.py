"""Numbers with decimal commas, as spreadsheets of much of the world write them in tables separated by semicolons."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

_WHOLE, _DECIMAL = r"^[+-]?\d+$", r"^[+-]?\d*,\d+$"
_THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"  # 1,205 may be 1.205 or 1205


def with_points(text: pl.Series, absent: Iterable[str]) -> pl.Series | None:
    """The values with points in place of decimal commas; None where that is not what the commas are.

    text: (n,) String without outer blanks; absent: values that mean missing. Every other value must be a whole number
    or have one comma, and one of them at least must be no number of thousands, as 1,205 may be.
    """
    seen = text.filter(text.is_not_null() & ~text.is_in(list(absent)))
    commas = seen.filter(seen.str.contains(_DECIMAL))
    if commas.is_empty() or commas.str.contains(_THOUSANDS).all():
        return None
    others = seen.filter(~seen.str.contains(_DECIMAL))
    return text.str.replace(",", ".", literal=True) if others.str.contains(_WHOLE).all() else None
