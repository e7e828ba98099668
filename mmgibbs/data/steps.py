"""Steps of rows, columns and times: the distance over which an estimated correlation is that of neighbours.

It is one for all classes and traits of a term: a correlation over one hour in one class and over two in another could
not be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from mmgibbs.config.smooth_relationships import Autoregression, Spline
from mmgibbs.data.phenotypes import SHOWN, Phenotypes, refuse_rows
from mmgibbs.data.series import read_positions
from mmgibbs.errors import DataError
from pedigree.tables import format_number, quoted

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
