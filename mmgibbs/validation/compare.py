"""Validations of several analyses side by side: the predictions of the same records, fold by fold.

Of cross-validation, the most complete prediction of each analysis is compared with the records that all predict and
know (a record that one analysis has as censored is left out),

    predictive ability   cor(y*, p)              probabilities: area under the ROC curve
    error                mean (y* - p)^2         probabilities: their Brier score
    dispersion, bias     as in cross

with y* the record corrected for the fixed effects of that analysis. A difference from the first analysis is the mean
over folds of the differences within folds, and its standard error their deviation divided by the root of their number:
what is hard to predict in a fold is so for all analyses, and leaves the difference alone. A fold that lacks a statistic
in one analysis, such as the area under the curve where its records are of one category, is left out of its means in
all, and named in a note. Of the LR method the statistics of each analysis are side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.report.html_tables import listed
from mmgibbs.validation import scores
from mmgibbs.validation.cross import EVERY_EFFECT, EVERY_EFFECT_AND_FIXED, fold_statistics
from mmgibbs.validation.found import Validation, number
from pedigree.tables import agreeing, counted

ORDER = (EVERY_EFFECT_AND_FIXED, EVERY_EFFECT, "total", "gebv")  # of terms or effects, the most complete one first
SCHEMA = dict.fromkeys(("method", "analysis", "term", "effect", "trait", "statistic"), pl.String) | {
    "estimate": pl.Float64, "se": pl.Float64, "difference": pl.Float64, "se_of_difference": pl.Float64, "n": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """Several validations side by side."""

    # method, analysis, term, effect, trait, statistic, estimate, se, difference (from the first), its se, n: of the
    # folds that have the statistic
    table: pl.DataFrame
    by_fold: pl.DataFrame  # analysis, trait, term, effect, fold, of (a category), statistic, value, n
    names: list[str]
    notes: list[str]
    directory: Path | None = None
    validations: list[Validation] = field(default_factory=list)  # that are compared, for the page

    def as_text(self) -> str:
        """The table for people to read."""
        from mmgibbs.report.terminal import table_as_text

        known = [c for c in self.table.columns if c in ("estimate", "se") or self.table[c].count()]
        return table_as_text(self.table.select(known), "estimate", "se")


def compare(found: Sequence[Validation]) -> Comparison:
    """Side by side, in their order."""
    names = [v.info["analysis"] for v in found]
    folds, notes = _of_folds(found, names)
    rows = _kfold_rows(folds, names) if folds.height else []
    notes += _not_in_all_folds(folds, _folds_of_traits(found))
    rows += _by_statistic([row for v in found for row in _lr_rows(v)])
    table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return Comparison(table, folds, names, notes, validations=list(found))


def complete(predictions: pl.DataFrame) -> pl.DataFrame:
    """The predictions by everything that the analysis knows, of each trait."""
    rank = pl.lit(len(ORDER))
    for place in range(len(ORDER) - 1, -1, -1):
        chosen = (pl.col("term") == ORDER[place]) | (pl.col("effect") == ORDER[place])
        rank = pl.when(chosen).then(place).otherwise(rank)
    ranked = predictions.with_columns(rank.alias("rank"))
    return ranked.filter(pl.col("rank") == pl.col("rank").min().over("trait"))


def _of_folds(found: Sequence[Validation], names: Sequence[str]) -> tuple[pl.DataFrame, list[str]]:
    """(frame by_fold of a Comparison, notes)."""
    # NaN: censored, so that statistics would be of other records and folds where another analysis knows the value
    each = [complete(v.predictions.filter(method="kfold")).filter(pl.col("observed").is_finite()) for v in found]
    notes, frames = [], []
    shared = each[0].select("trait", "row").unique()
    for frame in each[1:]:
        shared = shared.join(frame.select("trait", "row").unique(), on=["trait", "row"])
    for name, frame in zip(names, each, strict=True):
        own = frame.join(shared, on=["trait", "row"], how="semi", maintain_order="left")
        lost = frame.select("trait", "row").unique().height - shared.height
        if lost:
            what = counted(lost, "predicted record")
            notes.append(f"{name}: not compared: {what} that another analysis does not predict or does not know")
        for keys, part in own.group_by(["trait", "term", "effect", "fold"], maintain_order=True):
            effect = str(keys[2])
            of = effect if effect.startswith("P(") else ""  # a category has statistics of its own
            frames += [(name, *keys, of, s, v, part.height) for s, v in statistics_of(part).items()]
    columns = ["analysis", "trait", "term", "effect", "fold", "of", "statistic", "value", "n"]
    types = dict.fromkeys(columns[:7], pl.String) | {"value": pl.Float64, "n": pl.Int64}
    return pl.DataFrame(frames, schema=types, orient="row"), notes


def statistics_of(part: pl.DataFrame) -> dict[str, float]:
    """Of the predictions of one fold, of known records."""
    p, y = part["predicted"].to_numpy(), part["observed"].to_numpy()
    if p.size < 2:
        return {}
    error = float(((p - y) ** 2).mean())
    if str(part["effect"][0]).startswith("P("):
        return {
            "auc": scores.concordance(p, y, y),
            "brier": error,
            "dispersion": scores.dispersion(p, y),
            "bias": float(p.mean() - y.mean()),
        }
    found = fold_statistics(y, p, None)
    return {"predictive_ability": float(found.pop("predictive_ability")), "error": error} | {
        k: float(v) for k, v in found.items()
    }


def _kfold_rows(folds: pl.DataFrame, names: Sequence[str]) -> list[tuple]:
    rows = []
    for (trait, _, statistic), own in folds.group_by(["trait", "of", "statistic"], maintain_order=True):
        own = own.with_columns(value=pl.when(pl.col("fold").is_in(lacking_folds(own))).then(np.nan).otherwise("value"))
        first = own.filter(analysis=names[0])
        for name in names:
            mine = own.filter(analysis=name)
            if not mine.height:
                continue
            estimate, se = _mean_and_error(mine["value"].to_numpy())
            both = first.join(mine, on="fold")
            difference, error = (
                (None, None)
                if name == names[0] or not both.height
                else _mean_and_error((both["value_right"] - both["value"]).to_numpy())
            )
            of_this = "kfold", name, mine["term"][0], mine["effect"][0], trait, statistic
            rows.append(
                (*of_this, estimate, se, difference, error, mine.filter(pl.col("value").is_not_nan())["n"].sum())
            )
    return rows


def lacking_folds(own: pl.DataFrame) -> list[str]:
    """Folds without a statistic in some analysis; own: the rows of that statistic in Comparison.by_fold."""
    return own.filter(pl.col("value").is_nan())["fold"].unique(maintain_order=True).to_list()


def _folds_of_traits(found: Sequence[Validation]) -> dict[str, list[str]]:
    """trait -> the folds of which some analysis predicts a record of it."""
    each = pl.concat([v.predictions.filter(method="kfold").select("trait", "fold") for v in found])
    return {
        str(trait): own["fold"].to_list()
        for (trait,), own in each.unique(maintain_order=True).group_by("trait", maintain_order=True)
    }


def _not_in_all_folds(folds: pl.DataFrame, every: dict[str, list[str]]) -> list[str]:
    """Notes on folds that are not compared, and on statistics that others lack: which, and over how many folds their
    means are. every: trait -> its folds.
    """
    notes, left_out = [], {}
    for trait, names in every.items():
        compared = folds.filter(trait=trait)["fold"].unique().to_list()
        left_out[trait] = [name for name in names if name not in compared]
        if left_out[trait]:
            notes.append(
                f"{trait}: statistics are without {listed(left_out[trait])}: of a fold, fewer than 2 known records are "
                "predicted by all analyses"
            )
    for (trait, of, statistic), own in folds.group_by(["trait", "of", "statistic"], maintain_order=True):
        lacking, n = lacking_folds(own), len(every[str(trait)])
        if lacking:
            without = left_out[str(trait)]
            what = f"{trait} {of}" if of else str(trait)
            left = n - len(lacking) - len(without)
            notes.append(
                f"{what}: {statistic} is {f'the mean over {left} of {n} folds' if left else 'empty'}: "
                f"records or predictions do not vary in {listed(lacking)}"
                + (f"; {listed(without)} {agreeing(len(without), 'has')} fewer than 2 records" if without else "")
            )
    return notes


def _mean_and_error(values: np.ndarray) -> tuple[float | None, float | None]:
    """Over the folds that have the statistic."""
    values = values[~np.isnan(values)]
    error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
    return number(float(values.mean()) if values.size else np.nan), number(float(error))


def _by_statistic(rows: list[tuple]) -> list[tuple]:
    """Trait by trait and statistic by statistic as _kfold_rows, there all analyses of a breeding value together."""
    traits, statistics, values = (list(dict.fromkeys(map(of, rows))) for of in (_TRAIT, _STATISTIC, _VALUE))
    place = lambda row: (traits.index(_TRAIT(row)), statistics.index(_STATISTIC(row)), values.index(_VALUE(row)))
    return sorted(rows, key=place)


_VALUE, _TRAIT, _STATISTIC = itemgetter(2, 3), itemgetter(4), itemgetter(5)  # of a row of SCHEMA


def _lr_rows(found: Validation) -> list[tuple]:
    columns = ["term", "effect", "trait", "statistic", "estimate", "se"]
    return [
        ("lr", found.info["analysis"], *row, None, None, n)
        for *row, n in found.table.filter(method="lr").select(*columns, "n").iter_rows()
    ]
