"""Curves on the page: variances along the covariate of a random regression, and effects along a covariate."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from mmgibbs.report import plots
from mmgibbs.report.finished import Finished
from mmgibbs.report.html_tables import (
    NORMAL_95,
    FilledColumn,
    Table,
    count_decimals,
    decimals,
    describe_first,
    figure,
    listed,
    make_table,
    number,
    number_column,
    text_column,
)
from mmgibbs.results.curves import PARENTS as PARENTS  # noqa: PLC0414  columns that the page speaks of
from mmgibbs.results.curves import POINTS, LegendreCurve, variance_curves

SHOWN = 5  # points in the table, evenly spaced; curves.parquet has all
MOST = 2000  # draws


def curves_of_variance(run: Finished, figures: plots.Figures) -> list[dict[str, Any]]:
    """Figures and a table of each curve of results/curves.py."""
    if not run.relationships:  # of a regression, whose draws may take gigabytes
        return []
    draws = {name: _some(values) for name, values in run.draws.items()}
    out = []
    for curve in variance_curves(run.record, draws):
        heading = "Genetic variance" if curve.is_genetic else "Variance"
        parts = curve.variance, curve.heritability, curve.counted
        out.append(_item(curve.curve, curve.x, heading, *parts, figures, run.solved))
    return out


def _some(values: np.ndarray) -> np.ndarray:
    """(draws,) of all chains, an even sample of them."""
    return plots.thin_values(values.reshape(-1), MOST)


def _item(
    curve: LegendreCurve,
    x: np.ndarray,
    of_variance: str,
    variance: np.ndarray,
    share: np.ndarray | None,
    counted: list[str],
    figures: plots.Figures,
    solved: bool,
) -> dict[str, Any]:
    of = f"{curve.name}, {curve.trait}"
    drawn = [_figure(of_variance, of, curve, x, variance, "", figures)]
    at = np.linspace(0, POINTS - 1, SHOWN).astype(int)
    columns = [
        number_column(curve.column, x[at].tolist(), max(count_decimals(float(round(v, 6)), None) for v in x[at])),
        *_columns("Variance", variance[:, at], solved),
    ]
    if share is not None:
        parts = f"It is the variance of {curve.name} divided by the sum of those of {listed(counted, most=12)}."
        drawn.append(_figure("Heritability", of, curve, x, share, parts, figures))
        columns += _columns("Heritability", share[:, at], solved)
    note = "Means of the draws; low and high: 2.5 % and 97.5 % of them." if len(variance) > 1 else ""
    table = make_table(f"{of}: variances along {curve.column}", columns, note)
    return {"label": f"{of}, along {curve.column}", "figures": drawn, "table": table}


def _columns(heading: str, values: np.ndarray, solved: bool) -> list[FilledColumn]:
    """values (draws, points); of a single one there is no interval."""
    mean = values.mean(axis=0)
    if len(values) == 1:
        places = 3 if heading == "Heritability" else decimals(float(abs(mean).max()), 3)
        return [number_column(heading, mean.tolist(), places, "at the variances above" if solved else "")]
    low, high = np.percentile(values, (2.5, 97.5), axis=0)
    places = 3 if heading == "Heritability" else decimals(float(np.median(values.std(axis=0))))
    named = {heading: mean, f"{heading}, low": low, f"{heading}, high": high}
    return [number_column(name, column.tolist(), places) for name, column in named.items()]


def _figure(
    heading: str, of: str, curve: LegendreCurve, x: np.ndarray, values: np.ndarray, more: str, figures: plots.Figures
) -> tuple[str, str, str]:
    middle = values.mean(axis=0)
    low, high = np.percentile(values, (2.5, 97.5), axis=0)
    places = 2 if heading == "Heritability" else decimals(float(np.ptp(middle) or abs(middle).max()))
    of_x = [number(float(v), count_decimals(float(round(v, 6)), None)) for v in (x[0], x[-1], x[int(middle.argmax())])]
    at = [number(float(v), places) for v in (middle[0], middle[-1], middle.max())]
    caption = (
        f"{heading} along {curve.column} (right): from {at[0]} at {of_x[0]} to {at[1]} at {of_x[1]}; the highest is "
        f"{at[2]} at {of_x[2]}."
    )
    band = "The band is the 95 % interval at each point." if len(values) > 1 else ""
    caption = " ".join(filter(None, (caption, more, band)))
    ceiling = 1.0 if heading == "Heritability" else None
    paint = plots.paint_by_year(x, middle, low, high, 0.0, ceiling, integer_years=False)
    name = f"{heading} along {curve.column}"
    return name, figures.draw(paint, f"{name}, {of}", caption, x_label="covariate of the curve"), caption


MAX_CLASSES = 12  # of which there is a figure


def smooths_section(run: Finished, figures: plots.Figures) -> list[dict[str, Any]]:
    """A figure of each class, of each term and trait."""
    if run.smooths is None:
        return []
    curves = run.smooths.partition_by("term", "trait", maintain_order=True)
    return [_smooth_item(curve, figures) for curve in curves]


def _smooth_item(curve: pl.DataFrame, figures: plots.Figures) -> dict[str, Any]:
    term, trait, covariate = (str(curve[name][0]) for name in ("term", "trait", "covariate"))
    classes = curve.partition_by("class", maintain_order=True)
    return {
        "label": f"{trait} along {covariate}: {term}",
        "words": describe_first(MAX_CLASSES, len(classes), "curve", "smooths.parquet"),
        "figures": [_smooth_figure(of_class, term, trait, covariate, figures) for of_class in classes[:MAX_CLASSES]],
    }


def _smooth_figure(
    curve: pl.DataFrame, term: str, trait: str, covariate: str, figures: plots.Figures
) -> tuple[str, str, str]:
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
    heading = name or f"{trait} along {covariate}"
    return figures.draw_item(heading, paint, title, caption, x_label="covariate of the curve")


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
    columns = [
        text_column("Effect", terms, "id"),
        text_column("Trait", components, "id"),
        number_column("Effective dimension", effective, 1, "parameters that the data give the effect"),
        number_column("Points", points, help="of the curve or field"),
    ]
    return make_table(
        "Effective dimensions",
        columns,
        "Near 0 the effect is shrunken to nothing, near the number of points it follows every point.",
        "" if run.solved else "At the posterior means of the variances.",
    )
