"""Dense panels of supernodes: a multifrontal Cholesky factorisation (Duff & Reid 1983), solutions, selected inverse.

A supernode gathers what C has in its panel and what its children leave, is factorised as a dense matrix, and leaves to
its parent the update matrix F22 - L21 L21'. Rows and columns are numbered in the order of elimination.

The selected inverse is C^-1 where L has elements (Takahashi, Fagan & Chin 1973), from the last supernode to the first.
With L11 the diagonal block of a supernode, L21 the rows below and M = L21 L11^-1,

    Z21 = -Z22 M        Z11 = L11^-T L11^-1 - M' Z21

where Z22, the rows and columns below, lies within the panels of supernodes that were done before.

Of a Supernodes (supernodes.py), n equations in s supernodes: first (s + 1,), row_ptr (s + 1,), rows, panel_ptr
(s + 1,), parent (s,), supernode (n,), stack_size and widest_below; panels (elements,) float64 holds C before and L
after. Slices are copied by loops: Numba takes seconds to compile the message of an assignment whose shapes differ.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.likelihood.cholesky.symbolic import MIN_PIVOT
from mmgibbs.pedigree.kernels import kernel

ROWS_AT_ONCE = 512  # of an update matrix; of its upper triangle, only the part within these rows is computed


@kernel
def factorise_panels(first, row_ptr, rows, panel_ptr, parent, stack_size, widest_below, panels):
    """panels (elements,): C becomes L, in place. Returns -1, or the first step whose pivot is not above MIN_PIVOT
    times the diagonal of C."""
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
        for a in range(c):
            for b in range(a + 1):
                U[a, b] = 0.0
        least = np.empty(w)
        for j in range(w):
            least[j] = MIN_PIVOT * P[j, j]
        k = child[s]
        while k >= 0:
            start = row_ptr[k] + first[k + 1] - first[k]
            below = row_ptr[k + 1] - start
            i = 0
            for a in range(below):
                while rows[row_ptr[s] + i] != rows[start + a]:
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
        failed = factorise_block(P, w, least)
        if failed >= 0:
            return first[s] + failed
        if c > 0:
            L21 = np.dot(P[w:], invert_lower(P, w).T)
            at[s] = top
            for start in range(0, c, ROWS_AT_ONCE):  # of the lower triangle of L21 L21'
                end = min(start + ROWS_AT_ONCE, c)
                square = np.dot(L21[start:end], L21[:end].T)
                for a in range(start, end):
                    for j in range(w):
                        P[w + a, j] = L21[a, j]
                    for b in range(a + 1):
                        stack[top + a * c + b] = U[a, b] - square[a - start, b]
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
        own = x[first[s] : first[s + 1]]
        for j in range(w):
            for v in range(columns):
                own[j, v] /= P[j, j]
            for i in range(j + 1, w):
                for v in range(columns):
                    own[i, v] -= P[i, j] * own[j, v]
        if m > w:
            change = np.dot(P[w:], own)
            for i in range(m - w):
                row = rows[row_ptr[s] + w + i]
                for v in range(columns):
                    x[row, v] -= change[i, v]
    for s in range(first.size - 2, -1, -1):
        w, m = first[s + 1] - first[s], row_ptr[s + 1] - row_ptr[s]
        P = panels[panel_ptr[s] : panel_ptr[s + 1]].reshape((m, w))
        own = x[first[s] : first[s + 1]]
        if m > w:
            below = np.empty((m - w, columns))
            for i in range(m - w):
                row = rows[row_ptr[s] + w + i]
                for v in range(columns):
                    below[i, v] = x[row, v]
            change = np.dot(P[w:].T, below)
            for j in range(w):
                for v in range(columns):
                    own[j, v] -= change[j, v]
        for j in range(w - 1, -1, -1):
            for i in range(j + 1, w):
                for v in range(columns):
                    own[j, v] -= P[i, j] * own[i, v]
            for v in range(columns):
                own[j, v] /= P[j, j]


@kernel
def invert_panels(first, row_ptr, rows, panel_ptr, supernode, widest_below, panels):
    """Compute C^-1 (elements,) where the panels of L have elements, with both triangles of the diagonal blocks."""
    Z = np.empty(panels.size)
    below = np.empty(max(1, widest_below * widest_below))
    position = np.empty(max(1, widest_below), np.int64)
    for s in range(first.size - 2, -1, -1):
        w, m = first[s + 1] - first[s], row_ptr[s + 1] - row_ptr[s]
        c, start = m - w, row_ptr[s] + w
        P = panels[panel_ptr[s] : panel_ptr[s + 1]].reshape((m, w))
        inverse = invert_lower(P, w)
        Z11 = np.dot(inverse.T, inverse)
        out = Z[panel_ptr[s] : panel_ptr[s + 1]].reshape((m, w))
        if c > 0:
            Z22 = below[: c * c].reshape((c, c))
            b = 0
            while b < c:
                above = supernode[rows[start + b]]
                width, i = first[above + 1] - first[above], 0
                for a in range(b, c):
                    while rows[row_ptr[above] + i] != rows[start + a]:
                        i += 1
                    position[a] = i
                end = b
                while end < c and rows[start + end] < first[above + 1]:
                    end += 1
                for a in range(b, c):
                    row = panel_ptr[above] + position[a] * width
                    for j in range(b, min(end, a + 1)):
                        z = Z[row + position[j]]
                        Z22[a, j] = z
                        Z22[j, a] = z
                b = end
            M = np.dot(P[w:], inverse)
            Z21 = np.dot(Z22, M)
            square = np.dot(M.T, Z21)
            for i in range(w):
                for j in range(w):
                    Z11[i, j] += square[i, j]
            for a in range(c):
                for j in range(w):
                    out[w + a, j] = -Z21[a, j]
        for i in range(w):
            for j in range(w):
                out[i, j] = Z11[i, j]
    return Z


@kernel
def factorise_block(P, w, least):
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
def invert_lower(P, w):
    """Invert the lower triangle (w, w) in the first w rows of P (m, w) float64."""
    out = np.zeros((w, w))
    for i in range(w):
        out[i, i] = 1.0 / P[i, i]
        for k in range(i):
            factor = -P[i, k] * out[i, i]
            for j in range(k + 1):
                out[i, j] += factor * out[k, j]
    return out
