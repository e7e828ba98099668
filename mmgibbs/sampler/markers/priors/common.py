"""What several priors of SNP effects share: a common variance with its draw, and shares of classes."""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.gamma import gamma
from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.draws.purpose import MARKER_LOCAL, MARKER_SHARES, stream
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.markers import MarkerPriorSpec
from mmgibbs.models.priors.inverse_wishart import InverseWishart
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.covariances import START_SCALES, draw_covariance
from mmgibbs.sampler.markers.priors.base import Effects, ScalePrior, Site, inverse_chi_square_scale


class CommonVariance:
    """v ~ nu S / chi2(nu), and v | a ~ (sum_j a_j^2 / factor_j + nu S) / chi2(nu + n), n effects that are not 0."""

    shares: Shares | None = None
    class_factors = np.ones(1)

    def __init__(self, spec: MarkerPriorSpec, p: int, site: Site):
        self.site, self.p = site, p
        start = spec.start if spec.fixed else spec.start * START_SCALES[site.key[1] % len(START_SCALES)]
        prior = InverseWishart(spec.df, np.array([[spec.df * spec.scale]]))
        self.model = CovarianceModel(np.array([[spec.start]]), spec.fixed, full_block(1), prior)
        self.v = start
        self.beside: tuple[float, int] = 0.0, 0  # squares, of so many, that share the variance with the effects
        self.parameters: dict[str, Parameter] = {"variance": Parameter((), "variance of an effect")}

    @property
    def variance(self) -> float:
        return self.v

    @property
    def scaling(self) -> ScalePrior | None:
        if self.model.fixed:
            return None
        df, scale = self.model.inverse_wishart((0,))
        return inverse_chi_square_scale(self.v, df, float(scale[0, 0]))

    def rescale(self, square: float) -> None:
        self.v *= square

    def draw_variance(self, squares: float, n: int, number: int) -> None:
        """squares: the sum of a_j^2 / factor_j over n effects that are not 0."""
        if not self.model.fixed:
            more, count = self.beside
            site = number, self.site.term, self.site.key
            drawn = draw_covariance(self.model, np.array([[squares + more]]), n + count, *site)
            self.v = float(drawn[0, 0])

    def draws(self) -> dict[str, np.ndarray]:
        return {"variance": np.array(self.v)}

    def state(self) -> dict[str, np.ndarray]:
        return {"variance": np.array(self.v)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.v = float(state["variance"])


class Shares:
    """pi ~ Dirichlet(counts), or fixed; pi | classes ~ Dirichlet(counts + n_k).

    Of a prior with classes: options pi (K,), where they start, and counts (K,), None where they are held.
    """

    def __init__(self, spec: MarkerPriorSpec, site: Site):
        counts = spec.options["counts"]
        self.pi, self.site = np.array(spec.options["pi"], float), site
        self.counts = None if counts is None else np.array(counts, float)
        self.in_class = np.zeros(len(self.pi), np.int64)  # SNPs in each class
        self.parameters = {
            "pi": Parameter(("marker_class",), "share of the SNPs in each class"),
            "in_class": Parameter(("marker_class",), "SNPs in each class"),
        }

    @property
    def log(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.pi)

    def draw(self, effects: Effects, number: int) -> None:
        """pi given the classes of the effects."""
        self.in_class = np.bincount(effects.of_class, minlength=len(self.pi))
        if self.counts is None:
            return
        at = stream(MARKER_SHARES, self.site.term)
        g = np.array([gamma(float(c + n), number, k, at, 0, *self.site.key)
                      for k, (c, n) in enumerate(zip(self.counts, self.in_class, strict=True))])  # fmt: skip
        self.pi = g / g.sum()

    def draws(self) -> dict[str, np.ndarray]:
        return {"pi": self.pi, "in_class": self.in_class.astype(float)}

    def state(self) -> dict[str, np.ndarray]:
        return {"pi": self.pi, "in_class": self.in_class}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.pi, self.in_class = state["pi"].copy(), state["in_class"].copy()


def chi_squares(df: np.ndarray, number: int, site: Site) -> np.ndarray:
    """Draw chi2(df_j) for each SNP, (p,)."""
    return _chi_squares(df, number, site.level, stream(MARKER_LOCAL, site.term), *site.key)


@kernel
def _chi_squares(df, number, level, stream, seed, chain):
    out = np.empty(level.size)
    for j in range(level.size):
        out[j] = 2.0 * gamma(0.5 * df[j], number, level[j], stream, 0, seed, chain)
    return out


@kernel
def uniforms(out, number, level, stream, seed, chain, draw=0):
    """out (p,): a uniform inside (0, 1) for each SNP, of the site (number, level[j], stream); level (p,) uint64."""
    for j in range(level.size):
        out[j], _ = uniform_pair(number, level[j], stream, draw_word(draw, 0), seed, chain)
