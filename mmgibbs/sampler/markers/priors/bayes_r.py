"""BayesR and BayesC: a few classes of variance, the first of them exactly 0.

    BayesR    a_j = 0 with probability pi_0, N(0, gamma_k v) with pi_k          (Erbe et al. 2012; Moser et al. 2015)
    BayesC    the same with one class that is not 0, gamma_1 = 1                (Habier et al. 2011)

v is drawn from its full conditional, v | a ~ (sum a_j^2 / gamma_k(j) + nu S) / chi2(nu + n_in). gamma multiplies the
variance on the scale of the analysis (`allele` or `standard`).
"""

from __future__ import annotations

import numpy as np

from mmgibbs.models.markers import MarkerPriorSpec
from mmgibbs.sampler.markers.priors.base import Effects, Mixture, Site
from mmgibbs.sampler.markers.priors.common import CommonVariance, Shares


class Classes(CommonVariance):
    """options: classes (K,) factors gamma, the first 0; pi (K,) start; counts (K,) of the Dirichlet prior, or None."""

    shares: Shares

    def __init__(self, spec: MarkerPriorSpec, p: int, site: Site):
        super().__init__(spec, p, site)
        self.class_factors = np.array(spec.options["classes"], float)
        assert self.class_factors[0] == 0 and np.all(self.class_factors[1:] > 0)
        self.shares = Shares(spec, site)
        self.n_classes = len(self.class_factors)
        self.parameters |= self.shares.parameters

    def conditional(self) -> Mixture:
        return Mixture((self.class_factors * self.v)[:, None], self.shares.log)

    def update(self, effects: Effects, number: int) -> None:
        inside = effects.of_class > 0
        squares = effects.a[inside] ** 2 / self.class_factors[effects.of_class[inside]]
        self.draw_variance(float(squares.sum()), int(inside.sum()), number)
        self.shares.draw(effects, number)

    def draws(self) -> dict[str, np.ndarray]:
        return super().draws() | self.shares.draws()

    def state(self) -> dict[str, np.ndarray]:
        return super().state() | self.shares.state()

    def restore(self, state: dict[str, np.ndarray]) -> None:
        super().restore(state)
        self.shares.restore(state)
