"""Matrices whose elements are parameters themselves: full, as a function of the elements of its Cholesky factor, and
diagonal, which is one full matrix for each component.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mmgibbs.models.structures.base import FULL, SMALLEST_SHARE, Structure, StructureForm


@dataclass(frozen=True)
class Unstructured(Structure):
    """A full matrix: phi = (log of the diagonal of L, elements of L below it), G = L L'."""

    kind: ClassVar[str] = FULL
    key_names: ClassVar[frozenset[str]] = frozenset()
    is_structured: ClassVar[bool] = False

    k: int

    @classmethod
    def count_parameters(cls, form: StructureForm) -> int:
        return form.n_elements

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

    def start(self, C: np.ndarray) -> np.ndarray:
        """Return the parameters of C itself, which must be positive definite."""
        L = np.linalg.cholesky(C)
        return np.append(np.log(np.diag(L)), L[np.tril_indices(self.k, -1)])

    def fit(self, G: np.ndarray) -> np.ndarray:
        return self.start(G)

    def rescaled(self, phi: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return self.start(self.matrix(phi) * scale[:, None] * scale)

    def units(self, sd: np.ndarray) -> np.ndarray:
        return np.append(np.ones(self.k), sd[np.tril_indices(self.k, -1)[0]])

    def lower_bounds(self, sd: np.ndarray) -> np.ndarray:
        return np.append(np.log(SMALLEST_SHARE * sd), np.full(self.k * (self.k - 1) // 2, -np.inf))

    def describe_bounds(self, name: str, labels: tuple[str, ...], phi: np.ndarray, at_bound: np.ndarray) -> list[str]:
        if not at_bound.any():
            return []
        if self.k == 1:
            return [describe_variance_at_0(name, labels[0])]
        return [
            f"{name}: the matrix is on the boundary: a combination of {', '.join(labels)} has no variance; the "
            "standard errors are those along the boundary"
        ]


class Diagonal(Structure):
    """Structure without covariances. It has no object of its own: each component is `Unstructured`."""

    kind: ClassVar[str] = "diagonal"
    meaning: ClassVar[str] = "no covariances between components"
    words: ClassVar[str] = "no covariances"
    key_names: ClassVar[frozenset[str]] = frozenset()
    is_structured: ClassVar[bool] = False
    has_covariances: ClassVar[bool] = False

    @classmethod
    def simplify(cls, form: StructureForm) -> StructureForm:
        return StructureForm(FULL, 1) if form.k == 1 else form

    @classmethod
    def count_parameters(cls, form: StructureForm) -> int:
        return form.n_variances

    @classmethod
    def is_nested(cls, form: StructureForm, larger: type[Structure], other: StructureForm, rho: float | None) -> bool:
        return True


def describe_variance_at_0(block: str, component: str) -> str:
    """Say that REML has put the variance of a component on its boundary."""
    return (
        f"{block}: the variance of {component} is on the boundary: the likelihood is highest at 0; it is set just "
        "above 0, and has no standard error"
    )
