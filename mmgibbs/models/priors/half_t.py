"""Half-t standard deviations (Huang & Wand 2013).

G | a ~ IW(nu + k - 1, 2 nu diag(1/a_i)),  a_i ~ IG(1/2, 1/A_i^2): each standard deviation is half-t(nu, A_i); for nu =
2 correlations are uniform.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from mmgibbs.errors import ConfigError
from mmgibbs.models.priors.base import CovariancePrior, PriorContext, describe_degrees
from mmgibbs.models.priors.keys import Limits, key
from mmgibbs.models.priors.mixture import Mixture

WIDE = 1e3  # scale by default, in phenotypic standard deviations, of traits whose scale the data know


@dataclass(frozen=True)
class HalfTScaleKeys:
    """Half-t of each standard deviation: df, and its scale for every component (default: wide)."""

    df: float = key(
        "Degrees of freedom of the half-t priors; 2 makes correlations uniform.",
        2.0,
        Limits(0, 1e6, "a number above 0"),
    )
    scale: tuple[float, ...] | None = key(
        "Scale of the standard deviation of each component. Default: 1 for traits with a residual variance of 1 "
        "(binary, ordinal), 1,000 phenotypic standard deviations for others.",
        None,
        Limits(0, None, "numbers above 0"),
    )


@dataclass(frozen=True)
class HalfTKeys:
    """Half-t priors of the standard deviations, uniform correlations for df 2 (Huang & Wand 2013)."""

    half_t: HalfTScaleKeys = key("Half-t priors of the standard deviations: {df, scale}.")


@dataclass(frozen=True)
class HalfT(CovariancePrior):
    """nu, and the scale A_i of the standard deviation of each component."""

    nu: float
    A: np.ndarray  # (k,)

    key: ClassVar[str] = "half_t"
    keys: ClassVar[type] = HalfTKeys
    form: ClassVar[str] = "{half_t: {df, scale}}"
    short_form: ClassVar[str] = "{half_t: {}}"
    suits_structures: ClassVar[bool] = True
    is_proper: ClassVar[bool] = True

    @classmethod
    def build(cls, keys: HalfTKeys, context: PriorContext) -> Self:
        scale, k = keys.half_t.scale, len(context.labels)
        if scale is None:
            return cls(keys.half_t.df, np.where(context.unit, 1.0, WIDE * context.sd))
        if len(scale) not in (1, k):
            raise ConfigError(
                f"{context.where}.half_t.scale: found {len(scale)} numbers, needed one, or one for each of "
                f"{', '.join(context.labels)}"
            )
        return cls(keys.half_t.df, np.broadcast_to(np.array(scale), k).astype(float))

    @classmethod
    def describe(cls, keys: Mapping[str, Any]) -> str:
        half_t = keys["half_t"]
        return f"half-t prior of standard deviations with {describe_degrees(half_t['df'], half_t.get('scale'))}"

    @cached_property
    def mixture(self) -> Mixture:
        return Mixture(self.nu, self.nu, 0.5, self.A**2, is_inverse=True)
