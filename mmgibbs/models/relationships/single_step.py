"""Single-step relationships H: a pedigree in which some animals are genotyped (Legarra et al. 2009, Aguilar et al.
2010, Christensen & Lund 2010).

    H^-1 = A^-1 + [0 0; 0 S],     S = tau G^-1 - omega A22^-1

The lists are those of the pedigree, S is a dense block between the genotyped animals (2). What follows uses

    H22 = M^-1,                   M = S + A22^-1
    u1 = B u2 + e1,               B = -(A^11)^-1 A^12,   e1 ~ N(0, (A^11)^-1)

for the others (1): given the genotyped animals they are as the pedigree says. H is positive definite where M is.

Noise of covariance H^-1 is that of its parts. With A^-1 = E + [0 0; 0 A22^-1], E from C z_1, C C' = A^11,

    H^-1 = E + [0 0; 0 M]                                                          from M = L L' or, omega = 1, the core
    H^-1 = omega E + (1 - omega) A^-1 + [0 0; 0 tau G^-1]                          from the core, omega < 1

which are all positive semi-definite: by a core, with omega up to 1, nothing is formed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.models.relationships.base import DenseBlock, Lists
from mmgibbs.models.relationships.core import CoreBlock
from mmgibbs.models.relationships.genotyped_by_core import GenotypedByCore
from mmgibbs.models.relationships.inverse import invert
from mmgibbs.models.relationships.pedigree import Pedigree, mendelian_noise
from mmgibbs.pedigree.conditional_means import ConditionalMeans
from mmgibbs.pedigree.group_shares import group_composition
from mmgibbs.pedigree.partitioned import Partitioned, SubsetInverse, inverse_among, partitioned
from mmgibbs.pedigree.relationship_products import relationship_block

COLUMNS = 64  # right-hand sides at once
EXACT_UP_TO = 2e9  # others x genotyped: a minute; beyond, the others' diagonal is estimated
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
        """Number of metafounders, which stand last in the block as well."""
        return self.relatives.n_groups

    def group_shares(self) -> np.ndarray:
        """Return the expected share of each metafounder's genes, Q (q, m) float32."""
        return group_composition(self.relatives.sire, self.relatives.dam, self.n_groups)

    @property
    def dense(self) -> DenseBlock | CoreBlock:
        return self.block

    @property
    def log_determinant(self) -> None:
        """Unknown (None): the determinant of A says nothing of H."""

    @property
    def facts(self) -> dict[str, Any]:
        return dict(self.made)

    def inverse_csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        from scipy.sparse import csr_array

        q, levels, m = self.n_levels, self.block.levels, self.block.levels.size
        indptr, indices, values = super().inverse_csr()
        counts = np.zeros(q, np.int64)
        counts[levels] = m
        block_ptr = np.concatenate([[0], np.cumsum(counts)])
        block = csr_array((self.block.values.astype(np.float64).ravel(), np.tile(levels, m), block_ptr), shape=(q, q))
        matrix = csr_array(csr_array((values, indices, indptr), shape=(q, q)) + block)
        matrix.sort_indices()
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data

    def lists_csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return super().inverse_csr()

    @cached_property
    def _core_form(self) -> GenotypedByCore | None:
        """M as products, where the block is so known and leaves M positive definite, whatever the genotypes say."""
        block = self.block
        if not isinstance(block, CoreBlock) or block.share_taken > 1 or self.n_groups:
            return None
        return GenotypedByCore(block, block.pedigree or SubsetInverse(self.relatives, block.levels))

    @property
    def sets_of_normals(self) -> int:
        """Two if A^-1 has a share beside genotypes and the pedigree without A22^-1, else one."""
        return 2 if self._core_form is not None and self._core_form.pedigree_weight else 1

    @cached_property
    def _parts(self) -> Partitioned:
        return partitioned(self.relatives, self.block.levels)

    @cached_property
    def _M(self) -> np.ndarray:
        """Matrix M (m, m)."""
        return self.block.values.astype(np.float64) + inverse_among(self.relatives, self.block.levels)

    @cached_property
    def _root(self) -> np.ndarray:
        """Lower L (m, m), M = L L'."""
        try:
            return np.linalg.cholesky(self._M)
        except np.linalg.LinAlgError:
            raise ModelError(NOT_DEFINITE) from None

    def _noise(self, z: np.ndarray) -> np.ndarray:
        """Make noise (q, k), model order, of covariance omega E, and M or tau G^-1.

        It is tau G^-1 where the pedigree's share of M is apart.
        """
        block_noise, out, by_core = z[self.block.levels], np.zeros(z.shape), self._core_form
        block_noise = self._root @ block_noise if by_core is None else by_core.block.noise(block_noise)
        share = 1.0 if by_core is None else by_core.block.share_taken
        if share:
            parts = self._parts
            out[parts.others] = np.sqrt(share) * parts.root_times(z[parts.others])
            block_noise = block_noise + parts.across @ parts.solve(out[parts.others])
        out[self.block.levels] = block_noise
        return out

    def noise(self, lists: Lists, code: np.ndarray, who: str) -> Callable[[np.ndarray], np.ndarray]:
        position, by_core = np.argsort(code), self._core_form
        if by_core is None or not by_core.pedigree_weight:
            return lambda z: self._noise(z[position])[code]
        of_pedigree = np.sqrt(by_core.pedigree_weight)

        def combine_noise(z: np.ndarray) -> np.ndarray:
            first, more = (np.ascontiguousarray(half) for half in np.split(z, 2, axis=1))
            return self._noise(first[position])[code] + of_pedigree * mendelian_noise(lists, more)

        return combine_noise

    def draw(self, z: np.ndarray) -> np.ndarray:
        """u2 = L'^-1 z2, u1 = B u2 + e1. By a core with omega below 1, M is formed: its root is no product."""
        from scipy.linalg import solve_triangular

        parts, out, by_core = self._parts, np.empty(z.shape), self._core_form
        if by_core is not None and not by_core.pedigree_weight:
            out[parts.chosen] = by_core.block.draw(z[parts.chosen])
        else:
            out[parts.chosen] = solve_triangular(self._root, z[parts.chosen], trans="T", lower=True)
        noise = parts.root_times(z[parts.others])
        out[parts.others] = parts.solve(noise - parts.across.T @ out[parts.chosen])
        return out

    @cached_property
    def _means(self) -> ConditionalMeans:
        return ConditionalMeans(self.relatives, self.block.levels)

    @cached_property
    def diagonal(self) -> np.ndarray:
        """(q,) diagonal of H, from 1 + F of the pedigree (1 without genotypes where inbreeding is ignored) and what
        genotypes change of it:

            H_ii = A_ii + b_i' (M^-1 - A22) b_i

        exact up to EXACT_UP_TO, beyond that with the mean of DRAWS draws of (b_i'u)^2 - (b_i'v)^2 in place of the
        second part, u of covariance M^-1 and v of A22 from the same normals (by a core, some of them the same).
        """
        if self._core_form is not None:
            return self._diagonal_by_core(self._core_form)
        block_diagonal = invert(self._M).values
        of_pedigree = self._pedigree_block()
        out = self._diagonal_of_pedigree()
        if self._is_exact:
            difference = block_diagonal - of_pedigree
            for columns in self._means.columns(COLUMNS):
                out += self._means.quadratic(columns, difference[:, columns])
        else:
            roots = [np.linalg.cholesky(of) for of in (block_diagonal, of_pedigree)]
            out += self._changed_in_draws(len(block_diagonal), lambda z: (roots[0] @ z, roots[1] @ z))
        out[self.block.levels] = block_diagonal.diagonal()
        return out

    @property
    def _is_exact(self) -> bool:
        """True if the diagonal is computed column by column."""
        m = self.block.levels.size
        return float(self.n_levels - m) * m <= EXACT_UP_TO

    @property
    def diagonal_operations(self) -> float:
        """Multiplications that the diagonal takes, roughly."""
        m = self.block.levels.size
        return 4.0 * m**3 + 4.0 * self.n_levels * (m if self._is_exact else DRAWS)

    def _diagonal_of_pedigree(self) -> np.ndarray:
        return np.concatenate([1.0 + self.relatives.inbreeding, np.ones(self.n_groups)])

    def _diagonal_by_core(self, M: GenotypedByCore) -> np.ndarray:
        """Compute the diagonal from columns of M^-1 and A22, some at a time."""
        kin, chosen = self.relatives, self.block.levels.astype(np.int64)
        out, diagonal = self._diagonal_of_pedigree(), np.empty(chosen.size)
        for columns in self._means.columns(COLUMNS):
            inverse = M.columns_of_inverse(columns)
            diagonal[columns] = inverse[columns, np.arange(columns.size)]
            if self._is_exact:
                A22 = relationship_block(kin.sire, kin.dam, kin.inbreeding, chosen, columns)
                out += self._means.quadratic(columns, inverse - A22)
        if not self._is_exact:
            n = self.n_levels + (chosen.size if M.pedigree_weight else 0)
            out += self._changed_in_draws(n, partial(self._draws_by_core, M))
        out[chosen] = diagonal
        return out

    def _draws_by_core(self, M: GenotypedByCore, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """u of covariance M^-1 and v of A22, (m, k) each, from normals z: (q, k), and m more where v is a part of u."""
        q, levels = self.n_levels, self.block.levels
        v = super().draw(z[:q])[levels]
        return M.draw(z[q:] if M.pedigree_weight else z[levels], v), v

    def _pedigree_block(self) -> np.ndarray:
        """(m, m) what the pedigree alone says of the levels of the block: A22, with metafounders those of both."""
        g = self.n_groups
        if not g:
            return self.submatrix(self.block.levels)
        inverse = inverse_among(self.relatives, self.block.levels)
        inverse[-g:, -g:] += self.block.values[-g:, -g:]
        return invert(inverse).values

    def _changed_in_draws(self, n: int, draws: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """(q,) the mean of (b_i'u)^2 - (b_i'v)^2; draws: u and v, (m, k) each, from normals (n, k)."""
        random = np.random.Generator(np.random.Philox(key=0))
        out = np.zeros(self.n_levels)
        for _ in range(0, DRAWS, COLUMNS):
            u, v = draws(random.standard_normal((n, COLUMNS)))
            out += self._means.products(u - v, u + v)
        return out / DRAWS

    def times(self, x: np.ndarray) -> np.ndarray:
        """H x: u2 = M^-1 c of genotyped animals, c = x2 + B' x1, and u1 = B u2 + (A^11)^-1 x1 of the others."""
        from scipy.linalg import cho_solve

        parts, out, by_core = self._parts, np.empty(x.shape), self._core_form
        solved = parts.solve(x[parts.others])
        c = x[parts.chosen] - parts.across @ solved
        genotyped = cho_solve((self._root, True), c) if by_core is None else by_core.solved(c)
        out[parts.chosen] = genotyped
        out[parts.others] = solved - parts.solve(parts.across.T @ genotyped)
        return out

    def spread(self, levels: np.ndarray) -> float:
        """1'H 1 / n^2 less, of these levels."""
        x = np.zeros((self.n_levels, 1))
        x[levels] = 1.0
        return float(self.diagonal[levels].mean() - np.sum(x * self.times(x)) / levels.size**2)
