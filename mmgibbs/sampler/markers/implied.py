"""The residual polygenic effect of predicted genotypes, with the variance that SNPs imply.

With a_j ~ N(0, gamma v), gamma its class, and epsilon_n ~ N(0, (A^nn)^-1 k v), k = sum 2pq times the mean of gamma over
the shares of the classes, which are held, there is one genetic variance k v, and

    v | a, epsilon ~ (sum a_j^2 / gamma_j + epsilon' A^nn epsilon / k + nu S) / chi2(n_in + n + nu)

On T traits, a_j ~ N(0, G) and epsilon ~ MN(0, (A^nn)^-1 (x) k G):

    G | a, epsilon ~ IW(df + p + n, scale + sum a_j a_j' + epsilon' A^nn epsilon / k)

Interweaving scales all that is standardised by v or G, the effects and epsilon, by one number or matrix. Where shares
of classes are sampled, their draw given epsilon is no Dirichlet any more, as k depends on them: it is not built.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.engines.base import MarkerEngine
from mmgibbs.models.markers import Markers, ResidualPolygenicVariance
from mmgibbs.posterior.draw_names import matrix_name
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.mixed_model import MixedModel


class ImpliedVariance:
    """Epsilon as the step of the SNP effects sees it, its traits in the order of the effects. It holds nothing of its
    own."""

    def __init__(
        self,
        model: MixedModel,
        markers: Markers,
        left: ResidualPolygenicVariance,
        engine: MarkerEngine,
        matrices: CovarianceMatrices,
        traits: Sequence[int],
    ):
        self.term, self.factor, self.engine, self.matrices = model.term_index(left.term), left.factor, engine, matrices
        term, lists = model.design.terms[self.term], engine.equations.terms[self.term]
        self.n, level = term.n_prior_levels, term.effects[0].level
        self.components = np.array([np.flatnonzero(term.component_trait == t)[0] for t in traits])
        self.in_traits = np.ix_(self.components, self.components)
        known = markers.animal >= 0
        self.places, first = np.unique(markers.animal[known], return_index=True)
        self.positions = np.argsort(lists.code)[level[known][first]]  # of the levels of these animals

    def squares(self) -> tuple[np.ndarray, int]:
        """epsilon' A^nn epsilon / k (T, T), and of how many animals."""
        return self.engine.quadratic_form(self.term)[self.in_traits] / self.factor, self.n

    def epsilon(self, n: int) -> np.ndarray:
        """Return epsilon (T, n) by position in the store; 0 of animals without records."""
        out = np.zeros((len(self.components), n))
        out[:, self.places] = self.engine.theta[self.term][self.positions][:, self.components].T
        return out

    def give(self, G: np.ndarray) -> None:
        """The covariance matrix of the term follows that of an effect (T, T)."""
        self.matrices[matrix_name(self.term)] = self._permute_traits(self.factor * G)

    def transform(self, M: np.ndarray) -> None:
        """epsilon <- M epsilon of every animal, M (T, T), and the records follow."""
        self.engine.transform_term(self.term, self._permute_traits(M))

    def _permute_traits(self, of_traits: np.ndarray) -> np.ndarray:
        """A matrix by traits in the order of the components of the term."""
        out = np.empty(of_traits.shape)
        out[self.in_traits] = of_traits
        return out
