"""Cross-validation of traits that are not normal: records of a fold against their probabilities, given the others.

Without the records of the fold, liabilities, thresholds and effects are sampled. In each kept draw a record r that was
left out has eta_r of all its effects, fixed, random and of SNPs, and with v = R_tt

    P(category k) = mean over draws of Phi((t_k - eta_r) / sqrt v) - Phi((t_{k-1} - eta_r) / sqrt v)
    P(count y)    = mean over draws of the integral of Poisson(y; exposure exp(eta_r + e)) over e ~ N(0, v)
    E(count)      = mean over draws of exposure exp(eta_r + v / 2)

Levels of random effects and of fixed effects with a normal prior that have no record left are drawn from their prior;
records whose flat fixed effects the records that are left do not determine, as in a level without one of them, cannot
be predicted: they are counted in a note and for each fold.

Cross-validation of normal traits by sampling: records of a fold against the sum of effects that predicts them.

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
from mmgibbs.models.families import Response
from mmgibbs.models.residual import stack_classes
from mmgibbs.pedigree.tables import counted, quoted
from mmgibbs.posterior.draw_names import RESIDUAL, threshold_name
from mmgibbs.posterior.fitted import fitted
from mmgibbs.posterior.parameters import NamedParameters
from mmgibbs.posterior.variance_shares import direct_component, random_components
from mmgibbs.report.html_tables import listed
from mmgibbs.results.markers import GEBV, TOTAL
from mmgibbs.validation import kfold
from mmgibbs.validation.chains import Draw, linear_predictor, subset_records
from mmgibbs.validation.estimability import ROUNDS, levels_without_records, unpredictable
from mmgibbs.validation.evaluation import label
from mmgibbs.validation.focal_values import make_moments, means_and_noise
from mmgibbs.validation.kfold import EVERY_EFFECT, Predicted, Predictor, heritability
from mmgibbs.validation.splits import Fold

NOTE_SHARE_OF_ERROR = 0.05  # of the variance of predictions: from this share on Monte Carlo error is worth a note


@dataclass(frozen=True)
class PredictedFold:
    """Prediction of the records of one fold by one predictor."""

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
    """List for each normal trait the direct effect, SNP effects, their sum, and the sum of all effects."""
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
    """Stack the folds of one predictor; y (n, T) y*."""
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


@dataclass(frozen=True)
class FoldPredictions:
    """Predictions of one trait in one fold."""

    records: np.ndarray  # (m,) int64 in model order
    probabilities: np.ndarray  # (m, K) of categories; (m, 1) of the observed count; (m, 0) of censored records
    mean: np.ndarray  # (m,) category number, count, or liability
    not_predicted: int  # records whose flat fixed effects the other folds do not determine
    unknown: tuple[tuple[int, int], ...] = ()  # (term, level) of the flat classes of these that no other fold has
    unfinished: bool = False  # the search for flat fixed effects that depend on others (estimability.drop_aliased)


@dataclass(frozen=True)
class Scored:
    """A trait over all folds."""

    trait: int
    fold: np.ndarray  # (m,) int64
    records: np.ndarray
    probabilities: np.ndarray
    mean: np.ndarray
    observed: np.ndarray  # (m,) category number or count; NaN for censored records
    by_fold: list[kfold.Statistics]  # of the folds with a record that is predicted


def score_folds(design: Design, response: Response, of_folds: Sequence[FoldPredictions]) -> Scored:
    """Score one response over all folds."""
    records = np.concatenate([f.records for f in of_folds])
    return Scored(
        response.trait,
        np.repeat(np.arange(len(of_folds)), [f.records.size for f in of_folds]),
        records,
        np.concatenate([f.probabilities for f in of_folds]),
        np.concatenate([f.mean for f in of_folds]),
        _observed(response)[records],
        [_statistics(response, f) for f in of_folds if f.records.size],
    )


def note_not_predicted(
    prepared: Prepared, trait: str, folds: Sequence[Fold], of_folds: Sequence[FoldPredictions]
) -> list[str]:
    """A note on the records of a trait that no other fold predicts: how many, in which folds, and in which levels."""
    lost = sum(f.not_predicted for f in of_folds)
    if not lost:
        return []
    where = [fold.name for fold, predictions in zip(folds, of_folds, strict=True) if predictions.not_predicted]
    empty = [fold.name for fold, predictions in zip(folds, of_folds, strict=True) if not predictions.records.size]
    unknown = dict.fromkeys(level for predictions in of_folds for level in predictions.unknown)
    named = [f"{prepared.design.terms[i].name} {quoted(str(prepared.levels[i].ids[q]))}" for i, q in unknown]
    levels = f" (no other record of {listed(named, 'or')})" if named else ""
    return [
        f"cross-validation, {trait}: {counted(lost, 'record')} not predicted, of {listed(where)}: the records outside "
        f"the fold do not determine their flat fixed effects{levels}"
        + (f"; statistics are without {listed(empty)}, of which no record is predicted" if empty else "")
    ]


def incomplete_search_note(trait: str, folds: Sequence[Fold], of_folds: Sequence[FoldPredictions]) -> list[str]:
    """A note on the folds for which the search for flat fixed effects that depend on others was not finished."""
    where = [fold.name for fold, predictions in zip(folds, of_folds, strict=True) if predictions.unfinished]
    if not where:
        return []
    return [
        f"cross-validation, {trait}: without {listed(where)} the search for flat fixed effects that depend on others "
        f"ended after {ROUNDS} rounds: if some are left, records whose flat fixed effects the others do not determine "
        "are predicted too"
    ]


def note_missing_statistics(design: Design, folds: Sequence[Fold], scored: Scored) -> list[str]:
    """Notes on statistics that some folds lack, so that they are means over the others, and on those that are infinite.

    Without two tested records that differ nothing can be ordered, as in a fold with records of one category.
    """
    names = [folds[k].name for k in np.unique(scored.fold)]  # with a record that is predicted
    response = next(r for r in design.responses if r.trait == scored.trait)
    trait, out = design.traits[scored.trait], []
    for name in scored.by_fold[0] if scored.by_fold else ():
        values = np.array([of[name][0] for of in scored.by_fold])
        lacking = [fold for fold, value in zip(names, values, strict=True) if np.isnan(value)]
        infinite = [fold for fold, value in zip(names, values, strict=True) if np.isinf(value)]
        none = f"{_missing_statistic_reason(response, name)} in {listed(lacking)}"
        if infinite:
            out.append(
                f"cross-validation, {trait}: {name} is infinite, and left empty: what was observed in "
                f"{listed(infinite)} has a probability of 0 in every draw" + (f"; {none}" if lacking else "")
            )
        elif lacking:
            n = len(names) - len(lacking)
            mean = f"the mean over {n} of {len(names)} folds" if n else "empty"
            out.append(f"cross-validation, {trait}: {name} is {mean}: {none}")
    return out


def _missing_statistic_reason(response: Response, name: str) -> str:
    """A fold has no such statistic."""
    if name == "dispersion":
        return "the predictions do not vary"
    return response.alike


def _observed(response: Response) -> np.ndarray:
    lower, upper = response.bounds()
    return np.where(lower == upper, lower, np.nan)


def _statistics(response: Response, predictions: FoldPredictions) -> kfold.Statistics:
    """Score probabilities and means, or where the family predicts liabilities alone, their order."""
    kept, p = response.keep(predictions.records), predictions.probabilities
    if kept.labels:
        return kfold.score_categories(p, kept.values().astype(int))
    if kept.criterion:
        return kfold.score_counts(p[:, 0], predictions.mean, kept.values())
    return kfold.score_intervals(predictions.mean, *kept.bounds())


class Predictions:
    """Running means over the draws of what is predicted of one response in one fold."""

    def __init__(self, design: Design, training: Design, response: Response, fold: Fold, unfinished: bool = False):
        t, self.unfinished = response.trait, unfinished
        tested = np.flatnonzero(fold.tested & design.patterns[design.pattern, t])
        lost = unpredictable(training, subset_records(design, tested), t)
        self.records, self.not_predicted = tested[~lost], int(lost.sum())
        self.unknown = tuple(levels_without_records(training, subset_records(design, tested[lost]), t))
        self.rows, self.trait, self.response = subset_records(design, self.records), t, response.keep(self.records)
        self.classes = design.class_of_pattern[self.rows.pattern]
        self.n, self.sums = 0, [np.zeros(0), np.zeros(0)]

    def add(self, draw: Draw) -> None:
        eta = linear_predictor(self.rows, draw.theta, draw.genomic, self.trait)
        V = stack_classes(draw.parameters[RESIDUAL])[:, self.trait, self.trait][self.classes]
        new = self.response.predict(eta, V, draw.parameters.get(threshold_name(self.trait), np.empty(0)))
        self.sums = list(new) if not self.n else [a + b for a, b in zip(self.sums, new, strict=True)]
        self.n += 1

    def found(self) -> FoldPredictions:
        probabilities, mean = (s / self.n for s in self.sums)
        return FoldPredictions(self.records, probabilities, mean, self.not_predicted, self.unknown, self.unfinished)
