"""K from genotypes: additive (G) and dominance relationships (D), dense, between genotyped animals alone.

K^-1 is a dense block between all levels (base.DenseBlock); there are no lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mmgibbs.models.relationships.base import DenseBlock, Lists, Relationship
from mmgibbs.models.relationships.core import CoreBlock


class NoLists(NamedTuple):
    """K^-1 is the dense block alone."""

    n_levels: int

    @staticmethod
    def weight(K: NoLists, level: int) -> float:
        return 0.0

    @staticmethod
    def times_row(K: NoLists, level: int, theta: np.ndarray, out: np.ndarray) -> None:
        for c in range(out.size):
            out[c] = 0.0

    @staticmethod
    def quadratic(K: NoLists, theta: np.ndarray, out: np.ndarray) -> None:
        out[:] = 0.0

    @staticmethod
    def cuda() -> str:
        return "mmgibbs::NoLists"

    @property
    def relative_ptr(self) -> None:
        return None

    def bytes_per_sweep(self, row: int) -> int:
        return 0


@dataclass(frozen=True)
class Genomic(Relationship):
    """K = G of genotyped animals."""

    block: DenseBlock | CoreBlock  # K^-1, all levels
    diagonal_of_K: np.ndarray  # (q,)
    made: Mapping[str, Any]  # how, for run.json

    words = "genomic"
    symbol = "G"
    sentence = "related by their genotypes"

    @property
    def n_levels(self) -> int:
        return self.block.levels.size

    @property
    def diagonal(self) -> np.ndarray:
        return self.diagonal_of_K

    @property
    def dense(self) -> DenseBlock | CoreBlock:
        return self.block

    @property
    def facts(self) -> dict[str, Any]:
        return dict(self.made)

    def lists(self, order: np.ndarray, real: np.dtype) -> NoLists:
        return NoLists(int(order.size))

    def list_bytes(self, real: int) -> int:
        return 0

    def inverse_csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q = self.n_levels
        indices = np.tile(np.arange(q, dtype=np.int32), q)
        return np.arange(q + 1, dtype=np.int64) * q, indices, self.block.values.astype(np.float64).ravel()

    def lists_csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.zeros(self.n_levels + 1, np.int64), np.empty(0, np.int32), np.empty(0)

    def edges(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return []

    @cached_property
    def _root(self) -> np.ndarray:
        """Lower L (q, q), K^-1 = L L'."""
        return np.linalg.cholesky(self.block.values.astype(np.float64))

    def noise(self, lists: Lists, code: np.ndarray, who: str) -> Callable[[np.ndarray], np.ndarray]:
        position, block = np.argsort(code), self.block
        if isinstance(block, CoreBlock):
            return lambda z: block.noise(z[position])[code]
        return lambda z: (self._root @ z[position])[code]

    def draw(self, z: np.ndarray) -> np.ndarray:
        """Compute L'^-1 z."""
        from scipy.linalg import solve_triangular

        if isinstance(self.block, CoreBlock):
            return self.block.draw(z)
        return solve_triangular(self._root, z, trans="T", lower=True)

    def times(self, x: np.ndarray) -> np.ndarray:
        from scipy.linalg import cho_solve

        return self.block.solved(x) if isinstance(self.block, CoreBlock) else cho_solve((self._root, True), x)

    def spread(self, levels: np.ndarray) -> float:
        ones = np.zeros((self.n_levels, 1))
        ones[levels] = 1.0
        mean = float(np.sum(ones * self.times(ones))) / levels.size**2
        return float(self.diagonal_of_K[levels].mean() - mean)


@dataclass(frozen=True)
class Dominance(Genomic):
    """K = D of genotyped animals."""

    words = "dominance"
    symbol = "D"
    sentence = "related by dominance, from their genotypes"
