"""The plans of one set of candidates: the optimum, its frontier, those of draws, and the pairs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.errors import ConfigError, option_name
from mmgibbs.population.contributions.candidates import Candidates
from mmgibbs.population.contributions.coancestry import Coancestry, DenseCoancestry, PedigreeCoancestry
from mmgibbs.population.contributions.matings import MAX_MATINGS_ASSIGNED, assign_matings
from mmgibbs.population.contributions.optimum import ContributionOptimiser, Limits, Plan
from mmgibbs.population.contributions.uncertainty import DrawnPlans, RobustPlan, find_robust_plan, optimise_draws
from mmgibbs.population.contributions.values import ASKED, KeptValues
from mmgibbs.runs.progress import Console

MAX_DRAWN_CANDIDATES = 5000
FRONTIER_FACTORS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0, 16.0)  # of the trade-off of the plan
SECONDS_BETWEEN_LINES = 30.0


@dataclass(frozen=True)
class OverDraws:
    """Results over the kept draws, for candidates whose draws were kept."""

    places: np.ndarray  # (k,) of the candidates
    draws: np.ndarray  # (draws, k) less the mean of the candidates
    drawn: DrawnPlans  # contributions (draws, k)
    robust: RobustPlan
    gains_of_plan: np.ndarray | None  # (draws,); None where the plan has parents without draws


class Planner:
    """The optimisation of one set of candidates."""

    def __init__(self, K: Coancestry, candidates: Candidates, b: np.ndarray, console: Console):
        self.K, self.candidates, self.b, self.console = K, candidates, b, console
        self.limits = candidates.limits()
        self.optimiser = ContributionOptimiser(K, self.limits)
        equal = candidates.equal_contributions()
        self.base, self.base_gain = K.mean(equal), float(b @ equal)

    def choose_limit(self, coancestry: float | None, rate: float) -> float:
        return coancestry if coancestry is not None else self.base + rate * (1 - self.base)

    def optimise(self, limit: float) -> Plan:
        n = len(self.candidates.ids)
        self.console.say(f"optimising contributions of {n:,} candidates, coancestry at most {limit:.4f}")
        plan = self.optimiser.limit_coancestry(self.b, limit)
        if plan is not None:
            return plan
        low, high = (f"{end:.4f}" for end in self.optimiser.lowest_range)
        lowest = low if low == high else f"between {low} and {high}"
        raise ConfigError(
            f"{ASKED}the limit of coancestry of {limit:.4f} cannot be met: the lowest mean coancestry of any plan of "
            f"these candidates is {lowest} (with equal contributions it is {self.base:.4f}). Set a higher limit "
            f"({option_name('coancestry')} or {option_name('rate')}), add candidates that are less related, or raise "
            "the limits of matings (column max)"
        )

    def trace_frontier(self, plan: Plan) -> list[tuple[Plan, bool]]:
        """Plans from low to high coancestry, and which of them is the plan."""
        has_limits = 0 < plan.trade_off < np.inf  # neither the lowest coancestry nor the highest gain
        centre = plan.trade_off if has_limits else 1.0
        others = [factor * centre for factor in FRONTIER_FACTORS if factor != 1.0 or not has_limits]
        plans = [(self.optimiser.solve(self.b, t), False) for t in others] + [(plan, True)]
        if np.isfinite(plan.trade_off):
            plans.append((self.optimiser.find_highest_gain(self.b), False))
        return sorted(plans, key=lambda of: of[0].trade_off)

    def optimise_draws(self, kept: KeptValues, plan: Plan, limit: float, worst: float) -> OverDraws | None:
        """Optimise each draw for at most MAX_DRAWN_CANDIDATES.

        None where limits cannot be met by candidates with draws.
        """
        places, draws = self._preselect(kept)
        equal = self.candidates.equal_contributions()[places]
        draws = draws - (draws @ (equal / equal.sum()))[:, None]  # gains are those over the mean of the candidates
        restricted = _restrict(self.K, self.limits, places)
        if restricted is None:
            return None
        K, limits = restricted
        optimiser = ContributionOptimiser(K, limits)
        if optimiser.limit_coancestry(draws.mean(axis=0), limit) is None:
            return None
        started = time.process_time()
        optimiser.limit_coancestry(draws[0], limit)
        seconds = (time.process_time() - started) * len(draws)
        self.console.say(f"{len(draws):,} draws of {places.size:,} candidates: about {max(1, round(seconds)):,} s")
        drawn = optimise_draws(optimiser, draws, limit, _progress(self.console, len(draws)))
        robust = find_robust_plan(optimiser, draws, limit, worst)
        has_all = np.isin(np.flatnonzero(plan.contributions > 0), places).all()
        return OverDraws(places, draws, drawn, robust, draws @ plan.contributions[places] if has_all else None)

    def _preselect(self, kept: KeptValues) -> tuple[np.ndarray, np.ndarray]:
        """Select the candidates with the highest mean + 2 SD of each sex, and those that must have matings."""
        if kept.places.size <= MAX_DRAWN_CANDIDATES:
            return kept.places, kept.draws
        promise = kept.draws.mean(axis=0) + 2 * kept.draws.std(axis=0)
        promise[self.limits.lowest[kept.places] > 0] = np.inf
        sexes = self.limits.choose(kept.places).sexes()
        chosen = [sex[np.argsort(-promise[sex], kind="stable")[: MAX_DRAWN_CANDIDATES // len(sexes)]] for sex in sexes]
        order = np.sort(np.concatenate(chosen))
        return kept.places[order], kept.draws[:, order]

    def pair(self, counts: np.ndarray) -> pl.DataFrame | None:
        """Matings that are made, then the new ones; None where these are too many for the assignment."""
        mated = self.candidates.mated
        new = counts.copy()
        for role in ("sire", "dam"):
            np.subtract.at(new, mated[role].to_numpy(), mated["matings"].to_numpy())
        if new.sum() > 2 * MAX_MATINGS_ASSIGNED:
            return None
        assigned = assign_matings(self.K, self.limits.is_male, new).with_columns(made=False)
        sire, dam = mated["sire"].to_numpy(), mated["dam"].to_numpy()
        inbreeding = [
            float(self.K.pairs(np.array([s]), np.array([d]))[0, 0]) / 2 for s, d in zip(sire, dam, strict=True)
        ]
        made = mated.with_columns(inbreeding=pl.Series(inbreeding, dtype=pl.Float64), made=True)
        return pl.concat([made, assigned.select(made.columns)])


def _restrict(K: Coancestry, limits: Limits, places: np.ndarray) -> tuple[Coancestry, Limits] | None:
    """The problem of these candidates alone; None where they cannot meet the limits."""
    left_out = np.delete(np.arange(limits.lowest.size), places)
    if (limits.lowest[left_out] > 0).any():
        return None
    chosen = limits.choose(places)
    if any(chosen.highest[sex].sum() < chosen.share for sex in chosen.sexes()):
        return None
    if isinstance(K, PedigreeCoancestry):
        return PedigreeCoancestry(K.kin, K.codes[places]), chosen
    assert isinstance(K, DenseCoancestry)
    return K.submatrix(places), chosen


def _progress(console: Console, draws: int) -> Callable[[int], None]:
    """Say what is done, at most every half a minute."""
    last = [time.monotonic()]

    def tell(done: int) -> None:
        if time.monotonic() - last[0] >= SECONDS_BETWEEN_LINES:
            last[0] = time.monotonic()
            console.say(f"{done:,} of {draws:,} draws")

    return tell
