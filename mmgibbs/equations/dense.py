"""Products with the dense block of K^-1, by rows: what a sweep, a quadratic form and C times vectors read of it.

    rows_times(S, first, last, columns, out)              out[i - first] = sum_j S_ij x_j            first <= i < last
    rows_by_stretch(S, first, last, columns, a, b, ...)   the same, the sum over each stretch of a <= j < b by itself
    add_of_rows(S, first, last, columns, a, b, ...)       out[:, j] += sum_i S_ij x_i over these rows, a <= j < b

S (m, m) is symmetric, float64 or float32; reading it is what these products cost. `columns` (k, m) float64 holds x with
the levels of a component side by side. The sums of the first do not depend on which other rows are asked for, those of
the others not on which other columns, if a is a multiple of the stretch: sharing over threads leaves each bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.pedigree.kernels import kernel

STRETCH = 512  # numbers of a row that are read for one component after another: they stay in the cache


class DenseLevels(NamedTuple):
    """The dense block of a term's K^-1, levels in sweep order."""

    positions: np.ndarray  # (m,) int64; one after the other, but in model order
    values: np.ndarray  # (m, m)

    def columns(self, theta: np.ndarray) -> np.ndarray:
        """Select the values of theta (q, ...), sweep order, that the block multiplies, (..., m) float64."""
        rows = theta[self.positions]
        return np.ascontiguousarray(rows.reshape(len(rows), -1).T, dtype=np.float64)

    def diagonal(self) -> np.ndarray:
        """Return the diagonal (m,)."""
        return self.values.diagonal()


@kernel(fastmath={"reassoc", "contract", "nsz"})
def dot(row, x, first, last):
    """sum_j row_j x_j, first <= j < last, float64, of row (m,) and x (m,): in lanes and by fused multiply-adds."""
    total = 0.0
    for j in range(first, last):
        total += np.float64(row[j]) * x[j]
    return total


@kernel
def rows_times(values, first, last, columns, out):
    """See the module: values is S (m, m), columns (k, m); out (last - first, k) float64 is overwritten."""
    k, end, stretch = columns.shape[0], np.uint64(values.shape[1]), np.uint64(STRETCH)
    for i in range(np.uint64(first), np.uint64(last)):
        row, sums = values[i], out[i - np.uint64(first)]
        sums[:] = 0.0
        for start in range(np.uint64(0), end, stretch):
            stop = min(end, start + stretch)
            for c in range(k):
                sums[c] += dot(row, columns[c], start, stop)


@kernel
def rows_by_stretch(values, first, last, columns, a, b, stretch, out):
    """out[i - first, c, s] = sum_j S_ij x_cj over the j of stretch s, a <= j < b; out (rows, k, stretches) float64."""
    k = columns.shape[0]
    for i in range(np.uint64(first), np.uint64(last)):
        row = values[i]
        for s in range(a // stretch, -(-b // stretch)):
            start, stop = np.uint64(s * stretch), np.uint64(min(b, (s + 1) * stretch))
            for c in range(k):
                out[i - np.uint64(first), c, s] = dot(row, columns[c], start, stop)


@kernel
def sum_stretches(parts, stretches, sums_of_later, out):
    """out[i, c] = sums_of_later[c, i] + sum_s parts[i, c, s], s < stretches, of sums_of_later (k, rows)."""
    k, rows = sums_of_later.shape
    for i in range(rows):
        for c in range(k):
            total = sums_of_later[c, i]
            for s in range(stretches):
                total += parts[i, c, s]
            out[i, c] = total


@kernel
def add_of_rows(values, first, last, columns, a, b, stretch, out):
    """See the module: values is S (m, m), columns (k, m); out (k, m) float64 is added to.

    Rows are taken by fours, so that out is read and written once for four of them."""
    k = columns.shape[0]
    begin, end = np.uint64(first), np.uint64(last)
    fours = begin + (end - begin) // np.uint64(4) * np.uint64(4)
    for start in range(np.uint64(a), np.uint64(b), np.uint64(stretch)):
        stop = min(np.uint64(b), start + np.uint64(stretch))
        for i in range(begin, fours, np.uint64(4)):
            for c in range(k):
                add_four(values, i, columns[c], start, stop, out[c])
        for i in range(fours, end):
            for c in range(k):
                add_row(values[i], columns[c, i], start, stop, out[c])


@kernel
def add_of_later_tiles(arrived, me, tile, stretch, values, columns, out):
    """out_cj += sum_i S_ij x_ci over i in the tiles after that of j; this thread's stretches of j."""
    m, threads = values.shape[0], arrived.shape[0] - 1
    for first in range(tile, m, tile):
        for a in range(me * stretch, first, threads * stretch):
            add_of_rows(values, first, min(m, first + tile), columns, a, min(first, a + stretch), stretch, out)


@kernel(fastmath={"contract", "nsz"})
def add_four(values, i, x, first, last, out):
    """out_j += sum of S_lj x_l over the rows l = i ... i + 3, first <= j < last."""
    i_1, i_2, i_3 = i + np.uint64(1), i + np.uint64(2), i + np.uint64(3)
    row_0, row_1, row_2, row_3 = values[i], values[i_1], values[i_2], values[i_3]
    x_0, x_1, x_2, x_3 = x[i], x[i_1], x[i_2], x[i_3]
    for j in range(first, last):
        sum_0 = np.float64(row_0[j]) * x_0 + np.float64(row_1[j]) * x_1
        sum_2 = np.float64(row_2[j]) * x_2 + np.float64(row_3[j]) * x_3
        out[j] += sum_0 + sum_2


@kernel(fastmath={"contract", "nsz"})
def add_row(row, x, first, last, out):
    """out_j += row_j x, first <= j < last."""
    for j in range(first, last):
        out[j] += np.float64(row[j]) * x
