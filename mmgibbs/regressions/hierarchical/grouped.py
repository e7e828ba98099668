"""The observations of a hierarchical model, packed group by group, with the sums over each group that samplers need.

A group's rows lie together, column by column, so that one coordinate of one group is one stretch of memory. Within a
group the order is that of the table; the groups are numbered as numpy.unique sorts their labels. Whatever the order of
the table between groups, the packed arrays, and so the chain, are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mmgibbs.errors import DataError
from mmgibbs.regressions.predictors import Predictors, read_predictors
from mmgibbs.regressions.protocol import GroupPredictors


class Groups(NamedTuple):
    """G groups, n observations, D coordinates: the p columns of X, then 1 for the intercept; x = (column - centre) *
    factor."""

    columns: np.ndarray  # (n D,) the type of X: group i is columns[D ptr[i] : D ptr[i+1]] read as (D, n_i)
    ptr: np.ndarray  # (G + 1,) int64
    centre: np.ndarray  # (D,) float64
    factor: np.ndarray  # (D,) float64
    trials: np.ndarray  # (n,) float64: 1 for labels and for counts of a Poisson
    cross: np.ndarray  # (G, M, D) float64: sum of x y, for each of the M classes with coefficients
    sums: np.ndarray  # (G, D) float64: sum of t x
    sizes: np.ndarray  # (G, D) float64: sum of t |x|
    squares: np.ndarray  # (G, D) float64: sum of t x^2
    reach: np.ndarray  # (G, D) float64: max |x|
    fifth: np.ndarray  # (G, D) float64: sum of t |x|^5


def read_groups(groups: npt.ArrayLike | None, n: int) -> tuple[np.ndarray, list]:
    """(codes (n,) int64, labels in sorted order). DataError for a wrong length or a missing label (row named)."""
    if groups is None:
        raise DataError("groups: found nothing, needed the label of a group for each row")
    groups = np.asarray(groups)
    if groups.shape != (n,):
        raise DataError(
            f"groups: found an array of shape {groups.shape}, needed ({n},), a label for each row of the predictors"
        )
    missing = np.array([v is None or v != v for v in groups]) if groups.dtype.kind in "OfM" else np.zeros(n, bool)
    if missing.any():
        i = int(missing.argmax())
        raise DataError(f"groups row {i + 1}: found {groups[i]}, needed the label of a group")
    try:
        labels, codes = np.unique(groups, return_inverse=True)
    except TypeError:
        raise DataError(
            "groups: found labels of several types, needed labels that can be sorted (texts or numbers)"
        ) from None
    return codes.astype(np.int64), labels.tolist()


def read_group_predictors(values: GroupPredictors, labels: list) -> tuple[np.ndarray, list[str]]:
    """Z (G, 1 + q), its first column 1, and the names of its columns.

    values: None, an array or frame (G, q) in the order of the sorted labels, or a mapping label -> q values. DataError
    where a group has no values, or values represent a group without observations.
    """
    G = len(labels)
    if values is None:
        return np.ones((G, 1)), ["intercept"]
    if isinstance(values, Mapping):
        unknown = [label for label in values if label not in set(labels)]
        if unknown:
            raise DataError(
                f"group_predictors: group {unknown[0]!r} has no observations, needed at least one row with this "
                "label in groups"
            )
        lacking = [label for label in labels if label not in values]
        if lacking:
            raise DataError(
                f"group_predictors: found no values for group {lacking[0]!r}, needed them for each of the {G} groups"
            )
        values = as_rows([np.atleast_1d(values[label]) for label in labels])
    elif not hasattr(values, "columns"):
        values = as_rows(values)
    Z = read_predictors(values, None if hasattr(values, "columns") else [f"z{k}" for k in range(values.shape[-1])])
    if Z.n > G:
        raise DataError(
            f"group_predictors: found {Z.n} rows, needed {G}, one for each group that has observations: {Z.n - G} "
            f"{'has' if Z.n - G == 1 else 'have'} none"
        )
    if Z.n < G:
        raise DataError(
            f"group_predictors: found {Z.n} rows, needed {G}, one for each group in sorted order of the labels"
        )
    return np.column_stack([np.ones(G), Z.values.astype(np.float64)]), ["intercept", *Z.names]


def as_rows(values: npt.ArrayLike) -> np.ndarray:
    """(G, q); one column of values that stand alone. DataError for what is no table."""
    try:
        rows = np.asarray(values)
    except (TypeError, ValueError):
        raise DataError("group_predictors: found rows of different lengths, needed as many values in each") from None
    if rows.ndim not in (1, 2):
        raise DataError(f"group_predictors: found an array of shape {rows.shape}, needed a row for each group")
    return rows[:, None] if rows.ndim == 1 else rows


def read_rows(values: npt.ArrayLike, n: int) -> np.ndarray:
    """(n, q) float64 for n rows of new data. DataError names the row."""
    rows = read_predictors(as_rows(values)).values
    if len(rows) != n:
        raise DataError(f"group_predictors: found {len(rows)} rows, needed {n}, one for each row to be predicted")
    return rows.astype(np.float64)


def pack(
    predictors: Predictors,
    codes: np.ndarray,
    successes: np.ndarray,
    trials: np.ndarray,
    real: npt.DTypeLike = np.float64,
) -> Groups:
    """Groups of the rows with these codes; successes (n, M) and trials (n,) in the order of the table.

    real: the widest type in which columns are kept; narrower ones stay as they are. DataError where memory lacks for
    the copy.
    """
    n, D, M = predictors.n, predictors.p + 1, successes.shape[1]
    ptr = np.concatenate([[0], np.cumsum(np.bincount(codes))]).astype(np.int64)
    order = np.argsort(codes, kind="stable")
    kept = predictors.values.dtype if predictors.values.dtype.itemsize < np.dtype(real).itemsize else np.dtype(real)
    try:
        columns = np.empty(n * D, kept)
    except MemoryError:
        raise DataError(
            f"predictors: packed by group they need {n * D * kept.itemsize / 1e9:,.1f} GB, more than there is; "
            "needed fewer rows or a narrower type"
        ) from None
    G = len(ptr) - 1
    centre, factor = np.append(predictors.centre, 0.0), np.append(1 / predictors.scale, 1.0)
    cross, (sums, sizes, squares, reach, fifth) = np.empty((G, M, D)), np.empty((5, G, D))
    for i, (a, b) in enumerate(zip(ptr[:-1], ptr[1:], strict=True)):
        rows = order[a:b]
        block = columns[D * a : D * b].reshape(D, b - a)
        block[:-1], block[-1] = predictors.values[rows].T, 1
        x, t = (block - centre[:, None]) * factor[:, None], trials[rows]
        cross[i] = (x @ successes[rows]).T
        size = np.abs(x)
        sums[i], sizes[i], squares[i], reach[i], fifth[i] = x @ t, size @ t, x**2 @ t, size.max(1), size**5 @ t
    return Groups(
        columns, ptr, centre, factor, trials[order].astype(np.float64), cross, sums, sizes, squares, reach, fifth
    )
