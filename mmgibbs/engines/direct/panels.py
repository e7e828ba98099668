"""L by supernodes, as a multifrontal Cholesky factorisation (Duff & Reid 1983) on a pattern that is known.

A supernode gathers what C has in its panel and what its children leave, is factorised as a dense matrix, and leaves to
its parent the update matrix F22 - L21 L21'. Rows and columns are places of the factor.

Of a Symbolic (symbolic.py), n equations in s supernodes: first (s + 1,), row_ptr (s + 1,), rows, panel_ptr (s + 1,),
parent (s,), stack_size and widest_below; panels (elements,) float64 holds C before and L after.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.small_matrices import SINGULAR
from mmgibbs.engines.direct.blocks import cholesky_in_place, inverse_of_lower
from pedigree.kernels import kernel


@kernel
def factorise_panels(first, row_ptr, rows, panel_ptr, parent, stack_size, widest_below, panels):
    """panels (elements,): C becomes L, in place. Returns -1, or the place of the first pivot that is not positive."""
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


@kernel
def log_determinant_panels(first, row_ptr, panel_ptr, panels):
    """log|C| = 2 sum_i log l_ii"""
    total = 0.0
    for s in range(first.size - 1):
        w = first[s + 1] - first[s]
        for j in range(w):
            total += np.log(panels[panel_ptr[s] + j * w + j])
    return 2.0 * total


@kernel
def solve_panels(first, row_ptr, rows, panel_ptr, panels, x):
    """x (n, columns) <- C^-1 x = L'^-1 L^-1 x, in place."""
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
