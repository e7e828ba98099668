"""What restricted likelihoods by a sparse factor of C share (restricted.py, correlated.py)."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from mmgibbs.cholesky.symbolic import SymbolicFactor
from mmgibbs.likelihood.base import Likelihood
from mmgibbs.likelihood.coefficients import factorise_inverse
from mmgibbs.models.design import Design

LEVELS_LOOKED_AT = 32  # whose diagonal element of K is solved for, where it is not known
OPERATIONS_OF_POINT = 4.0  # of a factor and its selected inverse, in those of the factor


class SparseLikelihood(Likelihood):
    """log p(y | psi) by a factor of C with a pattern that does not change."""

    name: ClassVar[str]  # in run.json
    symbolic: SymbolicFactor

    def __init__(self, design: Design):
        super().__init__(design)
        self.inverses = {i: design.terms[i].relationship.inverse_matrix() for i in self.random}
        # equations of each level: one for each component, or for each factor
        self.sizes = [design.n_scores.get(i, term.n_components) for i, term in enumerate(design.terms)]

    @cached_property
    def log_determinant_of_relationships(self) -> float:
        """sum_j k_j log|K_j^-1| of random terms, each of the levels that have a variance; k_j: of `sizes`."""
        return sum(self.sizes[i] * self._log_determinant(i) for i in self.random)

    def _log_determinant(self, i: int) -> float:
        known = self.design.terms[i].relationship.log_determinant
        if known is not None:
            return known
        n = self.design.terms[i].n_prior_levels
        return factorise_inverse(csr_array(self.inverses[i][:n][:, :n])).log_determinant

    def _mean_unknown_diagonal(self, i: int) -> float:
        n = self.design.terms[i].n_without_fixed_groups
        levels = np.unique(np.linspace(0, n - 1, LEVELS_LOOKED_AT).astype(int))
        columns, place = np.zeros((n, levels.size)), np.arange(levels.size)
        columns[levels, place] = 1.0
        factor = factorise_inverse(csr_array(self.inverses[i][:n][:, :n]))
        return float(np.mean(factor.solve(columns)[levels, place]))

    @property
    def step(self) -> str:
        return "for an iteration"

    @property
    def bytes(self) -> int:
        return self.symbolic.bytes

    @property
    def operations(self) -> float:
        return OPERATIONS_OF_POINT * self.symbolic.flops

    @property
    def facts(self) -> dict[str, Any]:
        return {
            "likelihood": self.name,
            "factor_nonzeros": self.symbolic.nonzeros,
            "factor_operations": self.symbolic.flops,
            "factor_bytes": self.bytes,
        }
