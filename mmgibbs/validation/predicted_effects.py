"""Cross-validation of normal traits by sampling: records of a fold against the sum of effects that predicts them.

As in kfold.py, y* = y - X b with b the posterior mean of the fixed effects given all records, and p the posterior mean
of a sum of random and SNP effects given the records of the other folds. SNP effects predict genotyped animals, with
records in training or without. Monte Carlo error of p is taken out of its variance, by which dispersion divides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mmgibbs.build.assemble import Assembled
from mmgibbs.data.prepared import Prepared
from mmgibbs.models.design import Design
from mmgibbs.posterior.fitted import fitted
from mmgibbs.posterior.parameters import NamedParameters
from mmgibbs.posterior.variance_shares import direct_component, random_components
from mmgibbs.results.markers import GEBV, TOTAL
from mmgibbs.validation import kfold
from mmgibbs.validation.chains import Draw, linear_predictor, subset_records
from mmgibbs.validation.evaluation import label
from mmgibbs.validation.kfold import EVERY_EFFECT, Predicted, Predictor, heritability
from mmgibbs.validation.prediction_moments import make_moments, means_and_noise
from mmgibbs.validation.splits import Fold

NOTE_SHARE_OF_ERROR = 0.05  # of the variance of predictions: from this share on Monte Carlo error is worth a note


@dataclass(frozen=True)
class PredictedFold:
    """What one predictor says of the records of one fold."""

    records: np.ndarray  # (m,) int64 in model order
    mean: np.ndarray  # (m,) p
    noise: float  # what Monte Carlo error adds to the variance of p over the records


class MeanEffects:
    """Means over the draws of all locations, on the scale of the design."""

    def __init__(self) -> None:
        self.n = 0
        self.theta: list[np.ndarray] = []

    def add(self, draw: Draw) -> None:
        self.n += 1
        if self.n == 1:
            self.theta = [np.zeros(values.shape) for values in draw.theta]
        for mean, values in zip(self.theta, draw.theta, strict=True):
            mean += (values - mean) / self.n


class PredictedEffects:
    """Moments over the draws of what one predictor says of the tested records of a fold."""

    def __init__(self, design: Design, fold: Fold, predictor: Predictor, n_draws: int):
        self.predictor = predictor
        self.records = np.flatnonzero(fold.tested & design.patterns[design.pattern, predictor.trait])
        self.rows = subset_records(design, self.records)
        self.moments = make_moments(self.records.size, n_draws)

    def add(self, draw: Draw) -> None:
        p = self.predictor
        values = linear_predictor(self.rows, draw.theta, draw.genomic, p.trait, p.chosen, p.markers)
        self.moments.add([values[:, None], values.mean(keepdims=True)[:, None]])

    def found(self) -> PredictedFold:
        (mean, _), noise = means_and_noise(self.moments)
        return PredictedFold(self.records, mean, noise)


def list_predictors(assembled: Assembled, prepared: Prepared, named: NamedParameters) -> list[Predictor]:
    """Of each normal trait the direct effect, SNP effects, both together, and all of them where there are more."""
    design = prepared.design
    normal = [t for t in range(design.n_traits) if t not in {r.trait for r in design.responses}]
    return [p for t in normal for p in _make_predictors(assembled, design, t, named)]


def _make_predictors(assembled: Assembled, design: Design, t: int, named: NamedParameters) -> list[Predictor]:
    terms, trait = assembled.terms, design.traits[t]
    markers = tuple(j for j, m in enumerate(design.markers) if m.trait == t)
    known = [c for of, c in named.variances_counted.items() if of.partition("|")[0] == trait]
    direct = direct_component(terms, random_components(terms, t)) if known else None
    h2 = heritability(named, design, t) if known and (direct is not None or markers) else None
    out, alone = [], (direct is not None) + len(markers) == 1
    predictor = None
    if direct is not None:
        info = terms[direct[0]]
        predictor = info.name, info.effects[info.effect_of_component[direct[1]]]
        out.append(Predictor(t, *predictor, h2 if alone else None))
    out += [Predictor(t, design.markers[j].name, GEBV, h2 if alone else None, (j,)) for j in markers]
    if markers and not alone:
        name = "+".join([*([] if predictor is None else [predictor[0]]), *(design.markers[j].name for j in markers)])
        out.append(Predictor(t, name, TOTAL, h2, markers, predictor))
    random = sum(t in e.traits for term in design.terms if term.kind == "random" for e in term.effects)
    if random > (predictor is not None) or not out:
        out.append(Predictor(t, EVERY_EFFECT, "", None, markers))
    return out


def correct_for_fixed_effects(design: Design, mean: MeanEffects) -> np.ndarray:
    """(n, T) y*: the records less their fixed effects."""
    return design.y - fitted(design, mean.theta, lambda term, effect: term.kind == "fixed")


def stack_folds(
    design: Design, predictor: Predictor, of_folds: Sequence[PredictedFold], folds: Sequence[Fold], y: np.ndarray
) -> Predicted:
    """One predictor over all folds; y (n, T) y*."""
    records = np.concatenate([f.records for f in of_folds])
    complete = "total" if predictor.markers or design.markers else EVERY_EFFECT
    return Predicted(
        predictor,
        records,
        np.repeat(np.arange(len(of_folds)), [f.records.size for f in of_folds]),
        y[records, predictor.trait],
        np.concatenate([f.mean for f in of_folds]),
        tuple(dict.fromkeys(name for fold in folds for name in kfold.known_effects(design, predictor, fold))),
        noise=np.array([f.noise for f in of_folds]),
        complete=complete,
    )


def note_noise(predicted: Predicted, trait: str) -> list[str]:
    """A note where Monte Carlo error makes up much of what varies between predictions."""
    variance = np.array([predicted.predicted[predicted.fold == k].var() for k in range(predicted.fold.max() + 1)])
    share = float((predicted.noise / variance).mean()) if predicted.noise is not None and variance.all() else 0.0
    if share < NOTE_SHARE_OF_ERROR:
        return []
    of = label(predicted.predictor.term, predicted.predictor.effect, trait)
    return [
        f"cross-validation, {of}: Monte Carlo error makes up {100 * share:.0f} % of the variance of the predictions, "
        "which lowers predictive ability; needed more sampler.samples"
    ]
