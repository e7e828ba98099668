"""What the columns of the records are where a formula does not say: numbers, classes, dates."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from mmgibbs.config.frames import as_polars
from mmgibbs.config.tables import MISSING
from mmgibbs.data.dates import are_dates
from mmgibbs.errors import ConfigError, DataError
from pedigree.errors import TableError
from pedigree.spelling import parse_numbers
from pedigree.tables import read_table

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
