"""Weights of records: a record of weight w counts as w equal records, in every model that has a meaning for it.

    log likelihood = sum_i w_i log p(y_i | x_i, parameters)

Classes are counted, so that their weights are whole numbers: w_i trials in place of one. In a linear regression they
may be any number: w_i is then how precise a record is, as the mean of w_i records with the residual variance sigma^2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mmgibbs.errors import DataError
from mmgibbs.regressions.classes import MAX_TRIALS, read_classes
from mmgibbs.regressions.containers import read_array, read_real


def read_weights(weights: npt.ArrayLike, n: int) -> np.ndarray:
    """(n,) float64, finite, none below 0, not all of them 0. DataError names the row."""
    w = read_real(read_array(weights, "sample_weight", "a number from 0"), "sample_weight", "a number from 0")
    if w.shape != (n,):
        raise DataError(f"sample_weight: found an array of shape {w.shape}, needed ({n},), one for each row")
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        i = int(bad.argmax())
        raise DataError(f"sample_weight row {i + 1}: found {w[i]:g}, needed a number from 0")
    if not w.any():
        raise DataError(f"sample_weight: found weights of zero in all {n} rows, needed a row that counts")
    return w


def weighted_classes(y: np.ndarray, weights: np.ndarray, name: str) -> tuple[np.ndarray, list]:
    """(counts (n, K) int64, classes) of labels (n,) or counts (n, K), each row as often as its weight says."""
    broken = (weights != np.floor(weights)) | (weights > MAX_TRIALS)
    if broken.any():
        i = int(broken.argmax())
        raise DataError(
            f"sample_weight row {i + 1}: found {weights[i]:g}, needed a whole number up to {MAX_TRIALS:,}: "
            "so many records of the class"
        )
    response, classes = read_classes(y, name)
    counts = response if response.ndim == 2 else np.eye(len(classes), dtype=np.int64)[response]
    return counts * weights.astype(np.int64)[:, None], classes
