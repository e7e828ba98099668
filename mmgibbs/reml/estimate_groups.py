"""Estimates of a design whose traits fall into groups that have nothing in common: of each group, then together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag

from mmgibbs.likelihood.base import LikelihoodPoint, Source
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.trait_groups import TraitGroup, group_traits, take_traits
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.design import Design
from mmgibbs.models.residual import ResidualModel
from mmgibbs.reml.correlation_parameters import CorrelationEstimates
from mmgibbs.reml.elements import Element, Elements, MatrixBlock, starting_variances
from mmgibbs.reml.estimate import Estimates, EstimateWatch, estimate
from mmgibbs.reml.information import Criteria

MAX_NAMES = 3  # of the traits of a group


def estimate_by_groups(
    design: Design,
    covariances: Sequence[CovarianceModel | None],
    residual: ResidualModel,
    tolerance: float,
    max_iterations: int,
    watch: EstimateWatch | None = None,
    start: Variances | None = None,
    start_correlations: np.ndarray | None = None,
) -> Estimates:
    """Estimate as `reml.estimate.estimate` does, each group of traits that has nothing in common with others by itself.

    max_iterations: of each group.
    """
    settings = tolerance, max_iterations
    groups = group_traits(design, covariances, residual)
    if len(groups) == 1:
        return estimate(design, covariances, residual, *settings, watch, start, start_correlations)
    variances = starting_variances(covariances, residual) if start is None else start.copy_matrices()
    sources = _list_sources(design)
    correlations = _start_correlations(design) if start_correlations is None else start_correlations.copy()
    estimated: list[tuple[TraitGroup, Estimates]] = []
    for number, traits in enumerate(groups):
        group = take_traits(design, covariances, residual, traits)
        at = [p for p, source in enumerate(sources) if _is_of_group(source, group)]
        follow = None
        if watch is not None:
            name = f"{_shown_traits(group.design.traits)} ({number + 1} of {len(groups)})"
            n_iterations = sum(estimates.facts["iterations"] for _, estimates in estimated)
            follow = GroupWatch(watch, group, variances, correlations, at, name, n_iterations)
        begin = group.take(variances), correlations[at] if at else None
        estimates = estimate(group.design, group.covariances, group.residual, *settings, follow, *begin)
        group.put(estimates.variances, variances)
        if estimates.correlations is not None:
            correlations[at] = estimates.correlations.values
        estimated.append((group, estimates))
    return _merge(estimated, variances, design)


class GroupWatch:
    """Tells who follows all traits what happens in one group of them.

    variances, correlations: as they are now, of all traits; at: places of the correlations of the group among them;
    n_iterations: those of the groups before.
    """

    def __init__(
        self,
        watch: EstimateWatch,
        group: TraitGroup,
        variances: Variances,
        correlations: np.ndarray,
        at: list[int],
        name: str,
        n_iterations: int,
    ):
        self.watch, self.group, self.name, self.at = watch, group, name, at
        self.variances, self.every_correlation, self.n_iterations = variances, correlations, n_iterations
        self._correlations: np.ndarray | None = None

    @property
    def correlations(self) -> np.ndarray | None:
        return self._correlations

    @correlations.setter
    def correlations(self, rho: np.ndarray | None) -> None:
        self._correlations = rho
        if rho is not None:
            correlations = self.every_correlation.copy()
            correlations[self.at] = rho
            self.watch.correlations = correlations

    def begin(self, description: str, operations: float, step: str) -> None:
        self.watch.begin(f"{self.name}: {description}", operations, step)

    def __call__(self, iteration: int, point: LikelihoodPoint, distance: float) -> bool:
        variances = self.variances.copy_matrices()
        self.group.put(point.variances, variances)
        return self.watch(self.n_iterations + iteration, _Reached(variances, point.log_likelihood), distance)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Reached:
    """A point of the iteration as a watch sees it: all variances, the likelihood of the group."""

    variances: Variances
    log_likelihood: float


def _shown_traits(traits: Sequence[str]) -> str:
    return ", ".join(traits[:MAX_NAMES]) + (", ..." if len(traits) > MAX_NAMES else "")


def _list_sources(design: Design) -> list[Source]:
    """List the source of each estimated parameter of a relationship, (P,), in the order of `CorrelationEstimates`."""
    if design.correlated:
        groups = enumerate(design.correlated)
        free = [(Source(None, g), group.relationship) for g, group in groups if group.relationship.has_free_parameters]
    else:
        terms = enumerate(design.terms)
        free = [(Source(i), term.relationship) for i, term in terms if term.relationship.has_free_parameters]
    return [source for source, relationship in free for _ in relationship.parameters]


def _start_correlations(design: Design) -> np.ndarray:
    every = [group.relationship for group in design.correlated] or [term.relationship for term in design.terms]
    return np.concatenate([np.zeros(0), *(r.parameter_values for r in every if r.has_free_parameters)])


def _is_of_group(source: Source, group: TraitGroup) -> bool:
    return source.group in group.correlated if source.term is None else source.term in group.terms


def _merge(estimated: Sequence[tuple[TraitGroup, Estimates]], variances: Variances, design: Design) -> Estimates:
    every = [estimates for _, estimates in estimated]
    solutions, sd = ([np.zeros((t.n_levels, t.n_components)) for t in design.terms] for _ in range(2))
    for group, estimates in estimated:
        group.put_levels(estimates.solutions, solutions)
        group.put_levels(estimates.sd, sd)
    elements = _merge_elements(estimated)
    criteria = Criteria(
        sum(_criteria(estimates).log_likelihood for estimates in every),
        sum(_criteria(estimates).parameters for estimates in every),
        sum(_criteria(estimates).freedom for estimates in every),
    )
    named = [(_shown_traits(group.design.traits), estimates) for group, estimates in estimated]
    return Estimates(
        variances,
        elements,
        np.concatenate([estimates.vector for estimates in every]),
        block_diag(*(estimates.covariance for estimates in every)),
        block_diag(*(estimates.undetermined for estimates in every)),
        any(estimates.on_boundary for estimates in every),
        criteria,
        solutions,
        sd,
        _merge_facts(every, criteria),
        tuple(text for estimates in every for text in estimates.notes),
        tuple(f"{name}: {text}" for name, estimates in named for text in estimates.warnings),
        tuple(text for estimates in every for text in estimates.undetermined_words),
        correlations=_merge_correlations(estimated),
    )


def _criteria(estimates: Estimates) -> Criteria:
    assert estimates.criteria is not None, "exact REML has a likelihood"
    return estimates.criteria


def _merge_elements(estimated: Sequence[tuple[TraitGroup, Estimates]]) -> Elements:
    blocks: list[MatrixBlock] = []
    elements: list[Element] = []
    for group, estimates in estimated:
        assert isinstance(estimates.elements, Elements), "matrices with structures are one group"
        first = len(blocks)
        for block in estimates.elements.blocks:
            at = np.array(group.traits) if block.term is None else group.components[block.term]
            term = None if block.term is None else group.terms[block.term]
            blocks.append(replace(block, term=term, components=tuple(int(at[c]) for c in block.components)))
        elements += [element._replace(block=first + element.block) for element in estimates.elements.elements]
    return Elements(tuple(blocks), tuple(elements))


def _merge_correlations(estimated: Sequence[tuple[TraitGroup, Estimates]]) -> CorrelationEstimates | None:
    pairs = [(group, estimates.correlations) for group, estimates in estimated if estimates.correlations is not None]
    if not pairs:
        return None
    sources = [
        Source(None, group.correlated[source.group])
        if source.group is not None
        else Source(group.terms[source.term or 0])
        for group, correlations in pairs
        for source in correlations.sources
    ]
    return CorrelationEstimates(
        tuple(sources),
        tuple(name for _, correlations in pairs for name in correlations.names),
        np.concatenate([correlations.values for _, correlations in pairs]),
        block_diag(*(correlations.covariance for _, correlations in pairs)),
        block_diag(*(correlations.of_variances for _, correlations in pairs)),
        tuple(text for _, correlations in pairs for text in correlations.words),
        np.concatenate([correlations.decides_variance for _, correlations in pairs]),
    )


def _merge_facts(every: Sequence[Estimates], criteria: Criteria) -> dict:
    """Merge the facts of the groups for run.json, in the order of those of one group."""
    facts = [estimates.facts for estimates in every]
    kinds = list(dict.fromkeys(fact["likelihood"] for fact in facts))
    out = facts[0] | {
        "log_likelihood": criteria.log_likelihood,
        "log_likelihood_without_2_pi": criteria.log_likelihood + criteria.freedom * float(np.log(2 * np.pi)) / 2,
        "log_likelihood_constant": facts[0]["log_likelihood_constant"].replace(
            f"-{every[0].facts['degrees_of_freedom']}/2", f"-{criteria.freedom}/2"
        ),
        "estimated_elements": criteria.parameters,
        "degrees_of_freedom": criteria.freedom,
        "aic": criteria.aic,
        "bic": criteria.bic,
        "converged": all(fact["converged"] for fact in facts),
        "stopped": any(fact["stopped"] for fact in facts),
        "distance_to_maximum": float(np.sqrt(sum(fact["distance_to_maximum"] ** 2 for fact in facts))),
        "log_likelihoods": _sum_histories([fact["log_likelihoods"] for fact in facts]),
        "likelihood": kinds[0] if len(kinds) == 1 else ", ".join(kinds),
        "groups_of_traits": len(every),
    }
    for key in ("iterations", "em_steps", "factor_nonzeros", "factor_operations", "eigenvalues"):
        values = [fact[key] for fact in facts if key in fact]
        out |= {key: sum(values)} if values else {}
    return out


def _sum_histories(histories: Sequence[Sequence[float]]) -> list[float]:
    """Log likelihoods after each iteration: finished groups are at their end, those to come at their start."""
    out: list[float] = []
    rest = sum(history[0] for history in histories)
    for history in histories:
        out += [rest - history[0] + value for value in history[1 if out else 0 :]]
        rest += history[-1] - history[0]
    return out
