"""Optimum contributions over draws of the breeding values: what each draw would choose, and a plan for the bad ones.

    of a draw    the plan that is best if the breeding values are those of draw s: 'perfect knowledge'
    robust       maximises the mean gain of the worst share a of the draws (CVaR) at the same limit of coancestry

With B the breeding values of the S draws (S, m), the mean of the worst is the minimum of w'Bc over weights w with sum 1
and 0 <= w <= 1 / (a S). So the robust plan is the optimum of the breeding values B'w at the w which minimises

    h(w) = maximum of (B'w)'c over the plans within the limits          gradient of h = B c(w)

a convex function. Steps along the projected gradient with the lengths of Barzilai and Borwein find it. h(w) less the
mean gain of the worst draws of c(w) bounds what any other plan could gain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mmgibbs.population.contributions.optimum import ContributionOptimiser, Plan, project

MAX_ITERATIONS = 60
GAP_IN_SD = 1e-3  # of the gains of a plan: what another plan could gain at most once the search ends
SELECTED_ABOVE = 1e-9  # contribution


@dataclass(frozen=True)
class DrawnPlans:
    """The plan of each draw."""

    contributions: np.ndarray  # (draws, m)
    gains: np.ndarray  # (draws,) of the plan of each draw, in this draw
    coancestry: np.ndarray  # (draws,)


@dataclass(frozen=True)
class RobustPlan:
    """The plan with the highest mean of the worst draws."""

    plan: Plan
    worst: float  # mean gain of the worst draws
    gap: float  # no plan within the limits exceeds worst + gap


def optimise_draws(
    optimiser: ContributionOptimiser, draws: np.ndarray, limit: float, tell: Callable[[int], None]
) -> DrawnPlans:
    """Optimise contributions for each draw (draws, m); tell: called with the number of draws that are done."""
    plans = []
    for done, b in enumerate(draws, 1):
        plan = optimiser.limit_coancestry(b, limit)
        assert plan is not None, "the limit can be met whatever the breeding values"
        plans.append(plan)
        tell(done)
    contributions = np.array([plan.contributions for plan in plans])
    return DrawnPlans(
        contributions, np.array([plan.gain for plan in plans]), np.array([plan.coancestry for plan in plans])
    )


def mean_of_worst(gains: np.ndarray, share: float) -> float:
    """Mean of the smallest share of the gains; the last of them counts in part."""
    size = share * gains.size
    weights = np.clip(size - np.arange(gains.size), 0.0, 1.0)
    return float(np.sort(gains) @ weights / size)


def find_robust_plan(optimiser: ContributionOptimiser, draws: np.ndarray, limit: float, share: float) -> RobustPlan:
    """Return the plan that maximises the mean gain of the worst share of the draws (draws, m)."""
    S = len(draws)
    highest = np.full(S, 1.0 / (share * S))
    best: RobustPlan | None = None
    lowest_bound = np.inf

    def evaluate(w: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best, lowest_bound
        plan = optimiser.limit_coancestry(draws.T @ w, limit)
        assert plan is not None, "the limit can be met whatever the breeding values"
        gains = draws @ plan.contributions
        worst = mean_of_worst(gains, share)
        lowest_bound = min(lowest_bound, plan.gain)
        if best is None or worst > best.worst:
            best = RobustPlan(plan, worst, np.inf)
        return plan.gain, gains

    w = np.full(S, 1.0 / S)
    h, gains = evaluate(w)
    length = 1.0 / (S * max(float(gains.std()), 1e-300))
    for _ in range(MAX_ITERATIONS):
        assert best is not None
        if lowest_bound - best.worst <= GAP_IN_SD * float(gains.std()):
            break
        change = project(w - length * gains, np.zeros(S), highest, 1.0) - w
        slope = float(change @ gains)
        part = 1.0
        while True:  # Armijo's rule: h falls by a part of what its slope promises
            new_h, new_gains = evaluate(w + part * change)
            if new_h <= h + 1e-4 * part * slope or part < 1e-3:
                break
            part /= 4
        step, turn = part * change, new_gains - gains
        curvature = float(step @ turn)
        length = float(step @ step) / curvature if curvature > 0 else 2 * length
        w, h, gains = w + step, new_h, new_gains
    assert best is not None
    return RobustPlan(best.plan, best.worst, max(0.0, lowest_bound - best.worst))


def selected_share(contributions: np.ndarray) -> np.ndarray:
    """(m,) share of the draws in which a candidate contributes."""
    return np.asarray((contributions > SELECTED_ABOVE).mean(axis=0))
