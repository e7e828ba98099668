"""The horseshoe (Carvalho, Polson & Scott 2010) by inverse gammas (Makalic & Schmidt 2016).

a_j ~ N(0, lambda_j^2 tau^2),   lambda_j ~ C+(0, 1),   tau ~ C+(0, A)
lambda_j^2 | . ~ IG(1, 1/nu_j + a_j^2 / (2 tau^2)),    nu_j | . ~ IG(1, 1 + 1/lambda_j^2)
tau^2 | . ~ IG((p + 1)/2, 1/xi + sum_j a_j^2 / (2 lambda_j^2)),    xi | . ~ IG(1, 1/A^2 + 1/tau^2)

Their rates are those of draws/shrinkage.py, which the regression of that name has too.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.gamma import gamma
from mmgibbs.draws.purpose import MARKER_LOCAL, MARKER_SHARES, stream
from mmgibbs.draws.shrinkage import horseshoe_auxiliary_rate, horseshoe_rate
from mmgibbs.models.markers import MarkerPriorSpec
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.markers.priors.base import Effects, Normals, ScalePrior, Site, inverse_gamma_scale
from mmgibbs.sampler.markers.priors.common import Shares


class Horseshoe:
    """options: global_scale A. The start of the variance is tau^2."""

    n_classes = 1
    shares: Shares | None = None
    class_factors = np.ones(1)

    def __init__(self, spec: MarkerPriorSpec, p: int, site: Site):
        self.site, self.A2 = site, float(spec.options["global_scale"]) ** 2
        self.local, self.auxiliary = np.ones(p), np.ones(p)
        self.tau2, self.xi = spec.start, self.A2
        self.parameters = {"tau2": Parameter((), "tau^2, the square of the global scale")}

    def conditional(self) -> Normals:
        return Normals(self.local * self.tau2)

    @property
    def variance(self) -> float:
        return self.tau2

    @property
    def scaling(self) -> ScalePrior:
        return inverse_gamma_scale(self.tau2, 0.5, 1 / self.xi)

    def rescale(self, square: float) -> None:
        self.tau2 *= square

    def update(self, effects: Effects, number: int) -> None:
        squares, at = effects.a**2, stream(MARKER_LOCAL, self.site.term)
        _draw_local(self.local, self.auxiliary, squares / (2 * self.tau2), number, self.site.level, at, *self.site.key)
        of_all = number, 0, stream(MARKER_SHARES, self.site.term)
        rate = horseshoe_rate(1 / self.xi, 0.5 * np.sum(squares / self.local))
        self.tau2 = float(rate / gamma(0.5 * (len(squares) + 1), *of_all, 0, *self.site.key))
        of_auxiliary = horseshoe_auxiliary_rate(1 / self.A2, 1 / self.tau2)
        self.xi = float(of_auxiliary / gamma(1.0, *of_all, 1, *self.site.key))

    def draws(self) -> dict[str, np.ndarray]:
        return {"tau2": np.array(self.tau2)}

    def state(self) -> dict[str, np.ndarray]:
        scales = np.array([self.tau2, self.xi])
        return {"local": self.local, "auxiliary": self.auxiliary, "scales": scales}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.local, self.auxiliary = state["local"].copy(), state["auxiliary"].copy()
        self.tau2, self.xi = (float(x) for x in state["scales"])


@kernel
def _draw_local(local, auxiliary, scaled, number, level, stream, seed, chain):
    """lambda_j^2, then nu_j, in place; scaled (p,): a_j^2 / (2 tau^2)."""
    for j in range(local.size):
        rate = horseshoe_rate(1.0 / auxiliary[j], scaled[j])
        local[j] = rate / gamma(1.0, number, level[j], stream, 0, seed, chain)
        rate = horseshoe_auxiliary_rate(1.0, 1.0 / local[j])
        auxiliary[j] = rate / gamma(1.0, number, level[j], stream, 1, seed, chain)
