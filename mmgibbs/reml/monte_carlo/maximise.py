"""The maximum of the restricted likelihood where only its sampled score is known.

The iteration begins with FIRST_SAMPLES samples. Once the distance to their maximum, in standard errors, is within the
noise of so few samples, sqrt(p / samples), it goes on with all of them. It has converged where the distance is at most
`tolerance`. Samples are the same in every iteration, so there is one point to converge to.

A step d is AI^-1 g if that leaves the matrices well inside the positive definite ones, otherwise one of factors
(quadratic.py). Further than FAR from the maximum, a step of factors is damped until every combination of components
keeps at least SMALLEST_SHARE of its variance. The likelihood itself is not computed, so a step is judged by the slope
g'd at both of its ends, which is 0 at the maximum along the step. If the slope turns from s > 0 to less than
-OVERSHOT s, the step was too long, and the iteration goes back to where a straight line through both slopes is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.reml.boundary import lowered, raised, stays_inside
from mmgibbs.reml.elements import Elements
from mmgibbs.reml.information import differentiate_elements, gradient
from mmgibbs.reml.maximise import DAMPING
from mmgibbs.reml.monte_carlo.score import SampledLikelihood, SampledPoint
from mmgibbs.reml.quadratic import Quadratic, factor_step, quadratic

FIRST_SAMPLES = 8
SMALLEST_SHARE = 0.2  # of a variance that a step of factors keeps; 0.1 and 0.4 took more iterations with 17 elements
FAR = 3.0  # standard errors
OVERSHOT = 0.5  # of the slope at the beginning of a step
SHORTEST, LONGEST = 0.1, 0.7  # share of a step that is kept where it was too long
SHORTENED = 0.25  # share that is kept where the equations cannot be solved at its end


@dataclass(frozen=True)
class IterationState:
    """The next point of an iteration: a run that is continued has the same bits from here on."""

    iteration: int
    n_samples: int
    vector: np.ndarray  # (p,) the elements there
    base: np.ndarray  # (p,) where the step to there began; the same without a step
    slope: float  # of the log likelihood along the step at its beginning


@dataclass(frozen=True)
class SampledMaximum:
    """The maximum, or the point where the iteration ended."""

    point: SampledPoint
    quadratic: Quadratic
    distance: float  # to the maximum of the sampled score, in standard errors
    converged: bool
    iterations: int
    distances: tuple[float, ...]  # after each iteration
    stopped: bool = False  # because `watch` asked for it

    def monte_carlo_covariance(self, elements: Elements) -> np.ndarray:
        """Compute AI^-1 Var(score) AI^-1 (p, p), the covariance of estimates given the records, in scaled elements."""
        scores = np.array([differentiate_elements(forms, elements) for forms in self.point.simulated_forms])
        scores *= elements.scale
        inverse = self.quadratic.covariance
        return np.asarray(inverse @ np.atleast_2d(np.cov(scores, rowvar=False)) @ inverse / len(scores))


# iteration, where it is, distance in standard errors, what comes next -> to stop there
SampledWatch = Callable[[int, SampledPoint, float, IterationState], bool]


def maximise_sampled(
    likelihood: SampledLikelihood,
    elements: Elements,
    start: Variances,
    tolerance: float,
    max_iterations: int,
    watch: SampledWatch | None = None,
    state: IterationState | None = None,
) -> SampledMaximum:
    """Find where the sampled score is 0, from `start`, or from the state of a run that is continued.

    ModelError where C cannot be solved there.
    """
    at = raised(elements, lowered(elements, start))
    if state is None:
        vector = elements.vector(at)
        state = IterationState(0, min(FIRST_SAMPLES, likelihood.most_samples), vector, vector, 0.0)
    distances: list[float] = []
    while True:
        likelihood.n_samples = state.n_samples
        step = state.vector - state.base
        try:
            point = likelihood.evaluate(elements.variances(state.vector, at))
            about = quadratic(point, elements)
        except ModelError:
            if not step.any():
                raise
            state = replace(state, vector=state.base + SHORTENED * step, iteration=state.iteration + 1)
            continue
        distance = float(np.sqrt(2.0 * factor_step(elements, point.variances, point.derivatives, about, 0.0)[1]))
        distances.append(distance)
        converged = distance <= tolerance and state.n_samples == likelihood.most_samples
        following = _plan_iteration(state, about, elements, point, distance, likelihood.most_samples)
        stopped = watch is not None and watch(state.iteration, point, distance, following)
        if converged or stopped or state.iteration >= max_iterations:
            return SampledMaximum(point, about, distance, converged, state.iteration, tuple(distances), stopped)
        state = following


def _plan_iteration(
    state: IterationState,
    about: Quadratic,
    elements: Elements,
    point: SampledPoint,
    distance: float,
    most_samples: int,
) -> IterationState:
    """Go back along the step where it was too long, otherwise on by the next one, with all samples once it is near."""
    step = state.vector - state.base
    slope = float(gradient(point, elements) @ step)
    if step.any() and state.slope > 0 and slope < -OVERSHOT * state.slope:
        share = min(max(state.slope / (state.slope - slope), SHORTEST), LONGEST)
        return replace(state, iteration=state.iteration + 1, vector=state.base + share * step)
    full = state.vector + about.step * elements.scale
    is_inside = not about.undetermined.size and stays_inside(elements, full, point.variances)
    vector = full if is_inside else elements.vector(_step_in_factors(about, elements, point, distance > FAR))
    is_near = distance <= np.sqrt(len(elements) / state.n_samples)
    n_samples = most_samples if is_near else state.n_samples
    slope = float(gradient(point, elements) @ (vector - state.vector))
    return IterationState(state.iteration + 1, n_samples, vector, state.vector, slope)


def _step_in_factors(about: Quadratic, elements: Elements, point: SampledPoint, is_far: bool) -> Variances:
    """Take the least damped step of factors that is not too long, and return the matrices."""
    for mu in DAMPING if is_far else DAMPING[:1]:
        variances, _ = factor_step(elements, point.variances, point.derivatives, about, mu)
        shares = (_smallest_share(b.extract(point.variances), b.extract(variances)) for b in elements.blocks)
        if min(shares, default=1.0) >= SMALLEST_SHARE:
            break
    return variances


def _smallest_share(before: np.ndarray, after: np.ndarray) -> float:
    """min over v of v' after v / v' before v, of two positive definite matrices (k, k)."""
    inverse_root = np.linalg.inv(np.linalg.cholesky(before))
    return float(np.linalg.eigvalsh(inverse_root @ after @ inverse_root.T)[0])
