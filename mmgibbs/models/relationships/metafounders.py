"""A pedigree with metafounders: A with relationships Gamma among the base populations (see pedigree/metafounders.py).

Levels are the animals, then the metafounders. The lists are those of a pedigree with groups, Gamma^-1 a dense block
between the metafounders, which have values of covariance Gamma G of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mmgibbs.models.relationships.base import DenseBlock, Lists
from mmgibbs.models.relationships.pedigree import mendelian_noise
from mmgibbs.models.relationships.single_step import SingleStep
from mmgibbs.pedigree.metafounders import (
    a_among_with_metafounders,
    inverse_among_with_metafounders,
)
from mmgibbs.pedigree.relationship import Relatives
from mmgibbs.pedigree.relationship_products import a_times_relatives


def metafounders(kin: Relatives, gamma: np.ndarray, made: Mapping[str, Any]) -> Metafounders:
    """kin: that of `mmgibbs.pedigree.metafounders.metafounder_relatives`; gamma (m, m)."""
    levels = np.arange(kin.n_animals, kin.n_levels, dtype=np.int32)
    inverse = np.linalg.inv(gamma)
    return Metafounders(kin, DenseBlock(levels, (inverse + inverse.T) / 2), made, gamma)


@dataclass(frozen=True)
class Metafounders(SingleStep):
    """K = A with metafounders."""

    gamma: np.ndarray  # (m, m)

    words = "pedigree with metafounders"
    symbol = "A"
    sentence = "related by the pedigree, its founders by the populations that they come from"

    def submatrix(self, animals: np.ndarray) -> np.ndarray:
        return a_among_with_metafounders(self.relatives, self.gamma, animals)

    def inverse_among(self, animals: np.ndarray) -> np.ndarray:
        return inverse_among_with_metafounders(self.relatives, self.gamma, animals)

    @cached_property
    def diagonal(self) -> np.ndarray:
        return np.concatenate([1.0 + self.relatives.inbreeding, np.diag(self.gamma)])

    def noise(self, lists: Lists, code: np.ndarray, who: str) -> Callable[[np.ndarray], np.ndarray]:
        """Return the noise of the pedigree's lists and of Gamma^-1."""
        place = np.argsort(code)[self.relatives.n_animals :]
        root = np.linalg.cholesky(self.block.values)

        def made(z: np.ndarray) -> np.ndarray:
            out = mendelian_noise(lists, z)
            out[place] += root @ z[place]
            return out

        return made

    def draw(self, z: np.ndarray) -> np.ndarray:
        """L D^1/2 z + Q g, g = Gamma^1/2 z of the metafounders."""
        noise = z.copy()
        noise[self.relatives.n_animals :] = np.linalg.cholesky(self.gamma) @ z[self.relatives.n_animals :]
        return super(SingleStep, self).draw(noise)

    def times(self, x: np.ndarray) -> np.ndarray:
        """Compute (A + Q Gamma Q') x."""
        Q = self.group_shares().astype(np.float64)
        return super(SingleStep, self).times(x) + Q @ (self.gamma @ (Q.T @ x))

    def spread(self, levels: np.ndarray) -> float:
        """Compute the spread from x'K x = x_u' L D L' x_u + c' Gamma c, c = x_g + Q' x_u.

        x is the indicator of the levels.
        """
        x, n = np.zeros(self.n_levels), self.relatives.n_animals
        x[levels] = 1.0
        c = self.group_shares().T.astype(np.float64) @ x
        total = x[:n] @ a_times_relatives(self.relatives, x[:n]) + c @ self.gamma @ c
        return float(self.diagonal[levels].mean() - total / levels.size**2)
