"""z and X'z of rows in memory, in one pass over them: compiled, so that threads work at once (products of a matrix and
a vector in NumPy hold Python's lock).

    eta_i = a + x_i b,    z_i ~ TN(eta_i, 1; > 0 where y_i = 1, < 0 elsewhere),    sums += [x_i z_i, z_i, z_i^2]

Four rows at a time: they are read from memory once, one after another as memory likes it, and are in the cache for X'z
and for further chains.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mmgibbs.draws.truncated_normal import truncated_normal_above

ONE, TWO, THREE, GROUP = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _product(x, b):
    """x b of one row."""
    total = b[0] * 0
    for j in range(b.size):
        total += x[j] * b[j]
    return total


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _add(sums, x, z):
    """sums += x z of one row."""
    for j in range(x.size):
        sums[j] += x[j] * z


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _add_four(sums, x0, x1, x2, x3, z):
    """sums += x z of four rows, added to each other in the type of X."""
    z0, z1, z2, z3 = z
    for j in range(x0.size):
        sums[j] += (x0[j] * z0 + x1[j] * z1) + (x2[j] * z2 + x3[j] * z3)


@njit(cache=True, nogil=True, error_model="numpy")
def latent_rows(X, b, a, positive, sweep, first, stream, seed, chains, z, sums):
    """z and its sums for rows first, first + 1, ... of the data.

    X: (m, p) in the working type, b: (C, p) in the same; a: (C,), positive: (m,), chains: (C,). z: (C, m) float64,
    filled; sums: (C, p + 2) float64, added to: X'z, 1'z, z'z.
    """
    m, p = np.uint64(X.shape[0]), np.uint64(X.shape[1])
    whole, real = m - m % GROUP, b.dtype.type
    for i in range(np.uint64(0), m, GROUP):
        rows = GROUP if i < whole else m - whole
        for c in range(np.uint64(b.shape[0])):
            zc, total = z[c, i : i + rows], sums[c]
            for r in range(rows):
                zc[r] = _product(X[i + r], b[c])
            for r in range(rows):
                sign = 1.0 if positive[i + r] else -1.0
                level = np.uint64(first) + i + r
                zc[r] = sign * truncated_normal_above(
                    sign * (zc[r] + a[c]),
                    np.uint64(sweep),
                    level,
                    np.uint64(stream),
                    np.uint64(0),
                    np.uint64(seed),
                    np.uint64(chains[c]),
                )
                total[p] += zc[r]
                total[p + ONE] += zc[r] * zc[r]
            if rows == GROUP:
                of_z = real(zc[0]), real(zc[1]), real(zc[2]), real(zc[3])
                _add_four(total[:p], X[i], X[i + ONE], X[i + TWO], X[i + THREE], of_z)
            else:
                for r in range(rows):
                    _add(total[:p], X[i + r], real(zc[r]))
