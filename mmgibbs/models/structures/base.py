"""The contract of structured covariance matrices: G(phi) is a function of a vector of parameters without bounds.

Components have the order of the term. Kinds with `needs_order` use it: their components are ordered levels, such as
sites from south to north, or weeks. Variances and standard deviations enter phi as logarithms, and correlations through
a map from the real line to their range. Every phi then gives a positive definite G, or a positive semi-definite one of
a kind that is singular.

Each kind is one class in a file of its own, listed in the registry of this package. The class names the keys that it
takes from the analysis file, builds the structure from them, and has its parameters, their prior and their draws.
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

FULL = "full"  # kind of a matrix whose elements are all free
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
    """The data and prior that a structure is built from, beside its keys."""

    term: Term
    design: Design
    sd: np.ndarray  # (k,) phenotypic standard deviation of the trait of each component
    sd_scale: np.ndarray  # (k,) scale of the half-t prior of each standard deviation
    nu: float  # its degrees of freedom
    given: np.ndarray | None  # (k, k) the matrix, where it is fixed


class CommonFactors(NamedTuple):
    """G = L L' + Psi."""

    loadings: np.ndarray  # (k, f) L
    specific: np.ndarray  # (k,) the diagonal of Psi


class StructureForm(NamedTuple):
    """A structure of k components without values, as likelihood-ratio tests compare it."""

    kind: str
    k: int
    factors: int = 0
    equal: bool = False
    distances: str = "equal"

    @property
    def is_full(self) -> bool:
        """True if all elements are free, so that every other structure is nested in this one."""
        return self.kind == FULL

    @property
    def n_elements(self) -> int:
        return self.k * (self.k + 1) // 2

    @property
    def n_variances(self) -> int:
        return 1 if self.equal else self.k


class Structure(ABC):
    """A covariance matrix of k components as a function of parameters; each subclass is one kind."""

    kind: ClassVar[str]  # the word in the analysis file
    meaning: ClassVar[str] = ""  # its sentence in the reference of keys
    words: ClassVar[str] = ""  # its words in reports, where its keys make no difference to them
    key_names: ClassVar[frozenset[str]] = frozenset({"variances"})  # keys beside `kind` that it takes (StructureKeys)
    is_structured: ClassVar[bool] = True  # False: the elements are parameters themselves
    has_covariances: ClassVar[bool] = True  # False: its blocks are single components
    is_singular: ClassVar[bool] = False  # whether G has no inverse: levels are scores on its common factors alone
    can_draw_factors: ClassVar[bool] = False  # whether it takes `factors: auto`
    needs_order: ClassVar[bool] = False  # whether G depends on the order of the components

    k: int
    equal: bool  # whether components share one variance (of the specific effects, of the innovations)
    sd_scale: np.ndarray  # (k,) scale of the half-t prior of each standard deviation, with `nu` degrees of freedom
    nu: float

    # -------------------------------------------------------------------------------- the analysis file and reports

    @classmethod
    def build(cls, section: StructureKeys, context: StructureContext) -> Structure:
        """Build the structure, or raise ModelError where the model has something that it cannot be combined with.

        Called only where `is_structured`.
        """
        raise NotImplementedError(f"{cls.kind}: the elements of G are the parameters, so there is nothing to build")

    @classmethod
    def describe(cls, section: Mapping[str, Any]) -> str:
        """Describe the structure in a report: 'factor-analytic with 2 factors'."""
        return cls.words

    @classmethod
    def simplify(cls, form: StructureForm) -> StructureForm:
        """Return one form for all forms of the same model: two components with free variances are always full."""
        return StructureForm(FULL, form.k) if form.k == 1 or (form.k == 2 and not form.equal) else form

    @classmethod
    @abstractmethod
    def count_parameters(cls, form: StructureForm) -> int:
        """Count the parameters that are not redundant; there may be more than elements of the matrix."""

    @classmethod
    def count_factors(cls, form: StructureForm) -> int:
        """Count the common factors whose loadings can express this structure."""
        return form.factors

    @classmethod
    def is_nested(cls, form: StructureForm, larger: type[Structure], other: StructureForm, rho: float | None) -> bool:
        """Return whether this form is nested in the form `other` of the kind `larger`, which is not equal to it.

        rho is the estimate of its correlation, None where it has none. `full`, which contains all, is not asked for.
        """
        return form.kind == other.kind and form.distances == other.distances

    # -------------------------------------------------------------------------------- the matrix

    @property
    @abstractmethod
    def free(self) -> np.ndarray:
        """(p,) bool: the parameters that REML moves. The others are redundant for REML and stay at 0."""

    @abstractmethod
    def matrix(self, phi: np.ndarray) -> np.ndarray:
        """Compute G (k, k)."""

    @abstractmethod
    def derivatives(self, phi: np.ndarray) -> np.ndarray:
        """Compute dG/dphi (p, k, k)."""

    @abstractmethod
    def start(self, C: np.ndarray) -> np.ndarray:
        """Return parameters (p,) whose matrix is near C (k, k), which has variances near 1."""

    @abstractmethod
    def rescaled(self, phi: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return the parameters (p,) of D G D, D = diag(scale); all scales are equal where variances are."""

    def fit(self, G: np.ndarray) -> np.ndarray:
        """Return the parameters (p,) whose matrix is nearest to G: they minimise log|G(phi)| + tr(G(phi)^-1 G).

        Where the matrix of the structure is singular, return its start.
        """
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

    @property
    def n_specific_factors(self) -> int:
        """Number of common factors beside specific effects, 0 where G is not of that form; see `common_factors`."""
        return 0

    def common_factors(self, phi: np.ndarray) -> CommonFactors:
        """Split G, where it has common factors beside specific effects."""
        raise NotImplementedError(f"{self.kind}: G is not L L' + Psi")

    def named(self, phi: np.ndarray, labels: tuple[str, ...]) -> Mapping[str, np.ndarray]:
        """Compute what is reported beside G from draws (..., p): 'rho', 'loading[a:1]', ..."""
        return {}

    # -------------------------------------------------------------------------------- REML

    @abstractmethod
    def units(self, sd: np.ndarray) -> np.ndarray:
        """Return the unit (p,) of a step in each parameter where components have the standard deviations sd (k,)."""

    def lower_bounds(self, sd: np.ndarray) -> np.ndarray:
        """Return where REML stops each logarithm (p,) that goes to minus infinity; -inf for other parameters."""
        return np.full(len(self.free), -np.inf)

    def upper_bounds(self) -> np.ndarray:
        """Return where REML stops each parameter (p,) that goes to infinity, as for a correlation of 1; else inf."""
        return np.full(len(self.free), np.inf)

    def bounded_names(self, labels: tuple[str, ...]) -> Sequence[str]:
        """Name what is 0 where each parameter (p,) is at its lower bound, as 'specific[a]'; '' for others."""
        return [""] * len(self.free)

    def describe_bounds(self, name: str, labels: tuple[str, ...], phi: np.ndarray, at_bound: np.ndarray) -> list[str]:
        """Say which parameters of the matrix of this name are at a bound; at_bound (p,) bool."""
        return [
            f"{name}: {parameter} is on the boundary: the likelihood is highest at 0; it is set just above 0, and has "
            "no standard error"
            for parameter, is_there in zip(self.bounded_names(labels), at_bound, strict=True)
            if is_there and parameter
        ]

    @property
    def factor_places(self) -> Sequence[np.ndarray]:
        """Positions in phi of the free loadings of each common factor j, which are those from component j on."""
        return ()

    # -------------------------------------------------------------------------------- draws

    def log_prior(self, phi: np.ndarray) -> float:
        """Compute log p(phi), up to a constant."""
        raise NotImplementedError(f"{self.kind}: needed log_prior, the prior of its parameters, to draw them")

    def log_jacobian(self, scale: np.ndarray) -> float:
        """Compute log |d rescaled(phi, scale) / d scale|, up to a constant.

        It is that of the scales that are free (all, or one where variances are equal) beside the other parameters.
        Not asked where G is singular, as loadings are drawn given the records there.
        """
        raise NotImplementedError(f"{self.kind}: needed log_jacobian, to draw the scales of its components")

    def draw(self, S: np.ndarray, q: int, phi: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
        """Return one draw of phi (p,) given S = Theta' K^-1 Theta (k, k) of q levels.

        None makes the sampler draw one parameter after the other, by slices of `log_density`.
        """
        return None

    def log_density(self, S: np.ndarray, q: int, phi: np.ndarray) -> float:
        """Compute log p(phi | theta) = log p(theta | phi) + log p(phi), up to a constant.

        It is -inf where G(phi) is singular by rounding.
        """
        log_likelihood = self.log_likelihood(S, q, phi)
        return log_likelihood + self.log_prior(phi) if np.isfinite(log_likelihood) else -np.inf

    def log_likelihood(self, S: np.ndarray, q: int, phi: np.ndarray) -> float:
        """Compute log p(theta | phi) = -1/2 [q log|G(phi)| + tr(G(phi)^-1 S)], up to a constant.

        It is -inf where G(phi) is singular by rounding.
        """
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
