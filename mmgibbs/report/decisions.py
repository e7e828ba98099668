"""Whom to select, on the page of a run: the best candidates and the response to selection."""

from __future__ import annotations

import polars as pl

from mmgibbs.report.finished import Finished
from mmgibbs.report.html_tables import (
    Table,
    as_number,
    bar_column,
    bars,
    decimals,
    describe_shown_rows,
    known,
    make_table,
    number_column,
    text_column,
)


def decision_tables(run: Finished, most: int) -> list[dict]:
    """Make for each criterion the table of the `most` candidates with the highest means, and the response."""
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
    last = max(chosen["rank_high"], default=1)
    places = decimals(as_number(chosen["sd"].median()))
    ranks = bars(chosen["rank_median"], chosen["rank_low"], chosen["rank_high"], (1, last))
    columns = [
        number_column("Order", range(1, chosen.height + 1), help="by the posterior mean"),
        text_column("Candidate", chosen["level"], "id"),
        number_column("Mean", chosen["mean"], places, "posterior mean of the breeding value, or of the index"),
        number_column("SD", chosen["sd"], places, "posterior standard deviation"),
        *(
            number_column(f"P(best {name.removeprefix('p_top_')} %)", chosen[name], 3, "probability to be among them")
            for name in chosen.columns
            if name.startswith("p_top_")
        ),
        number_column("From", chosen["rank_low"], help="first rank of the interval"),
        number_column("Rank", chosen["rank_median"], help="median over the draws"),
        number_column("To", chosen["rank_high"], help="last rank of the interval"),
        bar_column(f"Rank interval, 1 to {last:,}", ranks),
    ]
    return make_table(
        f"{criterion}: the {chosen.height:,} candidates with the highest means",
        columns,
        describe_shown_rows(chosen.height, frame.height, "decisions.parquet", "candidates"),
        "Rank is the median over the draws; From and To are the ends of its interval.",
    )


def _response(frame: pl.DataFrame, criterion: str) -> Table:
    places = decimals(as_number(frame["perfect_sd"].median()))
    attained = [
        100 * a / b if known(a) and known(b) and b > 0 else None
        for a, b in frame.select("by_mean", "perfect").iter_rows()
    ]
    mean_help = "posterior mean of the gain of those with the highest posterior means"
    best_help = "of those that are the best in each draw: the upper limit of any selection"
    attained_help = "gain by mean in per cent of that with perfect knowledge"
    columns = [
        number_column("Best %", frame["top"], [0 if t == int(t) else 2 for t in frame["top"]]),
        number_column("Selected", frame["selected"]),
        number_column("By mean", frame["by_mean"], places, mean_help),
        number_column("By P(best)", frame["by_p_top"], places, "of those most probably among the best"),
        number_column("Perfect knowledge", frame["perfect"], places, best_help),
        number_column(
            "SD", frame["perfect_sd"], places, "posterior standard deviation of the gain with perfect knowledge"
        ),
        number_column("Attained %", attained, help=attained_help),
    ]
    return make_table(
        f"{criterion}: expected response to selection",
        columns,
        "By mean, by P(best) and with perfect knowledge: the mean of the selected candidates minus the mean of all, in "
        f"the unit of {criterion}. Perfect knowledge selects the best of each draw, the upper limit of any selection; "
        "attained is the gain by mean in per cent of it. The SD is that of the gain with perfect knowledge; those of "
        "the other gains would need the draws of every candidate.",
    )
