"""Rows of the tables from what each method finds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from mmgibbs.model.design import Design
from mmgibbs.model.response import Categories, Count
from mmgibbs.validation import cross, lr, sampled
from mmgibbs.validation.evaluation import Recorded
from mmgibbs.validation.folds import Fold
from mmgibbs.validation.found import OVER_FOLDS, number, predictions_frame


def facts_of_folds(folds: Sequence[Fold], lost: Sequence[dict[str, int]] = ()) -> list[dict]:
    """For validation.json. lost: for each fold trait -> records that cannot be predicted; those without any are left
    out.
    """
    facts = [{"name": f.name, "left_out": int(f.masked.sum()), "predicted": int(f.tested.sum())} for f in folds]
    for of_fold, counts in zip(facts, lost, strict=False):
        some = {trait: n for trait, n in counts.items() if n}
        of_fold.update({"not_predicted": some} if some else {})
    return facts


def fold_rows(found: cross.Predicted, design: Design, folds: Sequence[Fold]) -> tuple[list[tuple], list[str]]:
    """(rows, notes)."""
    p, n = found.predictor, len(found.record)
    of, rows = ("kfold", p.term, p.effect, design.traits[p.trait]), []
    expected, void, notes = cross.expectations(found, design, folds)
    for name, v in found.by_fold().items():
        estimate, error = number(v.mean()), number(v.std(ddof=1) / np.sqrt(len(v)))
        if name in void:
            estimate = error = None
        rows.append((*of, name, estimate, error, expected.get(name), OVER_FOLDS, n))
    return rows, notes


def fold_predictions(found: cross.Predicted, records: Recorded, design: Design, folds: Sequence[Fold]) -> pl.DataFrame:
    names = pl.Series([f.name for f in folds]).gather(found.fold)
    who = (records.animal.gather(found.record), records.phenotypes.rows[found.record])
    trait = design.traits[found.predictor.trait]
    return predictions_frame("kfold", found.predictor, trait, names, *who, found.predicted, found.observed)


def scored_rows(found: sampled.Scored, design: Design) -> list[tuple]:
    """Of a trait that is not normal, over the folds that have the statistic; none where no fold predicts a record."""
    rows, records = [], np.unique(found.fold, return_counts=True)[1]  # of the folds in by_fold
    for name in found.by_fold[0] if found.by_fold else ():
        has = np.array([not np.isnan(of[name][0]) for of in found.by_fold])
        having = [of[name] for of, own in zip(found.by_fold, has, strict=True) if own]
        estimates = np.array([estimate for estimate, _ in having])
        expected = [e for _, e in having if e is not None]
        with np.errstate(invalid="ignore"):  # of a log score that is infinite
            error = estimates.std(ddof=1) / np.sqrt(estimates.size) if estimates.size > 1 else np.nan
        mean = estimates.mean() if estimates.size else np.nan
        numbers = number(mean), number(error), float(np.mean(expected)) if expected else None
        of_trait = ("kfold", cross.EVERY_EFFECT_AND_FIXED, "", design.traits[found.trait])
        rows.append((*of_trait, name, *numbers, OVER_FOLDS, int(records[has].sum())))
    return rows


def scored_predictions(
    found: sampled.Scored, design: Design, records: Recorded, folds: Sequence[Fold]
) -> list[pl.DataFrame]:
    """Of each category its probability and 1 or 0; of two categories the higher one alone."""
    names = pl.Series([f.name for f in folds]).gather(found.fold)
    who = (records.animal.gather(found.records), records.phenotypes.rows[found.records])
    response = next(r for r in design.responses if r.trait == found.trait)
    trait, columns = design.traits[found.trait], []
    if isinstance(response, Categories):
        first = 1 if len(response.labels) == 2 else 0
        for k, label in list(enumerate(response.labels))[first:]:
            columns.append((f"P({label})", found.probabilities[:, k], (found.observed == k).astype(float)))
    else:
        what = "expected count" if isinstance(response, Count) else "liability"
        columns.append((what, found.mean, found.observed))
    of = lambda effect: cross.Predictor(found.trait, cross.EVERY_EFFECT_AND_FIXED, effect, None)
    return [predictions_frame("kfold", of(what), trait, names, *who, p, y) for what, p, y in columns]


def lr_rows(found: lr.Compared, of_model: str, of_others: str) -> list[tuple]:
    """of_model: where the standard errors of `found.from_model` come from, of_others: the others."""
    of = ("lr", found.term, found.effect, found.trait)
    rows = []
    for name, value in found.estimates.items():
        error, expected = number(found.errors[name]), number(found.expected.get(name, np.nan))
        source: str | None = of_model if name in found.from_model else of_others
        if error is None and name in lr.EXPECTED:
            source = None
        rows.append((*of, name, number(value), error, expected, source, len(found.whole)))
    return rows


def lr_predictions(found: lr.Compared, animals: pl.Series) -> pl.DataFrame:
    """animals: those whose breeding values these are."""
    none = [None] * len(animals)
    return predictions_frame("lr", found, found.trait, none, animals, none, found.partial, found.whole)
