"""Curves over covariates on the page, and the effective dimensions of curves and field trends."""

from __future__ import annotations

from typing import Any

import polars as pl

from mmgibbs.report import plots
from mmgibbs.report.finished import Finished
from mmgibbs.report.html_tables import NORMAL_95, Column, Table, counted, counts, figure, numbers

MAX_CLASSES = 12  # of which there is a figure


def smooths_section(run: Finished, figures: plots.Figures) -> list[dict[str, Any]]:
    """A figure of each class, of each term and trait."""
    if run.smooths is None:
        return []
    curves = run.smooths.partition_by("term", "trait", maintain_order=True)
    return [_item(curve, figures) for curve in curves]


def _item(curve: pl.DataFrame, figures: plots.Figures) -> dict[str, Any]:
    term, trait, covariate = (str(curve[name][0]) for name in ("term", "trait", "covariate"))
    classes = curve.partition_by("class", maintain_order=True)
    many = len(classes) > MAX_CLASSES
    return {
        "label": f"{trait} along {covariate}: {term}",
        "words": f"The first {MAX_CLASSES} of {counted(len(classes), 'curve')} are shown; smooths.parquet has all."
        if many
        else "",
        "figures": [_figure(of_class, term, trait, covariate, figures) for of_class in classes[:MAX_CLASSES]],
    }


def _figure(curve: pl.DataFrame, term: str, trait: str, covariate: str, figures: plots.Figures) -> tuple[str, str, str]:
    name = str(curve["class"][0])
    x, mean, sd = (curve[column].to_numpy() for column in ("at", "mean", "sd"))
    high, low = int(mean.argmax()), int(mean.argmin())
    caption = (
        f"Mean of {trait} along {covariate} (right): the highest is {figure(float(mean[high]))} at "
        f"{figure(float(x[high]))}, the lowest {figure(float(mean[low]))} at {figure(float(x[low]))}. The band is the "
        "95 % interval at each point."
    )
    title = f"Curve of {term}, {trait}" + (f" in {name}" if name else "")
    half = NORMAL_95 * sd
    paint = plots.paint_by_year(x, mean, mean - half, mean + half, integer_years=False)
    return (
        name or f"{trait} along {covariate}",
        figures.draw(paint, title, caption, x_label="covariate of the curve"),
        caption,
    )


def dimensions_table(run: Finished) -> Table | None:
    """Effective dimensions; None for a run without curves and field trends."""
    dimensions = run.record.get("effective_dimensions") or {}
    rows = [
        (term, component, of["effective"], of["points"])
        for term, of_term in dimensions.items()
        for component, of in of_term.items()
    ]
    if not rows:
        return None
    terms, components, effective, points = zip(*rows, strict=True)
    cells = [terms, components, numbers(effective, 1), counts(points)]
    columns = [
        Column("Effect", "id"),
        Column("Trait", "id"),
        Column("Effective dimension", "number", "parameters that the data give the effect"),
        Column("Points", "number", "of the curve or field"),
    ]
    note = "Near 0 the effect is shrunken to nothing, near the number of points it follows every point."
    if not run.solved:
        note += " At the posterior means of the variances."
    return Table("Effective dimensions", columns, list(zip(*cells, strict=True)), note)
