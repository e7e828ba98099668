"""K, twice the coancestry of candidates: products with it, and the solutions that the optimum needs.

pedigree   K = A, by one pass up and one pass down the pedigree of candidates and ancestors (Colleau 2002). Of few
           free candidates a dense block is factorised; of many, A_FF^-1 x follows from the sparse A^-1.
genomic    K = 1 + Z Z' / p + 0.001 I, with Z = copies - 1 of p SNPs: twice the probability that two alleles drawn
           are alike in state; the last part keeps K positive definite where SNPs are few.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mmgibbs.genotypes.store import Store
from mmgibbs.machine.memory import refuse_beyond_free
from mmgibbs.pedigree.partitioned import SubsetInverse, drop_groups, restricted
from mmgibbs.pedigree.relationship import Relatives
from mmgibbs.pedigree.relationship_products import a_times_relatives

DENSE_UP_TO = 2000  # candidates of a dense block
COLUMNS_AT_ONCE = 16
RIDGE = 1e-3  # added to the diagonal of genomic coancestry
SNPS_AT_ONCE = 1024
MATRICES = 3  # of all candidates at once: K, and products of genotypes, or a block of K and its factor


class Coancestry(ABC):
    """A positive definite matrix K among m candidates."""

    n_candidates: int

    @abstractmethod
    def times(self, c: np.ndarray) -> np.ndarray:
        """K c, of c (m,)."""

    @abstractmethod
    def block(self, candidates: np.ndarray) -> np.ndarray:
        """K among some candidates, (f, f)."""

    @abstractmethod
    def pairs(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """K between some candidates and others, (r, c)."""

    def solve(self, candidates: np.ndarray, b: np.ndarray) -> np.ndarray:
        """K_FF^-1 b of some candidates F, of b (f, k)."""
        return np.asarray(cho_solve(cho_factor(self.block(candidates), check_finite=False), b, check_finite=False))

    def mean(self, c: np.ndarray) -> float:
        """c'Kc / 2, the mean coancestry of the parents c, which is the expected inbreeding of their progeny."""
        return 0.5 * float(c @ self.times(c))


class PedigreeCoancestry(Coancestry):
    """K = A of the candidates; unknown-parent groups count as unknown parents."""

    def __init__(self, kin: Relatives, candidates: np.ndarray):
        """candidates: (m,) codes."""
        self.kin, number = restricted(drop_groups(kin), np.asarray(candidates, np.int64))
        self.codes = number[candidates].astype(np.int64)
        self.n_candidates = self.codes.size
        self._cached = np.empty(0, np.int64)  # candidates whose block is known
        self._place = np.full(self.n_candidates, -1, np.int64)
        self._block = np.empty((0, 0))

    def times(self, c: np.ndarray) -> np.ndarray:
        v = np.zeros(self.kin.n_animals)
        v[self.codes] = c
        return np.asarray(a_times_relatives(self.kin, v)[self.codes])

    def columns(self, candidates: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """A of `rows` and these candidates, (r, f)."""
        out = np.empty((rows.size, candidates.size))
        for first in range(0, candidates.size, COLUMNS_AT_ONCE):
            chosen = candidates[first : first + COLUMNS_AT_ONCE]
            unit = np.zeros((self.kin.n_animals, chosen.size))
            unit[self.codes[chosen], np.arange(chosen.size)] = 1.0
            out[:, first : first + COLUMNS_AT_ONCE] = a_times_relatives(self.kin, unit)[self.codes[rows]]
        return out

    def block(self, candidates: np.ndarray) -> np.ndarray:
        """Columns of candidates that were asked for before are kept."""
        new = candidates[self._place[candidates] < 0]
        if new.size + self._cached.size > 2 * DENSE_UP_TO:
            self._place[:] = -1
            self._cached, self._block, new = np.empty(0, np.int64), np.empty((0, 0)), candidates
        if new.size:
            known = self._cached
            self._place[new] = known.size + np.arange(new.size)
            self._cached = np.concatenate([known, new])
            columns = self.columns(new, self._cached)
            self._block = np.block([[self._block, columns[: known.size]], [columns.T]])
        place = self._place[candidates]
        return np.asarray(self._block[np.ix_(place, place)])

    def pairs(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.columns(columns, rows)

    def solve(self, candidates: np.ndarray, b: np.ndarray) -> np.ndarray:
        if candidates.size <= DENSE_UP_TO:
            return super().solve(candidates, b)
        return np.asarray(SubsetInverse(self.kin, self.codes[candidates]).times(b))


class DenseCoancestry(Coancestry):
    """K as a matrix (m, m), positive definite: 8 m^2 bytes."""

    def __init__(self, matrix: np.ndarray):
        self.matrix, self.n_candidates = matrix, len(matrix)

    def times(self, c: np.ndarray) -> np.ndarray:
        return np.asarray(self.matrix @ c)

    def block(self, candidates: np.ndarray) -> np.ndarray:
        return np.asarray(self.matrix[np.ix_(candidates, candidates)])

    def pairs(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.asarray(self.matrix[np.ix_(rows, columns)])

    def submatrix(self, candidates: np.ndarray) -> DenseCoancestry:
        """K of some of the candidates alone."""
        return DenseCoancestry(self.block(candidates))


def make_genomic_coancestry(store: Store) -> DenseCoancestry:
    """K of the animals of a store; a missing genotype counts as the mean of its SNP, a SNP without any does not."""
    refuse_beyond_free(
        8 * MATRICES * store.n_animals**2,
        f"coancestry of {store.n_animals:,} candidates by genotypes",
        "fewer candidates, coancestry by pedigree, or a machine with more memory",
    )
    matrix, n_snps = np.zeros((store.n_animals, store.n_animals)), 0
    for first in range(0, store.n_snps, SNPS_AT_ONCE):
        z = store.decode(store.every[first : first + SNPS_AT_ONCE]) - np.float32(1)
        z = z[~np.isnan(z).all(axis=1)]
        z = np.where(np.isnan(z), np.nanmean(z, axis=1, keepdims=True), z)
        matrix += z.T @ z
        n_snps += len(z)
    matrix = 1.0 + matrix / max(n_snps, 1)
    matrix[np.diag_indices(len(matrix))] += RIDGE
    return DenseCoancestry(matrix)
