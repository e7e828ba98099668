"""Loadings L (k, f) of k components on f common factors, which are determined up to a rotation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.models.structures.base import Structure, StructureForm


class WithLoadings(Structure):
    """A structure whose phi begins with the loadings L (k, f), row by row."""

    factors: int
    loading_sd: np.ndarray  # (k,) prior standard deviation of the loadings of each component

    @property
    def n_loadings(self) -> int:
        return self.k * self.factors

    @property
    def factor_places(self) -> Sequence[np.ndarray]:
        places = np.arange(self.n_loadings).reshape(self.k, self.factors)
        return [places[j:, j] for j in range(self.factors)]  # those above the diagonal stay at 0

    def loadings(self, phi: np.ndarray) -> np.ndarray:
        """Return the loadings (..., k, f) of draws (..., p)."""
        return phi[..., : self.n_loadings].reshape(*phi.shape[:-1], self.k, self.factors)

    @classmethod
    def is_nested(cls, form: StructureForm, larger: type[Structure], other: StructureForm, rho: float | None) -> bool:
        """Return whether the larger kind has as many common factors, or more."""
        return "factors" in larger.key_names and form.factors <= other.factors


def count_loadings(form: StructureForm) -> int:
    """Count the free loadings of k components: rotations of f factors set f (f - 1) / 2 of them to 0."""
    return form.k * form.factors - form.factors * (form.factors - 1) // 2


def differentiate_products(L: np.ndarray) -> np.ndarray:
    """Compute the derivatives (k f, k, k) of L L' by each loading, row by row."""
    k, f = L.shape
    out = np.zeros((k * f, k, k))
    for i in range(k):
        for j in range(f):
            out[i * f + j, i] += L[:, j]
            out[i * f + j, :, i] += L[:, j]
    return out


def lower_triangle(L: np.ndarray) -> np.ndarray:
    """Rotate loadings (k, f) to be 0 above the diagonal; L L' is unchanged."""
    k, f = L.shape
    Q, _ = np.linalg.qr(L[:f].T)
    turned = L @ Q
    turned[np.triu_indices(k, 1, f)] = 0.0
    return np.asarray(turned)


def principal_axes(L: np.ndarray) -> np.ndarray:
    """Rotate loadings (..., k, f) so that the first factor explains most, the second most of the rest, and so on.

    The sign of a factor is free. In each draw it is the one nearer to the axis of the mean of L L' over all draws,
    whose loadings have a sum above 0: otherwise draws of both signs would average to 0.
    """
    k, f = L.shape[-2:]
    U, values, _ = np.linalg.svd(L, full_matrices=False)
    turned = U * values[..., None, :]
    common = (L @ np.swapaxes(L, -1, -2)).reshape(-1, k, k).mean(axis=0)
    axes = np.linalg.eigh(common)[1][:, ::-1][:, :f]
    axes = axes * np.where(axes.sum(axis=0) < 0, -1.0, 1.0)
    return np.asarray(turned * np.where(np.sum(turned * axes, axis=-2, keepdims=True) < 0, -1.0, 1.0))


def name_loadings(L: np.ndarray, total: np.ndarray, labels: Sequence[str]) -> dict[str, np.ndarray]:
    """Name loadings on principal axes L (..., k, f), and the shares of `total` (...,), the sum of all variances, that
    the factors explain."""
    factors = range(L.shape[-1])
    out = {f"loading[{label}:{j + 1}]": L[..., i, j] for j in factors for i, label in enumerate(labels)}
    return out | {f"explained[{j + 1}]": np.sum(L[..., j] ** 2, axis=-1) / total for j in factors}
