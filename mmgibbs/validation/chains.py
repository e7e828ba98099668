"""Chains of the records that are left: their design, and what is followed over the draws.

The design of some of the records of a model, for chains that do without the others.

Levels, columns and numbers of animals stay those of all records, so that what is drawn without some of them predicts
the others. Genotyped animals keep their genotypes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mmgibbs.build.separation import TooLarge, find_separation, flat
from mmgibbs.data.fixed import INTERCEPT
from mmgibbs.data.prepared import Prepared
from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.errors import ConfigError, DataError, option_name
from mmgibbs.models.design import Design
from mmgibbs.models.families import Response
from mmgibbs.models.terms import Effect, Levels, Term
from mmgibbs.pedigree.tables import quoted
from mmgibbs.posterior.fitted import fitted
from mmgibbs.report.html_tables import listed
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.markers.followed import collect_effects
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.validation.estimability import drop_aliased


def subset_records(design: Design, rows: np.ndarray) -> Design:
    """The design of some of the records: the same levels, fewer rows."""

    def kept(term: Term) -> Term:
        effects = tuple(
            replace(e, level=e.level[rows], covariates=None if e.covariates is None else e.covariates[rows])
            for e in term.effects
        )
        return replace(term, incidence=Levels(effects, term.n_levels))

    return replace(
        design,
        y=design.y[rows],
        pattern=design.pattern[rows],
        weight=design.weight[rows],
        terms=tuple(kept(t) for t in design.terms),
        responses=tuple(r.keep(rows) for r in design.responses),
        markers=tuple(replace(m, animal=m.animal[rows]) for m in design.markers),
    )


def drop_records(design: Design, masked: np.ndarray, what: str) -> tuple[Design, frozenset[int]]:
    """The design without some records; flat equations that the others do not determine are set to 0. And the traits of
    which some may be left (`drop_aliased`).

    DataError where flat effects separate the others; `what` the records are.
    """
    training, unfinished = drop_aliased(subset_records(design, np.flatnonzero(~masked)))
    _check_separation(training, what)
    return training, unfinished


def refuse_training(prepared: Prepared, masked: np.ndarray, what: str) -> None:
    """DataError where a category, or a trait, has no record left, and for levels of a flat class effect whose records
    left are all on one side: their effects have no posterior. `what` the records are.
    """
    training = subset_records(prepared.design, np.flatnonzero(~masked))
    observed = training.patterns[training.pattern].any(axis=0)
    for trait in (name for name, has_records in zip(training.traits, observed, strict=True) if not has_records):
        raise DataError(
            f"validate: {what} has every record of trait '{trait}'; needed records of every trait in the others: fewer "
            f"{option_name('folds')}, or another {option_name('by')}"
        )
    for response in training.responses:
        trait = training.traits[response.trait]
        empty = [label for label, n in response.tally().items() if n == 0] if response.labels else []
        if empty:
            raise DataError(
                f"validate: {what} has every record of '{empty[0]}' of trait '{trait}'; "
                f"needed records of every category in the others: fewer {option_name('folds')}, or another "
                f"{option_name('by')}"
            )
        for i, term in enumerate(training.terms):
            levels = _find_one_sided(training, response, term)
            if levels.size:
                names = [quoted(str(prepared.levels[i].ids[int(level)])) for level in levels]
                raise DataError(
                    f"validate: {what}: without it, all records of '{trait}' in {listed(names)} of {term.name} are on "
                    f"one side, so that flat effects of these levels have no posterior; needed fewer "
                    f"{option_name('folds')}, or model.fixed.{term.name}.prior: {{variance: 10}}"
                )


def _find_one_sided(training: Design, response: Response, term: Term) -> np.ndarray:
    """Levels of a flat class effect whose records are all on one side."""
    seen, down, up = response.one_sided_masks()
    rows = [np.empty(0, np.int64)]
    for e, effect in enumerate(term.effects):
        of_effect = (term.component_effect == e) & (term.component_trait == response.trait)
        if effect.covariates is None and (flat(term) & of_effect).any():
            met = seen & (effect.level >= 0)
            level, n = effect.level[met], term.n_levels
            count, low, high = (np.bincount(level, weights, n) for weights in (None, down[met], up[met]))
            rows.append(np.flatnonzero((count > 0) & ((low == count) | (high == count))))
    return np.concatenate(rows)


def _check_separation(training: Design, what: str) -> None:
    """DataError where flat effects separate the records that are left."""
    for response in training.responses:
        try:
            separation = find_separation(training, response)
        except TooLarge:
            continue
        if separation is not None:
            terms = list(dict.fromkeys(training.terms[i].name for i, _, _ in separation.columns))
            several, remedied = len(terms) > 1, next((t for t in terms if t != INTERCEPT), terms[0])
            raise DataError(
                f"validate: {what}: without it, the flat {'effects' if several else 'effect'} {listed(terms)} "
                f"{'separate' if several else 'separates'} the records of '{training.traits[response.trait]}', so that "
                f"{'these effects have' if several else 'it has'} no posterior; needed fewer "
                f"{option_name('folds')}, or model.fixed.{remedied}.prior: {{variance: 10}}"
            )


# ------------------------------------------------------------ chains


@dataclass(frozen=True)
class Sampling:
    """Settings of a chain."""

    model: MixedModel  # of all records
    choice: EngineChoice
    partition: str
    schedule: Schedule
    seed: int


@dataclass(frozen=True)
class Draw:
    """A draw, none of it copied."""

    theta: list[np.ndarray]  # (q, k) per term, on the scale of the design
    parameters: dict[str, np.ndarray]  # covariance matrices, thresholds, ... by name
    genomic: list[np.ndarray]  # per term of SNP effects (animals of its store,) breeding values
    design: Design  # that it is a draw of

    def slope(self, term: int, component: int) -> float:
        """Return the slope of a fixed regression with one level, on the user's scale."""
        rescaling = next((r for r in self.design.rescale if r.term == term and component in r.components), None)
        if rescaling is None:
            return float(self.theta[term][0, component])
        at = rescaling.components.index(component)
        return float(rescaling.matrix[at] @ self.theta[term][0, list(rescaling.components)])


class Follower(Protocol):
    """Receiver of every kept draw."""

    def add(self, draw: Draw) -> None: ...


def make_sampling(model: MixedModel, choice: EngineChoice, kind: str, schedule: Schedule, seed: int) -> Sampling:
    """ConfigError where the model cannot be validated so."""
    if any(term.groups_fixed for term in model.design.terms):
        raise ConfigError(
            "validate: fixed unknown-parent groups (data.groups) cannot be combined with traits that are not normal, "
            "SNP effects or sampled variances; needed data.groups.effect: random"
        )
    bare = replace(
        model, saved={}, averaged={}, decisions=None, totals=(), marker_draws=0, observed=(), predicted=(),
        probabilities=(), means=(),
    )  # fmt: skip
    return Sampling(bare, choice, kind, schedule, seed)


def sample(sampling: Sampling, number: int, training: Design, followers: Sequence[Follower]) -> dict[str, np.ndarray]:
    """Chain `number` of the records of `training`; the kept draws of its parameters, name -> (draws, ...)."""
    model = replace(sampling.model, design=training)
    equations = structured_equations(training, partition(training, sampling.partition))
    schedule = sampling.schedule
    chain = Chain(model, sampling.choice.build(equations), schedule, (sampling.seed, number))
    of_markers = collect_effects(chain.steps)

    def add(chain: Chain) -> bool:
        if schedule.keeps(chain.number):
            draw = Draw(chain.engine.fetch(), chain.draws(), [step.breeding_values() for step in of_markers], training)
            for follower in followers:
                follower.add(draw)
        return False

    chain.advance(schedule.n_sweeps, add)
    return chain.result().draws


def linear_predictor(
    rows: Design,
    theta: list[np.ndarray],
    genomic: Sequence[np.ndarray],
    trait: int,
    chosen: Callable[[Term, Effect], bool] = lambda term, effect: True,
    markers: Sequence[int] | None = None,
) -> np.ndarray:
    """(n,) the sum of the chosen effects on one trait; markers: numbers of the terms of SNP effects (None: all).

    Records whose animal has no genotype have no SNP effects.
    """
    out = fitted(rows, theta, chosen)[:, trait]
    for j, (term, values) in enumerate(zip(rows.markers, genomic, strict=True)):
        if term.trait == trait and (markers is None or j in markers):
            out += np.where(term.animal >= 0, values[term.animal], 0.0)
    return out
