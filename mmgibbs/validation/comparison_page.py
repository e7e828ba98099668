"""comparison.html: validations of several analyses side by side."""

from __future__ import annotations

from collections.abc import Sequence
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
    listed,
    make_table,
    marked,
    note_if_marked,
    number_column,
    numbers,
    text_column,
)
from mmgibbs.report.render import render
from mmgibbs.validation.page import MARKED_STANDARD_ERRORS, OF_N, PARTIAL_AND_WHOLE, kfold_summary, lr_summary
from mmgibbs.validation.results import FOLDS_TEXT, Validation, lacking_folds
from mmgibbs.validation.words import (
    NAMES,
    difference_table,
    equations,
    explain_statistics,
    finished_text,
    models_words,
    relationships_words,
)

if TYPE_CHECKING:
    from mmgibbs.validation.results import Comparison


DRAWN = ("predictive_ability", "auc")
HEADINGS = {
    "kfold": (
        "Cross-validation",
        "The most complete prediction of each analysis, for the records that all of them predict and know.",
    ),
    "lr": (
        "LR method: whole against partial data",
        f"{PARTIAL_AND_WHOLE} Standard errors are those of each analysis by itself: all are of the same animals, so "
        "that a difference of two analyses may be surer than their standard errors suggest.",
    ),
}
OF_FOLDS = [
    (
        "differences between analyses",
        "standard deviation over folds of the difference within a fold, divided by the root of the number of folds; "
        "mostly smaller than those of two estimates, as what is hard to predict is so for all analyses",
    ),
    ("estimates of cross-validation", FOLDS_TEXT),
]


def write_page(comparison: Comparison, path: Path) -> Path:
    """Write the page and return its path."""
    return render("validation.html.j2", page(comparison), path)


def page(comparison: Comparison) -> dict:
    """Prepare the values that the template shows."""
    figures, sections = plots.Figures(), []
    for method, (heading, summary) in HEADINGS.items():
        table = comparison.table.filter(method=method)
        if table.height:
            shown = fold_figures(comparison, figures) if method == "kfold" else []
            variables = {"figures": shown, "table": comparison_table(table)}
            z = [("z", "difference from the first analysis, in standard errors of the difference")]
            columns = z * bool(table["difference"].count()) + [OF_N[method]]
            variables["explained"] = explain_statistics(method, table["statistic"].to_list()) + columns
            summary = " ".join([*excluded_sentence(comparison, method), summary])
            sections.append({"id": method, "heading": heading, "summary": summary} | variables)
    return {
        "title": f"Validation of {len(comparison.names)} analyses",
        "subtitle": ", ".join(comparison.names),
        "finished": finished_text(comparison.validations[-1].head),
        "models": (sums := models(comparison)),
        "models_words": models_words([v.head for v in comparison.validations], len(sums) == 1),
        "relationships": relationships_words([v.head for v in comparison.validations]),
        "differences": difference_table(comparison.validations),
        "variances": None,
        "sections": sections,
        "notes": comparison.notes,
        "errors": (OF_FOLDS if comparison.by_fold.height else []) + errors_of_lr(comparison.validations),
    }


def excluded_sentence(comparison: Comparison, method: str) -> list[str]:
    """The sentence of the pages of the analyses, where all have the same; else none."""
    known_ones = [v.info for v in comparison.validations if ("folds" if method == "kfold" else method) in v.info]
    said = {kfold_summary(info) if method == "kfold" else lr_summary(info) for info in known_ones}
    return list(said) if len(said) == 1 else []


def models(comparison: Comparison) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """(names of the analyses, '' where all are meant; their equations): equations that are the same stand once."""
    equations_of_each = [equations(v.head) for v in comparison.validations]
    distinct = [sums for i, sums in enumerate(equations_of_each) if sums and sums not in equations_of_each[:i]]
    of = lambda sums: [
        name for name, sums_of_one in zip(comparison.names, equations_of_each, strict=True) if sums_of_one == sums
    ]
    return [("" if len(of(sums)) == len(equations_of_each) else listed(of(sums)), sums) for sums in distinct]


def errors_of_lr(validations: Sequence[Validation]) -> list[tuple[str, str]]:
    """(statistics, and analyses where not all are meant; where their standard errors come from) of the LR method."""
    analyses: dict[tuple[str, str], list[str]] = {}  # (statistics, source) -> analyses
    for validation in validations:
        known_ones = validation.table.filter(pl.col("se").is_not_null() & pl.col("se_from").is_not_null(), method="lr")
        for (source,), rows in known_ones.group_by(["se_from"], maintain_order=True):
            statistics = listed(list(dict.fromkeys(NAMES.get(s, s).partition(",")[0] for s in rows["statistic"])))
            text = validation.info.get("standard_errors", {}).get(source, str(source))
            analyses.setdefault((statistics, text), []).append(validation.info["analysis"])
    of = lambda names: "" if len(names) == len(validations) else f", {listed(names)}"
    return [(f"{statistics} of the LR method{of(names)}", text) for (statistics, text), names in analyses.items()]


def comparison_table(table: pl.DataFrame) -> Table:
    """A row per statistic and analysis; differences of more than MARKED_STANDARD_ERRORS standard errors are marked."""
    places = [decimals(se) if known(se) else 3 for se in table["se"]]
    z = [None if None in (d, s) or s == 0 else d / s for d, s in table.select("difference", "se_of_difference").rows()]
    predictions = [" ".join(p for p in names if p) for names in table.select("term", "effect").iter_rows()]
    columns = [
        text_column("Trait", table["trait"]),
        text_column("Statistic", [NAMES.get(s, s) for s in table["statistic"]]),
        text_column("Analysis", table["analysis"]),
        text_column("Prediction", predictions),
        number_column("Estimate", table["estimate"], places),
        number_column("Standard error", table["se"], places),
    ]
    note = ""
    if table["difference"].count():  # the LR method says nothing of one analysis given another
        of_z = marked(numbers(z, 1), lambda v: abs(v) > MARKED_STANDARD_ERRORS)
        columns += [
            number_column("Difference", table["difference"], places),
            number_column("Its standard error", table["se_of_difference"], places),
            cell_column("z", of_z, "difference from the first analysis, in standard errors"),
        ]
        note = note_if_marked(of_z, f"Marked: differences of more than {MARKED_STANDARD_ERRORS:g} standard errors.")
    return make_table("Statistics", [*columns, number_column("n", table["n"])], note)


def fold_figures(comparison: Comparison, figures: plots.Figures) -> list[tuple[str, str, str]]:
    """(heading, svg, caption) of each trait: how well each analysis predicts each fold; of the folds that the table's
    means are over, and nothing where there are none.
    """
    out = []
    chosen = comparison.by_fold.filter(pl.col("statistic").is_in(DRAWN))
    for (trait, of, statistic), rows in chosen.group_by(["trait", "of", "statistic"], maintain_order=True):
        rows = rows.filter(~pl.col("fold").is_in(lacking_folds(rows)))
        if not rows.height:
            continue
        names = rows["analysis"].unique(maintain_order=True).to_list()
        values = np.array([rows.filter(analysis=name)["value"].to_numpy() for name in names])
        means = ", ".join(f"{name} {figure(v)}" for name, v in zip(names, values.mean(axis=1), strict=True))
        what = NAMES.get(statistic, statistic)
        caption = f"{what[0].upper()}{what[1:]} of each fold, a line each, and their mean: {means}."
        heading = f"{trait}, {of}" if of else trait
        out.append((heading, figures.draw(paint_folds(values, names), heading, caption, size=plots.SIZE), caption))
    return out


@plots.painter
def paint_folds(axes: Axes, values: np.ndarray, names: list[str]) -> None:
    """values (analyses, folds)."""
    x = np.arange(len(names))
    axes.plot(x, values, "o-", color=plots.SERIES[0], linewidth=0.8, markersize=2.5, alpha=0.5)
    axes.plot(x, values.mean(axis=1), "o-", color=plots.SERIES[1], linewidth=1.8, markersize=4)
    axes.set_xticks(x, names)
    axes.set_xlim(-0.4, len(names) - 0.6)
    axes.grid()
