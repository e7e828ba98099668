"""z and X'z of rows in memory, in one pass over them: compiled, so that threads work at once (products of a matrix and
a vector in NumPy hold Python's lock).

    eta_i = a + x_i b,    z_i ~ TN(eta_i, 1; > 0 where y_i = 1, < 0 elsewhere),    sums += [x_i z_i, z_i, z_i^2]

A batch of rows at a time: they are read from memory once, one after another, as memory is fastest, and are in the
cache for X'z and for further chains.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mmgibbs.draws.truncated_normal import truncated_normal_above

ONE, TWO, THREE, GROUP = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
BATCH_BYTES = 1 << 18  # of X: a quarter to a whole of a core's second cache


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
    m, p, real = np.uint64(X.shape[0]), np.uint64(X.shape[1]), b.dtype.type
    batch = GROUP * np.uint64(max(1, BATCH_BYTES // (4 * X.itemsize * X.shape[1])))
    for start in range(np.uint64(0), m, batch):
        stop = min(start + batch, m)
        whole = stop - (stop - start) % GROUP
        for c in range(np.uint64(b.shape[0])):
            zc, total = z[c], sums[c]
            for i in range(start, stop):
                sign = 1.0 if positive[i] else -1.0
                zc[i] = sign * truncated_normal_above(
                    sign * (_product(X[i], b[c]) + a[c]),
                    np.uint64(sweep),
                    np.uint64(first) + i,
                    np.uint64(stream),
                    np.uint64(0),
                    np.uint64(seed),
                    np.uint64(chains[c]),
                )
                total[p] += zc[i]
                total[p + ONE] += zc[i] * zc[i]
            for i in range(start, whole, GROUP):
                of_z = real(zc[i]), real(zc[i + ONE]), real(zc[i + TWO]), real(zc[i + THREE])
                _add_four(total[:p], X[i], X[i + ONE], X[i + TWO], X[i + THREE], of_z)
            for i in range(whole, stop):
                _add(total[:p], X[i], real(zc[i]))
