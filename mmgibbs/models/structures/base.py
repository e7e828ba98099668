"""What a structured covariance matrix is: a function G(phi) of a vector of parameters without bounds.

Components are in the order of the term: ordered levels (sites from south to north, weeks) make sense of `ar1` and
`antedependence`. Variances and standard deviations enter phi as logarithms, correlations as a map of the whole line to
their range, so that every phi gives a positive definite G.

A kind of structure is one class in a file of its own, and a line in the registry of this package. The class says what
the keys of the analysis file may be, makes the structure, and knows its parameters, their prior and their draws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import lgamma
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from mmgibbs.models.design import Design
    from mmgibbs.models.terms import Term

MAX_FIT_ITERATIONS = 2_000
SMALLEST_SHARE = 3e-3  # of a standard deviation that REML may reach: C^-1 has too few digits below it


class StructureKeys(Protocol):
    """The section `structure` of the analysis file; a key that is not among `Structure.key_names` has its default."""

    @property
    def factors(self) -> int | Literal["auto"] | None: ...
    @property
    def variances(self) -> str: ...
    @property
    def loading_sd(self) -> float | None: ...
    @property
    def positions(self) -> tuple[float, ...] | None: ...


class StructureContext(NamedTuple):
    """What a structure is made of beside its keys."""

    term: Term
    design: Design
    sd: np.ndarray  # (k,) phenotypic standard deviation of the trait of each component
    sd_scale: np.ndarray  # (k,) scale of the half-t prior of each standard deviation
    nu: float  # its degrees of freedom
    given: np.ndarray | None  # (k, k) the matrix, where it is fixed


class StructureForm(NamedTuple):
    """A structure of k components, as likelihood-ratio tests compare it."""

    kind: str
    k: int
    factors: int = 0
    equal: bool = False
    distances: str = "equal"

    @property
    def n_elements(self) -> int:
        return self.k * (self.k + 1) // 2

    @property
    def n_variances(self) -> int:
        return 1 if self.equal else self.k


class Structure(ABC):
    """One kind of structure, for k components."""

    kind: ClassVar[str]  # the word in the analysis file
    meaning: ClassVar[str] = ""  # what the reference of keys says of it
    words: ClassVar[str] = ""  # what the report says of it, where its keys make no difference
    key_names: ClassVar[frozenset[str]] = frozenset({"variances"})  # that it takes: also factors, loading_sd, distances
    is_structured: ClassVar[bool] = True  # False: the elements are parameters themselves
    has_covariances: ClassVar[bool] = True  # False: its blocks are single components
    is_singular: ClassVar[bool] = False  # whether G has no inverse
    can_draw_factors: ClassVar[bool] = False  # whether it takes `factors: auto`
    needs_order: ClassVar[bool] = False  # of its components

    k: int
    equal: bool  # whether components share one variance (of the specific effects, of the innovations)
    sd_scale: np.ndarray  # (k,) scale of the half-t prior of each standard deviation, with `nu` degrees of freedom
    nu: float

    # -------------------------------------------------------------------------------- the analysis file and reports

    @classmethod
    def build(cls, section: StructureKeys, context: StructureContext) -> Structure:
        """Make it; ModelError for what it cannot be combined with. Only where `is_structured`."""
        raise NotImplementedError(f"{cls.kind}: the elements of G are the parameters, so there is nothing to build")

    @classmethod
    def count_scores(cls, section: StructureKeys) -> int | None:
        """Columns of the scores that stand for the levels where G has no inverse; None of others."""
        return None

    @classmethod
    def describe(cls, section: Mapping[str, Any]) -> str:
        """What the report says of it: 'factor-analytic with 2 factors'."""
        return cls.words

    @classmethod
    def simplify(cls, form: StructureForm) -> StructureForm:
        """Make the form that stands for all those of the same model."""
        return StructureForm("full", form.k) if form.k == 1 or (form.k == 2 and not form.equal) else form

    @classmethod
    @abstractmethod
    def count_parameters(cls, form: StructureForm) -> int:
        """Parameters without redundant ones; they may be more than the elements of the matrix."""

    @classmethod
    def count_factors(cls, form: StructureForm) -> int:
        """Common factors that it is a model of."""
        return form.factors

    @classmethod
    def is_nested(cls, form: StructureForm, larger: type[Structure], other: StructureForm, rho: float | None) -> bool:
        """Whether it is nested in a `larger` kind that is another one or has other keys; rho: its estimate."""
        return form.kind == other.kind and form.distances == other.distances

    # -------------------------------------------------------------------------------- the matrix

    @property
    @abstractmethod
    def free(self) -> np.ndarray:
        """(p,) bool: the parameters that REML moves; the others are redundant there and stay at 0."""

    @abstractmethod
    def matrix(self, phi: np.ndarray) -> np.ndarray:
        """(k, k) G."""

    @abstractmethod
    def derivatives(self, phi: np.ndarray) -> np.ndarray:
        """(p, k, k) dG/dphi."""

    @abstractmethod
    def start(self, C: np.ndarray) -> np.ndarray:
        """(p,) parameters whose matrix is near C, whose variances are near 1."""

    @abstractmethod
    def rescaled(self, phi: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """(p,) the parameters of D G D, D = diag(scale): where variances are equal, so are the scales."""

    def fit(self, G: np.ndarray) -> np.ndarray:
        """(p,) parameters of the matrix nearest G: the minimum of log|G(phi)| + tr(G(phi)^-1 G); of a structure without
        an inverse its start."""
        from scipy.optimize import minimize  # chains of other models do without it

        sd = np.sqrt(np.diag(G))
        scale = np.full(len(G), np.exp(np.mean(np.log(sd)))) if self.equal else sd
        C, free = G / scale[:, None] / scale, self.free
        if self.is_singular:
            return self.rescaled(self.start(C), scale)

        def divergence(values: np.ndarray) -> tuple[float, np.ndarray]:
            phi = np.zeros(len(free))
            phi[free] = values
            model = self.matrix(phi)
            sign, log_determinant = np.linalg.slogdet(model)
            if sign <= 0 or not np.isfinite(log_determinant):
                return np.inf, np.zeros(len(values))
            inverse = np.linalg.inv(model)
            slope = inverse - inverse @ C @ inverse
            gradient = np.einsum("ab,pab->p", slope, self.derivatives(phi))
            return float(log_determinant + np.sum(inverse * C)), gradient[free]

        options: Any = {"maxiter": MAX_FIT_ITERATIONS, "gtol": 1e-9, "ftol": 1e-15}
        best = minimize(divergence, self.start(C)[free], jac=True, method="L-BFGS-B", options=options)
        phi = np.zeros(len(free))
        phi[free] = best.x
        return self.rescaled(phi, scale)

    def named(self, phi: np.ndarray, labels: tuple[str, ...]) -> Mapping[str, np.ndarray]:
        """What is reported beside G: 'rho', 'loading[a:1]', ..., from draws (..., p)."""
        return {}

    # -------------------------------------------------------------------------------- REML

    @abstractmethod
    def units(self, sd: np.ndarray) -> np.ndarray:
        """(p,) the size of each parameter where components have the standard deviations sd (k,)."""

    def lower_bounds(self, sd: np.ndarray) -> np.ndarray:
        """(p,) where REML stops a logarithm that goes to minus infinity; -inf for others."""
        return np.full(len(self.free), -np.inf)

    def upper_bounds(self) -> np.ndarray:
        """(p,) where REML stops what else goes to infinity, as where a correlation goes to 1; inf for others."""
        return np.full(len(self.free), np.inf)

    def bounded_names(self, labels: tuple[str, ...]) -> Sequence[str]:
        """(p,) what is 0 where a parameter is at its lower bound: 'specific[a]'; 'rho' where it is a correlation that
        is at a bound; '' for others.
        """
        return [""] * len(self.free)

    def describe_bounds(self, name: str, labels: tuple[str, ...], phi: np.ndarray, at_bound: np.ndarray) -> list[str]:
        """Say which parameters of the matrix of this name are at a bound; at_bound (p,) bool."""
        return [
            f"{name}: the correlation of the structure is at its bound, {float(self.named(phi, labels)[parameter]):.4g}"
            ": the likelihood is highest there, and it has no standard error"
            if parameter == "rho"
            else f"{name}: {parameter} is on the boundary: the likelihood is highest at 0; it is set just above 0, and "
            "has no standard error"
            for parameter, is_there in zip(self.bounded_names(labels), at_bound, strict=True)
            if is_there and parameter
        ]

    @property
    def factor_places(self) -> Sequence[np.ndarray]:
        """Of each common factor the places of its free loadings in phi: from component j on of factor j."""
        return ()

    # -------------------------------------------------------------------------------- draws

    def log_prior(self, phi: np.ndarray) -> float:
        """Log density of phi, up to a constant."""
        raise NotImplementedError

    def log_jacobian(self, scale: np.ndarray) -> float:
        """log |d rescaled(phi, scale) / d scale| of the scales that are free (all, or one where variances are equal)
        beside the other parameters, up to a constant; not asked of reduced rank, whose loadings are drawn given the
        records."""
        raise NotImplementedError

    def draw(self, S: np.ndarray, q: int, phi: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
        """(p,) one draw of phi given S = Theta' K^-1 Theta (k, k) of q levels; None where the sampler should draw one
        parameter after the other by slice sampling."""
        return None

    def log_density(self, S: np.ndarray, q: int, phi: np.ndarray) -> float:
        """log p(phi | theta), up to a constant; -inf where G(phi) is singular by rounding."""
        log_likelihood = self.log_likelihood(S, q, phi)
        return log_likelihood + self.log_prior(phi) if np.isfinite(log_likelihood) else -np.inf

    def log_likelihood(self, S: np.ndarray, q: int, phi: np.ndarray) -> float:
        """log p(theta | phi), up to a constant; -inf where G(phi) is singular by rounding."""
        G = self.matrix(phi)
        if not np.isfinite(G).all():
            return -np.inf
        sign, log_determinant = np.linalg.slogdet(G)
        if not sign > 0:
            return -np.inf
        return float(-0.5 * (q * log_determinant + np.trace(np.linalg.solve(G, S))))


def log_half_t(log_sd: np.ndarray, nu: float, scale: np.ndarray) -> float:
    """Log density of log sd where sd is half-t(nu, scale), the Jacobian included."""
    constant = lgamma((nu + 1) / 2) - lgamma(nu / 2) - 0.5 * np.log(nu * np.pi) + np.log(2)
    t = np.exp(2 * (log_sd - np.log(scale))) / nu
    return float(np.sum(constant - np.log(scale) - (nu + 1) / 2 * np.log1p(t) + log_sd))
