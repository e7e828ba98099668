"""The own block of a supernode: its Cholesky factor, and the inverse of that."""

from __future__ import annotations

import numpy as np

from pedigree.kernels import kernel


@kernel
def cholesky_in_place(P, w, least):
    """The first w rows of P (m, w) float64 become lower triangular, L L' the matrix that was there.

    least (w,): returns -1, or the first row j whose pivot is not above least[j].
    """
    for j in range(w):
        d = P[j, j]
        for k in range(j):
            d -= P[j, k] * P[j, k]
        if not d > least[j]:
            return j
        d = np.sqrt(d)
        P[j, j] = d
        for i in range(j + 1, w):
            s = P[i, j]
            for k in range(j):
                s -= P[i, k] * P[j, k]
            P[i, j] = s / d
            P[j, i] = 0.0
    return -1


@kernel
def inverse_of_lower(P, w):
    """(w, w) inverse of the lower triangle in the first w rows of P (m, w) float64."""
    out = np.zeros((w, w))
    for i in range(w):
        out[i, i] = 1.0 / P[i, i]
        for k in range(i):
            factor = -P[i, k] * out[i, i]
            for j in range(k + 1):
                out[i, j] += factor * out[k, j]
    return out
