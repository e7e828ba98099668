"""A matrix whose elements are all free, as a function of the elements of its Cholesky factor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmgibbs.models.structures.base import SMALLEST_SHARE


@dataclass(frozen=True)
class Unstructured:
    """phi = (log of the diagonal of L, elements of L below it), G = L L'."""

    k: int

    @property
    def free(self) -> np.ndarray:
        return np.ones(self.k * (self.k + 1) // 2, bool)

    def _factor(self, phi: np.ndarray) -> np.ndarray:
        L = np.diag(np.exp(phi[: self.k]))
        L[np.tril_indices(self.k, -1)] = phi[self.k :]
        return L

    def matrix(self, phi: np.ndarray) -> np.ndarray:
        L = self._factor(phi)
        return L @ L.T

    def derivatives(self, phi: np.ndarray) -> np.ndarray:
        L, k = self._factor(phi), self.k
        rows, columns = np.tril_indices(k, -1)
        out = np.zeros((len(phi), k, k))
        sizes = np.append(np.diag(L), np.ones(len(rows)))
        for n, (i, j) in enumerate(zip([*range(k), *rows], [*range(k), *columns], strict=True)):
            out[n, i] += sizes[n] * L[:, j]
            out[n, :, i] += sizes[n] * L[:, j]
        return out

    def parameters(self, G: np.ndarray) -> np.ndarray:
        """(p,) of a positive definite matrix."""
        L = np.linalg.cholesky(G)
        return np.append(np.log(np.diag(L)), L[np.tril_indices(self.k, -1)])

    def units(self, sd: np.ndarray) -> np.ndarray:
        return np.append(np.ones(self.k), sd[np.tril_indices(self.k, -1)[0]])

    def lower_bounds(self, sd: np.ndarray) -> np.ndarray:
        return np.append(np.log(SMALLEST_SHARE * sd), np.full(self.k * (self.k - 1) // 2, -np.inf))

    def upper_bounds(self) -> np.ndarray:
        return np.full(len(self.free), np.inf)
