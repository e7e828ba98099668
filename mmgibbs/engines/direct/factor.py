"""C = L L' by a multifrontal Cholesky factorisation (Duff & Reid 1983) on a pattern that is known.

A supernode gathers what C has in its panel and what its children leave, is factorised as a dense matrix, and leaves to
its parent the update matrix F22 - L21 L21'. Rows and columns are places of the factor, see symbolic.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from mmgibbs.draws.small_matrices import SINGULAR
from mmgibbs.engines.direct.blocks import cholesky_in_place, inverse_of_lower
from mmgibbs.engines.direct.selected import selected_inverse
from mmgibbs.engines.direct.symbolic import Symbolic, symbolic
from mmgibbs.errors import ModelError
from mmgibbs.machine.threads import blas_threads


@dataclass(frozen=True)
class Factor:
    """L of C at one set of variances."""

    symbolic: Symbolic
    panels: np.ndarray  # (elements,) float64

    @property
    def log_determinant(self) -> float:
        """log|C| = 2 sum_i log L_ii"""
        s = self.symbolic
        return float(_log_determinant(s.first, s.row_ptr, s.panel_ptr, self.panels))

    def solve(self, b: np.ndarray) -> np.ndarray:
        """C^-1 b: b (n,) or (n, m), equations in their own order."""
        s = self.symbolic
        x = np.ascontiguousarray(b.reshape(b.shape[0], -1)[s.order], np.float64)
        _solve(s.first, s.row_ptr, s.rows, s.panel_ptr, self.panels, x)
        return x[s.place].reshape(b.shape)

    def selected_inverse(self) -> np.ndarray:
        """(elements,) C^-1 in the places of the panels."""
        with blas_threads(1):
            return selected_inverse(self.symbolic, self.panels)


def factorise(known: Symbolic, panels: np.ndarray, name: Callable[[int], str] = "equation {}".format) -> Factor:
    """The factor of C; panels: C in its places (elements,), which are overwritten.

    A pivot below SINGULAR times the diagonal of C is refused: ModelError, which names the equation.
    """
    s = known
    with blas_threads(1):  # sums then run in one order, whatever else the machine does
        failed = _factorise(s.first, s.row_ptr, s.rows, s.panel_ptr, s.parent, s.stack, s.widest_below, panels)
    if failed >= 0:
        raise ModelError(
            f"the mixed-model equations are not positive definite, first at {name(int(s.order[failed]))}: the "
            "variances differ too much, or effects cannot be told apart; needed other variances or fewer effects"
        )
    return Factor(known, panels)


def factor_of(matrix: csr_array) -> Factor:
    """The factor of one symmetric matrix with a full diagonal, both triangles of it stored."""
    known = symbolic(matrix)
    panels = np.zeros(known.elements)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    panels[known.places(rows, matrix.indices)] = matrix.data
    return factorise(known, panels)


@njit(cache=True, nogil=True, error_model="numpy")
def _factorise(first, row_ptr, rows, panel_ptr, parent, stack_size, widest_below, panels):
    """-1, or the place of the first pivot that is not positive."""
    supernodes = first.size - 1
    stack, top = np.empty(max(1, stack_size)), 0
    at = np.zeros(supernodes, np.int64)  # where the update matrix of a supernode starts
    child, sibling = np.full(supernodes, -1, np.int64), np.full(supernodes, -1, np.int64)
    update = np.empty(max(1, widest_below * widest_below))
    position = np.empty(max(1, widest_below), np.int64)
    for s in range(supernodes):
        w, m = first[s + 1] - first[s], row_ptr[s + 1] - row_ptr[s]
        c = m - w
        P = panels[panel_ptr[s] : panel_ptr[s + 1]].reshape((m, w))
        U = update[: c * c].reshape((c, c))
        U[:] = 0.0
        least = np.empty(w)
        for j in range(w):
            least[j] = SINGULAR * P[j, j]
        k = child[s]
        while k >= 0:
            own = row_ptr[k] + first[k + 1] - first[k]
            below = row_ptr[k + 1] - own
            i = 0
            for a in range(below):
                while rows[row_ptr[s] + i] != rows[own + a]:
                    i += 1
                position[a] = i
            from_child = stack[at[k] : at[k] + below * below].reshape((below, below))
            for a in range(below):
                i = position[a]
                for b in range(a + 1):
                    j = position[b]
                    if j < w:
                        P[i, j] += from_child[a, b]
                    else:
                        U[i - w, j - w] += from_child[a, b]
            top = min(top, at[k])
            k = sibling[k]
        failed = cholesky_in_place(P, w, least)
        if failed >= 0:
            return first[s] + failed
        if c > 0:
            L21 = np.dot(P[w:], inverse_of_lower(P, w).T)
            P[w:] = L21
            U -= np.dot(L21, L21.T)
            at[s] = top
            stack[top : top + c * c] = update[: c * c]
            top += c * c
            sibling[s] = child[parent[s]]
            child[parent[s]] = s
    return -1


@njit(cache=True, nogil=True, error_model="numpy")
def _log_determinant(first, row_ptr, panel_ptr, panels):
    total = 0.0
    for s in range(first.size - 1):
        w = first[s + 1] - first[s]
        for j in range(w):
            total += np.log(panels[panel_ptr[s] + j * w + j])
    return 2.0 * total


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(first, row_ptr, rows, panel_ptr, panels, x):
    """x (n, columns) <- L'^-1 L^-1 x, in place."""
    columns = x.shape[1]
    for s in range(first.size - 1):
        w, m = first[s + 1] - first[s], row_ptr[s + 1] - row_ptr[s]
        P = panels[panel_ptr[s] : panel_ptr[s + 1]].reshape((m, w))
        for j in range(w):
            own = first[s] + j
            for v in range(columns):
                x[own, v] /= P[j, j]
            for i in range(j + 1, m):
                row, a = rows[row_ptr[s] + i], P[i, j]
                for v in range(columns):
                    x[row, v] -= a * x[own, v]
    for s in range(first.size - 2, -1, -1):
        w, m = first[s + 1] - first[s], row_ptr[s + 1] - row_ptr[s]
        P = panels[panel_ptr[s] : panel_ptr[s + 1]].reshape((m, w))
        for j in range(w - 1, -1, -1):
            own = first[s] + j
            for i in range(j + 1, m):
                row, a = rows[row_ptr[s] + i], P[i, j]
                for v in range(columns):
                    x[own, v] -= a * x[row, v]
            for v in range(columns):
                x[own, v] /= P[j, j]
