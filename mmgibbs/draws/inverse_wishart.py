"""Inverse-Wishart draws by Bartlett's decomposition, triangular solves only; over-relaxed where the draw of before is
given.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.gamma import chi_square, over_relaxed_chi_square
from mmgibbs.draws.normal import normal
from mmgibbs.draws.over_relaxation import NOISE, OVER_RELAXED
from mmgibbs.draws.small_matrices import SINGULAR, cholesky
from mmgibbs.pedigree.kernels import kernel

BARTLETT_DIAGONAL = 0  # draw number of a chi-square; its row's normals use draws 1, 2, ... (two normals a draw)
NOTHING = np.empty((0, 0))  # in place of the draw of before: one that is independent of it


def inverse_wishart(
    nu: float, S: np.ndarray, now: np.ndarray, number: int, rows: np.ndarray, stream: int, seed: int, chain: int
) -> np.ndarray:
    """G ~ IW(nu, S), (k, k), density proportional to |G|^(-(nu+k+1)/2) exp(-tr(S G^-1)/2); nan where S is not positive
    definite.

    rows (k,) int64: row i uses the counters (number, rows[i], stream, draw), which no other draw may use; k at most
    510.
    With S = L L' and Bartlett's lower T (t_ii^2 ~ chi2(nu - i), i = 0 ..., t_ij ~ N(0, 1)),

    G^-1 = L^-T T T' L^-1 is Wishart(nu, S^-1), so G = A A' with A = L T^-T: triangular solves only, no inverse of a
    draw. now (k, k): the G of before, whose T the elements of the new one are over-relaxed from; or NOTHING.
    """
    zeros = np.zeros((5, *S.shape))
    draw_inverse_wishart(nu, S, now, zeros[0], zeros[1:], number, rows, stream, seed, chain)
    return zeros[0]


@kernel(fastmath=False)
def draw_inverse_wishart(nu, S, now, G, work, number, rows, stream, seed, chain):
    """`inverse_wishart` into G (k, k); work (4, k, k) float64. Both come as zeros."""
    k = S.shape[0]
    number, stream, seed, chain = np.uint64(number), np.uint64(stream), np.uint64(seed), np.uint64(chain)
    L, T, A = work[0], work[1], work[2]
    if not cholesky(S, L, 0.0):
        G[:] = np.nan
        return
    known = now.size > 0 and bartlett_factor(
        now, L, T, A, work[3]
    )  # a G that rounding hides has next to no probability
    for i in range(k):
        row = np.uint64(rows[i])
        if known:
            T[i, i] = np.sqrt(
                over_relaxed_chi_square(nu - i, T[i, i] * T[i, i], number, row, stream, BARTLETT_DIAGONAL, seed, chain)
            )
        else:
            T[i, i] = np.sqrt(chi_square(nu - i, number, row, stream, BARTLETT_DIAGONAL, seed, chain))
        for j in range(i):
            z = normal(number, row, stream, 2 + j, seed, chain)
            T[i, j] = OVER_RELAXED * T[i, j] + NOISE * z if known else z
    for i in range(
        k
    ):  # A T' = L, column by column from the first: A[:, j] = (L[:, j] - sum_{m < j} A[:, m] T[j, m]) / T[j, j]
        for j in range(k):
            s = L[i, j]
            for m in range(j):
                s -= A[i, m] * T[j, m]
            A[i, j] = s / T[j, j]
    for i in range(k):
        for j in range(k):
            for m in range(k):
                G[i, j] += A[i, m] * A[j, m]


@kernel(fastmath=False)
def bartlett_factor(G, L, T, X, products):
    """Bartlett's T of G given L: T T' = L' G^-1 L = X' X, X = B^-1 L with G = B B'. False where rounding hides it.

    G and L (k, k) are read; T, X and products, which comes as zeros (all k, k), are written.
    """
    k = G.shape[0]
    if not cholesky(G, T, SINGULAR):
        return False
    for i in range(k):
        for j in range(i + 1):
            s = L[i, j]
            for m in range(j, i):
                s -= T[i, m] * X[m, j]
            X[i, j] = s / T[i, i]
    for i in range(k):
        for j in range(i + 1):
            for m in range(i, k):
                products[i, j] += X[m, i] * X[m, j]
    return cholesky(products, T, SINGULAR)
