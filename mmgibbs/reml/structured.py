"""REML where covariance matrices have a structure: the parameters phi are free, and all matrices functions of them.

With J = d psi / d phi, psi the elements of the matrices, score and average information of phi are J'g and J'AI J.
Steps are damped as by Levenberg and Marquardt,

    phi <- phi + (J'AI J + mu diag(J'AI J))^-1 J'g

with mu raised until the likelihood rises. Without loadings, what the slopes at successive points say of the curvature
is learnt (secant.py), and a step by that is tried first. With loadings, this starts only once convergence is slow near
the maximum, because secants of the long first steps are misleading. The curvature of loadings is known: tr(D LL') is
quadratic in them, so that steps add -2 D (x) I to their information, or the part of it that is positive where the sum
is not, as near a factor that vanishes J is 0. A factor that becomes as small as variances may, while the likelihood
falls as it grows, stays there. Variances are logarithms in phi, so that every step gives positive definite matrices;
one that goes to 0 (a Heywood case, where it is a specific variance) stops at a lower bound and stays there as long as
the likelihood falls inwards. Matrices without a structure are functions of their Cholesky factors.

Parameters rho of relationships, such as the correlations of neighbouring plots, follow phi in one vector as z =
atanh(rho), between their bounds. Where the variance of such a relationship ends at 0, and the likelihood has no slope
in its rho, the iteration is repeated from other correlations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.likelihood.base import Likelihood, LikelihoodPoint
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.models.structures.base import SMALLEST_SHARE
from mmgibbs.reml.correlation_parameters import (
    CorrelationEstimates,
    CorrelationParameters,
    CorrelationsWatch,
    has_correlations,
)
from mmgibbs.reml.information import average_information, gradient
from mmgibbs.reml.secant import Secant, update_secant
from mmgibbs.reml.structured_elements import StructuredElements

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-9, 1e8
PROMISED_SHARE = 0.25  # of the rise that the quadratic promises, below which steps are damped more
NEAR, SLOW = 0.1, 0.8  # secants start within NEAR standard errors, if a step leaves more than SLOW of the distance
UNDETERMINED = 1e-9  # eigenvalue of the scaled information below which the data say nothing
ROUNDING = 1e-12  # of a log likelihood
INVOLVED = 1e-3  # square of the part of a parameter in a direction
MAX_LOG_STEP = 5.0  # of the logarithm of a variance or standard deviation, which the data may hardly determine
MAX_STEP = 1.0  # in z: from a correlation of 0 to one of .76
MIN_CURVATURE = 1e-4  # of scaled parameters, for steps by all of the curvature of loadings
RAISED_SD = 0.7  # of its unit, where a variance of 0 is tried once more


@dataclass(frozen=True)
class StructuredMaximum:
    """The maximum, or the point where the iteration ended."""

    point: LikelihoodPoint
    parameters: StructuredElements
    correlations: CorrelationEstimates | None  # parameters of relationships, where some are estimated
    covariance: np.ndarray  # (p, p) of phi; 0 for parameters at their bounds
    undetermined: np.ndarray  # (p, u) directions, in units, of which the data say nothing
    at_bound: np.ndarray  # (p,) bool
    distance: float  # to the maximum, in standard errors
    converged: bool
    iterations: int  # from all starts together
    log_likelihoods: tuple[float, ...]  # at each start and after each iteration
    stopped: bool

    @property
    def n_estimated(self) -> int:
        n_structure = int(self.parameters.free.sum() - self.at_bound.sum() - self.undetermined.shape[1])
        return n_structure + (0 if self.correlations is None else self.correlations.n_estimated)


@dataclass(frozen=True)
class _Joint:
    """The likelihood of x = (phi, z), (p + P,)."""

    likelihood: Likelihood
    parameters: StructuredElements
    correlations: CorrelationParameters | None
    variances: Variances  # of what is not estimated

    @property
    def n_structure(self) -> int:
        """Number p of parameters of structures."""
        return len(self.parameters)

    @property
    def n_correlations(self) -> int:
        """Number P of correlations."""
        return 0 if self.correlations is None else len(self.correlations)

    @property
    def has_loadings(self) -> bool:
        return next(self.parameters.list_factors(), None) is not None

    @property
    def scale(self) -> np.ndarray:
        return np.append(self.parameters.scale, np.ones(self.n_correlations))

    @property
    def free(self) -> np.ndarray:
        return np.append(self.parameters.free, np.ones(self.n_correlations, bool))

    @property
    def lower(self) -> np.ndarray:
        return np.append(self.parameters.lower, [] if self.correlations is None else self.correlations.low)

    @property
    def upper(self) -> np.ndarray:
        return np.append(self.parameters.upper, [] if self.correlations is None else self.correlations.high)

    def begin(self, rho: np.ndarray | None) -> np.ndarray:
        """x of phi as it is, and of these correlations, by default those of the model."""
        return np.append(self.parameters.phi, [] if self.correlations is None else self.correlations.start(rho))

    def split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Split x into phi and z."""
        return x[: self.n_structure], x[self.n_structure :]

    def renew(self, x: np.ndarray) -> Variances:
        """Renew the relationships of the likelihood to those of x, and return the matrices."""
        phi, z = self.split(x)
        if self.correlations is not None:
            self.correlations.renew(z)
        return self.parameters.variances(phi, self.variances)

    def slope(self, point: LikelihoodPoint, x: np.ndarray) -> _Slope:
        """Return the slope at x, to which the likelihood was renewed last."""
        (phi, z), elements = self.split(x), self.parameters.elements
        J = self.parameters.jacobian(phi) * self.parameters.scale
        score = J.T @ gradient(point, elements)
        if self.correlations is None:
            information = J.T @ average_information(point, elements) @ J
        else:
            score = np.append(score, self.correlations.gradient(point, z))
            information = self.correlations.information(point, z, elements, J)
        at_bound = ((x <= self.lower) & (score <= 0)) | ((x >= self.upper) & (score >= 0))
        at_bound[: self.n_structure] |= self.parameters.find_vanishing(phi, score[: self.n_structure])
        at_bound &= self.free
        is_open = self.free & ~at_bound
        inner = information[np.ix_(is_open, is_open)]
        d = _root_of_diagonal(inner)
        values, vectors = np.linalg.eigh(inner / d[:, None] / d)
        curvature = np.zeros_like(information)
        curvature[: self.n_structure, : self.n_structure] = self.parameters.curvature(point.derivatives)
        return _Slope(self.scale, score, information, is_open, at_bound, vectors, values, curvature)

    def follow(self, x: np.ndarray, step: np.ndarray) -> np.ndarray:
        """x after a step (p + P,) in units, within bounds; logarithms and z go MAX_LOG_STEP and MAX_STEP at most."""
        longest = np.append(
            np.where(np.isfinite(self.parameters.lower), MAX_LOG_STEP, np.inf), np.full(self.n_correlations, MAX_STEP)
        )
        return np.clip(x + np.clip(step * self.scale, -longest, longest), self.lower, self.upper)

    def other_starts(self, x: np.ndarray, at_bound: np.ndarray) -> Iterator[np.ndarray]:
        """Other correlations, where the variance of a term that has some is at its bound; it is raised again."""
        if self.correlations is None:
            return
        is_shut = np.zeros(len(x), bool)
        for block, _, places in self.parameters.list_blocks():
            if block.term in self.correlations.terms:
                is_shut[places] = at_bound[places] & (x[places] <= self.lower[places])
        if is_shut.any():
            phi, _ = self.split(np.where(is_shut, x + np.log(RAISED_SD / SMALLEST_SHARE), x))
            yield from (np.append(phi, z) for z in self.correlations.other_starts())


def maximise_structured(
    likelihood: Likelihood,
    parameters: StructuredElements,
    start: Variances,
    tolerance: float,
    max_iterations: int,
    watch: CorrelationsWatch | None = None,
    start_correlations: np.ndarray | None = None,
) -> StructuredMaximum:
    """Maximise over phi, and the parameters of relationships; ModelError where C is singular at the start."""
    joint = _Joint(
        likelihood, parameters, CorrelationParameters(likelihood) if has_correlations(likelihood) else None, start
    )
    best = _climb(joint, joint.begin(start_correlations), tolerance, max_iterations, watch)
    iterations, log_likelihoods = best.iterations, best.log_likelihoods
    for x in joint.other_starts(best.x, best.slope.at_bound):
        if best.stopped or iterations >= max_iterations:
            break
        try:
            again = _climb(joint, x, tolerance, max_iterations - iterations, watch, iterations)
        except ModelError:  # C is not positive definite there
            continue
        iterations += again.iterations
        log_likelihoods += again.log_likelihoods
        if again.point.log_likelihood > best.point.log_likelihood:
            best = again
        elif again.stopped:
            best = replace(best, stopped=True, converged=False)
    return _describe(joint, best, iterations, log_likelihoods)


@dataclass(frozen=True)
class _Reached:
    """The end of one climb."""

    x: np.ndarray
    point: LikelihoodPoint
    slope: _Slope
    converged: bool
    stopped: bool
    log_likelihoods: tuple[float, ...]

    @property
    def iterations(self) -> int:
        return len(self.log_likelihoods) - 1


def _climb(
    joint: _Joint,
    x: np.ndarray,
    tolerance: float,
    max_iterations: int,
    watch: CorrelationsWatch | None,
    iterations_before: int = 0,
) -> _Reached:
    """Climb from x to a maximum."""
    damping, stopped = FIRST_DAMPING, False
    secant: Secant | None = None
    learns, before = not joint.has_loadings, np.inf
    point = joint.likelihood.evaluate(joint.renew(x))
    history = [point.log_likelihood]
    for iteration in range(max_iterations + 1):
        slope = joint.slope(point, x)
        converged = slope.distance <= tolerance
        if watch is not None:
            if joint.correlations is not None:
                watch.correlations = np.tanh(joint.split(x)[1])
            stopped = watch(iterations_before + iteration, point, slope.distance)
        if converged or stopped or iteration == max_iterations:
            break
        following = None
        learns |= SLOW * before < slope.distance < NEAR
        before = slope.distance
        if learns:
            secant = update_secant(secant, x / joint.scale, slope.score, slope.inverse, slope.open)
        if secant is not None and secant.is_learnt:
            candidate = joint.follow(x, secant.inverse @ (slope.score * slope.open))
            following = _find_higher(joint, candidate, point)
            secant = secant if following is not None else None
        while following is None and damping <= MOST_DAMPING:
            step = slope.step(damping)
            candidate = joint.follow(x, step)
            following = _find_higher(joint, candidate, point)
            if following is None:
                damping *= 10
            elif following.log_likelihood - point.log_likelihood < PROMISED_SHARE * slope.promise(step):
                damping *= 4
            else:
                damping = max(damping / 10, LEAST_DAMPING)
        if following is None:  # rounding hides the last steps
            converged = slope.distance <= 100 * tolerance
            break
        point, x = following, candidate
        history.append(point.log_likelihood)
    return _Reached(x, point, slope, converged, stopped, tuple(history))


def _describe(
    joint: _Joint, reached: _Reached, iterations: int, log_likelihoods: tuple[float, ...]
) -> StructuredMaximum:
    """The maximum of phi, and that of correlations beside it."""
    joint.renew(reached.x)
    (phi, z), slope, p, parameters = joint.split(reached.x), reached.slope, joint.n_structure, joint.parameters
    covariance, directions = slope.covariance, slope.undetermined
    correlations = None
    if joint.correlations is not None:
        known = (directions[p:] ** 2).max(axis=1, initial=0.0) <= INVOLVED
        # their errors are in the covariance of phi already
        of_phi = np.zeros((p, p))
        correlations = joint.correlations.estimates(z, covariance[p:, p:], of_phi, slope.at_bound[p:], known)
    of_structure = directions[:p, (directions[:p] ** 2).max(axis=0, initial=0.0) > INVOLVED]
    return StructuredMaximum(
        reached.point,
        StructuredElements(parameters.elements, parameters.structures, phi),
        correlations,
        covariance[:p, :p],
        of_structure,
        slope.at_bound[:p],
        slope.distance,
        reached.converged,
        iterations,
        log_likelihoods,
        reached.stopped,
    )


@dataclass(frozen=True)
class _Slope:
    """Score and average information of x at one point, in units."""

    scale: np.ndarray  # (p,)
    score: np.ndarray  # (p,)
    information: np.ndarray  # (p, p)
    open: np.ndarray  # (p,) bool: parameters that move
    at_bound: np.ndarray  # (p,) bool
    vectors: np.ndarray  # (m, m) of the information of the open ones, its diagonal 1
    values: np.ndarray  # (m,)
    curvature: np.ndarray  # (p, p) what steps add to the information

    @property
    def _diagonal(self) -> np.ndarray:
        return _root_of_diagonal(self.information[np.ix_(self.open, self.open)])

    @property
    def distance(self) -> float:
        known = self.values > UNDETERMINED
        projected = self.vectors[:, known].T @ (self.score[self.open] / self._diagonal)
        return float(np.sqrt(np.sum(projected**2 / self.values[known])))

    def step(self, damping: float) -> np.ndarray:
        """Compute the step (p,) in units."""
        inner = self.curved[np.ix_(self.open, self.open)]
        d = _root_of_diagonal(inner)
        values, vectors = np.linalg.eigh(inner / d[:, None] / d)
        known = values > UNDETERMINED
        projected = vectors[:, known].T @ (self.score[self.open] / d) / (values[known] + damping)
        out = np.zeros(len(self.score))
        out[self.open] = vectors[:, known] @ projected / d
        return out

    @cached_property
    def curved(self) -> np.ndarray:
        """Information with the curvature of loadings, (p, p)."""
        every = np.ix_(self.open, self.open)
        both = self.information + self.curvature
        d = _root_of_diagonal(both[every])
        if np.all(np.linalg.eigvalsh(both[every] / d[:, None] / d) > MIN_CURVATURE):
            return both
        values, vectors = np.linalg.eigh(self.curvature)
        return np.asarray(self.information + (vectors * np.maximum(values, 0.0)) @ vectors.T)

    def promise(self, step: np.ndarray) -> float:
        """Return the rise of the quadratic along a step in units."""
        return float(self.score @ step - 0.5 * step @ self.curved @ step)

    @property
    def covariance(self) -> np.ndarray:
        """Covariance matrix (p, p) of the parameters."""
        return self.inverse * self.scale[:, None] * self.scale

    @property
    def inverse(self) -> np.ndarray:
        """Inverse of the information, (p, p), in units; 0 of what does not move."""
        known = self.values > UNDETERMINED
        V = self.vectors[:, known] / self._diagonal[:, None]
        out = np.zeros_like(self.information)
        out[np.ix_(self.open, self.open)] = (V / self.values[known]) @ V.T
        return out

    @property
    def undetermined(self) -> np.ndarray:
        """Undetermined directions (p, u)."""
        out = np.zeros((len(self.score), int(np.sum(self.values <= UNDETERMINED))))
        out[self.open] = self.vectors[:, self.values <= UNDETERMINED] / self._diagonal[:, None]
        return out / np.maximum(np.linalg.norm(out, axis=0), np.finfo(float).tiny)


def _root_of_diagonal(information: np.ndarray) -> np.ndarray:
    diagonal = np.diag(information)
    return np.sqrt(np.maximum(diagonal, 1e-12 * diagonal.max(initial=np.finfo(float).tiny)))


def _find_higher(joint: _Joint, x: np.ndarray, before: LikelihoodPoint) -> LikelihoodPoint | None:
    """Evaluate the point of x, and return it if the likelihood is higher."""
    point = joint.likelihood.try_evaluate(joint.renew(x))
    rounding = ROUNDING * max(1.0, abs(before.log_likelihood))
    return point if point is not None and point.log_likelihood > before.log_likelihood + rounding else None
