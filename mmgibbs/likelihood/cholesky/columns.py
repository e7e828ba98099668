"""C = L D L', column by column without supernodes: for factors with few elements a column, as those of animal models.

Row i of L is found from the rows before it ("up-looking", Davis 2006, chapter 4): with y the row of C, for each column
j of its pattern, from the left,

    y_r -= L_rj y_j  for the rows r < i of column j,        L_ij = y_j / D_j,        D_i = C_ii - sum_j L_ij y_j

The pattern is known, so that all loops run over lists. C^-1 on it is the derivative of log|C| = sum_i log D_i, which is
the same loop backwards (the reverse mode of Smith 1995, here the recursion of Takahashi, Fagan & Chin 1973); d before
a symbol is the derivative with respect to it,

    b_j = dL_ij / D_j - 2 L_ij dD_i - sum_r L_rj b_r,      dL_rj -= y_j b_r,      C^-1_ij = b_j / 2,   C^-1_ii = dD_i

It takes twice the operations of the factorisation.

Columns that follow each other with one pattern, as those of the traits of a level, are taken two or four at once: an
element of y is then read and written once for all of them. Each subtracts in its turn, so that no digit differs.

Elements stand in one flat array: L below the diagonal, column by column, then D.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.likelihood.cholesky.elimination import Elimination, invert_order
from mmgibbs.likelihood.cholesky.symbolic import MIN_PIVOT, locate_elements
from mmgibbs.pedigree.kernels import kernel

MAX_COLUMNS_AT_ONCE = 4  # of one pattern


class Columns(NamedTuple):
    """A SymbolicFactor (symbolic.py) of n equations by columns, with `below` elements below the diagonal."""

    order: np.ndarray  # (n,) int64 the equation that is eliminated at each step
    step: np.ndarray  # (n,) int64 the step at which each equation is eliminated
    column_ptr: np.ndarray  # (n + 1,) uint64
    row_of: np.ndarray  # (below,) uint32 rows below the diagonal of each column, ascending
    row_ptr: np.ndarray  # (n + 1,) uint64
    column_of: np.ndarray  # (below,) uint32 columns before the diagonal of each row, ascending
    run_length: np.ndarray  # (n,) uint8 columns from here on that have one pattern, up to MAX_COLUMNS_AT_ONCE

    @property
    def elements(self) -> int:
        """L below the diagonal, and D."""
        return self.row_of.size + self.order.size

    @property
    def nonzeros(self) -> int:
        return self.elements

    @property
    def flops(self) -> int:
        """Multiplications and additions of one factorisation: the squares of the columns' lengths."""
        lengths = np.diff(self.column_ptr).astype(float) + 1.0
        return int((lengths**2).sum())

    @property
    def bytes(self) -> int:
        """Bytes of the pattern, a factor, a selected inverse and the work arrays to make them."""
        return 8 * 3 * self.elements + 8 * self.row_of.size + 32 * self.order.size

    @property
    def diagonal(self) -> np.ndarray:
        return self.row_of.size + self.step

    def locate(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        n, start = self.order.size, self.column_ptr.astype(np.int64)
        return locate_elements(
            rows.astype(np.int64), columns.astype(np.int64), self.step, self.row_of.size + np.arange(n),
            np.arange(n), start, self.row_of, start, np.ones(n, np.int64),
        )  # fmt: skip

    def factorise(self, values: np.ndarray) -> int:
        n = self.order.size
        filled, y, reciprocal = np.empty(n, np.uint64), np.empty(n), np.empty(n)
        lists = self.column_ptr, self.row_of, self.row_ptr, self.column_of, self.run_length
        return int(factorise_columns(*lists, values, filled, y, reciprocal, MIN_PIVOT))

    def log_determinant(self, values: np.ndarray) -> float:
        return float(log_determinant_columns(self.row_of.size, values))

    def solve(self, values: np.ndarray, x: np.ndarray) -> None:
        solve_columns(self.column_ptr, self.row_of, values, x)

    def selected_inverse(self, values: np.ndarray) -> np.ndarray:
        out = np.empty(self.elements)
        selected_columns(self.column_ptr, self.row_of, self.row_ptr, self.column_of, values, out)
        return out


def analyse_columns(eliminated: Elimination) -> Columns:
    """The pattern of L, column by column and row by row."""
    column_ptr = np.concatenate([[0], np.cumsum(eliminated.counts - 1)])
    row_of, row_ptr, column_of = _list_elements(eliminated.indptr, eliminated.indices, eliminated.parent, column_ptr)
    run_length = _count_runs(column_ptr, row_of)
    return Columns(
        eliminated.order, invert_order(eliminated.order), column_ptr.astype(np.uint64), row_of,
        row_ptr.astype(np.uint64), column_of, run_length,
    )  # fmt: skip


@kernel(error_model="python")
def _list_elements(indptr, indices, parent, column_ptr):
    """row_of, row_ptr and column_of: row i of L has the columns met on the way up the tree from its elements in C."""
    n = parent.size
    row_of, column_of = np.empty(column_ptr[n], np.uint32), np.empty(column_ptr[n], np.uint32)
    row_ptr, seen, filled = np.zeros(n + 1, np.int64), np.full(n, -1, np.int64), column_ptr[:-1].copy()
    for i in range(n):
        seen[i] = i
        row_ptr[i + 1] = row_ptr[i]
        for e in range(indptr[i], indptr[i + 1]):
            k = indices[e]
            while k < i and seen[k] != i:
                seen[k] = i
                row_of[filled[k]] = i
                filled[k] += 1
                row_ptr[i + 1] += 1
                k = parent[k]
    filled = row_ptr[:-1].copy()
    for j in range(n):  # the transpose, so that the columns of each row ascend
        for p in range(column_ptr[j], column_ptr[j + 1]):
            i = row_of[p]
            column_of[filled[i]] = j
            filled[i] += 1
    return row_of, row_ptr, column_of


@kernel(error_model="python")
def _count_runs(column_ptr, row_of):
    """Mark columns with the pattern of the next one, (n,): one element longer, and starting with that."""
    n = column_ptr.size - 1
    out = np.ones(n, np.uint8)
    for j in range(n - 2, -1, -1):
        is_longer = column_ptr[j + 1] - column_ptr[j] == column_ptr[j + 2] - column_ptr[j + 1] + 1
        if is_longer and row_of[column_ptr[j]] == j + 1:
            out[j] = min(out[j + 1] + 1, MAX_COLUMNS_AT_ONCE)
    return out


@kernel
def factorise_columns(column_ptr, row_of, row_ptr, column_of, run_length, values, filled, y, reciprocal, min_pivot):
    """values (elements,): C becomes L and D. Returns -1, or the first step whose pivot is not above `min_pivot` times
    the diagonal of C.

    column_ptr (n + 1,), row_of (below,), row_ptr (n + 1,), column_of (below,), run_length (n,): of a Columns.
    filled (n,) uint64, y (n,) and reciprocal (n,) 1 / D: work space, `reciprocal` for the solutions too.
    """
    n = y.size
    below, one, two, three, four = (
        np.uint64(row_of.size), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4),
    )  # fmt: skip
    for j in range(n):
        filled[j] = column_ptr[j]
    for i in range(np.uint64(n)):
        q, last = row_ptr[i], row_ptr[i + one]
        d = values[below + i]
        least = min_pivot * d
        for e in range(q, last):
            j = column_of[e]
            y[j] = values[filled[j]]
        while q < last:
            j = np.uint64(column_of[q])
            taken = min(np.uint64(run_length[j]), last - q)  # row i has all columns of a pattern from one of them on
            y0 = y[j]
            if taken == four:
                p0, p1, p2, p3 = column_ptr[j], column_ptr[j + one], column_ptr[j + two], column_ptr[j + three]
                y1 = y[j + one] - values[p0] * y0
                y2 = y[j + two] - values[p0 + one] * y0 - values[p1] * y1
                y3 = y[j + three] - values[p0 + two] * y0 - values[p1 + one] * y1 - values[p2] * y2
                y[j + one], y[j + two], y[j + three] = y1, y2, y3
                p0, p1, p2 = p0 + three, p1 + two, p2 + one
                for s in range(filled[j + three] - p3):
                    r = row_of[p3 + s]
                    y[r] = y[r] - values[p0 + s] * y0 - values[p1 + s] * y1 - values[p2 + s] * y2 - values[p3 + s] * y3
            elif taken >= two:
                taken = two
                p0, p1 = column_ptr[j], column_ptr[j + one]
                y1 = y[j + one] - values[p0] * y0
                y[j + one] = y1
                p0 += one
                for s in range(filled[j + one] - p1):
                    r = row_of[p1 + s]
                    y[r] = y[r] - values[p0 + s] * y0 - values[p1 + s] * y1
            else:
                for p in range(column_ptr[j], filled[j]):
                    y[row_of[p]] -= values[p] * y0
            for k in range(j, j + taken):
                ratio = y[k] * reciprocal[k]
                d -= ratio * y[k]
                values[filled[k]] = ratio
                filled[k] += one
            q += taken
        if not d > least:
            return np.int64(i)
        values[below + i] = d
        reciprocal[i] = 1.0 / d
    return np.int64(-1)


@kernel
def solve_lower(column_ptr, row_of, values, x):
    """x (n,) <- L^-1 x, in place; column_ptr (n + 1,), row_of (below,): of a Columns; values (elements,): L and D."""
    for j in range(np.uint64(x.size)):
        xj = x[j]
        if xj != 0.0:
            for p in range(column_ptr[j], column_ptr[j + np.uint64(1)]):
                x[row_of[p]] -= values[p] * xj


@kernel
def solve_upper(column_ptr, row_of, values, x):
    """x (n,) <- L'^-1 x, in place; column_ptr (n + 1,), row_of (below,): of a Columns; values (elements,): L and D."""
    n = x.size
    for step in range(n):
        j = np.uint64(n - 1 - step)
        total = x[j]
        for p in range(column_ptr[j], column_ptr[j + np.uint64(1)]):
            total -= values[p] * x[row_of[p]]
        x[j] = total


@kernel
def solve_columns(column_ptr, row_of, values, x):
    """x (n, m) <- C^-1 x, in place."""
    n, below = x.shape[0], np.uint64(row_of.size)
    column = np.empty(n)
    for v in range(x.shape[1]):
        for i in range(n):
            column[i] = x[i, v]
        solve_lower(column_ptr, row_of, values, column)
        for i in range(np.uint64(n)):
            column[i] /= values[below + i]
        solve_upper(column_ptr, row_of, values, column)
        for i in range(n):
            x[i, v] = column[i]


@kernel
def log_determinant_columns(below, values):
    """sum_i log D_i"""
    total = 0.0
    for i in range(below, values.size):
        total += np.log(values[i])
    return total


@kernel
def selected_columns(column_ptr, row_of, row_ptr, column_of, values, out):
    """out (elements,): C^-1 where L and D have elements, by the recursion of the module.

    column_ptr (n + 1,), row_of (below,), row_ptr (n + 1,), column_of (below,): of a Columns; values (elements,): L, D.
    """
    n = column_ptr.size - 1
    below = np.uint64(row_of.size)
    ends, slope = column_ptr[1:].copy(), np.empty(n)
    one = np.uint64(1)
    for e in range(out.size):
        out[e] = 0.0
    for i in range(n):
        out[below + np.uint64(i)] = 1.0 / values[below + np.uint64(i)]
    for step in range(n):
        i = np.uint64(n - 1 - step)
        first, last = row_ptr[i], row_ptr[i + one]
        slope_of_d = out[below + i]
        for q in range(first, last):
            slope[column_of[q]] = 0.0
        for back in range(last - first):
            j = column_of[last - one - np.uint64(back)]
            end = ends[j] - one
            ends[j] = end
            ratio, d, slope_of_l = values[end], values[below + j], out[end]
            yj = ratio * d
            total = slope[j] + slope_of_l / d - 2.0 * slope_of_d * ratio
            for p in range(column_ptr[j], end):
                r = row_of[p]
                b = slope[r]
                total -= values[p] * b
                out[p] -= yj * b
            out[below + j] += slope_of_d * ratio * ratio - slope_of_l * ratio / d
            slope[j] = total
            out[end] = 0.5 * total
