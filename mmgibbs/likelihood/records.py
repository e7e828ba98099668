"""Observations of independent records (restricted.py, scores.py): Q = R^-1, a block for each record.

d log p = tr(D dG) with symmetric matrices of derivatives

    D_G = -1/2 [ q G^-1 - G^-1 (S + T) G^-1 ]             S = Theta' K^-1 Theta,  T_ab = sum kappa_lm C^-1[(l,a),(m,b)]
    D_R = -1/2 sum_p [ n_p R_p^-1 - R_p^-1 E_p R_p^-1 ]   E_p = sum_{r of p} w_r (e_r e_r' + W_r C^-1 W_r')

T and E ask for C^-1 only where C may be other than 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.sparse import coo_array, csr_array

from mmgibbs.likelihood.base import Place
from mmgibbs.likelihood.incidence import Incidence
from mmgibbs.likelihood.sparse import SparseLikelihood, SparsePoint
from mmgibbs.likelihood.working_variates import working_effects, working_residuals
from mmgibbs.models.design import Design


class RecordsLikelihood(SparseLikelihood):
    """log p(y | psi) of normal traits; observations are the traits that each record has."""

    def __init__(self, design: Design, of_scores: Mapping[int, int] | None = None):
        super().__init__(design, of_scores)
        self.incidence = Incidence(design)
        self.observations = np.flatnonzero(design.patterns[design.pattern])  # among the (n T) traits of records
        self.y = design.y.ravel()[self.observations]
        self.W_of_theta = csr_array(self.incidence.matrix[self.observations])  # (observations, places)

    def weigh(self, inverse_R: np.ndarray) -> csr_array:
        """(observations, observations) R^-1 of the records; inverse_R (patterns, T, T)."""
        design, entries = self.design, []
        number = np.empty(design.y.shape, np.int64)  # of each observation
        number.flat[self.observations] = np.arange(self.observations.size)
        for p, (seen, inverse) in enumerate(zip(design.patterns, inverse_R, strict=True)):
            records, traits = np.flatnonzero(design.pattern == p), np.flatnonzero(seen)
            rows = number[np.ix_(records, traits)]
            values = design.weight[records, None, None] * inverse[np.ix_(traits, traits)]
            entries.append((np.repeat(rows, traits.size, axis=1), np.tile(rows, traits.size), values))
        rows, columns, values = (np.concatenate([e[i].ravel() for e in entries]) for i in range(3))
        return csr_array(coo_array((values, (rows, columns)), shape=(self.y.size, self.y.size)))


class RecordsPoint(SparsePoint):
    """The likelihood at one psi, of independent records."""

    likelihood: RecordsLikelihood

    @property
    def residuals(self) -> np.ndarray:
        """(n, T) e, records in model order; 0 where not observed."""
        return self._spread(self.e)

    @property
    def weighted_residuals(self) -> np.ndarray:
        """(n, T) R^-1 e"""
        return self._spread(self.weights @ self.e)

    def _spread(self, x: np.ndarray) -> np.ndarray:
        """(n, T) of values (observations,), 0 where not observed."""
        out = np.zeros(self.likelihood.design.y.shape)
        out.flat[self.likelihood.observations] = x
        return out

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
        """(observations, p) F = (dV/dpsi) P y, see working_variates.py."""
        likelihood, design, p = self.likelihood, self.likelihood.design, len(places)
        unweighted = self.weighted_residuals / design.weight[:, None]
        classes = design.class_of_pattern[design.pattern]
        effects = np.concatenate([effect.reshape(-1, p) for effect in working_effects(places, self._units())])
        F = np.asarray(likelihood.W_of_theta @ effects)
        for number, place in enumerate(places):  # one by one: most traits of a record may not be observed
            if place.term is None:
                F[:, number] += working_residuals([place], unweighted, classes).ravel()[likelihood.observations]
        return F
