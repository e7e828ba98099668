"""A user's K^-1, a sparse matrix from a file: K itself, and with it reliability, stays unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.models.relationships.base import Lists, Relationship

DENSE_FROM = 0.1  # share of elements that are not 0 from which the matrix is factorised as a dense one


class SparseLists(NamedTuple):
    """A user's K^-1 in CSR, both triangles and the diagonal."""

    indptr: np.ndarray  # (q + 1,) uint64
    indices: np.ndarray  # (nnz,) uint32
    values: np.ndarray  # (nnz,)
    diagonal: np.ndarray  # (q,)

    @staticmethod
    def weight(K: SparseLists, level: int) -> float:
        return np.float64(K.diagonal[level])

    @staticmethod
    def times_row(K: SparseLists, level: int, theta: np.ndarray, out: np.ndarray) -> None:
        out[:] = 0.0
        for j in range(K.indptr[level], K.indptr[level + np.uint64(1)]):
            for c in range(out.size):
                out[c] += np.float64(K.values[j]) * theta[K.indices[j], c]

    @staticmethod
    def cuda() -> str:
        return "mmgibbs::Sparse"

    @property
    def relative_ptr(self) -> np.ndarray:
        return self.indptr

    def bytes_per_sweep(self, row: int) -> int:
        lists = self.indices.nbytes + self.values.nbytes + self.diagonal.nbytes + 4 * self.indptr.size
        return lists + self.indices.size * row


@dataclass(frozen=True)
class SparseInverse(Relationship):
    """A user's K^-1 in CSR: symmetric, both triangles, diagonal included."""

    indptr: np.ndarray  # (q + 1,) int64
    indices: np.ndarray  # (nnz,) int32, sorted within a row
    values: np.ndarray  # (nnz,) float64
    source: str = "a matrix"  # where it is from, for the report

    words = "user's inverse"
    known_diagonal = False
    can_draw = False

    @property
    def n_levels(self) -> int:
        return self.indptr.size - 1

    @property
    def sentence(self) -> str:
        return f"related by {self.source}"

    def lists(self, order: np.ndarray, real: np.dtype) -> SparseLists:
        from scipy.sparse import csr_array

        matrix = csr_array((self.values, self.indices, self.indptr), shape=(order.size, order.size))
        if not np.array_equal(order, np.arange(order.size)):
            matrix = matrix[order][:, order]
            matrix.sort_indices()
        return SparseLists(
            matrix.indptr.astype(np.uint64),
            matrix.indices.astype(np.uint32),
            matrix.data.astype(real),
            matrix.diagonal().astype(real),
        )

    def list_bytes(self, real: int) -> int:
        return self.n_levels * (8 + real) + self.values.size * (4 + real)

    def inverse_csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.indptr.astype(np.int64), self.indices.astype(np.int32), self.values.astype(np.float64)

    def edges(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [(np.repeat(np.arange(self.n_levels, dtype=np.int32), np.diff(self.indptr)), self.indices)]

    def noise(self, lists: Lists, code: np.ndarray, who: str) -> Callable[[np.ndarray], np.ndarray]:
        """B' by a sparse factor P K^-1 P' = L D L'; by a dense one where many elements are not 0.

        ModelError where there is no factor: K^-1 is not positive definite, or the factor does not fit in memory.
        """
        from scipy.sparse import csc_array, diags_array

        q = self.n_levels
        K_inverse = csc_array((self.values, self.indices, self.indptr), shape=(q, q))  # symmetric: rows are columns
        try:
            if K_inverse.nnz > DENSE_FROM * q * q:
                factor, place = np.linalg.cholesky(K_inverse.toarray()), np.arange(q)
            else:
                from scipy.sparse.linalg import splu

                options = {"SymmetricMode": True}
                lu = splu(K_inverse, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
                D = lu.U.diagonal()
                if not np.array_equal(lu.perm_r, lu.perm_c) or not D.min() > 0.0:
                    raise np.linalg.LinAlgError
                factor, place = lu.L @ diags_array(np.sqrt(D)), lu.perm_r
        except (np.linalg.LinAlgError, RuntimeError) as error:
            raise ModelError(
                f"{who} draws from its inverse relationship matrix through a Cholesky factor, and the matrix is not "
                "positive definite; needed a positive definite matrix, or engine: serial"
            ) from error
        except MemoryError as error:
            raise ModelError(
                f"{who} needs a Cholesky factor of its inverse relationship matrix ({q:,} levels, {K_inverse.nnz:,} "
                "elements), which does not fit in memory; needed a sparser matrix, or engine: serial"
            ) from error
        order = np.argsort(place)  # the level at each place of the factor
        position = np.argsort(code)  # the sweep position of each level
        return lambda z: (factor @ z[position[order]])[place][code]
