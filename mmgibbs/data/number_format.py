"""How a table writes numbers: decimal marks, separators of thousands, and the reason why a cell is no number.

Numbers with decimal commas, as spreadsheets of much of the world write them in tables separated by semicolons.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import polars as pl

from mmgibbs.pedigree.messages import agreeing, counted, format_number
from mmgibbs.pedigree.spelling import are_unknown_codes, parse_numbers

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


Decimal = Literal[".", ","] | None  # the decimal mark as the analysis states it; None: it does not

_POINT_AND_THREE_DIGITS = r"^[+-]?[1-9]\d{0,2}\.\d{3}$"
_WHOLE_BELOW_THOUSAND = r"^[+-]?\d{1,3}$"
_THOUSAND = 1000.0
_DECIMALS, _BARE = r"^[+-]?\d*[.,](\d+)$", r"^[+-]?\d+$"
# Of a column where a cell without a decimal mark may have lost it: cells with one, and their share of all numbers; how
# many times the largest of them the cell is; how many such cells, or which share of the others, may be errors.
_MIN_MARKED, _MIN_SHARE_MARKED, _MIN_TIMES_LARGEST, _MAX_LOST, _MAX_SHARE_LOST = 20, 0.8, 2.0, 3, 0.02
_MAX_LOST_SHOWN = 10
_N_CELLS_TESTED_FIRST = 1000


class ParsedColumn(NamedTuple):
    """A column of text as numbers."""

    values: pl.Series  # (n,) Float64, null where a cell is no number
    plain: pl.Series  # (n,) String: the cells as programs write numbers
    comma: int | None  # the first cell that shows that commas are decimal where the analysis does not say so


def parse_column(text: pl.Series, absent: Collection[str], decimal: Decimal) -> ParsedColumn:
    """Read a column of numbers; cells of `absent`, which mean a missing value, stay as they are in `plain`.

    text: (n,) String without outer blanks. A stated decimal mark decides what may be read in two ways, as 1,205 and
    1.205 may; where it leaves more cells that are no numbers, the column is read as if nothing was stated.
    """
    seen = ~text.is_in(list(absent)).fill_null(True)
    if decimal is None:
        return _parse_unstated(text, absent)
    values = parse_numbers(text, decimal)
    n_wrong = values.filter(seen).null_count()
    unstated = _parse_unstated(text, absent) if n_wrong else None
    if unstated is not None and unstated.values.filter(seen).null_count() < n_wrong:
        return unstated
    written = values.cast(pl.String).zip_with(seen & values.is_not_null(), text)
    return ParsedColumn(values, written, None)


def _parse_unstated(text: pl.Series, absent: Collection[str]) -> ParsedColumn:
    values = text.cast(pl.Float64, strict=False)
    if values.null_count() == text.null_count() or (comma := deciding_cell(text, absent)) is None:
        return ParsedColumn(values, text, None)
    plain = commas_as_points(text, absent)
    values = plain.cast(pl.Float64, strict=False).zip_with(
        are_numbers(text).fill_null(True), pl.Series([None], dtype=pl.Float64)
    )
    return ParsedColumn(values, plain, comma)


class LostMark(NamedTuple):
    """Cells of a column of decimals that may lack their decimal mark, as 1985 for 198.5."""

    cells: list[int]
    texts: list[str]
    meant: list[str]
    n: int  # cells with a mark
    low: float  # of these
    high: float

    def describe(self, where: str, rows: Sequence[object]) -> str:
        """Return what to say; where: the column and its YAML path, rows: those of the cells."""
        pairs = zip(rows, self.texts, self.meant, strict=False)
        shown = [f"row {row}: {text} for {meant}" for row, text, meant in pairs][:_MAX_LOST_SHOWN]
        more = f" and {len(self.cells) - len(shown)} more" if len(self.cells) > len(shown) else ""
        n, low, high = len(self.cells), format_number(self.low), format_number(self.high)
        return (
            f"{where}: {counted(n, 'number', 'has')} no decimal mark and {agreeing(n, 'lies')} far above the "
            f"{self.n:,} that have one, from {low} to {high} ({', '.join(shown)}{more}): "
            "is the mark left out? They are read as they are written"
        )


def find_lost_marks(text: pl.Series, values: pl.Series) -> LostMark | None:
    """Return the cells whose decimal mark may have been left out, None where there are none.

    text: (n,) String; values: (n,) Float64, null where a cell is no number or missing. Nearly all numbers have the
    mark; the cell has none, is more than twice as large as any of these, and lies among them with one.
    """
    decimals = text.str.extract(_DECIMALS, 1).str.len_chars()
    marked = values.is_not_null() & decimals.is_not_null()
    n = int(marked.sum())
    bare = values.is_not_null() & text.str.contains(_BARE).fill_null(False)
    if n < _MIN_MARKED or not bare.any() or n < _MIN_SHARE_MARKED * (n + int(bare.sum())):
        return None
    known = values.filter(marked)
    low, high, most = float(known.min()), float(known.max()), float(known.abs().max())  # type: ignore[arg-type]
    is_above, is_far = bare & (values.abs() > most), values.abs() > _MIN_TIMES_LARGEST * most
    far = (is_above & is_far).arg_true().to_list()
    usual = int(decimals.filter(marked).mode().min())  # type: ignore[arg-type]
    cells = [i for i in far if low <= values[i] / 10**usual <= high]
    if not cells or len(cells) > max(_MAX_LOST, _MAX_SHARE_LOST * n):
        return None
    if int((is_above & ~is_far).sum()) > len(cells):  # large numbers are written without decimals, as 9.87, 98.7, 987
        return None
    meant = [f"{values[i] / 10**usual:.{usual}f}" for i in cells]
    return LostMark(cells, [text[i] for i in cells], meant, n, low, high)


class PointsOfThousands(NamedTuple):
    """Cells such as 1.157, which may mean 1157, beside whole numbers below 1000."""

    cell: int  # the first
    text: str
    n: int
    n_whole: int
    low: int  # of the whole numbers
    high: int

    def describe(self, where: str, row: object | None = None) -> str:
        """Return what to say; where: the column and its YAML path, row: that of the first cell."""
        meant = self.text.replace(".", "")
        have = "value has" if self.n == 1 else "values have"
        rest_text = "other is a whole number" if self.n_whole == 1 else "others are whole numbers"
        span = f"{self.low}" if self.low == self.high else f"from {self.low} to {self.high}"
        example = self.text if row is None else f"row {row}: {self.text}"
        return (
            f"{where}: {self.n:,} {have} a point and three digits behind it ({example}), and the {self.n_whole:,} "
            f"{rest_text}, {span}: does the point separate thousands, so that {self.text} means {meant}? It is read as "
            f"{self.text}. Where it means {meant}, write data.decimal: ','; where it does not, data.decimal: '.' ends "
            "this warning"
        )


def find_points_of_thousands(text: pl.Series, absent: Collection[str]) -> PointsOfThousands | None:
    """Return the cells whose points may separate thousands, None where there are none.

    Every value with a point has three digits behind it, the others are whole and below 1000, and read as thousands the
    two kinds are closer to each other, by their medians, than read as decimals.
    """
    if _kinds_of_cells(text.head(_N_CELLS_TESTED_FIRST), absent) is None:
        return None
    kinds = _kinds_of_cells(text, absent)
    if kinds is None or not kinds[0].any() or not kinds[1].any():
        return None
    with_point, integers = text.filter(kinds[0]).cast(pl.Float64), text.filter(kinds[1]).cast(pl.Int64)
    small, large = float(with_point.abs().median()), float(integers.abs().median())  # type: ignore[arg-type]
    if large * large <= _THOUSAND * small * small:
        return None
    first = int(kinds[0].arg_max() or 0)
    integers = integers.sort()
    return PointsOfThousands(first, text[first], len(with_point), len(integers), int(integers[0]), int(integers[-1]))


def _kinds_of_cells(text: pl.Series, absent: Collection[str]) -> tuple[pl.Series, pl.Series] | None:
    """(n,) Boolean of the cells with a point and three digits, and of whole numbers below 1000; None where a cell is
    neither.
    """
    seen = ~text.is_in(list(absent)).fill_null(True)
    with_point = seen & text.str.contains(_POINT_AND_THREE_DIGITS).fill_null(False)
    is_integer = seen & text.str.contains(_WHOLE_BELOW_THOUSAND).fill_null(False)
    return (with_point, is_integer) if (with_point | is_integer | ~seen).all() else None


# What a cell with separators looks like, and what to say of it; the first that fits.
_BLANKS = "\u0020\u00a0\u2009\u202f"  # no-break, thin and narrow blanks stand between thousands as well
_SEPARATORS: tuple[tuple[str, str], ...] = (
    (
        r"[+-]?[1-9]\d{0,2},\d{3}",
        "the comma may be decimal ({point}) or separate thousands ({bare}): write data.decimal: ',' where it is "
        "decimal, data.decimal: '.' where it separates thousands",
    ),
    (
        r"[+-]?\d*,\d+",
        "the comma is no decimal point beside the other values of this column: write all of them with points, or all "
        "with decimal commas",
    ),
    (r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?", "commas separate thousands ({bare}): write data.decimal: '.'"),
    (r"[+-]?\d{1,3}(?:\.\d{3})+,\d*", "points separate thousands ({bare}): write data.decimal: ','"),
    (r"[+-]?\d{1,3}(?:\.\d{3}){2,}", "points separate thousands ({bare}): write data.decimal: ','"),
    (
        rf"[+-]?\d{{1,3}}(?:[{_BLANKS}]\d{{3}})+(?:[.,]\d*)?",
        "blanks separate thousands ({bare}): write data.decimal: '.', or ',' where decimals follow a comma",
    ),
    (
        r"[+-]?\d{1,3}(?:['\u2019]\d{3})+(?:[.,]\d*)?",
        "apostrophes separate thousands ({bare}): write data.decimal: '.', or ',' where decimals follow a comma",
    ),
)
_UNITS = "kg g mg t lb lbs oz l ml dl cm mm m in ft d day days week weeks month months year years h hrs min mo yr wk"
_OTHER_REASONS: tuple[tuple[str, str], ...] = (
    (r"[+-]?[\d.,]*[OoIl|][\d.,OoIl|]*", "a letter stands for a digit (O for 0, l or I for 1): correct it"),
    (r"[\u2010-\u2015\u2212]\s?[\d.,]+", "its sign is a dash and not a minus ('-'): correct it"),
    (
        r"(?:[<>]=?|[\u2264\u2265])\s*[+-]?[\d.,]+",
        "a value that is only known to lie above or below a limit belongs to a trait of type: censored",
    ),
    (
        rf"[+-]?[\d.,]+\s*(?:%|(?i:{'|'.join(_UNITS.split())})\.?)",
        "a unit is behind the number: leave it out, here and in every other cell",
    ),
)


def explain_no_number(cell: str, decimal: Decimal) -> str:
    """Return why a cell is no number and what to do, as the end of a message ('; ...'); '' where nothing is known."""
    if decimal is not None and re.fullmatch(rf"[+-]?[\d.,'\u2019{_BLANKS}]+", cell):
        return f"; this is no number with the decimal mark that data.decimal: '{decimal}' states"
    for pattern, reason in _SEPARATORS:
        if re.fullmatch(pattern, cell):
            return f"; {reason.format(point=cell.replace(',', '.'), bare=_strip_separators(cell))}"
    return next((f"; {reason}" for pattern, reason in _OTHER_REASONS if re.fullmatch(pattern, cell)), "")


def _strip_separators(cell: str) -> str:
    """1205.5 for 1,205.5: of two kinds of separators the last is decimal."""
    marks = re.findall(r"[^\d+-]", cell)
    if len(set(marks)) < 2:
        return re.sub(r"[^\d+-]", "", cell)
    integer_part, _, decimals = cell.rpartition(marks[-1])
    return re.sub(r"[^\d+-]", "", integer_part) + "." + decimals
