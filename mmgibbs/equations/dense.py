"""Products with the dense block of K^-1, row by row: what a sweep, a quadratic form and C times vectors read of it.

    rows_times(S, first, last, columns, out)     out[i - first] = sum_j S[i, j] x_j        first <= i < last
    upper_products(S, first, last, columns, out) out += sum_i (x_i (S_ii x_i / 2 + sum_{j > i} S_ij x_j)') over the rows

S (m, m) is symmetric, float64 or float32, and is read once, in rows, which is what these products cost: m^2 numbers for
the first, half of them for the second. `columns` (k, m) float64 holds x with the levels of a component side by side.
A row's sums do not depend on who asks for it, or with which others, so that sharing rows over threads leaves each bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from mmgibbs.machine.kernel_options import ENTRY

STRETCH = np.uint64(2048)  # numbers of a row that are read for one component after another: they stay in the cache


class DenseLevels(NamedTuple):
    """The dense block of a term's K^-1, levels in sweep order."""

    positions: np.ndarray  # (m,) int64; one after the other, but in model order
    values: np.ndarray  # (m, m)

    def columns(self, theta: np.ndarray) -> np.ndarray:
        """(..., m) float64: of theta (q, ...) in sweep order, what the block multiplies."""
        own = theta[self.positions]
        return np.ascontiguousarray(own.reshape(len(own), -1).T, dtype=np.float64)

    def diagonal(self) -> np.ndarray:
        """(m,)."""
        return self.values.diagonal()


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"}, **ENTRY)
def dot(row, x, first, last):
    """sum_j row_j x_j, first <= j < last, float64, of row (m,) and x (m,): in lanes and by fused multiply-adds."""
    total = 0.0
    for j in range(first, last):
        total += np.float64(row[j]) * x[j]
    return total


@njit(cache=True, **ENTRY)
def rows_times(values, first, last, columns, out):
    """See the module: values is S (m, m), columns (k, m); out (last - first, k) float64 is overwritten."""
    k, m = columns.shape
    for i in range(np.uint64(first), np.uint64(last)):
        row, sums = values[i], out[i - np.uint64(first)]
        sums[:] = 0.0
        for start in range(np.uint64(0), np.uint64(m), STRETCH):
            end = min(np.uint64(m), start + STRETCH)
            for c in range(k):
                sums[c] += dot(row, columns[c], start, end)


@njit(cache=True, **ENTRY)
def upper_products(values, first, last, columns, out):
    """See the module: values is S (m, m), columns (k, m); out (k, k) float64 is added to."""
    k, m = columns.shape
    sums = np.empty(k)
    for i in range(np.uint64(first), np.uint64(last)):
        row, after = values[i], i + np.uint64(1)
        for c in range(k):
            sums[c] = 0.5 * np.float64(row[i]) * columns[c, i]
        for start in range(after, np.uint64(m), STRETCH):
            end = min(np.uint64(m), start + STRETCH)
            for c in range(k):
                sums[c] += dot(row, columns[c], start, end)
        for a in range(k):
            for b in range(k):
                out[a, b] += columns[a, i] * sums[b]
