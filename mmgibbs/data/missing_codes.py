"""Numbers that other programs write where a value is missing: -9, -999.9, 0, 999, 32767.

Read as records they are far from all others, and would make most of the variance of a trait, or most of the slope on a
covariate. They are never taken for missing values without the user's word: here they are only found. Zeros beside small
values are no codes, however many: they are records of healthy animals, or of none of what was counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from mmgibbs.config.text import as_number
from mmgibbs.pedigree.spelling import is_unknown_code
from mmgibbs.pedigree.tables import format_number

_MIN_OTHERS = 10  # values that are needed to say that one is unlike them
_MIN_DISTANCE = 3.0  # standard deviations of the others between a code and the nearest of them
# A 0 beside measurements may be nearer, where it occurs several times and no others are so far from each other.
_MIN_DISTANCE_OF_ZERO, _MIN_GAPS_OF_ZERO = 1.5, 4.0  # standard deviations, and largest gaps between the others
_MIN_DISTANCE_OF_ANY_NUMBER = 2.0  # ranges of the others between them and a number that is no usual code
_MIN_TIMES_OF_ANY_NUMBER = 3  # how often it must occur
_MAX_CODES = 3  # at each end
_MIN_GAP_OF_SCORES = 3.0  # between the code and the nearest score, in the longest step of the others
# Those that are found where they occur once, and how often other usual ones must occur.
_FOUND_ONCE = (0.0, -9.0, -99.0, -999.0, -9999.0, -99999.0, 99.0, 999.0, 9999.0, 99999.0)
_MIN_TIMES_OF_RARER_CODES = 2
_LIMITS = (127, 128, 255, 32767, 32768, 65535, 2147483647, 2147483648, 4294967295)


class Code(NamedTuple):
    """A number that may mean a missing value, and how often it occurs."""

    value: float
    times: int

    @property
    def text(self) -> str:
        return format_number(self.value)


class MissingCodes(NamedTuple):
    """The numbers of a column that may mean a missing value, of how many, and between what the others lie."""

    codes: tuple[Code, ...]
    n: int
    low: float
    high: float

    def describe(self, path: str, column: str, advice: str, where: str = "") -> str:
        """Return 'traits.bwt: 230 of 1,084 values of column 'bwt' are -9, and the others lie from 0.09 to 15.35: ...'.

        where: ' (the first in row 7)'; advice: what to write, as the end of the sentence 'Then ...'.
        """
        first, *further_codes = self.codes
        is_are = "is" if first.times == 1 else "are"
        counts = f"{first.times:,} of {self.n:,} values of column '{column}' {is_are} {first.text}"
        counts += "".join(
            f", {code.times:,} {'is' if code.times == 1 else 'are'} {code.text}" for code in further_codes
        )
        values = " and ".join(code.text for code in self.codes)
        verb = "does" if len(self.codes) == 1 else "do"
        return (
            f"{path}: {counts}{where}, and the others lie from {format_number(self.low)} to "
            f"{format_number(self.high)}: {verb} {values} mean a missing value? Then {advice}"
        )

    def written(self, present: Sequence[str] = ()) -> str:
        """Return "['-9', '-99']", behind those that the key has already."""
        return written_codes((*present, *(code.text for code in self.codes)))

    def rows(self, values: np.ndarray) -> np.ndarray:
        """Return the indices of the values that are codes."""
        return np.flatnonzero(np.isin(values, [code.value for code in self.codes]))


def written_codes(cells: Iterable[str]) -> str:
    """Return the value of a key `missing`."""
    return "[" + ", ".join(f"'{cell}'" for cell in dict.fromkeys(cells)) + "]"


def find_missing_codes(values: np.ndarray) -> MissingCodes | None:
    """Return the numbers among `values` (n,), NaN where missing, that look like codes for a missing value.

    A code is the lowest or the highest number, and far from all that are no codes. How far, and how often it must
    occur, depends on how usual it is as a code (`_is_code`).
    """
    numbers, times = np.unique(values[np.isfinite(values)], return_counts=True)
    n = int(times.sum())
    if n <= _MIN_OTHERS:
        return None
    for n_peeled in range(2 * _MAX_CODES, 0, -1):
        for n_low in range(max(0, n_peeled - _MAX_CODES), min(_MAX_CODES, n_peeled) + 1):
            inner = slice(n_low, max(n_low, len(numbers) - (n_peeled - n_low)))
            codes = _codes_around(numbers, times, inner)
            if codes:
                return MissingCodes(codes, n, float(numbers[inner][0]), float(numbers[inner][-1]))
    return None


def find_score_codes(scores: np.ndarray) -> MissingCodes | None:
    """Return the scores (n,), NaN where missing, that look like codes: 9 or -9 beside whole numbers from 1 to 5."""
    numbers, times = np.unique(scores[np.isfinite(scores)], return_counts=True)
    for at, inner in ((0, slice(1, None)), (-1, slice(0, -1))):
        inner_values = numbers[inner]
        if len(inner_values) < 2 or (inner_values % 1 != 0).any() or not _is_usual(float(numbers[at])):
            continue
        gap = float(np.abs(inner_values - numbers[at]).min())
        skips_zero = numbers[at] < 0 and inner_values[0] >= 1
        if skips_zero or gap >= _MIN_GAP_OF_SCORES * max(1.0, float(np.diff(inner_values).max())):
            codes = (Code(float(numbers[at]), int(times[at])),)
            return MissingCodes(codes, int(times.sum()), float(inner_values[0]), float(inner_values[-1]))
    return None


def looks_like_code(cell: str) -> bool:
    """Return whether a cell, alone, may mean a missing value: a usual number, or what no number is."""
    number = as_number(cell)
    return is_unknown_code(cell, "value") if number is None else _is_usual(float(number))


def explain_codes(cells: Iterable[str], key: str, present: Sequence[str]) -> str:
    """Return '; where -9 means a missing value, write KEY: [...]' of refused cells that look like codes, else ''."""
    codes = [cell for cell in dict.fromkeys(cells) if looks_like_code(cell)]
    if not codes:
        return ""
    mean = "means" if len(codes) == 1 else "mean"
    return f"; where {' and '.join(codes)} {mean} a missing value, write {key}: {written_codes((*present, *codes))}"


def _codes_around(numbers: np.ndarray, times: np.ndarray, inner: slice) -> tuple[Code, ...]:
    """The numbers outside `inner`, if each of them is a code beside those within; else none."""
    if inner.start >= inner.stop:
        return ()
    outside = [*range(inner.start), *range(inner.stop, len(numbers))]
    if inner.start == inner.stop or not all(
        _is_usual(float(numbers[i])) or times[i] >= _MIN_TIMES_OF_ANY_NUMBER for i in outside
    ):
        return ()
    inner_values, times_of_others = numbers[inner], times[inner]
    n_others = int(times_of_others.sum())
    if n_others < _MIN_OTHERS:
        return ()
    mean = float((inner_values * times_of_others).sum() / n_others)
    spread = float(np.sqrt((((inner_values - mean) ** 2) * times_of_others).sum() / n_others))
    if all(_is_code(float(numbers[i]), int(times[i]), inner_values, spread) for i in outside):
        return tuple(Code(float(numbers[i]), int(times[i])) for i in outside)
    return ()


def _is_code(value: float, times: int, inner_values: np.ndarray, spread: float) -> bool:
    """`value` is unlike the inner_values: the only negative number, or far from them."""
    low, high = float(inner_values[0]), float(inner_values[-1])
    distance = low - value if value < low else value - high
    if not _is_usual(value):
        is_repeated = times >= _MIN_TIMES_OF_ANY_NUMBER and len(inner_values) >= _MIN_OTHERS
        return is_repeated and distance > _MIN_DISTANCE_OF_ANY_NUMBER * (high - low)
    if value not in _FOUND_ONCE and times < _MIN_TIMES_OF_RARER_CODES:
        return False
    if value < 0 <= low:
        return value != -1 or bool((inner_values % 1 != 0).any())  # whole numbers may begin at -1
    if value == 0 and low <= 1 and (inner_values % 1 == 0).all():
        return False  # it is counted from 0
    if value == 0 and low > 0 and times >= _MIN_TIMES_OF_RARER_CODES and (inner_values % 1 != 0).any():
        largest_gap = float(np.diff(inner_values).max(initial=0.0))
        if distance > _MIN_DISTANCE_OF_ZERO * spread and distance > _MIN_GAPS_OF_ZERO * largest_gap > 0:
            return True
    return spread > 0 and distance > _MIN_DISTANCE * spread


def _is_usual(value: float) -> bool:
    """0, -1, nines alone (-9, 99, -99.9), sevens or eights alone (88, -888), or the limit of a type of a program."""
    digits = format_number(abs(value)).replace(".", "")
    of_one_digit = set(digits) == {"9"} or (len(digits) > 1 and set(digits) in ({"7"}, {"8"}))
    return value in (0.0, -1.0) or of_one_digit or value in _LIMITS or -value in _LIMITS
