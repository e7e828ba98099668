"""The flat prior of each block of a matrix: IW(-(k + 1), 0), k the size of the block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mmgibbs.models.priors.base import CovariancePrior


@dataclass(frozen=True)
class Flat(CovariancePrior):
    """It has no section: the file says `flat`."""

    is_flat: ClassVar[bool] = True

    @classmethod
    def describe(cls, keys: Mapping[str, Any]) -> str:
        return "flat prior"

    def degrees(self, size: int) -> float:
        return -(size + 1.0)

    def scale_matrix(self, k: int) -> np.ndarray:
        return np.zeros((k, k))
