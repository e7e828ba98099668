"""BayesA and BayesB: a variance of its own for every effect (Meuwissen, Hayes & Goddard 2001).

    BayesA    a_j ~ N(0, v_j),  v_j ~ nu S / chi2(nu)
    BayesB    a_j = 0 with probability pi_0, else as in BayesA

v_j | a_j ~ (a_j^2 + nu S) / chi2(nu + 1); of an effect of 0 it is drawn from its prior. S ~ Gamma(shape, rate) given
all v_j: Gamma(shape + p nu / 2, rate + nu / 2 sum_j 1 / v_j), or it is held.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.gamma import gamma
from mmgibbs.draws.purpose import MARKER_SHARES, stream
from mmgibbs.models.markers import MarkerPriorSpec
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.markers.priors.base import Effects, Mixture, Normals, ScalePrior, Site, gamma_scale
from mmgibbs.sampler.markers.priors.common import Shares, chi_squares

OF_SCALE = 1 << 16  # level of the draw of S, apart from those of pi


class OwnVariances:
    """BayesA. options: shape, rate of the gamma prior of S; shape None: S is fixed."""

    n_classes = 1
    shares: Shares | None = None
    class_factors = np.ones(1)

    def __init__(self, spec: MarkerPriorSpec, p: int, site: Site):
        self.df, self.S, self.site = spec.df, spec.scale, site
        self.shape, self.rate = spec.options["shape"], spec.options["rate"]
        self.v = np.full(p, spec.start)
        self.parameters = {"scale": Parameter((), "S, the scale of the variances of single SNPs")}

    def conditional(self) -> Normals | Mixture:
        return Normals(self.v)

    @property
    def variance(self) -> float:
        return float(self.v.mean())

    @property
    def scaling(self) -> ScalePrior | None:
        return None if self.shape is None else gamma_scale(self.S, self.shape, self.rate)

    def rescale(self, square: float) -> None:
        self.S *= square
        self.v = self.v * square

    def update(self, effects: Effects, number: int) -> None:
        inside = effects.of_class > 0
        squares = np.where(inside, effects.a, 0.0) ** 2
        self.v = (squares + self.df * self.S) / chi_squares(self.df + inside, number, self.site)
        if self.shape is not None:
            shape = self.shape + 0.5 * len(self.v) * self.df
            rate = self.rate + 0.5 * self.df * np.sum(1 / self.v)
            at = stream(MARKER_SHARES, self.site.term)
            self.S = float(gamma(shape, number, OF_SCALE, at, 0, *self.site.key) / rate)

    def draws(self) -> dict[str, np.ndarray]:
        return {"scale": np.array(self.S)}

    def state(self) -> dict[str, np.ndarray]:
        return {"v": self.v, "scale": np.array(self.S)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.v, self.S = state["v"].copy(), float(state["scale"])


class OwnVariancesOrZero(OwnVariances):
    """BayesB. options besides: pi (2,) start, counts (2,) of its beta prior or None."""

    n_classes = 2
    redraws_variances = True
    class_factors = np.array([0.0, 1.0])
    shares: Shares

    def __init__(self, spec: MarkerPriorSpec, p: int, site: Site):
        super().__init__(spec, p, site)
        self.shares = Shares(spec, site)
        self.parameters |= self.shares.parameters

    def conditional(self) -> Mixture:
        return Mixture(np.stack([np.zeros_like(self.v), self.v]), self.shares.log)

    def update(self, effects: Effects, number: int) -> None:
        super().update(effects, number)
        self.shares.draw(effects, number)

    def draws(self) -> dict[str, np.ndarray]:
        return super().draws() | self.shares.draws()

    def state(self) -> dict[str, np.ndarray]:
        return super().state() | self.shares.state()

    def restore(self, state: dict[str, np.ndarray]) -> None:
        super().restore(state)
        self.shares.restore(state)
