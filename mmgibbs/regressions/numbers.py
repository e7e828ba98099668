"""A response that is measured: one finite number for each row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mmgibbs.errors import DataError
from mmgibbs.regressions.containers import read_array, read_real
from mmgibbs.regressions.predictors import MAX_MAGNITUDE


def read_numbers(response: npt.ArrayLike, n: int, name: str, varying: bool = True) -> np.ndarray:
    """(n,) float64; one that varies where it is to be explained. DataError names the row."""
    y = read_array(response, name, "a number")
    if y.shape != (n,):
        raise DataError(
            f"{name}: found an array of shape {y.shape}, needed one number for each of the {n} rows of predictors"
        )
    y = read_real(y, name)
    bad = np.flatnonzero(~(np.abs(y) <= MAX_MAGNITUDE))  # NaN is
    if bad.size:
        needed = f"a number below {MAX_MAGNITUDE:g} in size" if np.isfinite(y[bad[0]]) else "a finite number"
        raise DataError(f"{name} row {bad[0] + 1}: found {y[bad[0]]}, needed {needed}")
    if varying and np.all(y == y[0]):
        raise DataError(f"{name}: found {y[0]:g} in all {n} rows, needed a response that varies")
    return y
