"""Covariance of reduced rank: G = L L', k components, f < k common factors and nothing else.

    u = L s,    s ~ N(0, I_f)

G has no inverse: locations are drawn, and the likelihood is computed, by the scores s (engines/scores.py,
likelihood/scores.py). Loadings are determined up to a rotation: REML holds those above the diagonal of L at 0,
Gibbs moves all of them, and both report them after rotation to principal axes. Their prior is normal about 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.models.structures.base import FULL, StructureContext, StructureForm, StructureKeys
from mmgibbs.models.structures.loadings import (
    WithLoadings,
    count_loadings,
    differentiate_products,
    lower_triangle,
    name_loadings,
    principal_axes,
)

MAX_SHARE_BESIDE_FACTORS = 1e-6  # of all variances together, by which rounding may raise the rank of a given matrix


@dataclass(frozen=True)
class ReducedRank(WithLoadings):
    """Common factors alone: phi = the loadings, row by row."""

    kind: ClassVar[str] = "reduced_rank"
    meaning: ClassVar[str] = "few common factors alone"
    key_names: ClassVar[frozenset[str]] = frozenset({"factors", "loading_sd"})
    is_singular: ClassVar[bool] = True

    k: int
    factors: int
    loading_sd: np.ndarray  # (k,) prior standard deviation of the loadings of each component
    equal: bool = field(default=False, init=False)
    nu: float = field(default=2.0, init=False)  # of half-t priors where the records are asked for its variances alone

    @property
    def sd_scale(self) -> np.ndarray:  # type: ignore[override]
        return self.loading_sd

    @classmethod
    def build(cls, section: StructureKeys, context: StructureContext) -> ReducedRank:
        _refuse_combinations(context)
        rank, size = context.term.n_scores, 1.0 if section.loading_sd is None else section.loading_sd
        assert rank is not None, "it is singular"
        structure = cls(len(context.sd), rank, size * context.sd)
        if (
            context.given is not None
            and (share := share_beside_factors(context.given, rank)) > MAX_SHARE_BESIDE_FACTORS
        ):
            raise ModelError(
                f"variances.{context.term.name}.start: expected a matrix of rank {rank} for structure: reduced_rank, "
                f"got one that has {share:.2g} of its variances beside the factors, as a mean of draws has; needed "
                "structure: full for this matrix, or the estimate of method: reml"
            )
        return structure

    @classmethod
    def describe(cls, section: Mapping[str, Any]) -> str:
        factors = section.get("factors") or 1
        return f"of {factors} common factor{'' if factors == 1 else 's'} alone (reduced rank)"

    @classmethod
    def simplify(cls, form: StructureForm) -> StructureForm:
        return StructureForm(FULL, 1) if form.k == 1 else form

    @classmethod
    def count_parameters(cls, form: StructureForm) -> int:
        return count_loadings(form)

    @property
    def free(self) -> np.ndarray:
        """Loadings on and below the diagonal of L."""
        return np.tri(self.k, self.factors, dtype=bool).ravel()

    def matrix(self, phi: np.ndarray) -> np.ndarray:
        L = self.loadings(phi)
        return L @ L.T

    def derivatives(self, phi: np.ndarray) -> np.ndarray:
        return differentiate_products(self.loadings(phi))

    def start(self, C: np.ndarray) -> np.ndarray:
        """Start from the nearest matrix of this rank; where C has no correlations, from waves over the components."""
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

    def named(self, phi: np.ndarray, labels: tuple[str, ...]) -> Mapping[str, np.ndarray]:
        """Compute loadings on principal axes, and the share of all variances that each factor explains."""
        L = principal_axes(self.loadings(phi))
        return name_loadings(L, np.sum(L**2, axis=(-1, -2)), labels)


def _refuse_combinations(context: StructureContext) -> None:
    """Raise ModelError where the model has something that a matrix without an inverse cannot be combined with."""
    design, term = context.design, context.term
    obstacle, remedy = None, "needed structure: factor_analytic or full, or a model without it"
    parameters = [t.name for t in design.terms if t.relationship.has_free_parameters]
    if design.responses:
        obstacle = f"traits that are not normal ({', '.join(design.traits[r.trait] for r in design.responses)})"
    elif design.correlated:
        obstacle = "correlated residuals"
    elif parameters:
        obstacle = f"correlations that are estimated (model.random.{parameters[0]})"
        remedy += ", or known correlations (rho, and fixed: true)"
    elif term.has_several_levels:
        obstacle = "several levels in one effect"
    elif term.active is not None or term.groups_fixed:
        obstacle = "levels that are set to 0, or with fixed unknown-parent groups"
    if obstacle is not None:
        raise ModelError(f"variances.{term.name}.structure: reduced_rank cannot be combined with {obstacle}; {remedy}")


def factor_of_rank(G: np.ndarray, rank: int) -> np.ndarray:
    """Compute L (k, rank) of the matrix L L' nearest to G (k, k), from its leading eigenvectors, the largest first."""
    values, vectors = np.linalg.eigh(G)
    return np.asarray(vectors[:, ::-1][:, :rank] * np.sqrt(np.maximum(values[::-1][:rank], 0.0)))


def share_beside_factors(G: np.ndarray, rank: int) -> float:
    """Compute the share of all variances, each component in its own unit, that no matrix of this rank has."""
    sd = np.sqrt(np.diag(G))
    values = np.linalg.eigvalsh(G / sd[:, None] / sd)
    return float(np.sum(np.maximum(values[: len(G) - rank], 0.0)) / len(G))
