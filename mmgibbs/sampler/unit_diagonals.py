"""R given the residuals where some of its diagonal elements are 1 by convention (traits in categories).

With c the traits of unit variance, f the others, and IW(nu, S) restricted to diag(R_cc) = 1, the conditional given n
records with products W = S + sum_r w_r e_r e_r' and df = nu + n is exactly

    R_cc              ~ |R_cc|^-((df - n_f + n_c + 1)/2) exp(-tr(R_cc^-1 W_cc)/2)      over correlation matrices
    D                 ~ IW(df, W_ff - W_fc W_cc^-1 W_cf)                               independent of R_cc
    B | D             ~ MN(W_cc^-1 W_cf, rows W_cc^-1, columns D)
    R_cf = R_cc B,    R_ff = D + B' R_cc B

(Korsgaard, Andersen & Sorensen 1999 for one such trait). One trait of unit variance: R_cc = 1. Several: each
correlation by slice sampling (Neal 2003) within the interval that keeps R_cc positive definite, ROUNDS times; it costs
nothing per record.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, count

import numpy as np

from mmgibbs.draws.inverse_wishart import NOTHING, inverse_wishart
from mmgibbs.draws.normal import normal
from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.sampler.slice import finite_height, shrink

ROUNDS = 5
# added to the level of a draw: theirs are apart from those of D, whose levels are below; each 256 slices another
OF_B, OF_SLICES = 1 << 16, 1 << 17
SLICES_OF_A_LEVEL = 256


def draw_with_unit_diagonal(
    df: float,
    W: np.ndarray,
    unit: tuple[int, ...],
    current: np.ndarray,
    number: int,
    rows: np.ndarray,
    stream: int,
    key: tuple[int, int],
) -> np.ndarray:
    """R (k, k) with R_tt = 1 for t in `unit`; nan where W is not positive definite.

    W (k, k) the products, current (k, k) the matrix so far; rows (k,) the levels of the draws, which no other draw has.
    """
    k = len(W)
    c, f = np.array(unit), np.array([t for t in range(k) if t not in unit], int)
    R = np.zeros((k, k))
    R_cc = np.eye(len(c))
    if len(c) > 1:
        exponent = 0.5 * (df - len(f) + len(c) + 1)
        R_cc = _slice_correlations(current[np.ix_(c, c)], W[np.ix_(c, c)], exponent, number, rows[0], stream, key)
    R[np.ix_(c, c)] = R_cc
    if len(f):
        try:
            B, D = _draw_regression(df, W, c, f, number, rows, stream, key)
        except np.linalg.LinAlgError:
            return np.full((k, k), np.nan)
        R[np.ix_(c, f)] = R_cc @ B
        R[np.ix_(f, c)] = R[np.ix_(c, f)].T
        R[np.ix_(f, f)] = D + B.T @ R_cc @ B
    return 0.5 * (R + R.T)


def _draw_regression(
    df: float,
    W: np.ndarray,
    c: np.ndarray,
    f: np.ndarray,
    number: int,
    rows: np.ndarray,
    stream: int,
    key: tuple[int, int],
) -> tuple[np.ndarray, np.ndarray]:
    """B (n_c, n_f) and D (n_f, n_f)."""
    W_cc, W_cf = W[np.ix_(c, c)], W[np.ix_(c, f)]
    mean = np.linalg.solve(W_cc, W_cf)
    product = W[np.ix_(f, f)] - W_cf.T @ mean
    D = inverse_wishart(df, product, NOTHING, number, rows[: len(f)], stream, key[0], key[1])
    z = np.array([normal(number, rows[0] + OF_B, stream, j, *key) for j in range(W_cf.size)]).reshape(W_cf.shape)
    root = np.linalg.inv(np.linalg.cholesky(W_cc)).T  # root root' = W_cc^-1
    return mean + root @ z @ np.linalg.cholesky(D).T, D


def log_density(R: np.ndarray, W: np.ndarray, exponent: float) -> float:
    """-exponent log|R| - tr(R^-1 W) / 2; -inf where R is not positive definite."""
    try:
        L = np.linalg.cholesky(R)
    except np.linalg.LinAlgError:
        return -np.inf
    return float(-2 * exponent * np.log(np.diag(L)).sum() - 0.5 * np.trace(np.linalg.solve(R, W)))


def correlation_interval(R: np.ndarray, i: int, j: int) -> tuple[float, float]:
    """Find the correlations r_ij that leave R positive definite: |R| is a quadratic in r_ij with these roots."""
    at = []
    for rho in (-1.0, 0.0, 1.0):
        S = R.copy()
        S[i, j] = S[j, i] = rho
        at.append(np.linalg.det(S))
    a, b, c = 0.5 * (at[2] + at[0]) - at[1], 0.5 * (at[2] - at[0]), at[1]
    root = np.sqrt(max(b * b - 4 * a * c, 0.0))
    ends = sorted(((-b - root) / (2 * a), (-b + root) / (2 * a)))
    return max(ends[0], -1.0), min(ends[1], 1.0)


def _slice_correlations(
    R: np.ndarray, W: np.ndarray, exponent: float, number: int, row: int, stream: int, key: tuple[int, int]
) -> np.ndarray:
    """R with each correlation drawn in turn by a slice, its interval that of positive definite matrices."""
    R, pairs = R.copy(), list(combinations(range(len(R)), 2))
    for draw, (i, j) in enumerate(pairs * ROUNDS):
        level = row + OF_SLICES * (1 + draw // SLICES_OF_A_LEVEL)
        uniforms = _uniforms(number, level, stream, draw % SLICES_OF_A_LEVEL, key)
        height = finite_height(log_density(R, W, exponent)) + np.log(next(uniforms))
        S = R.copy()

        def conditional_log_density(rho: float, S: np.ndarray = S, i: int = i, j: int = j) -> float:
            S[i, j] = S[j, i] = rho
            return log_density(S, W, exponent)

        def propose(low: float, high: float, uniforms: Iterator[float] = uniforms) -> float:
            return low + next(uniforms) * (high - low)

        R[i, j] = R[j, i] = shrink(conditional_log_density, R[i, j], height, *correlation_interval(R, i, j), propose)
    return R


def _uniforms(number: int, level: int, stream: int, draw: int, key: tuple[int, int]) -> Iterator[float]:
    """Yield a uniform for each attempt of a draw."""
    for attempt in count():
        yield uniform_pair(number, level, stream, draw_word(draw, attempt), *key)[0]
