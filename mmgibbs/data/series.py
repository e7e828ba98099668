"""Places of records along a line: times of animals, rows of fields, the points of a curve; numbers or ordered words.

Steps of rows, columns and times: the distance over which an estimated correlation is that of neighbours.

It is one for all classes and traits of a term: a correlation over one hour in one class and over two in another could
not be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from mmgibbs.config.orders import level_numbers
from mmgibbs.config.smooth_relationships import Autoregression, Spline
from mmgibbs.data.dates import are_dates
from mmgibbs.data.levels import code_levels, lookup, order_levels
from mmgibbs.data.phenotypes import SHOWN, Phenotypes, refuse_rows
from mmgibbs.errors import DataError
from mmgibbs.pedigree.spelling import parse_numbers
from mmgibbs.pedigree.tables import counted, format_number, quoted

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


_TOLERANCE = 1e-9  # of two distances that are one


class Placed(NamedTuple):
    """Records that a relationship places in rows, columns or time, within classes."""

    phenotypes: Phenotypes
    path: str  # of the relationship in the YAML
    spec: Autoregression | Spline
    rows: np.ndarray  # (r,) the records, as rows of the table
    group: np.ndarray  # (n,) int64 class of each record of the table
    names: pl.Series  # of the classes


class Distances(NamedTuple):
    """Distances of successive values within classes."""

    size: np.ndarray  # (m,)
    low: np.ndarray  # (m,) the first value of each two
    group: np.ndarray  # (m,) int64 class
    names: pl.Series  # of the classes

    def describe(self, i: int) -> str:
        """'12 and 12.01 in c7'."""
        name = self.names[int(self.group[i])]
        values = f"{format_number(self.low[i])} and {format_number(self.low[i] + self.size[i])}"
        return f"{values} in {quoted(name)}" if name else values


class Step(NamedTuple):
    """The step of one column."""

    column: str
    length: float
    is_stated: bool = False
    pair: str | None = None  # the single pair of values whose distance sets it
    usual: float = 1.0  # median distance


class FoundSteps(NamedTuple):
    """Steps, and what to say of them."""

    of: Mapping[str, Step]  # key (row, column, time) -> its step
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()

    @property
    def lengths(self) -> dict[str, float]:
        """Column -> its step, for run.json."""
        return {step.column: step.length for step in self.of.values()}


def find_distances(placed: Placed) -> dict[str, Distances]:
    """Return key (row, column, time) -> distances in these records."""
    phenotypes, path, spec, rows, group, names = placed
    found = {}
    for key in ("row", "column", "time"):
        column = getattr(spec, key, None)
        if column is None:
            continue
        values = read_positions(phenotypes, column, f"{path}.{key}", rows)[0]
        if key != "time":
            _refuse_fractions(phenotypes, column, f"{path}.{key}", rows, values)
        pairs = np.unique(np.column_stack([group[rows], values]), axis=0)
        follows = np.diff(pairs[:, 0]) == 0
        size, low = _round(np.diff(pairs[:, 1])[follows]), pairs[:-1, 1][follows]
        found[key] = Distances(size, low, pairs[:-1, 0][follows].astype(np.int64), names)
    return found


def choose_steps(
    spec: Autoregression | Spline, path: str, name: str, several: Sequence[Mapping[str, Distances]]
) -> dict[str, Step]:
    """Return key -> step, from the distances of every class and trait; name: of the table.

    Of times it is the smallest distance, of rows and columns the largest number that divides all of them.
    DataError for distances of rows or columns that a stated step does not divide.
    """
    steps, stated = {}, getattr(spec, "stated_steps", {})
    for key in ("row", "column", "time"):
        parts = [distances[key] for distances in several if key in distances]
        if not parts:
            continue
        column, sizes = getattr(spec, key), np.concatenate([part.size for part in parts])
        usual = float(np.median(sizes)) if sizes.size else 1.0
        if key in stated:
            steps[key] = Step(column, stated[key], True, usual=usual)
            if key != "time":
                _refuse_indivisible(parts, steps[key], f"{name}: ", f"{path}.step")
        elif not sizes.size:
            steps[key] = Step(column, 1.0)
        else:
            length = float(sizes.min()) if key == "time" else float(np.gcd.reduce(sizes.astype(np.int64)))
            steps[key] = Step(column, length, pair=_find_single_pair(key, parts, length), usual=usual)
    return steps


def _find_single_pair(key: str, parts: Sequence[Distances], length: float) -> str | None:
    """The two values without which the step would be a longer one."""
    for part, distances in enumerate(parts):
        rest = [other.size for n, other in enumerate(parts) if n != part]
        _, first, counts = np.unique(distances.size, return_index=True, return_counts=True)
        for i in np.flatnonzero(counts == 1):
            others = np.concatenate([*rest, np.delete(distances.size, first[i])])
            if not others.size:
                continue
            without = others.min() if key == "time" else np.gcd.reduce(others.astype(np.int64))
            if without > length * (1 + _TOLERANCE):
                return distances.describe(int(first[i]))
            if key == "time":
                break  # a longer distance sets no smallest one
    return None


def describe_steps(
    spec: Autoregression | Spline, steps: Mapping[str, Step], path: str, several: Sequence[Mapping[str, Distances]]
) -> FoundSteps:
    """The steps with notes and warnings on those that the records set; path: of the relationship."""
    notes, warnings = [], []
    for key, step in steps.items():
        length, usual = format_number(step.length), format_number(step.usual)
        if key == "time" and not step.is_stated:
            notes.append(
                f"{path}: rho is the correlation over a step of {length} of {step.column}, the smallest distance of "
                "two times (step: LENGTH sets another)"
            )
        elif key != "time" and step.length != 1 and not step.is_stated:
            advice = f" (step: {{{key}: 1}} counts those between as {key}s without records)"
            notes.append(
                f"{path}: {key}s are numbered in steps of {length} (column {quoted(step.column)}), so that {key}s "
                f"{length} apart are neighbours{advice if isinstance(spec, Autoregression) else ''}"
            )
        # where distances are irregular, a single pair has the smallest one, which is then close to the usual one
        if step.pair is not None and 2 * step.length <= step.usual:
            warnings.append(
                f"{path}: a single pair of {key}s sets the step of {step.column}, {length}: {step.pair}; the median "
                f"distance is {usual}; is it a slip?"
                + (f" step: {usual} gives the correlation over {usual}" if key == "time" else "")
            )
        if key != "time":
            warnings += _warn_of_coarse_trials(key, step, path, several)
    return FoundSteps(steps, notes, warnings)


def find_steps(placed: Placed) -> FoundSteps:
    """Find the steps of one relationship."""
    spec, path, distances = placed.spec, placed.path, [find_distances(placed)]
    return describe_steps(spec, choose_steps(spec, path, placed.phenotypes.name, distances), path, distances)


def _warn_of_coarse_trials(key: str, step: Step, path: str, several: Sequence[Mapping[str, Distances]]) -> list[str]:
    """A warning for the trials that are numbered in longer steps than the others, whose neighbours count as apart."""
    coarse: list[str] = []
    for size, _, group, names in (distances[key] for distances in several if key in distances):
        n = np.bincount(group, minlength=len(names))
        low, high = np.full(len(names), np.inf), np.zeros(len(names))
        np.minimum.at(low, group, size)
        np.maximum.at(high, group, size)
        is_coarse = (n > 1) & (low == high) & (low > step.length)
        coarse += [f"{quoted(names[int(i)])} (by {format_number(low[i])})" for i in np.flatnonzero(is_coarse)]
    if not coarse:
        return []
    coarse = list(dict.fromkeys(coarse))
    more = ", ..." if len(coarse) > SHOWN else ""
    return [
        f"{path}: the {key}s of {', '.join(coarse[:SHOWN])}{more} are numbered in longer steps than "
        f"{format_number(step.length)}, that of all: their neighbouring {key}s count as further apart; where they are "
        "next to each other, number them in the same way"
    ]


def _round(distances: np.ndarray) -> np.ndarray:
    """Distances without what subtraction leaves of decimal fractions: 0.3 - 0.2 is 0.1."""
    largest = float(distances.max(initial=0.0))
    if largest == 0:
        return distances
    rounded = np.round(distances, 9 - int(np.floor(np.log10(largest))))
    return np.where(rounded == 0, distances, rounded)


def _refuse_fractions(phenotypes: Phenotypes, column: str, path: str, rows: np.ndarray, values: np.ndarray) -> None:
    wrong = np.flatnonzero(values != np.round(values))
    if wrong.size:
        problems = [f"found {format_number(values[i])} in column {quoted(column)} ({path})" for i in wrong[:SHOWN]]
        needed = "a whole number that counts the rows or columns of the field"
        raise refuse_rows(phenotypes.name, phenotypes.rows[rows[wrong]], problems, needed)


def _refuse_indivisible(parts: Sequence[Distances], step: Step, name: str, path: str) -> None:
    for part in parts:
        wrong = np.flatnonzero(part.size % step.length != 0)
        if wrong.size:
            i = int(wrong[0])
            raise DataError(
                f"{name}column {quoted(step.column)}: found {part.describe(i)}, which are no whole number of steps of "
                f"{format_number(step.length)} apart ({path}); needed a step that divides all distances"
            )
