"""Relationships of genotyped animals in single-step, by a core, from products alone: nothing of (m, m) is made.

    H22 = M^-1,       M = S + A22^-1 = tau K^-1 + (1 - omega) A22^-1          omega <= 1

M is positive definite as both of its parts are. With omega 1 its inverse is K / tau, which the core gives at once
(core.py). Below that M is what elimination of the ancestors without genotypes leaves of (1 - omega) A^-1 + tau K^-1, in
which all but the core (c) is sparse: with the others of the pedigree (r), genotyped or not, and D = diag(m_i) of
core.py,

    Q = (1 - omega) A^rr + tau [D^-1 0; 0 0] of genotyped          sparse, by its factor
    C = (1 - omega) A^rc - tau [D^-1 P; 0]                         products
    (1 - omega) A^cc + tau (K_cc^-1 + P' D^-1 P) - C' Q^-1 C       (c, c)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mmgibbs.models.relationships.core import CoreBlock
from mmgibbs.pedigree.partitioned import SubsetInverse, restricted
from mmgibbs.pedigree.relationship import a_inverse_csr

COLUMNS = 64  # right-hand sides at once


@dataclass(frozen=True)
class GenotypedByCore:
    """M^-1 as products with vectors, levels in the order of the block."""

    block: CoreBlock
    pedigree: SubsetInverse  # A22^-1

    @property
    def pedigree_weight(self) -> float:
        """1 - omega."""
        return 1.0 - self.block.share_taken

    def solved(self, b: np.ndarray) -> np.ndarray:
        """M^-1 b, of b (m, k)."""
        return self._eliminated.solved(b) if self.pedigree_weight else self.block.solved(b)

    @cached_property
    def _eliminated(self) -> Eliminated:
        return eliminated(self.block, self.pedigree, self.pedigree_weight)

    def columns_of_inverse(self, columns: np.ndarray) -> np.ndarray:
        """Compute these columns of M^-1, (m, w)."""
        unit = np.zeros((self.block.levels.size, columns.size))
        unit[columns, np.arange(columns.size)] = 1.0
        return self.solved(unit)

    def draw(self, z: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Draw (m, k) of covariance M^-1 from normals z and, for the share of the pedigree, v of covariance A22."""
        if not self.pedigree_weight:
            return self.block.draw(z)
        return self.solved(self.block.noise(z) + np.sqrt(self.pedigree_weight) * self.pedigree.times(v))


@dataclass(frozen=True)
class Eliminated:
    """The parts of M, all but the core eliminated."""

    block: CoreBlock
    factor: Any  # of Q (SuperLU)
    place: np.ndarray  # (n,) of the genotyped animals outside the core among r
    across: Any  # (1 - omega) A^cr, sparse
    root: np.ndarray  # (c, c) lower factor of what is left of the core

    def solved(self, b: np.ndarray) -> np.ndarray:
        """M^-1 b, of b (m, k)."""
        from scipy.linalg import cho_solve

        core, noncore, out = self.block.parts.core, self.block.parts.others, np.empty(b.shape)
        of_others = np.zeros((self.across.shape[1], b.shape[1]))
        of_others[self.place] = b[noncore]
        before = self.factor.solve(of_others)
        out[core] = cho_solve((self.root, True), b[core] - self.to_core(before))
        out[noncore] = (before - self.factor.solve(self.from_core(out[core])))[self.place]
        return out

    def to_core(self, x: np.ndarray) -> np.ndarray:
        """C' x, of x (r, k)."""
        of_genotyped = np.zeros((self.block.levels.size, x.shape[1]))
        of_genotyped[self.block.parts.others] = x[self.place]
        return self.across @ x + self.block.times(of_genotyped)[self.block.parts.core]

    def from_core(self, x: np.ndarray) -> np.ndarray:
        """C x, of x (c, k)."""
        of_genotyped = np.zeros((self.block.levels.size, x.shape[1]))
        of_genotyped[self.block.parts.core] = x
        out = self.across.T @ x
        out[self.place] += self.block.times(of_genotyped)[self.block.parts.others]
        return out


def eliminated(block: CoreBlock, pedigree: SubsetInverse, share: float) -> Eliminated:
    """share: 1 - omega."""
    from scipy.sparse import csc_array, diags_array
    from scipy.sparse.linalg import splu

    kin, number = restricted(pedigree.kin, np.asarray(pedigree.animals, np.int64))
    inverse, genotyped = share * a_inverse_csr(kin), number[pedigree.animals]
    core = genotyped[block.parts.core]
    rest = np.delete(np.arange(kin.n_levels), core)
    place = np.searchsorted(rest, genotyped[block.parts.others])
    diagonal = np.zeros(rest.size)
    diagonal[place] = block.weight / block.parts.left
    Q = csc_array(inverse[rest][:, rest] + diags_array(diagonal))
    factor = splu(Q, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    of_core = inverse[core]
    parts = Eliminated(block, factor, place, of_core[:, rest].tocsr(), np.empty((0, 0)))
    schur = of_core[:, core].toarray()
    for first in range(0, core.size, COLUMNS):
        columns = np.arange(first, min(core.size, first + COLUMNS))
        unit = np.zeros((core.size, columns.size))
        unit[columns, np.arange(columns.size)] = 1.0
        schur[:, columns] += _core_product(parts, unit) - parts.to_core(factor.solve(parts.from_core(unit)))
    return Eliminated(block, factor, place, parts.across, np.linalg.cholesky((schur + schur.T) / 2))


def _core_product(parts: Eliminated, x: np.ndarray) -> np.ndarray:
    """tau (K_cc^-1 + P' D^-1 P) x, of x (c, k)."""
    of_genotyped = np.zeros((parts.block.levels.size, x.shape[1]))
    of_genotyped[parts.block.parts.core] = x
    return parts.block.times(of_genotyped)[parts.block.parts.core]
