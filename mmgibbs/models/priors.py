"""Priors of covariance matrices that are inverse Wishart given an auxiliary variable a of each component.

    half-t (Huang & Wand 2013)       G | a ~ IW(nu + k - 1, 2 nu diag(1/a_i)),     a_i ~ IG(1/2, 1/A_i^2)
        each standard deviation is half-t(nu, A_i); for nu = 2 correlations are uniform; k is the size of the block
        where not all components may covary
        a_i | G ~ IG((nu + k)/2, nu (G^-1)_ii + 1/A_i^2)

    uniform heritability (k = 1)     s | a ~ IW(2, 2 a),     a ~ Exp(1)
        s is beta-prime(1, 1), so that s/(1 + s), the share of s beside a residual variance of 1, is uniform on (0, 1)
        a | s ~ Gamma(2, rate 1 + 1/s)

Given a, all that knows inverse Wisharts (the conditional of G, interweaving) stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Conditional:
    """a_i | G: gamma(shape_i, rate_i), or the inverse of such a draw."""

    shape: np.ndarray  # (k,)
    rate: np.ndarray  # (k,)
    inverse: bool


@dataclass(frozen=True)
class HalfT:
    """nu, and the scale A_i of the standard deviation of each component."""

    nu: float
    A: np.ndarray  # (k,)

    def start(self) -> np.ndarray:
        return self.A**2

    def inverse_wishart(self, a: np.ndarray) -> tuple[float, np.ndarray]:
        """nu - 1, which with the size of a block is its df, and S (k, k) of G given a."""
        return self.nu - 1, 2 * self.nu * np.diag(1 / a)

    def scaled(self, a: np.ndarray, component: int, g: float) -> np.ndarray:
        """The auxiliaries that go with row and column `component` of G times g: S and G stay in proportion."""
        out = a.copy()
        out[component] /= g * g
        return out

    def of_scale(self, a: np.ndarray, component: int) -> tuple[float, float]:
        """Return (M, c): p(G, a) and the Jacobians of G and a at that move are proportional to g^M exp(-c g^2 / 2)."""
        return 1.0, float(2 / (self.A[component] ** 2 * a[component]))

    def conditional(self, G: np.ndarray, size: np.ndarray) -> Conditional:
        """size (k,): of the block of each component."""
        return Conditional(0.5 * (self.nu + size), self.nu * np.linalg.inv(G).diagonal() + 1 / self.A**2, True)


@dataclass(frozen=True)
class UniformHeritability:
    """Uniform prior on the heritability of a trait whose residual variance is 1."""

    def start(self) -> np.ndarray:
        return np.ones(1)

    def inverse_wishart(self, a: np.ndarray) -> tuple[float, np.ndarray]:
        """df less the size of the block, and S (1, 1)."""
        return 1.0, 2 * a[:, None]

    def scaled(self, a: np.ndarray, component: int, g: float) -> np.ndarray:
        """Scale the auxiliary variables: see HalfT.scaled."""
        return a * (g * g)

    def of_scale(self, a: np.ndarray, component: int) -> tuple[float, float]:
        """Return (M, c): see HalfT.of_scale."""
        return 2.0, float(2 * a[component])

    def conditional(self, G: np.ndarray, size: np.ndarray) -> Conditional:
        return Conditional(2.0 * size, 1 + 1 / G.diagonal(), False)


ScalePrior = HalfT | UniformHeritability
