"""How long a step of known size takes on this machine, roughly: what people are told before it begins."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

import numpy as np

Tell = Callable[[str], None]
SPARSE_SHARE = 0.2  # of the speed of matrix products that sparse factors and solutions reach
SILENT_BELOW_SECONDS = 5.0
MIN_OPERATIONS = 1e8  # for which the speed of products is measured
SECONDS_BETWEEN_LINES = 60.0
_SIDE, _PRODUCTS = 384, 3


def estimate_seconds(operations: float, share: float = SPARSE_SHARE) -> float:
    """Return about how many seconds so many multiplications and additions take at a share of the speed of products.

    0 of fewer than MIN_OPERATIONS: they take less than the measurement of the speed.
    """
    if operations < MIN_OPERATIONS:
        return 0.0
    return operations / (share * _products_per_second())


def describe_duration(seconds: float) -> str:
    """Return ', about 2 min', or '' where nobody would wait."""
    if not seconds >= SILENT_BELOW_SECONDS:
        return ""
    if seconds < 90:
        return f", about {10 * max(1, round(seconds / 10))} s"
    return f", about {round(seconds / 60):,} min" if seconds < 5400 else f", about {seconds / 3600:,.1f} h"


class Lines:
    """Tells how far a loop is, a line a minute."""

    def __init__(self, tell: Tell | None):
        self._tell, self._begin = tell, time.monotonic()
        self._last = self._begin

    def show(self, text: Callable[[float], str]) -> None:
        """text: of the seconds since the loop began."""
        now = time.monotonic()
        if self._tell is not None and now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            self._tell(text(now - self._begin))


@cache
def _products_per_second() -> float:
    """Multiplications and additions per second of a product of matrices, the best of a few."""
    a = np.ones((_SIDE, _SIDE))
    times = []
    for _ in range(_PRODUCTS + 1):
        start = time.perf_counter()
        a @ a
        times.append(time.perf_counter() - start)
    return 2.0 * _SIDE**3 / max(min(times), 1e-6)
