"""Densities of covariance matrices as numbers, which compiled functions take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class LogDensity(NamedTuple):
    """log p(G), up to a constant, of G = L L':

    -sum_i powers_i log l_ii - sum_i exponents_i log(factors_i t_i + offsets_i) - tr(scale G^-1) / 2

    where t_i is (G^-1)_ii, or G_ii with `of_variances`. Either the second sum or the trace is 0.
    """

    powers: np.ndarray  # (k,)
    scale: np.ndarray  # (k, k)
    exponents: np.ndarray  # (k,)
    factors: np.ndarray  # (k,)
    offsets: np.ndarray  # (k,)
    of_variances: bool = False


def block_sizes(blocks: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Size of the block that each component is in, (k,)."""
    sizes = np.zeros(sum(map(len, blocks)), int)
    for block in blocks:
        sizes[list(block)] = len(block)
    return sizes
