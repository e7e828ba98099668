"""What a structured covariance matrix is: a function G(phi) of a vector of parameters without bounds.

Components are in the order of the term: ordered levels (sites from south to north, weeks) make sense of `ar1` and
`antedependence`. Variances and standard deviations enter phi as logarithms, correlations as a map of the whole line to
their range, so that every phi gives a positive definite G.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lgamma
from typing import Any, ClassVar, Protocol

import numpy as np

MAX_FIT_ITERATIONS = 2_000
SMALLEST_SHARE = 3e-3  # of a standard deviation that REML may reach: C^-1 has too few digits below it


class Structure(Protocol):
    """One kind of structure, for k components."""

    kind: ClassVar[str]
    is_singular: ClassVar[bool]  # whether G has no inverse

    @property
    def k(self) -> int: ...

    @property
    def sd_scale(self) -> np.ndarray:
        """(k,) scale of the half-t prior of each standard deviation, with `nu` degrees of freedom."""

    @property
    def nu(self) -> float: ...

    @property
    def free(self) -> np.ndarray:
        """(p,) bool: the parameters that REML moves; the others are redundant there and stay at 0."""

    def matrix(self, phi: np.ndarray) -> np.ndarray:
        """(k, k) G."""

    def derivatives(self, phi: np.ndarray) -> np.ndarray:
        """(p, k, k) dG/dphi."""

    @property
    def equal(self) -> bool:
        """Whether components share one variance (of the specific effects, of the innovations)."""

    def start(self, C: np.ndarray) -> np.ndarray:
        """(p,) parameters whose matrix is near C, whose variances are near 1."""

    def rescaled(self, phi: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """(p,) the parameters of D G D, D = diag(scale): where variances are equal, so are the scales."""

    def log_prior(self, phi: np.ndarray) -> float:
        """Log density of phi, up to a constant."""

    def units(self, sd: np.ndarray) -> np.ndarray:
        """(p,) the size of each parameter where components have the standard deviations sd (k,)."""

    def lower_bounds(self, sd: np.ndarray) -> np.ndarray:
        """(p,) where REML stops a logarithm that goes to minus infinity; -inf for others."""

    def upper_bounds(self) -> np.ndarray:
        """(p,) where REML stops what else goes to infinity, as where a correlation goes to 1; inf for others."""

    def bounded_names(self, labels: tuple[str, ...]) -> Sequence[str]:
        """(p,) what is 0 where a parameter is at its lower bound: 'specific[a]'; 'rho' where it is a correlation that
        is at a bound; '' for others.
        """

    def named(self, phi: np.ndarray, labels: tuple[str, ...]) -> Mapping[str, np.ndarray]:
        """What is reported beside G: 'rho', 'loading[a:1]', ..., from draws (..., p)."""


class ScaledStructure(Structure, Protocol):
    """A structure whose scales of components are drawn by themselves (interweaving); of reduced rank none is, as all
    loadings are drawn given the records.
    """

    def log_jacobian(self, scale: np.ndarray) -> float:
        """log |d rescaled(phi, scale) / d scale| of the scales that are free (all, or one where variances are equal)
        beside the other parameters, up to a constant."""


def fit(structure: Structure, G: np.ndarray) -> np.ndarray:
    """(p,) parameters of the matrix nearest G: the minimum of log|G(phi)| + tr(G(phi)^-1 G); of a structure without an
    inverse its start."""
    from scipy.optimize import minimize  # chains of other models do without it

    sd = np.sqrt(np.diag(G))
    scale = np.full(len(G), np.exp(np.mean(np.log(sd)))) if structure.equal else sd
    C, free = G / scale[:, None] / scale, structure.free
    if structure.is_singular:
        return structure.rescaled(structure.start(C), scale)

    def divergence(values: np.ndarray) -> tuple[float, np.ndarray]:
        phi = np.zeros(len(free))
        phi[free] = values
        model = structure.matrix(phi)
        sign, log_determinant = np.linalg.slogdet(model)
        if sign <= 0 or not np.isfinite(log_determinant):
            return np.inf, np.zeros(len(values))
        inverse = np.linalg.inv(model)
        slope = inverse - inverse @ C @ inverse
        gradient = np.einsum("ab,pab->p", slope, structure.derivatives(phi))
        return float(log_determinant + np.sum(inverse * C)), gradient[free]

    options: Any = {"maxiter": MAX_FIT_ITERATIONS, "gtol": 1e-9, "ftol": 1e-15}
    best = minimize(divergence, structure.start(C)[free], jac=True, method="L-BFGS-B", options=options)
    phi = np.zeros(len(free))
    phi[free] = best.x
    return structure.rescaled(phi, scale)


def log_half_t(log_sd: np.ndarray, nu: float, scale: np.ndarray) -> float:
    """Log density of log sd where sd is half-t(nu, scale), the Jacobian included."""
    constant = lgamma((nu + 1) / 2) - lgamma(nu / 2) - 0.5 * np.log(nu * np.pi) + np.log(2)
    t = np.exp(2 * (log_sd - np.log(scale))) / nu
    return float(np.sum(constant - np.log(scale) - (nu + 1) / 2 * np.log1p(t) + log_sd))
