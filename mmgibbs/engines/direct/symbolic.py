"""L by supernodes: the pattern of the factor, for factors whose columns are long.

Columns of one pattern that follow each other are one *supernode*: a dense panel of its own rows and columns first, then
of the rows below, all in one flat array. A child joins its parent where few zeros are stored for it; supernodes wider
than `WIDEST` are cut.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.engines.direct.elimination import Elimination, place_in_list
from mmgibbs.engines.direct.panels import factorise_panels, log_determinant_panels, solve_panels
from mmgibbs.engines.direct.selected import selected_panels
from mmgibbs.machine.threads import blas_threads
from pedigree.kernels import kernel

WIDEST = 64  # columns of a supernode: its own block is factorised by plain loops, the rest by BLAS
ZEROS = 0.15  # share of stored zeros up to which a child joins its parent
NARROW = 4  # columns up to which it always does


class Symbolic(NamedTuple):
    """What the factor of one pattern looks like; n equations, s supernodes."""

    order: np.ndarray  # (n,) int64 the equation at each place of the factor
    place: np.ndarray  # (n,) int64 the place of each equation
    supernode: np.ndarray  # (n,) int64 of each place
    first: np.ndarray  # (s + 1,) int64 first place of each supernode
    parent: np.ndarray  # (s,) int64 supernode of the first row below; -1: none
    row_ptr: np.ndarray  # (s + 1,) int64
    rows: np.ndarray  # places of the rows of each panel, ascending, its own columns first
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

    def places(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """(m,) int64 where elements (row, column), or their mirror images, stand in the panels; equation -1: -1."""
        return _places(
            rows.astype(np.int64), columns.astype(np.int64), self.place, self.supernode, self.first, self.row_ptr,
            self.rows, self.panel_ptr,
        )  # fmt: skip

    @property
    def diagonal_places(self) -> np.ndarray:
        """(n,) int64 where the diagonal of each equation stands."""
        node = self.supernode
        own = np.arange(node.size) - self.first[node]
        width = self.first[node + 1] - self.first[node]
        return (self.panel_ptr[node] + own * width + own)[self.place]

    def factorise(self, values: np.ndarray) -> int:
        """values (elements,): C becomes L. -1, or the place of the first pivot that is not positive."""
        with blas_threads(1):  # sums then run in one order, whatever else the machine does
            return factorise_panels(
                self.first, self.row_ptr, self.rows, self.panel_ptr, self.parent, self.stack, self.widest_below, values
            )

    def log_determinant(self, values: np.ndarray) -> float:
        """log|C| = 2 sum_i log L_ii"""
        return float(log_determinant_panels(self.first, self.row_ptr, self.panel_ptr, values))

    def solve(self, values: np.ndarray, x: np.ndarray) -> None:
        """x (n, m) <- C^-1 x in place, rows in the order of the factor."""
        solve_panels(self.first, self.row_ptr, self.rows, self.panel_ptr, values, x)

    def selected_inverse(self, values: np.ndarray) -> np.ndarray:
        """(elements,) C^-1 in the places of L."""
        with blas_threads(1):
            return selected_panels(
                self.first, self.row_ptr, self.rows, self.panel_ptr, self.supernode, self.widest_below, values
            )

    @property
    def bytes(self) -> int:
        """Of a factor, a selected inverse and what waits for its parent while they are made."""
        return 8 * (2 * self.elements + self.stack + 2 * self.widest_below**2) + 8 * self.rows.size


def symbolic(known: Elimination) -> Symbolic:
    """The supernodes of an elimination."""
    first = _merged(known.tree, known.counts)
    supernode = np.repeat(np.arange(first.size - 1), np.diff(first))
    row_ptr, rows = _rows(known.indptr, known.indices, first, supernode)
    width, height = np.diff(first), np.diff(row_ptr)
    parent = np.full(width.size, -1, np.int64)
    inner = height > width
    parent[inner] = supernode[rows[row_ptr[:-1][inner] + width[inner]]]
    panel_ptr = np.concatenate([[0], np.cumsum(width * height)])
    place = np.empty(known.order.size, np.int64)
    place[known.order] = np.arange(known.order.size)
    below = height - width
    return Symbolic(
        known.order, place, supernode, first, parent, row_ptr, rows, panel_ptr,
        _stack_size(parent, below), int(below.max(initial=0)),
    )  # fmt: skip


@kernel(error_model="python")
def _merged(parent, counts):
    """(s + 1,) first column of each supernode."""
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
            if width + wider > WIDEST or (zeros > ZEROS * kept and width + wider > NARROW):
                break
            rows[below], last[below] = together, last[above]
            s -= 1
    first[s] = n
    return first[: s + 1].copy()


@kernel(error_model="python")
def _rows(indptr, indices, first, supernode):
    """The rows of each panel: its columns, the matrix's elements below them, and the rows of the children."""
    n, s = supernode.size, first.size - 1
    row_ptr, rows = np.zeros(s + 1, np.int64), np.empty(max(16, 4 * indices.size), np.int64)
    child, sibling = np.full(s, -1, np.int64), np.full(s, -1, np.int64)
    seen = np.full(n, -1, np.int64)
    for k in range(s):
        used = row_ptr[k]
        most = used + n
        if most > rows.size:
            larger = np.empty(max(most, 2 * rows.size), np.int64)
            larger[:used] = rows[:used]
            rows = larger
        start = used
        for i in range(first[k], first[k + 1]):
            rows[used] = i
            seen[i] = k
            used += 1
        own = used
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
        rows[own:used] = np.sort(rows[own:used])
        row_ptr[k + 1] = used
        if used > own:
            above = supernode[rows[own]]
            sibling[k] = child[above]
            child[above] = k
        assert start == row_ptr[k]
    return row_ptr, rows[: row_ptr[s]].copy()


@kernel(error_model="python")
def _stack_size(parent, below):
    """Elements of all update matrices that wait at once, at most."""
    waiting, most = 0, 0
    of_children = np.zeros(parent.size, np.int64)
    for s in range(parent.size):
        waiting += below[s] ** 2 - of_children[s]
        most = max(most, waiting)
        if parent[s] >= 0:
            of_children[parent[s]] += below[s] ** 2
    return most


@kernel
def _places(rows, columns, place, supernode, first, row_ptr, panel_rows, panel_ptr):
    """(nnz,) where each element (row, column), or its mirror image below the diagonal, stands in the panels."""
    out = np.full(rows.size, -1, np.int64)
    for e in range(rows.size):
        if rows[e] < 0 or columns[e] < 0:
            continue
        i, j = place[rows[e]], place[columns[e]]
        if i < j:
            i, j = j, i
        s = supernode[j]
        row = place_in_list(panel_rows, row_ptr[s], row_ptr[s + 1], i) - row_ptr[s]
        out[e] = panel_ptr[s] + row * (first[s + 1] - first[s]) + j - first[s]
    return out
