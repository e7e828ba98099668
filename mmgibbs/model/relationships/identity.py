"""Independent levels: K = I."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmgibbs.model.relationships.base import Relationship


def _one(K, level):
    return 1.0


def _row(K, level, theta, out):
    for c in range(out.size):
        out[c] = theta[level, c]


class IdentityLists(NamedTuple):
    """K = I."""

    n_levels: int

    weight = staticmethod(_one)
    times_row = staticmethod(_row)
    quadratic = None
    cuda = "mmgibbs::Identity"

    @property
    def relative_ptr(self) -> None:
        return None

    def bytes_per_sweep(self, row: int) -> int:
        return 0


@dataclass(frozen=True)
class Identity(Relationship):
    """K = I: levels are independent a priori."""

    n_levels: int

    words = "identity"
    symbol = "I"
    related = False
    sentence = "independent levels"

    def lists(self, order, real):
        return IdentityLists(int(order.size))

    def list_bytes(self, real):
        return 0

    def inverse_csr(self):
        q = self.n_levels
        return np.arange(q + 1, dtype=np.int64), np.arange(q, dtype=np.int32), np.ones(q)

    def edges(self):
        return []

    def noise(self, lists, code, who):
        return lambda z: z

    def draw(self, z):
        return z

    def spread(self, levels):
        return 1.0 - 1.0 / levels.size
