"""The MCMC loop: an ordered list of steps, then record. It names no model and knows no engine by name."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mmgibbs.chains.accumulators import Moments, batch_length, batches_per_chain
from mmgibbs.chains.result import ChainResult
from mmgibbs.design import Design
from mmgibbs.engines.base import Engine, LocationMoments
from mmgibbs.interweave import interweave_step
from mmgibbs.variances import CovarianceModel, draw_covariance

# Chains of sampled variances start apart, so that R-hat can see a chain that has not forgotten its start.
START_SCALES = (1.0, 0.5, 2.0, 0.75, 1.5)


@dataclass(frozen=True)
class Schedule:
    """How a chain runs: `burn_in` sweeps that are thrown away, then `samples` sweeps of which every `thin`-th is kept.

    `interweave`: the terms whose covariance matrix is redrawn given the standardised effects too (see interweave.terms_to_interweave).
    """

    burn_in: int
    samples: int
    thin: int = 1
    refresh_every: int = 1000
    chains: int = 1
    interweave: tuple[int, ...] = ()

    @property
    def n_sweeps(self) -> int:
        return self.burn_in + self.samples

    @property
    def n_kept(self) -> int:
        return self.samples // self.thin

    def keeps(self, number: int) -> bool:
        return number > self.burn_in and (number - self.burn_in) % self.thin == 0


@dataclass(frozen=True)
class MixedModel:
    """Design and covariance matrices: what is sampled."""

    design: Design
    covariances: tuple[CovarianceModel | None, ...]  # one per term; None for fixed terms
    residual: CovarianceModel
    saved: dict[str, np.ndarray] = field(default_factory=dict)  # term name -> level codes whose draws are kept

    @property
    def random_terms(self) -> list[int]:
        return [i for i, c in enumerate(self.covariances) if c is not None]


@dataclass
class Variances:
    """Current covariance matrices of one chain."""

    G: list[np.ndarray | None]
    R: np.ndarray


Step = Callable[[int], dict[str, float] | None]  # sweep number -> what there is to say of the step, for sample_stats


def gibbs_steps(
    model: MixedModel, engine: Engine, variances: Variances, key: tuple[int, int], refresh_every: int, interweave: tuple[int, ...] = ()
) -> list[Step]:
    """Locations given variances; each G given its term; G of the terms to interweave given their standardised effects; R given the residuals."""
    terms = model.design.terms

    def locations(number: int) -> dict[str, float] | None:
        facts = engine.sweep(number, key)
        if number % refresh_every == 0:
            engine.refresh()
        return facts

    def term_covariances(number: int) -> None:
        for i in moving:
            products = engine.quadratic_form(i)
            variances.G[i] = draw_covariance(model.covariances[i], products, terms[i].n_prior_levels, number, i, key)

    def residual_covariance(number: int) -> None:
        if not model.residual.fixed:
            products, n = engine.residual_products(number, key, model.residual.blocks)
            variances.R = draw_covariance(model.residual, products, n, number, len(terms), key)
        engine.set_variances(variances.G, variances.R)

    moving = [i for i in model.random_terms if not model.covariances[i].fixed]
    if not moving and model.residual.fixed:
        return [locations]
    standardised = [interweave_step(model, engine, variances, key, interweave)] if interweave else []
    return [locations, term_covariances, *standardised, residual_covariance]


def starting_variances(model: MixedModel, chain: int) -> Variances:
    scale = START_SCALES[chain % len(START_SCALES)]
    at = lambda c: None if c is None else np.array(c.start, float) * (1.0 if c.fixed else scale)  # noqa: E731
    return Variances([at(c) for c in model.covariances], at(model.residual))


def sample_chain(
    model: MixedModel,
    engine: Engine,
    schedule: Schedule,
    key: tuple[int, int],
    progress: Callable[[int, Variances], None] | None = None,
) -> ChainResult:
    """Run one chain; key = (seed, chain). `progress(sweep, variances)` is called after every sweep.

    Draws are keyed by (seed, chain; sweep, level, draw), so the chain does not depend on who runs it, or when.
    """
    started = time.perf_counter()
    variances = starting_variances(model, key[1])
    engine.set_variances(variances.G, variances.R)
    steps = gibbs_steps(model, engine, variances, key, schedule.refresh_every, schedule.interweave)
    record = _Recorder(model, schedule, engine)
    for number in range(1, schedule.n_sweeps + 1):
        facts = {"sweep": number}
        for step in steps:
            facts |= step(number) or {}
        if schedule.keeps(number):
            record(variances, facts)
        if progress is not None:
            progress(number, variances)
    return record.result(key[1], started, schedule.n_sweeps, tuple(getattr(engine, "notes", ())))


class FetchedMoments:
    """Moments of all locations of an engine that keeps none itself: Theta is fetched for every draw. See LocationMoments."""

    def __init__(self, engine: Engine, n_draws: int, n_batches: int):
        self._engine, self._design = engine, engine.equations.design
        self._moments = Moments([(t.n_levels, t.n_components) for t in self._design.terms], n_draws, n_batches)

    def add(self) -> None:
        self._theta = self._design.to_original_scale(self._engine.fetch())
        self._moments.add(self._theta)

    def levels(self, term: int, codes: np.ndarray) -> np.ndarray:
        return self._theta[term][codes]

    def state(self) -> dict[str, np.ndarray]:
        return self._moments.state()

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self._moments = Moments.from_state(state)


def location_moments(engine: Engine, schedule: Schedule) -> LocationMoments:
    """Those that the engine offers; on the host otherwise."""
    n_batches = batches_per_chain(schedule.n_kept, schedule.chains)
    if hasattr(engine, "moments"):
        return engine.moments(batch_length(schedule.n_kept, n_batches))
    return FetchedMoments(engine, schedule.n_kept, n_batches)


class _Recorder:
    """Keeps every variance draw, the moments of every level, the draws of chosen levels, and the facts of each kept sweep."""

    def __init__(self, model: MixedModel, schedule: Schedule, engine: Engine):
        self.model = model
        self.variances: list[list[np.ndarray]] = [[] for _ in model.random_terms]
        self.residual: list[np.ndarray] = []
        self.saved: dict[str, list[np.ndarray]] = {name: [] for name in model.saved}
        self.facts: dict[str, list[float]] = {}
        self.index = {t.name: i for i, t in enumerate(model.design.terms)}
        self.moments = location_moments(engine, schedule)

    def __call__(self, variances: Variances, facts: dict[str, float]) -> None:
        self.moments.add()
        for kept, i in zip(self.variances, self.model.random_terms, strict=True):
            kept.append(variances.G[i].copy())
        self.residual.append(variances.R.copy())
        for name, codes in self.model.saved.items():
            self.saved[name].append(self.moments.levels(self.index[name], codes))
        for name, value in facts.items():
            self.facts.setdefault(name, []).append(value)

    def result(self, chain: int, started: float, sweeps: int, notes: tuple[str, ...]) -> ChainResult:
        moments = Moments.from_state(self.moments.state())  # waits for a device: before the clock is read
        return ChainResult(
            variances=[np.array(v) for v in self.variances],
            residual=np.array(self.residual),
            moments=moments,
            saved={name: np.array(v) for name, v in self.saved.items()},
            sample_stats={name: np.array(v) for name, v in self.facts.items()},
            chain=chain,
            seconds=time.perf_counter() - started,
            sweeps=sweeps,
            notes=notes,
        )


def bytes_per_chain(design: Design, real: np.dtype) -> int:
    """State, moments and one fetched copy of a chain: Theta, e, four moments, two copies of Theta on the way to them."""
    n = sum(t.n_levels * t.n_components for t in design.terms)
    return (n + design.n_records * design.n_traits) * np.dtype(real).itemsize + n * 8 * 6


