"""Tables of optimum contributions: candidates, frontier, plans and matings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from mmgibbs.population.contributions.candidates import Candidates
from mmgibbs.population.contributions.coancestry import Coancestry
from mmgibbs.population.contributions.optimum import Plan
from mmgibbs.population.contributions.uncertainty import SELECTED_ABOVE, mean_of_worst, selected_share

if TYPE_CHECKING:
    from mmgibbs.population.contributions.planning import OverDraws, Planner
    from mmgibbs.population.contributions.values import Criterion
    from mmgibbs.report.finished import Finished

MATING_COLUMNS = {
    "sire": pl.String,
    "dam": pl.String,
    "matings": pl.Int64,
    "inbreeding": pl.Float64,
    "made": pl.Boolean,
}


def contributions_frame(
    candidates: Candidates, b: np.ndarray, plan: Plan, counts: np.ndarray, over_draws: OverDraws | None
) -> pl.DataFrame:
    """A row for each candidate, the largest contributions first; columns of draws are null where there are none."""
    n = len(candidates.ids)
    columns: dict[str, Any] = {
        "id": candidates.ids,
        "sex": pl.Series(np.where(candidates.is_male, "M", "F"))
        if candidates.is_male is not None
        else pl.Series([None] * n, dtype=pl.String),
        "value": b,
        "contribution": plan.contributions,
        "matings": counts,
        "min": candidates.lowest,
        "max": candidates.highest,
    }
    names = ("robust_contribution", "mean_of_draws", "sd_of_draws", "low_of_draws", "high_of_draws", "p_selected")
    of_draws = np.full((len(names), n), np.nan)
    if over_draws is not None:
        drawn = over_draws.drawn.contributions
        of_draws[:, over_draws.places] = [
            over_draws.robust.plan.contributions,
            drawn.mean(axis=0),
            drawn.std(axis=0, ddof=1) if len(drawn) > 1 else np.full(drawn.shape[1], np.nan),
            *np.quantile(drawn, [0.05, 0.95], axis=0),
            selected_share(drawn),
        ]
    frame = pl.DataFrame(columns | dict(zip(names, of_draws, strict=True)))
    frame = frame.with_columns(pl.col(names).fill_nan(None))
    return frame.sort("contribution", "value", descending=True, maintain_order=True)


def frontier_frame(plans: Sequence[tuple[Plan, bool]], base: float, base_gain: float) -> pl.DataFrame:
    """A row for each plan, from low to high coancestry; base: of equal contributions."""
    return pl.DataFrame(
        {
            "coancestry": [plan.coancestry for plan, _ in plans],
            "rate": [(plan.coancestry - base) / (1 - base) for plan, _ in plans],
            "gain": [plan.gain - base_gain for plan, _ in plans],
            "parents": [int((plan.contributions > SELECTED_ABOVE).sum()) for plan, _ in plans],
            "trade_off": [plan.trade_off if np.isfinite(plan.trade_off) else None for plan, _ in plans],
            "chosen": [is_chosen for _, is_chosen in plans],
        },
        schema_overrides={"trade_off": pl.Float64},
    )


def plans_frame(
    planner: Planner, plan: Plan, counts: np.ndarray, over_draws: OverDraws | None, worst: float
) -> pl.DataFrame:
    """A row for each plan: its mean gain over equal contributions, and what the draws say of it."""
    rounded = counts / counts.sum()
    rows = [
        _plan_row("plan", plan.contributions, plan.gain - planner.base_gain, plan.coancestry),
        _plan_row("matings", rounded, float(planner.b @ rounded) - planner.base_gain, planner.K.mean(rounded)),
    ]
    if over_draws is not None:
        robust = over_draws.robust.plan
        if over_draws.gains_of_plan is not None:
            rows[0] |= _summarise_gains(over_draws.gains_of_plan, worst)
        gains = over_draws.draws @ robust.contributions
        rows.append(
            _plan_row("robust", robust.contributions, float(gains.mean()), robust.coancestry)
            | _summarise_gains(gains, worst)
        )
        gains, drawn = over_draws.drawn.gains, over_draws.drawn
        parents = float((drawn.contributions > SELECTED_ABOVE).sum(axis=1).mean())
        row = {
            "plan": "perfect",
            "gain": float(gains.mean()),
            "coancestry": float(drawn.coancestry.mean()),
            "parents": parents,
        }
        rows.append(row | _summarise_gains(gains, worst))
    types = {"plan": pl.String} | dict.fromkeys(
        ("gain", "coancestry", "parents", "gain_sd", "gain_low", "gain_high", "gain_worst"), pl.Float64
    )
    return pl.DataFrame([dict.fromkeys(types) | row for row in rows], schema=types)


def _plan_row(name: str, c: np.ndarray, gain: float, coancestry: float) -> dict[str, Any]:
    return {"plan": name, "gain": gain, "coancestry": coancestry, "parents": float((c > SELECTED_ABOVE).sum())}


def _summarise_gains(gains: np.ndarray, worst: float) -> dict[str, float | None]:
    low, high = np.quantile(gains, [0.05, 0.95])
    return {
        "gain_sd": float(gains.std(ddof=1)) if gains.size > 1 else None,
        "gain_low": float(low),
        "gain_high": float(high),
        "gain_worst": mean_of_worst(gains, worst),
    }


def matings_frame(candidates: Candidates, pairs: pl.DataFrame | None) -> pl.DataFrame:
    """A row for each pair, by ids; empty where no pairs were made."""
    if pairs is None:
        return pl.DataFrame(schema=MATING_COLUMNS)
    named = pairs.with_columns(candidates.ids.gather(pairs[role]).alias(role) for role in ("sire", "dam"))
    return named.select(list(MATING_COLUMNS)).cast(MATING_COLUMNS)  # type: ignore[arg-type]


def collect_facts(
    finished: Finished,
    criterion: Criterion,
    candidates: Candidates,
    kind: str,
    planner: Planner,
    limit: float,
    plan: Plan,
    counts: np.ndarray,
    over_draws: OverDraws | None,
    worst: float,
) -> dict[str, Any]:
    rounded = counts / (2.0 * candidates.matings)
    return {
        "run": str(finished.directory),
        "criterion": criterion.words,
        "weights": dict(criterion.weights),
        "candidates": candidates.name,
        **{f"{name}s": places.size for name, places in candidates.sexes().items()},
        "matings": candidates.matings,
        "coancestry_source": kind,
        "coancestry_of_equal_contributions": planner.base,
        "mean_of_equal_contributions": planner.base_gain,
        "coancestry_limit": limit,
        "coancestry": plan.coancestry,
        "gain": plan.gain - planner.base_gain,
        "coancestry_of_matings": planner.K.mean(rounded),
        "gain_of_matings": float(planner.b @ rounded) - planner.base_gain,
        **{f"selected_{name}s": int((counts[places] > 0).sum()) for name, places in candidates.sexes().items()},
        "inbreeding_at_random": _inbreeding_at_random(planner.K, candidates, counts),
        "draws": 0 if over_draws is None else len(over_draws.draws),
        "worst": worst,
    }


def _inbreeding_at_random(K: Coancestry, candidates: Candidates, counts: np.ndarray) -> float:
    """Expected inbreeding of the progeny if the parents are mated at random: x_males' K x_females / 2.

    Plants are males and females, and selfed as chance has it.
    """
    shares = counts / counts.sum()
    if candidates.is_male is None:
        return K.mean(shares)
    males, females = (np.where(sex, 2 * shares, 0.0) for sex in (candidates.is_male, ~candidates.is_male))
    return 0.5 * float(males @ K.times(females))
