"""A relationship whose parameters change under a restricted likelihood: new coefficients in the pattern that is there.

d log p / d rho = -1/2 [ -k d log|K^-1| + tr(G^-1 (Theta' dK^-1 Theta + T)) ],   T_ab = sum dkappa_lm C^-1[(l,a),(m,b)]
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from scipy.sparse import csr_array

from mmgibbs.likelihood.base import Source
from mmgibbs.likelihood.coefficients import factorise_inverse, solve_factor
from mmgibbs.likelihood.restricted import Point, RestrictedLikelihood


class RenewableRelationship:
    """K of one random term. A point that was made at other parameters must not be asked for derivatives any more."""

    def __init__(self, likelihood: RestrictedLikelihood, term: int):
        self.likelihood, self.term, self.source = likelihood, term, Source(term)
        self.relationship = likelihood.design.terms[term].relationship
        self.parameters = self.relationship.parameter_values
        self.n_components = likelihood.design.terms[term].n_components
        self._log_determinant = self.relationship.weigh(self.parameters).log_determinant
        self._kappas = list(self._find_elements())
        # computed where it is first asked for, which has to be before coefficients change
        likelihood.constant = float(likelihood.constant)

    def _find_elements(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """K^-1 in each block of two effects of the term, and where the elements of `fixed_matrices` are in it."""
        explicit, q = self.likelihood.coefficients.explicit, self.relationship.n_levels
        indptr, indices, _ = self.relationship.inverse_csr()
        wanted = _places(indptr, indices, q)
        effects = {scalar.effect for scalar in explicit.scalar_effects if scalar.term == self.term}
        for (row, column), unit in explicit.units.items():
            if row in effects and column in effects and unit.kappa.size:
                yield unit.kappa, np.searchsorted(_places(unit.indptr, unit.indices, q), wanted)

    def renew(self, parameters: np.ndarray) -> None:
        """Let the likelihood be that of other values of the parameters."""
        weights = self.relationship.weigh(parameters)
        values = self.relationship.fixed_matrices @ weights.values
        self._write(values)
        self.likelihood.inverses[self.term].data[:] = values
        self.likelihood.constant += self.n_components * (weights.log_determinant - self._log_determinant)
        self.parameters, self._log_determinant = np.array(parameters, float), weights.log_determinant

    def _write(self, values: np.ndarray) -> None:
        for kappa, places in self._kappas:
            kappa[places] = values

    @contextmanager
    def _coefficients(self, values: np.ndarray) -> Iterator[None]:
        """Other elements in the place of those of K^-1."""
        self._write(values)
        try:
            yield
        finally:
            self._write(self.likelihood.inverses[self.term].data)

    def derivatives(self) -> list[csr_array]:
        """(P,) d K^-1 by each parameter."""
        weights, inverse = self.relationship.weigh(self.parameters), self.likelihood.inverses[self.term]
        values = weights.derivatives @ self.relationship.fixed_matrices.T
        return [csr_array((row, inverse.indices, inverse.indptr), shape=inverse.shape) for row in values]

    def gradient(self, point: Point) -> np.ndarray:
        """(P,) d log p at a point of these parameters."""
        weights, theta = self.relationship.weigh(self.parameters), point.solutions[self.term]
        out = []
        for change, of_log_determinant in zip(self.derivatives(), weights.log_determinant_derivatives, strict=True):
            with self._coefficients(change.data):
                traces = self.likelihood.coefficients.traces(point.selected).of_terms[self.term]
            products = theta.T @ (change @ theta) + traces
            out.append(
                -0.5 * (float(np.sum(point.Ginv[self.term] * products)) - self.n_components * of_log_determinant)
            )
        return np.array(out)

    def working_variates(self, point: Point) -> np.ndarray:
        """(observations, P) (dV / d rho) P y = -W K dK^-1 Theta."""
        theta = point.solutions[self.term]
        factor = factorise_inverse(self.likelihood.inverses[self.term])
        columns = [np.zeros((*values.shape, len(self.parameters))) for values in point.solutions]
        for p, change in enumerate(self.derivatives()):
            columns[self.term][:, :, p] = -solve_factor(factor, np.ascontiguousarray(change @ theta))
        return self.likelihood.incidence.fit(columns).reshape(-1, len(self.parameters))[self.likelihood.observations]


def _places(indptr: np.ndarray, indices: np.ndarray, q: int) -> np.ndarray:
    """(nnz,) rising: the place of each element in the matrix, row by row."""
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr)) * q + indices
