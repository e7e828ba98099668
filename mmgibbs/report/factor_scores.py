"""Overall performance and stability of levels on the page: a picture and a table of the best."""

from __future__ import annotations

from typing import Any

import polars as pl

from mmgibbs.report import plots
from mmgibbs.report.finished import Finished
from mmgibbs.report.html_tables import Column, Table, decimals, figure, numbers

LABELLED = 5  # best levels, in the picture


def performance_section(run: Finished, figures: plots.Figures, top: int) -> list[dict[str, Any]]:
    """One item for each term with factors; top: rows of a table."""
    if run.factor_scores is None:
        return []
    terms = run.factor_scores.partition_by("term", maintain_order=True)
    return [{"table": _table(frame, top), "figures": _figures(frame, figures)} for frame in terms]


def _table(frame: pl.DataFrame, top: int) -> Table:
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
