"""What is kept of a chain: every draw of the parameters, what is followed of the locations, the facts of each sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NoReturn

import numpy as np

from mmgibbs.engines.base import Engine, LocationMoments
from mmgibbs.errors import ModelError
from mmgibbs.posterior.adjusted_means import FollowedMeans
from mmgibbs.posterior.averages import AveragedLevels
from mmgibbs.posterior.decisions import DecisionCounts
from mmgibbs.posterior.moments import MomentsOfLocations, batch_length
from mmgibbs.posterior.probabilities import ProbabilitiesOfLevels
from mmgibbs.posterior.saved import SavedLevels
from mmgibbs.posterior.totals import KeptSlope
from mmgibbs.posterior.tracked import Theta, Tracked
from mmgibbs.sampler.markers.followed import FollowedMarkers, FollowedStates, KeptEffects, collect_effects
from mmgibbs.sampler.markers.joint import JointMarkerEffects
from mmgibbs.sampler.markers.probabilities import ProbabilitiesWithMarkers
from mmgibbs.sampler.markers.totals import DecisionsWithMarkers, FollowedTotals
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.resident import ResidentSweep
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import Step

MOMENTS = "moments"
IMPROPER = (
    "most likely the posterior is improper or the scale of a covariate is extreme; needed proper priors "
    "(variances.*.prior), or fewer effects"
)


class FetchedTheta:
    """Location effects on the user's scale, fetched from the engine once for every draw."""

    def __init__(self, engine: Engine):
        self._engine, self._design = engine, engine.equations.design
        self._theta: list[np.ndarray] | None = None
        self.parameters: Mapping[str, np.ndarray] = {}

    def renew(self, parameters: Mapping[str, np.ndarray]) -> None:
        """Discard the last draw and keep the parameters of the new one."""
        self._theta, self.parameters = None, parameters

    def arrays(self) -> list[np.ndarray]:
        if self._theta is None:
            self._theta = self._design.to_original_scale(self._engine.fetch())
        return self._theta

    def levels(self, term: int, codes: np.ndarray) -> np.ndarray:
        return self.arrays()[term][codes]


class ResidentTheta:
    """The locations of an engine that keeps moments itself, and those moments: a kept draw is then never fetched."""

    def __init__(self, moments: LocationMoments):
        self._moments = moments
        self.levels, self.state, self.restore = moments.levels, moments.state, moments.restore
        self.parameters: Mapping[str, np.ndarray] = {}

    def renew(self, parameters: Mapping[str, np.ndarray]) -> None:
        """Keep the parameters of the new draw."""
        self.parameters = parameters

    def add(self, _theta: Theta) -> None:
        self._moments.add()


class DrawsOfSteps(Mapping[str, np.ndarray]):
    """The parameters of a draw by name, which the steps are asked for when the first one is read."""

    def __init__(self, steps: Sequence[Step]):
        self._steps = steps

    @cached_property
    def _draws(self) -> dict[str, np.ndarray]:
        return {name: values for step in self._steps for name, values in step.draws().items()}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._draws[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._draws)

    def __len__(self) -> int:
        return len(self._draws)


def make_trackers(model: MixedModel, schedule: Schedule) -> dict[str, Tracked]:
    """Whatever of the locations is followed besides their moments."""
    terms = {t.name: i for i, t in enumerate(model.design.terms)}
    out: dict[str, Tracked] = {f"levels.{term}": SavedLevels(terms[term], codes) for term, codes in model.saved.items()}
    out |= {f"averages.{term}": AveragedLevels(terms[term], groups) for term, groups in model.averaged.items()}
    out |= {f"means.{means.name}": FollowedMeans(means) for means in model.means}
    for asked in (p for p in model.probabilities if not p.markers):
        out[f"probabilities.{asked.trait}"] = ProbabilitiesOfLevels(asked, *schedule.planned_batches)
    if model.decisions is not None and not model.decisions.totals:
        out["decisions"] = DecisionCounts(model.decisions, *schedule.planned_batches, terms[model.decisions.term])
    return out


class Recorder:
    """Names and arrays: `draws` of every step, `tracked` of the locations, `facts` of each kept sweep."""

    def __init__(self, model: MixedModel, schedule: Schedule, engine: Engine, steps: Sequence[Step], chain: int = 0):
        self.steps, self.schedule, self.chain = steps, schedule, chain
        self.draws: dict[str, list[np.ndarray]] = {name: [] for step in steps for name in step.parameters}
        self.facts: dict[str, list[float]] = {}
        planned, n_batches = schedule.planned_batches
        moments: Tracked
        self.theta: FetchedTheta | ResidentTheta
        if hasattr(engine, "moments"):
            self.theta = moments = ResidentTheta(engine.moments(batch_length(planned, n_batches)))
        else:
            self.theta, shapes = FetchedTheta(engine), [(t.n_levels, t.n_components) for t in model.design.terms]
            moments = MomentsOfLocations(shapes, planned, n_batches)
        self.tracked: dict[str, Tracked] = {MOMENTS: moments} | make_trackers(
            model, schedule
        )  # moments see a draw first
        of_markers = collect_effects(steps)
        for step in steps:
            if isinstance(step, JointMarkerEffects) and not step.prior.spec.whole:
                self.tracked[f"states.{step.name}"] = FollowedStates(step, planned, n_batches)
        for own in of_markers:
            self.tracked[f"markers.{own.markers.key}"] = FollowedMarkers(own, planned, n_batches)
            if model.marker_draws:
                most = model.marker_draws // schedule.chains
                self.tracked[f"effects.{own.markers.key}"] = KeptEffects(own, most)
        for asked in model.probabilities:
            if asked.markers:
                own_probabilities = ProbabilitiesWithMarkers(asked, of_markers, planned, n_batches)
                self.tracked[f"probabilities.{asked.trait}"] = own_probabilities
        for total in model.totals:
            self.tracked[f"totals.{total.trait}"] = FollowedTotals(total, of_markers, planned, n_batches)
            if model.marker_draws and total.regression is not None:
                self.tracked[f"slopes.{total.trait}"] = KeptSlope(total, model.marker_draws // schedule.chains)
        if model.decisions is not None and model.decisions.totals:
            term = model.term_index(model.decisions.term)
            counts = DecisionsWithMarkers(model.decisions, of_markers, planned, n_batches, term)
            self.tracked["decisions"] = counts

    def __call__(self, facts: Mapping[str, float]) -> None:
        self.theta.renew(DrawsOfSteps(self.steps))
        for tracked in self.tracked.values():
            tracked.add(self.theta)
        for step in self.steps:
            if isinstance(step, ResidentSweep):
                step.count_kept()
            else:
                self._append_draws(step.draws())
        self._append_facts(facts)

    def _append_draws(self, draws: Mapping[str, np.ndarray]) -> None:
        for name, values in draws.items():
            if not np.logical_and.reduce(np.isfinite(values), axis=None):
                self._refuse_lost_draw(name)
            self.draws[name].append(values.copy())

    def _refuse_lost_draw(self, name: str) -> NoReturn:
        """ModelError for a draw of these parameters that is not finite."""
        of = next(step.parameters[name] for step in self.steps if name in step.parameters)
        subject = of.help or name
        if of.dims:
            subject += f" ({of.dims[-1]})"
        sweep = self.schedule.burn_in + (len(self.draws[name]) + 1) * self.schedule.thin
        raise ModelError(
            f"chain {self.chain + 1} cannot continue after sweep {sweep}: expected finite draws, got infinite or "
            f"undefined ones of: {subject}; {IMPROPER}"
        )

    def _append_facts(self, facts: Mapping[str, float]) -> None:
        for name, value in facts.items():
            self.facts.setdefault(name, []).append(value)

    def _take_kept(self) -> None:
        """Append the draws that a device kept meanwhile."""
        for step in self.steps:
            if isinstance(step, ResidentSweep):
                for kept in step.take_kept():
                    self._append_draws(kept.draws)
                    self._append_facts(kept.facts)

    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Draws and facts: name -> (kept sweeps, ...)."""
        self._take_kept()
        draws, facts = ({name: np.array(v) for name, v in kept.items()} for kept in (self.draws, self.facts))
        return draws, facts

    def state(self) -> dict[str, np.ndarray]:
        draws, facts = self.arrays()
        out = _prefixed("draws.", draws) | _prefixed("facts.", facts)
        for name, tracked in self.tracked.items():
            out |= _prefixed(f"{name}:", tracked.state())
        return out

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.draws, self.facts = (
            {name: list(values) for name, values in _select_prefix(kept, state).items()}
            for kept in ("draws.", "facts.")
        )
        for name, tracked in self.tracked.items():
            try:
                tracked.restore(_select_prefix(f"{name}:", state))
            except KeyError as lacking:
                raise KeyError(f"{name}:{lacking.args[0]}") from None


def _prefixed(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {prefix + name: array for name, array in arrays.items()}


def _select_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays whose names begin so, without the beginning."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
