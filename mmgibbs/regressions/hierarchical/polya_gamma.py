"""Coefficients of groups given Polya-Gamma variables (Polson, Scott & Windle 2013): exact conditionals, a class at a
time.

    omega_r ~ PG(t_r, psi_r),  psi = x beta_k - c,  c_r = log sum_{l != k} exp(x_r beta_l)
    P = Q_kk + X' diag(omega) X
    beta_k ~ N(P^-1 [X'(y_k - t/2 + omega c) + Q_kk m_k - Q_k,-k (beta_-k - m_-k)], P^-1)

with the prior N(m, Q^-1) of all coefficients of the group. omega is drawn immediately before its beta_k.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.normal import normal
from mmgibbs.draws.polya_gamma import polya_gamma
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.regressions.hierarchical.likelihood import linear_predictor, log_sum_except


@kernel(fastmath={"reassoc", "contract", "nsz"})
def weighted_products(block, centre, factor, omega, pull, X, weighted, P, rhs):
    """P += X' diag(omega) X, on and below the diagonal; rhs += X' pull. block (D, n_i) as stored; X (D, n_i) and
    weighted (n_i,) are overwritten.

    No loop writes an array and sums: whether such a loop runs in lanes depends on how far apart its arrays lie in
    memory, and with it the order of the sum.
    """
    n = omega.size
    for j in range(block.shape[0]):
        x, c, f = block[j], centre[j], factor[j]
        for r in range(n):
            X[j, r] = (x[r] - c) * f
    for j in range(block.shape[0]):
        s = 0.0
        for r in range(n):
            s += X[j, r] * pull[r]
        rhs[j] += s
        for r in range(n):
            weighted[r] = X[j, r] * omega[r]
        for m in range(j, block.shape[0]):
            s = 0.0
            for r in range(n):
                s += weighted[r] * X[m, r]
            P[m, j] += s


@kernel
def draw_normal(P, rhs, z):
    """rhs becomes a draw of N(P^-1 rhs, P^-1), P (D, D) symmetric, its lower triangle given and overwritten; z
    standard normals."""
    D = rhs.size
    for j in range(D):
        for m in range(j):
            P[j, j] -= P[j, m] * P[j, m]
        P[j, j] = np.sqrt(P[j, j]) if P[j, j] > 0.0 else np.nan
        for i in range(j + 1, D):
            for m in range(j):
                P[i, j] -= P[i, m] * P[j, m]
            P[i, j] /= P[j, j]
    for j in range(D):
        for m in range(j):
            rhs[j] -= P[j, m] * rhs[m]
        rhs[j] /= P[j, j]
    for j in range(D - 1, -1, -1):
        rhs[j] += z[j]
        for m in range(j + 1, D):
            rhs[j] -= P[m, j] * rhs[m]
        rhs[j] /= P[j, j]


@kernel
def sweep_groups(groups, Q, mean, beta, first, last, sweep, latent_stream, stream, seed, chain):
    """Draw all coefficients of groups first ... last - 1. beta (G, M D) in place; Q (M D, M D), mean (G, M D).

    omega of class k: site (sweep, packed number of the observation, latent_stream + k); coefficients: (sweep, group,
    stream + k).
    """
    M, D = groups.cross.shape[1], groups.cross.shape[2]
    P, rhs, z = np.empty((D, D)), np.empty(D), np.empty(D)
    for i in range(first, last):
        a, n = groups.ptr[i], groups.ptr[i + 1] - groups.ptr[i]
        block = groups.columns[D * a : D * (a + n)].reshape(D, n)
        eta, c, omega, pull = np.empty((M, n)), np.zeros(n), np.empty(n), np.empty(n)
        X, weighted = np.empty((D, n)), np.empty(n)
        for k in range(M):
            linear_predictor(block, beta[i, k * D : (k + 1) * D], groups.centre, groups.factor, eta[k])
        for k in range(M):
            if M > 1:
                log_sum_except(eta, k, c)
            for r in range(n):
                t = groups.trials[a + r]
                omega[r] = polya_gamma(np.int64(t), eta[k, r] - c[r], sweep, a + r, latent_stream + k, 0, seed, chain)
                pull[r] = omega[r] * c[r] - 0.5 * t
            for j in range(D):
                s = groups.cross[i, k, j]
                for m in range(M * D):
                    remaining = 0.0 if m // D == k else beta[i, m]
                    s -= Q[k * D + j, m] * (remaining - mean[i, m])
                rhs[j] = s
                for m in range(D):
                    P[j, m] = Q[k * D + j, k * D + m]
                z[j] = normal(sweep, i, stream + k, j, seed, chain)
            weighted_products(block, groups.centre, groups.factor, omega, pull, X, weighted, P, rhs)
            draw_normal(P, rhs, z)
            beta[i, k * D : (k + 1) * D] = rhs
            if M > 1:
                linear_predictor(block, rhs, groups.centre, groups.factor, eta[k])
