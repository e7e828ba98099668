"""Products with A, and parts of it, from parents alone: A v = L D L' v, without A itself (Colleau 2002).

L is unit lower triangular, with half a row of each parent in the row of an animal; D has the Mendelian sampling
variances d of relationship.py. This module needs NumPy and Numba only.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.pedigree.errors import PedigreeError
from mmgibbs.pedigree.inbreeding import checked_codes
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.pedigree.relationship import Relatives, as_columns, mendelian_variance


def a_times(sire: np.ndarray, dam: np.ndarray, inbreeding: np.ndarray | None, v: np.ndarray) -> np.ndarray:
    """Multiply A by vectors: A v = L D L' v, by one pass up and one pass down the pedigree [1]_.

    Parameters
    ----------
    sire, dam : ndarray of int32, shape (n,)
        Codes of the parents, parents first; -1 and codes of groups (n and above) are unknown.
    inbreeding : ndarray of float64, shape (n,), or None
        Coefficients of inbreeding; None is F = 0.
    v : ndarray, shape (n,) or (n, k)
        Vectors.

    Returns
    -------
    ndarray of float64, shape of v
        A v.

    References
    ----------
    .. [1] Colleau, J.-J. (2002). An indirect approach to the extensive calculation of relationship coefficients.
        Genetics Selection Evolution 34, 409-421.

    Examples
    --------
    >>> import numpy as np
    >>> from mmgibbs.pedigree import a_times
    >>> sire, dam = np.array([-1, -1, 0], np.int32), np.array([-1, -1, 1], np.int32)
    >>> a_times(sire, dam, None, np.array([0.0, 0.0, 1.0])).tolist()
    [0.5, 0.5, 1.0]
    """
    sire, dam = checked_codes(sire, dam)
    n = sire.size
    F = np.zeros(n) if inbreeding is None else np.ascontiguousarray(inbreeding, dtype=np.float64)
    u = as_columns(v, n).copy()
    _a_times(sire, dam, mendelian_variance(sire, dam, F), u)
    return u.reshape(np.shape(v))


def a_times_relatives(relatives: Relatives, v: np.ndarray) -> np.ndarray:
    """Multiply A by v (n,) or (n, k) as `a_times`, with the Mendelian variances of the structured A^-1."""
    u = as_columns(v, relatives.n_animals).copy()
    _a_times(relatives.sire, relatives.dam, 1.0 / relatives.dinv, u)
    return u.reshape(np.shape(v))


@kernel
def _a_times(sire, dam, d, u):
    n, k = u.shape
    for i in range(n - 1, -1, -1):
        for p in (sire[i], dam[i]):
            if 0 <= p < n:
                for c in range(k):
                    u[p, c] += 0.5 * u[i, c]
    for i in range(n):
        for c in range(k):
            u[i, c] *= d[i]
        for p in (sire[i], dam[i]):
            if 0 <= p < n:
                for c in range(k):
                    u[i, c] += 0.5 * u[p, c]


def relationship_block(
    sire: np.ndarray,
    dam: np.ndarray,
    inbreeding: np.ndarray | None,
    animals: np.ndarray,
    columns: np.ndarray | None = None,
) -> np.ndarray:
    """Compute the relationships among chosen animals, a dense part of A [1]_.

    The passes of `a_times` run over the ancestors of the chosen animals only, in blocks of columns.

    Parameters
    ----------
    sire, dam : ndarray of int32, shape (n,)
        Codes of the parents, parents first; -1 and codes of groups (n and above) are unknown.
    inbreeding : ndarray of float64, shape (n,), or None
        Coefficients of inbreeding; None is F = 0.
    animals : ndarray of int, shape (m,)
        Codes of the chosen animals.
    columns : ndarray of int, default None
        Columns to compute, as positions among the chosen. None computes all of them.

    Returns
    -------
    ndarray of float64, shape (m, m) or (m, len(columns))
        Relationships.

    Raises
    ------
    PedigreeError
        A code is not that of an animal.

    References
    ----------
    .. [1] Colleau, J.-J. (2002). An indirect approach to the extensive calculation of relationship coefficients.
        Genetics Selection Evolution 34, 409-421.

    Examples
    --------
    >>> import numpy as np
    >>> from mmgibbs.pedigree import relationship_block
    >>> sire, dam = np.array([-1, -1, 0], np.int32), np.array([-1, -1, 1], np.int32)
    >>> relationship_block(sire, dam, None, np.array([0, 2])).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    sire, dam = checked_codes(sire, dam)
    animals = np.asarray(animals, dtype=np.int64)
    n, m = sire.size, animals.size
    if m and (animals.min() < 0 or animals.max() >= n):
        raise PedigreeError(f"animal codes must lie in 0 .. {n - 1}, found {animals.min()} .. {animals.max()}")
    F = np.zeros(n) if inbreeding is None else np.asarray(inbreeding, dtype=np.float64)
    keep = with_ancestors(sire, dam, animals)
    number = np.cumsum(keep, dtype=np.int32) - 1
    small_sire, small_dam = (
        np.where((p[keep] >= 0) & (p[keep] < n), number[np.clip(p[keep], 0, n - 1)], -1).astype(np.int32)
        for p in (sire, dam)
    )
    d = mendelian_variance(small_sire, small_dam, F[keep])
    chosen = number[animals]
    chosen_columns = chosen if columns is None else chosen[columns]
    out = np.empty((m, chosen_columns.size))
    block = 16  # columns at a time: 128 bytes per row of u
    for first in range(0, chosen_columns.size, block):
        columns_of_block = chosen_columns[first : first + block]
        u = np.zeros((d.size, columns_of_block.size))
        u[columns_of_block, np.arange(columns_of_block.size)] = 1.0
        _a_times(small_sire, small_dam, d, u)
        out[:, first : first + block] = u[chosen]
    return out


@kernel
def with_ancestors(sire, dam, animals):
    """Mark these animals (codes) and all of their ancestors, (n,) bool."""
    n = sire.size
    keep = np.zeros(n, np.bool_)
    for a in animals:
        keep[a] = True
    for i in range(n - 1, -1, -1):
        if keep[i]:
            for p in (sire[i], dam[i]):
                if 0 <= p < n:
                    keep[p] = True
    return keep
