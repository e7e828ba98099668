"""The inverse of genomic relationships from a core of the genotyped animals (Misztal 2016, Genetics 202:401).

Given the breeding values of the core (c), those of the others (n) are taken as independent of each other (the algorithm
for proven and young, APY):

    P = K_nc K_cc^-1        m_i = K_ii - p_i' K_ci        K^-1 = [K_cc^-1 0; 0 0] + [-P'; I] D^-1 [-P I]

with D = diag(m_i).

It costs n c^2 in the place of n^3 and is the whole inverse where the core is everybody. As many animals as there are
eigenvalues that make 98 % of K carry nearly all that genotypes say. Of K only the columns of the core and the diagonal
are needed, and products with K^-1 need K_cc^-1, P and the m_i alone: `CoreBlock` holds these, `inverse_by_core` the
matrix that they make.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mmgibbs.models.relationships.inverse import invert
from mmgibbs.pedigree.partitioned import SubsetInverse

ROWS = 1024  # of P that are taken to double at once


class FromCore(NamedTuple):
    """K^-1 of the whole matrix by a core."""

    values: np.ndarray  # (n, n) symmetric
    condition: float  # of K_cc
    least: float  # of the m_i: the variance that the core leaves of an animal; 0 without others


class CoreParts(NamedTuple):
    """Parts of K^-1. Core and others are increasing positions in K."""

    core: np.ndarray  # (c,) int64
    others: np.ndarray  # (n,) int64
    of_core: np.ndarray  # (c, c) K_cc^-1
    products: np.ndarray  # (n, c) P
    left: np.ndarray  # (n,) m_i
    condition: float  # of K_cc

    @property
    def least(self) -> float:
        """The smallest m_i; 0 without others."""
        return float(self.left.min(initial=np.inf)) if self.others.size else 0.0


@dataclass(frozen=True)
class CoreBlock:
    """The part of K^-1 between m chosen levels as products with vectors, in the place of a base.DenseBlock:

        S = weight K^-1 - less A22^-1

    K^-1 by a core; the second part, of single-step relationships, from the sparse parts of A^-1.
    """

    levels: np.ndarray  # (m,) int32, rising
    parts: CoreParts
    weight: float = 1.0
    pedigree: SubsetInverse | None = None  # A22^-1 of these levels
    less: float = 0.0

    @property
    def values(self) -> np.ndarray:
        """The whole block, (m, m) float64, for what needs it, such as the elements of a factor."""
        out = self.weight * dense_inverse(self.parts)
        if self.pedigree is not None and self.less:
            for first in range(0, len(out), 64):
                columns = np.zeros((len(out), min(64, len(out) - first)))
                columns[np.arange(first, first + columns.shape[1]), np.arange(columns.shape[1])] = 1.0
                out[:, first : first + columns.shape[1]] -= self.less * self.pedigree.times(columns)
        return (out + out.T) / 2

    @property
    def share_taken(self) -> float:
        """The share of A22^-1 that is taken from S."""
        return 0.0 if self.pedigree is None else self.less

    @cached_property
    def _root_of_core(self) -> np.ndarray:
        """Lower L (c, c), K_cc^-1 = L L'."""
        return np.linalg.cholesky(self.parts.of_core.astype(np.float64))

    def noise(self, z: np.ndarray) -> np.ndarray:
        """Make noise (m, k) of covariance weight K^-1 from normals z.

        Of the core it is L z_c - P' D^-1/2 z_n, of others D^-1/2 z_n.
        """
        core, noncore, residual = self.parts.core, self.parts.others, self.parts.left
        out, of_others = np.empty(z.shape), z[noncore] / np.sqrt(residual)[:, None]
        out[core], out[noncore] = self._root_of_core @ z[core] - self._to_core(of_others), of_others
        return np.sqrt(self.weight) * out

    def times(self, x: np.ndarray) -> np.ndarray:
        """weight K^-1 x, of x (m, k)."""
        core, noncore, residual = self.parts.core, self.parts.others, self.parts.left
        out, of_others = np.empty(x.shape), (x[noncore] - self._from_core(x[core])) / residual[:, None]
        out[core], out[noncore] = self.parts.of_core @ x[core] - self._to_core(of_others), of_others
        return self.weight * out

    def solved(self, b: np.ndarray) -> np.ndarray:
        """K b / weight, of b (m, k): of the core K_cc (b_c + P' b_n), of others P times that and m_i b_i."""
        from scipy.linalg import cho_solve

        core, noncore, residual = self.parts.core, self.parts.others, self.parts.left
        out = np.empty(b.shape)
        out[core] = cho_solve((self._root_of_core, True), b[core] + self._to_core(b[noncore]))
        out[noncore] = self._from_core(out[core]) + residual[:, None] * b[noncore]
        return out / self.weight

    def _from_core(self, x: np.ndarray) -> np.ndarray:
        """P x, of x (c, k); P, where it is stored in single precision, some rows at a time."""
        P = self.parts.products
        if P.dtype == np.float64 or len(P) <= ROWS:
            return P @ x
        return np.concatenate([P[first : first + ROWS].astype(float) @ x for first in range(0, len(P), ROWS)])

    def _to_core(self, y: np.ndarray) -> np.ndarray:
        """P' y, of y (n, k)."""
        P = self.parts.products
        if P.dtype == np.float64:
            return P.T @ y
        out = np.zeros((P.shape[1], y.shape[1]))
        for first in range(0, len(P), ROWS):
            out += P[first : first + ROWS].astype(float).T @ y[first : first + ROWS]
        return out

    def draw(self, z: np.ndarray) -> np.ndarray:
        """Draw (m, k) of covariance K / weight from normals z: of the core L'^-1 z_c, of others P u_c + D^1/2 z_n."""
        from scipy.linalg import solve_triangular

        core, noncore, residual = self.parts.core, self.parts.others, self.parts.left
        out = np.empty(z.shape)
        out[core] = solve_triangular(self._root_of_core, z[core], trans="T", lower=True)
        out[noncore] = self._from_core(out[core]) + np.sqrt(residual)[:, None] * z[noncore]
        return out / np.sqrt(self.weight)

    def bytes(self, real: int) -> int:
        """Count the bytes that a product reads, with at most `real` bytes a number."""
        arrays = (self.parts.of_core, self.parts.products)
        return sum(a.size * min(real, a.itemsize) for a in arrays) + 8 * self.parts.left.size


def parts_of_core(columns: np.ndarray, diagonal: np.ndarray, core: np.ndarray) -> CoreParts:
    """columns (n, c): K of everybody with the core; diagonal (n,) of K; core (c,): positions, rising.

    LinAlgError where K_cc has no inverse, or the core leaves nothing of another animal.
    """
    noncore = np.delete(np.arange(len(columns)), core)
    of_core = invert(np.ascontiguousarray(columns[core]))
    K_nc = columns[noncore]
    P = K_nc @ of_core.values
    residual = diagonal[noncore] - np.einsum("ij,ij->i", P, K_nc)
    if (residual <= 1e-10 * diagonal[noncore]).any():
        raise np.linalg.LinAlgError(f"the core leaves nothing of animal {int(noncore[np.argmin(residual)]) + 1}")
    return CoreParts(core, noncore, of_core.values, P, residual, of_core.condition)


def dense_inverse(parts: CoreParts) -> np.ndarray:
    """Compute K^-1 (n, n)."""
    core, noncore, n = parts.core, parts.others, parts.core.size + parts.others.size
    weighted = parts.products / parts.left[:, None]
    out = np.zeros((n, n))
    among = parts.of_core + parts.products.T @ weighted
    out[np.ix_(core, core)] = (among + among.T) / 2
    out[np.ix_(noncore, core)] = -weighted
    out[np.ix_(core, noncore)] = -weighted.T
    out[noncore, noncore] = 1 / parts.left
    return out


def inverse_by_core(K: np.ndarray, core: np.ndarray) -> FromCore:
    """core: positions in K. LinAlgError as of parts_of_core."""
    parts = parts_of_core(np.ascontiguousarray(K[:, core]), K.diagonal(), core)
    return FromCore(dense_inverse(parts), parts.condition, parts.least)


def core_size(K: np.ndarray, share: float) -> int:
    """Count the largest eigenvalues of K that explain a given share of its trace."""
    values = np.linalg.eigvalsh(K)[::-1]
    return int(np.searchsorted(np.cumsum(values), share * values.sum()) + 1)
