"""The MCMC loop: an ordered list of steps, then record. It names no model and knows no engine by name."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mmgibbs.engines.base import Engine, LocationMoments
from mmgibbs.model.covariance import CovarianceModel
from mmgibbs.model.design import Design
from mmgibbs.posterior.averages import LevelAverages
from mmgibbs.posterior.decisions import DecisionCounts, Decisions
from mmgibbs.posterior.moments import Moments, batch_length, batches_per_chain
from mmgibbs.posterior.result import ChainResult
from mmgibbs.sampler.covariances import draw_covariance
from mmgibbs.sampler.interweave import interweave_step

# Chains of sampled variances start apart, so that R-hat can see a chain that has not forgotten its start.
START_SCALES = (1.0, 0.5, 2.0, 0.75, 1.5)


@dataclass(frozen=True)
class Schedule:
    """How a chain runs: `burn_in` sweeps that are thrown away, then `samples` sweeps of which every `thin`-th is kept.

    `most`: the sweeps after burn-in that there may be in the end, where targets or an extension decide; batches of the
    moments are planned for `samples`.
    `interweave`: the terms whose covariance matrix is redrawn given the standardised effects too (see
    interweave.terms_to_interweave).
    """

    burn_in: int
    samples: int
    thin: int = 1
    refresh_every: int = 1000
    chains: int = 1
    interweave: tuple[int, ...] = ()
    most: int = 0

    @property
    def n_sweeps(self) -> int:
        return self.burn_in + max(self.samples, self.most)

    @property
    def n_kept(self) -> int:
        return max(self.samples, self.most) // self.thin

    def keeps(self, number: int) -> bool:
        return number > self.burn_in and (number - self.burn_in) % self.thin == 0


@dataclass(frozen=True)
class MixedModel:
    """Design and covariance matrices: what is sampled."""

    design: Design
    covariances: tuple[CovarianceModel | None, ...]  # one per term; None for fixed terms
    residual: CovarianceModel
    saved: dict[str, np.ndarray] = field(default_factory=dict)  # term name -> level codes whose draws are kept
    averaged: dict[str, LevelAverages] = field(
        default_factory=dict
    )  # term name -> groups of levels whose mean is kept in every draw
    decisions: Decisions | None = None  # candidates whose ranks are counted in every draw

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
    model: MixedModel,
    engine: Engine,
    variances: Variances,
    key: tuple[int, int],
    refresh_every: int,
    interweave: tuple[int, ...] = (),
) -> list[Step]:
    """Locations given variances; each G given its term; G of the terms to interweave given their standardised effects;
    R given the residuals.
    """
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
    at = lambda c: None if c is None else np.array(c.start, float) * (1.0 if c.fixed else scale)
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
    chain = Chain(model, engine, schedule, key)

    def show(chain: Chain) -> bool:
        if progress is not None:
            progress(chain.number, chain.variances)
        return False

    chain.advance(schedule.n_sweeps, show)
    return chain.result()


class Chain:
    """One chain, which may pause after any sweep and go on later, elsewhere, to the same draws; key = (seed, chain).

    `state()` is all there is to go on from: given to a new Chain of the same model, engine, schedule and key.
    """

    def __init__(
        self,
        model: MixedModel,
        engine: Engine,
        schedule: Schedule,
        key: tuple[int, int],
        state: dict[str, np.ndarray] | None = None,
    ):
        self.engine, self.schedule, self.key = engine, schedule, key
        self.number, self._seconds, self._since = 0, 0.0, time.perf_counter()
        self.variances = starting_variances(model, key[1])
        self._record = _Recorder(model, schedule, engine)
        if state is not None:
            self._restore(state)
        engine.set_variances(self.variances.G, self.variances.R)
        self._steps = gibbs_steps(model, engine, self.variances, key, schedule.refresh_every, schedule.interweave)

    @property
    def seconds(self) -> float:
        """Wall time so far, burn-in included."""
        return self._seconds + time.perf_counter() - self._since

    def advance(self, until: int, pause: Callable[[Chain], bool] | None = None) -> None:
        """Sweep up to number `until`; `pause(chain)` is called after each, and where it is true that was the last for
        now.
        """
        for number in range(self.number + 1, until + 1):
            facts = {"sweep": number}
            for step in self._steps:
                facts |= step(number) or {}
            self.number = number
            if self.schedule.keeps(number):
                self._record(self.variances, facts)
            if pause is not None and pause(self):
                return

    def state(self) -> dict[str, np.ndarray]:
        """Named arrays, not copied: number of sweeps, seconds, variances, the engine's state and what was recorded."""
        G = {f"G.{i}": g for i, g in enumerate(self.variances.G) if g is not None}
        own = {"number": np.array(self.number), "seconds": np.array(self.seconds), "R": self.variances.R, **G}
        return own | _prefixed("engine.", self.engine.state()) | _prefixed("record.", self._record.state())

    def _restore(self, state: dict[str, np.ndarray]) -> None:
        self.number, self._seconds = int(state["number"]), float(state["seconds"])
        self.variances.G[:] = [None if g is None else state[f"G.{i}"].copy() for i, g in enumerate(self.variances.G)]
        self.variances.R = state["R"].copy()
        self.engine.restore(_under("engine.", state))
        self._record.restore(_under("record.", state))

    def result(self) -> ChainResult:
        """What was kept so far."""
        return self._record.result(self, tuple(getattr(self.engine, "notes", ())))


def _prefixed(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {prefix + name: array for name, array in arrays.items()}


def _under(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


class FetchedMoments:
    """Moments of all locations of an engine that keeps none itself: Theta is fetched for every draw.

    See LocationMoments.
    """

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
    planned, n_batches = planned_batches(schedule)
    if hasattr(engine, "moments"):
        return engine.moments(batch_length(planned, n_batches))
    return FetchedMoments(engine, planned, n_batches)


def planned_batches(schedule: Schedule) -> tuple[int, int]:
    """Kept draws that a chain is planned to have, and their batches."""
    planned = schedule.samples // schedule.thin
    return planned, batches_per_chain(planned, schedule.chains)


class _Recorder:
    """Keeps every variance draw, the moments of every level, the draws of chosen levels, and the facts of each kept
    sweep.
    """

    def __init__(self, model: MixedModel, schedule: Schedule, engine: Engine):
        self.model = model
        self.index = {t.name: i for i, t in enumerate(model.design.terms)}
        self.draws: dict[str, list] = {
            name: []
            for name in (
                "R",
                *(f"G.{i}" for i in model.random_terms),
                *map(self._saved, model.saved),
                *map(self._averaged, model.averaged),
            )
        }
        self.facts: dict[str, list[float]] = {}
        self.moments = location_moments(engine, schedule)
        self.decisions = (
            None if model.decisions is None else DecisionCounts(model.decisions, *planned_batches(schedule))
        )

    def _saved(self, term: str) -> str:
        return f"levels.{self.index[term]}"

    def _averaged(self, term: str) -> str:
        return f"averages.{self.index[term]}"

    def __call__(self, variances: Variances, facts: dict[str, float]) -> None:
        self.moments.add()
        self.draws["R"].append(variances.R.copy())
        for i in self.model.random_terms:
            self.draws[f"G.{i}"].append(variances.G[i].copy())
        for term, codes in self.model.saved.items():
            self.draws[self._saved(term)].append(self.moments.levels(self.index[term], codes))
        for term, averages in self.model.averaged.items():
            self.draws[self._averaged(term)].append(averages.of(self.moments.levels(self.index[term], averages.codes)))
        if self.decisions is not None:
            self.decisions.add(self.moments.levels(self.index[self.model.decisions.term], self.model.decisions.codes))
        for name, value in facts.items():
            self.facts.setdefault(name, []).append(value)

    def state(self) -> dict[str, np.ndarray]:
        draws, facts = ({name: np.array(values) for name, values in kept.items()} for kept in (self.draws, self.facts))
        decisions = {} if self.decisions is None else _prefixed("decisions.", self.decisions.state())
        return (
            _prefixed("draws.", draws)
            | _prefixed("facts.", facts)
            | _prefixed("moments.", self.moments.state())
            | decisions
        )

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.draws, self.facts = (
            {name: list(values) for name, values in _under(kept, state).items()} for kept in ("draws.", "facts.")
        )
        self.moments.restore(_under("moments.", state))
        if self.decisions is not None:
            self.decisions.restore(_under("decisions.", state))

    def result(self, chain: Chain, notes: tuple[str, ...]) -> ChainResult:
        moments = Moments.from_state(self.moments.state())  # waits for a device: before the clock is read
        return ChainResult(
            variances=[np.array(self.draws[f"G.{i}"]) for i in self.model.random_terms],
            residual=np.array(self.draws["R"]),
            moments=moments,
            saved={term: np.array(self.draws[self._saved(term)]) for term in self.model.saved},
            averages={term: np.array(self.draws[self._averaged(term)]) for term in self.model.averaged},
            decisions=self.decisions,
            sample_stats={name: np.array(v) for name, v in self.facts.items()},
            chain=chain.key[1],
            seconds=chain.seconds,
            sweeps=chain.number,
            notes=notes,
        )


def bytes_per_chain(design: Design, real: np.dtype) -> int:
    """State, moments and one fetched copy of a chain: Theta, e, four moments, two copies of Theta on the way to
    them.
    """
    n = sum(t.n_levels * t.n_components for t in design.terms)
    return (n + design.n_records * design.n_traits) * np.dtype(real).itemsize + n * 8 * 6
