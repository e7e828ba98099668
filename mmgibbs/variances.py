"""Full conditionals of the covariance matrices: inverse Wishart, and scaled inverse chi-square as its k = 1 case.

    G | .  ~ IW(nu + q, S + Theta' K^-1 Theta)              R | .  ~ IW(nu + n, S + sum_r w_r e_r e_r')

IW(nu, S) has density proportional to |G|^(-(nu+k+1)/2) exp(-tr(S G^-1)/2) and mean S/(nu-k-1). The flat prior is nu = -(k+1), S = 0.
The sums of squares and products come from an engine, missing residuals augmented (engines/augment.py).
Where components may not covary (`structure: diagonal`, traits never recorded together) each block of the matrix has an IW of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from mmgibbs.draws.gamma import chi_square
from mmgibbs.draws.normal import normal
from mmgibbs.draws.purpose import VARIANCE, stream
from mmgibbs.errors import ModelError

BARTLETT_DIAGONAL = 0  # draw number of a chi-square; its row's normals use draws 1, 2, ... (two normals a draw)


@dataclass(frozen=True)
class CovarianceModel:
    """A covariance matrix of the model: where it starts, whether it moves, its prior and the blocks that may covary."""

    start: np.ndarray  # (k, k)
    fixed: bool
    blocks: tuple[tuple[int, ...], ...]  # a partition of 0 ... k - 1
    df: float | None = None  # nu; None: flat, -(k_b + 1) in each block
    scale: np.ndarray | None = None  # S (k, k)
    name: str = ""  # of its term, or 'residual', for messages

    def prior(self, block: tuple[int, ...]) -> tuple[float, np.ndarray]:
        """nu and S of one block."""
        k = len(block)
        if self.df is None:
            return -(k + 1.0), np.zeros((k, k))
        return float(self.df), np.asarray(self.scale)[np.ix_(block, block)]


def full_block(k: int) -> tuple[tuple[int, ...], ...]:
    return (tuple(range(k)),)


def diagonal_blocks(k: int) -> tuple[tuple[int, ...], ...]:
    return tuple((i,) for i in range(k))


def blocks_recorded_together(patterns: np.ndarray, structure: str = "full") -> tuple[tuple[int, ...], ...]:
    """Traits in one block are joined by records that observe both; residuals of traits never recorded together cannot covary."""
    from scipy.sparse.csgraph import connected_components

    T = patterns.shape[1]
    if structure == "diagonal":
        return diagonal_blocks(T)
    together = patterns.astype(np.int64).T @ patterns.astype(np.int64) > 0
    _, label = connected_components(together, directed=False)
    return tuple(tuple(int(t) for t in np.flatnonzero(label == b)) for b in sorted(set(label), key=list(label).index))


def check_posterior_exists(name: str, model: CovarianceModel, n: dict[tuple[int, ...], int] | int, what: str = "levels") -> list[str]:
    """Refuse a conditional from which nothing can be drawn; return a warning where its mean does not exist. `n` counts levels or records."""
    notes = []
    if model.fixed:
        return notes
    for block in model.blocks:
        k, count = len(block), n if isinstance(n, int) else n[block]
        nu, _ = model.prior(block)
        found = f"prior df {nu:g} plus {count} {what if count != 1 else what[:-1]} gives {nu + count:g} degrees of freedom"
        if nu + count <= k - 1:
            raise ModelError(
                f"variances.{name}: the posterior does not exist: {found}, "
                f"needed more than {k - 1} for a {k} x {k} matrix; give a prior with df above {k - 1 - count}, or hold it fixed"
            )
        if nu + count <= k + 1:
            notes.append(f"variances.{name}: the posterior mean may not exist: {found}, a mean needs more than {k + 1}")
    return notes


def draw_covariance(model: CovarianceModel, products: np.ndarray, n, number: int, term: int, key: tuple[int, int]) -> np.ndarray:
    """One draw of G (or R) given the sum of squares and products (k, k) and the number of levels (records), per block where `n` is an array."""
    out = np.zeros_like(products)
    for b, block in enumerate(model.blocks):
        index = np.ix_(block, block)
        nu, S = model.prior(block)
        count = n[b] if np.ndim(n) else n
        out[index] = inverse_wishart(nu + count, S + products[index], number, block[0], stream(VARIANCE, term), key[0], key[1])
    if not np.all(np.isfinite(out)):
        raise ModelError(
            f"variances.{model.name or '*'}: no covariance matrix can be drawn at sweep {number} of chain {key[1] + 1}: the sum of squares and "
            "products is not positive definite, so the data do not determine this matrix; "
            f"needed a proper prior (variances.{model.name or '*'}.prior), fewer effects, or fixed variances"
        )
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def inverse_wishart(nu, S, number, first_row, stream, seed, chain):
    """G ~ IW(nu, S). With S = L L' and Bartlett's lower T (t_ii^2 ~ chi2(nu - i), i = 0 ..., t_ij ~ N(0, 1)),

    G^-1 = L^-T T T' L^-1 is Wishart(nu, S^-1), so G = A A' with A = L T^-T: triangular solves only, no inverse of a draw.
    """
    k = S.shape[0]
    L, T, A, G = np.zeros((k, k)), np.zeros((k, k)), np.zeros((k, k)), np.zeros((k, k))
    for j in range(k):
        d = S[j, j]
        for m in range(j):
            d -= L[j, m] * L[j, m]
        L[j, j] = np.sqrt(d) if d > 0.0 else np.nan
        for i in range(j + 1, k):
            s = S[i, j]
            for m in range(j):
                s -= L[i, m] * L[j, m]
            L[i, j] = s / L[j, j]
    for i in range(k):
        row = first_row + i
        T[i, i] = np.sqrt(chi_square(nu - i, number, row, stream, BARTLETT_DIAGONAL, seed, chain))
        for j in range(i):
            T[i, j] = normal(number, row, stream, 2 + j, seed, chain)
    for i in range(k):  # A T' = L, column by column from the first: A[:, j] = (L[:, j] - sum_{m < j} A[:, m] T[j, m]) / T[j, j]
        for j in range(k):
            s = L[i, j]
            for m in range(j):
                s -= A[i, m] * T[j, m]
            A[i, j] = s / T[j, j]
    for i in range(k):
        for j in range(k):
            for m in range(k):
                G[i, j] += A[i, m] * A[j, m]
    return G
