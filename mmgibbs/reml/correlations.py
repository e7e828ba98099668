"""REML of the parameters of relationships, such as the correlations of neighbouring plots, beside the variances.

The variances are maximised at fixed correlations, and the profile that is left rises by Newton steps in z = atanh(rho),

    z <- z + (I_zz - I_zv I_vv^-1 I_vz)^-1 g_z

with I the average information of both (reml/information.py) and g_z the derivatives at the maximum of the variances.
The variances follow a step by -I_vv^-1 I_vz dz, so that one or two iterations find their new maximum. Steps that do not
rise are halved, and what the slopes at successive points say of the curvature is learnt (BFGS). The likelihood may have
no slope in rho where the variance of the term is 0; other starts are tried then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.likelihood.base import Likelihood
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.reml.boundary import stays_inside
from mmgibbs.reml.correlation_parameters import CorrelationEstimates, CorrelationParameters, CorrelationsWatch
from mmgibbs.reml.elements import Elements
from mmgibbs.reml.finer_units import maximise_in_fitting_units
from mmgibbs.reml.maximise import NOISE, ROUNDING, Maximum, continue_watch, maximise
from mmgibbs.reml.secant import Secant, update_secant

MAX_HALVINGS = 10
MAX_STEP = 1.0  # in z: from a correlation of 0 to one of .76
MIN_INFORMATION = 1e-8  # of z, below which the data say nothing


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
        self.parameters = CorrelationParameters(likelihood)
        self.history: list[float] = []
        self.em_steps = 0

    # -------------------------------------------------------------------------------------------- the variances

    def renew(self, z: np.ndarray) -> None:
        if self.watch is not None:
            self.watch.correlations = np.tanh(z)
        self.parameters.renew(z)

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
        """Maximise from these correlations, by default those of the model."""
        z = self.parameters.start(correlations)
        self.renew(z)
        maximum, self.elements = maximise_in_fitting_units(
            self.likelihood, self.elements, start, self.tolerance, self.max_iterations, self.watch
        )
        self._count(maximum)
        if not maximum.stopped:
            z, maximum = self._other_starts(z, maximum)
        secant: Secant | None = None
        while True:
            about = self._about(z, maximum)
            is_free = ~about.shut & about.known
            secant = update_secant(secant, z, about.gradient, about.inverse, is_free)
            distance = float(np.sqrt(max(about.gradient @ about.step, 0.0)))
            # the distance of the variances is conditional on the correlations
            maximum = replace(maximum, distance=max(distance, maximum.distance))
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
        """Find the best of several correlations, where the variance of the term is 0 at the first."""
        of_terms = self.parameters.terms
        if not any(self.elements.blocks[c.block].term in of_terms for c in maximum.quadratic.closed):
            return z, maximum
        best = z, maximum
        for candidate in self.parameters.other_starts():
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
        about, p = maximum.quadratic, len(self.elements)
        gradient = self.parameters.gradient(maximum.point, z)
        scale = np.diag(self.elements.scale)
        information = self.parameters.information(maximum.point, z, self.elements, scale)
        cross = information[p:, :p] @ about.open  # (P, m)
        follows = -about.inverse @ cross.T  # (m, P): of the variances, by a step in z
        profile = information[p:, p:] + cross @ follows
        shut = ((z >= self.parameters.high) & (gradient > 0)) | ((z <= self.parameters.low) & (gradient < 0))
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
            moved = np.clip(z + step / 2**halving, self.parameters.low, self.parameters.high)
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
        of_variances = about.follows @ about.inverse @ about.follows.T
        return self.parameters.estimates(z, about.inverse, of_variances, about.shut, about.known)


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
