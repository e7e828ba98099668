"""The maximum of the restricted likelihood by average information, damped where a full step does not rise.

    psi <- psi + AI^-1 g

Where that leads out of the positive definite matrices, or the likelihood does not rise by a share of what its quadratic
promises, a step of the matrices' factors is taken (quadratic.py), damped more and more, and in the end an EM step
(Dempster, Laird & Rubin 1977), which never lowers the likelihood and stays inside:

    G <- G + 2 G D_G G / q        R <- R + 2 R D_R R / n

An iteration that creeps, as small data sets let it, is helped by quasi-Newton steps (quasi_newton.py).

Matrices stay positive definite (boundary.py). The iteration has converged where the distance to the maximum of the
quadratic, sqrt(g' AI^-1 g), in standard errors, is at most `tolerance`; on the boundary the one of the factors. Where
one variance is millions of times another rounding hides the last steps: no step rises, and the distance is noise. Up to
`NOISE` that is the maximum too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mmgibbs.likelihood.base import Likelihood, LikelihoodPoint
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.reml.boundary import raised, stays_inside
from mmgibbs.reml.elements import Elements
from mmgibbs.reml.information import degrees_of_freedom
from mmgibbs.reml.quadratic import Quadratic, factor_step, quadratic
from mmgibbs.reml.quasi_newton import quasi_newton

DAMPING = (0.0, 1e-3, 1e-2, 0.1, 1.0, 10.0)  # mu, one after another
PROMISED = 0.25  # share of the rise that the quadratic promises
CREEPS = 20  # iterations that have not converged, after which quasi-Newton steps are tried, once in so many
MOST = 100  # of these steps
ROUNDING = 1e-11  # relative: by how much rounding lets a likelihood fall
NOISE = 1e-3  # standard errors from the maximum where no step rises


@dataclass(frozen=True)
class Maximum:
    """The maximum, or the point where the iteration ended."""

    point: LikelihoodPoint
    quadratic: Quadratic
    distance: float  # to the maximum, in standard errors
    converged: bool
    iterations: int
    log_likelihoods: tuple[float, ...]  # at the start and after each iteration
    em_steps: int
    stopped: bool = False  # because `watch` asked for it


# iteration, where it is, distance in standard errors -> to stop there
Watch = Callable[[int, LikelihoodPoint, float], bool]


def continue_watch(watch: Watch | None, before: int) -> Watch | None:
    """Wrap a watch so that its iterations follow those before."""
    return None if watch is None else lambda iteration, point, distance: watch(before + iteration, point, distance)


def maximise(
    likelihood: Likelihood,
    elements: Elements,
    start: Variances,
    tolerance: float,
    max_iterations: int,
    watch: Watch | None = None,
) -> Maximum:
    """Maximise from `start`, its eigenvalues raised to FLOOR; ModelError where C is not positive definite there."""
    point = likelihood.evaluate(raised(elements, elements.variances(elements.vector(start), start)))
    history, em_steps, stopped = [point.log_likelihood], 0, False
    for iteration in range(max_iterations + 1):
        about = quadratic(point, elements)
        distance = np.sqrt(2.0 * factor_step(elements, point.variances, point.derivatives, about, 0.0)[1])
        stopped = watch is not None and watch(iteration, point, float(distance))
        converged = distance <= tolerance
        if converged or stopped or iteration == max_iterations:
            break
        following = _uphill(likelihood, elements, point, about)
        if iteration % CREEPS == CREEPS - 1:
            reached = quasi_newton(likelihood, elements, point if following is None else following, MOST)
            following = reached if reached.log_likelihood > point.log_likelihood + _rounding(point) else following
        if following is None:
            em_steps += 1
            following = _em(likelihood, elements, point)
        if following is None:
            converged = distance <= NOISE
            break
        point = following
        history.append(point.log_likelihood)
    return Maximum(point, about, distance, converged, len(history) - 1, tuple(history), em_steps, stopped)


def _uphill(
    likelihood: Likelihood, elements: Elements, point: LikelihoodPoint, about: Quadratic
) -> LikelihoodPoint | None:
    """The first step that rises by a good share of what it promises, otherwise the highest of those that rise."""
    best: LikelihoodPoint | None = None
    for variances, promised in _candidates(elements, point, about):
        candidate = likelihood.try_evaluate(variances)
        if candidate is None:
            continue
        rise = candidate.log_likelihood - point.log_likelihood
        if rise >= PROMISED * promised - _rounding(point):
            return candidate
        if rise > _rounding(point) and (best is None or candidate.log_likelihood > best.log_likelihood):
            best = candidate
    return best


def _candidates(elements: Elements, point: LikelihoodPoint, about: Quadratic) -> Iterator[tuple[Variances, float]]:
    """Steps of the matrices where they stay inside, of factors, of the matrices pulled back inside, of damped factors;
    and the rise that each promises."""
    full = elements.vector(point.variances) + about.step * elements.scale
    if not about.undetermined.size and stays_inside(elements, full, point.variances):
        yield elements.variances(full, point.variances), about.distance**2 / 2
    for mu in DAMPING:
        variances, promised = factor_step(elements, point.variances, point.derivatives, about, mu)
        yield variances, promised
        if mu == 0.0:
            yield raised(elements, elements.variances(full, point.variances)), promised


def _em(likelihood: Likelihood, elements: Elements, point: LikelihoodPoint) -> LikelihoodPoint | None:
    at = point.variances
    moved = at.copy_matrices()
    for block in elements.blocks:
        matrix, slope = block.extract(at), block.extract(point.derivatives)
        block.assign(moved, matrix + 2.0 * matrix @ slope @ matrix / degrees_of_freedom(likelihood, block))
    candidate = likelihood.try_evaluate(raised(elements, moved))
    return (
        candidate
        if candidate is not None and candidate.log_likelihood > point.log_likelihood + _rounding(point)
        else None
    )


def _rounding(point: LikelihoodPoint) -> float:
    return ROUNDING * max(1.0, abs(point.log_likelihood))
