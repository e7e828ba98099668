"""Cholesky factors of small matrices, for compiled loops: A = L L', k from 1 to a few tens.

Column by column, each sum in the order of its terms, so that a factor has the same bits wherever it is made. The two
loops that a sweep lives in have their own (engines/level.py, engines/coloured/lanes.py: unrolled for the very k, side
by side in the lanes of vector instructions), of the same arithmetic as `cholesky_reciprocal`.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.pedigree.kernels import kernel

SINGULAR = 1e-12  # of a diagonal element: an exactly singular matrix leaves a pivot of rounding there, not 0


@kernel(fastmath=False)
def cholesky(A, L, singular):
    """L with L L' = A; the lower triangle of A is read, that of L written, both (k, k) float64.

    False where A is not positive definite: a pivot is not above `singular` times its diagonal element.
    """
    k = A.shape[0]
    for j in range(k):
        d = A[j, j]
        for m in range(j):
            d -= L[j, m] * L[j, m]
        if not d > singular * A[j, j]:
            return False
        L[j, j] = np.sqrt(d)
        for i in range(j + 1, k):
            s = A[i, j]
            for m in range(j):
                s -= L[i, m] * L[j, m]
            L[i, j] = s / L[j, j]
    return True


@kernel(fastmath=False)
def cholesky_reciprocal(A, L, singular):
    """`cholesky` with 1 / l_jj on the diagonal of L, so that there are k divisions and no more, here and in solves.

    A and L (k, k) float64, `singular` and what comes back as there.
    """
    k = A.shape[0]
    for j in range(k):
        d = A[j, j]
        for m in range(j):
            d -= L[j, m] * L[j, m]
        if not d > singular * A[j, j]:
            return False
        L[j, j] = 1.0 / np.sqrt(d)
        for i in range(j + 1, k):
            s = A[i, j]
            for m in range(j):
                s -= L[i, m] * L[j, m]
            L[i, j] = s * L[j, j]
    return True
