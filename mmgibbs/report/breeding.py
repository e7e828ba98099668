"""Breeding values on the page: distribution, reliability and trend by birth year, the highest and lowest animals."""

from __future__ import annotations

import numpy as np
import polars as pl

from mmgibbs.data.dates import birth_years, group_years
from mmgibbs.report import figure_words, method_words, model_words, plots
from mmgibbs.report.finished import Finished, Trend
from mmgibbs.report.html_tables import (
    Number,
    Table,
    as_number,
    bar_column,
    bars,
    bars_words,
    cell_column,
    counted,
    decimals,
    describe_shown_rows,
    interval_range,
    known,
    make_table,
    normal_intervals,
    number,
    number_column,
    text_column,
)


def breeding_values(run: Finished, figures: plots.Figures, top: int) -> list[dict]:
    """Prepare figures, and tables of the `top` highest and lowest levels, for each component with a relationship."""
    related = run.related
    years = _years(run)
    several = len(related) > 1
    out = []
    for term, effect, trait in run.components:
        if term not in related:
            continue
        frame = _with_years(run.component(term, effect, trait), years)
        label = model_words.component_label(effect, trait, term, several)
        values = run.value_name(term, effect, trait)
        called, head = run.level_names(term)
        drawn = _figures(frame, label, figures, _find_trend(run.trends.get(term), effect, trait), values, called)
        item = {"label": label, "values": values, "called": called, "figures": drawn}
        out.append(item | extremes(frame, label, top, run.solved, values, called, head))
    return out


def _years(run: Finished) -> pl.DataFrame | None:
    """level, year, sire, dam of every animal."""
    if run.animals is None:
        return None
    years = group_years(birth_years(run.animals["birth"]))
    return run.animals.select(pl.col("id").alias("level"), "sire", "dam", years.alias("year"))


def dated(run: Finished, frame: pl.DataFrame) -> pl.DataFrame:
    """The solutions of a component with year, sire and dam of each animal, where the run has a pedigree."""
    return _with_years(frame, _years(run))


def _with_years(frame: pl.DataFrame, years: pl.DataFrame | None) -> pl.DataFrame:
    if years is None:
        return frame
    if frame["level"].equals(years["level"]):  # both in the order of the pedigree file: nothing to look up
        return frame.hstack(years.drop("level"))
    return frame.join(years, on="level", how="left", maintain_order="left")


def _find_trend(trend: Trend | None, effect: str, trait: str) -> tuple[np.ndarray, np.ndarray] | None:
    """(years, draws (all draws, years)) of one component."""
    name = f"{effect}:{trait}" if effect else trait
    if trend is None or name not in trend.components:
        return None
    draws = trend.draws[..., trend.components.index(name)]
    return trend.years, draws.reshape(-1, draws.shape[-1])


def _figures(
    frame: pl.DataFrame,
    label: str,
    figures: plots.Figures,
    trend: tuple[np.ndarray, np.ndarray] | None,
    what: str = "breeding value",
    called: str = "animal",
) -> list[tuple[str, str, str]]:
    """(heading, SVG, caption) of each figure; what: of which values, see `Finished.value_name`; called: what a level
    is, see `Finished.level_names`.
    """
    values = frame["mean"].drop_nulls().to_numpy()
    if not len(values):
        return []
    caption = figure_words.histogram_words(values, what, called)
    paint, title = plots.paint_histogram(values), f"Distribution of the {what}s, {label}"
    out = [figures.draw_item("Distribution", paint, title, caption, x_label=what)]
    by_year = _percentiles_by_year(frame)
    reliable = frame["reliability"].drop_nulls().to_numpy()
    if by_year["reliability50"].count() > 1:
        out.append(_reliability(by_year.drop_nulls("reliability50"), label, figures))
    elif len(reliable):
        caption = (
            f"Reliability of {counted(len(reliable), called)}: median {number(np.median(reliable), 2)}, "
            f"from {number(reliable.min(), 2)} to {number(reliable.max(), 2)}."
        )
        caption = " ".join(
            filter(None, (caption, method_words.negative_reliability_words(reliable, solved=False, warned=True)))
        )
        paint, title = plots.paint_histogram(reliable), f"Distribution of reliability, {label}"
        out.append(figures.draw_item("Reliability", paint, title, caption, x_label="reliability"))
    if by_year.height > 1:
        out.append(_trend(by_year, label, figures, trend, what, called))
    return out


def _percentiles_by_year(frame: pl.DataFrame) -> pl.DataFrame:
    """Compute for each birth year 10, 50 and 90 % points of mean and reliability, and the average.

    No rows without years.
    """
    if "year" not in frame.columns:
        frame = frame.clear().with_columns(year=pl.lit(None, pl.Int64))
    points = [
        pl.col(c).quantile(q, "linear").alias(f"{c}{100 * q:.0f}")
        for c in ("mean", "reliability")
        for q in (0.1, 0.5, 0.9)
    ]
    dated = frame.drop_nulls(["year", "mean"])
    return dated.group_by("year").agg(*points, pl.col("mean").mean().alias("average")).sort("year")


def _reliability(by_year: pl.DataFrame, label: str, figures: plots.Figures) -> tuple[str, str, str]:
    years, low, middle, high = (
        by_year[c].to_numpy() for c in ("year", "reliability10", "reliability50", "reliability90")
    )
    band = "The band covers the middle eight tenths of each birth year."
    below = method_words.negative_reliability_words([*low, *middle], solved=False, warned=True)
    caption = figure_words.birth_year_words("Median reliability", years, middle, f"{band} {below}".strip())
    paint = plots.paint_by_year(years, middle, low, high, floor=min(0.0, float(low.min())), ceiling=1.0)
    heading = "Reliability by birth year"
    return figures.draw_item(heading, paint, f"{heading}, {label}", caption, x_label="birth year")


def trend_of_means(
    frame: pl.DataFrame, label: str, figures: plots.Figures, what: str, of: str
) -> list[tuple[str, str, str]]:
    """The genetic trend of solutions of which no draws of birth years are kept; [] without two birth years.

    frame: of `dated`; of: which animals these are, a sentence.
    """
    by_year = _percentiles_by_year(frame)
    return [_trend(by_year, label, figures, None, what, "animal", of)] if by_year.height > 1 else []


def _trend(
    by_year: pl.DataFrame,
    label: str,
    figures: plots.Figures,
    trend: tuple[np.ndarray, np.ndarray] | None,
    what: str,
    called: str,
    of: str = "",
) -> tuple[str, str, str]:
    """Means of birth years with their posterior interval where draws were kept, else the spread of animals."""
    heading = "Trend of the polygenic part" if what == "polygenic value" else "Genetic trend"
    if trend is not None:
        years, draws = trend
        middle, (low, high) = draws.mean(axis=0), np.percentile(draws, (2.5, 97.5), axis=0)
        band = "The band is the 95 % interval of the mean of each year."
    else:
        years, middle, low, high = (by_year[c].to_numpy() for c in ("year", "average", "mean10", "mean90"))
        band, draws = f"The band covers the middle eight tenths of the {called}s of each year.", None
    sentences = (
        figure_words.birth_year_words(f"Mean {what}", years, middle, ""),
        figure_words.slope_words(years, middle, draws),
        band,
        of,
    )
    caption = " ".join(sentence.strip() for sentence in sentences if sentence)
    paint = plots.paint_by_year(years, middle, low, high)
    return figures.draw_item(heading, paint, f"{heading}, {label}", caption, x_label="birth year")


def extremes(
    frame: pl.DataFrame,
    label: str,
    top: int,
    solved: bool,
    values: str = "breeding value",
    called: str = "animal",
    head: str = "Animal",
    of_reliability: str = "",
) -> dict[str, Table]:
    """The `top` highest and the `top` lowest levels, see `extreme`; frame: of `dated`."""
    ends = {"highest": True, "lowest": False}
    return {
        name: extreme(frame, label, top, descending, solved, values, called, head, of_reliability)
        for name, descending in ends.items()
    }


def extreme(
    frame: pl.DataFrame,
    label: str,
    top: int,
    descending: bool,
    solved: bool,
    values: str = "breeding value",
    called: str = "animal",
    head: str = "Animal",
    of_reliability: str = "",
) -> Table:
    """The `top` levels with the highest (or lowest) means; solved: by BLUP; values: what they are; called, head: what
    a level is, and the head of their column; of_reliability: how it is computed, for the note.

    Optional columns are those that either of the two tables has something in, so that both have the same; F is there
    where any level is inbred, so that all effects on the animals of a pedigree have it.
    """
    chosen, opposite = _first(frame, top, descending), _first(frame, top, not descending)
    either = pl.concat([chosen, opposite])
    sd_of_most = as_number(chosen["sd"].median())
    places = decimals(sd_of_most if known(sd_of_most) else as_number(chosen["mean"].std()))
    lows, highs = normal_intervals(chosen["mean"], chosen["sd"])
    notes = [describe_shown_rows(chosen.height, frame.height, "solutions.parquet")]
    middle, spread = ("solution", "SE") if solved else ("mean", "SD")
    columns = [
        number_column("Rank", range(1, chosen.height + 1)),
        text_column(head, chosen["level"], "id"),
        number_column(values.capitalize(), chosen["mean"], places),
    ]
    if any(known(v) for v in lows):
        what = "standard error of prediction, the root of the PEV" if solved else "posterior standard deviation"
        drawn = bars(chosen["mean"], lows, highs)
        columns += [
            number_column(spread, chosen["sd"], places, what),
            number_column("Low", lows, places, f"{middle} less 1.96 {spread}"),
            number_column("High", highs, places, f"{middle} plus 1.96 {spread}"),
            bar_column("95 % interval", drawn),
        ]
        notes += bars_words({"": interval_range(lows, highs)}, drawn, places)
    if either["reliability"].count():
        what = f"share of the {called}'s genetic variance that is known"
        columns.append(number_column("Reliability", chosen["reliability"], 2, what))
        below = method_words.negative_reliability_words(chosen["reliability"], solved, warned=not of_reliability)
        notes += [of_reliability, below]
    for name in (c for c in chosen.columns if c.startswith("probability[") or c == "expected_count"):
        if either[name].count():
            title = "Expected count" if name == "expected_count" else f"P({name.partition('[')[2][:-1]})"
            what = "mean over the draws, under the average fixed effects"
            columns.append(number_column(title, chosen[name], 3, what))
    if (as_number(frame["inbreeding"].max()) or 0) > 0:
        columns.append(number_column("F", chosen["inbreeding"], 3, "inbreeding coefficient"))
    if "year" in chosen.columns:
        if either["year"].count():
            columns.append(cell_column("Born", [Number("" if y is None else str(y), y) for y in chosen["year"]]))
        columns += [
            text_column(parent.capitalize(), chosen[parent], "id")
            for parent in ("sire", "dam")
            if either[parent].count()
        ]
    word = "highest" if descending else "lowest"
    return make_table(f"{label}: the {chosen.height:,} {word} {values}s", columns, *notes)


def _first(frame: pl.DataFrame, top: int, descending: bool) -> pl.DataFrame:
    """The rows with the `top` highest (or lowest) means, equal ones in their order; others are not sorted."""
    means = frame["mean"].drop_nulls()
    if len(means) > top:
        last = means.top_k(top).min() if descending else means.bottom_k(top).max()
        frame = frame.filter(pl.col("mean") >= last if descending else pl.col("mean") <= last)
    return frame.drop_nulls("mean").sort("mean", descending=descending, maintain_order=True).head(top)


def unrelated_effect_rows(run: Finished) -> Table | None:
    """Make a row for each component without relationships: the spread of its levels, and their reliability."""
    rows = []
    for term, effect, trait in run.components:
        if term in run.related:
            continue
        frame = run.component(term, effect, trait).filter(pl.col("mean").is_not_null())
        if frame.height:
            rows.append((model_words.component_label(effect, trait, term, True), frame))
    if not rows:
        return None
    frames = [f for _, f in rows]
    spreads = [as_number(f["mean"].std()) for f in frames]
    places = [decimals(s) for s in spreads]
    medians = [as_number(f["reliability"].median()) for f in frames]
    columns = [
        text_column("Effect", [label for label, _ in rows]),
        number_column("Levels", [f.height for f in frames]),
        number_column("SD of the solutions" if run.solved else "SD of the means", spreads, places),
        number_column("Lowest", [as_number(f["mean"].min()) for f in frames], places),
        number_column("Highest", [as_number(f["mean"].max()) for f in frames], places),
        number_column("Median reliability", medians, 2),
    ]
    return make_table(
        "Spread of the solutions",
        columns,
        "solutions.parquet has every level.",
        method_words.negative_reliability_words(medians, run.solved, warned=False),
    )
