"""REML of the parameters of relationships, such as the correlations of neighbouring plots, beside the variances.

The variances are maximised at fixed correlations, and the profile that is left rises by Newton steps in z = atanh(rho),

    z <- z + (I_zz - I_zv I_vv^-1 I_vz)^-1 g_z

with I the average information of both (reml/information.py) and g_z the derivatives at the maximum of the variances.
The variances follow a step by -I_vv^-1 I_vz dz, so that one or two iterations find their new maximum. Steps that do not
rise are halved, and what the slopes at successive points say of the curvature is learnt (BFGS). The likelihood may have
no slope in rho where the variance of the term is 0; other starts are tried then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Protocol

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.likelihood.base import Likelihood, LikelihoodPoint, Source
from mmgibbs.likelihood.correlated import CorrelatedLikelihood, CorrelatedPoint, RenewableResidual
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.renewable import RenewableRelationship
from mmgibbs.likelihood.restricted import Point, RestrictedLikelihood
from mmgibbs.models.design import Design
from mmgibbs.models.labels import correlation_label
from mmgibbs.models.terms import Related
from mmgibbs.reml.boundary import stays_inside
from mmgibbs.reml.elements import Elements
from mmgibbs.reml.finer_units import maximise_in_fitting_units
from mmgibbs.reml.information import element_places
from mmgibbs.reml.maximise import NOISE, ROUNDING, Maximum, continue_watch, maximise

MAX_HALVINGS = 10
MAX_STEP = 1.0  # in z: from a correlation of 0 to one of .76
OTHER_STARTS = (-0.5, 0.2, 0.9)
MAX_OTHER_STARTS = 9
MIN_INFORMATION = 1e-8  # of z, below which the data say nothing


class CorrelationsWatch(Protocol):
    """Who follows the iteration, and is told of the correlations first."""

    correlations: np.ndarray | None

    def __call__(self, iteration: int, point: LikelihoodPoint, distance: float) -> bool:
        """Whether to stop."""


@dataclass(frozen=True)
class CorrelationEstimates:
    """Parameters of relationships, and how their errors add to those of the variances."""

    sources: tuple[Source, ...]  # (P,) of each
    names: tuple[str, ...]  # (P,)
    values: np.ndarray  # (P,)
    covariance: np.ndarray  # (P, P); NaN of what is at a bound, and of what the data do not determine
    of_variances: np.ndarray  # (p, p) what their errors add to the covariance of the scaled elements
    words: tuple[str, ...]  # of those without a standard error

    @property
    def n_estimated(self) -> int:
        return int(np.count_nonzero(np.isfinite(np.diag(self.covariance))))

    def renew(self, design: Design) -> Design:
        """The design with the relationships at these values."""
        terms, correlated = list(design.terms), list(design.correlated)
        for source, values in self.group_values().items():
            if source.term is not None:
                term = terms[source.term]
                terms[source.term] = replace(term, prior=Related(term.relationship.renewed(values)))
            elif source.group is not None:
                group = correlated[source.group]
                correlated[source.group] = replace(group, relationship=group.relationship.renewed(values))
        return replace(design, terms=tuple(terms), correlated=tuple(correlated))

    def group_values(self) -> dict[Source, np.ndarray]:
        """The values of each relationship."""
        return {
            source: self.values[[other == source for other in self.sources]] for source in dict.fromkeys(self.sources)
        }

    def labels(self, design: Design) -> list[str]:
        """(P,) 'field.rho[row]', 'residual.rho[row]'."""
        return [_label(design, *of_parameter) for of_parameter in zip(self.sources, self.names, strict=True)]


def _label(design: Design, source: Source, name: str) -> str:
    if source.term is not None:
        return f"{design.terms[source.term].name}.rho[{name}]"
    assert source.group is not None, "a parameter is of one or the other"
    return correlation_label(design, source.group, name)


def has_correlations(likelihood: Likelihood) -> bool:
    """Some relationship has parameters to estimate."""
    return bool(_free_terms(likelihood) or _free_groups(likelihood))


def _free_terms(likelihood: Likelihood) -> list[int]:
    return [i for i in likelihood.random if likelihood.design.terms[i].relationship.has_free_parameters]


def _free_groups(likelihood: Likelihood) -> list[int]:
    groups = likelihood.design.correlated
    return [g for g, group in enumerate(groups) if group.relationship.has_free_parameters]


def _make_renewable(likelihood: Likelihood) -> list[RenewableRelationship] | list[RenewableResidual]:
    """What changes with the correlations, of a likelihood that is of the form for it."""
    if isinstance(likelihood, CorrelatedLikelihood):
        terms = _free_terms(likelihood)
        if terms:
            name = likelihood.design.terms[terms[0]].name
            raise ModelError(
                f"sampler.method: reml: found correlations of model.random.{name} that are estimated beside correlated "
                "residuals (variances.residual); needed one of them, or known correlations (rho, and fixed: true)"
            )
        return [RenewableResidual(likelihood, group) for group in _free_groups(likelihood)]
    assert isinstance(likelihood, RestrictedLikelihood), "the form of every relationship that has parameters"
    return [RenewableRelationship(likelihood, term) for term in _free_terms(likelihood)]


def maximise_with_correlations(
    likelihood: Likelihood,
    elements: Elements,
    start: Variances,
    tolerance: float,
    max_iterations: int,
    watch: CorrelationsWatch | None = None,
    start_correlations: np.ndarray | None = None,
) -> tuple[Maximum, Elements, CorrelationEstimates]:
    """Return the maximum over variances and correlations, the elements in its units, and the correlations."""
    return _Profile(likelihood, elements, tolerance, max_iterations, watch).maximise(start, start_correlations)


class _Profile:
    """The likelihood of the correlations, the variances at their maximum."""

    def __init__(
        self,
        likelihood: Likelihood,
        elements: Elements,
        tolerance: float,
        max_iterations: int,
        watch: CorrelationsWatch | None,
    ):
        self.likelihood, self.elements, self.tolerance, self.watch = likelihood, elements, tolerance, watch
        self.max_iterations = self.remaining = max_iterations
        self.relationships: Sequence[Any] = _make_renewable(likelihood)
        sizes = [len(renewable.parameters) for renewable in self.relationships]
        self.cuts = np.cumsum(sizes)[:-1]
        bounds = np.concatenate([renewable.relationship.parameter_bounds for renewable in self.relationships])
        self.low, self.high = np.arctanh(bounds).T
        self.history: list[float] = []
        self.em_steps = 0

    # -------------------------------------------------------------------------------------------- the variances

    def renew(self, z: np.ndarray) -> None:
        if self.watch is not None:
            self.watch.correlations = np.tanh(z)
        for renewable, rho in zip(self.relationships, np.split(np.tanh(z), self.cuts), strict=True):
            renewable.renew(rho)

    def fit(self, z: np.ndarray, start: Variances) -> Maximum:
        """The maximum over the variances at these correlations."""
        self.renew(z)
        watch = continue_watch(self.watch, self.max_iterations - self.remaining)
        maximum = maximise(self.likelihood, self.elements, start, self.tolerance, max(self.remaining, 0), watch)
        return self._count(maximum)

    def _count(self, maximum: Maximum) -> Maximum:
        self.remaining -= max(maximum.iterations, 1)
        self.history += maximum.log_likelihoods
        self.em_steps += maximum.em_steps
        return maximum

    # -------------------------------------------------------------------------------------------- the correlations

    def maximise(
        self, start: Variances, correlations: np.ndarray | None = None
    ) -> tuple[Maximum, Elements, CorrelationEstimates]:
        """From these correlations, by default those of the model."""
        of_model = np.concatenate([renewable.parameters for renewable in self.relationships])
        z = np.clip(np.arctanh(of_model if correlations is None else correlations), self.low, self.high)
        self.renew(z)
        maximum, self.elements = maximise_in_fitting_units(
            self.likelihood, self.elements, start, self.tolerance, self.max_iterations, self.watch
        )
        self._count(maximum)
        if not maximum.stopped:
            z, maximum = self._other_starts(z, maximum)
        secant: _Secant | None = None
        while True:
            about = self._about(z, maximum)
            secant = _Secant.begin(z, about) if secant is None else secant.update(z, about)
            distance = float(np.sqrt(max(about.gradient @ about.step, 0.0)))
            # the distance in all directions: the one of the variances belongs to fixed correlations
            maximum = replace(maximum, distance=float(np.hypot(distance, maximum.distance)))
            converged = maximum.converged and distance <= self.tolerance
            if converged or maximum.stopped or self.remaining <= 0:
                break
            following = self._climb(z, maximum, about, secant.inverse @ about.gradient)
            if following is None and secant.is_learnt:
                secant = None
                following = self._climb(z, maximum, about, about.step)
            if following is None:
                converged = distance <= NOISE
                self.renew(z)
                break
            z, maximum = following
        maximum = replace(
            maximum,
            converged=converged,
            iterations=self.max_iterations - self.remaining,
            log_likelihoods=tuple(self.history),
            em_steps=self.em_steps,
        )
        return maximum, self.elements, self._estimates(z, about)

    def _other_starts(self, z: np.ndarray, maximum: Maximum) -> tuple[np.ndarray, Maximum]:
        """The best of several correlations, where the variance of the term is 0 at the first."""
        of_terms = {renewable.source.term for renewable in self.relationships} - {None}
        if not any(self.elements.blocks[c.block].term in of_terms for c in maximum.quadratic.closed):
            return z, maximum
        best = z, maximum
        for rho in list(product(OTHER_STARTS, repeat=z.size))[:MAX_OTHER_STARTS]:
            candidate = np.clip(np.arctanh(rho), self.low, self.high)
            try:
                again = self.fit(candidate, self._inside(maximum))
            except ModelError:
                continue
            if again.point.log_likelihood > best[1].point.log_likelihood:
                best = candidate, again
            if again.stopped or self.remaining <= 0:
                break
        self.renew(best[0])
        return best[0], replace(best[1], point=self.likelihood.evaluate(best[1].point.variances))

    def _inside(self, maximum: Maximum) -> Variances:
        """Variances away from the boundary: half a unit each."""
        at = maximum.point.variances
        vector, scale = self.elements.vector(at), self.elements.scale
        moved = [
            max(v, 0.5 * s) if i == j else v
            for v, s, (_, i, j) in zip(vector, scale, self.elements.elements, strict=True)
        ]
        return self.elements.variances(np.array(moved), at)

    def _about(self, z: np.ndarray, maximum: Maximum) -> _Slope:
        point, about = maximum.point, maximum.quadratic
        assert isinstance(point, (Point, CorrelatedPoint)), "of such a likelihood"
        rho = np.tanh(z)
        gradient = np.concatenate([renewable.gradient(point) for renewable in self.relationships]) * (1 - rho**2)
        p = len(self.elements)
        of_variances = point.working_variates(element_places(self.elements)) * self.elements.scale
        of_correlations = np.concatenate(
            [renewable.working_variates(point) for renewable in self.relationships], axis=-1
        ) * (1 - rho**2)
        information = point.project(np.concatenate([of_variances, of_correlations], axis=-1))
        cross = information[p:, :p] @ about.open  # (P, m)
        follows = -about.inverse @ cross.T  # (m, P): of the variances, by a step in z
        profile = information[p:, p:] + cross @ follows
        shut = ((z >= self.high) & (gradient > 0)) | ((z <= self.low) & (gradient < 0))
        known = np.diag(profile) > MIN_INFORMATION
        free = np.flatnonzero(~shut & known)
        inverse = np.zeros_like(profile)
        inverse[np.ix_(free, free)] = np.linalg.pinv(profile[np.ix_(free, free)], rcond=1e-10, hermitian=True)
        return _Slope(np.where(shut, 0.0, gradient), inverse, about.open @ follows, shut, known)

    def _climb(
        self, z: np.ndarray, maximum: Maximum, about: _Slope, step: np.ndarray
    ) -> tuple[np.ndarray, Maximum] | None:
        """The first of shorter and shorter steps that rises; None where none does."""
        step = step * min(1.0, MAX_STEP / max(float(np.abs(step).max(initial=0.0)), 1e-300))
        before, at = maximum.point.log_likelihood, maximum.point.variances
        rounding = ROUNDING * max(1.0, abs(before))
        # the last steps promise a rise that rounding hides: they may be taken where nothing falls
        needed = rounding if about.gradient @ about.step > 2 * rounding else -rounding
        vector = self.elements.vector(at)
        for halving in range(MAX_HALVINGS):
            moved = np.clip(z + step / 2**halving, self.low, self.high)
            start = at
            followed = vector + (about.follows @ (moved - z)) * self.elements.scale
            if stays_inside(self.elements, followed, at):
                start = self.elements.variances(followed, at)
            try:
                again = self.fit(moved, start)
            except ModelError:
                continue
            if again.stopped or again.point.log_likelihood > before + needed:
                return moved, again
            if self.remaining <= 0:
                break
        return None

    def _estimates(self, z: np.ndarray, about: _Slope) -> CorrelationEstimates:
        rho = np.tanh(z)
        covariance = about.inverse * np.outer(1 - rho**2, 1 - rho**2)
        without = about.shut | ~about.known
        covariance[without] = covariance[:, without] = np.nan
        sources = tuple(renewable.source for renewable in self.relationships for _ in renewable.parameters)
        names = tuple(name for renewable in self.relationships for name in renewable.relationship.parameters)
        design = self.likelihood.design
        words = []
        for n in np.flatnonzero(without):
            name = _label(design, sources[n], names[n])
            if about.shut[n]:
                words.append(
                    f"{name}: the correlation is at its bound, {rho[n]:.3f}: the likelihood rises beyond it, as where "
                    "a trend over the whole field or time is no autoregression; it has no standard error; needed a "
                    "fixed effect for this trend, such as a covariate or class of rows or columns"
                )
            else:
                words.append(
                    f"{name}: the data say nothing of this correlation, as where the variance of its term is 0: the "
                    "estimate comes from its start alone and has no standard error; needed a model without the term"
                )
        of_variances = about.follows @ about.inverse @ about.follows.T
        return CorrelationEstimates(sources, names, rho, covariance, of_variances, tuple(words))


@dataclass(frozen=True)
class _Slope:
    """The profile about correlations z."""

    gradient: np.ndarray  # (P,) 0 at a bound that the likelihood rises beyond
    inverse: np.ndarray  # (P, P) of the information of z; 0 of what does not move
    follows: np.ndarray  # (p, P) how the scaled elements follow z
    shut: np.ndarray  # (P,) at such a bound
    known: np.ndarray  # (P,) the data say something of it

    @property
    def step(self) -> np.ndarray:
        return self.inverse @ self.gradient


@dataclass(frozen=True)
class _Secant:
    """The inverse of the information of z, corrected by the slopes at successive points (BFGS)."""

    z: np.ndarray  # (P,)
    gradient: np.ndarray  # (P,)
    inverse: np.ndarray  # (P, P)
    is_free: np.ndarray  # (P,) not at a bound, and the data say something of it
    is_learnt: bool = False

    @classmethod
    def begin(cls, z: np.ndarray, about: _Slope) -> _Secant:
        """By the average information alone."""
        return cls(z, about.gradient, about.inverse, ~about.shut & about.known)

    def update(self, z: np.ndarray, about: _Slope) -> _Secant:
        """The same at the next point; anew where other correlations are at bounds, or the slopes bend upwards.

        Of those at bounds slopes and steps are 0, and the inverse stays so.
        """
        step, fall = z - self.z, self.gradient - about.gradient
        curvature = float(step @ fall)
        is_free = ~about.shut & about.known
        if not np.array_equal(is_free, self.is_free) or curvature <= 1e-12 * float(step @ step):
            return _Secant.begin(z, about)
        projection = np.eye(z.size) - np.outer(step, fall) / curvature
        inverse = projection @ self.inverse @ projection.T + np.outer(step, step) / curvature
        return _Secant(z, about.gradient, inverse, is_free, True)
