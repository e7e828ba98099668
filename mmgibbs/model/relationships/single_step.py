"""Single-step relationships H: a pedigree in which some animals are genotyped (Legarra et al. 2009, Aguilar et al.
2010, Christensen & Lund 2010).

    H^-1 = A^-1 + [0 0; 0 S],     S = tau G^-1 - omega A22^-1

The lists are those of the pedigree, S is a dense block between the genotyped animals (2). What follows uses

    H22 = M^-1,                   M = S + A22^-1
    u1 = B u2 + e1,               B = -(A^11)^-1 A^12,   e1 ~ N(0, (A^11)^-1)

for the others (1): given the genotyped animals they are as the pedigree says. H is positive definite where M is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.model.relationships.base import DenseBlock, Lists
from mmgibbs.model.relationships.core import CoreBlock
from mmgibbs.model.relationships.inverse import inverse_of
from mmgibbs.model.relationships.pedigree import Pedigree
from pedigree.partitioned import Partitioned, inverse_among, partitioned
from pedigree.relationship import group_composition

COLUMNS = 64  # right-hand sides at once
EXACT_UP_TO = 2e9  # others x genotyped: some minutes of sparse solutions; beyond, the others' diagonal is estimated
DRAWS = 1024  # for that
NOT_DEFINITE = (
    "the single-step relationships are not positive definite: omega A22^-1 subtracts more than the rest adds; needed "
    "a smaller omega, or a larger tau or blend"
)


@dataclass(frozen=True)
class SingleStep(Pedigree):
    """K = H."""

    block: DenseBlock | CoreBlock  # S, between the genotyped animals
    made: Mapping[str, Any]  # how, for run.json

    words = "single-step"
    symbol = "H"
    sentence = "related by the pedigree, and the genotyped ones by their genotypes"

    @property
    def n_groups(self) -> int:
        """Of metafounders, which stand last in the block as well."""
        return self.relatives.n_groups

    def group_shares(self) -> np.ndarray:
        """(q, m) float32 Q: the expected share of each metafounder's genes."""
        return group_composition(self.relatives.sire, self.relatives.dam, self.n_groups)

    @property
    def dense(self) -> DenseBlock | CoreBlock:
        return self.block

    @property
    def facts(self) -> dict[str, Any]:
        return dict(self.made)

    def inverse_csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        from scipy.sparse import csr_array

        q, own, m = self.n_levels, self.block.levels, self.block.levels.size
        indptr, indices, values = super().inverse_csr()
        counts = np.zeros(q, np.int64)
        counts[own] = m
        block_ptr = np.concatenate([[0], np.cumsum(counts)])
        block = csr_array((self.block.values.astype(np.float64).ravel(), np.tile(own, m), block_ptr), shape=(q, q))
        matrix = csr_array(csr_array((values, indices, indptr), shape=(q, q)) + block)
        matrix.sort_indices()
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data

    @cached_property
    def _parts(self) -> Partitioned:
        return partitioned(self.relatives, self.block.levels)

    @cached_property
    def _M(self) -> np.ndarray:
        """(m, m)."""
        return self.block.values.astype(np.float64) + inverse_among(self.relatives, self.block.levels)

    @cached_property
    def _root(self) -> np.ndarray:
        """(m, m) lower L, M = L L'."""
        try:
            return np.linalg.cholesky(self._M)
        except np.linalg.LinAlgError:
            raise ModelError(NOT_DEFINITE) from None

    def _noise(self, z: np.ndarray) -> np.ndarray:
        """(q, k) of covariance H^-1, model order: that of the pedigree without A22^-1, and that of M."""
        parts, out = self._parts, np.empty(z.shape)
        out[parts.others] = parts.root_times(z[parts.others])
        block, own = self.block, z[parts.chosen]
        own = block.noise(own) if isinstance(block, CoreBlock) and block.of_core_alone else self._root @ own
        out[parts.chosen] = own + parts.across @ parts.solve(out[parts.others])
        return out

    def noise(self, lists: Lists, code: np.ndarray, who: str) -> Callable[[np.ndarray], np.ndarray]:
        position = np.argsort(code)
        return lambda z: self._noise(z[position])[code]

    def draw(self, z: np.ndarray) -> np.ndarray:
        """u2 = L'^-1 z2, u1 = B u2 + e1."""
        from scipy.linalg import solve_triangular

        parts, out, block = self._parts, np.empty(z.shape), self.block
        if isinstance(block, CoreBlock) and block.of_core_alone:
            out[parts.chosen] = block.draw(z[parts.chosen])
        else:
            out[parts.chosen] = solve_triangular(self._root, z[parts.chosen], trans="T", lower=True)
        noise = parts.root_times(z[parts.others])
        out[parts.others] = parts.solve(noise - parts.across.T @ out[parts.chosen])
        return out

    @cached_property
    def diagonal(self) -> np.ndarray:
        """(q,) diagonal of H, from 1 + F of the pedigree (1 without genotypes where inbreeding is ignored) and what
        genotypes change of it:

            H_ii = A_ii + b_i' (M^-1 - A22) b_i

        exact up to EXACT_UP_TO, beyond that with the mean of DRAWS draws of (b_i'u)^2 - (b_i'v)^2 in place of the
        second part, u of covariance M^-1 and v of A22 from the same normals.
        """
        parts = self._parts
        own = inverse_of(self._M).values
        of_pedigree = self._of_pedigree()
        out = np.concatenate([1.0 + self.relatives.inbreeding, np.ones(self.n_groups)])
        out[parts.chosen] = own.diagonal()
        if float(parts.others.size) * parts.chosen.size <= EXACT_UP_TO:
            out[parts.others] += self._changed(own - of_pedigree)
        else:
            out[parts.others] += self._changed_in_draws(own, of_pedigree)
        return out

    def _of_pedigree(self) -> np.ndarray:
        """(m, m) what the pedigree alone says of the levels of the block: A22, with metafounders those of both."""
        g = self.n_groups
        if not g:
            return self.among(self.block.levels)
        inverse = inverse_among(self.relatives, self.block.levels)
        inverse[-g:, -g:] += self.block.values[-g:, -g:]
        return inverse_of(inverse).values

    def _changed(self, difference: np.ndarray) -> np.ndarray:
        """(others,) diagonal of B difference B'."""
        parts, across = self._parts, self._parts.across.T.tocsr()
        out = np.zeros(parts.others.size)
        for first in range(0, parts.chosen.size, COLUMNS):
            columns = slice(first, first + COLUMNS)
            unit = np.zeros((parts.chosen.size, min(COLUMNS, parts.chosen.size - first)))
            unit[np.arange(first, first + unit.shape[1]), np.arange(unit.shape[1])] = 1.0
            out += np.sum(parts.solve(across @ unit) * parts.solve(across @ difference[:, columns]), axis=1)
        return out

    def _changed_in_draws(self, own: np.ndarray, of_pedigree: np.ndarray) -> np.ndarray:
        parts, random = self._parts, np.random.Generator(np.random.Philox(key=0))
        roots = [np.linalg.cholesky(of) for of in (own, of_pedigree)]
        out = np.zeros(parts.others.size)
        for _ in range(0, DRAWS, COLUMNS):
            z = random.standard_normal((parts.chosen.size, COLUMNS))
            u, v = (parts.solve(parts.across.T @ (root @ z)) for root in roots)
            out += np.sum(u**2 - v**2, axis=1)
        return out / DRAWS

    def spread(self, levels: np.ndarray) -> float:
        """With x the indicator of the levels, x'H x = c' M^-1 c + x1' (A^11)^-1 x1, c = x2 + B' x1."""
        from scipy.linalg import cho_solve

        parts, x = self._parts, np.zeros(self.n_levels)
        x[levels] = 1.0
        of_others = x[parts.others]
        solved = parts.solve(of_others)
        c = x[parts.chosen] - parts.across @ solved
        total = c @ cho_solve((self._root, True), c) + of_others @ solved
        return float(self.diagonal[levels].mean() - total / levels.size**2)
