"""The order in which equations are eliminated: minimum degree (Liu 1985), as SuperLU has it."""

from __future__ import annotations

import numpy as np
import scipy

MIN_EQUATIONS_DENSE_LAST = 50_000  # fewer are ordered in no time, and draws keep their bits


def minimum_degree(pattern: scipy.sparse.csr_array) -> np.ndarray:
    """(n,) int64 the equations in the order of their elimination: minimum degree on the pattern.

    Of many equations, those that are joined to more than sqrt(n) others (sex, age, large contemporary groups) come
    last, as they would anyhow: to look for it at each step is most of the time that an order takes (Amestoy, Davis &
    Duff 1996).
    """
    n = pattern.shape[0]
    degree = np.diff(pattern.indptr)
    is_dense = degree > np.sqrt(n)
    if n < MIN_EQUATIONS_DENSE_LAST or not is_dense.any():
        return _order_by_superlu(pattern)
    sparse, dense = np.flatnonzero(~is_dense), np.flatnonzero(is_dense)
    first = sparse[_order_by_superlu(pattern[sparse][:, sparse])]
    return np.concatenate([first, dense[np.argsort(degree[dense], kind="stable")]])


def _order_by_superlu(pattern: scipy.sparse.csr_array) -> np.ndarray:
    """SuperLU orders before it factorises; asked for a factor without fill, it does little else. The values that it
    sees make any pivot on the diagonal a good one.
    """
    from scipy.sparse.linalg import spilu

    n = pattern.shape[0]
    if n <= 1:
        return np.zeros(n, np.int64)
    row = np.repeat(np.arange(n), np.diff(pattern.indptr))
    dominant = np.diff(pattern.indptr).astype(float) + 1.0
    values = np.where(row == pattern.indices, dominant[row], -1.0)
    matrix = scipy.sparse.csc_array(
        (values, pattern.indices.astype(np.int32), pattern.indptr.astype(np.int32)), shape=(n, n)
    )  # symmetric: rows are columns
    lu = spilu(
        matrix,
        drop_tol=1.0,
        fill_factor=1.0,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.argsort(lu.perm_c).astype(np.int64)
