"""The observations of a hierarchical model, packed group by group, with the sums over each group that samplers need.

A group's rows lie together, column by column, so that one coordinate of one group is one stretch of memory. Within a
group the order is that of the table; the groups are numbered as numpy.unique sorts their labels. Whatever the order of
the table between groups, the packed arrays, and so the chain, are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mmgibbs.errors import DataError
from mmgibbs.regressions.containers import (
    Frame,
    comparable_labels,
    is_frame,
    label_array,
    missing_rows,
    python_labels,
    read_array,
    with_masks,
)
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
    groups = read_array(groups, "groups", "the label of a group")
    if groups.shape != (n,):
        raise DataError(
            f"groups: found an array of shape {groups.shape}, needed ({n},), a label for each row of the predictors"
        )
    missing = missing_rows(groups)
    if missing.any():
        i = int(missing.argmax())
        raise DataError(f"groups row {i + 1}: found {groups[i]}, needed the label of a group")
    try:
        labels, codes = np.unique(groups, return_inverse=True)
    except TypeError:
        raise DataError(
            "groups: found labels of several types, needed labels that can be sorted (texts or numbers)"
        ) from None
    return codes.astype(np.int64), python_labels(labels)


def read_group_predictors(values: GroupPredictors, labels: list) -> tuple[np.ndarray, list[str]]:
    """Z (G, 1 + q), its first column 1, and the names of its columns.

    values: None; an array or frame (G, q) in the order of the sorted labels; a mapping label -> q values; or a frame or
    series of pandas whose index has the labels, in any order. DataError where a group has no values, or values
    represent a group without observations.
    """
    G = len(labels)
    if values is None:
        return np.ones((G, 1)), ["intercept"]
    of_rows = _labels_of_rows(values)
    order = None if of_rows is None else _rows_of_groups(of_rows, labels)
    if is_frame(values):
        Z = read_predictors(values, what="group_predictors")
    else:
        rows = [np.atleast_1d(row) for row in values.values()] if isinstance(values, Mapping) else values
        table = as_rows(rows)
        Z = read_predictors(table, default_group_names(table.shape[-1]), what="group_predictors")
    if Z.n > G:
        raise DataError(
            f"group_predictors: found {Z.n} rows, needed {G}, one for each group that has observations: {Z.n - G} "
            f"{'has' if Z.n - G == 1 else 'have'} none"
        )
    if Z.n < G:
        raise DataError(
            f"group_predictors: found {Z.n} rows, needed {G}, one for each group in sorted order of the labels"
        )
    z = Z.values if order is None else Z.values[order]
    return np.column_stack([np.ones(G), z.astype(np.float64)]), ["intercept", *Z.names]


def default_group_names(q: int) -> list[str]:
    """Name the columns of group predictors without names."""
    return [f"z{k}" for k in range(q)]


def _labels_of_rows(values: Any) -> list[Any] | None:
    """List the groups of the rows: the keys of a mapping, or the index of pandas where it is not 0, 1, 2, ..."""
    if isinstance(values, Mapping):
        return list(values)
    index = getattr(values, "index", None)
    if index is None or callable(index):
        return None
    array = np.asarray(index)
    if array.dtype.kind in "iu" and np.array_equal(array, np.arange(len(array))):
        return None
    return python_labels(array)


def _rows_of_groups(of_rows: list[Any], labels: list[Any]) -> list[int]:
    """The row of each group, in the order of the labels."""
    named, wanted = comparable_labels(label_array(of_rows)), comparable_labels(label_array(labels))
    rows = {label: i for i, label in enumerate(named)}
    known = set(wanted)
    if not known & set(named):
        raise DataError(
            f"group_predictors: the rows are named {_few(of_rows)}, needed the labels of groups: {_few(labels)}; or a "
            "table without an index, such as z.to_numpy(), of rows in the sorted order of the labels"
        )
    if len(rows) < len(named):
        twice = next(label for i, label in enumerate(of_rows) if rows[named[i]] != i)
        raise DataError(f"group_predictors: found group {twice!r} twice, needed one row for each group")
    unknown = [of_rows[i] for i, label in enumerate(named) if label not in known]
    if unknown:
        raise DataError(
            f"group_predictors: group {unknown[0]!r} has no observations, needed at least one row with this "
            "label in groups"
        )
    lacking = [labels[i] for i, label in enumerate(wanted) if label not in rows]
    if lacking:
        raise DataError(
            f"group_predictors: found no values for group {lacking[0]!r}, needed them for each of the {len(labels)} "
            "groups"
        )
    return [rows[label] for label in wanted]


def _few(labels: list[Any], most: int = 3) -> str:
    return ", ".join(map(repr, labels[:most])) + (", ..." if len(labels) > most else "")


def as_rows(values: Any) -> np.ndarray:
    """(G, q); one column of values that stand alone; masks stay. DataError for what is no table."""
    try:
        rows = np.asanyarray(with_masks(values))
    except (TypeError, ValueError):
        raise DataError("group_predictors: found rows of different lengths, needed as many values in each") from None
    if rows.ndim not in (1, 2):
        raise DataError(f"group_predictors: found an array of shape {rows.shape}, needed a row for each group")
    return rows[:, None] if rows.ndim == 1 else rows


def read_rows(values: npt.ArrayLike | Frame, n: int, names: Sequence[str] | None = None) -> np.ndarray:
    """(n, q) float64 for n rows of new data. DataError names the row.

    names: of the fitted columns, by which those of a frame are taken.
    """
    if is_frame(values) and names is not None and list(names) != default_group_names(len(names)):
        q = len(names)
        fitted = Predictors(np.empty((0, q)), tuple(names), np.zeros(q), np.ones(q))
        rows = read_predictors(values, like=fitted, what="group_predictors").values
    else:
        values = values if is_frame(values) else as_rows(values)
        rows = read_predictors(values, what="group_predictors").values
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
