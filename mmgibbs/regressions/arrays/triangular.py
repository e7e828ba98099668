"""Triangular systems of several chains at once: for small ones a library call for each chain costs more than the
solution.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.pedigree.kernels import kernel

ONE = np.uint64(1)


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _dot(row, x, m):
    total = 0.0
    for j in range(m):
        total += row[j] * x[j]
    return total


@kernel
def solve_lower_systems(L, x, transposed):
    """x (s, m) becomes L^-1 x, or L'^-1 x, of lower triangular L (s, m, m); both float64 in C order."""
    m = np.uint64(x.shape[1])
    for s in range(np.uint64(x.shape[0])):
        if transposed:
            for r in range(m):
                i = m - ONE - r
                x[s, i] /= L[s, i, i]
                value = x[s, i]
                for j in range(i):
                    x[s, j] -= value * L[s, i, j]
        else:
            for i in range(m):
                x[s, i] = (x[s, i] - _dot(L[s, i], x[s], i)) / L[s, i, i]
