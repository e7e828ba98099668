"""Estimates of the variances of a model by REML from sampled scores, with their standard and Monte Carlo errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.threads import Threads
from mmgibbs.models.covariance import CovarianceModel, count_elements
from mmgibbs.models.residual import ResidualModel
from mmgibbs.reml.elements import free_elements, starting_variances
from mmgibbs.reml.estimate import Estimates, boundary_words, refuse_without_freedom, undetermined_words
from mmgibbs.reml.monte_carlo.maximise import IterationState, SampledMaximum, maximise_sampled
from mmgibbs.reml.monte_carlo.score import SampledLikelihood, SampledPoint
from mmgibbs.reml.units import model_units


class SampledState(NamedTuple):
    """State that an iteration continues from."""

    iteration: IterationState
    starts: tuple[np.ndarray, np.ndarray]  # `known_starts` of the likelihood


class SampledEstimateWatch(Protocol):
    """A watch of the iteration with sampled likelihoods."""

    def begin(self, likelihood: SampledLikelihood) -> None:
        """Begin the watch before the first iteration."""

    def __call__(self, iteration: int, point: SampledPoint, distance: float, following: IterationState) -> bool:
        """Return True to stop, after each iteration; following: what would be evaluated next."""


class SampledSettings(NamedTuple):
    """Settings of the search for the maximum."""

    samples: int
    seed: int
    threads: int
    tolerance: float  # distance to the maximum of the sampled score, in standard errors
    max_iterations: int
    device: str = "cpu"  # on which equations are solved


def estimate_sampled(
    equations: StructuredEquations,
    covariances: Sequence[CovarianceModel | None],
    residual: ResidualModel,
    settings: SampledSettings,
    watch: SampledEstimateWatch | None = None,
    state: SampledState | None = None,
) -> Estimates:
    """Find the maximum by the sampled score; the last point and a warning where the iteration does not converge.

    equations: in double precision. state: of the run that is continued. The likelihood itself and the errors of
    solutions are not computed.
    """
    design = equations.design
    n_elements = count_elements([*filter(None, covariances), *residual.matrices])
    likelihood = SampledLikelihood(
        equations,
        settings.samples,
        n_elements,
        settings.seed,
        settings.tolerance,
        Threads(settings.threads),
        settings.device,
    )
    refuse_without_freedom(likelihood)
    if watch is not None:
        watch.begin(likelihood)
    elements = free_elements(design, covariances, residual, model_units(likelihood))
    if state is not None:
        likelihood.restore_starts(*state.starts)
    maximum = maximise_sampled(
        likelihood,
        elements,
        starting_variances(covariances, residual),
        settings.tolerance,
        settings.max_iterations,
        watch,
        None if state is None else state.iteration,
    )
    about, point, scale = maximum.quadratic, maximum.point, elements.scale
    return Estimates(
        variances=point.variances,
        elements=elements,
        vector=elements.vector(point.variances),
        covariance=about.covariance * scale[:, None] * scale,
        undetermined=about.undetermined,
        on_boundary=bool(about.closed),
        criteria=None,
        solutions=design.to_original_scale(point.solutions),
        sd=[],
        facts=_facts(maximum, likelihood, len(about.open.T)),
        notes=tuple(boundary_words(elements, c, design) for c in about.closed),
        warnings=() if maximum.converged or maximum.stopped else (_not_converged(maximum, settings),),
        undetermined_words=tuple(undetermined_words(about, elements, design)) if maximum.converged else (),
        monte_carlo=maximum.monte_carlo_covariance(elements) * scale[:, None] * scale,
    )


def _facts(maximum: SampledMaximum, likelihood: SampledLikelihood, n_estimated: int) -> dict:
    return {
        "estimated_elements": n_estimated,
        "degrees_of_freedom": likelihood.freedom,
        "converged": maximum.converged,
        "iterations": maximum.iterations,
        "distance_to_maximum": maximum.distance,
        "distances_to_maximum": list(maximum.distances),
        "stopped": maximum.stopped,
        "estimated_bytes": likelihood.bytes,
    } | likelihood.facts


def _not_converged(maximum: SampledMaximum, settings: SampledSettings) -> str:
    samples = maximum.point.n_samples
    iterations = f"{maximum.iterations} iteration{'' if maximum.iterations == 1 else 's'}"
    fewer = "" if samples == settings.samples else f" of {samples} samples in place of {settings.samples}"
    return (
        f"REML has not converged after {iterations}: the estimates are about {maximum.distance:.1e} standard errors "
        f"from the maximum{fewer}, expected {settings.tolerance:.1e} (sampler.tolerance); try more iterations "
        f"(sampler.max_iterations, now {settings.max_iterations}), other starts (variances.*.start), or a model with "
        "fewer variances"
    )
