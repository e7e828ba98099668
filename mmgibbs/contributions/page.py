"""contributions.html: the frontier of gain and coancestry, the plans, the parents and the matings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from matplotlib.axes import Axes

from mmgibbs.contributions.words import PLANS, fact_lines, mean_inbreeding
from mmgibbs.report import plots
from mmgibbs.report.html_tables import (
    Column,
    Table,
    as_number,
    bars,
    counts,
    decimals,
    drop_empty_columns,
    figure,
    interval_range,
    numbers,
)
from mmgibbs.report.render import render

if TYPE_CHECKING:
    from mmgibbs.contributions.run import Contributions

SHOWN_PARENTS, SHOWN_PAIRS = 50, 100


def write_page(made: Contributions, path: Path) -> Path:
    """Write the page and return its path."""
    return render("contributions.html.j2", page(made), path)


def page(made: Contributions) -> dict[str, Any]:
    """What the template shows."""
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
    columns = [
        Column("Coancestry", "number", "mean of the parents: expected inbreeding of the progeny"),
        Column("Rate, %", "number", "increase over equal contributions, of what is left to 1"),
        Column("Gain", "number", "over the mean of the candidates"),
        Column("Parents", "number"),
        Column("Plan"),
    ]
    spread = as_number(frontier["gain"].std())
    cells = [
        numbers(frontier["coancestry"].to_list(), 4),
        numbers([100 * rate for rate in frontier["rate"].to_list()], 2),
        numbers(frontier["gain"].to_list(), decimals(spread, 3)),
        counts(frontier["parents"].to_list()),
        ["chosen" if is_chosen else None for is_chosen in frontier["chosen"].to_list()],
    ]
    return Table("The frontier", columns, list(zip(*cells, strict=True)), "The last row has no limit of coancestry.")


def _plans(made: Contributions) -> Table:
    plans = made.plans
    places = decimals(as_number(plans["gain_sd"].max()) or as_number(plans["gain"].max()), 3)
    columns = [
        Column("Plan"),
        Column("Gain", "number", "mean over the mean of the candidates"),
        Column("SD", "number", "over the draws"),
        Column("5 %", "number", "of the draws are lower"),
        Column("95 %", "number", "of the draws are lower"),
        Column("Worst draws", "number", "mean gain of the worst draws"),
        Column("Coancestry", "number"),
        Column("Parents", "number"),
    ]
    names = ("gain", "gain_sd", "gain_low", "gain_high", "gain_worst")
    cells = [
        [PLANS[name] for name in plans["plan"].to_list()],
        *(numbers(plans[name].to_list(), places) for name in names),
        numbers(plans["coancestry"].to_list(), 4),
        counts(plans["parents"].to_list()),
    ]
    return drop_empty_columns(Table("Plans", columns, list(zip(*cells, strict=True))))


def _parents(made: Contributions, sex: str | None, name: str) -> Table:
    of_sex = made.candidates.filter(pl.col("sex").eq_missing(pl.lit(sex)))
    chosen = of_sex.filter((pl.col("contribution") > 0) | (pl.col("matings") > 0)).head(SHOWN_PARENTS)
    n_parents = of_sex.filter(pl.col("matings") > 0).height
    percent = lambda column: [None if c is None else 100 * c for c in chosen[column].to_list()]
    columns = [
        Column("Order", "number"),
        Column("Candidate", "id"),
        Column("Value", "number", "posterior mean"),
        Column("Contribution, %", "number", "of all candidates"),
        Column("Matings", "number"),
    ]
    cells: list[Any] = [
        counts(range(1, chosen.height + 1)),
        chosen["id"].to_list(),
        numbers(chosen["value"].to_list(), decimals(as_number(of_sex["value"].std()), 3)),
        numbers(percent("contribution"), 2),
        counts(chosen["matings"].to_list()),
    ]
    if made.facts["draws"]:
        low, high = percent("low_of_draws"), percent("high_of_draws")
        columns += [
            Column("Robust, %", "number", "contribution in the robust plan"),
            Column("Of draws, %", "number", "mean contribution over the draws"),
            Column("P(parent)", "number", "share of the draws that use the candidate"),
            Column("5 to 95 % of the draws", "bar"),
        ]
        cells += [
            numbers(percent("robust_contribution"), 2),
            numbers(percent("mean_of_draws"), 2),
            numbers(chosen["p_selected"].to_list(), 2),
            bars(percent("mean_of_draws"), low, high, interval_range(low, high)),
        ]
    note = f"{n_parents:,} {name} have matings, of {of_sex.height:,} candidates."
    note += " candidates.parquet has all of them." if chosen.height < of_sex.height else ""
    caption = f"The {name} with the largest contributions"
    return Table(caption, columns, [list(row) for row in zip(*cells, strict=True)], note)


def _pairs(made: Contributions) -> Table:
    pairs = made.matings.head(SHOWN_PAIRS)
    columns = [
        Column("Sire", "id"),
        Column("Dam", "id"),
        Column("Matings", "number"),
        Column("Inbreeding", "number", "expected of the progeny"),
        Column("Made"),
    ]
    cells = [
        pairs["sire"].to_list(),
        pairs["dam"].to_list(),
        counts(pairs["matings"].to_list()),
        numbers(pairs["inbreeding"].to_list(), 4),
        ["already" if is_made else None for is_made in pairs["made"].to_list()],
    ]
    note = f"Mean inbreeding of the progeny {mean_inbreeding(made):.4f}; of the same parents mated at random "
    note += f"{made.facts['inbreeding_at_random']:.4f}. "
    note += (
        f"{pairs.height:,} of {made.matings.height:,} pairs; matings.parquet has all of them."
        if pairs.height < made.matings.height
        else ""
    )
    return Table("Matings", columns, list(zip(*cells, strict=True)), note.strip())
