"""Products with the block of K^-1 that a core of the genotyped animals makes (models/relationships/core.py).

With x_c and x_n of the core and the other animals, one pass over the rows of P gives what both get:

    non-core y_i = (x_i - p_i' x_c) / m_i
    core     K_cc^-1 x_c - sum_i p_i y_i

core_rows(P, variance, of_core, of_non_core, first, last, out, sums) does it for rows first ... last - 1 of P:
out[:, i] = y_i and sums += p_i y_i. c^2 + n c numbers are read for a product, where the dense block has (n + c)^2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.equations.dense import dot
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.pedigree.partitioned import SubsetInverse


class CoreLevels(NamedTuple):
    """The block of a term's K^-1, its levels in model order."""

    positions: np.ndarray  # (m,) int64 of the levels in sweep order
    core: np.ndarray  # (c,) int64 places in the block
    non_core: np.ndarray  # (n,) int64
    of_core: np.ndarray  # (c, c) K_cc^-1, float64 or float32
    products: np.ndarray  # (n, c) P, float64 or float32
    conditional_variance: np.ndarray  # (n,) float64 m_i
    weight: float
    pedigree: SubsetInverse | None  # A22^-1
    less: float

    def diagonal(self) -> np.ndarray:
        """Compute the diagonal (m,) float64."""
        out = np.empty(self.positions.size)
        squares = np.zeros(self.core.size)
        for row, variance in zip(self.products, self.conditional_variance, strict=True):
            squares += row.astype(np.float64) ** 2 / variance
        out[self.core] = self.of_core.diagonal() + squares
        out[self.non_core] = 1 / self.conditional_variance
        out *= self.weight
        return out if self.pedigree is None or not self.less else out - self.less * self.pedigree.diagonal


@kernel
def core_rows(products, variance, of_core, of_non_core, first, last, out, sums):
    """See the module, for rows first ... last - 1 of P: products (n, c) is P, variance (n,) the m_i.

    of_core (k, c) is x_c, of_non_core (k, n) x_n; out (k, n), sums (k, c), all float64; sums is added to.
    """
    k, c = of_core.shape
    for i in range(np.uint64(first), np.uint64(last)):
        row = products[i]
        for a in range(k):
            value = (of_non_core[a, i] - dot(row, of_core[a], 0, c)) / variance[i]
            out[a, i] = value
            total = sums[a]
            for j in range(np.uint64(c)):
                total[j] += value * np.float64(row[j])
