"""What the tests of SNPs need of the model of a run: P y, and x'P x of the genotypes of its animals.

    P = R^-1 - R^-1 W C^-1 W' R^-1        x_t = Z_t x        s_t = x_t' P y        I_tu = x_t' P x_u

W has all effects of the model, C the coefficients of its equations, and Z_t (records x animals) says whose record each
record of trait t is: repeated records, weights, every random effect and residual class are in P. With the sparse
B_t = W' R^-1 Z_t and the diagonal D_tu of Z_t' R^-1 Z_u,

    I_tu = x' D_tu x - (B_t x)' C^-1 (B_u x)

either from the solutions for B_t x of each SNP, or, where animals are fewer than SNPs, from the matrices
S_tu = D_tu - B_t' C^-1 B_u.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.restricted import Point, RestrictedLikelihood
from mmgibbs.machine.memory import free_bytes
from mmgibbs.models.covariance import join_all
from mmgibbs.models.design import Design

SECONDS_PER_ELEMENT = 2.0e-9  # on one core, of L, for a column of a solution
SECONDS_PER_PRODUCT = 6e-11  # of dense matrices, one multiply-add
COLUMNS = 64  # solutions at once
MAX_DENSE_BYTES = 2_000_000_000  # of S


@dataclass(frozen=True)
class Cost:
    """Seconds to make a way of computing x'P x ready, and of each SNP."""

    once: float
    per_snp: float

    def seconds(self, n_snps: int) -> float:
        """Seconds for so many SNPs."""
        return self.once + n_snps * self.per_snp


class Projection:
    """P of one design at known variances, seen by m animals.

    Parameters
    ----------
    design : Design
        All traits normal, no SNP effects.
    variances : Variances
    animal : ndarray of shape (n,)
        The animal of each record, 0 .. n_animals - 1; -1: of none.
    n_animals : int
    """

    def __init__(self, design: Design, variances: Variances, animal: np.ndarray, n_animals: int):
        self.design, self.n_animals = design, n_animals
        blocks = join_all(variances.G)
        residual_blocks = [(tuple(range(design.n_traits)),)] * len(variances.R)
        self.likelihood = RestrictedLikelihood(design, blocks, residual_blocks)
        self.point = Point(self.likelihood, variances)
        self._animal = animal

    @cached_property
    def scores(self) -> np.ndarray:
        """(animals, T) Z_t' P y, so that s_t = x' scores[:, t]."""
        out = np.zeros((self.n_animals, self.design.n_traits))
        is_known = self._animal >= 0
        np.add.at(out, self._animal[is_known], self.point.weighted_residuals[is_known])
        return out

    @cached_property
    def diagonal(self) -> np.ndarray:
        """(animals, T, T) of D_tu: what records say of an animal when nothing else is unknown."""
        T = self.design.n_traits
        out = np.zeros((self.n_animals, T, T))
        is_known = self._animal >= 0
        precision = self.design.weight[:, None, None] * self.point.Rinv[self.design.pattern]
        np.add.at(out, self._animal[is_known], precision[is_known])
        return out

    @cached_property
    def _right_sides(self) -> list[csr_array]:
        """(equations, animals) B_t for each trait."""
        T, n = self.design.n_traits, self.design.n_records
        records = np.flatnonzero(self._animal >= 0)
        precision = self.design.weight[records, None, None] * self.point.Rinv[self.design.pattern[records]]
        rows = (records[:, None] * T + np.arange(T)).ravel()
        columns = np.repeat(self._animal[records], T)
        transposed = self.likelihood.incidence.transposed
        out = []
        for t in range(T):
            weighted = csr_array((precision[:, :, t].ravel(), (rows, columns)), shape=(n * T, self.n_animals))
            out.append(csr_array(csr_array(transposed @ weighted)[self.likelihood.layout.active]))
        return out

    # The two ways

    @property
    def _solution_seconds(self) -> float:
        """Seconds of the solution of one column."""
        return SECONDS_PER_ELEMENT * self.likelihood.coefficients.symbolic.nonzeros

    @property
    def cost_by_solutions(self) -> Cost:
        """A solution for each trait of each SNP."""
        return Cost(0.0, self.design.n_traits * self._solution_seconds)

    @property
    def cost_by_matrix(self) -> Cost | None:
        """S is made once; None where it would take too much memory."""
        T, m = self.design.n_traits, self.n_animals
        pairs = T * (T + 1) // 2
        free = free_bytes()
        if 8 * pairs * m**2 > (MAX_DENSE_BYTES if free is None else min(MAX_DENSE_BYTES, free)):
            return None
        once = m * T * self._solution_seconds + pairs * m**2 * self._mean_nonzeros * SECONDS_PER_PRODUCT
        return Cost(once, pairs * m * m * SECONDS_PER_PRODUCT)

    @property
    def _mean_nonzeros(self) -> float:
        """Mean number of nonzeros of a column of B_t."""
        return max(1.0, self._right_sides[0].nnz / max(1, self.n_animals))

    def information(self, n_snps: int) -> Information:
        """The quicker way for so many SNPs."""
        by_matrix = self.cost_by_matrix
        if by_matrix is not None and by_matrix.seconds(n_snps) < self.cost_by_solutions.seconds(n_snps):
            return InformationByMatrix(self)
        return InformationBySolutions(self)

    def cost(self, n_snps: int) -> float:
        """Seconds of the quicker way, on one core."""
        ways = [self.cost_by_solutions, self.cost_by_matrix]
        return min(way.seconds(n_snps) for way in ways if way is not None)

    def transposed_right_side(self, t: int) -> csr_array:
        """(animals, equations) B_t'."""
        return csr_array(self._right_sides[t].T)

    def solve(self, x: np.ndarray, t: int) -> tuple[np.ndarray, np.ndarray]:
        """B_t x and C^-1 B_t x, (equations, m)."""
        b = np.asarray(self._right_sides[t] @ x)
        return b, self.point.solve_equations(b)


class InformationBySolutions:
    """x'P x by solving the equations for every SNP."""

    def __init__(self, projection: Projection):
        self.projection = projection

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """(m, T, T) of genotypes x (animals, m)."""
        T = self.projection.design.n_traits
        out = np.einsum("am,atu->mtu", x**2, self.projection.diagonal, optimize=True)
        for first in range(0, x.shape[1], COLUMNS):
            columns = slice(first, first + COLUMNS)
            pairs = [self.projection.solve(x[:, columns], t) for t in range(T)]
            for t in range(T):
                for u in range(t + 1):
                    explained = np.einsum("em,em->m", pairs[t][0], pairs[u][1])
                    out[columns, t, u] -= explained
                    if u != t:
                        out[columns, u, t] -= explained
        return out

    def cross(self, x: np.ndarray, t: int) -> np.ndarray:
        """(m, m) x'P_tt x of genotypes x (animals, m)."""
        b, solved = self.projection.solve(x, t)
        out = x.T @ (self.projection.diagonal[:, t, t, None] * x) - b.T @ solved
        return (out + out.T) / 2


class InformationByMatrix:
    """x'P x from S_tu (animals, animals) for u <= t, which are made once."""

    def __init__(self, projection: Projection):
        T, m = projection.design.n_traits, projection.n_animals
        self.n_traits = T
        self.S = {(t, u): np.zeros((m, m)) for t in range(T) for u in range(t + 1)}
        every = np.arange(m)
        for u in range(T):
            for first in range(0, m, COLUMNS):
                columns = every[first : first + COLUMNS]
                unit = np.zeros((m, columns.size))
                unit[columns, np.arange(columns.size)] = 1.0
                _, solved = projection.solve(unit, u)
                for t in range(u, T):
                    self.S[t, u][:, columns] = -np.asarray(projection.transposed_right_side(t) @ solved)
            for t in range(u, T):
                self.S[t, u][every, every] += projection.diagonal[:, t, u]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """(m, T, T) of genotypes x (animals, m)."""
        out = np.empty((x.shape[1], self.n_traits, self.n_traits))
        for t in range(self.n_traits):
            for u in range(t + 1):
                out[:, t, u] = out[:, u, t] = np.einsum("am,am->m", x, self.S[t, u] @ x)
        return out

    def cross(self, x: np.ndarray, t: int) -> np.ndarray:
        """(m, m) x'P_tt x of genotypes x (animals, m)."""
        out = x.T @ (self.S[t, t] @ x)
        return np.asarray((out + out.T) / 2)


Information = InformationBySolutions | InformationByMatrix
