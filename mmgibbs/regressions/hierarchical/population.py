"""Population and covariance of a hierarchical model, given the coefficients of all groups.

With Z'Z = U diag(l) U', W = (Z U)' and Q = V^-1, Delta = U R, and row k of R is

    r_k ~ N(P_k^-1 Q W_k B, P_k^-1),   P_k = l_k Q + I/s^2

    V ~ IW(nu + G, S + (B - Z Delta)'(B - Z Delta))

Each element is computed by the same operations in the same order as in kernels/population.cu, so that a GPU draws the
same bits: no library of linear algebra, and sums over groups in pieces of GROUPS_OF_A_PIECE, then over the pieces.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.inverse_wishart import NOTHING, draw_inverse_wishart
from mmgibbs.draws.normal import normal
from mmgibbs.draws.small_matrices import cholesky
from mmgibbs.pedigree.kernels import kernel

GROUPS_OF_A_PIECE = 64  # whose terms are added one after another


@kernel(fastmath=False)
def invert_covariance(V, Q, work):
    """Q = V^-1 = M'M, M = L^-1, V = L L'; all (d, d), work (2, d, d). False where V is not positive definite."""
    d = V.shape[0]
    L, M = work[0], work[1]
    if not cholesky(V, L, 0.0):
        return False
    for i in range(d):
        for j in range(i):
            M[i, j] = 0.0
        M[i, i] = 1.0
        for m in range(i):
            for j in range(m + 1):
                M[i, j] -= L[i, m] * M[m, j]
        for j in range(i + 1):
            M[i, j] /= L[i, i]
    for i in range(d):
        for j in range(i + 1):
            Q[i, j] = 0.0
    for m in range(d):
        for i in range(m + 1):
            for j in range(i + 1):
                Q[i, j] += M[m, i] * M[m, j]
    for i in range(d):
        for j in range(i):
            Q[j, i] = Q[i, j]
    return True


@kernel(fastmath=False)
def group_means(Z, population, out):
    """out = Z Delta: (G, 1 + q) by (1 + q, d)."""
    for i in range(Z.shape[0]):
        for a in range(population.shape[1]):
            total = 0.0
            for k in range(Z.shape[1]):
                total += Z[i, k] * population[k, a]
            out[i, a] = total


@kernel(fastmath=False)
def draw_population(W, eigenvalues, U, beta, Q, ridge, population, sweep, stream, seed, chain):
    """Delta (1 + q, d) into `population`; W (1 + q, G), beta (G, d), ridge = 1/s^2. Normals of row k: levels k d ... of
    the stream. False where a P_k is not positive definite.
    """
    q, (G, d) = W.shape[0], beta.shape
    P, L, rows = np.empty((d, d)), np.empty((d, d)), np.empty((q, d))
    part, total = np.empty(d), np.empty(d)
    for k in range(q):
        total[:] = 0.0
        for first in range(0, G, GROUPS_OF_A_PIECE):
            part[:] = 0.0
            for i in range(first, min(first + GROUPS_OF_A_PIECE, G)):
                for a in range(d):
                    part[a] += W[k, i] * beta[i, a]
            for a in range(d):
                total[a] += part[a]
        for a in range(d):
            for b in range(a + 1):
                P[a, b] = eigenvalues[k] * Q[a, b]
            P[a, a] += ridge
        if not cholesky(P, L, 0.0):
            return False
        row = rows[k]
        for a in range(d):
            row[a] = 0.0
            for b in range(d):
                row[a] += Q[a, b] * total[b]
        for a in range(d):
            for m in range(a):
                row[a] -= row[m] * L[a, m]
            row[a] /= L[a, a]
        for a in range(d):
            row[a] += normal(sweep, k * d + a, stream, 0, seed, chain)
        for m in range(d - 1, -1, -1):
            row[m] /= L[m, m]
            for a in range(m):
                row[a] -= L[m, a] * row[m]
    for j in range(q):
        for a in range(d):
            population[j, a] = 0.0
            for k in range(q):
                population[j, a] += U[j, k] * rows[k, a]
    return True


@kernel(fastmath=False)
def draw_group_covariance(Z, population, beta, nu, scale, covariance, sweep, stream, seed, chain):
    """V (d, d) into `covariance`, ~ IW(nu, scale I + sum of (beta_i - Delta'z_i)(beta_i - Delta'z_i)'); nan where that
    is not positive definite.
    """
    G, d = beta.shape
    means, away, part, total = np.empty((G, d)), np.empty(d), np.empty((d, d)), np.zeros((d, d))
    group_means(Z, population, means)
    for first in range(0, G, GROUPS_OF_A_PIECE):
        for a in range(d):
            part[a, : a + 1] = 0.0
        for i in range(first, min(first + GROUPS_OF_A_PIECE, G)):
            for a in range(d):
                away[a] = beta[i, a] - means[i, a]
            for a in range(d):
                for b in range(a + 1):
                    part[a, b] += away[a] * away[b]
        for a in range(d):
            for b in range(a + 1):
                total[a, b] += part[a, b]
    for a in range(d):
        total[a, a] = scale + total[a, a]
    work = np.zeros((4, d, d))
    covariance[:] = 0.0
    draw_inverse_wishart(nu, total, NOTHING, covariance, work, sweep, np.arange(d), stream, seed, chain)
