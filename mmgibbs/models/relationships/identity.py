"""Independent levels: K = I."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmgibbs.models.relationships.base import Lists, Relationship


class IdentityLists(NamedTuple):
    """K = I."""

    n_levels: int

    @staticmethod
    def weight(K: IdentityLists, level: int) -> float:
        return 1.0

    @staticmethod
    def times_row(K: IdentityLists, level: int, theta: np.ndarray, out: np.ndarray) -> None:
        for c in range(out.size):
            out[c] = theta[level, c]

    @staticmethod
    def cuda() -> str:
        return "mmgibbs::Identity"

    @property
    def relative_ptr(self) -> None:
        return None

    def bytes_per_sweep(self, row: int) -> int:
        return 0


@dataclass(frozen=True)
class Identity(Relationship):
    """K = I: q levels are independent a priori."""

    q: int

    words = "identity"
    symbol = "I"
    related = False
    sentence = "independent levels"

    @property
    def n_levels(self) -> int:
        return self.q

    def lists(self, order: np.ndarray, real: np.dtype) -> IdentityLists:
        return IdentityLists(int(order.size))

    def list_bytes(self, real: int) -> int:
        return 0

    def inverse_csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q = self.q
        return np.arange(q + 1, dtype=np.int64), np.arange(q, dtype=np.int32), np.ones(q)

    def edges(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return []

    def noise(self, lists: Lists, code: np.ndarray, who: str) -> Callable[[np.ndarray], np.ndarray]:
        return lambda z: z

    def draw(self, z: np.ndarray) -> np.ndarray:
        return z

    def times(self, x: np.ndarray) -> np.ndarray:
        return x

    def spread(self, levels: np.ndarray) -> float:
        return 1.0 - 1.0 / levels.size
