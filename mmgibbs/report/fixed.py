"""Fixed effects on the page: solutions with intervals; of very many levels the lowest and the highest."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import polars as pl

from mmgibbs.data.levels import natural_order
from mmgibbs.report import method_words
from mmgibbs.report.finished import Finished
from mmgibbs.report.html_tables import (
    Bar,
    Column,
    Number,
    Table,
    as_number,
    bars,
    bars_words,
    decimals,
    known,
    normal_intervals,
    numbers,
)
from mmgibbs.results.markers import GEBV, TOTAL

FIXED = "Fixed effects"
LEVELS = 200  # shown of one effect on one trait; of more, half the lowest and half the highest
WIDE = 4.0  # times the median width: intervals that do not set the scale of the bars
LEAST_SHARE = 0.25  # of the scale that is left to the intervals where 0 is drawn in


def fixed_effects(run: Finished) -> list[Table]:
    """Make a table for each fixed effect and for the unknown-parent groups of each term, in order of solutions."""
    out = []
    for of_groups, term, frame in _shown(run):
        caption = f"{term}: unknown-parent groups" if of_groups else term
        references = _references(run.record, term, of_groups)
        out.append(_table(caption, frame, run.solved, _groups_words(run.record, term) if of_groups else "", references))
    return out


def fixed_title(run: Finished) -> str:
    """Heading of these tables: random unknown-parent groups are no fixed effects."""
    kinds = {of_groups for of_groups, *_ in _shown(run)}
    if True not in kinds or _groups_effect(run.record) == "fixed":
        return FIXED
    return f"{FIXED} and unknown-parent groups" if False in kinds else "Unknown-parent groups"


def fixed_scale_words(run: Finished) -> str:
    """Describe the scale of these solutions, where it is not that of the records of every trait in the tables."""
    traits = run.record.get("analysis", {}).get("traits", {})
    shown = {trait for *_, frame in _shown(run) for trait in frame["trait"].unique()}
    return method_words.solutions_scale_words({name: spec for name, spec in traits.items() if name in shown})


def _shown(run: Finished) -> Iterator[tuple[bool, str, pl.DataFrame]]:
    """(these are unknown-parent groups of a random term, term, its solutions)."""
    if run.solutions is None:
        return
    random = list(run.relationships)
    of_snps = pl.col("effect").is_in([GEBV, TOTAL])
    shown = run.solutions.filter((~pl.col("term").is_in(random) & ~of_snps) | (pl.col("effect") == "group"))
    for (term,), frame in shown.group_by(["term"], maintain_order=True):
        yield term in random, str(term), frame


def _groups_effect(record: Mapping) -> str:
    """'random', 'fixed' or 'metafounders'."""
    return str((record.get("analysis", {}).get("data", {}).get("groups") or {}).get("effect", "random"))


def _groups_words(record: Mapping, term: str) -> str:
    """Describe the unknown-parent groups of a term in its model; '' where they are fixed effects."""
    return {
        "random": f"Random effects, with the variances of {term}.",
        "metafounders": f"Base populations (metafounders): random effects with the variances of {term} and with "
        "relationships of their own (gamma).",
    }.get(_groups_effect(record), "")


def _references(record: Mapping, term: str, of_groups: bool) -> set[str]:
    """Levels or groups of a term that the others are differences from."""
    reference = record.get("reference_levels", {}).get("groups" if of_groups else "fixed", {})
    return set(reference.get(term, {}).values())


def _table(
    caption: str, frame: pl.DataFrame, solved: bool, of_all: str = "", references: Collection[str] = ()
) -> Table:
    """solved: by BLUP, so that errors are standard errors. of_all: a sentence on all levels, for the note. references:
    levels that the others are differences from.
    """
    spread = "SE" if solved else "SD"
    cut = pl.concat([_extremes(frame_of_trait) for _, frame_of_trait in frame.group_by(["trait"], maintain_order=True)])
    several = frame["trait"].n_unique() > 1
    notes = (
        [
            f"{cut.height:,} of {frame.height:,} rows: of each trait the {LEVELS // 2} lowest and the {LEVELS // 2} "
            "highest; solutions.parquet has all of them."
        ]
        if cut.height < frame.height
        else []
    )
    columns = [
        Column("Level"),
        *([Column("Trait")] if several else []),
        Column("Solution", "number"),
        Column(spread, "number", "standard error" if solved else "posterior standard deviation"),
        Column("Low", "number", f"solution less 1.96 {spread}"),
        Column("High", "number", f"solution plus 1.96 {spread}"),
        Column("95 % interval", "bar"),
    ]
    rows, classes, every_bar = [], [], []
    scales: dict[str, tuple[float, float]] = {}
    places_of: dict[str, tuple[int, int]] = {}  # of the same keys: the decimals of its trait
    for (trait,), frame_of_trait in cut.group_by(["trait"], maintain_order=True):
        frame_of_trait = frame_of_trait[natural_order(frame_of_trait["level"])]
        held = _held(frame_of_trait)
        spreads = [s for s, h in zip(frame_of_trait["sd"], held, strict=True) if known(s) and not h]
        places = decimals(sorted(spreads)[len(spreads) // 2] if spreads else as_number(frame_of_trait["mean"].std()))
        estimated = [None if h else s for s, h in zip(frame_of_trait["sd"], held, strict=True)]
        means = frame_of_trait["mean"].to_list()
        lows, highs = normal_intervals(means, estimated)
        shown = [numbers(column, places) for column in (means, estimated, lows, highs)]
        said = ["reference, 0" if level in references else "set to 0" for level in frame_of_trait["level"]]
        shown[0] = [Number(s, 0.0) if h else cell for cell, s, h in zip(shown[0], said, held, strict=True)]
        drawn, figure = _bars(frame_of_trait["level"].to_list(), means, lows, highs, any(held))
        every_bar += drawn
        called = {", ".join(filter(None, (name, str(trait) if several else ""))): ends for name, ends in figure.items()}
        scales |= called
        places_of |= dict.fromkeys(called, (places, places))
        for i, level in enumerate(frame_of_trait["level"]):
            rows.append((level, *([trait] if several else []), *(column[i] for column in shown), drawn[i]))
            classes.append("held" if held[i] else "")
    return Table(
        caption,
        columns,
        rows,
        " ".join([*filter(None, [of_all]), *notes, *bars_words(scales, every_bar, places_of)]),
        classes,
    )


def _bars(
    levels: Sequence[str],
    means: Sequence[float],
    lows: Sequence[float | None],
    highs: Sequence[float | None],
    held: bool,
) -> tuple[list[Bar | None], dict[str, tuple[float, float]]]:
    """The bars of one effect on one trait, and {what it is of: (low, high)} of each scale.

    Powers of a covariate have a scale each, since their units differ; all other levels share one, which is called ''.
    held: a level is set to 0, from which the others are differences.
    """
    power = [(match[0] if (match := re.search(r"x\^[0-9]+$", level)) else "") for level in levels]
    power = power if all(power) else [""] * len(levels)
    drawn: list[Bar | None] = [None] * len(levels)
    scales = {}
    for name in dict.fromkeys(power):
        positions = [i for i, of in enumerate(power) if of == name]
        mean, low, high = ([values[i] for i in positions] for values in (means, lows, highs))
        if (scale := bar_scale(low, high, held)) is None:
            continue
        scales[name] = scale
        for i, bar in zip(positions, bars(mean, low, high, scale), strict=True):
            drawn[i] = bar
    return drawn, scales


def bar_scale(
    lows: Sequence[float | None], highs: Sequence[float | None], held: bool = False
) -> tuple[float, float] | None:
    """Find the scale from the lowest to the highest end; None without intervals.

    A few intervals that are much wider than the others, as of levels with next to no records, do not set it: beside
    them the others would be dots. 0 is drawn in where a single interval would fill its bar, and where a level is held
    there, unless the intervals would be too small to see.
    """
    ends = [(a, b) for a, b in zip(lows, highs, strict=True) if known(a) and known(b)]
    if not ends:
        return None
    widths = sorted(b - a for a, b in ends)
    usual = [(a, b) for a, b in ends if b - a <= WIDE * widths[(len(widths) - 1) // 2]]
    low, high = min(a for a, _ in usual), max(b for _, b in usual)
    with_zero = min(low, 0.0), max(high, 0.0)
    if len(ends) == 1 or (held and high - low >= LEAST_SHARE * (with_zero[1] - with_zero[0])):
        return with_zero
    return low, high


def _extremes(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows in their order; of more than LEVELS the lowest and the highest half each."""
    if rows.height <= LEVELS:
        return rows
    numbered = rows.with_row_index("row").sort("mean")
    return pl.concat([numbered.head(LEVELS // 2), numbered.tail(LEVELS // 2)]).sort("row").drop("row")


def _held(rows: pl.DataFrame) -> list[bool]:
    """Levels dropped or without records: mean and sd are 0 and nothing else is known."""
    return rows.select((pl.col("mean") == 0) & (pl.col("sd") == 0)).to_series().fill_null(False).to_list()
