"""Observations of independent records (restricted.py, reduced_rank.py): Q = R^-1, a block for each record.

d log p = tr(D dG) with symmetric matrices of derivatives

    D_G = -1/2 [ q G^-1 - G^-1 (S + T) G^-1 ]             S = Theta' K^-1 Theta,  T_ab = sum kappa_lm C^-1[(l,a),(m,b)]
    D_R = -1/2 sum_p [ n_p R_p^-1 - R_p^-1 E_p R_p^-1 ]   E_p = sum_{r of p} w_r (e_r e_r' + W_r C^-1 W_r')

T and E ask for C^-1 only where C may be other than 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array, csr_array

from mmgibbs.likelihood.base import Place
from mmgibbs.likelihood.incidence import Incidence
from mmgibbs.likelihood.sparse import SparseLikelihood, SparsePoint
from mmgibbs.likelihood.working_variates import working_effects, working_residuals
from mmgibbs.models.design import Design


class RecordsLikelihood(SparseLikelihood):
    """log p(y | psi) of normal traits; observations are the traits of each record, (n T,), observed or not."""

    def __init__(self, design: Design):
        super().__init__(design)
        self.incidence = Incidence(design)
        observed = design.patterns[design.pattern]
        self.observed, self.y = observed.ravel(), np.where(observed, design.y, 0.0).ravel()

    def weigh(self, inverse_R: np.ndarray) -> csr_array:
        """(n T, n T) R^-1 of the records, 0 where a trait is not observed; inverse_R (patterns, T, T)."""
        design, entries = self.design, []
        for p, (seen, inverse) in enumerate(zip(design.patterns, inverse_R, strict=True)):
            records, traits = np.flatnonzero(design.pattern == p), np.flatnonzero(seen)
            rows = records[:, None] * design.n_traits + traits
            values = design.weight[records, None, None] * inverse[np.ix_(traits, traits)]
            entries.append((np.repeat(rows, traits.size, axis=1), np.tile(rows, traits.size), values))
        rows, columns, values = (np.concatenate([e[i].ravel() for e in entries]) for i in range(3))
        return csr_array(coo_array((values, (rows, columns)), shape=(design.y.size, design.y.size)))


class RecordsPoint(SparsePoint):
    """The likelihood at one psi, of independent records."""

    likelihood: RecordsLikelihood

    @property
    def residuals(self) -> np.ndarray:
        """(n, T) e, records in model order; 0 where not observed."""
        return self.e.reshape(self.likelihood.design.y.shape)

    @property
    def weighted_residuals(self) -> np.ndarray:
        """(n, T) R^-1 e"""
        return (self.weights @ self.e).reshape(self.likelihood.design.y.shape)

    def _products(self) -> np.ndarray:
        """(patterns, T, T) sum of w_r e_r e_r' over the records of each pattern."""
        design = self.likelihood.design
        out = np.zeros((len(design.patterns), design.n_traits, design.n_traits))
        for p in range(len(out)):
            of_pattern = design.pattern == p
            e = self.residuals[of_pattern]
            out[p] = (e * design.weight[of_pattern, None]).T @ e
        return out

    def _units(self) -> list[np.ndarray]:
        """(q, k) K_j Z_j'R^-1 e per term, which is Theta_j G^-1."""
        return [theta @ inverse for theta, inverse in zip(self.solutions, self.Ginv, strict=True)]

    def working_variates(self, places: Sequence[Place]) -> np.ndarray:
        design, p = self.likelihood.design, len(places)
        unweighted = self.weighted_residuals / design.weight[:, None]
        residuals = working_residuals(places, unweighted, design.class_of_pattern[design.pattern])
        effects = np.concatenate([effect.reshape(-1, p) for effect in working_effects(places, self._units())])
        return residuals.reshape(-1, p) + self.likelihood.incidence.matrix @ effects
