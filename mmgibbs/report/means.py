"""Adjusted means on the page of a run: a table for each effect and trait, best first, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from mmgibbs.report.finished import Finished
from mmgibbs.report.html_tables import (
    Table,
    as_number,
    bar_column,
    bars,
    bars_words,
    decimals,
    figure,
    interval_range,
    make_table,
    normal_intervals,
    number_column,
    text_column,
)

MAX_ROWS = 40  # of a table; means.csv has all


def means_tables(run: Finished) -> list[Table]:
    """Make a table for each effect and trait in `output.means`."""
    if run.means is None:
        return []
    is_drawn = run.record.get("method") == "gibbs"
    return [
        _table(run.means.filter(effect=facts["effect"], trait=facts["trait"]), facts, is_drawn)
        for facts in run.record.get("means", [])
    ]


def _table(frame: pl.DataFrame, facts: Mapping[str, Any], is_drawn: bool) -> Table:
    chosen = frame.sort("mean", descending=True, nulls_last=True, maintain_order=True).head(MAX_ROWS)
    low, high = normal_intervals(chosen["mean"], chosen["se"])
    places = decimals(as_number(chosen["se"].median()))
    limits = interval_range(low, high)
    drawn = bars(chosen["mean"], low, high, limits)
    error = ("SD", "posterior standard deviation") if is_drawn else ("SE", "standard error")
    columns = [
        text_column("Level", chosen["level"], "id"),
        number_column("Records", chosen["records"]),
        number_column("Mean", chosen["mean"], places, "posterior mean" if is_drawn else "estimate"),
        number_column(error[0], chosen["se"], places, error[1]),
        bar_column("95 % interval", drawn),
    ]
    if chosen["reason"].count():
        columns.append(text_column("Why it is blank", chosen["reason"], "wide"))
    words = [*_words(chosen.height, frame.height, facts), *bars_words({"": limits}, drawn, places)]
    return make_table(f"{facts['effect']}: {facts['trait']}", columns, *words)


def _words(shown: int, n: int, facts: Mapping[str, Any]) -> list[str]:
    """Describe how many rows there are, and how exactly differences between them are known."""
    parts = [f"The {shown:,} highest of {n:,} means; means.csv has all of them."] if shown < n else []
    if "sed" in facts:
        sed, t = facts["sed"], facts["freedom"]
        of_t = "" if t is None else f", t with {t:,} degrees of freedom"
        low, high = figure(sed["min"]), figure(sed["max"])
        of_pairs = "" if low == high else f" on average ({low} to {high})"
        parts.append(
            f"Standard error of a difference: {figure(sed['mean'])}{of_pairs}; least significant difference at "
            f"5 %{of_t}: {figure(facts['lsd'])}."
        )
    if "h2_cullis" in facts:
        oakey = f" and {facts['h2_oakey']:.3f} (Oakey)" if "h2_oakey" in facts else ""
        parts.append(f"Heritability of these means: {facts['h2_cullis']:.3f} (Cullis){oakey}.")
    return parts
