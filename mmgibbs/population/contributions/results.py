"""Optimum contributions, and what they say in words: on the terminal, on the page, and in notes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.data.phenotypes import SHOWN
from mmgibbs.errors import option_name
from mmgibbs.pedigree.tables import agreeing, counted, quoted
from mmgibbs.population.contributions.candidates import Candidates
from mmgibbs.population.contributions.matings import MAX_MATINGS_ASSIGNED
from mmgibbs.population.contributions.optimum import Limits, Plan
from mmgibbs.population.contributions.planning import MAX_DRAWN_CANDIDATES, OverDraws
from mmgibbs.population.contributions.values import Criterion, KeptValues
from mmgibbs.report.finished import Finished

ROUNDING = 1e-12  # of a gain that is 0

PLANS = {
    "plan": "Optimum for the posterior means",
    "matings": "The same in whole matings",
    "robust": "Robust plan",
    "perfect": "Perfect knowledge, each draw planned for itself",
}


@dataclass(frozen=True)
class Contributions:
    """Optimum contributions of the candidates of a run.

    Attributes
    ----------
    candidates : polars.DataFrame
        A row for each candidate: contribution and matings of the plan, and what the draws say.
    frontier : polars.DataFrame
        Plans from low to high coancestry, and their gains.
    plans : polars.DataFrame
        The plan, the robust plan and perfect knowledge: gain over the draws, coancestry, parents.
    matings : polars.DataFrame
        Who is mated with whom, how often, and the expected inbreeding of the progeny.
    facts : dict
        What was done, as in contributions.json.
    notes : tuple of str
        What to know about them; warnings begin with "warning: ".
    directory : pathlib.Path or None
        Where they were written.
    """

    candidates: pl.DataFrame
    frontier: pl.DataFrame
    plans: pl.DataFrame
    matings: pl.DataFrame
    facts: dict[str, Any]
    notes: tuple[str, ...]
    directory: Path | None

    def _repr_html_(self) -> str:
        from mmgibbs.report.notebook import lines_as_html

        facts = [f"{name}: {value}" for name, value in fact_lines(self.facts)]
        return lines_as_html([*facts, *describe_plans(self)], self.notes)


def fact_lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """(name, value), in the order in which they are read."""
    base, limit = facts["coancestry_of_equal_contributions"], facts["coancestry_limit"]
    return [
        ("Candidates", _count_sexes(facts, "")),
        ("Value", f"{facts['criterion']}"),
        ("Matings", f"{facts['matings']:,}"),
        ("Coancestry from", facts["coancestry_source"]),
        ("Mean coancestry", f"{base:.4f} with equal contributions; limit {limit:.4f}, plan {facts['coancestry']:.4f}"),
        ("Gain of the plan", f"{_gain(facts['gain'])} above the mean of the candidates"),
        (
            "In whole matings",
            f"gain {_gain(facts['gain_of_matings'])}, coancestry {facts['coancestry_of_matings']:.4f}; "
            f"{_count_sexes(facts, 'selected_')}",
        ),
    ]


def _count_sexes(facts: dict[str, Any], prefix: str) -> str:
    """'4 males, 20 females', or '9 plants' that may be either parent."""
    return ", ".join(
        counted(facts[f"{prefix}{name}s"], name) for name in ("male", "female", "plant") if f"{prefix}{name}s" in facts
    )


def _gain(value: float, figures: int = 4) -> str:
    """A gain, 0 where it is nothing but rounding."""
    return "0" if abs(value) < ROUNDING else f"{value:.{figures}g}"


def describe_plans(made: Contributions) -> list[str]:
    """Lines on what the draws say, and on the matings."""
    lines = []
    for row in made.plans.filter(made.plans["gain_sd"].is_not_null()).iter_rows(named=True):
        lines.append(
            f"{PLANS[row['plan']]}: gain {_gain(row['gain'])} (SD {_gain(row['gain_sd'], 2)}); in the worst "
            f"{100 * made.facts['worst']:g} % of {made.facts['draws']:,} draws {_gain(row['gain_worst'])} on average"
        )
    inbreeding = mean_inbreeding(made)
    if inbreeding is not None:
        lines.append(
            f"{counted(made.matings.height, 'pair')}, expected inbreeding of the progeny {inbreeding:.4f} "
            f"({made.facts['inbreeding_at_random']:.4f} with random mating)"
        )
    return lines


def mean_inbreeding(made: Contributions) -> float | None:
    """Mean expected inbreeding over the matings; None without pairs."""
    if not made.matings.height:
        return None
    return float(np.average(made.matings["inbreeding"].to_numpy(), weights=made.matings["matings"].to_numpy()))


MAX_EXCESS = 0.1  # of the coancestry of whole matings over the limit


def describe_draws(
    finished: Finished,
    criterion: Criterion,
    candidates: Candidates,
    draws: int,
    kept: KeptValues | None,
    over_draws: OverDraws | None,
) -> list[str]:
    if not draws:
        return []
    if finished.solved:
        return [
            "the uncertainty of the contributions and a robust plan need draws, and the run has one value for each "
            "animal (method blup or reml). Use a run with sampler.method: gibbs that keeps draws of the candidates "
            "(output.save_levels)"
        ]
    n = len(candidates.ids)
    if kept is None:
        terms = {term for term, _ in criterion.components.values()}
        sampler = finished.record["analysis"].get("sampler", {})
        count = sampler.get("chains", 1) * sampler.get("samples", 0) // max(1, sampler.get("thin", 1))
        return [
            "the uncertainty of the contributions and a robust plan need draws, and the run has kept none of these "
            f"breeding values. Keep those of the candidates (output.save_levels, term "
            f"{', '.join(sorted(terms))}); {min(n, MAX_DRAWN_CANDIDATES):,} candidates take "
            f"{8e-6 * count * min(n, MAX_DRAWN_CANDIDATES):,.0f} MB for each component of the term"
        ]
    if over_draws is None:
        return [
            "warning: no uncertainty of the contributions and no robust plan: the candidates whose draws the run has "
            "kept cannot make a plan within the limits on their own. Either they are too few, or a "
            "candidate that must have matings (column min, or matings that are made) has no draws; keep draws of all "
            "candidates (output.save_levels)"
        ]
    notes = []
    if over_draws.places.size < n:
        absent = np.delete(np.arange(n), over_draws.places)
        shown = ", ".join(quoted(i) for i in candidates.ids.gather(absent[:SHOWN]))
        why = (
            "have no kept draws"
            if kept.places.size < n
            else f"are beyond the best {MAX_DRAWN_CANDIDATES:,} by mean + 2 SD"
        )
        notes.append(
            f"the robust plan and what the draws say leave out {counted(absent.size, 'candidate')}, such as {shown}, "
            f"that {why}"
        )
    return notes


def note_pairs(pairs: pl.DataFrame | None, matings: int) -> list[str]:
    if pairs is not None:
        return []
    return [
        f"warning: no list of pairs: {matings:,} matings are planned, and at most "
        f"{MAX_MATINGS_ASSIGNED:,} are paired at once. How many matings each candidate gets is in the table of "
        "candidates; for pairs, plan each herd or region for itself"
    ]


def note_limit(limit: float, plan: Plan, matings_coancestry: float, matings: int, limits: Limits) -> list[str]:
    """Note what the limits leave to choose, and the effect of that of coancestry.

    It is nothing, or less than whole matings keep.
    """
    notes = []
    for sex, word in zip(limits.sexes(), ("male", "female"), strict=False):
        if sex.size == 1 and limits.is_male is not None:
            notes.append(
                f"there is one {word} among the candidates: it is a parent of all progeny, whatever the limits"
            )
    if limits.leave_one_plan():
        notes.append(
            "there is nothing to choose: the limits of matings (columns min and max, or the most matings of a male and "
            "a female) leave one plan"
        )
    elif np.isinf(plan.trade_off):
        notes.append(
            f"the limit of coancestry of {limit:.4f} changes nothing: the plan with the highest gain of all has a "
            f"coancestry of {plan.coancestry:.4f}. Set a lower limit ({option_name('coancestry')} or "
            f"{option_name('rate')}) to keep more diversity"
        )
    if matings_coancestry > (1 + MAX_EXCESS) * max(limit, plan.coancestry):
        notes.append(
            f"warning: in whole matings the coancestry is {matings_coancestry:.4f}, above the limit of {limit:.4f}: "
            f"{counted(matings, 'mating')} {agreeing(matings, 'is')} too few to be shared as the plan asks. Plan more "
            "matings"
        )
    return notes
