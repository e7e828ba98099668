"""contributions.html: the frontier of gain and coancestry, the plans, the parents and the matings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from mmgibbs.population.contributions.results import PLANS, Contributions, fact_lines, mean_inbreeding
from mmgibbs.report import plots
from mmgibbs.report.html_tables import (
    Table,
    as_number,
    bar_column,
    bars,
    decimals,
    describe_shown_rows,
    drop_empty_columns,
    figure,
    make_table,
    number_column,
    percent,
    text_column,
)
from mmgibbs.report.render import render

SHOWN_PARENTS, SHOWN_PAIRS = 50, 100


def write_page(made: Contributions, path: Path) -> Path:
    """Write the page and return its path."""
    return render("contributions.html.j2", page(made), path)


def page(made: Contributions) -> dict[str, Any]:
    """Prepare the values that the template shows."""
    facts, figures = made.facts, plots.Figures()
    return {
        "title": f"Contributions: {Path(facts['run']).name}",
        "subtitle": f"{made.candidates.height:,} candidates, {facts['matings']:,} matings",
        "facts": fact_lines(facts),
        "figures": [_frontier(made, figures)],
        "frontier": _frontier_table(made),
        "plans": _plans(made),
        "parents": [
            _parents(made, sex, name)
            for sex, name in (("M", "males"), ("F", "females"), (None, "plants"))
            if name in facts
        ],
        "pairs": _pairs(made) if made.matings.height else None,
        "notes": made.notes,
        "worst": f"{100 * facts['worst']:g}",
        "draws": facts["draws"],
    }


def _frontier(made: Contributions, figures: plots.Figures) -> tuple[str, str, str]:
    frontier, unit = made.frontier, made.facts["criterion"]
    chosen = frontier.filter("chosen").row(0, named=True)
    caption = (
        f"The highest gain at each mean coancestry. The plan has a coancestry of {figure(chosen['coancestry'])} and a "
        f"gain of {figure(chosen['gain'])}; without a limit the gain is {figure(frontier['gain'][-1])}."
    )

    def paint(axes: Axes) -> None:
        x, y = frontier["coancestry"].to_numpy(), frontier["gain"].to_numpy()
        axes.plot(x, y, color=plots.SERIES[0], linewidth=1.3, marker="o", markersize=2.5)
        axes.plot([chosen["coancestry"]], [chosen["gain"]], "o", color=plots.SERIES[1], markersize=6)
        axes.set_ylabel(f"gain in {unit}")
        axes.grid(axis="y")

    title = "Gain against coancestry"
    return title, figures.draw(paint, title, caption, x_label="mean coancestry of the parents"), caption


def _frontier_table(made: Contributions) -> Table:
    frontier = made.frontier
    spread = as_number(frontier["gain"].std())
    coancestry_help = "mean of the parents: expected inbreeding of the progeny"
    rate_help = "increase over equal contributions, of what is left to 1"
    columns = [
        number_column("Coancestry", frontier["coancestry"], 4, coancestry_help),
        number_column("Rate, %", percent(frontier["rate"]), 2, rate_help),
        number_column("Gain", frontier["gain"], decimals(spread, 3), "over the mean of the candidates"),
        number_column("Parents", frontier["parents"]),
        text_column("Plan", ["chosen" if is_chosen else None for is_chosen in frontier["chosen"]]),
    ]
    return make_table("The frontier", columns, "The last row has no limit of coancestry.")


def _plans(made: Contributions) -> Table:
    plans = made.plans
    places = decimals(as_number(plans["gain_sd"].max()) or as_number(plans["gain"].max()), 3)
    columns = [
        text_column("Plan", [PLANS[name] for name in plans["plan"]]),
        number_column("Gain", plans["gain"], places, "mean over the mean of the candidates"),
        number_column("SD", plans["gain_sd"], places, "over the draws"),
        number_column("5 %", plans["gain_low"], places, "of the draws are lower"),
        number_column("95 %", plans["gain_high"], places, "of the draws are lower"),
        number_column("Worst draws", plans["gain_worst"], places, "mean gain of the worst draws"),
        number_column("Coancestry", plans["coancestry"], 4),
        number_column("Parents", plans["parents"]),
    ]
    return drop_empty_columns(make_table("Plans", columns))


def _parents(made: Contributions, sex: str | None, name: str) -> Table:
    of_sex = made.candidates.filter(pl.col("sex").eq_missing(pl.lit(sex)))
    chosen = of_sex.filter((pl.col("contribution") > 0) | (pl.col("matings") > 0)).head(SHOWN_PARENTS)
    n_parents = of_sex.filter(pl.col("matings") > 0).height
    places = decimals(as_number(of_sex["value"].std()), 3)
    columns = [
        number_column("Order", range(1, chosen.height + 1)),
        text_column("Candidate", chosen["id"], "id"),
        number_column("Value", chosen["value"], places, "posterior mean"),
        number_column("Contribution, %", percent(chosen["contribution"]), 2, "of all candidates"),
        number_column("Matings", chosen["matings"]),
    ]
    if made.facts["draws"]:
        robust, mean, low, high = (
            percent(chosen[column])
            for column in ("robust_contribution", "mean_of_draws", "low_of_draws", "high_of_draws")
        )
        columns += [
            number_column("Robust, %", robust, 2, "contribution in the robust plan"),
            number_column("Of draws, %", mean, 2, "mean contribution over the draws"),
            number_column("P(parent)", chosen["p_selected"], 2, "share of the draws that use the candidate"),
            bar_column("5 to 95 % of the draws", bars(mean, low, high)),
        ]
    return make_table(
        f"The {name} with the largest contributions",
        columns,
        f"{n_parents:,} {name} have matings, of {of_sex.height:,} candidates.",
        "candidates.parquet has all of them." if chosen.height < of_sex.height else "",
    )


def _pairs(made: Contributions) -> Table:
    pairs = made.matings.head(SHOWN_PAIRS)
    columns = [
        text_column("Sire", pairs["sire"], "id"),
        text_column("Dam", pairs["dam"], "id"),
        number_column("Matings", pairs["matings"]),
        number_column("Inbreeding", pairs["inbreeding"], 4, "expected of the progeny"),
        text_column("Made", ["already" if is_made else None for is_made in pairs["made"]]),
    ]
    return make_table(
        "Matings",
        columns,
        f"Mean inbreeding of the progeny {mean_inbreeding(made):.4f}; of the same parents mated at random "
        f"{made.facts['inbreeding_at_random']:.4f}.",
        describe_shown_rows(pairs.height, made.matings.height, "matings.parquet", "pairs"),
    )
