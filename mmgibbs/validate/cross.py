"""k-fold cross-validation: records of a fold against their prediction from the other records.

With y* = y - X b, b from the whole data, and p the prediction of a record from the partial data,

    predictive ability   cor(y*, p)
    accuracy             cor(y*, p) / sqrt(h2)          of the direct breeding value
    dispersion           cov(y*, p) / var(p)            expected 1 where p holds all random effects
    bias                 mean(p) - mean(y*)             expected 0 where nobody chose who is recorded

for p the direct breeding value of the record's animal and, where a trait has more random effects, for p the sum of all
of them. Generalised least squares makes b independent of every contrast that p is made of, so that its own error does
not enter cov(y*, p). Estimates are means over folds, and standard errors the standard deviation over folds divided by
the root of their number: folds share training data, so these are approximate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mmgibbs.chains.parameters import named_parameters
from mmgibbs.errors import DataError
from mmgibbs.parallel import Where
from mmgibbs.validate.evaluation import Evaluation, Recorded, evaluate_without, fitted, random_solutions
from mmgibbs.validate.folds import Fold
from mmgibbs.validate.portable import Portable

EXPECTED = {"predictive_ability": None, "accuracy": None, "dispersion": 1.0, "bias": 0.0}
EVERY_EFFECT = "all random effects"
FEWEST = 3  # records of a trait in a fold


@dataclass(frozen=True)
class Predictor:
    """What predicts a trait: one effect, or all random ones."""

    trait: int
    term: str
    effect: str
    heritability: float | None  # of the trait, where p is the direct breeding value

    def chosen(self, term, effect) -> bool:
        of_this = self.term == EVERY_EFFECT or (term.name, effect.name) == (self.term, self.effect)
        return of_this and term.kind == "random"


@dataclass(frozen=True)
class Predicted:
    """A predictor over all folds."""

    predictor: Predictor
    record: np.ndarray  # (m,) int64, over all folds
    fold: np.ndarray  # (m,) int64
    observed: np.ndarray  # (m,) y*
    predicted: np.ndarray  # (m,)

    def by_fold(self) -> dict[str, np.ndarray]:
        """Statistic -> (folds,)."""
        h2, found = self.predictor.heritability, []
        for k in range(self.fold.max() + 1):
            own = self.fold == k
            found.append(fold_statistics(self.observed[own], self.predicted[own], h2))
        return {name: np.array([f[name] for f in found]) for name in found[0]}


def fold_statistics(observed: np.ndarray, predicted: np.ndarray, heritability: float | None) -> dict[str, float]:
    """The statistics above; those that need a prediction that varies are NaN where none does."""
    (var_y, cov), (_, var_p) = np.cov(observed, predicted)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = cov / np.sqrt(var_y * var_p)
        accuracy = {} if heritability is None else {"accuracy": correlation / np.sqrt(heritability)}
        return {
            "predictive_ability": correlation,
            **accuracy,
            "dispersion": cov / var_p,
            "bias": predicted.mean() - observed.mean(),
        }


def predictors(whole: Evaluation) -> list[Predictor]:
    """Trait by trait the direct effect, where there is one, and all random effects, where there are more."""
    model, terms, design = whole.assembled.model, whole.assembled.terms, whole.design
    starts = [c.start[None, None] for c in model.covariances if c is not None]
    named = named_parameters(terms, starts, model.residual.start[None, None], design.traits)
    components = {
        f"{t.name}.var[{c}]": (t, t.effects[e])
        for t in terms
        for c, e in zip(t.components, t.effect_of_component, strict=True)
    }
    out = []
    for t, trait in enumerate(design.traits):
        direct = components.get(named.variances_counted.get(trait, {}).get("direct_variance"))
        if direct is not None:
            h2 = float(named.draws[f"h2[{trait}]"][0, 0])
            out.append(Predictor(t, direct[0].name, direct[1], h2))
        if (
            direct is None
            or sum(t in e.traits for term in design.terms if term.kind == "random" for e in term.effects) > 1
        ):
            out.append(Predictor(t, EVERY_EFFECT, "", None))
    return out


def cross_validate(records: Recorded, whole: Evaluation, folds: Sequence[Fold], say, where: Where) -> list[Predicted]:
    """Evaluate without each fold, and gather what it predicts. DataError for a fold with too few records of a trait."""
    design = whole.design
    observed = ~np.isnan(design.y)
    for fold in folds:
        for trait, n in zip(design.traits, np.count_nonzero(observed & fold.tested[:, None], axis=0), strict=True):
            if n < FEWEST:
                raise DataError(
                    f"validate: {fold.name} has {n} records of trait '{trait}', needed at least {FEWEST}: fewer --folds"
                )
    corrected = design.y - fitted(design, whole.theta, lambda term, effect: term.kind == "fixed")
    found = [(p, [], [], []) for p in predictors(whole)]
    shared = (Portable(records), replace(whole, engine=None), [p for p, *_ in found])
    predicted = where.each(predictions_of_fold, shared, [(fold,) for fold in folds], [fold.name for fold in folds])
    for fold, of_fold in zip(folds, predicted, strict=True):
        say(f"{fold.name}: {np.count_nonzero(fold.masked):,} of {design.n_records:,} records left out")
        for (predictor, at, y, p), values in zip(found, of_fold, strict=True):
            own = np.flatnonzero(fold.tested & observed[:, predictor.trait])
            at.append(own)
            y.append(corrected[own, predictor.trait])
            p.append(values)
    return [
        Predicted(
            predictor,
            np.concatenate(at),
            np.repeat(np.arange(len(folds)), [len(a) for a in at]),
            np.concatenate(y),
            np.concatenate(p),
        )
        for predictor, at, y, p in found
    ]


def predictions_of_fold(records: Portable, whole: Evaluation, wanted: list[Predictor], fold: Fold) -> list[np.ndarray]:
    """For each predictor (m,): its predictions of the tested records that have the trait, from those that are not masked."""
    with records.records() as there:
        theta = random_solutions(evaluate_without(there, fold.masked, fold.name), whole)
    observed = ~np.isnan(whole.design.y)
    return [fitted(whole.design, theta, p.chosen)[fold.tested & observed[:, p.trait], p.trait] for p in wanted]
