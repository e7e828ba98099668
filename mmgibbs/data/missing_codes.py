"""Numbers that other programs write where a value is missing: -9, -999, 0, 999.

Read as records they are far from all others, or more frequent than any value that was measured, and would make most of
the variance of a trait. They are never taken for missing values without the user's word: here they are only found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

BELOW = (-9.0, -99.0, -999.0, -9999.0, -99999.0)
ABOVE = (99.0, 999.0, 9999.0, 99999.0)
_OTHERS = 10  # values that are needed to say that one is unlike them
_FAR = 3.0  # standard deviations of the others between a code and the nearest of them
_SPIKE = 10  # times as many zeros as there are of any other value
_OF_A_SPIKE = 5  # zeros, at least


class Code(NamedTuple):
    """A value that may mean a missing one, how often it occurs, and between what the others lie."""

    value: float
    times: int
    low: float
    high: float

    def described(self, trait: str, column: str, n: int, where: str = "") -> str:
        """'traits.bwt: 230 of 1,084 values of column 'bwt' are -9, the others lie from 0.09 to 15.35: ...'."""
        are = "is" if self.times == 1 else "are"
        return (
            f"traits.{trait}: {self.times:,} of {n:,} values of column '{column}' {are} {self.value:g}{where}, and the "
            f"others lie from {self.low:g} to {self.high:g}: does {self.value:g} mean a missing value? Then write "
            f"traits.{trait}.missing: ['{self.value:g}']"
        )


def missing_code(values: np.ndarray) -> Code | None:
    """The number among `values` (n,), NaN where missing, that looks like a code for a missing value."""
    known = values[np.isfinite(values)]
    if len(known) <= _OTHERS:
        return None
    low, high = float(known.min()), float(known.max())
    for code in (low, high):
        if code not in (0.0, *BELOW) if code == low else code not in ABOVE:
            continue
        others = known[known != code]
        if len(others) >= _OTHERS and _unlike(code, others, len(known) - len(others)):
            return Code(code, len(known) - len(others), float(others.min()), float(others.max()))
    return None


def _unlike(code: float, others: np.ndarray, times: int) -> bool:
    """`code` lies far from the others, is the only negative number, or occurs as often as no measurement does."""
    if code < 0 <= others.min():
        return True
    spread = float(others.std())
    if spread > 0 and float(np.abs(others - code).min()) > _FAR * spread:
        return True
    if code != 0 or times < _OF_A_SPIKE or others.min() < 0:
        return False
    return times >= _SPIKE * int(np.unique(others, return_counts=True)[1].max())
