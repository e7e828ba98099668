"""Uniform heritability of a trait whose residual variance is 1.

s | a ~ IW(2, 2 a),  a ~ Exp(1): s is beta-prime(1, 1), so that s/(1 + s), the share of s beside a residual variance of
1, is uniform on (0, 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from mmgibbs.errors import ConfigError
from mmgibbs.models.priors.base import CovariancePrior, PriorContext
from mmgibbs.models.priors.keys import key
from mmgibbs.models.priors.mixture import Mixture


@dataclass(frozen=True)
class UniformHeritabilityKeys:
    """s / (s + 1) uniform on (0, 1), s the variance of one component of a trait whose residual variance is 1."""

    h2: Literal["uniform"] = key(
        "uniform: the share of the variance, that of this component over its sum with the residual variance, is "
        "uniform on (0, 1) on the liability scale. If no other effect is random and this one is genetic, it is the "
        "heritability."
    )


@dataclass(frozen=True)
class UniformHeritability(CovariancePrior):
    """It has no numbers."""

    key: ClassVar[str] = "h2"
    keys: ClassVar[type] = UniformHeritabilityKeys
    form: ClassVar[str] = "{h2: uniform}"
    short_form: ClassVar[str] = "{h2: uniform}"
    suits_residuals: ClassVar[bool] = False
    is_proper: ClassVar[bool] = True

    @classmethod
    def build(cls, keys: UniformHeritabilityKeys, context: PriorContext) -> Self:
        if list(context.unit) != [True]:
            raise ConfigError(
                f"{context.where}.h2: found uniform for {', '.join(context.labels)}; it is for one component of a "
                "trait whose residual variance is 1 (binary or ordinal); needed prior: {half_t: {}}"
            )
        return cls()

    @classmethod
    def describe(cls, keys: Mapping[str, Any]) -> str:
        return f"share of the variance (its own plus the residual's) {keys['h2']} on (0, 1)"

    @cached_property
    def mixture(self) -> Mixture:
        return Mixture(2.0, 1.0, 1.0, np.ones(1), is_of_one=True)
