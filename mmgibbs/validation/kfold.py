"""k-fold cross-validation: records of a fold against their prediction from the other records.

With y* = y - X b, b from the whole data, and p the prediction of a record from the partial data,

    predictive ability   cor(y*, p)
    accuracy             cor(y*, p) / sqrt(h2)          of the direct breeding value
    dispersion           cov(y*, p) / var(p)            expected 1
    bias                 mean(p) - mean(y*)             expected 0

for p the direct breeding value of the record's animal and, where a trait has more random effects, for p the sum of all
of them. Three things void what is expected, and are reported:

- p lacks what the other records know of the trait. With u the direct and m another effect, cov(y*, p) = cov(u, p) +
  cov(m, p), and cov(m, p) = cov(m_hat, p) with m_hat the prediction of m, which is 0 only where the levels of m are
  independent and none of those that the tested records meet is met by another record. Elsewhere u alone has neither
  accuracy nor expectations; the sum of all effects has them.
- A trait is missing on records that have another trait, by which those that have it may be chosen. A fold lacks both,
  so that their records lie above their prediction, and the less so the higher it is: no expectations.
- Unknown-parent groups are fixed: their errors are a part of p, which then varies too much: no accuracy, and no
  expectation of dispersion, nor of bias where other groups are set to 0 without the fold.

Generalised least squares makes b independent of every contrast that p is made of, so that its own error does
not enter cov(y*, p). Estimates are means over folds, and standard errors the standard deviation over folds divided by
the root of their number: folds share training data, so these are approximate.

How good probabilities are: scores of predictions of records that were left out, and what is expected of them.

With y_k = 1 for the category of a record, p_k its predicted probabilities, Y and P their sums from below:

    Brier score            sum_k (p_k - y_k)^2; of two categories (p - y)^2           expected: sum_k p_k (1 - p_k)
    log score              -log p of what was observed                                 expected: -sum_k p_k log p_k
    ranked probability     sum_k (P_k - Y_k)^2 (Epstein 1969)                          expected: sum_k P_k (1 - P_k)
    concordance            share of the pairs of different records that the prediction orders rightly, equal ones by
                           half: of a binary trait the area under the ROC curve; of censored records Harrell's C, over
                           the pairs whose intervals do not overlap
    dispersion             cov(y, p) / var(p)                                          expected: 1
    bias                   mean(p) - mean(y)                                           expected: 0

The expectations hold where the probabilities are those of the model that made the records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from mmgibbs.models.design import Design
from mmgibbs.models.terms import Effect, Term
from mmgibbs.pedigree.tables import counted
from mmgibbs.posterior.fitted import fitted
from mmgibbs.posterior.parameters import NamedParameters, named_parameters
from mmgibbs.report.html_tables import listed
from mmgibbs.runs.chains import Executor
from mmgibbs.sampler.covariances import starting_matrices
from mmgibbs.validation.evaluation import (
    Evaluation,
    Portable,
    Recorded,
    differing_held_groups,
    evaluate_masked,
    label,
    random_solutions,
)
from mmgibbs.validation.splits import Fold

EXPECTED = {"dispersion": 1.0, "bias": 0.0}
EVERY_EFFECT = "all random effects"
EVERY_EFFECT_AND_FIXED = "all effects"  # of a record that is predicted whole
ROUNDING = 1e-12  # of the largest value, by which values that are the same may differ


@dataclass(frozen=True)
class Predictor:
    """Predictor of a trait: one effect, or all random ones."""

    trait: int
    term: str
    effect: str
    heritability: float | None  # of the trait, where p is the direct breeding value
    markers: tuple[int, ...] = ()  # numbers of the terms of SNP effects that it has
    polygenic: tuple[str, str] | None = None  # term and effect beside those

    def chosen(self, term: Term, effect: Effect) -> bool:
        name = (term.name, effect.name)
        return (self.term == EVERY_EFFECT or name in ((self.term, self.effect), self.polygenic)) and (
            term.kind == "random"
        )


@dataclass(frozen=True)
class Predicted:
    """A predictor over all folds."""

    predictor: Predictor
    record: np.ndarray  # (m,) int64, over all folds
    fold: np.ndarray  # (m,) int64
    observed: np.ndarray  # (m,) y*
    predicted: np.ndarray  # (m,)
    known: tuple[str, ...] = ()  # other random effects of these records that their training data know
    elsewhere: bool = False  # other unknown-parent groups were set to 0 than in the whole data
    noise: np.ndarray | None = None  # (folds,) what Monte Carlo error adds to the variance of p; None: nothing
    complete: str = EVERY_EFFECT  # the prediction that has all effects

    def fold_statistics(self) -> dict[str, np.ndarray]:
        """Statistic -> (folds,)."""
        h2, statistics = self.predictor.heritability, []
        for k in range(self.fold.max() + 1):
            in_fold, noise = self.fold == k, 0.0 if self.noise is None else float(self.noise[k])
            statistics.append(fold_statistics(self.observed[in_fold], self.predicted[in_fold], h2, noise))
        return {name: np.array([f[name] for f in statistics]) for name in statistics[0]}


def fold_statistics(
    observed: np.ndarray, predicted: np.ndarray, heritability: float | None, noise: float = 0.0
) -> dict[str, float]:
    """The statistics above; those that need a prediction that varies are NaN where none does.

    noise: of var(p), what Monte Carlo error adds; dispersion divides by the rest.
    """
    (var_y, cov), (_, var_p) = np.cov(observed, predicted)
    if all_same(predicted):
        cov = var_p = 0.0
    if all_same(observed):
        cov = var_y = 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = cov / np.sqrt(var_y * var_p)
        accuracy = {} if heritability is None else {"accuracy": correlation / np.sqrt(heritability)}
        return {
            "predictive_ability": correlation,
            **accuracy,
            "dispersion": cov / (var_p - noise) if var_p > noise else np.nan,
            "bias": predicted.mean() - observed.mean(),
        }


def all_same(values: np.ndarray) -> bool:
    """Check that values do not vary; their variance itself may be that of the rounding of their mean."""
    return bool(np.ptp(values) <= ROUNDING * np.abs(values).max()) if len(values) else True


def known_effects(design: Design, predictor: Predictor, fold: Fold) -> list[str]:
    """Random effects on the trait that p leaves out, and of which the training records know the levels of the tested
    ones.
    """
    observed, known = ~np.isnan(design.y), []
    tested = fold.tested & observed[:, predictor.trait]
    for term in design.terms:
        for effect in term.effects:
            if term.kind != "random" or predictor.trait not in effect.traits or predictor.chosen(term, effect):
                continue
            seen = [e.level[~fold.masked & observed[:, list(e.traits)].any(axis=1)].ravel() for e in term.effects]
            levels = effect.level[tested]
            shared = np.isin(levels[levels >= 0], np.concatenate(seen))
            if shared.any() or (levels.max(initial=-1) >= 0 and term.relationship.related):
                known.append(" ".join(p for p in (term.name, effect.name) if p))
    for j, m in enumerate(design.markers):
        if m.trait == predictor.trait and j not in predictor.markers and (m.animal[tested] >= 0).any():
            known.append(m.name)
    return known


def expectations(
    predicted: Predicted, design: Design, folds: Sequence[Fold]
) -> tuple[dict[str, float], set[str], list[str]]:
    """(statistic -> what is expected of it, statistics that mean nothing, notes that say why)."""
    p, observed, expected, void, notes = predicted.predictor, ~np.isnan(design.y), dict(EXPECTED), set(), []
    if predicted.known:
        expected, void = {}, {"accuracy"}
        notes.append(
            f"other records inform on {' and '.join(predicted.known)} of the records left out, which this prediction "
            f"lacks: no accuracy, and no expectation of dispersion and bias; '{predicted.complete}' includes them"
        )
    if _may_be_selected(observed, p.trait):
        expected = {}
        notes.append(
            "some records lack this trait, and those with it may be selected by other traits, while a fold leaves out "
            "all traits of its records: no expectation of dispersion and bias"
        )
    if any(t.groups_fixed and p.trait in e.traits and p.chosen(t, e) for t in design.terms for e in t.effects):
        expected.pop("dispersion", None)
        void = {"accuracy"}
        note = (
            "unknown-parent groups are fixed, and the prediction includes their errors: no accuracy, and no "
            "expectation of dispersion"
        )
        if predicted.elsewhere:
            expected.pop("bias", None)
            note += "; different groups are set to 0 with and without a fold: no expectation of bias"
        notes.append(note)
    notes += missing_statistics_notes(predicted, [fold.name for fold in folds])
    of = label(p.term, p.effect, design.traits[p.trait])
    return expected, void, [f"cross-validation, {of}: {note}" for note in notes]


def _may_be_selected(observed: np.ndarray, trait: int) -> bool:
    """Check whether some records lack the trait and have another that is recorded together with it.

    Of several environments a record has one, and is not selected.
    """
    together = observed[observed[:, trait]].any(axis=0)
    return bool(observed[~observed[:, trait]][:, together].any())


def missing_statistics_notes(predicted: Predicted, folds: Sequence[str]) -> list[str]:
    """Notes on folds (names) that lack a statistic, which is then empty: their predictions are all the same, or differ
    by Monte Carlo error alone, or their corrected records are all the same."""
    lacking: dict[str, list[str]] = {}  # what is said -> folds, each with its number of records
    for k, statistics in enumerate(zip(*predicted.fold_statistics().values(), strict=True)):
        if np.isfinite(statistics).all():
            continue
        in_fold = predicted.fold == k
        p, y = predicted.predicted[in_fold], predicted.observed[in_fold]
        if all_same(p):
            said = (
                "the predictions are all the same, so that predictive ability, accuracy and dispersion are empty; the "
                "training records say nothing of how these records differ, as where no relative of theirs has one: "
                "needed folds that leave some in"
            )
        elif all_same(y):
            said = "the corrected records are all the same, so that predictive ability and accuracy are empty"
        else:
            said = (
                "the predictions differ by no more than Monte Carlo error, so that dispersion is empty; needed more "
                "sampler.samples, or folds that leave in records of their relatives"
            )
        lacking.setdefault(said, []).append(f"{folds[k]} ({counted(int(in_fold.sum()), 'record')})")
    return [f"in {listed(names)} {said}" for said, names in lacking.items()]


def predictors(whole_data: Evaluation) -> list[Predictor]:
    """Trait by trait the direct effect, where there is one, and all random effects, where there are more."""
    model, terms, design = whole_data.assembled.model, whole_data.assembled.terms, whole_data.design
    starts = {name: matrix[None, None] for name, matrix in starting_matrices(model, 0).items()}
    named = named_parameters(terms, starts, whole_data.assembled.residual)
    components = {
        f"{t.name}.var[{c}]": (t, t.effects[e])
        for t in terms
        for c, e in zip(t.components, t.effect_of_component, strict=True)
    }
    out = []
    for t, trait in enumerate(design.traits):
        parts = [c for of, c in named.variances_counted.items() if of.partition("|")[0] == trait]
        direct = components.get(parts[0].get("direct_variance") or "" if parts else "")
        if direct is not None:
            h2 = heritability(named, design, t)
            out.append(Predictor(t, direct[0].name, direct[1], h2))
        if (
            direct is None
            or sum(t in e.traits for term in design.terms if term.kind == "random" for e in term.effects) > 1
        ):
            out.append(Predictor(t, EVERY_EFFECT, "", None))
    return out


def heritability(named: NamedParameters, design: Design, trait: int) -> float:
    """Posterior mean; with residual classes the phenotypic variance is the mean over the records."""
    name = design.traits[trait]
    if not design.residual_classes:
        return float(named.draws[f"h2[{name}]"].mean())
    classes_met = design.class_of_pattern[design.pattern[~np.isnan(design.y[:, trait])]]
    share = np.bincount(classes_met, minlength=len(design.residual_classes)) / classes_met.size
    of_classes = [named.draws[f"h2[{name}|{of}]"].mean() for of in design.residual_classes]
    return float(1.0 / np.sum(share / np.array(of_classes)))


def cross_validate(
    records: Recorded, whole_data: Evaluation, folds: Sequence[Fold], say: Callable[[str], None], executor: Executor
) -> list[Predicted]:
    """Evaluate without each fold, and gather what it predicts."""
    design = whole_data.design
    observed = ~np.isnan(design.y)
    corrected = design.y - fitted(design, whole_data.theta, lambda term, effect: term.kind == "fixed")
    gathered: list[tuple[Predictor, list[np.ndarray], list[np.ndarray], list[np.ndarray], list[bool]]] = [
        (p, [], [], [], []) for p in predictors(whole_data)
    ]
    shared = (Portable(records), replace(whole_data, solver=None), [p for p, *_ in gathered])
    predicted = executor.each(predictions_of_fold, shared, [(fold,) for fold in folds], [fold.name for fold in folds])
    with closing(predicted):
        for fold, of_fold in zip(folds, predicted, strict=True):
            say(f"{fold.name}: {np.count_nonzero(fold.masked):,} of {design.n_records:,} records left out")
            for (predictor, at, y, p, elsewhere), (values, other_groups) in zip(gathered, of_fold, strict=True):
                rows = np.flatnonzero(fold.tested & observed[:, predictor.trait])
                at.append(rows)
                y.append(corrected[rows, predictor.trait])
                p.append(values)
                elsewhere.append(other_groups)
    return [
        Predicted(
            predictor,
            np.concatenate(at),
            np.repeat(np.arange(len(folds)), [len(a) for a in at]),
            np.concatenate(y),
            np.concatenate(p),
            tuple(dict.fromkeys(name for fold in folds for name in known_effects(design, predictor, fold))),
            any(elsewhere),
        )
        for predictor, at, y, p, elsewhere in gathered
    ]


def predictions_of_fold(
    records: Portable, whole_data: Evaluation, wanted: list[Predictor], fold: Fold
) -> list[tuple[np.ndarray, bool]]:
    """Predict for each predictor (m,) the tested records that have the trait, from those that are not masked.

    It also returns whether other unknown-parent groups were set to 0 for them.
    """
    with records.records() as copied:
        partial = evaluate_masked(copied, fold.masked, fold.name)
    theta, design, out = random_solutions(partial, whole_data), whole_data.design, []
    for p in wanted:
        tested = fold.tested & ~np.isnan(design.y[:, p.trait])
        elsewhere = [
            differing_held_groups(whole_data, partial, i)[
                (term.component_effect == e) & (term.component_trait == p.trait)
            ].any()
            for i, term in enumerate(design.terms)
            for e, effect in enumerate(term.effects)
            if p.chosen(term, effect)
        ]
        out.append((fitted(design, theta, p.chosen)[tested, p.trait], any(elsewhere)))
    return out


# ------------------------------------------------------------ scores of probabilities and counts

Statistics = dict[str, tuple[float, float | None]]  # name -> (estimate, expected)
MOST = 3000  # records of a fold whose pairs are compared; of more, so many spread evenly


def brier(p: np.ndarray, category: np.ndarray) -> tuple[float, float]:
    """(score, expected); p (n, K), category (n,). Of two categories that of one of them."""
    y = np.eye(p.shape[1])[category]
    share = 0.5 if p.shape[1] == 2 else 1.0
    return share * float(((p - y) ** 2).sum(1).mean()), share * float((p * (1 - p)).sum(1).mean())


def log_score(p: np.ndarray, category: np.ndarray) -> tuple[float, float]:
    """(score, expected); p (n, K)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.where(p > 0, -p * np.log(p), 0.0).sum(1)
        return float(-np.log(p[np.arange(len(p)), category]).mean()), float(entropy.mean())


def ranked_probability(p: np.ndarray, category: np.ndarray) -> tuple[float, float]:
    """(score, expected); p (n, K)."""
    P = np.cumsum(p, axis=1)[:, :-1]
    Y = category[:, None] <= np.arange(P.shape[1])
    return float(((P - Y) ** 2).sum(1).mean()), float((P * (1 - P)).sum(1).mean())


def concordance(predicted: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """Share of the pairs with upper_i < lower_j whose predictions are ordered so; NaN without such pairs.

    A record that is known has lower = upper.
    """
    if len(predicted) > MOST:
        chosen = np.linspace(0, len(predicted) - 1, MOST).astype(int)
        predicted, lower, upper = predicted[chosen], lower[chosen], upper[chosen]
    ordered = upper[:, None] < lower[None, :]
    right = predicted[:, None] < predicted[None, :]
    equal = predicted[:, None] == predicted[None, :]
    pairs = int(ordered.sum())
    return float((ordered & right).sum() + 0.5 * (ordered & equal).sum()) / pairs if pairs else np.nan


def dispersion(predicted: np.ndarray, observed: np.ndarray) -> float:
    """Regression of what was observed on its prediction; NaN where the prediction does not vary."""
    if len(predicted) < 2:
        return np.nan
    (_, cov), (_, variance) = np.cov(observed, predicted)
    return float(cov / variance) if variance > 0 else np.nan


def score_categories(p: np.ndarray, category: np.ndarray) -> Statistics:
    """Statistic -> (estimate, expected), of one fold."""
    numbers = np.arange(p.shape[1])
    mean, y = p @ numbers, category.astype(float)
    ordinal = {"ranked_probability": ranked_probability(p, category)} if p.shape[1] > 2 else {}
    return {
        "concordance" if ordinal else "auc": (concordance(mean, y, y), None),
        "brier": brier(p, category),
        **ordinal,
        "log_score": log_score(p, category),
        "dispersion": (dispersion(mean, y), 1.0),
        "bias": (float(mean.mean() - y.mean()), 0.0),
    }


def score_counts(probability: np.ndarray, expected: np.ndarray, count: np.ndarray) -> Statistics:
    """Score counts: probability (n,) of what was observed, expected (n,) counts."""
    correlation = float(np.corrcoef(expected, count)[0, 1]) if expected.std() > 0 and count.std() > 0 else np.nan
    with np.errstate(divide="ignore"):
        surprise = float(-np.log(probability).mean())
    return {
        "predictive_ability": (correlation, None),
        "log_score": (surprise, None),
        "dispersion": (dispersion(expected, count), 1.0),
        "bias": (float(expected.mean() - count.mean()), 0.0),
    }


def score_intervals(mean: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Statistics:
    """Score censored records: mean (n,) predicted liabilities."""
    return {"concordance": (concordance(mean, lower, upper), None)}
