"""Which factors are active, given loadings (models/structures/shrunken_factors.py).

With x_h = L_h / sd (k,) and z_h the component of omega behind factor h, shrunk where z_h <= h (Legramanti, Durante &
Dunson 2020, algorithm 1),

    P(z_h = l) is proportional to  omega_l N(x_h; 0, SPIKE I)      l <= h
                                   omega_l t_2a(x_h; 0, b/a I)     l > h         (theta_h integrated out)
    theta_h = SPIKE where z_h <= h, else inverse gamma(a + k/2, b + x_h'x_h / 2)
    v_l ~ Beta(1 + #(z_h = l), alpha + #(z_h > l))

Given x_h a factor hardly changes its state, as loadings are small where it is shrunk and large where it is not. So the
same is done once more given x_h / sqrt(theta_h): (z_h, theta_h) are proposed from their prior given v, the loadings go
along, and that is accepted with the ratio of p(Theta | G).
"""

from __future__ import annotations

from collections.abc import Callable
from math import lgamma

import numpy as np

from mmgibbs.models.structures.shrunken_factors import (
    EXPECTED_FACTORS,
    SLAB_RATE,
    SLAB_SHAPE,
    SPIKE,
    ShrunkenFactors,
)

SMALLEST_STICK = 1e-12  # v and 1 - v, so that their logarithms are finite


def draw_shrinkage(
    structure: ShrunkenFactors,
    phi: np.ndarray,
    log_likelihood: Callable[[np.ndarray], float],
    rng: np.random.Generator,
) -> np.ndarray:
    """One draw of (theta, v) with the loadings; log_likelihood: log p(Theta | G) of the parameters of the matrix."""
    H, k = structure.factors, structure.k
    of_matrix, v = phi[: structure.n_matrix].copy(), structure.sticks(phi)
    log_omega = np.log(v) + np.append(0.0, np.cumsum(np.log1p(-v[:-1])))
    x = structure.loadings(of_matrix) / structure.loading_sd[:, None]
    squares = np.sum(x**2, axis=0)
    z, theta = np.empty(H, int), np.empty(H)
    for h in range(H):
        log_spike, log_slab = log_normal(squares[h], k), log_student(squares[h], k)
        log_p = log_omega + np.where(np.arange(H) <= h, log_spike, log_slab)
        z[h] = draw_index(np.exp(log_p - np.logaddexp.reduce(log_p)), rng)
        slab = (SLAB_RATE + squares[h] / 2) / rng.standard_gamma(SLAB_SHAPE + k / 2)
        theta[h] = SPIKE if z[h] <= h else slab
    omega, now = np.exp(log_omega), log_likelihood(of_matrix)
    for h in range(H):
        proposed = draw_index(omega, rng)
        slab = SLAB_RATE / rng.standard_gamma(SLAB_SHAPE)
        other, log_u = SPIKE if proposed <= h else slab, -rng.exponential()
        moved = of_matrix.copy()
        moved[h : structure.n_loadings : H] *= np.sqrt(other / theta[h])
        then = log_likelihood(moved)
        if log_u < then - now:
            of_matrix, z[h], theta[h], now = moved, proposed, other, then
    counts = np.bincount(z, minlength=H)
    above = H - np.cumsum(counts)
    v = np.append(rng.beta(1.0 + counts[:-1], EXPECTED_FACTORS + above[:-1]), 1.0)
    v[:-1] = np.clip(v[:-1], SMALLEST_STICK, 1.0 - SMALLEST_STICK)
    return structure.join(of_matrix, theta, v)


def draw_index(p: np.ndarray, rng: np.random.Generator) -> int:
    """An index with these probabilities, whose sum is 1."""
    return min(int(np.searchsorted(np.cumsum(p), rng.random(), side="right")), len(p) - 1)


def log_normal(square: float, k: int) -> float:
    """Log density of N(0, SPIKE I) at x with x'x = square."""
    return float(-0.5 * (k * np.log(2 * np.pi * SPIKE) + square / SPIKE))


def log_student(square: float, k: int) -> float:
    """Log density of t with 2a degrees of freedom and scale b/a I at x with x'x = square."""
    a, b = SLAB_SHAPE, SLAB_RATE
    constant = lgamma(a + k / 2) - lgamma(a) - 0.5 * k * np.log(2 * np.pi * b)
    return float(constant - (a + k / 2) * np.log1p(square / (2 * b)))
