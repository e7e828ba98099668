"""Matrices with common factors: loadings, specific variances, explained shares, and the scores of levels."""

from __future__ import annotations

from typing import Any

import polars as pl

from mmgibbs.report import plots
from mmgibbs.report.finished import Finished
from mmgibbs.report.html_tables import Column, Number, Table, decimals, figure, known, number, numbers
from mmgibbs.results.factor_scores import read_factors
from mmgibbs.results.tables import was_drawn


def is_of_factors(parameter: str) -> bool:
    """Check whether a parameter is in these tables, and so not in those of other parameters."""
    kind, _, rest = parameter.partition("[")
    return bool(rest) and kind.endswith((".loading", ".specific", ".explained", ".factors"))


def factor_tables(summary: pl.DataFrame) -> list[Table]:
    """Make the tables of factors in the order of the summary."""
    values = {name: (mean, sd) for name, mean, sd in summary.select("parameter", "mean", "sd").iter_rows()}
    drawn = was_drawn(summary)
    return [
        _table(term, factors.components, factors.loadings.shape[1], values, drawn)
        for term, factors in read_factors(summary).items()
    ]


def _table(
    term: str, components: list[str], factors: int, values: dict[str, tuple[float | None, float | None]], drawn: bool
) -> Table:
    numbers, has_specific = range(1, factors + 1), f"{term}.specific[{components[0]}]" in values
    columns = [Column("Component"), *(Column(f"Factor {j}", "number") for j in numbers)]
    if has_specific:
        columns += [
            Column("Specific variance", "number"),
            Column("Explained, %", "number", "share of the variance of the component that the factors explain"),
        ]
    rows: list[list[Any]] = []
    for label in components:
        rows.append([label, *(_with_error(*values[f"{term}.loading[{label}:{j}]"]) for j in numbers)])
        if has_specific:
            explained = _per_cent(values[f"{term}.explained[{label}]"][0])
            rows[-1] += [_with_error(*values[f"{term}.specific[{label}]"]), explained]
    of_all = [_per_cent(values[f"{term}.explained[{j}]"][0]) for j in numbers]
    rows.append(["All, %", *of_all, *([None, None] if has_specific else [])])
    error = "posterior standard deviation" if drawn else "standard error"
    note = (
        f"Each with its {error}. Factors are turned to principal axes: the first explains most of all variances "
        "together, the second most of the rest. The last row has what each explains of their sum."
    )
    numbered = [(j, values.get(f"{term}.factors[{j}]", (None, None))[0]) for j in range(factors)]
    shares = [f"{j} active: {number(100 * p, 1)} %" for j, p in numbered if known(p)]
    if shares:
        note += f" Posterior probability of the number of active factors: {', '.join(shares)}. Others are shrunk to 0."
    return Table(f"Factors: {term}", columns, rows, note)


def _with_error(mean: float | None, sd: float | None) -> Number | None:
    if not known(mean):
        return None
    return Number(figure(mean) + (f" ± {figure(sd)}" if known(sd) and sd > 0 else ""), mean)


def _per_cent(share: float | None) -> Number | None:
    return Number(number(100 * share, 1), 100 * share) if known(share) else None


LABELLED = 5  # best levels, in the picture


def performance_section(run: Finished, figures: plots.Figures, top: int) -> list[dict[str, Any]]:
    """Make an item for each term with factors; top: rows of a table."""
    if run.factor_scores is None:
        return []
    terms = run.factor_scores.partition_by("term", maintain_order=True)
    return [{"table": _score_table(frame, top), "figures": _figures(frame, figures)} for frame in terms]


def _score_table(frame: pl.DataFrame, top: int) -> Table:
    term, shown = str(frame["term"][0]), frame.head(top)
    has_stability = frame["stability"].null_count() < frame.height
    values = ["overall_performance", *(["stability"] if has_stability else [])]
    values += [name for name in frame.columns if name.startswith("score_") and frame[name].null_count() < frame.height]
    names = {"overall_performance": "Overall performance", "stability": "Stability"}
    columns = [
        Column("Level", "id"),
        *(Column(names.get(name, f"Score {name.removeprefix('score_')}"), "number") for name in values),
    ]
    cells = [shown["level"].to_list()]
    for name in values:
        spread = float(frame[name].std() or 1.0)  # type: ignore[arg-type]
        cells.append(numbers(shown[name].to_list(), decimals(spread, 3)))
    note = f"The {shown.height:,} highest of {frame.height:,} levels." if shown.height < frame.height else ""
    return Table(f"Performance: {term}", columns, [list(row) for row in zip(*cells, strict=True)], note)


def _figures(frame: pl.DataFrame, figures: plots.Figures) -> list[tuple[str, str, str]]:
    """Stability by overall performance, where there are two factors."""
    if frame["stability"].null_count():
        return []
    x, y = (frame[name].to_numpy() for name in ("overall_performance", "stability"))
    best = frame.row(0, named=True)
    caption = (
        f"Overall performance (right) and stability (up) of each level. {best['level']} is the highest: "
        f"{figure(best['overall_performance'])}, stability {figure(best['stability'])}."
    )
    title = f"Overall performance and stability of {best['term']}"
    paint = plots.paint_labelled(x, y, frame["level"].to_list()[:LABELLED])
    svg = figures.draw(paint, title, caption, x_label="overall performance", size=(4.4, 2.6))
    return [("Performance and stability", svg, caption)]
