"""Results of validations as tables: statistics, predictions, and several analyses side by side.

Validations of several analyses side by side: the predictions of the same records, fold by fold.

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

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from mmgibbs.config.analysis import Analysis
from mmgibbs.data.fixed import INTERCEPT
from mmgibbs.data.prepared import Prepared
from mmgibbs.models.design import Design
from mmgibbs.models.labels import parameter_labels
from mmgibbs.pedigree.tables import agreeing, counted
from mmgibbs.report.html_tables import listed
from mmgibbs.report.notebook import text_as_html
from mmgibbs.runs.record import common_record, described_relationship, versions
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.validation import kfold, lr, predicted_records
from mmgibbs.validation.evaluation import Recorded
from mmgibbs.validation.kfold import EVERY_EFFECT, EVERY_EFFECT_AND_FIXED, fold_statistics
from mmgibbs.validation.options import SAMPLE, ValidationPlan
from mmgibbs.validation.splits import Focal, Fold

OVER_FOLDS, FROM_MODEL, FROM_SIMULATION, FROM_FAMILIES = "folds", "model", "simulation", "bootstrap of families"
FROM_DRAWS = "draws"
FOLDS_TEXT = (
    "standard deviation over folds divided by the root of their number; approximate, as folds share training data"
)
MIN_FAMILIES_OF_BOOTSTRAP = 20  # below, a bootstrap of families says little
SCHEMA = dict.fromkeys(("method", "term", "effect", "trait", "statistic"), pl.String) | {
    "estimate": pl.Float64, "se": pl.Float64, "expected": pl.Float64, "se_from": pl.String, "n": pl.Int64,
}  # fmt: skip


class Named(Protocol):
    """A named prediction."""

    @property
    def term(self) -> str: ...

    @property
    def effect(self) -> str: ...


@dataclass(frozen=True)
class Validation:
    """Results of a validation."""

    # method, term, effect, trait, statistic, estimate, se, expected, se_from, n: animals (lr) or records (kfold, of the
    # folds that have the statistic)
    table: pl.DataFrame
    # method, term, effect, trait, fold, animal, row, predicted, observed: corrected record, or whole data (lr)
    predictions: pl.DataFrame
    info: dict
    directory: Path | None = None
    head: dict[str, Any] = field(default_factory=dict)  # of the page, see describe_analysis

    def _repr_html_(self) -> str:
        return text_as_html(self.as_text())

    def as_text(self) -> str:
        """The table for people to read."""
        from mmgibbs.report.terminal import table_as_text

        return table_as_text(self.table, "estimate", "se")


def predictions_frame(
    method: str,
    of: Named,
    trait: str,
    fold: Any,
    animal: pl.Series,
    row: Any,
    predicted: np.ndarray,
    observed: np.ndarray,
) -> pl.DataFrame:
    named = {"method": method, "term": of.term, "effect": of.effect, "trait": trait}
    columns = {"fold": fold, "animal": animal, "row": row, "predicted": predicted, "observed": observed}
    types = {"fold": pl.String, "animal": pl.String, "row": pl.Int64, "predicted": pl.Float64, "observed": pl.Float64}
    return pl.DataFrame(columns, schema=types).select(*(pl.lit(v).alias(k) for k, v in named.items()), pl.all())


def number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


# ------------------------------------------------------------ tables of one validation


class ResultTables:
    """Statistics, predictions, notes and facts of one validation, collected as its methods end.

    records: those that were used; design: of all of them. Statistics are rows of SCHEMA.
    """

    def __init__(self, records: Recorded, design: Design, notes: Sequence[str] = ()) -> None:
        self.records, self.design = records, design
        self.rows: list[tuple] = []
        self.predictions: list[pl.DataFrame] = []
        self.info: dict[str, Any] = {"notes": list(notes)}

    @property
    def notes(self) -> list[str]:
        return self.info["notes"]

    def add_predictor(self, predicted: kfold.Predicted, folds: Sequence[Fold]) -> None:
        """Statistics over folds of one effect, or of all random ones, with its predictions."""
        rows, notes = fold_rows(predicted, self.design, folds)
        self.rows += rows
        self.notes.extend(notes)
        self.predictions.append(fold_predictions(predicted, self.records, self.design, folds))

    def add_scores(self, scored: predicted_records.Scored, folds: Sequence[Fold]) -> None:
        """Scores over folds of a trait that is not normal, with its predictions."""
        self.rows += scored_rows(scored, self.design)
        self.predictions += scored_predictions(scored, self.design, self.records, folds)

    def add_folds(self, folds: Sequence[Fold], lost: Sequence[dict[str, int]] = ()) -> None:
        """Sizes of the folds. lost: for each fold trait -> records that cannot be predicted."""
        facts = [{"name": f.name, "left_out": int(f.masked.sum()), "predicted": int(f.tested.sum())} for f in folds]
        for of_fold, counts in zip(facts, lost, strict=False):
            positive = {trait: n for trait, n in counts.items() if n}
            of_fold.update({"not_predicted": positive} if positive else {})
        self.info["folds"] = facts

    def add_comparisons(
        self,
        focal: Focal,
        family: np.ndarray,
        compared: Sequence[lr.Compared],
        animals: Sequence[pl.Series],
        replicates: int,
        of_model: str,
    ) -> None:
        """The LR method: whole and partial data compared, of the animals of each kind of breeding value.

        family: (n,) of the focal animals; replicates: sets of simulated records; of_model: where the standard errors
        that follow from the model come from.
        """
        n_families = len(np.unique(family))
        self.info["lr"] = {
            "cutoff": focal.cutoff,
            "left_out": int(focal.masked.sum()),
            "focal_animals": len(focal.animals),
            "families": n_families,
            "replicates": replicates,
        }
        self.notes.extend(focal.notes)
        if not replicates and n_families < MIN_FAMILIES_OF_BOOTSTRAP:
            self.notes.append(
                f"the focal animals belong to {n_families} half-sib families: standard errors from a bootstrap of so "
                "few are too small"
            )
        of_others = FROM_SIMULATION if replicates else FROM_FAMILIES
        for comparison, own_animals in zip(compared, animals, strict=True):
            self.rows += lr_rows(comparison, of_model, of_others)
            self.predictions.append(lr_predictions(comparison, own_animals))
            self.notes.extend(comparison.notes)

    def validation(
        self, plan: ValidationPlan, model: MixedModel, sampled: Mapping[str, int] | None, facts: Mapping
    ) -> Validation:
        """Collect the results. sampled: length and seed of the chains, None for BLUP; facts: who did the work."""
        record = {
            "analysis": self.records.analysis.name,
            "plan": asdict(plan),
            **({} if sampled is None else {"sampled": dict(sampled)}),
            "versions": versions(),
            "variances": SAMPLE if plan.variances == SAMPLE else given_matrices(model),
            "records": self.design.n_records,
            "animal_column": self.records.column,
            "units": self.records.units,
            "standard_errors": self._standard_errors(plan.replicates),
        }
        table = pl.DataFrame(self.rows, schema=SCHEMA, orient="row")
        return Validation(table, pl.concat(self.predictions), {**record, **self.info, **facts})

    def _standard_errors(self, replicates: int | None) -> dict[str, str]:
        """Describe the sources of the standard errors that there are."""
        units, sources = self.records.units, {row[list(SCHEMA).index("se_from")] for row in self.rows}
        texts = {
            OVER_FOLDS: FOLDS_TEXT,
            FROM_MODEL: "how far the breeding values are expected to change when the records that were left out come "
            "in, by the mixed-model equations with and without them, at the given variances",
            FROM_SIMULATION: f"standard deviation over {replicates} sets of records simulated from the model, with its "
            "relationships, at the given variances",
            FROM_DRAWS: "how far the breeding values are expected to change when the records that were left out come "
            "in, by the draws with and without them, and Monte Carlo error",
            FROM_FAMILIES: lr.families_text(units),
        }
        return {source: text for source, text in texts.items() if source in sources}


def given_matrices(model: MixedModel) -> dict[str, Any]:
    """Random term -> covariance matrix as given; of residuals by class a matrix for each class."""
    random = {model.design.terms[i].name: model.covariance(i).start for i in model.random_terms}
    residual: Any = model.residual.start
    if model.residual.classes:
        residual = dict(zip(model.residual.classes, residual, strict=True))
    return random | {"residual": residual}


def fold_rows(predicted: kfold.Predicted, design: Design, folds: Sequence[Fold]) -> tuple[list[tuple], list[str]]:
    """(rows, notes)."""
    p, n = predicted.predictor, len(predicted.record)
    of, rows = ("kfold", p.term, p.effect, design.traits[p.trait]), []
    expected, void, notes = kfold.expectations(predicted, design, folds)
    for name, v in predicted.fold_statistics().items():
        estimate, error = number(v.mean()), number(v.std(ddof=1) / np.sqrt(len(v)))
        if name in void:
            estimate = error = None
        rows.append((*of, name, estimate, error, expected.get(name), OVER_FOLDS, n))
    return rows, notes


def fold_predictions(
    predicted: kfold.Predicted, records: Recorded, design: Design, folds: Sequence[Fold]
) -> pl.DataFrame:
    names = pl.Series([f.name for f in folds]).gather(predicted.fold)
    who = (records.animal.gather(predicted.record), records.phenotypes.rows[predicted.record])
    trait = design.traits[predicted.predictor.trait]
    return predictions_frame("kfold", predicted.predictor, trait, names, *who, predicted.predicted, predicted.observed)


def scored_rows(scored: predicted_records.Scored, design: Design) -> list[tuple]:
    """Make the rows of a trait that is not normal, over the folds that have the statistic.

    There are none where no fold predicts a record.
    """
    rows, records = [], np.unique(scored.fold, return_counts=True)[1]  # of the folds in by_fold
    for name in scored.by_fold[0] if scored.by_fold else ():
        has = np.array([not np.isnan(of[name][0]) for of in scored.by_fold])
        having = [of[name] for of, has_statistic in zip(scored.by_fold, has, strict=True) if has_statistic]
        estimates = np.array([estimate for estimate, _ in having])
        expected = [e for _, e in having if e is not None]
        with np.errstate(invalid="ignore"):  # of a log score that is infinite
            error = estimates.std(ddof=1) / np.sqrt(estimates.size) if estimates.size > 1 else np.nan
        mean = estimates.mean() if estimates.size else np.nan
        numbers = number(mean), number(error), float(np.mean(expected)) if expected else None
        of_trait = ("kfold", kfold.EVERY_EFFECT_AND_FIXED, "", design.traits[scored.trait])
        rows.append((*of_trait, name, *numbers, OVER_FOLDS, int(records[has].sum())))
    return rows


def scored_predictions(
    scored: predicted_records.Scored, design: Design, records: Recorded, folds: Sequence[Fold]
) -> list[pl.DataFrame]:
    """Tabulate for each category its probability and 1 or 0; of two categories the higher one alone."""
    names = pl.Series([f.name for f in folds]).gather(scored.fold)
    who = (records.animal.gather(scored.records), records.phenotypes.rows[scored.records])
    response = next(r for r in design.responses if r.trait == scored.trait)
    trait, columns = design.traits[scored.trait], []
    if response.labels:
        first = 1 if len(response.labels) == 2 else 0
        for k, label in list(enumerate(response.labels))[first:]:
            columns.append((f"P({label})", scored.probabilities[:, k], (scored.observed == k).astype(float)))
    else:
        what = "expected count" if response.criterion else "liability"
        columns.append((what, scored.mean, scored.observed))
    of = lambda effect: kfold.Predictor(scored.trait, kfold.EVERY_EFFECT_AND_FIXED, effect, None)
    return [predictions_frame("kfold", of(what), trait, names, *who, p, y) for what, p, y in columns]


def lr_rows(compared: lr.Compared, of_model: str, of_others: str) -> list[tuple]:
    """of_model: where the standard errors of `found.from_model` come from, of_others: the others."""
    of = ("lr", compared.term, compared.effect, compared.trait)
    rows = []
    for name, value in compared.estimates.items():
        error, expected = number(compared.errors[name]), number(compared.expected.get(name, np.nan))
        source: str | None = of_model if name in compared.from_model else of_others
        if error is None and name in lr.EXPECTED:
            source = None
        rows.append((*of, name, number(value), error, expected, source, len(compared.whole)))
    return rows


def lr_predictions(compared: lr.Compared, animals: pl.Series) -> pl.DataFrame:
    """animals: those whose breeding values these are."""
    none = [None] * len(animals)
    return predictions_frame("lr", compared, compared.trait, none, animals, none, compared.partial, compared.whole)


# ------------------------------------------------------------ several analyses

ORDER = (EVERY_EFFECT_AND_FIXED, EVERY_EFFECT, "total", "gebv")  # of terms or effects, the most complete one first
COMPARISON_SCHEMA = dict.fromkeys(("method", "analysis", "term", "effect", "trait", "statistic"), pl.String) | {
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

    def _repr_html_(self) -> str:
        return text_as_html(self.as_text())

    def as_text(self) -> str:
        """The table for people to read."""
        from mmgibbs.report.terminal import table_as_text

        known = [c for c in self.table.columns if c in ("estimate", "se") or self.table[c].count()]
        return table_as_text(self.table.select(known), "estimate", "se")


def compare_validations(validations: Sequence[Validation]) -> Comparison:
    """Side by side, in their order."""
    names = [v.info["analysis"] for v in validations]
    folds, notes = _fold_frame(validations, names)
    rows = _kfold_rows(folds, names) if folds.height else []
    notes += _not_in_all_folds(folds, _folds_of_traits(validations))
    rows += _sort_statistics([row for v in validations for row in _lr_rows(v)])
    table = pl.DataFrame(rows, schema=COMPARISON_SCHEMA, orient="row")
    return Comparison(table, folds, names, notes, validations=list(validations))


def complete(predictions: pl.DataFrame) -> pl.DataFrame:
    """The predictions by everything that the analysis knows, of each trait."""
    rank = pl.lit(len(ORDER))
    for place in range(len(ORDER) - 1, -1, -1):
        chosen = (pl.col("term") == ORDER[place]) | (pl.col("effect") == ORDER[place])
        rank = pl.when(chosen).then(place).otherwise(rank)
    ranked = predictions.with_columns(rank.alias("rank"))
    return ranked.filter(pl.col("rank") == pl.col("rank").min().over("trait"))


def _fold_frame(validations: Sequence[Validation], names: Sequence[str]) -> tuple[pl.DataFrame, list[str]]:
    """(frame by_fold of a Comparison, notes)."""
    # NaN: censored, so that statistics would be of other records and folds where another analysis knows the value
    predictions = [
        complete(v.predictions.filter(method="kfold")).filter(pl.col("observed").is_finite()) for v in validations
    ]
    notes, frames = [], []
    shared = predictions[0].select("trait", "row").unique()
    for frame in predictions[1:]:
        shared = shared.join(frame.select("trait", "row").unique(), on=["trait", "row"])
    for name, frame in zip(names, predictions, strict=True):
        common = frame.join(shared, on=["trait", "row"], how="semi", maintain_order="left")
        lost = frame.select("trait", "row").unique().height - shared.height
        if lost:
            what = counted(lost, "predicted record")
            notes.append(f"{name}: not compared: {what} that another analysis does not predict or does not know")
        for keys, rows in common.group_by(["trait", "term", "effect", "fold"], maintain_order=True):
            effect = str(keys[2])
            of = effect if effect.startswith("P(") else ""  # a category has statistics of its own
            frames += [(name, *keys, of, s, v, rows.height) for s, v in fold_comparison(rows).items()]
    columns = ["analysis", "trait", "term", "effect", "fold", "of", "statistic", "value", "n"]
    types = dict.fromkeys(columns[:7], pl.String) | {"value": pl.Float64, "n": pl.Int64}
    return pl.DataFrame(frames, schema=types, orient="row"), notes


def fold_comparison(rows: pl.DataFrame) -> dict[str, float]:
    """Compare predictions and known records of one fold."""
    p, y = rows["predicted"].to_numpy(), rows["observed"].to_numpy()
    if p.size < 2:
        return {}
    error = float(((p - y) ** 2).mean())
    if str(rows["effect"][0]).startswith("P("):
        return {
            "auc": kfold.concordance(p, y, y),
            "brier": error,
            "dispersion": kfold.dispersion(p, y),
            "bias": float(p.mean() - y.mean()),
        }
    statistics = fold_statistics(y, p, None)
    return {"predictive_ability": float(statistics.pop("predictive_ability")), "error": error} | {
        k: float(v) for k, v in statistics.items()
    }


def _kfold_rows(folds: pl.DataFrame, names: Sequence[str]) -> list[tuple]:
    rows = []
    for (trait, _, statistic), of_statistic in folds.group_by(["trait", "of", "statistic"], maintain_order=True):
        of_statistic = of_statistic.with_columns(
            value=pl.when(pl.col("fold").is_in(lacking_folds(of_statistic))).then(np.nan).otherwise("value")
        )
        first = of_statistic.filter(analysis=names[0])
        for name in names:
            mine = of_statistic.filter(analysis=name)
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


def lacking_folds(rows: pl.DataFrame) -> list[str]:
    """Folds without a statistic in some analysis; own: the rows of that statistic in Comparison.by_fold."""
    return rows.filter(pl.col("value").is_nan())["fold"].unique(maintain_order=True).to_list()


def _folds_of_traits(validations: Sequence[Validation]) -> dict[str, list[str]]:
    """trait -> the folds of which some analysis predicts a record of it."""
    pairs = pl.concat([v.predictions.filter(method="kfold").select("trait", "fold") for v in validations])
    return {
        str(trait): rows["fold"].to_list()
        for (trait,), rows in pairs.unique(maintain_order=True).group_by("trait", maintain_order=True)
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
    for (trait, of, statistic), rows in folds.group_by(["trait", "of", "statistic"], maintain_order=True):
        lacking, n = lacking_folds(rows), len(every[str(trait)])
        if lacking:
            without = left_out[str(trait)]
            what = f"{trait} {of}" if of else str(trait)
            n_common = n - len(lacking) - len(without)
            notes.append(
                f"{what}: {statistic} is {f'the mean over {n_common} of {n} folds' if n_common else 'empty'}: "
                f"records or predictions do not vary in {listed(lacking)}"
                + (f"; {listed(without)} {agreeing(len(without), 'has')} fewer than 2 records" if without else "")
            )
    return notes


def _mean_and_error(values: np.ndarray) -> tuple[float | None, float | None]:
    """Compute mean and standard error over the folds that have the statistic."""
    values = values[~np.isnan(values)]
    error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
    return number(float(values.mean()) if values.size else np.nan), number(float(error))


def _sort_statistics(rows: list[tuple]) -> list[tuple]:
    """Trait by trait and statistic by statistic as _kfold_rows, there all analyses of a breeding value together."""
    traits, statistics, values = (list(dict.fromkeys(map(of, rows))) for of in (_TRAIT, _STATISTIC, _VALUE))
    place = lambda row: (traits.index(_TRAIT(row)), statistics.index(_STATISTIC(row)), values.index(_VALUE(row)))
    return sorted(rows, key=place)


_VALUE, _TRAIT, _STATISTIC = itemgetter(2, 3), itemgetter(4), itemgetter(5)  # of a row of COMPARISON_SCHEMA


def _lr_rows(validation: Validation) -> list[tuple]:
    columns = ["term", "effect", "trait", "statistic", "estimate", "se"]
    return [
        ("lr", validation.info["analysis"], *row, None, None, n)
        for *row, n in validation.table.filter(method="lr").select(*columns, "n").iter_rows()
    ]


# ------------------------------------------------------------ the analysis, for the page


def describe_analysis(analysis: Analysis, prepared: Prepared) -> dict[str, Any]:
    """Describe an analysis as run.json does a run.

    The labels of the components of each random term and the traits that have an intercept are added.
    """
    design = prepared.design
    random = [t for t in design.terms if t.kind == "random"]
    intercept = [e for t in design.terms if t.name == INTERCEPT for e in t.effects]
    return common_record(analysis) | {
        "levels": {t.name: t.n_levels for t in design.terms},
        "relationships": {t.name: described_relationship(t) for t in random},
        "intercept": [design.traits[i] for e in intercept for i in e.traits],
        "components": {t.name: parameter_labels(t, design.traits) for t in random} | {"residual": list(design.traits)},
    }
