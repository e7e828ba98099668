"""What contributions say in words, on the terminal and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pedigree.tables import counted

if TYPE_CHECKING:
    from mmgibbs.contributions.run import Contributions

ROUNDING = 1e-12  # of a gain that is 0

PLANS = {
    "plan": "Optimum for the posterior means",
    "matings": "The same in whole matings",
    "robust": "Robust plan",
    "perfect": "Perfect knowledge, each draw planned for itself",
}


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
