"""Ante-dependence of order 1: every component is a regression on the one before it (Gabriel 1962).

    u_1 = e_1,    u_j = b_j u_(j-1) + e_j,    var(e_j) = v_j        G = A diag(v) A',  A = (I - B)^-1

Priors: standard deviations of the e_j are half-t; b_j is normal about 0 with twice the ratio of the scales.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mmgibbs.models.structures.base import (
    SMALLEST_SHARE,
    Structure,
    StructureContext,
    StructureForm,
    StructureKeys,
    log_half_t,
)

PRIOR_RATIO = 2.0  # standard deviation of a regression, in ratios of the scales of two components


@dataclass(frozen=True)
class Antedependence(Structure):
    """Ante-dependence: phi = (log sd of e_j, one for each component or one for all; b_2 ... b_k)."""

    kind: ClassVar[str] = "antedependence"
    meaning: ClassVar[str] = "each component is a regression on the one before it"
    words: ClassVar[str] = "each component a regression on the one before it (ante-dependence)"
    needs_order: ClassVar[bool] = True

    k: int
    equal: bool
    sd_scale: np.ndarray  # (k,) scale of the half-t prior of each innovation
    effect_scale: np.ndarray  # (k,) size of the components
    nu: float = 2.0

    @classmethod
    def build(cls, section: StructureKeys, context: StructureContext) -> Antedependence:
        return cls(len(context.sd), section.variances == "equal", context.sd_scale, context.sd, context.nu)

    @classmethod
    def count_parameters(cls, form: StructureForm) -> int:
        return form.n_variances + form.k - 1

    @property
    def n_sd(self) -> int:
        return 1 if self.equal else self.k

    @property
    def free(self) -> np.ndarray:
        return np.ones(self.n_sd + self.k - 1, bool)

    def _path(self, phi: np.ndarray) -> np.ndarray:
        """Compute A (k, k), whose elements below the diagonal are A_ij = b_(j+1) ... b_i."""
        A = np.eye(self.k)
        for j in range(1, self.k):
            A[j] += phi[self.n_sd + j - 1] * A[j - 1]
        return A

    def _factor(self, phi: np.ndarray) -> np.ndarray:
        """Compute A diag(sd) (k, k)."""
        return self._path(phi) * np.broadcast_to(np.exp(phi[: self.n_sd]), self.k)

    def matrix(self, phi: np.ndarray) -> np.ndarray:
        factor = self._factor(phi)
        return factor @ factor.T

    def derivatives(self, phi: np.ndarray) -> np.ndarray:
        A, factor = self._path(phi), self._factor(phi)
        G = factor @ factor.T
        out = np.zeros((len(phi), self.k, self.k))
        for j in range(self.k):
            out[0 if self.equal else j] += 2 * np.outer(factor[:, j], factor[:, j])
        for j in range(1, self.k):
            change = np.outer(A[:, j], G[j - 1])
            out[self.n_sd + j - 1] = change + change.T
        return out

    def start(self, C: np.ndarray) -> np.ndarray:
        before, after = np.arange(self.k - 1), np.arange(1, self.k)
        b = 0.9 * C[after, before] / C[before, before]
        v = np.diag(C) - np.append(0.0, b * C[after, before])
        log_sd = 0.5 * np.log(np.maximum(v, 1e-6))
        return np.concatenate([[log_sd.mean()] if self.equal else log_sd, b])

    def rescaled(self, phi: np.ndarray, scale: np.ndarray) -> np.ndarray:
        ratio = scale[1:] / scale[:-1]
        return np.concatenate([phi[: self.n_sd] + np.log(scale[: self.n_sd]), phi[self.n_sd :] * ratio])

    def log_jacobian(self, scale: np.ndarray) -> float:
        """Compute log |d phi / d scale|: each b_j is multiplied by scale_j / scale_(j-1)."""
        of_b = np.log(scale[-1] / scale[0])
        return float(of_b - np.sum(np.log(scale[: self.n_sd])))

    def log_prior(self, phi: np.ndarray) -> float:
        sd = PRIOR_RATIO * self.effect_scale[1:] / self.effect_scale[:-1]
        of_b = -0.5 * np.sum((phi[self.n_sd :] / sd) ** 2)
        return log_half_t(phi[: self.n_sd], self.nu, self.sd_scale[: self.n_sd]) + float(of_b)

    def units(self, sd: np.ndarray) -> np.ndarray:
        return np.append(np.ones(self.n_sd), sd[1:] / sd[:-1])

    def bounded_names(self, labels: tuple[str, ...]) -> Sequence[str]:
        return [*(f"innovation[{label}]" for label in labels[: self.n_sd]), *[""] * (self.k - 1)]

    def lower_bounds(self, sd: np.ndarray) -> np.ndarray:
        return np.concatenate([np.log(SMALLEST_SHARE * sd[: self.n_sd]), np.full(self.k - 1, -np.inf)])

    def named(self, phi: np.ndarray, labels: tuple[str, ...]) -> Mapping[str, np.ndarray]:
        pairs = zip(labels[1:], labels[:-1], strict=True)
        out = {f"regression[{b},{a}]": phi[..., self.n_sd + j] for j, (b, a) in enumerate(pairs)}
        innovations = np.exp(2 * phi[..., : self.n_sd])
        return out | {f"innovation[{label}]": innovations[..., j] for j, label in enumerate(labels[: self.n_sd])}
