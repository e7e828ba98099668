"""Covariance of reduced rank: G = L L', k components, f < k common factors and nothing else.

    u = L s,    s ~ N(0, I_f)

G has no inverse: locations are drawn, and the likelihood is computed, by the scores s (engines/scores.py,
likelihood/reduced_rank.py). Loadings are determined up to a rotation: REML holds those above the diagonal of L at 0,
Gibbs moves all of them, and both report them after rotation to principal axes. Their prior is normal about 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mmgibbs.models.structures.loadings import differentiate_products, lower_triangle, name_loadings, principal_axes

MAX_SHARE_BESIDE_FACTORS = 1e-6  # of all variances together, by which rounding may raise the rank of a given matrix


@dataclass(frozen=True)
class ReducedRank:
    """phi = the loadings, row by row."""

    kind: ClassVar[str] = "reduced_rank"
    is_singular: ClassVar[bool] = True
    equal: ClassVar[bool] = False
    nu: ClassVar[float] = 2.0  # of half-t priors where the records are asked for its variances alone

    k: int
    factors: int
    loading_sd: np.ndarray  # (k,) prior standard deviation of the loadings of each component

    @property
    def sd_scale(self) -> np.ndarray:
        return self.loading_sd

    @property
    def free(self) -> np.ndarray:
        """Loadings on and below the diagonal of L."""
        return np.tri(self.k, self.factors, dtype=bool).ravel()

    def loadings(self, phi: np.ndarray) -> np.ndarray:
        """(..., k, f) L of draws (..., p)."""
        return phi.reshape(*phi.shape[:-1], self.k, self.factors)

    def matrix(self, phi: np.ndarray) -> np.ndarray:
        L = self.loadings(phi)
        return L @ L.T

    def derivatives(self, phi: np.ndarray) -> np.ndarray:
        return differentiate_products(self.loadings(phi))

    def start(self, C: np.ndarray) -> np.ndarray:
        """The nearest matrix of this rank; where C says nothing of correlations, waves over the components."""
        if np.any(C[~np.eye(self.k, dtype=bool)]):
            L = factor_of_rank(C, self.factors)
        else:
            components, waves = np.arange(self.k) + 0.5, np.arange(self.factors)
            L = np.cos(np.pi * np.outer(components, waves) / self.k) / 2.0**waves
            L *= np.sqrt(np.diag(C) / np.sum(L**2, axis=1))[:, None]
        return lower_triangle(L).ravel()

    def rescaled(self, phi: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return (self.loadings(phi) * scale[:, None]).ravel()

    def log_prior(self, phi: np.ndarray) -> float:
        return float(-0.5 * np.sum((self.loadings(phi) / self.loading_sd[:, None]) ** 2))

    def units(self, sd: np.ndarray) -> np.ndarray:
        return np.repeat(sd, self.factors)

    def bounded_names(self, labels: tuple[str, ...]) -> Sequence[str]:
        return [""] * (self.k * self.factors)

    def lower_bounds(self, sd: np.ndarray) -> np.ndarray:
        return np.full(self.k * self.factors, -np.inf)

    def upper_bounds(self) -> np.ndarray:
        return np.full(len(self.free), np.inf)

    def named(self, phi: np.ndarray, labels: tuple[str, ...]) -> Mapping[str, np.ndarray]:
        """Loadings on principal axes, and what each factor explains of all variances together."""
        L = principal_axes(self.loadings(phi))
        return name_loadings(L, np.sum(L**2, axis=(-1, -2)), labels)


def factor_of_rank(G: np.ndarray, rank: int) -> np.ndarray:
    """(k, rank) L of the matrix L L' nearest to G (k, k): its leading eigenvectors, the largest first."""
    values, vectors = np.linalg.eigh(G)
    return np.asarray(vectors[:, ::-1][:, :rank] * np.sqrt(np.maximum(values[::-1][:rank], 0.0)))


def share_beside_factors(G: np.ndarray, rank: int) -> float:
    """Share of all variances, each component in its own unit, that no matrix of this rank has."""
    sd = np.sqrt(np.diag(G))
    values = np.linalg.eigvalsh(G / sd[:, None] / sd)
    return float(np.sum(np.maximum(values[: len(G) - rank], 0.0)) / len(G))
