"""Compound symmetry and AR1: G = D C(rho) D, D the standard deviations, which are free or equal.

    compound_symmetry    C_ij = rho,           -1/(k - 1) < rho < 1
    ar1                  C_ij = rho^|i - j|,   |rho| < 0.995
                         C_ij = r^(|x_i - x_j| / d) of components at positions x, a mean distance d from one to the
                         next,   0.005 < r < 0.995, reported as rho = r^(1 / d)

rho (r) is uniform over its range, standard deviations are half-t.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mmgibbs.models.structures.base import (
    SMALLEST_SHARE,
    Structure,
    StructureContext,
    StructureForm,
    StructureKeys,
    log_half_t,
)

MAX_AR1 = 0.995  # at 1 the matrix is singular
MAX_LOGIT = 11.5  # of the share of its range that REML gives to rho: a hundred thousandth below its bounds


@dataclass(frozen=True)
class Correlated(Structure):
    """A structure with one correlation.

    phi = (log sd of each component or of all, x), rho = low + (high - low) / (1 + exp(-x)).
    """

    k: int
    equal: bool
    sd_scale: np.ndarray  # (k,) scale of the half-t prior of each standard deviation
    nu: float = 2.0

    @classmethod
    def build(cls, section: StructureKeys, context: StructureContext) -> Correlated:
        return cls(len(context.sd), section.variances == "equal", context.sd_scale, context.nu)

    @classmethod
    def simplify(cls, form: StructureForm) -> StructureForm:
        """Return compound symmetry for two components with equal variances, which every such kind is there."""
        if form.k == 2 and form.equal:
            return StructureForm(CompoundSymmetry.kind, 2, equal=True)
        return super().simplify(form)

    @classmethod
    def count_parameters(cls, form: StructureForm) -> int:
        return form.n_variances + 1

    @property
    def n_sd(self) -> int:
        return 1 if self.equal else self.k

    @property
    def free(self) -> np.ndarray:
        return np.ones(self.n_sd + 1, bool)

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest rho."""

    @abstractmethod
    def correlations(self, rho: float) -> tuple[np.ndarray, np.ndarray]:
        """Compute C(rho) and dC/drho, (k, k) each."""

    def rho(self, phi: np.ndarray) -> np.ndarray:
        """Compute rho (...,) of draws (..., p)."""
        low, high = self.bounds
        with np.errstate(over="ignore"):  # far below 0 it is the lower bound
            return low + (high - low) / (1 + np.exp(-phi[..., -1]))

    def _sd(self, phi: np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.exp(phi[: self.n_sd]), self.k)

    def matrix(self, phi: np.ndarray) -> np.ndarray:
        sd = self._sd(phi)
        return self.correlations(float(self.rho(phi)))[0] * sd[:, None] * sd

    def derivatives(self, phi: np.ndarray) -> np.ndarray:
        sd, rho = self._sd(phi), float(self.rho(phi))
        C, slope = self.correlations(rho)
        G = C * sd[:, None] * sd
        out = np.zeros((self.n_sd + 1, self.k, self.k))
        for i in range(self.k):
            j = 0 if self.equal else i
            out[j, i] += G[i]
            out[j, :, i] += G[:, i]
        low, high = self.bounds
        out[-1] = slope * sd[:, None] * sd * (rho - low) * (high - rho) / (high - low)
        return out

    def start(self, C: np.ndarray) -> np.ndarray:
        sd = np.sqrt(np.diag(C))
        correlations = C / sd[:, None] / sd
        neighbours = np.diag(correlations, 1).mean() if self.k > 1 else 0.0
        low, high = self.bounds
        share = np.clip((neighbours - low) / (high - low), 0.05, 0.95)
        log_sd = [np.log(sd).mean()] if self.equal else np.log(sd)
        return np.array([*log_sd, np.log(share / (1 - share))])

    def rescaled(self, phi: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return phi + np.append(np.log(scale[: self.n_sd]), 0.0)

    def log_jacobian(self, scale: np.ndarray) -> float:
        """Compute log |d phi / d scale|: log sd becomes log sd + log scale, and x stays."""
        return -float(np.sum(np.log(scale[: self.n_sd])))

    def log_prior(self, phi: np.ndarray) -> float:
        x = abs(phi[-1])
        of_rho = -x - 2 * np.log1p(np.exp(-x))  # of x where rho is uniform
        return log_half_t(phi[: self.n_sd], self.nu, self.sd_scale[: self.n_sd]) + float(of_rho)

    def units(self, sd: np.ndarray) -> np.ndarray:
        return np.ones(self.n_sd + 1)

    def bounded_names(self, labels: tuple[str, ...]) -> Sequence[str]:
        return [*(f"var[{label}]" for label in labels[: self.n_sd]), ""]

    def describe_bounds(self, name: str, labels: tuple[str, ...], phi: np.ndarray, at_bound: np.ndarray) -> list[str]:
        words = super().describe_bounds(name, labels, phi, at_bound)
        if at_bound[-1]:
            rho = float(self.named(phi, labels)["rho"])
            words.append(
                f"{name}: the correlation of the structure is at its bound, {rho:.4g}: the likelihood is highest "
                "there, and it has no standard error"
            )
        return words

    def lower_bounds(self, sd: np.ndarray) -> np.ndarray:
        return np.append(np.log(SMALLEST_SHARE * sd[: self.n_sd]), -MAX_LOGIT)

    def upper_bounds(self) -> np.ndarray:
        return np.append(np.full(self.n_sd, np.inf), MAX_LOGIT)

    def named(self, phi: np.ndarray, labels: tuple[str, ...]) -> Mapping[str, np.ndarray]:
        return {"rho": self.rho(phi)}


@dataclass(frozen=True)
class CompoundSymmetry(Correlated):
    """Structure in which all pairs of components have the same correlation."""

    kind: ClassVar[str] = "compound_symmetry"
    meaning: ClassVar[str] = "one correlation"
    words: ClassVar[str] = "with one correlation (compound symmetry)"

    @classmethod
    def count_factors(cls, form: StructureForm) -> int:
        return 1

    @classmethod
    def is_nested(cls, form: StructureForm, larger: type[Structure], other: StructureForm, rho: float | None) -> bool:
        """Return whether rho > 0, which is one common factor: D C(rho) D = rho d d' + (1 - rho) D^2."""
        if "factors" in larger.key_names:
            return rho is not None and rho > 0
        return super().is_nested(form, larger, other, rho)

    @property
    def bounds(self) -> tuple[float, float]:
        return (-1 / (self.k - 1), 1.0)

    def correlations(self, rho: float) -> tuple[np.ndarray, np.ndarray]:
        off_diagonal = 1.0 - np.eye(self.k)
        return np.eye(self.k) + rho * off_diagonal, off_diagonal


@dataclass(frozen=True)
class Autoregressive(Correlated):
    """Correlations fall with the distance of the components."""

    kind: ClassVar[str] = "ar1"
    meaning: ClassVar[str] = "correlations fall with the distance of the components (`distances`)"
    key_names: ClassVar[frozenset[str]] = frozenset({"variances", "distances"})
    needs_order: ClassVar[bool] = True

    positions: tuple[float, ...] | None = None  # of the components; None: one step from each to the next

    @classmethod
    def build(cls, section: StructureKeys, context: StructureContext) -> Autoregressive:
        equal = section.variances == "equal"
        return cls(len(context.sd), equal, context.sd_scale, context.nu, section.positions)

    @classmethod
    def describe(cls, section: Mapping[str, Any]) -> str:
        distances = "their numbers" if section.get("distances") == "numbers" else "components, one step each"
        return f"with correlations that fall with the distance of {distances} (AR1)"

    @classmethod
    def is_nested(cls, form: StructureForm, larger: type[Structure], other: StructureForm, rho: float | None) -> bool:
        """Return true of ante-dependence with free variances, whose regressions are then rho d_j / d_(j-1)."""
        if other.kind == "antedependence":
            return not other.equal
        return super().is_nested(form, larger, other, rho)

    @cached_property
    def _mean_gap(self) -> float:
        return 1.0 if self.positions is None else float(np.ptp(self.positions)) / (self.k - 1)

    @cached_property
    def _lag(self) -> np.ndarray:
        """Distances (k, k) of components, in mean distances of neighbours."""
        at = np.arange(self.k) if self.positions is None else np.array(self.positions) / self._mean_gap
        return np.abs(np.subtract.outer(at, at))

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds of the correlation over the mean distance; a negative one has powers of whole numbers alone."""
        return (-MAX_AR1 if self.positions is None else 1 - MAX_AR1, MAX_AR1)

    def correlations(self, rho: float) -> tuple[np.ndarray, np.ndarray]:
        lag = self._lag
        return rho**lag, lag * rho ** np.where(lag > 0, lag - 1, 0)

    def named(self, phi: np.ndarray, labels: tuple[str, ...]) -> Mapping[str, np.ndarray]:
        """Compute the correlation over a distance of 1."""
        return {"rho": self.rho(phi) ** (1 / self._mean_gap) if self.positions is not None else self.rho(phi)}
