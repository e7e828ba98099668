"""Numbers with decimal commas, as spreadsheets of much of the world write them in tables separated by semicolons."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from pedigree.spelling import are_unknown_codes

_WHOLE, _DECIMAL = r"^[+-]?\d+$", r"^[+-]?\d*,\d+$"
_THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"  # 1,205 may be 1.205 or 1205
_MAX_SHARE_OF_ERRORS = 0.2  # of the values with decimal commas
_SURE = r"^[+-]?(?:0?,|\d+,\d{4})"  # 0,2 and ,2 and 1,2055 are no thousands with a digit forgotten, as 11,2 may be


def commas_as_points(text: pl.Series, absent: Collection[str]) -> pl.Series:
    """(n,) String: 1.5 for 1,5; what means missing, or is no number with a decimal comma, stays as it is."""
    is_number = ~text.is_in(list(absent)).fill_null(True) & text.str.contains(_DECIMAL).fill_null(False)
    return text.str.replace(",", ".", literal=True).zip_with(is_number, text)


def are_numbers(text: pl.Series) -> pl.Series:
    """(n,) Boolean, null where null: whole numbers, and numbers with decimal commas."""
    return text.str.contains(_WHOLE) | text.str.contains(_DECIMAL)


def deciding_cell(text: pl.Series, absent: Collection[str]) -> int | None:
    """Index of the first value that shows that commas are decimal; None where they are not, or may be thousands'.

    Nearly every value that is not missing must be a whole number or have one comma: the few others are typing errors.
    One of them at least must be no number of thousands, as 1,205 may be. Where most of those with a comma may be
    thousands, a slip of the pen as 11,2 does not turn them: one must have four decimals or more, or nothing but 0
    before its comma.
    """
    seen = text.is_not_null() & ~text.is_in(list(absent))
    commas, thousands = seen & text.str.contains(_DECIMAL), seen & text.str.contains(_THOUSANDS)
    deciding = commas & ~thousands
    if 2 * int(thousands.sum()) > int(commas.sum()):
        deciding &= text.str.contains(_SURE)
    others = seen & ~commas & ~text.str.contains(_WHOLE)
    if deciding.any() and others.any():
        others &= ~are_unknown_codes(text, "value")
    if not deciding.any() or int(others.sum()) > _MAX_SHARE_OF_ERRORS * int(commas.sum()):
        return None
    return deciding.arg_max()
