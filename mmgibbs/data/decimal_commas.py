"""Numbers with decimal commas, as spreadsheets of much of the world write them in tables separated by semicolons."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

_WHOLE, _DECIMAL = r"^[+-]?\d+$", r"^[+-]?\d*,\d+$"
_THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"  # 1,205 may be 1.205 or 1205
_SURE = r"^[+-]?(?:0?,|\d+,\d{4})"  # 0,2 and ,2 and 1,2055 are no thousands with a digit forgotten, as 11,2 may be


def with_points(text: pl.Series, absent: Collection[str]) -> pl.Series | None:
    """The values with points in place of decimal commas; None where that is not what the commas are (deciding_cell).

    text: (n,) String without outer blanks; absent: values that mean missing.
    """
    return None if deciding_cell(text, absent) is None else commas_as_points(text, absent)


def commas_as_points(text: pl.Series, absent: Collection[str]) -> pl.Series:
    """(n,) String: 1.5 for 1,5; what means missing stays as it is."""
    return text.str.replace(",", ".", literal=True).zip_with(~text.is_in(list(absent)).fill_null(True), text)


def deciding_cell(text: pl.Series, absent: Collection[str]) -> int | None:
    """Index of the first value that shows that commas are decimal; None where they are not, or may be thousands'.

    Every value that is not missing must be a whole number or have one comma, and one of them at least must be no number
    of thousands, as 1,205 may be. Where most of those with a comma may be thousands, a slip of the pen as 11,2 does not
    turn them: one must have four decimals or more, or nothing but 0 before its comma.
    """
    seen = text.is_not_null() & ~text.is_in(list(absent))
    commas, thousands = seen & text.str.contains(_DECIMAL), seen & text.str.contains(_THOUSANDS)
    deciding = commas & ~thousands
    if 2 * int(thousands.sum()) > int(commas.sum()):
        deciding &= text.str.contains(_SURE)
    if not deciding.any() or not (commas | ~seen | text.str.contains(_WHOLE)).all():
        return None
    return deciding.arg_max()
