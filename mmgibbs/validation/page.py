"""validation.html: the statistics of a validation with a scatter of each prediction, on the machinery of the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from mmgibbs.report import plots
from mmgibbs.report.html_tables import (
    Table,
    cell_column,
    decimals,
    figure,
    known,
    make_table,
    marked,
    note_if_marked,
    number,
    number_column,
    numbers,
    text_column,
)
from mmgibbs.report.render import render
from mmgibbs.validation.evaluation import label
from mmgibbs.validation.kfold import EVERY_EFFECT_AND_FIXED, EXPECTED
from mmgibbs.validation.results import FROM_SIMULATION
from mmgibbs.validation.words import (
    NAMES,
    equations,
    explain_statistics,
    finished_text,
    models_words,
    relationships_words,
    solution_text,
    variance_table,
)

if TYPE_CHECKING:
    from mmgibbs.validation.results import Validation


MARKED_STANDARD_ERRORS = 3.0  # standard errors from what is expected: marked
MOST_POINTS = 1500
LEAST = 20  # records of a class of a calibration curve
IF_RIGHT = "what the estimate would be, on average, if the model is right{}; empty where it is not known"
OVER_SETS = f" (where the standard error is from {FROM_SIMULATION}, the mean over the sets of simulated records)"
OF_N = {"kfold": ("n", "records that are predicted"), "lr": ("n", "animals, or other levels, that are compared")}
PARTIAL_AND_WHOLE = (
    "Breeding values of the focal animals from partial data, without the records that are left out, against those from "
    "whole data, with all records."
)
OF_Z = ("z", "estimate minus what is expected, in standard errors")
METHODS = {
    "kfold": ("Cross-validation", "Prediction without the fold", "record corrected for fixed effects"),
    "lr": (
        "LR method: whole against partial data",
        "Breeding value from partial data",
        "breeding value from whole data",
    ),
}


def write_page(validation: Validation, path: Path) -> Path:
    """Write the page and return its path."""
    return render("validation.html.j2", page(validation), path)


def page(validation: Validation) -> dict:
    """Prepare the values that the template shows."""
    figures, info = plots.Figures(), validation.info
    sections = []
    for method, (heading, x, y) in METHODS.items():
        table = validation.table.filter(method=method)
        if table.height:
            summary = kfold_summary(info, table) if method == "kfold" else f"{lr_summary(info)} {PARTIAL_AND_WHOLE}"
            predictions = validation.predictions.filter(method=method)
            summary += lines_explained(predictions["effect"])
            shown = [_figure(figures, rows, x, y) for rows in _parts(predictions)]
            sections.append(
                {
                    "id": method,
                    "heading": heading,
                    "summary": summary,
                    "figures": shown,
                    "table": statistics_table(table),
                    "explained": explain_statistics(method, table["statistic"].to_list()) + columns_explained(table),
                }
            )
    return {
        "title": f"Validation of {info['analysis']}",
        "subtitle": f"{info['records']:,} records, {solution_text(info)}",
        "finished": finished_text(validation.head),
        "models": [("", sums)] if (sums := equations(validation.head)) else [],
        "models_words": models_words([validation.head]),
        "relationships": relationships_words([validation.head]),
        "differences": None,
        "variances": variance_table(info.get("variances"), validation.head.get("components", {})),
        "sections": sections,
        "notes": info["notes"],
        "errors": [
            (name, caption)
            for name, caption in info["standard_errors"].items()
            if name in set(validation.table["se_from"])
        ],
    }


def columns_explained(table: pl.DataFrame) -> list[tuple[str, str]]:
    """Explain the columns beside the estimates."""
    simulated = FROM_SIMULATION in table["se_from"].to_list()
    return [("expected", IF_RIGHT.format(OVER_SETS if simulated else "")), OF_Z, OF_N[table["method"][0]]]


def kfold_summary(info: dict, table: pl.DataFrame | None = None) -> str:
    """table: the statistics below; of those that have an expectation elsewhere, notes say why one has none."""
    plan, folds = info["plan"], info["folds"]
    of_time = (
        f"birth years of {info['units']} with records"
        if plan.get("time") is None
        else f"values of column '{plan['time']}'"
    )
    by = {
        "random": f"{info['units']} at random",
        "family": "half-sib families by sire" + ("" if info["units"] == "animals" else f" of the {info['units']}"),
        "time": f"one for each of the last {of_time}, predicted from the records before it",
        "cell": f"{info['units']} in one environment, at random",
        "column": f"the values of column '{plan.get('column')}'",
    }
    sizes = [f["predicted"] for f in folds]
    unexpected = table is not None and table.filter(pl.col("statistic").is_in(list(EXPECTED)))["expected"].null_count()
    blank = unexpected and any(note.startswith("cross-validation") for note in info["notes"])
    return f"{len(folds)} folds, {by[plan['by']]}; {_range(sizes)} records in a fold." + (
        " Why nothing is expected of some dispersions or biases the notes at the end say." if blank else ""
    )


def _range(sizes: list[int]) -> str:
    low, high = min(sizes), max(sizes)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def lr_summary(info: dict) -> str:
    facts = info["lr"]
    since = "" if facts["cutoff"] is None else f" of {info['units']} born from {facts['cutoff']:.15g} on"
    focal = f"{facts['focal_animals']:,} focal {info['units']} of {facts['families']:,} half-sib families"
    return f"{facts['left_out']:,} records{since} left out; {focal} are compared."


def _parts(predictions: pl.DataFrame) -> list[pl.DataFrame]:
    return predictions.partition_by("term", "effect", "trait", maintain_order=True)


def statistics_table(table: pl.DataFrame) -> Table:
    """A row per statistic; estimates more than MARKED_STANDARD_ERRORS from what is expected are marked."""
    places = [decimals(se) if known(se) else 3 for se in table["se"]]
    z = [
        None if None in (e, s, x) or s == 0 else (e - x) / s
        for e, s, x in table.select("estimate", "se", "expected").iter_rows()
    ]
    of_z = marked(numbers(z, 1), lambda v: abs(v) > MARKED_STANDARD_ERRORS)
    labels = [label(*names) for names in table.select("term", "effect", "trait").iter_rows()]
    columns = [
        text_column("Effect and trait", labels),
        text_column("Statistic", [NAMES.get(s, s) for s in table["statistic"]]),
        number_column("Estimate", table["estimate"], places),
        number_column("Standard error", table["se"], places),
        number_column("Expected", table["expected"], places),
        cell_column("z", of_z, "estimate less expected, in standard errors"),
        text_column("Standard error from", table["se_from"]),
        number_column("n", table["n"]),
    ]
    note = note_if_marked(of_z, f"Marked: more than {MARKED_STANDARD_ERRORS:g} standard errors from what is expected.")
    return make_table("Statistics", columns, note)


def lines_explained(effects: pl.Series) -> str:
    """Explain the lines of the figures: of regressions, of calibration curves, or of both; '' without figures."""
    calibrated = effects.str.starts_with("P(")
    lines = ["regression"] * (not calibrated.all()) + ["the observed shares"] * bool(calibrated.any())
    return f" Solid line: {', or of probabilities '.join(lines)}; dashed: equality." if lines else ""


def _figure(figures: plots.Figures, rows: pl.DataFrame, x_label: str, y_label: str) -> tuple[str, str, str]:
    """(heading, svg, caption)."""
    x, y = rows["predicted"].to_numpy(), rows["observed"].to_numpy()
    name = label(*rows.select("term", "effect", "trait").row(0))
    if rows["method"][0] == "kfold" and rows["term"][0] == EVERY_EFFECT_AND_FIXED:
        y_label = "record"  # counts and known times are predicted whole: nothing is taken off them
    if rows["effect"][0].startswith("P("):
        return calibration(figures, name, x, y)
    known_ones = np.isfinite(y)  # of censored records there is nothing to draw
    x, y = x[known_ones], y[known_ones]
    if len(x) < 2:
        return name, "", "Every record is censored: there is nothing to draw."
    slope = float(np.cov(x, y)[0, 1] / x.var(ddof=1)) if x.std() > 0 else None
    caption = "The predictions do not vary."
    if slope is not None:
        correlation = float(np.corrcoef(x, y)[0, 1])
        caption = f"Regression {figure(slope)}, correlation {number(correlation, 2)}, over all {len(x):,} points"
        drawn = len(x[:: every_drawn(len(x))])
        caption += f", of which {drawn:,} are drawn" if drawn < len(x) else ""
        caption += "; the table has means over folds." if rows["method"][0] == "kfold" else "."
    svg = figures.draw(
        paint_regression(x, y, slope), name, f"{y_label} against {x_label}. {caption}", x_label=x_label, size=plots.SIZE
    )
    return name, svg, f"{y_label[0].upper()}{y_label[1:]} against {x_label[0].lower()}{x_label[1:]}. {caption}"


def calibration_curve(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(classes, 5): mean prediction, share observed, low and high of its 95 % interval if p is right, records.

    Classes of equal size by predicted probability, of at least LEAST records, at most ten. The interval is that of the
    mean of independent records with these very probabilities.
    """
    order = np.argsort(p, kind="stable")
    groups = np.array_split(order, int(np.clip(len(p) // LEAST, 1, 10)))
    rows = []
    for group in groups:
        mean, half = p[group].mean(), 1.96 * np.sqrt((p[group] * (1 - p[group])).sum()) / group.size
        rows.append((mean, y[group].mean(), max(0.0, mean - half), min(1.0, mean + half), group.size))
    return np.array(rows)


def calibration(figures: plots.Figures, name: str, p: np.ndarray, y: np.ndarray) -> tuple[str, str, str]:
    """(heading, svg, caption) of the calibration curve."""
    curve = calibration_curve(p, y)
    outside = int(((curve[:, 1] < curve[:, 2]) | (curve[:, 1] > curve[:, 3])).sum())
    caption = (
        f"Share observed against predicted probability, in {len(curve)} classes of {int(curve[:, 4].min()):,} or more "
        f"records. Bars: where 95 % of the shares lie if the probabilities are right; {outside} of {len(curve)} are "
        "outside."
    )
    svg = figures.draw(paint_calibration(curve), name, caption, x_label="Predicted probability", size=plots.SIZE)
    return name, svg, caption


@plots.painter
def paint_calibration(axes: Axes, curve: np.ndarray) -> None:
    """The line of equality, dashed; intervals about it, and the observed shares, joined."""
    x, y, low, high, _ = curve.T
    ends = [min(x.min(), y.min(), low.min()), max(x.max(), y.max(), high.max())]
    axes.plot(ends, ends, color=plots.INK, linewidth=0.8, dashes=(4, 3))
    axes.vlines(x, low, high, color=plots.SERIES[0], linewidth=3.5, alpha=0.45)
    axes.plot(x, y, "o-", color=plots.SERIES[1], linewidth=1.2, markersize=3.5)
    axes.grid()


def every_drawn(points: int) -> int:
    """1 where all points of a figure are drawn, 2 where every second one is, and so on."""
    return max(1, -(-points // MOST_POINTS))


@plots.painter
def paint_regression(axes: Axes, x: np.ndarray, y: np.ndarray, slope: float | None) -> None:
    """Points, of many an even sample; the line of equality, dashed, and the regression of y on x."""
    every, ends = slice(None, None, every_drawn(len(x))), np.array([x.min(), x.max()])
    axes.plot(x[every], y[every], "o", color=plots.SERIES[0], markersize=1.6, alpha=0.5, markeredgewidth=0)
    axes.plot(ends, ends, color=plots.INK, linewidth=0.8, dashes=(4, 3))
    if slope is not None:
        axes.plot(ends, y.mean() + slope * (ends - x.mean()), color=plots.SERIES[1], linewidth=1.6)
    axes.grid()
