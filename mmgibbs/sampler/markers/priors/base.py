"""What a prior of SNP effects is: the conditional prior of each effect now, and the draw of what that depends on.

Two forms of conditional serve every prior: a normal for each effect, or a mixture of normals with a class of exact
zeros. A new prior is a class of this kind in a file of its own and a line in models/marker_priors.py, or an entry point
in the group `mmgibbs.marker_priors`. One with classes and a variance for each SNP that `update` draws anew, given the
effect alone, says so by `redraws_variances = True`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.interweave import CholeskyPrior

if TYPE_CHECKING:
    from mmgibbs.sampler.markers.priors.common import Shares


@dataclass(frozen=True)
class Normals:
    """a_j ~ N(0, variance_j)."""

    variance: np.ndarray  # (p,)


@dataclass(frozen=True)
class Mixture:
    """a_j is 0 in class 0, N(0, variance_kj) in class k with probability exp(log_share_k)."""

    variance: np.ndarray  # (K, p), or (K, 1) where it is the same for every SNP; row 0 is 0
    log_share: np.ndarray  # (K,)


@dataclass(frozen=True)
class Effects:
    """The effects of a term as they are now."""

    a: np.ndarray  # (p,)
    of_class: np.ndarray  # (p,) int8: 0 is an effect of exactly 0; 1 of every SNP where there are no classes


@dataclass(frozen=True)
class ScalePrior:
    """Prior of the scale of all effects at once: a moves to c a, and every variance of effects to c^2 times itself.

    Given the standardised effects, v the variance that is common to them,

        log p(c) = exponent log|c| - scale / (2 c^2 v) - precision c^2 / 2 + constant,     c = 1 now
    """

    v: float
    exponent: float
    scale: float = 0.0
    precision: float = 0.0

    @property
    def root_prior(self) -> CholeskyPrior:
        """The prior of the root of v without its last term, which is that of a normal."""
        place = np.zeros(1, np.int64)
        return CholeskyPrior(place, place, np.array([self.exponent]), np.array([[self.scale]]))

    def log_ratio(self, square: float) -> float:
        """log p(c) - log p(1) as densities of log c, c^2 = square."""
        log_scale, normal = 0.5 * self.scale / self.v * (1 / square - 1), 0.5 * self.precision * (square - 1)
        return float(0.5 * (self.exponent + 1) * np.log(square) - log_scale - normal)


def inverse_chi_square_scale(v: float, df: float, scale: float) -> ScalePrior:
    """Prior of the scale where v ~ scale / chi2(df): the density of v, times the derivative 2 c v of c^2 v."""
    return ScalePrior(v, 1.0 - (df + 2), scale)


def inverse_gamma_scale(v: float, shape: float, rate: float) -> ScalePrior:
    """Prior of the scale where 1/v ~ Gamma(shape, rate)."""
    return inverse_chi_square_scale(v, 2 * shape, 2 * rate)


def gamma_scale(v: float, shape: float, rate: float) -> ScalePrior:
    """Prior of the scale where v ~ Gamma(shape, rate)."""
    return ScalePrior(v, 2 * shape - 1, precision=2 * rate * v)


@dataclass(frozen=True)
class Site:
    """Key of the random numbers of a term."""

    term: int  # its number among all terms that draw
    level: np.ndarray  # (p,) uint64 number of each SNP in its file
    key: tuple[int, int]  # (seed, chain)


class MarkerPrior(Protocol):
    """The prior of the effects of one term in one chain."""

    @property
    def n_classes(self) -> int:
        """Number of classes of a mixture; 1 for other priors."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Names and dimensions of `draws`."""

    @property
    def scaling(self) -> ScalePrior | None:
        """Prior of the scale of all effects; None where it is not sampled."""

    @property
    def shares(self) -> Shares | None:
        """Shares of the classes; None where there are none, or no others may move them."""

    @property
    def class_factors(self) -> np.ndarray:
        """Variances (K,) of the classes in units of what `scaling` scales."""

    def conditional(self) -> Normals | Mixture: ...

    def update(self, effects: Effects, number: int) -> None:
        """Draw what the conditional depends on, given the effects."""

    def rescale(self, square: float) -> None:
        """Multiply the variance of each effect by `square`, as its scale is: the effects moved by the root."""

    @property
    def variance(self) -> float:
        """The common variance, or what represents it in a report."""

    def draws(self) -> dict[str, np.ndarray]: ...

    def state(self) -> dict[str, np.ndarray]:
        """Return the arrays that the next sweep depends on."""

    def restore(self, state: dict[str, np.ndarray]) -> None: ...
