"""The inverse Wishart, of a single variance the scaled inverse chi-square."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from mmgibbs.models.priors.base import CovariancePrior, PriorContext, describe_degrees
from mmgibbs.models.priors.keys import Limits, Matrix, key


@dataclass(frozen=True)
class PriorKeys:
    """IW(df, scale) of a covariance matrix; of a single variance the scaled inverse chi-square scale / chi2(df)."""

    df: float = key(
        "Degrees of freedom of the inverse Wishart prior.", limits=Limits(-1e12, 1e12, "a number below 1e12")
    )
    scale: Matrix = key("Its scale: a matrix, or a number for a single variance.")


@dataclass(frozen=True)
class InverseWishart(CovariancePrior):
    """IW(nu, S) of each block of a matrix, S that of its components."""

    df: float  # nu
    scale: np.ndarray  # S (k, k)
    df_beyond_size: bool = False  # nu is df plus the size of each block, as a mixture gives it

    key: ClassVar[str] = "df"
    keys: ClassVar[type] = PriorKeys
    form: ClassVar[str] = "{df, scale} (inverse Wishart)"
    short_form: ClassVar[str] = "{df, scale}"

    @classmethod
    def build(cls, keys: PriorKeys, context: PriorContext) -> Self:
        return cls(keys.df, np.array(keys.scale, float))

    @classmethod
    def describe(cls, keys: Mapping[str, Any]) -> str:
        return f"inverse-Wishart prior with {describe_degrees(keys['df'], keys.get('scale'))}"

    def degrees(self, size: int) -> float:
        return float(self.df) + (size if self.df_beyond_size else 0)

    def scale_matrix(self, k: int) -> np.ndarray:
        return self.scale
