"""Columns that mean something together: a time and whether it has ended, cases and of how many.

Neither is certain from a table alone, as the same numbers may be two traits: the analysis file offers them as comments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mmgibbs.draft.columns import Column, split_words
from mmgibbs.draft.roles import COUNTS, STATUS, has_word

TIMES = """day days week weeks month months time times age longevity survival life lifespan lifetime lpl herdlife
    duration stay""".split()
ENDINGS = [*STATUS, *"dead died death failed failure ended removed uncensored cens delta sold".split()]
CASES = [*COUNTS, *"affected ill sick dead died infected positive positives losses deaths successes pregnant".split()]
SIZES = """size n total tested exposed inspected examined treated trials served inseminated inseminations born hatched
    animals""".split()
OTHERS = "dam sire cow mother parity milk calving lambing farrowing first".split()  # age of the dam, days in milk
_TIMES = 10  # different values from which numbers are a time
_STILL = ("cens", "censored", "censoring")  # of a column so named, 1 says that the time goes on


class TimeAndStatus(NamedTuple):
    time: Column
    status: Column
    still: str  # cell of the status that says that the time has not ended
    ended: str

    @property
    def censored_codes(self) -> int:
        """Records whose time has not ended."""
        return int((self.status.text == self.still).sum())


class CasesOfSize(NamedTuple):
    cases: Column
    size: Column

    @property
    def share(self) -> float:
        """Of all cases in all sizes."""
        assert self.cases.numbers is not None and self.size.numbers is not None
        both = ~np.isnan(self.cases.numbers) & ~np.isnan(self.size.numbers)
        return float(self.cases.numbers[both].sum() / self.size.numbers[both].sum())


def time_and_status(columns: Sequence[Column]) -> TimeAndStatus | None:
    """A column of times beside one of 0 and 1 whose name is that of an end; the time nearest before it, else after."""
    for place, status in enumerate(columns):
        if not (_is_binary(status) and has_word(status.name, ENDINGS)):
            continue
        times = [*reversed(columns[:place]), *columns[place + 1 :]]
        time = next((c for c in times if _is_time(c)), None)
        if time is None:
            continue
        zero, event = sorted(status.values(), key=float)
        goes_on = any(word in _STILL for word in split_words(status.name))
        return TimeAndStatus(time, status, *((event, zero) if goes_on else (zero, event)))
    return None


def cases_of_size(columns: Sequence[Column]) -> CasesOfSize | None:
    """Whole numbers that are never above those of another column, one of them named for cases or both for what they
    are; sizes differ from 1 and mostly from the cases."""
    counts = [c for c in columns if c.whole and c.levels > 1 and c.known and not c.years]
    for size in counts:
        for cases in counts:
            if (
                cases is not size
                and has_word(size.name, SIZES)
                and has_word(cases.name, CASES)
                and _is_bounded(cases, size)
            ):
                return CasesOfSize(cases, size)
    return None


def _is_binary(c: Column) -> bool:
    return c.whole and c.levels == 2 and {float(v) for v in c.values()} == {0.0, 1.0}


def _is_time(c: Column) -> bool:
    if c.numbers is None or c.levels < _TIMES or c.years or not has_word(c.name, TIMES) or has_word(c.name, OTHERS):
        return False
    return bool(np.nanmin(c.numbers) >= 0)


def _is_bounded(cases: Column, size: Column) -> bool:
    assert cases.numbers is not None and size.numbers is not None
    both = ~np.isnan(cases.numbers) & ~np.isnan(size.numbers)
    x, n = cases.numbers[both], size.numbers[both]
    return bool(both.any() and (x >= 0).all() and (n >= 1).all() and (x <= n).all() and n.max() > 1 and (x < n).any())
