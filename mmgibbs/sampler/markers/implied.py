"""What predicted genotypes leave of breeding values, with the variance that SNPs imply (model.markers.VarianceLeft).

With a_j ~ N(0, v) and epsilon_n ~ N(0, (A^nn)^-1 k v), k = sum 2pq, there is one genetic variance k v, and

    v | a, epsilon ~ (sum a_j^2 + epsilon' A^nn epsilon / k + nu S) / chi2(p + n + nu)

Interweaving scales all that is standardised by v, the effects and epsilon, by one number.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.engines.base import HostState
from mmgibbs.model.markers import Markers, VarianceLeft
from mmgibbs.posterior.parameters import matrix_name
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.mixed_model import MixedModel


class ImpliedVariance:
    """Epsilon as the step of the SNP effects sees it. It holds nothing of its own."""

    def __init__(
        self, model: MixedModel, markers: Markers, left: VarianceLeft, engine: HostState, matrices: CovarianceMatrices
    ):
        self.term, self.factor, self.engine, self.matrices = model.term_index(left.term), left.factor, engine, matrices
        term, lists = model.design.terms[self.term], engine.equations.terms[self.term]
        self.n, level = term.n_prior_levels, term.effects[0].level
        known = markers.animal >= 0
        self.places, first = np.unique(markers.animal[known], return_index=True)
        self.positions = np.argsort(lists.code)[level[known][first]]  # of the levels of these animals

    def squares(self) -> tuple[float, int]:
        """epsilon' A^nn epsilon / k, and of how many."""
        return float(self.engine.quadratic_form(self.term)[0, 0]) / self.factor, self.n

    def of_animals(self, n: int) -> np.ndarray:
        """(n,) epsilon by place in the store; 0 of animals without records."""
        out = np.zeros(n)
        out[self.places] = self.engine.theta[self.term][self.positions, 0]
        return out

    def give(self, v: float) -> None:
        """The variance of the term follows that of an effect."""
        self.matrices[matrix_name(self.term)] = np.array([[self.factor * v]])
