"""Priors of SNP effects: a line here, and a class in a file of `sampler/markers/priors`.

The line says what the analysis file and the data ask of a prior; the class draws what the effects depend on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

GROUP = "mmgibbs.marker_priors"  # entry points of priors in other packages
GAMMA_SHAPE = 1.1  # of priors of a scale, as in BGLR: its mode is the value that the share asks for
BAYES_R = (0.0, 0.01, 0.1, 1.0)  # variances of its classes, in units of the common one
ZERO_OR_ONE = (0.0, 1.0)


class MarkerPriorKind(NamedTuple):
    """Properties of a prior that do not depend on its numbers."""

    place: str = ""  # module and class in sampler/markers/priors
    classes: tuple[float, ...] = ()  # factors of its classes by default, that of effects of exactly 0 first; (): none
    keys: frozenset[str] = frozenset()  # of the section that it takes: classes, global_scale
    has_common_variance: bool = False  # of all effects, which can be fixed
    across_traits: tuple[str, ...] = ()  # how the effects on several traits may depend on each other
    rate: Callable[[float, float], float] | None = None  # of a gamma prior, from start and scale of the variance

    @property
    def is_normal(self) -> bool:
        """True if all effects are from one normal."""
        return self.has_common_variance and not self.classes


def _rate_of_scale(start: float, scale: float) -> float:
    return (GAMMA_SHAPE - 1) / scale


def _rate_of_lambda2(start: float, scale: float) -> float:
    return (GAMMA_SHAPE - 1) * start / 2  # lambda^2 has its mode at 2 / start


MARKER_PRIORS = {
    "rr": MarkerPriorKind("ridge.Ridge", has_common_variance=True, across_traits=("joint",)),
    "bayes_a": MarkerPriorKind("bayes_a.OwnVariances", rate=_rate_of_scale),
    "bayes_b": MarkerPriorKind("bayes_a.OwnVariancesOrZero", ZERO_OR_ONE, rate=_rate_of_scale),
    "bayes_c": MarkerPriorKind(
        "bayes_r.Classes", ZERO_OR_ONE, has_common_variance=True, across_traits=("joint", "one_by_one", "shared")
    ),
    "bayes_r": MarkerPriorKind(
        "bayes_r.Classes", BAYES_R, frozenset({"classes"}), has_common_variance=True, across_traits=("shared",)
    ),
    "lasso": MarkerPriorKind("lasso.Lasso", rate=_rate_of_lambda2),
    "horseshoe": MarkerPriorKind("horseshoe.Horseshoe", keys=frozenset({"global_scale"})),
}
OF_ANOTHER_PACKAGE = MarkerPriorKind(keys=frozenset({"classes", "global_scale"}), rate=_rate_of_scale)
