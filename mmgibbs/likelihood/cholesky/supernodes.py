"""L by supernodes, for factors whose columns are long.

Columns of one pattern that follow each other are one *supernode*: a dense panel of its own rows and columns first, then
of the rows below, all in one flat array. A child joins its parent where few zeros are stored for it; supernodes wider
than `MAX_COLUMNS` are cut.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from mmgibbs.likelihood.cholesky.elimination import Elimination, invert_order
from mmgibbs.likelihood.cholesky.panels import factorise_panels, invert_panels, log_determinant_panels, solve_panels
from mmgibbs.likelihood.cholesky.symbolic import locate_elements
from mmgibbs.pedigree.kernels import kernel

MAX_COLUMNS = 256  # columns of a supernode: its own block is factorised by plain loops, the rest by BLAS
MAX_SHARE_OF_ZEROS = 0.15  # share of stored zeros up to which a child joins its parent
MAX_COLUMNS_ALWAYS_MERGED = 4  # columns up to which it always does


class Supernodes(NamedTuple):
    """A SymbolicFactor (symbolic.py) of n equations by s supernodes."""

    order: np.ndarray  # (n,) int64 the equation that is eliminated at each step
    step: np.ndarray  # (n,) int64 the step at which each equation is eliminated
    supernode: np.ndarray  # (n,) int64 of each column
    first: np.ndarray  # (s + 1,) int64 first column of each supernode
    parent: np.ndarray  # (s,) int64 supernode of the first row below; -1: none
    row_ptr: np.ndarray  # (s + 1,) int64
    rows: np.ndarray  # the rows of each panel, ascending, its own columns first
    panel_ptr: np.ndarray  # (s + 1,) int64 where each panel (rows by columns, row by row) starts
    stack: int  # elements that wait for their parents at most
    widest_below: int  # rows below a supernode at most

    @property
    def elements(self) -> int:
        """Stored elements of the factor, zeros and the upper triangles of the diagonal blocks included."""
        return int(self.panel_ptr[-1])

    @property
    def nonzeros(self) -> int:
        """Elements of the lower triangle of L, stored zeros included."""
        width = np.diff(self.first)
        return self.elements - int((width * (width - 1) // 2).sum())

    @property
    def flops(self) -> int:
        """Multiplications and additions of one factorisation: the squares of the columns' lengths."""
        width, rows = np.diff(self.first).astype(float), np.diff(self.row_ptr).astype(float)
        squares = lambda n: n * (n + 1) * (2 * n + 1) / 6
        return int((squares(rows) - squares(rows - width)).sum())

    @property
    def bytes(self) -> int:
        """Bytes of a factor, a selected inverse and the updates that wait for their parents."""
        return 8 * (2 * self.elements + self.stack + 2 * self.widest_below**2) + 8 * self.rows.size

    @property
    def diagonal(self) -> np.ndarray:
        return self._diagonal_of_columns[self.step]

    def locate(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        width = np.diff(self.first)[self.supernode]
        start = self.panel_ptr[self.supernode] + np.arange(width.size) - self.first[self.supernode]
        return locate_elements(
            rows.astype(np.int64), columns.astype(np.int64), self.step, self._diagonal_of_columns,
            self.supernode, self.row_ptr, self.rows, start, width,
        )  # fmt: skip

    @property
    def _diagonal_of_columns(self) -> np.ndarray:
        """Index of the diagonal of each column, (n,) int64."""
        column = np.arange(self.supernode.size) - self.first[self.supernode]
        width = np.diff(self.first)[self.supernode]
        return self.panel_ptr[self.supernode] + column * width + column

    def factorise(self, values: np.ndarray) -> int:
        return factorise_panels(
            self.first, self.row_ptr, self.rows, self.panel_ptr, self.parent, self.stack, self.widest_below, values
        )

    def log_determinant(self, values: np.ndarray) -> float:
        return float(log_determinant_panels(self.first, self.row_ptr, self.panel_ptr, values))

    def solve(self, values: np.ndarray, x: np.ndarray) -> None:
        solve_panels(self.first, self.row_ptr, self.rows, self.panel_ptr, values, x)

    def selected_inverse(self, values: np.ndarray) -> np.ndarray:
        return invert_panels(
            self.first, self.row_ptr, self.rows, self.panel_ptr, self.supernode, self.widest_below, values
        )


def analyse_supernodes(eliminated: Elimination) -> Supernodes:
    """The supernodes of an elimination and the rows of their panels."""
    first = _merge_columns(eliminated.parent, eliminated.counts)
    supernode = np.repeat(np.arange(first.size - 1), np.diff(first))
    row_ptr, rows = _list_rows(eliminated.indptr, eliminated.indices, first, supernode)
    rows = _sort_lists(row_ptr, rows)
    width, height = np.diff(first), np.diff(row_ptr)
    parent = np.full(width.size, -1, np.int64)
    inner = height > width
    parent[inner] = supernode[rows[row_ptr[:-1][inner] + width[inner]]]
    panel_ptr = np.concatenate([[0], np.cumsum(width * height)])
    below = height - width
    return Supernodes(
        eliminated.order, invert_order(eliminated.order), supernode, first, parent, row_ptr, rows, panel_ptr,
        _measure_stack(parent, below), int(below.max(initial=0)),
    )  # fmt: skip


@kernel(error_model="python")
def _merge_columns(parent, counts):
    """Merge columns to supernodes; return the first column of each, (s + 1,)."""
    n = parent.size
    first, rows, last = np.empty(n + 1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    s = 0
    for j in range(n):
        first[s], rows[s], last[s] = j, counts[j], j
        s += 1
        while s > 1 and parent[first[s - 1] - 1] >= first[s - 1] and parent[first[s - 1] - 1] <= last[s - 1]:
            below, above = s - 2, s - 1
            width, wider = last[below] - first[below] + 1, last[above] - first[above] + 1
            together = width + rows[above]
            zeros = width * (together - rows[below])
            kept = (width + wider) * together
            fills = zeros > MAX_SHARE_OF_ZEROS * kept and width + wider > MAX_COLUMNS_ALWAYS_MERGED
            if width + wider > MAX_COLUMNS or fills:
                break
            rows[below], last[below] = together, last[above]
            s -= 1
    first[s] = n
    return first[: s + 1].copy()


@kernel(error_model="python")
def _list_rows(indptr, indices, first, supernode):
    """The rows of each panel, its columns first, then, in no order, the matrix's elements below them and the rows of
    the children."""
    n, s = supernode.size, first.size - 1
    row_ptr, rows = np.zeros(s + 1, np.int64), np.empty(max(16, 4 * indices.size), np.int64)
    child, sibling = np.full(s, -1, np.int64), np.full(s, -1, np.int64)
    seen = np.full(n, -1, np.int64)
    for k in range(s):
        used = row_ptr[k]
        most = used + n
        if most > rows.size:
            larger = np.empty(max(most, 2 * rows.size), np.int64)
            for e in range(used):
                larger[e] = rows[e]
            rows = larger
        for i in range(first[k], first[k + 1]):
            rows[used] = i
            seen[i] = k
            used += 1
        below = used
        for j in range(first[k], first[k + 1]):
            for e in range(indptr[j], indptr[j + 1]):
                i = indices[e]
                if i >= first[k + 1] and seen[i] != k:
                    seen[i] = k
                    rows[used] = i
                    used += 1
        c = child[k]
        while c >= 0:
            for e in range(row_ptr[c], row_ptr[c + 1]):
                i = rows[e]
                if i >= first[k + 1] and seen[i] != k:
                    seen[i] = k
                    rows[used] = i
                    used += 1
            c = sibling[c]
        row_ptr[k + 1] = used
        if used > below:
            nearest = rows[below]
            for e in range(below + 1, used):
                nearest = min(nearest, rows[e])
            above = supernode[nearest]
            sibling[k] = child[above]
            child[above] = k
    return row_ptr, rows[: row_ptr[s]].copy()


def _sort_lists(row_ptr: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Sort the rows of each panel: by SciPy, as Numba takes a second to compile a sort."""
    shape = (row_ptr.size - 1, int(rows.max(initial=-1)) + 1)
    lists = scipy.sparse.csr_array((np.ones(rows.size, np.int8), rows, row_ptr), shape=shape)
    lists.sort_indices()
    return lists.indices.astype(np.int64)


@kernel(error_model="python")
def _measure_stack(parent, below):
    """Elements of all update matrices that wait at once, at most."""
    waiting, most = 0, 0
    of_children = np.zeros(parent.size, np.int64)
    for s in range(parent.size):
        waiting += below[s] ** 2 - of_children[s]
        most = max(most, waiting)
        if parent[s] >= 0:
            of_children[parent[s]] += below[s] ** 2
    return most
