"""Numbers that other programs write where a value is missing: -9, -999, 0, 999.

Read as records they are far from all others, and would make most of the variance of a trait, or most of the slope on a
covariate. They are never taken for missing values without the user's word: here they are only found. Zeros beside small
values are no codes, however many: they are records of healthy animals, or of none of what was counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

BELOW = (-9.0, -99.0, -999.0, -9999.0, -99999.0)
ABOVE = (99.0, 999.0, 9999.0, 99999.0)
_OTHERS = 10  # values that are needed to say that one is unlike them
_FAR = 3.0  # standard deviations of the others between a code and the nearest of them


class Code(NamedTuple):
    """A value that may mean a missing one, how often it occurs, and between what the others lie."""

    value: float
    times: int
    low: float
    high: float

    def described(self, trait: str, column: str, n: int, where: str = "") -> str:
        """'traits.bwt: 230 of 1,084 values of column 'bwt' are -9, the others lie from 0.09 to 15.35: ...'."""
        asked = self._asked(f"traits.{trait}", column, n, where)
        return f"{asked} Then write traits.{trait}.missing: ['{self.value:g}']"

    def described_of_numbers(self, path: str, column: str, n: int, where: str, missing: Sequence[str]) -> str:
        """The same of a covariate or a weight, at a YAML path; missing: data.missing as it is."""
        written = ", ".join(f"'{m}'" for m in dict.fromkeys((*missing, f"{self.value:g}")))
        return (
            f"{self._asked(path, column, n, where)} Then correct these records or leave them out, as each needs a "
            f"value there (data.missing: [{written}], which holds for every column, names their rows)"
        )

    def described_of_responses(self, column: str, n: int, where: str, missing: Sequence[str]) -> str:
        """The same of the response of a regression, whose records are left out where it is missing."""
        written = ", ".join(f"'{m}'" for m in dict.fromkeys((*missing, f"{self.value:g}")))
        asked = self._asked("model.response", column, n, where)
        return f"{asked} Then write data.missing: [{written}], which holds for every column"

    def _asked(self, path: str, column: str, n: int, where: str) -> str:
        are = "is" if self.times == 1 else "are"
        return (
            f"{path}: {self.times:,} of {n:,} values of column '{column}' {are} {self.value:g}{where}, and the "
            f"others lie from {self.low:g} to {self.high:g}: does {self.value:g} mean a missing value?"
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
        if len(others) >= _OTHERS and _unlike(code, others):
            return Code(code, len(known) - len(others), float(others.min()), float(others.max()))
    return None


def _unlike(code: float, others: np.ndarray) -> bool:
    """`code` lies far from the others, or is the only negative number."""
    if code < 0 <= others.min():
        return True
    if code == 0 and others.min() <= 1 and (others % 1 == 0).all():
        return False  # it is counted from 0
    spread = float(others.std())
    return spread > 0 and float(np.abs(others - code).min()) > _FAR * spread
