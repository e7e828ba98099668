"""Places of records along a line: times of animals, rows of fields, the points of a curve; numbers or ordered words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from mmgibbs.config.orders import level_numbers
from mmgibbs.data.dates import are_dates
from mmgibbs.data.level_order import order_levels
from mmgibbs.data.levels import code_levels, lookup
from mmgibbs.data.phenotypes import SHOWN, Phenotypes, refuse_rows
from mmgibbs.errors import DataError
from pedigree.spelling import parse_numbers
from pedigree.tables import counted, format_number, quoted

MAX_WORDS_LISTED = 100  # in a message that asks for their order


class Series(NamedTuple):
    """The distinct values of each class, rising."""

    within: np.ndarray  # (m,) int64 class of each
    values: np.ndarray  # (m,)
    gap: np.ndarray  # (m,) distance to the value before of the same class; 0: the first
    number: np.ndarray  # (n,) int64 value of each record; -1: none
    shown: pl.Series  # (m,) String: each as the table has it


def code_classes(
    phenotypes: Phenotypes, column: str | None, path: str, is_needed: np.ndarray
) -> tuple[np.ndarray, pl.Series]:
    """(n,) int64 class of each record, and the names of classes; without a column all are of one, whose name is ''.

    DataError for a record that needs a class and has none.
    """
    if column is None:
        return np.zeros(len(phenotypes), np.int64), pl.Series("id", [""])
    text = phenotypes.text(column, path)
    _refuse_empty(phenotypes, column, path, np.flatnonzero(is_needed & text.is_null().to_numpy()))
    names, (codes,) = code_levels([text.to_frame("id").select(pl.when(pl.Series(is_needed)).then("id"))["id"]])
    return codes.astype(np.int64), names


def find_series(phenotypes: Phenotypes, column: str, path: str, rows: np.ndarray, group: np.ndarray) -> Series:
    """The distinct values of a column in these records; group: (n,) class of each record of the table."""
    values, words = read_positions(phenotypes, column, path, rows)
    pairs, number = np.unique(np.column_stack([group[rows], values]), axis=0, return_inverse=True)
    within = pairs[:, 0].astype(np.int64)
    gap = np.where(np.diff(within, prepend=-1) == 0, np.diff(pairs[:, 1], prepend=0.0), 0.0)
    level = np.full(len(phenotypes), -1, np.int64)
    level[rows] = number.ravel()
    shown = [format_number(value) if words is None else words[int(value) - 1] for value in pairs[:, 1]]
    return Series(within, pairs[:, 1], gap, level, pl.Series("id", shown, dtype=pl.String))


def read_positions(
    phenotypes: Phenotypes, column: str, path: str, rows: np.ndarray
) -> tuple[np.ndarray, Sequence[str] | None]:
    """((rows,) float64 numbers of a column in these records, None), or their places 1, 2, ... in an order of words, and
    those words: of data.order, or of an ordered type.

    DataError for a record without a value, and for words whose order nothing says.
    """
    phenotypes.need(column, path)
    words = _find_words(phenotypes, column)
    if words is None:
        _ask_for_order(phenotypes, column, path, rows)
        values = phenotypes.numbers(column, path)[rows]
    else:
        text = phenotypes.text(column, path).gather(rows)
        places = lookup(text, pl.Series(words, dtype=pl.String))
        unlisted = np.flatnonzero((places.is_null() & text.is_not_null()).to_numpy())
        if unlisted.size:
            problems = [f"found {quoted(text[int(i)])} in column {quoted(column)} ({path})" for i in unlisted[:SHOWN]]
            needed = f"a level that data.order.{column} lists"
            raise refuse_rows(phenotypes.name, phenotypes.rows[rows[unlisted]], problems, needed)
        values = places.cast(pl.Float64).fill_null(np.nan).to_numpy() + 1.0
    _refuse_empty(phenotypes, column, path, rows[np.isnan(values)])
    return values, words


def _find_words(phenotypes: Phenotypes, column: str) -> Sequence[str] | None:
    """The levels of a column from first to last, where data.order or its type says them."""
    if column in phenotypes.order:
        return phenotypes.order[column]
    kind = phenotypes.frame[column].dtype if column in phenotypes.frame.columns else None
    if not isinstance(kind, pl.Enum):
        return None
    words = [word.strip() for word in kind.categories]
    return words if np.isnan(parse_numbers(kind.categories).to_numpy()).any() else None


def _ask_for_order(phenotypes: Phenotypes, column: str, path: str, rows: np.ndarray) -> None:
    """DataError for words alone; a date, and a word among numbers, is refused where numbers are read."""
    text = phenotypes.text(column, path).gather(rows).drop_nulls().unique()
    if len(text) < 2 or not np.isnan(parse_numbers(text).to_numpy()).all() or are_dates(text):
        return
    levels = order_levels(text.to_list(), column, phenotypes.frame[column].dtype, {}, quoted(column)).names
    found = f"{phenotypes.name}: found {counted(len(levels), 'word')} in column {quoted(column)} ({path})"
    if len(levels) > MAX_WORDS_LISTED:
        raise DataError(f"{found}, such as {quoted(levels[0])}; needed numbers")
    numbers = level_numbers(levels)
    instead = "numbers" if numbers is None else f"numbers, as {format_number(numbers[0])} for {quoted(levels[0])}"
    listed = f"{{{quoted(column)}: [{', '.join(map(quoted, levels))}]}}"
    raise DataError(
        f"{found}; needed {instead}, or data.order: {listed}, from first to last, each one step from the next (shown "
        "in the order that would be taken)"
    )


def _refuse_empty(phenotypes: Phenotypes, column: str, path: str, empty: np.ndarray) -> None:
    """DataError for these records, which have no value in the column."""
    if empty.size:
        raise refuse_rows(
            phenotypes.name,
            phenotypes.rows[empty],
            [f"found no value in column {quoted(column)} ({path})"] * SHOWN,
            "one in every record that is correlated with others by it; correct the table or leave these records out",
        )
