"""Traits in categories and counts on the page: the liability with its thresholds, observed and predicted shares."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from mmgibbs.data.levels import natural_order
from mmgibbs.report import plots
from mmgibbs.report.finished import Finished
from mmgibbs.report.html_tables import (
    Table,
    cell_column,
    figure,
    known,
    listed,
    make_table,
    note_if_marked,
    number,
    number_column,
    numbers,
    text_column,
)


def non_normal_rows(run: Finished, figures: plots.Figures) -> list[dict]:
    """Make for each trait its legend, figures and table of the classes."""
    if run.predicted is None:
        return []
    out = []
    for (trait,), frame in run.predicted.group_by(["trait"], maintain_order=True):
        frame = frame[natural_order(frame["level"])]  # the categories of a level stay in their order
        of = run.record.get("liabilities", {}).get(trait)
        drawn = ([] if of is None else [_liability(str(trait), of, figures)]) + [_classes(str(trait), frame, figures)]
        legend = [(k % len(plots.SERIES) + 1, label) for k, label in enumerate(of["categories"])] if of else []
        out.append({"trait": trait, "legend": legend, "figures": drawn, "table": _table(str(trait), frame)})
    return out


def describe_scales(run: Finished) -> str:
    """Describe the scale of the solutions of these traits, by the kinds of traits that there are; '' without any."""
    if run.predicted is None:
        return ""
    counted = {
        str(trait): frame["category"].null_count() == frame.height
        for (trait,), frame in run.predicted.group_by(["trait"], maintain_order=True)
    }
    of_counts, in_categories = ([trait for trait, is_count in counted.items() if is_count is w] for w in (True, False))
    sentences = []
    if in_categories:
        sentences.append(
            f"The model has a liability behind each record of {listed(in_categories)}. Solutions, variances and h2 are "
            "on its scale; h2_observed is the heritability of the records themselves, and incidence the share of a "
            "category among unrelated animals."
        )
    if of_counts:
        sentences.append(
            f"The model has a log rate behind each count of {listed(of_counts)}, the logarithm of the expected count "
            "(for one unit of exposure, where records have one). Solutions, variances and h2 are on its scale; "
            "h2_observed is the heritability of the counts themselves."
        )
    seen = [*(["shares"] if in_categories else []), *(["mean counts"] if of_counts else [])]
    sentences.append(
        "Records were simulated from the model in every kept draw: if the model fits, the observed "
        f"{' and '.join(seen)} lie within the intervals of these."
    )
    return " ".join(sentences)


def extreme_words(run: Finished) -> list[str]:
    """Levels whose records all lie in one end category, one sentence for each effect and trait."""
    out = []
    for e in run.record.get("extreme_levels", []):
        named = listed([*e["first"], *(["others"] if e["levels"] > len(e["first"]) else [])])
        out.append(
            f"{e['trait']}: all records of {e['levels']:,} of the {e['of']:,} levels of {e['effect']} ({named}) lie in "
            "one end category. The prior decides how large such an effect is, not the data."
        )
    return out


def _liability(trait: str, of: dict, figures: plots.Figures) -> tuple[str, str, str]:
    """The density with the areas of the categories: (heading, SVG, caption)."""
    shares = listed(
        [f"{label} {_percent(p)}" for label, p in zip(of["categories"], of["incidence"], strict=True)], most=12
    )
    free = of["thresholds"][1:]
    caption = f"The liability of {trait} among unrelated animals, and the share of each category: {shares}. "
    caption += f"The {'first threshold' if free else 'threshold'} is 0 and the residual variance 1 by convention"
    remaining_thresholds = "the other is at" if len(free) == 1 else "the others are at"
    caption += f"; {remaining_thresholds} {listed([number(t, 2) for t in free], most=12)}. " if free else ". "
    if known(of["threshold_acceptance"]):
        caption += f"Of the proposed thresholds {_percent(of['threshold_acceptance'])} were accepted. "
    caption += "Drawn as one normal curve at the posterior means."
    paint = plots.paint_categories(of["mean"], of["sd"], of["thresholds"])
    heading = "Liability and thresholds"
    return figures.draw_item(heading, paint, f"{heading} of {trait}", caption, left=0.06, x_label="liability")


def _classes(trait: str, frame: pl.DataFrame, figures: plots.Figures) -> tuple[str, str, str]:
    """Observed and predicted shares by class: (heading, SVG, caption). Of two categories the higher one."""
    shown, levels = _shown(frame), frame["level"].unique(maintain_order=True).to_list()
    grid = {c: shown[c].to_numpy().reshape(len(levels), -1) for c in ("observed", "predicted", "low", "high")}
    outside = int(((grid["observed"] < grid["low"]) | (grid["observed"] > grid["high"])).sum())
    cells, effect = grid["observed"].size, frame["effect"][0]
    what = "Mean counts" if frame["category"].null_count() == frame.height else "Shares of the categories"
    if frame["category"].n_unique() == 2:
        what = f"Shares of {shown['category'][0]}"
    by = f"by {effect}, numbered as in the table" if effect else "of all records"
    caption = f"{what} {by}: dots were observed, bars are 95 % intervals of records simulated from the model. "
    few = figure(0.05 * cells, 1)
    verdict = f"{outside:,} of {cells:,} dots {'lies' if outside == 1 else 'lie'} outside; about {few} are expected to."
    caption += verdict if cells > 1 else f"The dot lies {'outside' if outside else 'inside'} its interval."
    paint, title = plots.paint_observed(**grid, first=_first(frame)), f"Observed and predicted, {trait}"
    x_label = "number in the table" if effect else "all records"  # a name of the user never enters a drawing
    return figures.draw_item("Observed and predicted", paint, title, caption, x_label=x_label)


def _first(frame: pl.DataFrame) -> int:
    """Colour of the first category shown."""
    return 1 if frame["category"].n_unique() == 2 else 0


def _shown(frame: pl.DataFrame) -> pl.DataFrame:
    """Keep the higher one of two categories: the other is 1 less it."""
    labels = frame["category"].unique(maintain_order=True).to_list()
    return frame.filter(category=labels[1]) if len(labels) == 2 else frame


def _table(trait: str, frame: pl.DataFrame) -> Table:
    shown, effect = _shown(frame), frame["effect"][0]
    is_count = frame["category"].null_count() == frame.height
    numbered = {level: i + 1 for i, level in enumerate(frame["level"].unique(maintain_order=True))}
    is_binary = frame["category"].n_unique() == 2
    places = 2 if is_count else 3
    outside = [not low <= seen <= high for seen, low, high in shown.select("observed", "low", "high").iter_rows()]
    cells = numbers(shown["observed"], places)
    observed = [replace(cell, alert=out and cell.value is not None) for cell, out in zip(cells, outside, strict=True)]
    columns = [
        number_column("Number", [numbered[level] for level in shown["level"]]),
        text_column(effect or "Class", shown["level"], "id"),
        number_column("Records", shown["records"]),
    ]
    if not is_count and not is_binary:
        columns.append(text_column("Category", shown["category"]))
    columns += [
        cell_column("Observed", observed),
        number_column("Predicted", shown["predicted"], places, "mean over the draws"),
        number_column("Low", shown["low"], places, "2.5 % of the draws lie below"),
        number_column("High", shown["high"], places, "2.5 % of the draws lie above"),
    ]
    what = (
        "mean counts" if is_count else f"share of {shown['category'][0]}" if is_binary else "shares of the categories"
    )
    return make_table(
        f"{trait}: {what}, observed and predicted",
        columns,
        note_if_marked(observed, "A triangle marks what lies outside its interval."),
        "predicted_classes.csv has this table.",
    )


def _percent(p: float) -> str:
    return f"{figure(100 * p, 2 if p < 0.995 else 3)} %"
