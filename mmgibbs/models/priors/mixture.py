"""Inverse Wisharts given an auxiliary variable of each component, whose prior is a gamma or an inverse gamma.

    G | w ~ IW(nu + k - 1, 2 factor diag(w_i)),     w_i ~ Gamma(shape, scale unit_i)

k is the size of the block where not all components may covary. Then the variance of a component is G_ii | w_i ~
IG(nu / 2, factor w_i): a beta-prime(shape, nu / 2) in units of factor unit_i. Given G,

    w_i | G ~ Gamma(shape + (nu + k - 1) / 2, rate factor (G^-1)_ii + 1 / unit_i)

Given w, all that knows inverse Wisharts (the conditional of G, interweaving) stays as it is. With w integrated out

    p(G) is proportional to |G|^-(nu + 2k)/2 prod_i (factor (G^-1)_ii + 1 / unit_i)^-(shape + (nu + k - 1) / 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mmgibbs.models.priors.log_density import LogDensity, block_sizes


class Conditional(NamedTuple):
    """a_i | G: gamma(shape_i, rate_i), or the inverse of such a draw."""

    shape: np.ndarray  # (k,)
    rate: np.ndarray  # (k,)
    inverse: bool


class Mixture(NamedTuple):
    """The numbers of such a prior; engines on a device take them as they are. Its auxiliary variables are a (k,)."""

    nu: float
    factor: float
    shape: float
    unit: np.ndarray  # (k,)
    is_inverse: bool = False  # a is 1 / w, else w
    is_of_one: bool = False  # of a single component, k = 1

    def start(self) -> np.ndarray:
        return self.unit.copy()

    def inverse_wishart(self, a: np.ndarray) -> tuple[float, np.ndarray]:
        """nu - 1, which with the size of a block is its df, and S (k, k) of G given a."""
        diagonal = 2 * self.factor * (1 / a if self.is_inverse else a)
        return self.nu - 1, diagonal[:, None] if self.is_of_one else np.diag(diagonal)

    def scaled(self, a: np.ndarray, component: int, g: float) -> np.ndarray:
        """The auxiliaries that go with row and column `component` of G times g: S and G stay in proportion."""
        out = a.copy()
        out[component] = out[component] / (g * g) if self.is_inverse else out[component] * (g * g)
        return out

    def scale_exponents(self, a: np.ndarray, component: int) -> tuple[float, float]:
        """Return (M, c): p(G, a) and the Jacobians of G and a at that move are proportional to g^M exp(-c g^2 / 2)."""
        a_i, unit = a[component], self.unit[component]
        return 2 * self.shape, float(2 / (unit * a_i) if self.is_inverse else 2 * a_i / unit)

    def conditional(self, G: np.ndarray, size: np.ndarray) -> Conditional:
        """size (k,): of the block of each component."""
        precisions = 1 / G.diagonal() if self.is_of_one else np.linalg.inv(G).diagonal()
        return Conditional(self._conditional_shape(size), self.factor * precisions + 1 / self.unit, self.is_inverse)

    @property
    def extra_shape(self) -> float:
        """Shape of w_i | G less (nu + k) / 2."""
        return self.shape - 0.5

    def _conditional_shape(self, size: np.ndarray) -> np.ndarray:
        return 0.5 * (self.nu + size) + self.extra_shape

    def log_density(self, blocks: Sequence[tuple[int, ...]]) -> LogDensity:
        """log p(G) with w integrated out.

        Of one component it is s^(shape - 1) (factor + s / unit)^-(shape + nu / 2), which has no end at s = 0.
        """
        size = block_sizes(blocks)
        k = len(size)
        no_trace, factors, precisions = np.zeros((k, k)), np.full(k, self.factor), np.ones(k) / self.unit
        exponents = self._conditional_shape(size)
        if self.is_of_one:
            return LogDensity(np.full(k, 2 * (1 - self.shape)), no_trace, exponents, precisions, factors, True)
        return LogDensity(self.nu + 2.0 * size, no_trace, exponents, factors, precisions)
