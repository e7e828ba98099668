"""Estimates of the variances of a model by REML, their errors, and the solutions at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mmgibbs.engines.direct.standard_errors import original_scale_sd
from mmgibbs.errors import ModelError
from mmgibbs.likelihood.base import Likelihood, LikelihoodPoint
from mmgibbs.likelihood.choice import restricted_likelihood
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.design import Design
from mmgibbs.models.labels import parameter_labels
from mmgibbs.models.residual import ResidualModel
from mmgibbs.models.structures.unstructured import describe_variance_at_0
from mmgibbs.reml.boundary import Closed
from mmgibbs.reml.correlation_parameters import CorrelationEstimates, has_correlations
from mmgibbs.reml.correlations import maximise_with_correlations
from mmgibbs.reml.elements import Elements, MatrixBlock, free_elements, starting_variances
from mmgibbs.reml.finer_units import maximise_in_fitting_units
from mmgibbs.reml.information import Criteria
from mmgibbs.reml.maximise import Maximum
from mmgibbs.reml.quadratic import Quadratic
from mmgibbs.reml.structured import (
    StructuredMaximum,
    maximise_structured,
)
from mmgibbs.reml.structured_elements import StructuredElements, structured_elements
from mmgibbs.reml.units import model_units


class EstimateWatch(Protocol):
    """A watch of the iteration."""

    correlations: np.ndarray | None  # parameters of relationships as they are now, where some are estimated

    def begin(self, description: str, operations: float, step: str) -> None:
        """Begin the watch before the first iteration; the arguments are those of a Likelihood."""

    def __call__(self, iteration: int, point: LikelihoodPoint, distance: float) -> bool:
        """Return True to stop."""


@dataclass(frozen=True)
class Estimates:
    """Results of REML."""

    variances: Variances
    elements: Elements | StructuredElements
    vector: np.ndarray  # (p,) of the free elements, or of the parameters of structures
    covariance: np.ndarray  # (p, p) of the free elements, inverse average information; 0 where the boundary holds them
    undetermined: np.ndarray  # (p, u) directions of which the data say nothing
    on_boundary: bool  # a matrix is
    criteria: Criteria | None  # None: the likelihood is known by its sampled score alone
    solutions: list[np.ndarray]  # (q, k) per term, on the user's scale
    sd: list[np.ndarray]  # (q, k) sqrt of PEV and of sampling variances
    facts: dict  # for run.json
    notes: tuple[str, ...]
    warnings: tuple[str, ...]  # of estimates that are not as good as asked
    undetermined_words: tuple[str, ...]  # of `undetermined`
    at_bound: np.ndarray | None = None  # (p,) bool: parameters of structures at their bounds
    correlations: CorrelationEstimates | None = None  # parameters of relationships, where there are some
    monte_carlo: np.ndarray | None = None  # (p, p) covariance of the estimates by Monte Carlo, given the records


def estimate(
    design: Design,
    covariances: Sequence[CovarianceModel | None],
    residual: ResidualModel,
    tolerance: float,
    max_iterations: int,
    watch: EstimateWatch | None = None,
    start: Variances | None = None,
    start_correlations: np.ndarray | None = None,
) -> Estimates:
    """Maximise the restricted likelihood; the best point and a warning where the iteration does not converge.

    watch: told of the size of the equations and of each iteration, which it may end; the estimates are then those of
    the best point (`facts['stopped']`). start: variances to begin from, in place of those of the model; so are
    start_correlations for the parameters of relationships.
    """
    likelihood = restricted_likelihood(design, covariances, residual)
    refuse_without_freedom(likelihood)
    if watch is not None:
        described = f"{likelihood.description}, {likelihood.bytes / 1e6:,.1f} MB"
        watch.begin(described, likelihood.operations, likelihood.step)
    elements = free_elements(design, covariances, residual, model_units(likelihood))
    start = starting_variances(covariances, residual) if start is None else start
    if any(c is not None and c.structure is not None and not c.fixed for c in covariances):
        parameters = structured_elements(elements, covariances, start)
        reached = maximise_structured(
            likelihood, parameters, start, tolerance, max_iterations, watch, start_correlations
        )
        return _structured_estimates(reached, likelihood, design, tolerance, max_iterations)
    correlations: CorrelationEstimates | None = None
    if has_correlations(likelihood):
        maximum, elements, correlations = maximise_with_correlations(
            likelihood, elements, start, tolerance, max_iterations, watch, start_correlations
        )
    else:
        maximum, elements = maximise_in_fitting_units(likelihood, elements, start, tolerance, max_iterations, watch)
    missed: list[str] = []
    if not maximum.converged and not maximum.stopped:
        missed = [_not_converged(maximum, elements, design, tolerance, max_iterations)]
    point, about = maximum.point, maximum.quadratic
    scale = elements.scale
    sd = original_scale_sd(design, point.inverse_diagonal, point.solve_equations)
    # what the records do not determine adds nothing to the likelihood
    parameters, covariance = about.open.shape[1] - about.undetermined.shape[1], about.covariance
    if correlations is not None:
        parameters, covariance = parameters + correlations.n_estimated, covariance + correlations.of_variances
    criteria = Criteria(point.log_likelihood, parameters, likelihood.freedom)
    return Estimates(
        point.variances,
        elements,
        elements.vector(point.variances),
        covariance * scale[:, None] * scale,
        about.undetermined,
        bool(about.closed),
        criteria,
        design.to_original_scale(point.solutions),
        sd,
        _facts(maximum, criteria, likelihood),
        tuple(boundary_words(elements, c, design) for c in about.closed),
        (
            *missed,
            *(_rounded_words(maximum, tolerance) if maximum.converged else ()),
            *(() if correlations is None else correlations.words),
        ),
        tuple(undetermined_words(about, elements, design)) if maximum.converged else (),
        correlations=correlations,
    )


def refuse_without_freedom(likelihood: Likelihood) -> None:
    """ModelError where fixed effects take up all observations."""
    if likelihood.freedom < 1:
        raise ModelError(
            f"sampler.method: reml needs more observations than fixed effects; got {likelihood.n_observations:,} "
            f"observations and {likelihood.n_fixed:,} fixed effects that can be estimated"
        )


def _structured_estimates(
    maximum: StructuredMaximum, likelihood: Likelihood, design: Design, tolerance: float, max_iterations: int
) -> Estimates:
    point, parameters = maximum.point, maximum.parameters
    criteria = Criteria(point.log_likelihood, maximum.n_estimated, likelihood.freedom)
    missed = []
    if not maximum.converged and not maximum.stopped:
        at_limit = maximum.iterations >= max_iterations
        missed = [
            f"REML has not converged after {_count_iterations(maximum)}, at a log likelihood of "
            f"{point.log_likelihood:.4f}: the estimates are about {maximum.distance:.1e} standard errors from the best "
            f"ones, expected {tolerance:.1e} (sampler.tolerance); "
            + ("try more iterations (sampler.max_iterations), " if at_limit else "try ")
            + "other starts (variances.*.start), or fewer factors"
        ]
    return Estimates(
        point.variances,
        parameters,
        parameters.phi,
        maximum.covariance,
        maximum.undetermined,
        bool(maximum.at_bound.any()),
        criteria,
        design.to_original_scale(point.solutions),
        original_scale_sd(design, point.inverse_diagonal, point.solve_equations),
        _facts(maximum, criteria, likelihood),
        tuple(_bound_words(maximum, design)),
        (
            *missed,
            *(_factor_words(maximum) if maximum.converged else ()),
            *(() if maximum.correlations is None else maximum.correlations.words),
        ),
        _undetermined_structure_words(maximum, design),
        maximum.at_bound,
        maximum.correlations,
    )


def _bound_words(maximum: StructuredMaximum, design: Design) -> list[str]:
    """Describe the variances that are at 0, each once."""
    parameters, words = maximum.parameters, []
    for block, structure, places in parameters.list_blocks():
        labels = tuple(component_names(block, design))
        words += structure.describe_bounds(block.name, labels, parameters.phi[places], maximum.at_bound[places])
    return list(dict.fromkeys(words))


def _factor_words(maximum: StructuredMaximum) -> list[str]:
    """Factors that are not estimated: they vanish, or have more parameters than the matrix determines."""
    parameters, counted = maximum.parameters, maximum.n_estimated
    vanished: dict[str, int] = {}
    for block, _, places in parameters.list_factors():
        vanished[block.name] = vanished.get(block.name, 0) + bool(maximum.at_bound[places].all())
    words = []
    for block, structure, _ in parameters.list_blocks():
        f, k = len(structure.factor_places), structure.k
        if not f:
            continue
        n, n_full, have = int(structure.free.sum()), k * (k + 1) // 2, "has" if f == 1 else "have"
        if vanished[block.name]:
            words.append(
                f"variances.{block.name}.structure: {_count_factors(vanished[block.name])} of {f} at 0: the likelihood "
                f"is highest without; of all parameters {counted} are estimated, and AIC and BIC count these; needed "
                f"factors: {f - vanished[block.name] or 'fewer'}"
            )
        elif n > n_full:
            words.append(
                f"variances.{block.name}.structure: {_count_factors(f)} of {k} components {have} {n} "
                f"parameters, and a full matrix {n_full}, so the likelihood is at most that of a full one; of all "
                f"parameters {counted} are estimated, and AIC and BIC count these; needed fewer factors, reduced_rank "
                "or full"
            )
    return words


def _count_factors(n: int) -> str:
    return f"{n} factor{'' if n == 1 else 's'}"


def _undetermined_structure_words(maximum: StructuredMaximum, design: Design) -> tuple[str, ...]:
    """Terms with parameters of which the data say nothing."""
    if not maximum.converged or not maximum.undetermined.size:
        return ()
    involved = (maximum.undetermined**2).max(axis=1) > 1e-3
    names = dict.fromkeys(b.name for b, _, places in maximum.parameters.list_blocks() if involved[places].any())
    return (
        f"the data do not determine each parameter of the covariance matrices of {', '.join(names)}, only combinations "
        "of them: they have no standard errors; expected fewer factors, or a model without one of these effects",
    )


def _count_iterations(maximum: Maximum | StructuredMaximum) -> str:
    return f"{maximum.iterations} iteration{'' if maximum.iterations == 1 else 's'}"


def _facts(maximum: Maximum | StructuredMaximum, criteria: Criteria, likelihood: Likelihood) -> dict:
    undetermined = maximum.undetermined if isinstance(maximum, StructuredMaximum) else maximum.quadratic.undetermined
    return {
        "log_likelihood": criteria.log_likelihood,
        "log_likelihood_without_2_pi": criteria.log_likelihood + criteria.freedom * float(np.log(2 * np.pi)) / 2,
        "log_likelihood_constant": "log density of the error contrasts up to the scale of the fixed effects: "
        f"-{criteria.freedom}/2 log(2 pi) is included in log_likelihood, log|X'X| is not",
        "estimated_elements": criteria.parameters,
        "undetermined_elements": undetermined.shape[1],
        "degrees_of_freedom": criteria.freedom,
        "aic": criteria.aic,
        "bic": criteria.bic,
        "converged": maximum.converged,
        "iterations": maximum.iterations,
        "em_steps": maximum.em_steps if isinstance(maximum, Maximum) else 0,
        "distance_to_maximum": maximum.distance,
        "log_likelihoods": list(maximum.log_likelihoods),
        "stopped": maximum.stopped,
    } | likelihood.facts


def component_names(block: MatrixBlock, design: Design) -> list[str]:
    """Name the components (k,) of a block as parameters name them."""
    labels = list(design.traits) if block.term is None else parameter_labels(design.terms[block.term], design.traits)
    return [labels[c] for c in block.components]


def boundary_words(elements: Elements, closed: Closed, design: Design) -> str:
    """Describe the estimate that is on the boundary, and what that means for it."""
    block = elements.blocks[closed.block]
    names, component = component_names(block, design), closed.component()
    if component is not None:
        return describe_variance_at_0(block.name, names[component])
    involved = [n for n, v in zip(names, closed.direction, strict=True) if v**2 > 1e-3]
    return (
        f"{block.name}: the matrix is on the boundary: a combination of {', '.join(involved)} has no variance "
        "(correlations at 1 or -1, or correlations that cannot occur together); the standard errors are those "
        "along the boundary"
    )


def undetermined_words(about: Quadratic, elements: Elements, design: Design) -> list[str]:
    """Describe the variances that the data do not determine.

    They determine some in combination alone, as those of two effects with the same levels; of others they say nothing,
    as of an effect whose levels fixed effects hold too.
    """
    involved = (about.undetermined**2).max(axis=1, initial=0.0) > 1e-3
    if not involved.any():
        return []
    names: list[str] = []
    effects: dict[str, None] = {}  # each once, in order
    for b, i, j in (e for e, is_involved in zip(elements.elements, involved, strict=True) if is_involved):
        if elements.blocks[b].term is not None:
            effects[elements.blocks[b].name] = None
        block, of = elements.blocks[b], component_names(elements.blocks[b], design)
        names.append(f"{block.name} of {of[i]}" if i == j else f"{block.name} of {of[j]} with {of[i]}")
    needed = f"needed a model without {' or '.join(effects) or 'classes of residuals'}, or records that tell them apart"
    if len(names) == 1:
        kind = "covariance" if " with " in names[0] else "variance"
        return [
            f"the data say nothing of the {kind} {names[0]}, as where its levels cannot be told from fixed effects: "
            "the estimate, and the shares that depend on it, come from its start alone and have no standard errors; "
            f"{needed}"
        ]
    return [
        f"the data do not determine each of the variances {', '.join(names)}, only combinations of them (their sum, "
        f"where effects have the same levels): the estimates depend on the starts and have no standard errors; {needed}"
    ]


def _rounded_words(maximum: Maximum, tolerance: float) -> list[str]:
    """Describe where rounding ended the iteration."""
    if maximum.distance <= tolerance:
        return []
    return [
        f"the estimates are about {maximum.distance:.0e} standard errors from the best ones (sampler.tolerance: found "
        f"{tolerance:.0e}): rounding hides the last steps, as where one variance is millions of times another"
    ]


def _not_converged(maximum: Maximum, elements: Elements, design: Design, tolerance: float, max_iterations: int) -> str:
    reached = f"after {_count_iterations(maximum)}, at a log likelihood of {maximum.point.log_likelihood:.4f}"
    stopped = maximum.iterations + 1 >= max_iterations  # finer units begin with a step of their own
    why = (
        f"no step increases the likelihood further (sampler.max_iterations is {max_iterations})"
        if not stopped
        else f"it stopped at sampler.max_iterations: {max_iterations}"
    )
    if maximum.distance <= tolerance:  # on the boundary in units that are too large for it
        return (
            f"REML has not converged {reached}: one variance is thousands of times another, which takes a few more "
            f"iterations, and it stopped at sampler.max_iterations: {max_iterations}; needed more iterations. The "
            "results are those of this point"
        )
    near = "".join(f"\n{boundary_words(elements, c, design)}" for c in maximum.quadratic.closed)
    missed = (
        f"REML has not converged {reached}: the estimates are about {maximum.distance:.1e} standard errors from the "
        f"best ones, needed {tolerance:.1e} (sampler.tolerance), and {why}; "
    )
    needed = "more iterations, " if stopped else ""
    return (
        f"{missed}needed {needed}other starts (variances.*.start), or a model with fewer variances. The results are "
        f"those of this point{near}"
    )
