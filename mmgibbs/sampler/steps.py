"""What a step of the sampler is, and the list of them that makes one sweep of a mixed model.

A step draws its part of the parameters given everything else as it is now, so that their full conditional stays. A new
kind of step is one file, and one line in `gibbs_steps`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, cast

import numpy as np

from mmgibbs.engines.base import (
    Engine,
    HostState,
    Integrated,
    IntegratedLiabilities,
    LiabilityEngine,
    MarkerEngine,
)
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.auxiliaries import Auxiliaries
from mmgibbs.sampler.correlations import CorrelationsAndCovariance, CorrelationsAndStructure
from mmgibbs.sampler.covariances import CovarianceMatrices, ResidualCovariance, TermCovariance, starting_matrices
from mmgibbs.sampler.factors import FactorInterweaving, can_draw_scores
from mmgibbs.sampler.interweave import Interweaving
from mmgibbs.sampler.liabilities import LiabilityStep
from mmgibbs.sampler.locations import Locations
from mmgibbs.sampler.marginal.liabilities import ExactLocations, LiabilityVariances
from mmgibbs.sampler.marginal.locations import KeptLocations
from mmgibbs.sampler.marginal.step import MarginalVariances
from mmgibbs.sampler.markers.effects import MarkerEffects
from mmgibbs.sampler.markers.followed import collect_effects
from mmgibbs.sampler.markers.joint import JointMarkerEffects
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.observed_scale import ObservedValues
from mmgibbs.sampler.predictive import PredictedRecords
from mmgibbs.sampler.reduced_rank import ReducedRankCovariance
from mmgibbs.sampler.resident import join_steps
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.structured_covariance import StructuredCovariance, StructuredInterweaving
from mmgibbs.sampler.trait_moments import TraitMomentsStep


class Step(Protocol):
    """A step of every sweep.

    `parameters`: what `draws()` returns, name -> the names of its dimensions. `state()`: what the next sweep depends
    on and no other step holds, named arrays that are not copied; `restore(state)` takes its own of the names of all
    steps. Called with the number of the sweep, a step says what there is to say of it, name -> number.
    """

    @property
    def parameters(self) -> Mapping[str, Parameter]: ...

    def __call__(self, number: int) -> Mapping[str, float] | None: ...

    def draws(self) -> dict[str, np.ndarray]: ...

    def state(self) -> dict[str, np.ndarray]: ...

    def restore(self, state: dict[str, np.ndarray]) -> None: ...


def term_covariance(
    model: MixedModel, term: int, engine: Engine, matrices: CovarianceMatrices, key: tuple[int, int]
) -> TermCovariance | StructuredCovariance:
    """The step that draws the covariance matrix of a random term."""
    covariance = model.covariance(term)
    is_structured = covariance.structure is not None and not covariance.fixed
    if model.design.terms[term].relationship.has_free_parameters:
        assert isinstance(engine, HostState), "refused where the engine was chosen"
        kind = CorrelationsAndStructure if is_structured else CorrelationsAndCovariance
        return kind(model, term, engine, matrices, key)
    if is_structured and term in model.design.n_scores:
        return ReducedRankCovariance(model, term, engine, matrices, key)
    return (StructuredCovariance if is_structured else TermCovariance)(model, term, engine, matrices, key)


def interweaving(
    model: MixedModel,
    term: int,
    engine: Engine,
    matrices: CovarianceMatrices,
    key: tuple[int, int],
    covariance: TermCovariance | StructuredCovariance,
) -> Step:
    """The step that redraws the covariance matrix of a random term given its standardised effects."""
    if isinstance(covariance, StructuredCovariance) and can_draw_scores(model, term):
        return FactorInterweaving(covariance, model)
    if isinstance(covariance, StructuredCovariance):
        return StructuredInterweaving(covariance)
    return Interweaving(model, term, engine, matrices, key)


OfKeptSweeps = ObservedValues | PredictedRecords | TraitMomentsStep  # on which no other step depends


def gibbs_steps(
    model: MixedModel,
    engine: Engine,
    schedule: Schedule,
    key: tuple[int, int],
    matrices: CovarianceMatrices | None = None,
) -> list[Step]:
    """Liabilities of traits that are not normal; locations given variances; SNP effects; each G given its term; G of
    the terms to interweave given their standardised effects; R given the residuals; auxiliary variables of the priors;
    and what they say of the records of traits that are not normal.

    Of an engine that integrates locations out: all variances, then locations given them.

    matrices: None for the starts of the chain; key = (seed, chain).
    """
    matrices = starting_matrices(model, key[1]) if matrices is None else matrices
    of_liabilities: IntegratedLiabilities | None = getattr(engine, "liability_likelihood", None)
    if of_liabilities is not None:
        return _steps_of_liabilities(model, engine, of_liabilities, schedule, key, matrices)
    integrated: Integrated | None = getattr(engine, "integrated", None)
    if integrated is not None:
        variances = MarginalVariances(model, integrated, matrices, schedule.burn_in, key)
        moments = (TraitMomentsStep(of, engine) for of in model.moments)
        return [variances, KeptLocations(engine, schedule, key), *moments]
    liabilities: list[LiabilityStep] = []
    observed: list[Step] = []
    holder = cast(LiabilityEngine, engine)  # where there are responses: other engines refuse such a design
    if model.design.responses:
        responses = range(len(model.design.responses))
        liabilities = [LiabilityStep(model, r, holder, matrices, key, schedule.burn_in) for r in responses]
        of_trait = {step.trait: step for step in liabilities}
    markers: list[Step] = []
    if model.design.markers:
        for_effects = cast(MarkerEngine, engine)  # other engines refuse such a design
        for j, own in enumerate(model.design.markers):
            if own.first:
                kind = MarkerEffects if own.joint is None else JointMarkerEffects
                markers.append(kind(model, j, for_effects, matrices, key, schedule))
    if model.design.responses:
        known = collect_effects(markers)
        observed = [ObservedValues(o, of_trait[o.population.trait], holder, matrices, known) for o in model.observed]
        observed += [PredictedRecords(p, of_trait[p.trait], holder, matrices, key) for p in model.predicted]
    covariances = {i: term_covariance(model, i, engine, matrices, key) for i in model.random_terms}
    of_every_sweep = [
        *liabilities,
        Locations(engine, matrices, key, schedule.refresh_every),
        *markers,
        *covariances.values(),
        *(interweaving(model, i, engine, matrices, key, covariances[i]) for i in schedule.interweave),
        ResidualCovariance(model, engine, matrices, key),
        *(Auxiliaries(which, matrices, key) for which in model.scale_priors),
    ]
    return [
        *join_steps(model, engine, of_every_sweep, matrices, schedule, key),
        *observed,
        *(TraitMomentsStep(of, engine, collect_effects(markers)) for of in model.moments),
    ]


def _steps_of_liabilities(
    model: MixedModel,
    engine: Engine,
    likelihood: IntegratedLiabilities,
    schedule: Schedule,
    key: tuple[int, int],
    matrices: CovarianceMatrices,
) -> list[Step]:
    """List the steps: all variances and the scale of the liabilities, locations given them, liabilities given all."""
    assert isinstance(engine, HostState), "other engines integrate no locations out of liabilities"
    liabilities = LiabilityStep(model, 0, engine, matrices, key, schedule.burn_in, collapsed=True)
    return [
        LiabilityVariances(model, engine, likelihood, liabilities, matrices, schedule.burn_in, key),
        ExactLocations(engine, matrices, key, schedule.refresh_every),
        liabilities,
        *(ObservedValues(o, liabilities, engine, matrices) for o in model.observed),
        *(PredictedRecords(p, liabilities, engine, matrices, key) for p in model.predicted),
        *(TraitMomentsStep(of, engine) for of in model.moments),
    ]
