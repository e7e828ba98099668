"""Relationships of genotyped animals in single-step, by a core, from products alone: nothing of (m, m) is made.

    H22 = M^-1,       M = S + A22^-1 = tau K^-1 + (1 - omega) A22^-1          omega <= 1

M is positive definite as both of its parts are. With omega 1 its inverse is K / tau, which the core gives at once
(core.py); below that it is iterated for, with K / tau as the preconditioner: M K / tau has no eigenvalue below 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.model.relationships.core import CoreBlock
from pedigree.partitioned import InverseAmong

TOLERANCE = 1e-12  # of a solution, relative, in the norm of the preconditioner
ITERATIONS = 10_000

Operator = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class GenotypedByCore:
    """M and M^-1 as products with vectors, levels in the order of the block."""

    block: CoreBlock
    pedigree: InverseAmong  # A22^-1

    @property
    def left_of_pedigree(self) -> float:
        """1 - omega."""
        return 1.0 - self.block.share_taken

    def times(self, x: np.ndarray) -> np.ndarray:
        """M x, of x (m, k)."""
        out = self.block.times(x)
        return out + self.left_of_pedigree * self.pedigree.times(x) if self.left_of_pedigree else out

    def solved(self, b: np.ndarray) -> np.ndarray:
        """M^-1 b, of b (m, k)."""
        return iterated(self.times, self.block.solved, b) if self.left_of_pedigree else self.block.solved(b)

    def columns_of_inverse(self, columns: np.ndarray) -> np.ndarray:
        """(m, w) these columns of M^-1."""
        unit = np.zeros((self.block.levels.size, columns.size))
        unit[columns, np.arange(columns.size)] = 1.0
        return self.solved(unit)

    def draw(self, z: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(m, k) of covariance M^-1, from normals z and, for the share of the pedigree, v of covariance A22."""
        if not self.left_of_pedigree:
            return self.block.draw(z)
        return self.solved(self.block.noise(z) + np.sqrt(self.left_of_pedigree) * self.pedigree.times(v))


def iterated(times: Operator, precondition: Operator, b: np.ndarray) -> np.ndarray:
    """x (m, k) with M x = b by conjugate gradients, column by column in the same passes (Hestenes & Stiefel 1952).

    ModelError where ITERATIONS do not suffice.
    """
    x, residual = np.zeros(b.shape), b.copy()
    direction = precondition(residual)
    left = np.einsum("ij,ij->j", residual, direction)
    wanted = TOLERANCE**2 * left
    for _ in range(ITERATIONS):
        moving = left > wanted
        if not moving.any():
            return x
        product = times(direction)
        curvature = np.einsum("ij,ij->j", direction, product)
        step = np.divide(left, curvature, out=np.zeros(left.shape), where=moving)
        x += step * direction
        residual -= step * product
        z = precondition(residual)
        now = np.einsum("ij,ij->j", residual, z)
        direction = z + np.divide(now, left, out=np.zeros(left.shape), where=moving) * direction
        left = np.where(moving, now, left)
    raise ModelError(
        f"single-step relationships by a core: {ITERATIONS:,} iterations left an error of "
        f"{np.sqrt((left[moving] / wanted[moving]).max()) * TOLERANCE:.1e}, needed {TOLERANCE:.0e}: the genomic "
        "relationships of the core are close to singular; needed a larger blend"
    )
