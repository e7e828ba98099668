"""Factor-analytic covariance with a number of factors that is drawn: cumulative shrinkage (Legramanti, Durante & Dunson
2020, Biometrika 107:745).

    G = L L' + Psi,    var(L_jh) = sd_j^2 theta_h,    h = 1 ... H

A factor is active, with theta_h ~ inverse gamma(a, b), or shrunk to theta_h = SPIKE, the more probably the higher h is:

    P(shrunk) = omega_1 + ... + omega_h,    omega_l = v_l (1 - v_1) ... (1 - v_(l-1)),    v_l ~ Beta(1, alpha)

with v_H = 1, so that the last factor is always shrunk. The expected number of active factors is alpha where H is large.

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

from collections.abc import Mapping
from dataclasses import dataclass
from math import lgamma

import numpy as np

from mmgibbs.models.structures.base import log_half_t
from mmgibbs.models.structures.factor_analytic import FactorAnalytic

SPIKE = 0.01  # theta of a factor that is shrunk: its loadings have a tenth of the standard deviation
SLAB_SHAPE, SLAB_RATE = 2.0, 2.0  # a and b
EXPECTED_FACTORS = 1.0  # alpha
SMALLEST_STICK = 1e-12  # v and 1 - v, so that their logarithms are finite
MAX_FACTORS = 10  # that may be active, however many components there are


@dataclass(frozen=True)
class ShrunkenFactors(FactorAnalytic):
    """Common factors of which some are shrunk.

    phi = (loadings, row by row; log sd of the specific effects; log theta of each factor; logit v of all but one).

    factors: H, of which H - 1 may be active.
    """

    @property
    def n_matrix(self) -> int:
        """Number of parameters that G is a function of."""
        return self.n_loadings + self.n_sd

    @property
    def free(self) -> np.ndarray:
        """Parameters that a start is fitted by: not theta and v, which G does not depend on."""
        return np.append(super().free, np.zeros(2 * self.factors - 1, bool))

    def theta(self, phi: np.ndarray) -> np.ndarray:
        """Return theta (..., H)."""
        return np.exp(phi[..., self.n_matrix : self.n_matrix + self.factors])

    def is_active(self, phi: np.ndarray) -> np.ndarray:
        """Return whether each factor is active (..., H)."""
        return phi[..., self.n_matrix : self.n_matrix + self.factors] != np.log(SPIKE)

    def sticks(self, phi: np.ndarray) -> np.ndarray:
        """Return v (H,), the last of them 1."""
        return np.append(1.0 / (1.0 + np.exp(-phi[self.n_matrix + self.factors :])), 1.0)

    def join(self, of_matrix: np.ndarray, theta: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Join phi (p,) from loadings and log sd (of_matrix), theta (H,) and v (H,)."""
        return np.concatenate([of_matrix, np.log(theta), np.log(v[:-1]) - np.log1p(-v[:-1])])

    def prior_sd(self, phi: np.ndarray) -> np.ndarray:
        return self.loading_sd[:, None] * np.sqrt(self.theta(phi))

    def start(self, C: np.ndarray) -> np.ndarray:
        return np.append(super().start(C), np.zeros(2 * self.factors - 1))

    def rescaled(self, phi: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return np.append(super().rescaled(phi, scale), phi[self.n_matrix :])

    def log_prior(self, phi: np.ndarray) -> float:
        """Compute the log density of loadings and specific standard deviations, given theta."""
        of_loadings = -0.5 * np.sum((self.loadings(phi) / self.prior_sd(phi)) ** 2)
        log_sd = phi[self.n_loadings : self.n_matrix]
        return float(of_loadings) + log_half_t(log_sd, self.nu, self.sd_scale[: self.n_sd])

    def named(self, phi: np.ndarray, labels: tuple[str, ...]) -> Mapping[str, np.ndarray]:
        """Compute loadings, specific variances and shares, and how many factors are active.

        `factors[2]` is 1 where it is 2.
        """
        n = np.sum(self.is_active(phi), axis=-1)
        out = {"factors": n.astype(float)}
        out |= {f"factors[{j}]": (n == j).astype(float) for j in range(self.factors)}
        return {**super().named(phi, labels), **out}

    def draw_round(self, S: np.ndarray, q: int, phi: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw loadings and specific variances, and then which factors are active."""
        return self.draw_number(S, q, super().draw_round(S, q, phi, rng), rng)

    def draw_number(self, S: np.ndarray, q: int, phi: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw theta and v, and with them the loadings."""
        H, k = self.factors, self.k
        of_matrix, v = phi[: self.n_matrix].copy(), self.sticks(phi)
        log_omega = np.log(v) + np.append(0.0, np.cumsum(np.log1p(-v[:-1])))
        x = self.loadings(of_matrix) / self.loading_sd[:, None]
        squares = np.sum(x**2, axis=0)
        z, theta = np.empty(H, int), np.empty(H)
        for h in range(H):
            log_spike, log_slab = log_normal(squares[h], k), log_student(squares[h], k)
            log_p = log_omega + np.where(np.arange(H) <= h, log_spike, log_slab)
            z[h] = draw_index(np.exp(log_p - np.logaddexp.reduce(log_p)), rng)
            slab = (SLAB_RATE + squares[h] / 2) / rng.standard_gamma(SLAB_SHAPE + k / 2)
            theta[h] = SPIKE if z[h] <= h else slab
        omega, now = np.exp(log_omega), self.log_likelihood(S, q, of_matrix)
        for h in range(H):
            proposed = draw_index(omega, rng)
            slab = SLAB_RATE / rng.standard_gamma(SLAB_SHAPE)
            other, log_u = SPIKE if proposed <= h else slab, -rng.exponential()
            moved = of_matrix.copy()
            moved[h : self.n_loadings : H] *= np.sqrt(other / theta[h])
            then = self.log_likelihood(S, q, moved)
            if log_u < then - now:
                of_matrix, z[h], theta[h], now = moved, proposed, other, then
        counts = np.bincount(z, minlength=H)
        above = H - np.cumsum(counts)
        v = np.append(rng.beta(1.0 + counts[:-1], EXPECTED_FACTORS + above[:-1]), 1.0)
        v[:-1] = np.clip(v[:-1], SMALLEST_STICK, 1.0 - SMALLEST_STICK)
        return self.join(of_matrix, theta, v)


def max_active_factors(k: int) -> int:
    """Return how many factors may be active, at most MAX_FACTORS.

    k components with specific variances determine f factors where k f - f (f - 1) / 2 + k <= k (k + 1) / 2.
    """
    determined = max(f for f in range(k) if k * f - f * (f - 1) // 2 + k <= k * (k + 1) // 2)
    return min(determined, MAX_FACTORS)


def draw_index(p: np.ndarray, rng: np.random.Generator) -> int:
    """Draw an index with these probabilities, whose sum is 1."""
    return min(int(np.searchsorted(np.cumsum(p), rng.random(), side="right")), len(p) - 1)


def log_normal(square: float, k: int) -> float:
    """Compute the log density of N(0, SPIKE I) at x with x'x = square."""
    return float(-0.5 * (k * np.log(2 * np.pi * SPIKE) + square / SPIKE))


def log_student(square: float, k: int) -> float:
    """Compute the log density of t with 2a degrees of freedom and scale b/a I at x with x'x = square."""
    a, b = SLAB_SHAPE, SLAB_RATE
    constant = lgamma(a + k / 2) - lgamma(a) - 0.5 * k * np.log(2 * np.pi * b)
    return float(constant - (a + k / 2) * np.log1p(square / (2 * b)))
