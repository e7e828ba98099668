"""BayesR and BayesC: a few classes of variance, the first of them exactly 0.

    BayesR    a_j = 0 with probability pi_0, N(0, gamma_k v) with pi_k          (Erbe et al. 2012; Moser et al. 2015)
    BayesC    the same with one class that is not 0, gamma_1 = 1                (Habier et al. 2011)

v is drawn from its full conditional, v | a ~ (sum a_j^2 / gamma_k(j) + nu S) / chi2(nu + n_in). gamma multiplies the
variance on the scale of the analysis (`allele` or `standard`).
"""

from __future__ import annotations

import numpy as np

from mmgibbs.model.markers import MarkerPriorSpec
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.markers.priors.base import Effects, Mixture, Site
from mmgibbs.sampler.markers.priors.common import CommonVariance, Shares, in_classes


class Classes(CommonVariance):
    """options: classes (K,) factors gamma, the first 0; pi (K,) start; counts (K,) of the Dirichlet prior, or None."""

    def __init__(self, spec: MarkerPriorSpec, p: int, site: Site):
        super().__init__(spec, p, site)
        self.factor = np.array(spec.options["classes"], float)
        assert self.factor[0] == 0 and np.all(self.factor[1:] > 0)
        counts = spec.options["counts"]
        self.shares = Shares(spec.options["pi"], None if counts is None else np.array(counts, float), site)
        self.n_classes = len(self.factor)
        self.in_class = np.zeros(self.n_classes, np.int64)
        self.parameters |= {
            "pi": Parameter(("marker_class",), "share of the SNPs in each class"),
            "in_class": Parameter(("marker_class",), "SNPs in each class"),
        }

    def conditional(self) -> Mixture:
        return Mixture((self.factor * self.v)[:, None], self.shares.log)

    def update(self, effects: Effects, number: int) -> None:
        self.in_class = in_classes(effects, self.n_classes)
        inside = effects.of_class > 0
        squares = effects.a[inside] ** 2 / self.factor[effects.of_class[inside]]
        self.draw_variance(float(squares.sum()), int(inside.sum()), number)
        self.shares.draw(self.in_class, number)

    def draws(self) -> dict[str, np.ndarray]:
        return super().draws() | {"pi": self.shares.pi, "in_class": self.in_class.astype(float)}

    def state(self) -> dict[str, np.ndarray]:
        return super().state() | {"pi": self.shares.pi, "in_class": self.in_class}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        super().restore(state)
        self.shares.pi, self.in_class = state["pi"].copy(), state["in_class"].copy()
