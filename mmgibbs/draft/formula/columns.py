"""What the columns of the records are where a formula does not say: numbers, classes, dates.

Names of columns in a formula: those that stand in backticks, and those that no identifier of Python can be.
"""

from __future__ import annotations

import keyword
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from mmgibbs.config.frames import as_polars
from mmgibbs.config.tables import MISSING
from mmgibbs.data.dates import are_dates
from mmgibbs.errors import ConfigError, DataError, nearest
from mmgibbs.pedigree.errors import TableError
from mmgibbs.pedigree.spelling import parse_numbers
from mmgibbs.pedigree.tables import read_table

MAX_CODES = 20  # whole numbers of at most so many values may be codes of classes
MAX_WORDS = 3  # distinct values of text that are kept: a yes-or-no trait has two


@dataclass(frozen=True)
class Columns:
    """Names of the columns, and which have numbers alone, dates, or few words."""

    names: tuple[str, ...]
    numbers: frozenset[str]
    codes: frozenset[str] = frozenset()  # whole numbers of few values, which may mean classes
    dates: frozenset[str] = frozenset()
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # column of words -> its values, sorted, if few

    def has_numbers(self, name: str) -> bool:
        return name in self.numbers


def read_columns(records: Any) -> Columns:
    """Look at a table of records: the path of a file, or a frame. A frame says by its types what are numbers.

    ConfigError: no table. DataError: a file that cannot be read.
    """
    if isinstance(records, (str, os.PathLike)):
        try:
            frame = read_table(os.fspath(records))
        except TableError as error:
            raise DataError(str(error)) from None
        numbers = {name: values for name in frame.columns if (values := _as_numbers(frame[name])) is not None}
    else:
        frame = _as_frame(records)
        numbers = {name: frame[name] for name in frame.columns if frame.schema[name].is_numeric()}
    codes = [name for name, values in numbers.items() if _are_codes(values)]
    text = {
        name: cells for name in frame.columns if name not in numbers and (cells := _as_text(frame[name])) is not None
    }
    dates = [name for name, cells in text.items() if frame.schema[name].is_temporal() or are_dates(cells)]
    few = {name: cells for name, cells in text.items() if 0 < len(cells) <= MAX_WORDS}
    words = {name: tuple(cells.sort()) for name, cells in few.items() if parse_numbers(cells).null_count()}
    return Columns(tuple(frame.columns), frozenset(numbers), frozenset(codes), frozenset(dates), words)


def _as_frame(records: Any) -> pl.DataFrame:
    try:
        frame = as_polars(records)
    except ValueError as error:
        raise ConfigError(f"data: expected a table, got {error}") from None
    if frame is None:
        raise ConfigError(f"data: expected the path of a table or a data frame, got {type(records).__name__}")
    return frame


def _as_numbers(text: pl.Series) -> pl.Series | None:
    """The numbers of a column; None where a cell is neither a number nor missing, or where all are missing."""
    cells = text.filter(text.is_not_null() & ~text.is_in(MISSING))
    values = parse_numbers(cells)
    return values if len(cells) and values.null_count() == 0 else None


def _as_text(column: pl.Series) -> pl.Series | None:
    """The distinct known values of a column as text; None where they have no text, as lists."""
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):
        return None
    text = column.unique().cast(pl.String).str.strip_chars()
    return text.filter(text.is_not_null() & ~text.is_in(MISSING)).unique()


def _are_codes(values: pl.Series) -> bool:
    """Few whole numbers, each several times."""
    known = values.drop_nulls().cast(pl.Float64, strict=False).drop_nans()
    return len(known) > 0 and known.n_unique() <= min(MAX_CODES, len(known) // 2) and bool((known % 1 == 0).all())


# Words that the grammar knows; a column of such a name stands in backticks.
_GRAMMAR_WORDS = frozenset({"in", "True", "False", "None"})
_NAME = r"\.*[^\W\d][\w.]*"  # letters, digits, dots and underscores, as R has them
_PIECES = re.compile(
    rf"""(?P<text>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|`(?P<backticks>[^`]+)`|(?<![\w.])(?P<plain>{_NAME})"""
)
_PLACEHOLDER = re.compile("_ʭ([0-9]+)_")  # of a name while formulaic and Python read the formula; no column has it


class HiddenNames:
    """A formula in which placeholders stand for the names that formulaic or Python cannot read.

    These are names in backticks, names with dots (Ring.no., x..y, in.herd), words of Python (class, lambda), and names
    that Python would change (µg).
    """

    def __init__(self, formula: str) -> None:
        self.names: list[str] = []
        self.text = _PIECES.sub(self._hide, formula)

    def _hide(self, piece: re.Match[str]) -> str:
        if piece["text"]:
            return piece[0]
        if piece["plain"] and (piece[0] in _GRAMMAR_WORDS or _is_identifier(piece[0])):
            return piece[0]
        self.names.append(piece["backticks"] or piece["plain"])
        return f"_ʭ{len(self.names) - 1}_"

    def restore(self, text: str) -> str:
        """The name of a column or of a function."""
        return _PLACEHOLDER.sub(lambda found: self.names[int(found[1])], text)

    def describe(self, text: str) -> str:
        """A part of the formula as the user writes it, with backticks where a name needs them."""
        return _PLACEHOLDER.sub(lambda found: write_name(self.names[int(found[1])]), text)


def _is_identifier(name: str) -> bool:
    is_unchanged = unicodedata.normalize("NFKC", name) == name
    return is_unchanged and name.isidentifier() and not keyword.iskeyword(name)


def write_name(column: str) -> str:
    """A column as a formula has it: in backticks if it has blanks or signs."""
    is_plain = re.fullmatch(_NAME, column) is not None and column not in _GRAMMAR_WORDS
    return column if is_plain or "`" in column else f"`{column}`"


def advise_column(formula: str, name: str, columns: Iterable[str]) -> str:
    """The end of a message about a name that no column has: which may be meant, and how to write it."""
    columns = list(columns)
    advice = advise_backticks(formula, [column for column in columns if name in column])
    if advice is not None:
        return advice
    as_r_reads = [column for column in columns if _as_r_names(column) == name]
    if len(as_r_reads) == 1:
        return f"R calls '{as_r_reads[0]}' so; expected {write_name(as_r_reads[0])}"
    said = nearest(name, columns, "the columns are")
    meant = next((column for column in columns if said == f"did you mean '{column}'?"), None)
    return said if meant is None or write_name(meant) == meant else f"{said} Expected {write_name(meant)}"


def advise_backticks(formula: str, columns: Iterable[str]) -> str | None:
    """Advise what to write where the name of a column lacks its backticks; None if no name lacks them."""
    rest = _PIECES.sub(lambda piece: piece[0] if piece["plain"] else " ", formula)
    needy = (column for column in columns if write_name(column) != column and column not in _GRAMMAR_WORDS)
    for column in sorted(needy, key=len, reverse=True):
        if re.search(rf"(?<![\w.]){re.escape(column)}(?![\w.])", rest):
            return f"a column with blanks or signs in its name stands in backticks; expected {write_name(column)}"
    return None


def _as_r_names(column: str) -> str:
    """The name that read.csv of R gives a column."""
    name = re.sub(r"[^\w.]", ".", column)
    return name if re.match(r"\.*[^\W\d_]|\.$", name) else f"X{name}"
