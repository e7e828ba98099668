"""The response of a classifier: labels of any type, or counts, in codes 0 ... K - 1 and with their classes kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mmgibbs.errors import DataError
from mmgibbs.regressions.containers import missing_rows, python_labels, read_array, read_real

MAX_TRIALS = 2**31 - 1  # of one class in one row


def read_classes(y: npt.ArrayLike, name: str = "response") -> tuple[np.ndarray, list[Any]]:
    """(codes, classes) of labels (n,), or (counts, classes) of counts (n, K).

    Labels (numbers, truth values, texts, dates) give codes (n,) int64 into `classes`, the different labels in sorted
    order. Counts, K >= 2 columns of whole numbers from 0, give themselves as (n, K) int64, and as classes the columns'
    names where `name` lists them ("calves, lambs"), else 0 ... K - 1; row i has n_i = sum_j y_ij trials. The last class
    is the reference, the one whose coefficients are 0.
    DataError for a missing or infinite label and for a count that is negative or not whole (row named), for rows of no
    trials alone, for a single class, and for measurements where labels are needed.
    """
    y = read_array(y, name, "a class label")
    if y.ndim not in (1, 2) or (y.ndim == 2 and y.shape[1] < 2):
        got = f"an array of shape {y.shape}"
        raise DataError(f"{name}: found {got}, needed labels (n,) or counts (n, K) of at least 2 classes")
    if len(y) == 0:
        raise DataError(f"{name}: found no rows, needed at least one for each of two classes")
    return _labels(y, name) if y.ndim == 1 else _counts(y, name)


def _labels(y: np.ndarray, name: str) -> tuple[np.ndarray, list[Any]]:
    unusable = missing_rows(y) | (np.isinf(y) if y.dtype.kind in "fc" else False)
    if unusable.any():
        i = int(unusable.argmax())
        raise DataError(f"{name} row {i + 1}: found {y[i]}, needed a class label")
    if y.dtype.kind == "O":
        try:
            classes = _sorted(set(y.tolist()))
        except TypeError:
            raise DataError(f"{name}: found {y[0]!r} in row 1, needed labels of classes: numbers or texts") from None
        code = {label: k for k, label in enumerate(classes)}
        codes = np.array([code[v] for v in y.tolist()])
    else:
        labels, codes = np.unique(y, return_inverse=True)
        classes = python_labels(labels)
    if len(classes) == 1:
        raise DataError(f"{name}: found the single class {classes[0]!r} in all {len(y)} rows, needed at least two")
    if y.dtype.kind == "f" and 2 < len(y) == len(classes) and (y != np.floor(y)).any():
        raise DataError(
            f"{name}: found a different number in each of the {len(y)} rows, such as {y[0]:g}: continuous "
            "measurements; needed labels of classes"
        )
    return codes.astype(np.int64), classes


def _counts(y: np.ndarray, name: str) -> tuple[np.ndarray, list[Any]]:
    needed = "counts, whole numbers from 0"
    if y.dtype.kind not in "buifO":
        raise DataError(f"{name}: found a table of type {y.dtype}, needed {needed}")
    y = read_real(y, name, needed) if y.dtype.kind == "O" else y
    with np.errstate(invalid="ignore"):
        bad = (
            ~((y >= 0) & (y <= MAX_TRIALS) & (y == np.floor(y))) if y.dtype.kind == "f" else (y < 0) | (y > MAX_TRIALS)
        )
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise DataError(
            f"{name} row {i + 1}, class {j + 1}: found {y[i, j]}, needed a count, a whole number from 0 to "
            f"{MAX_TRIALS:,}"
        )
    counts = y.astype(np.int64)
    used = np.flatnonzero(counts.sum(axis=0))
    if used.size == 0:
        raise DataError(
            f"{name}: found counts of 0 in all {len(y)} rows, needed at least one trial for each of two classes"
        )
    if used.size == 1:
        raise DataError(f"{name}: found the single class {used[0] + 1} in all trials, needed at least two")
    names = name.split(", ")
    return counts, names if len(names) == y.shape[1] else list(range(y.shape[1]))


def _sorted(labels: set) -> list:
    """Sort labels in their own order where they have one, else by type and text."""
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda v: (type(v).__name__, str(v)))
