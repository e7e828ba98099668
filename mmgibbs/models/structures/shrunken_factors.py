"""Factor-analytic covariance with a number of factors that is drawn: cumulative shrinkage (Legramanti, Durante & Dunson
2020, Biometrika 107:745).

    G = L L' + Psi,    var(L_jh) = sd_j^2 theta_h,    h = 1 ... H

A factor is active, with theta_h ~ inverse gamma(a, b), or shrunk to theta_h = SPIKE, the more probably the higher h is:

    P(shrunk) = omega_1 + ... + omega_h,    omega_l = v_l (1 - v_1) ... (1 - v_(l-1)),    v_l ~ Beta(1, alpha)

with v_H = 1, so that the last factor is always shrunk. The expected number of active factors is alpha where H is large.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mmgibbs.models.structures.base import log_half_t
from mmgibbs.models.structures.factor_analytic import FactorAnalytic

SPIKE = 0.01  # theta of a factor that is shrunk: its loadings have a tenth of the standard deviation
SLAB_SHAPE, SLAB_RATE = 2.0, 2.0  # a and b
EXPECTED_FACTORS = 1.0  # alpha
MAX_FACTORS = 10  # that may be active, however many components there are


@dataclass(frozen=True)
class ShrunkenFactors(FactorAnalytic):
    """phi = (loadings, row by row; log sd of the specific effects; log theta of each factor; logit v of all but one).

    factors: H, of which H - 1 may be active.
    """

    @property
    def n_matrix(self) -> int:
        """Parameters that G is a function of."""
        return self.n_loadings + self.n_sd

    @property
    def free(self) -> np.ndarray:
        """What a start is fitted by: not theta and v, which G does not depend on."""
        return np.append(super().free, np.zeros(2 * self.factors - 1, bool))

    def theta(self, phi: np.ndarray) -> np.ndarray:
        """(..., H)"""
        return np.exp(phi[..., self.n_matrix : self.n_matrix + self.factors])

    def is_active(self, phi: np.ndarray) -> np.ndarray:
        """(..., H) bool."""
        return phi[..., self.n_matrix : self.n_matrix + self.factors] != np.log(SPIKE)

    def sticks(self, phi: np.ndarray) -> np.ndarray:
        """(H,) v, the last of them 1."""
        return np.append(1.0 / (1.0 + np.exp(-phi[self.n_matrix + self.factors :])), 1.0)

    def join(self, of_matrix: np.ndarray, theta: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(p,) phi; of_matrix: loadings and log sd; v (H,)."""
        return np.concatenate([of_matrix, np.log(theta), np.log(v[:-1]) - np.log1p(-v[:-1])])

    def prior_sd(self, phi: np.ndarray) -> np.ndarray:
        return self.loading_sd[:, None] * np.sqrt(self.theta(phi))

    def start(self, C: np.ndarray) -> np.ndarray:
        return np.append(super().start(C), np.zeros(2 * self.factors - 1))

    def rescaled(self, phi: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return np.append(super().rescaled(phi, scale), phi[self.n_matrix :])

    def log_prior(self, phi: np.ndarray) -> float:
        """Of loadings and specific standard deviations, given theta."""
        of_loadings = -0.5 * np.sum((self.loadings(phi) / self.prior_sd(phi)) ** 2)
        log_sd = phi[self.n_loadings : self.n_matrix]
        return float(of_loadings) + log_half_t(log_sd, self.nu, self.sd_scale[: self.n_sd])

    def named(self, phi: np.ndarray, labels: tuple[str, ...]) -> Mapping[str, np.ndarray]:
        """Loadings, specific variances and shares, and how many factors are active: `factors[2]` is 1 where it is 2."""
        n = np.sum(self.is_active(phi), axis=-1)
        out = {"factors": n.astype(float)}
        out |= {f"factors[{j}]": (n == j).astype(float) for j in range(self.factors)}
        return {**super().named(phi, labels), **out}


def max_active_factors(k: int) -> int:
    """How many factors may be active: as many as k components with specific variances determine, k f - f (f - 1) / 2 +
    k <= k (k + 1) / 2, and MAX_FACTORS at most."""
    determined = max(f for f in range(k) if k * f - f * (f - 1) // 2 + k <= k * (k + 1) // 2)
    return min(determined, MAX_FACTORS)
