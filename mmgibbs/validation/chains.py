"""One chain of a model without some of its records, and what is asked of every draw that is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.errors import ConfigError
from mmgibbs.model.design import Design
from mmgibbs.model.terms import Effect, Term
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.markers.joint import effects_of
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.validation.evaluation import fitted


@dataclass(frozen=True)
class Sampling:
    """All that a chain needs."""

    model: MixedModel  # of all records
    choice: EngineChoice
    partition: str
    schedule: Schedule
    seed: int


@dataclass(frozen=True)
class Draw:
    """One draw, none of it copied."""

    theta: list[np.ndarray]  # (q, k) per term, on the scale of the design
    parameters: dict[str, np.ndarray]  # covariance matrices, thresholds, ... by name
    genomic: list[np.ndarray]  # per term of SNP effects (animals of its store,) breeding values
    design: Design  # that it is a draw of

    def slope(self, term: int, component: int) -> float:
        """Of a fixed regression with one level, on the user's scale."""
        own = next((r for r in self.design.rescale if r.term == term and component in r.components), None)
        if own is None:
            return float(self.theta[term][0, component])
        at = own.components.index(component)
        return float(own.matrix[at] @ self.theta[term][0, list(own.components)])


class Follower(Protocol):
    """What receives every kept draw."""

    def add(self, draw: Draw) -> None: ...


def sampling_of(model: MixedModel, choice: EngineChoice, kind: str, schedule: Schedule, seed: int) -> Sampling:
    """ConfigError where the model cannot be validated so."""
    if any(term.groups_fixed for term in model.design.terms):
        raise ConfigError(
            "validate: fixed unknown-parent groups (data.groups) cannot be combined with traits that are not normal, "
            "SNP effects or sampled variances; needed data.groups.effect: random"
        )
    bare = replace(
        model, saved={}, averaged={}, decisions=None, totals=(), marker_draws=0, observed=(), predicted=(),
        probabilities=(),
    )  # fmt: skip
    return Sampling(bare, choice, kind, schedule, seed)


def sample(sampling: Sampling, number: int, training: Design, followers: Sequence[Follower]) -> dict[str, np.ndarray]:
    """Chain `number` of the records of `training`; the kept draws of its parameters, name -> (draws, ...)."""
    model = replace(sampling.model, design=training)
    equations = structured_equations(training, partition(training, sampling.partition))
    schedule = sampling.schedule
    chain = Chain(model, sampling.choice.build(equations), schedule, (sampling.seed, number))
    of_markers = effects_of(chain.steps)

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
