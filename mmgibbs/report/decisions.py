"""Whom to select, on the page of a run: the best candidates and the response to selection."""

from __future__ import annotations

import polars as pl

from mmgibbs.report.finished import Finished
from mmgibbs.report.html_tables import Column, Table, as_number, bars, counts, decimals, known, numbers


def decision_tables(run: Finished, most: int) -> list[dict]:
    """Per criterion: the `most` candidates with the highest posterior means, and the response to selection."""
    if run.decisions is None or run.response is None:
        return []
    out = []
    for criterion in run.decisions["criterion"].unique(maintain_order=True):
        frame, response = (f.filter(criterion=criterion) for f in (run.decisions, run.response))
        out.append(
            {
                "label": criterion,
                "candidates": _candidates(frame, criterion, most),
                "response": _response(response, criterion),
            }
        )
    return out


def _candidates(frame: pl.DataFrame, criterion: str, most: int) -> Table:
    chosen = frame.sort("mean", descending=True, maintain_order=True).head(most)
    low, median, high = (chosen[f"rank_{name}"].to_list() for name in ("low", "median", "high"))
    last = max(high, default=1)
    places = decimals(as_number(chosen["sd"].median()))
    columns = [
        Column("Order", "number", "by the posterior mean"),
        Column("Candidate", "id"),
        Column("Mean", "number", "posterior mean of the breeding value, or of the index"),
        Column("SD", "number", "posterior standard deviation"),
    ]
    cells = [
        counts(range(1, chosen.height + 1)),
        chosen["level"].to_list(),
        *(numbers(chosen[c].to_list(), places) for c in ("mean", "sd")),
    ]
    for name in (c for c in chosen.columns if c.startswith("p_top_")):
        columns.append(Column(f"P(best {name.removeprefix('p_top_')} %)", "number", "probability to be among them"))
        cells.append(numbers(chosen[name].to_list(), 3))
    columns += [
        Column("From", "number", "first rank of the interval"),
        Column("Rank", "number", "median over the draws"),
        Column("To", "number", "last rank of the interval"),
        Column(f"Rank interval, 1 to {last:,}", "bar"),
    ]
    cells += [counts(low), counts(median), counts(high), bars(median, low, high, (1, last))]
    note = (
        f"{chosen.height:,} of {frame.height:,} candidates; decisions.parquet has all of them. "
        if chosen.height < frame.height
        else ""
    )
    note += "Rank is the median over the draws; From and To are the ends of its interval."
    return Table(
        f"{criterion}: the {chosen.height:,} candidates with the highest means",
        columns,
        list(zip(*cells, strict=True)),
        note,
    )


def _response(frame: pl.DataFrame, criterion: str) -> Table:
    places = decimals(as_number(frame["perfect_sd"].median()))
    columns = [
        Column("Best %", "number"),
        Column("Selected", "number"),
        Column("By mean", "number", "posterior mean of the gain of those with the highest posterior means"),
        Column("By P(best)", "number", "of those most probably among the best"),
        Column(
            "Perfect knowledge", "number", "of those that are the best in each draw: the upper limit of any selection"
        ),
        Column("SD", "number", "posterior standard deviation of the gain with perfect knowledge"),
        Column("Attained %", "number", "gain by mean in per cent of that with perfect knowledge"),
    ]
    attained = [
        100 * a / b if known(a) and known(b) and b > 0 else None
        for a, b in frame.select("by_mean", "perfect").iter_rows()
    ]
    tops = frame["top"].to_list()
    cells = [
        numbers(tops, [0 if t == int(t) else 2 for t in tops]),
        counts(frame["selected"].to_list()),
        *(numbers(frame[c].to_list(), places) for c in ("by_mean", "by_p_top", "perfect", "perfect_sd")),
        counts(attained),
    ]
    return Table(
        f"{criterion}: expected response to selection",
        columns,
        list(zip(*cells, strict=True)),
        "By mean, by P(best) and with perfect knowledge: the mean of the selected candidates minus the mean of all, in "
        f"the unit of {criterion}. Perfect knowledge selects the best of each draw, the upper limit of any selection; "
        "attained is the gain by mean in per cent of it. The SD is that of the gain with perfect knowledge; those of "
        "the other gains would need the draws of every candidate.",
    )
