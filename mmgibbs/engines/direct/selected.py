"""The selected inverse: C^-1 where L has elements (Takahashi, Fagan & Chin 1973), from the last supernode to the first.

With L11 the own block of a supernode, L21 the rows below and M = L21 L11^-1,

    Z21 = -Z22 M        Z11 = L11^-T L11^-1 - M' Z21

where Z22, the rows and columns below, lies within the panels of supernodes that were done before.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.engines.direct.blocks import inverse_of_lower
from pedigree.kernels import kernel


@kernel
def selected_panels(first, row_ptr, rows, panel_ptr, supernode, widest_below, panels):
    """(elements,) C^-1 in the places of the panels of L, diagonal blocks whole.

    first (s + 1,), row_ptr (s + 1,), rows, panel_ptr (s + 1,), supernode (n,), widest_below: of a Symbolic; panels
    (elements,): L.
    """
    Z = np.empty(panels.size)
    below = np.empty(max(1, widest_below * widest_below))
    position = np.empty(max(1, widest_below), np.int64)
    for s in range(first.size - 2, -1, -1):
        w, m = first[s + 1] - first[s], row_ptr[s + 1] - row_ptr[s]
        c, start = m - w, row_ptr[s] + w
        P = panels[panel_ptr[s] : panel_ptr[s + 1]].reshape((m, w))
        inverse = inverse_of_lower(P, w)
        Z11 = np.dot(inverse.T, inverse)
        out = Z[panel_ptr[s] : panel_ptr[s + 1]].reshape((m, w))
        if c > 0:
            Z22 = below[: c * c].reshape((c, c))
            b = 0
            while b < c:
                other = supernode[rows[start + b]]
                width, i = first[other + 1] - first[other], 0
                for a in range(b, c):
                    while rows[row_ptr[other] + i] != rows[start + a]:
                        i += 1
                    position[a] = i
                end = b
                while end < c and rows[start + end] < first[other + 1]:
                    end += 1
                for a in range(b, c):
                    row = panel_ptr[other] + position[a] * width
                    for j in range(b, min(end, a + 1)):
                        z = Z[row + position[j]]
                        Z22[a, j] = z
                        Z22[j, a] = z
                b = end
            M = np.dot(P[w:], inverse)
            Z21 = np.dot(Z22, M)
            out[w:] = -Z21
            Z11 += np.dot(M.T, Z21)
        out[:w] = Z11
    return Z
