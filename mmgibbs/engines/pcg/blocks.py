"""The k x k diagonal blocks of C, level by level, and their inverses: the preconditioner of blocks. Products of the
levels of a term with G^-1 and with such blocks, for several vectors at once.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.small_matrices import SINGULAR, cholesky_reciprocal
from mmgibbs.equations.records import sum_level_cross_products
from mmgibbs.equations.relationships import times_row, weight
from mmgibbs.pedigree.kernels import kernel


@kernel
def invert_blocks(blocks):
    """Replace each of blocks (q, k, k) by its inverse. Returns -1, or a position that is not positive definite."""
    k = blocks.shape[1]
    L = np.zeros((k, k))
    for level in range(np.uint64(blocks.shape[0])):
        P = blocks[level]
        if not cholesky_reciprocal(P, L, SINGULAR):
            return np.int64(level)
        for j in range(k):  # L <- L^-1; its diagonal is inverted already
            for i in range(j + 1, k):
                s = 0.0
                for m in range(j, i):
                    s -= L[i, m] * L[m, j]
                L[i, j] = s * L[i, i]
        for a in range(k):
            for b in range(a + 1):
                s = 0.0
                for m in range(a, k):
                    s += L[m, a] * L[m, b]
                P[a, b] = P[b, a] = s
    return np.int64(-1)


@kernel
def level_blocks(term, K, dense_diagonal, Ginv, Rinv, positions, out):
    """out[j] = kappa_ll G^-1 + sum_{r in l} W_r' R_r^-1 W_r, (.., k, k), l = positions[j]; components set to 0 become
    rows of the identity.

    term, K: lists of equations/structured.py; positions (..,) of the sweep; Ginv (k, k), Rinv (patterns, T, T);
    dense_diagonal: (q,) added to kappa_ll of the lists, or empty.
    """
    k = out.shape[1]
    for j in range(np.uint64(out.shape[0])):
        level = np.uint64(positions[j])
        sum_level_cross_products(term, Rinv, level, out[j])
        kappa = weight(K, level)
        if dense_diagonal.size > 0:
            kappa += dense_diagonal[level]
        for a in range(k):
            for b in range(a + 1):
                out[j, a, b] += kappa * Ginv[a, b]
                out[j, b, a] = out[j, a, b]
        if term.active.shape[0] > 0:
            for a in range(k):
                if term.active[level, a] == 0:
                    for b in range(k):
                        out[j, a, b] = out[j, b, a] = 0.0
                    out[j, a, a] = 1.0


@kernel
def add_prior(K, Ginv, theta, out):
    """out_l += (K^-1 Theta_j)_l G^-1 for each j: theta, out (q, k, m) float64; out is updated in place."""
    q, k, m = theta.shape
    flat = theta.reshape((q, k * m))
    row = np.empty(k * m)
    for level in range(np.uint64(q)):
        times_row(K, level, flat, row)
        for a in range(k):
            for b in range(k):
                for j in range(m):
                    out[level, a, j] += Ginv[a, b] * row[b * m + j]


@kernel
def add_dense(Ginv, rows, out):
    """out_l += rows_l G^-1 for each of several vectors: rows, out (levels, k, m) float64; out is updated in place."""
    q, k, m = rows.shape
    for level in range(np.uint64(q)):
        for a in range(k):
            for b in range(k):
                for j in range(m):
                    out[level, a, j] += Ginv[a, b] * rows[level, b, j]


@kernel
def precondition(inverses, residual, out):
    """out_l = M_l residual_l: inverses (q, k, k), residual and out (q, k, m) float64."""
    q, k, m = residual.shape
    for level in range(np.uint64(q)):
        for a in range(k):
            for j in range(m):
                s = 0.0
                for b in range(k):
                    s += inverses[level, a, b] * residual[level, b, j]
                out[level, a, j] = s
