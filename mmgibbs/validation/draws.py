"""What is followed over the draws of a validation: breeding values, effects of records, records themselves.

Cross-validation of normal traits by sampling: records of a fold against the sum of effects that predicts them.

As in kfold.py, y* = y - X b with b the posterior mean of the fixed effects given all records, and p the posterior mean
of a sum of random and SNP effects given the records of the other folds. SNP effects predict genotyped animals, with
records in training or without. Monte Carlo error of p is taken out of its variance, by which dispersion divides.

Cross-validation of traits that are not normal: records of a fold against their probabilities, given the others.

Without the records of the fold, liabilities, thresholds and effects are sampled. In each kept draw a record r that was
left out has eta_r of all its effects, fixed, random and of SNPs, and with v = R_tt

    P(category k) = mean over draws of Phi((t_k - eta_r) / sqrt v) - Phi((t_{k-1} - eta_r) / sqrt v)
    P(count y)    = mean over draws of the integral of Poisson(y; exposure exp(eta_r + e)) over e ~ N(0, v)
    E(count)      = mean over draws of exposure exp(eta_r + v / 2)

Levels of random effects and of fixed effects with a normal prior that have no record left are drawn from their prior;
records whose flat fixed effects the records that are left do not determine, as in a level without one of them, cannot
be predicted: they are counted in a note and for each fold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import gammaln, ndtr

from mmgibbs.build.assemble import Assembled
from mmgibbs.build.totals import make_total
from mmgibbs.data.genotypes.imputed import MOST_SOLVED
from mmgibbs.data.levels import lookup
from mmgibbs.data.prepared import Prepared
from mmgibbs.models.design import Design
from mmgibbs.models.markers import Markers
from mmgibbs.models.relationships.base import Relationship
from mmgibbs.models.relationships.pedigree import Pedigree
from mmgibbs.models.residual import stack_classes
from mmgibbs.models.response import Categories, Count, Interval, Response
from mmgibbs.models.terms import Term
from mmgibbs.posterior.moments import Moments, batches_per_chain, pool
from mmgibbs.posterior.parameters import (
    MEAN_VARIANCE,
    RESIDUAL,
    NamedParameters,
    direct_component,
    marker_name,
    random_components,
    threshold_name,
)
from mmgibbs.posterior.thinned import ThinnedDraws
from mmgibbs.report.html_tables import listed
from mmgibbs.results.markers import GEBV, TOTAL
from mmgibbs.validation import kfold
from mmgibbs.validation.chains import Draw, linear_predictor, subset_records
from mmgibbs.validation.estimability import ROUNDS, levels_without_records, unpredictable
from mmgibbs.validation.evaluation import fitted, label
from mmgibbs.validation.kfold import EVERY_EFFECT, Predicted, Predictor, heritability
from mmgibbs.validation.splits import MIN_FOCAL_ANIMALS, Focal, Fold, related_terms
from pedigree.expected import ConditionalExpectation
from pedigree.tables import counted, quoted

MOST_DRAWS = 1000  # of the values of the focal animals that are kept


@dataclass(frozen=True)
class BreedingValue:
    """One kind of breeding value on one trait, of the focal animals that have it."""

    term: str
    effect: str
    trait: str
    animals: np.ndarray  # (m,) int64 their numbers among the focal animals
    random: tuple[int, int] | None  # term and component
    codes: np.ndarray  # (m,) int64 their levels of that term
    markers: tuple[int, ...]  # numbers of the terms of SNP effects
    places: np.ndarray  # (m,) int64 of the animals in the stores of those
    regression: tuple[int, int, np.ndarray] | None = None  # a fixed term, its component and (m,) values: J

    @property
    def label(self) -> str:
        return label(self.term, self.effect, self.trait)

    def of_draw(self, draw: Draw) -> np.ndarray:
        """(m,)."""
        out = np.zeros(self.animals.size)
        if self.random is not None:
            term, component = self.random
            out += draw.theta[term][self.codes, component]
        for j in self.markers:
            out += draw.genomic[j][self.places]
        if self.regression is not None:
            i, c, x = self.regression
            out += x * draw.slope(i, c)
        return out

    def variance(
        self,
        design: Design,
        parameters: Mapping[str, np.ndarray],
        matrices: Mapping[int, str],
        known: Left | None = None,
    ) -> float:
        """Of the values among these animals under the prior, at the posterior means of variances: for a random term
        (1 + Fbar - 2 fbar) sigma2_u, for SNPs v sum_j var(x_aj), v the mean variance of an effect.

        parameters: name -> (draws, ...); matrices: term -> name of the draws of its covariance matrix. known: as of
        `residual_spread`, which values of the same animals share. NaN where that is.
        """
        out = 0.0
        if self.random is not None:
            term, c = self.random
            free = active(design.terms[term], self.codes, c)
            if free.any():
                kin, has_residual = design.terms[term].relationship, any(m.epsilon for m in design.markers)
                held = is_held(design.terms[term])
                several = has_residual and held.any()
                spread = residual_spread(kin, held, self.codes, known) if several else kin.spread(self.codes)
                out += spread * float(parameters[matrices[term]][:, c, c].mean())
        for j in self.markers:
            v = float(parameters[marker_name(design.markers[j].key, MEAN_VARIANCE)].mean())
            out += v * spread_of_genotypes(design.markers[j], self.places)
        return out


def is_held(term: Term) -> np.ndarray:
    """(q,) bool: every component of the level is set to 0."""
    return np.zeros(term.n_levels, bool) if term.active is None else np.logical_not(term.active.any(axis=1))


Left = dict[bytes, tuple[float, float]]  # levels as bytes -> tr(V), 1'V 1 of what genotypes leave to them


def residual_spread(kin: Relationship, held: np.ndarray, codes: np.ndarray, known: Left | None = None) -> float:
    """tr(V) / n - 1'V 1 / n^2 of what predicted genotypes leave to these levels: V the block of (A^nn)^-1, n the levels
    that are not held, and 0 of those that are. NaN of more than MOST_SOLVED of them: each takes a solution.

    known: of sets of levels that were met before; this one is added.
    """
    assert isinstance(kin, Pedigree), "checked with the analysis"
    codes_met, known = np.unique(codes[~held[codes]]), {} if known is None else known
    if codes_met.size > MOST_SOLVED:
        return np.nan
    key = codes_met.tobytes()
    if key not in known:
        expected = ConditionalExpectation(kin.relatives, np.flatnonzero(held), codes_met)
        known[key] = float(expected.unexplained().sum()), expected.total_unexplained()
    trace, total = known[key]
    return trace / codes.size - total / codes.size**2


def active(term: Term, codes: np.ndarray, component: int) -> np.ndarray:
    """(m,) bool: which of these levels are not set to 0 (genotyped animals are, beside predicted genotypes)."""
    return np.ones(codes.size, bool) if term.active is None else term.active[codes, component]


def spread_of_genotypes(markers: Markers, places: np.ndarray) -> float:
    """sum_j var(x_aj) over the animals at these places: the expected variance of their breeding values, in units of
    that of an effect.
    """
    store, total = markers.genotypes, 0.0
    values = store.values(markers.centre, markers.scale, markers.mean)
    for first in range(0, store.n_snps, 1024):
        x = store.decode(store.every[first : first + 1024], values)[:, places]
        total += float(x.var(axis=1, dtype=np.float64).sum())
    return total


def choose_values(assembled: Assembled, prepared: Prepared, focal: Focal) -> tuple[list[BreedingValue], list[str]]:
    """Every kind of breeding value that enough of the focal animals have, and notes on those that lack one."""
    out, notes = _random_term_values(assembled, prepared, focal), []
    genomic = _marker_values(prepared, focal) + _totals(assembled, prepared, focal)
    for value in genomic:
        lost = len(focal.animals) - value.animals.size
        if value.animals.size >= MIN_FOCAL_ANIMALS:
            out.append(value)
        if lost and value.effect == GEBV:
            few = (
                ""
                if value.animals.size >= MIN_FOCAL_ANIMALS
                else f": fewer than {MIN_FOCAL_ANIMALS} are left, and nothing is compared"
            )
            notes.append(
                f"{value.label}: {counted(lost, 'focal animal', 'is')} not genotyped, without genomic value{few}"
            )
    return out, notes


def _random_term_values(assembled: Assembled, prepared: Prepared, focal: Focal) -> list[BreedingValue]:
    design, out = prepared.design, []
    infos, every, none = {t.name: t for t in assembled.terms}, np.arange(len(focal.animals)), np.empty(0, np.int64)
    for i in related_terms(design):
        info, codes = infos[design.terms[i].name], focal.levels(prepared.levels[i].ids, design.terms[i].name)
        for c, component in enumerate(info.components):
            trait = design.traits[info.trait_of_component[c]]
            effect = component.removesuffix(trait).removesuffix(":")
            if active(design.terms[i], codes, c).any():
                out.append(BreedingValue(info.name, effect, trait, every, (i, c), codes, (), none))
    return out


def _marker_values(prepared: Prepared, focal: Focal) -> list[BreedingValue]:
    design, out = prepared.design, []
    for j, (markers, labels) in enumerate(zip(design.markers, prepared.markers, strict=True)):
        animals, places = _places(focal.animals, labels.animals.head(labels.n_genotyped))
        trait = design.traits[markers.trait]
        out.append(BreedingValue(markers.name, GEBV, trait, animals, None, np.empty(0, np.int64), (j,), places))
    return out


def _totals(assembled: Assembled, prepared: Prepared, focal: Focal) -> list[BreedingValue]:
    design, out = prepared.design, []
    for t, trait in enumerate(design.traits):
        total = make_total(t, assembled.terms, prepared)
        if total is None:
            continue
        animals, places = _places(focal.animals, prepared.markers[total.markers[0]].animals)
        code_at = np.full(prepared.markers[total.markers[0]].animals.len(), -1)
        code_at[total.places] = total.codes
        is_known = code_at[places] >= 0
        animals, places = animals[is_known], places[is_known]
        name = "+".join([design.terms[total.term].name, *(design.markers[j].name for j in total.markers)])
        random, of_codes = (total.term, total.component), total.of_codes(code_at[places])
        out.append(
            BreedingValue(
                name,
                TOTAL,
                trait,
                animals,
                random,
                of_codes.codes,
                of_codes.markers,
                of_codes.places,
                of_codes.regression,
            )
        )
    return out


def _places(wanted: pl.Series, ids: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """(numbers among the wanted ones, places among the ids) of those that are there."""
    code = lookup(wanted, ids)
    known_rows = np.flatnonzero(code.is_not_null().to_numpy())
    return known_rows, code.drop_nulls().to_numpy().astype(np.int64)


@dataclass(frozen=True)
class FocalValue:
    """Posterior mean, Monte Carlo error and some draws of one kind of breeding value."""

    mean: np.ndarray  # (m,)
    noise: float  # what Monte Carlo error adds to the variance of the means
    draws: np.ndarray  # (draws, m) float32, evenly spaced


class FocalValueAccumulator:
    """Of one chain."""

    def __init__(self, value: BreedingValue, n_draws: int):
        self.value, size = value, value.animals.size
        self.moments, self.kept = followed(size, n_draws), ThinnedDraws(MOST_DRAWS, size)

    def add(self, draw: Draw) -> None:
        u = self.value.of_draw(draw)
        self.moments.add([u[:, None], u.mean(keepdims=True)[:, None]])
        self.kept.add_vector(u)

    def found(self) -> FocalValue:
        (mean, _), noise = means_and_noise(self.moments)
        return FocalValue(mean, noise, self.kept.draws)


# ------------------------------------------------------------ effects of records

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
        self.moments = followed(self.records.size, n_draws)

    def add(self, draw: Draw) -> None:
        p = self.predictor
        values = linear_predictor(self.rows, draw.theta, draw.genomic, p.trait, p.chosen, p.markers)
        self.moments.add([values[:, None], values.mean(keepdims=True)[:, None]])

    def found(self) -> PredictedFold:
        (mean, _), noise = means_and_noise(self.moments)
        return PredictedFold(self.records, mean, noise)


def followed(size: int, n_draws: int) -> Moments:
    """Of (size, 1) values and their (1, 1) mean."""
    return Moments([(size, 1), (1, 1)], n_draws, batches_per_chain(n_draws, 1))


def means_and_noise(moments: Moments) -> tuple[tuple[np.ndarray, float], float]:
    """((size,) means, mean of the values), and what Monte Carlo error adds to the variance of the means over them:
    the mean of its squares less that of their common mean. 0 where it is unknown.
    """
    pooled = pool([moments])
    mcse_of_each, common = pooled.mcse
    noise = float((mcse_of_each**2).mean() - common[0, 0] ** 2)
    return (pooled.mean[0][:, 0], float(pooled.mean[1][0, 0])), max(noise, 0.0) if np.isfinite(noise) else 0.0


def predictors(assembled: Assembled, prepared: Prepared, named: NamedParameters) -> list[Predictor]:
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


def corrected(design: Design, mean: MeanEffects) -> np.ndarray:
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


def noisy(predicted: Predicted, trait: str) -> list[str]:
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


# ------------------------------------------------------------ records of traits that are not normal

NODES = 24  # of Gauss-Hermite quadrature over the residual of a count


@dataclass(frozen=True)
class FoldPredictions:
    """What is predicted of one trait in one fold."""

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


def scored(design: Design, response: Response, of_folds: Sequence[FoldPredictions]) -> Scored:
    """One response over all folds."""
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


def not_predicted(
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


def not_in_all_folds(design: Design, folds: Sequence[Fold], scored: Scored) -> list[str]:
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
    match response:
        case Categories():
            return "all tested records are of one category"
        case Count():
            return "the tested records, or their predictions, do not vary"
        case Interval():
            return "no two tested records are known to differ"


def _observed(response: Response) -> np.ndarray:
    match response:
        case Categories():
            return response.category.astype(float)
        case Count():
            return response.count
        case Interval():
            return np.where(response.lower == response.upper, response.lower, np.nan)


def _statistics(response: Response, predictions: FoldPredictions) -> kfold.Statistics:
    kept = response.keep(predictions.records)
    match kept:
        case Categories():
            return kfold.score_categories(predictions.probabilities, kept.category.astype(int))
        case Count():
            return kfold.score_counts(predictions.probabilities[:, 0], predictions.mean, kept.count)
        case Interval():
            return kfold.score_intervals(predictions.mean, kept.lower, kept.upper)


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
        new = self._predict_draw(eta, V, draw.parameters)
        self.sums = list(new) if not self.n else [a + b for a, b in zip(self.sums, new, strict=True)]
        self.n += 1

    def _predict_draw(
        self, eta: np.ndarray, V: np.ndarray, drawn: dict[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """(probabilities, mean) in one draw."""
        match self.response:
            case Categories():
                free = drawn.get(threshold_name(self.trait), np.empty(0))
                p = probabilities_of_categories(eta, V, np.concatenate([[0.0], free]))
                return p, p @ np.arange(p.shape[1])
            case Count():
                exposure = self.response.exposure
                p = probability_of_count(self.response.count, np.log(exposure) + eta, V)
                return p[:, None], exposure * np.exp(eta + 0.5 * V)
            case Interval():
                return np.empty((eta.size, 0)), eta

    def found(self) -> FoldPredictions:
        probabilities, mean = (s / self.n for s in self.sums)
        return FoldPredictions(self.records, probabilities, mean, self.not_predicted, self.unknown, self.unfinished)


def probabilities_of_categories(eta: np.ndarray, V: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """(n, K) given eta and V (n,) and thresholds (K - 1,)."""
    below = ndtr((thresholds - eta[:, None]) / np.sqrt(V)[:, None])
    edges = np.zeros((len(eta), 1)), np.ones((len(eta), 1))
    return np.diff(np.hstack([edges[0], below, edges[1]]))


def probability_of_count(count: np.ndarray, eta: np.ndarray, V: np.ndarray) -> np.ndarray:
    """(n,) integral of Poisson(count; exp(eta + e)) over e ~ N(0, V), by Gauss-Hermite quadrature about the mode.

    The mode of the integrand in e solves y - exp(eta + e) = e / V; there the nodes are as wide as the integrand.
    """
    e = np.zeros(len(eta))
    for _ in range(50):
        rate = np.exp(np.minimum(eta + e, 50.0))
        step = (count - rate - e / V) / (rate + 1 / V)
        e += np.clip(step, -2.0, 2.0)
    width = 1 / np.sqrt(np.exp(np.minimum(eta + e, 50.0)) + 1 / V)
    x, w = np.polynomial.hermite_e.hermegauss(NODES)
    at = e[:, None] + width[:, None] * x
    rate = np.exp(np.minimum(eta[:, None] + at, 50.0))
    log_p = count[:, None] * (eta[:, None] + at) - rate - gammaln(count + 1)[:, None] - 0.5 * at**2 / V[:, None]
    return (w * np.exp(log_p + 0.5 * x**2)).sum(1) * width / np.sqrt(2 * np.pi * V)
