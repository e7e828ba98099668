"""The Bayesian lasso (Park & Casella 2008): double-exponential effects.

    a_j ~ N(0, tau_j^2),   tau_j^2 ~ Exp(lambda^2 / 2),   lambda^2 ~ Gamma(shape, rate)

with the full conditionals of draws/shrinkage.py, which the regression of that name has too. Effects are on their own
scale, not in residual standard deviations: other terms and traits share the residual.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.gamma import gamma
from mmgibbs.draws.inverse_gaussian import inverse_gaussian
from mmgibbs.draws.purpose import MARKER_LOCAL, MARKER_SHARES, stream
from mmgibbs.draws.shrinkage import lasso_means, lasso_rate
from mmgibbs.models.markers import MarkerPriorSpec
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.markers.priors.base import Effects, Normals, ScalePrior, Site, inverse_gamma_scale
from mmgibbs.sampler.markers.priors.common import Shares


class Lasso:
    """options: shape, rate of the gamma prior of lambda^2. The start of the variance is the mean of tau^2."""

    n_classes = 1
    shares: Shares | None = None
    class_factors = np.ones(1)

    def __init__(self, spec: MarkerPriorSpec, p: int, site: Site):
        self.site, self.shape, self.rate = site, spec.options["shape"], spec.options["rate"]
        self.v, self.lambda2 = np.full(p, spec.start), 2 / spec.start
        self.parameters = {"lambda2": Parameter((), "lambda^2 of the lasso")}

    def conditional(self) -> Normals:
        return Normals(self.v)

    @property
    def variance(self) -> float:
        return 2 / self.lambda2

    @property
    def scaling(self) -> ScalePrior:
        return inverse_gamma_scale(1 / self.lambda2, self.shape, self.rate)

    def rescale(self, square: float) -> None:
        self.v = self.v * square
        self.lambda2 /= square

    def update(self, effects: Effects, number: int) -> None:
        at = stream(MARKER_LOCAL, self.site.term)
        means = lasso_means(effects.a, self.lambda2)
        self.v = _draw_tau2(means, self.lambda2, number, self.site.level, at, *self.site.key)
        shape, rate = self.shape + len(self.v), lasso_rate(self.rate, self.v.sum())
        self.lambda2 = float(gamma(shape, number, 0, stream(MARKER_SHARES, self.site.term), 0, *self.site.key) / rate)

    def draws(self) -> dict[str, np.ndarray]:
        return {"lambda2": np.array(self.lambda2)}

    def state(self) -> dict[str, np.ndarray]:
        return {"v": self.v, "lambda2": np.array(self.lambda2)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.v, self.lambda2 = state["v"].copy(), float(state["lambda2"])


@kernel
def _draw_tau2(means, lambda2, number, level, stream, seed, chain):
    out = np.empty(means.size)
    for j in range(means.size):
        out[j] = 1.0 / inverse_gaussian(means[j], lambda2, number, level[j], stream, 0, seed, chain)
    return out
