"""Factor-analytic covariance: G = L L' + Psi, k components, f common factors (Smith, Cullis & Thompson 2001).

    u = L s + d,    s ~ N(0, I_f),    d ~ N(0, Psi)

Loadings are determined up to a rotation: REML holds those above the diagonal of L at 0, Gibbs moves all of them, and
both report them after rotation to principal axes. Priors: loadings are normal about 0, sqrt(Psi_jj) is half-t.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mmgibbs.models.structures.base import SMALLEST_SHARE, log_half_t
from mmgibbs.models.structures.loadings import differentiate_products, lower_triangle, name_loadings, principal_axes

START_SPECIFIC = 0.1  # share of a variance that is specific at least in a start


@dataclass(frozen=True)
class FactorAnalytic:
    """phi = (loadings, row by row; log sd of the specific effects, one for each component or one for all)."""

    kind: ClassVar[str] = "factor_analytic"
    is_singular: ClassVar[bool] = False

    k: int
    factors: int
    equal: bool
    sd_scale: np.ndarray  # (k,) scale of the half-t prior of the specific standard deviations
    loading_sd: np.ndarray  # (k,) prior standard deviation of the loadings of each component
    nu: float = 2.0

    @property
    def n_loadings(self) -> int:
        return self.k * self.factors

    @property
    def n_sd(self) -> int:
        return 1 if self.equal else self.k

    @property
    def free(self) -> np.ndarray:
        """Loadings on and below the diagonal of L, and all specific variances."""
        return np.append(np.tri(self.k, self.factors, dtype=bool).ravel(), np.ones(self.n_sd, bool))

    def loadings(self, phi: np.ndarray) -> np.ndarray:
        """(..., k, f) L of draws (..., p)."""
        return phi[..., : self.n_loadings].reshape(*phi.shape[:-1], self.k, self.factors)

    def specific(self, phi: np.ndarray) -> np.ndarray:
        """(..., k) the diagonal of Psi."""
        psi = np.exp(2 * phi[..., self.n_loadings : self.n_loadings + self.n_sd])
        return np.broadcast_to(psi, (*phi.shape[:-1], self.k))

    def phi(self, L: np.ndarray, psi: np.ndarray) -> np.ndarray:
        """(p,)"""
        return np.append(L.ravel(), 0.5 * np.log(psi[: self.n_sd]))

    def matrix(self, phi: np.ndarray) -> np.ndarray:
        L = self.loadings(phi)
        return L @ L.T + np.diag(self.specific(phi))

    def derivatives(self, phi: np.ndarray) -> np.ndarray:
        psi = self.specific(phi)
        out = np.zeros((len(phi), self.k, self.k))
        out[: self.n_loadings] = differentiate_products(self.loadings(phi))
        for i in range(self.k):
            out[self.n_loadings + (0 if self.equal else i), i, i] += 2 * psi[i]
        return out

    def prior_sd(self, phi: np.ndarray) -> np.ndarray:
        """(k, f) prior standard deviation of each loading."""
        return np.repeat(self.loading_sd[:, None], self.factors, axis=1)

    def start(self, C: np.ndarray) -> np.ndarray:
        """The leading eigenvectors of C, turned so that nothing is above the diagonal of L."""
        values, vectors = np.linalg.eigh(C)
        order = np.argsort(values)[::-1][: self.factors]
        common = np.maximum(values[order] - values[order].min() * 0.5, 0.05 * values.max())
        L = lower_triangle(vectors[:, order] * np.sqrt(common))
        psi = np.maximum(np.diag(C) - np.sum(L**2, axis=1), START_SPECIFIC * np.diag(C))
        return self.phi(L, np.full(self.k, psi.mean()) if self.equal else psi)

    def rescaled(self, phi: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return self.phi(self.loadings(phi) * scale[:, None], self.specific(phi) * scale**2)

    def log_jacobian(self, scale: np.ndarray) -> float:
        """Each loading of component j is multiplied by scale_j."""
        return float(self.factors * np.sum(np.log(scale)) - np.sum(np.log(scale[: self.n_sd])))

    def log_prior(self, phi: np.ndarray) -> float:
        of_loadings = -0.5 * np.sum((self.loadings(phi) / self.loading_sd[:, None]) ** 2)
        return float(of_loadings) + log_half_t(phi[self.n_loadings :], self.nu, self.sd_scale[: self.n_sd])

    def units(self, sd: np.ndarray) -> np.ndarray:
        return np.append(np.repeat(sd, self.factors), np.ones(self.n_sd))

    def bounded_names(self, labels: tuple[str, ...]) -> Sequence[str]:
        return [*[""] * self.n_loadings, *(f"specific[{label}]" for label in labels[: self.n_sd])]

    def lower_bounds(self, sd: np.ndarray) -> np.ndarray:
        of_sd = np.log(SMALLEST_SHARE * sd[: self.n_sd])
        return np.append(np.full(self.n_loadings, -np.inf), of_sd)

    def upper_bounds(self) -> np.ndarray:
        return np.full(len(self.free), np.inf)

    def named(self, phi: np.ndarray, labels: tuple[str, ...]) -> Mapping[str, np.ndarray]:
        """Loadings on principal axes, specific variances, and the share of each variance that the factors explain."""
        L, psi = principal_axes(self.loadings(phi)), self.specific(phi)
        common = np.sum(L**2, axis=-1)
        of_loadings = name_loadings(L, np.sum(common + psi, axis=-1), labels)
        out = {name: values for name, values in of_loadings.items() if name.startswith("loading")}
        out |= {f"specific[{label}]": psi[..., i] for i, label in enumerate(labels)}
        out |= {f"explained[{label}]": (common / (common + psi))[..., i] for i, label in enumerate(labels)}
        return out | of_loadings
