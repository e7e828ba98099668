"""Cross-validation of traits that are not normal: records of a fold against their probabilities, given the others.

Without the records of the fold, liabilities, thresholds and effects are sampled at the given variances. In each kept
draw a record r that was left out has eta_r of all its effects, fixed and random, and with v = R_tt

    P(category k) = mean over draws of Phi((t_k - eta_r) / sqrt v) - Phi((t_{k-1} - eta_r) / sqrt v)
    P(count y)    = mean over draws of the integral of Poisson(y; exposure exp(eta_r + e)) over e ~ N(0, v)
    E(count)      = mean over draws of exposure exp(eta_r + v / 2)

Levels of random effects and of fixed effects with a normal prior that have no record left are drawn from their prior;
records that meet a level of a flat fixed effect without a record left cannot be predicted, and are counted in a note.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln, ndtr

from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.model.design import Design
from mmgibbs.model.residual import of_classes
from mmgibbs.model.response import Categories, Count, Interval, Response
from mmgibbs.model.terms import Levels, Term
from mmgibbs.posterior.parameters import threshold_name
from mmgibbs.runs.chains import Executor
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.validation import scores
from mmgibbs.validation.evaluation import fitted
from mmgibbs.validation.folds import Fold

NODES = 24  # of Gauss-Hermite quadrature over the residual of a count


@dataclass(frozen=True)
class Sampling:
    """All that a fold needs to be sampled."""

    model: MixedModel  # of all records
    choice: EngineChoice
    partition: str
    schedule: Schedule
    seed: int


@dataclass(frozen=True)
class LeftOut:
    """What is predicted of one trait in one fold."""

    records: np.ndarray  # (m,) int64 in model order
    probabilities: np.ndarray  # (m, K) of categories; (m, 1) of the observed count; (m, 0) of censored records
    mean: np.ndarray  # (m,) category number, count, or liability
    not_predicted: int  # records that meet a flat level without a record left


@dataclass(frozen=True)
class Scored:
    """A trait over all folds."""

    trait: int
    fold: np.ndarray  # (m,) int64
    records: np.ndarray
    probabilities: np.ndarray
    mean: np.ndarray
    observed: np.ndarray  # (m,) category number or count; NaN for censored records
    by_fold: list[scores.Statistics]
    notes: tuple[str, ...]


def sampling_of(model: MixedModel, choice: EngineChoice, kind: str, schedule: Schedule, seed: int) -> Sampling:
    """ConfigError where the model cannot be validated so."""
    if model.design.markers:
        raise ConfigError("validate: SNP effects (model.markers) cannot be combined with traits that are not normal")
    if any(term.groups_fixed for term in model.design.terms):
        raise ConfigError(
            "validate: fixed unknown-parent groups (data.groups) cannot be combined with traits that are not normal; "
            "needed random groups"
        )
    bare = replace(model, saved={}, averaged={}, decisions=None, observed=(), predicted=(), probabilities=())
    return Sampling(bare, choice, kind, schedule, seed)


def cross_validate(
    sampling: Sampling, folds: Sequence[Fold], say: Callable[[str], None], executor: Executor
) -> list[Scored]:
    """Sample without each fold, and score what it predicts."""
    design = sampling.model.design
    calls = [(k, fold) for k, fold in enumerate(folds)]
    found: list[list[LeftOut]] = []
    for fold, of_fold in zip(folds, executor.each(predict, (sampling,), calls, [f.name for f in folds]), strict=True):
        say(f"{fold.name}: {np.count_nonzero(fold.masked):,} of {design.n_records:,} records left out")
        found.append(of_fold)
    return [_scored(design, r, [of[i] for of in found]) for i, r in enumerate(design.responses)]


def _scored(design: Design, response: Response, of_folds: Sequence[LeftOut]) -> Scored:
    lost = sum(f.not_predicted for f in of_folds)
    trait = design.traits[response.trait]
    few = (
        f"cross-validation, {trait}: {lost:,} records meet a level of a flat fixed effect of which their fold has all "
        "records, and are not predicted"
    )
    records = np.concatenate([f.records for f in of_folds])
    return Scored(
        response.trait,
        np.repeat(np.arange(len(of_folds)), [f.records.size for f in of_folds]),
        records,
        np.concatenate([f.probabilities for f in of_folds]),
        np.concatenate([f.mean for f in of_folds]),
        _observed(response)[records],
        [_statistics(response, f) for f in of_folds],
        (few,) if lost else (),
    )


def _observed(response: Response) -> np.ndarray:
    match response:
        case Categories():
            return response.category.astype(float)
        case Count():
            return response.count
        case Interval():
            return np.where(response.lower == response.upper, response.lower, np.nan)


def _statistics(response: Response, found: LeftOut) -> scores.Statistics:
    own = response.keep(found.records)
    match own:
        case Categories():
            return scores.of_categories(found.probabilities, own.category.astype(int))
        case Count():
            return scores.of_counts(found.probabilities[:, 0], found.mean, own.count)
        case Interval():
            return scores.of_intervals(found.mean, own.lower, own.upper)


# ------------------------------------------------------------------------------------------------ one fold


def predict(sampling: Sampling, number: int, fold: Fold) -> list[LeftOut]:
    """One chain without the fold; for each response what is left out."""
    design = sampling.model.design
    training = without(design, fold.masked, fold.name)
    predictions = [Predictions(design, training, r, fold) for r in design.responses]
    model = replace(sampling.model, design=training)
    equations = structured_equations(training, partition(training, sampling.partition))
    schedule = sampling.schedule
    chain = Chain(model, sampling.choice.build(equations), schedule, (sampling.seed, number))

    def add(chain: Chain) -> bool:
        if schedule.keeps(chain.number):
            theta, drawn = chain.engine.fetch(), chain.draws()
            for p in predictions:
                p.add(theta, drawn)
        return False

    chain.advance(schedule.n_sweeps, add)
    return [p.found() for p in predictions]


class Predictions:
    """Running means over the draws of what is predicted of one response in one fold."""

    def __init__(self, design: Design, training: Design, response: Response, fold: Fold):
        t = response.trait
        tested = np.flatnonzero(fold.tested & design.patterns[design.pattern, t])
        lost = unpredictable(training, rows_of(design, tested), t)
        self.records, self.not_predicted = tested[~lost], int(lost.sum())
        self.rows, self.trait, self.response = rows_of(design, self.records), t, response.keep(self.records)
        self.classes = design.class_of_pattern[self.rows.pattern]
        self.n, self.sums = 0, [np.zeros(0), np.zeros(0)]

    def add(self, theta: list[np.ndarray], drawn: dict[str, np.ndarray]) -> None:
        eta = fitted(self.rows, theta, lambda term, effect: True)[:, self.trait]
        V = of_classes(drawn["R"])[:, self.trait, self.trait][self.classes]
        new = self._of_draw(eta, V, drawn)
        self.sums = list(new) if not self.n else [a + b for a, b in zip(self.sums, new, strict=True)]
        self.n += 1

    def _of_draw(self, eta: np.ndarray, V: np.ndarray, drawn: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
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

    def found(self) -> LeftOut:
        probabilities, mean = (s / self.n for s in self.sums)
        return LeftOut(self.records, probabilities, mean, self.not_predicted)


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


# ------------------------------------------------------------------------------------------------ designs


def rows_of(design: Design, rows: np.ndarray) -> Design:
    """The design of some of the records: the same levels, fewer rows."""

    def kept(term: Term) -> Term:
        effects = tuple(
            replace(e, level=e.level[rows], covariates=None if e.covariates is None else e.covariates[rows])
            for e in term.effects
        )
        return replace(term, incidence=Levels(effects, term.n_levels))

    return replace(
        design,
        y=design.y[rows],
        pattern=design.pattern[rows],
        weight=design.weight[rows],
        terms=tuple(kept(t) for t in design.terms),
        responses=tuple(r.keep(rows) for r in design.responses),
    )


def without(design: Design, masked: np.ndarray, what: str) -> Design:
    """The design without some records; flat levels of which no record is left are held at 0.

    DataError where a category, or a trait, has no record left; `what` the records are.
    """
    training = rows_of(design, np.flatnonzero(~masked))
    for response in training.responses:
        if isinstance(response, Categories):
            counts = np.bincount(response.category[response.category >= 0], minlength=len(response.labels))
            empty = [label for label, n in zip(response.labels, counts, strict=True) if n == 0]
            if empty:
                raise DataError(
                    f"validate: {what} has every record of '{empty[0]}' of trait '{design.traits[response.trait]}'; "
                    "needed records of every category in the others: fewer --folds, or another --by"
                )
    _check_levels(training, what)
    terms = tuple(replace(t, active=_active(t, training)) for t in training.terms)
    _check_rank(replace(training, terms=terms), what)
    return replace(training, terms=terms)


def _flat(term: Term) -> np.ndarray:
    """(k,) bool: components with a flat prior."""
    if term.kind == "random":
        return np.zeros(term.n_components, bool)
    precision = term.prior_precision
    return np.ones(term.n_components, bool) if precision is None else np.diag(precision) == 0


def _active(term: Term, training: Design) -> np.ndarray | None:
    """(q, k): flat components of levels without a record of their trait are held at 0."""
    flat = _flat(term)
    if not flat.any():
        return term.active
    observed = training.patterns[training.pattern]
    active = np.ones((term.n_levels, term.n_components), bool) if term.active is None else term.active.copy()
    for c in np.flatnonzero(flat):
        effect = term.effects[int(term.component_effect[c])]
        level = effect.level[observed[:, term.component_trait[c]]]
        active[np.setdiff1d(np.arange(term.n_levels), level), c] = False
    return active


def unpredictable(training: Design, rows: Design, trait: int) -> np.ndarray:
    """(n,) bool: the row meets a level whose flat effect on the trait has no record left in training."""
    lost = np.zeros(rows.n_records, bool)
    observed = training.patterns[training.pattern][:, trait]
    for ours, theirs in zip(rows.terms, training.terms, strict=True):
        flat = _flat(ours)
        for e, effect in enumerate(ours.effects):
            own = (ours.component_effect == e) & (ours.component_trait == trait) & flat
            if own.any():
                left = theirs.effects[e].level[observed]
                lost |= (effect.level >= 0) & ~np.isin(effect.level, left)
    return lost


def _check_levels(training: Design, what: str) -> None:
    """DataError for a level of a flat class effect whose records left are all on one side: it has no posterior."""
    for response in training.responses:
        seen, down, up = response.one_sided()
        for term in training.terms:
            for e, effect in enumerate(term.effects):
                own = (term.component_effect == e) & (term.component_trait == response.trait)
                if effect.covariates is not None or not (_flat(term) & own).any():
                    continue
                met = seen & (effect.level >= 0)
                level, n = effect.level[met], term.n_levels
                count, low, high = (np.bincount(level, weights, n) for weights in (None, down[met], up[met]))
                if ((count > 0) & ((low == count) | (high == count))).any():
                    raise DataError(
                        f"validate: {what}: the records of '{training.traits[response.trait]}' that it does not hold "
                        f"leave levels of {term.name} with records on one side alone, whose flat effects have no "
                        f"posterior; needed fewer --folds, or model.fixed.{term.name}.prior: {{variance: 10}}"
                    )


MOST_VALUES = 50_000_000  # records times flat fixed equations of a trait, up to which their rank is checked


def _check_rank(training: Design, what: str) -> None:
    """DataError where flat fixed effects cannot be told apart without the fold: their draws would run away."""
    observed = training.patterns[training.pattern]
    for t, trait in enumerate(training.traits):
        columns = []
        for term in training.terms:
            flat = _flat(term) & (term.component_trait == t)
            for c in np.flatnonzero(flat):
                effect = term.effects[int(term.component_effect[c])]
                first = np.flatnonzero(term.component_effect == term.component_effect[c])[0]
                j = (int(c) - int(first)) % effect.n_regressors
                z = np.ones(training.n_records) if effect.covariates is None else effect.covariates[:, j]
                active = np.ones(term.n_levels, bool) if term.active is None else term.active[:, c]
                columns += [np.where(effect.level == q, z, 0.0) for q in np.flatnonzero(active)]
                if len(columns) * training.n_records > MOST_VALUES:
                    return
        if not columns:
            continue
        X = np.stack(columns, axis=1)[observed[:, t]]
        if np.linalg.matrix_rank(X.T @ X, hermitian=True) < X.shape[1]:
            raise DataError(
                f"validate: without the records of {what} the fixed effects on trait '{trait}' cannot be told apart; "
                "needed fewer --folds, or a normal prior of the fixed effects ({prior: {variance: 10}})"
            )
