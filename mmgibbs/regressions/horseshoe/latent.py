"""Linear predictors of rows in memory, and z and X'z with them, in one pass over the rows; compiled.

    eta_i = a + x_i b,    z_i ~ TN(eta_i, 1; > 0 where y_i = 1, < 0 elsewhere),    sums += [x_i z_i, z_i, z_i^2]

A batch of rows at a time: they are read from memory once, one after another, as memory is fastest, and are in the
cache for X'z and for further chains. Numbers of X become the working type as they are used. Threads work at once;
NumPy keeps Python's lock in products whose result, here the linear predictors of a block, has fewer than 500 numbers.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.truncated_normal import truncated_normal_positive
from mmgibbs.pedigree.kernels import kernel

ONE, TWO, THREE, GROUP = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
BATCH_BYTES = 1 << 18  # of X: a quarter to a whole of a core's second cache


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _product(x, b):
    """x b of one row."""
    real = b.dtype.type
    total = real(0)
    for j in range(b.size):
        total += real(x[j]) * b[j]
    return total


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _three_products(x, b0, b1, b2):
    """x b of one row and three b."""
    real = b0.dtype.type
    t0, t1, t2 = real(0), real(0), real(0)
    for j in range(x.size):
        xj = real(x[j])
        t0 += xj * b0[j]
        t1 += xj * b1[j]
        t2 += xj * b2[j]
    return t0, t1, t2


@kernel(fastmath={"contract"})
def _add(real, sums, x, z):
    """sums += x z of one row."""
    for j in range(x.size):
        sums[j] += real(x[j]) * z


@kernel(fastmath={"contract"})
def _add_four(real, sums, x0, x1, x2, x3, z):
    """sums += x z of four rows, added to each other in the working type."""
    z0, z1, z2, z3 = z
    for j in range(x0.size):
        sums[j] += (real(x0[j]) * z0 + real(x1[j]) * z1) + (real(x2[j]) * z2 + real(x3[j]) * z3)


@kernel
def linear_predictors(X, b, a, eta):
    """eta (k, m) float64, filled. X: (m, p) of any type, b: (k, p) of the working type; a: (k,)."""
    k = np.uint64(b.shape[0])
    threes = k - k % THREE
    for i in range(np.uint64(X.shape[0])):
        for j in range(np.uint64(0), threes, THREE):
            t0, t1, t2 = _three_products(X[i], b[j], b[j + ONE], b[j + TWO])
            eta[j, i], eta[j + ONE, i], eta[j + TWO, i] = a[j] + t0, a[j + ONE] + t1, a[j + TWO] + t2
        for j in range(threes, k):
            eta[j, i] = a[j] + _product(X[i], b[j])


@kernel
def latent_rows(X, b, a, positive, sweep, first, stream, seed, chains, z, sums):
    """z and its sums for rows first, first + 1, ... of the data.

    X: (m, p) of any type, b: (C, p) of the working type; a: (C,), positive: (m,), chains: (C,). z: (C, m) float64,
    filled; sums: (C, p + 2) float64, added to: X'z, 1'z, z'z.
    """
    m, p, real = np.uint64(X.shape[0]), np.uint64(X.shape[1]), b.dtype.type
    batch = GROUP * np.uint64(max(1, BATCH_BYTES // (4 * X.itemsize * X.shape[1])))
    for start in range(np.uint64(0), m, batch):
        stop = min(start + batch, m)
        full_groups = stop - (stop - start) % GROUP
        for c in range(np.uint64(b.shape[0])):
            zc, total = z[c], sums[c]
            for i in range(start, stop):
                sign = 1.0 if positive[i] else -1.0
                zc[i] = sign * truncated_normal_positive(
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
            for i in range(start, full_groups, GROUP):
                of_z = real(zc[i]), real(zc[i + ONE]), real(zc[i + TWO]), real(zc[i + THREE])
                _add_four(real, total[:p], X[i], X[i + ONE], X[i + TWO], X[i + THREE], of_z)
            for i in range(full_groups, stop):
                _add(real, total[:p], X[i], real(zc[i]))
