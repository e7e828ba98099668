"""Validation by sampling: a chain for each fold, and for the LR method one of the whole and one of the partial data.

w and p are posterior means, of whole and of partial data, in any model: of SNP effects, and of traits that are not
normal, whose breeding values are those of the liability (with a residual variance of 1, and counts on the log scale).
Whatever the likelihood, p is the mean of w over the records that p has not seen, given those that it has,

    E(w | partial data) = E(E(u | whole data) | partial data) = E(u | partial data) = p,

so that bias is expected 0 and dispersion 1 where the model, its priors included, is the one that made the records; and
the variance of w given the partial data is, of any contrast k,

    var(k'w | partial data) = var(k'u | partial data) - E(var(k'u | whole data) | partial data),

which gives the standard errors of bias (k = 1/n) and dispersion (k of the regression on p) from the draws of the two
chains, as the inverse equations give them for BLUP (lr.py). The chains' Monte Carlo error is added, and taken out of
the variances of w and p by which the statistics divide. The other standard errors are a bootstrap of half-sib families.

Validation by sampling: a chain for each fold, and for the LR method one of the whole and one of the partial data.

For traits that are not normal, for SNP effects, and wherever variances are to be sampled without the records too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from mmgibbs.build.assemble import Assembled, assemble
from mmgibbs.build.engine import choose_engine
from mmgibbs.build.memory_estimate import refuse_folds_beyond_memory
from mmgibbs.config import Analysis
from mmgibbs.data.genotypes.imputed import MOST_SOLVED
from mmgibbs.data.prepared import Prepared
from mmgibbs.errors import ConfigError, option, option_name
from mmgibbs.models.design import Design
from mmgibbs.posterior.parameters import NamedParameters, named_parameters
from mmgibbs.runs.chains import Executor
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.validation.chains import Follower, Sampling, drop_records, make_sampling, refuse_training, sample
from mmgibbs.validation.estimability import records_alone
from mmgibbs.validation.evaluation import Recorded
from mmgibbs.validation.focal_values import BreedingValue, FocalValue, FocalValueAccumulator, Left, choose_values
from mmgibbs.validation.kfold import Predictor
from mmgibbs.validation.lr import EXPECTED, Compared, bootstrap, dropped_samples_notes, family_sums, lr_statistics
from mmgibbs.validation.options import BOOTSTRAP_DRAWS, ValidationPlan
from mmgibbs.validation.predicted_records import (
    FoldPredictions,
    MeanEffects,
    PredictedEffects,
    PredictedFold,
    Predictions,
    correct_for_fixed_effects,
    incomplete_search_note,
    list_predictors,
    note_missing_statistics,
    note_noise,
    note_not_predicted,
    score_folds,
    stack_folds,
)
from mmgibbs.validation.results import FROM_DRAWS, ResultTables, Validation
from mmgibbs.validation.splits import MIN_FOCAL_ANIMALS, Focal, Fold, Split, focal_families

NOTE_SHARE_OF_ERROR = 0.05  # of the variance of p: from this share on Monte Carlo error is worth a note


def compare_chains(
    design: Design,
    values: Sequence[BreedingValue],
    whole_data: Sequence[FocalValue],
    partial: Sequence[FocalValue],
    parameters: Mapping[str, np.ndarray],
    matrices: Mapping[int, str],
    family: np.ndarray,
    seed: int,
) -> list[Compared]:
    """The LR statistics of each kind of breeding value.

    parameters: draws of the whole data, name -> (draws, ...); matrices: term -> name of its covariance matrix among
    them. family: (n,) of the focal animals.
    """
    rng, out = np.random.default_rng([seed, BOOTSTRAP_DRAWS]), []
    known: Left = {}
    for value, w, p in zip(values, whole_data, partial, strict=True):
        variance = value.variance(design, parameters, matrices, known)
        sums = subtract_noise(family_sums(w.mean, p.mean, family[value.animals]), w.noise, p.noise)
        statistics = {k: float(v) for k, v in lr_statistics(sums.sum(axis=0), variance).items()}
        drawn, left_out = bootstrap(sums, variance, rng)
        errors = errors_of_contrasts(w, p)
        sd = drawn | errors
        notes = [*_notes(statistics, sd, p, variance), *dropped_samples_notes(statistics, sd, left_out, errors)]
        labelled = tuple(f"{value.label}: {note}" for note in notes)
        names = value.term, value.effect, value.trait
        out.append(Compared(*names, w.mean, p.mean, statistics, sd, dict(EXPECTED), frozenset(EXPECTED), labelled))
    return out


def subtract_noise(sums: np.ndarray, of_whole: float, of_partial: float) -> np.ndarray:
    """Family sums (families, 6) of 1, w, p, w^2, p^2, w p, less what Monte Carlo error adds to the squares."""
    out = sums.copy()
    out[:, 3] -= sums[:, 0] * of_whole
    out[:, 4] -= sums[:, 0] * of_partial
    return out


def errors_of_contrasts(w: FocalValue, p: FocalValue) -> dict[str, float]:
    """Standard errors of bias and dispersion given p; NaN where the chains are too short to tell."""
    n, deviation = p.mean.size, p.mean - p.mean.mean()
    squares = float((deviation**2).sum()) - n * p.noise
    out = {"bias": _error(w, p, np.full(n, 1 / n)), "dispersion": np.nan}
    if squares > 0:
        out["dispersion"] = _error(w, p, deviation / squares)
    return out


def _error(w: FocalValue, p: FocalValue, k: np.ndarray) -> float:
    """Standard deviation of k'w given the partial data, with the Monte Carlo error of k'w and k'p."""
    of_whole, of_partial = w.draws @ k, p.draws @ k
    variance = of_partial.var(ddof=1) - of_whole.var(ddof=1)
    variance += error_of_mean(of_whole) ** 2 + error_of_mean(of_partial) ** 2
    return float(np.sqrt(variance)) if variance > 0 else np.nan


def error_of_mean(draws: np.ndarray) -> float:
    """Monte Carlo standard error of the mean of (draws,), from as many batches as each has draws."""
    batches = max(2, int(np.sqrt(draws.size)))
    length = draws.size // batches
    means = draws[: batches * length].reshape(batches, length).mean(axis=1)
    return float(means.std(ddof=1) / np.sqrt(batches))


def _notes(statistics: Mapping[str, float], sd: Mapping[str, float], p: FocalValue, variance: float) -> list[str]:
    notes, of_p = [], float(p.mean.var())
    if np.isnan(statistics["dispersion"]):
        notes.append("breeding values from partial data vary by no more than their Monte Carlo error")
    notes += [
        f"no standard error of {name}: the draws do not vary less with all records than without some; needed more "
        "sampler.samples"
        for name in EXPECTED
        if np.isnan(sd[name]) and np.isfinite(statistics[name])
    ]
    if np.isnan(variance):
        notes.append(
            "no accuracy: the relationships of the focal animals are not known (a file has their inverse alone, or "
            f"genotypes of more than {MOST_SOLVED:,} of them are predicted)"
        )
    elif np.isnan(statistics["accuracy"]) and statistics["dispersion"] < 0:
        notes.append("no accuracy: breeding values from whole and from partial data have a negative covariance")
    if of_p > 0 and p.noise > NOTE_SHARE_OF_ERROR * of_p:
        notes.append(
            f"Monte Carlo error makes up {100 * p.noise / of_p:.0f} % of the variance of the values from partial data; "
            "needed more sampler.samples"
        )
    return notes


WHOLE, PARTIAL = 100_000, 100_001  # numbers of these chains, beyond those of the folds


@dataclass(frozen=True)
class Followed:
    """Results of a chain of the whole or of the partial data."""

    effects: MeanEffects
    values: list[FocalValue]
    parameters: dict[str, np.ndarray]  # name -> (draws, ...)


@dataclass(frozen=True)
class _Chains:
    """The chains of one validation, and what they have in common."""

    sampling: Sampling
    assembled: Assembled
    records: Recorded
    prepared: Prepared
    say: Callable[[str], None]
    executor: Executor


def validate_by_sampling(
    records: Recorded,
    prepared: Prepared,
    plan: ValidationPlan,
    split: Split,
    say: Callable[[str], None],
    executor: Executor,
) -> Validation:
    """See run.examine."""
    if plan.replicates:
        raise ConfigError(
            f"validate: found {option('replicates', plan.replicates)} for an analysis that is sampled, where each "
            "would take two more chains; needed none"
        )
    design, focal, s = prepared.design, split.focal, records.analysis.sampler
    assembled = assemble(records.analysis, prepared)
    sampling = choose_sampling(records.analysis, assembled)
    at_once = min(executor.max_local_calls, max(1, len(split.folds)))
    refuse_folds_beyond_memory(sampling.model, sampling.schedule, sampling.choice.bytes, at_once)
    of = f"{design.n_records:,} records of {records.units} (column '{records.column}')"
    say(f"whole data: {of}; a chain per fold and set of data")
    values, notes = ([], []) if focal is None else choose_values(assembled, prepared, focal)
    if focal is not None and not values:
        raise ConfigError(
            f"validate: fewer than {MIN_FOCAL_ANIMALS} of the {len(focal.animals)} focal {records.units} are "
            f"genotyped, and no effect has a relationship; needed genotyped ones ({option_name('focal')}, "
            f"{option_name('cutoff')}), or {option('method', 'kfold')}"
        )
    for fold in split.folds:
        refuse_training(prepared, fold.masked, fold.name)
    if focal is not None:
        refuse_training(prepared, focal.masked, focal.what)
    chains = _Chains(sampling, assembled, records, prepared, say, executor)
    whole_data = _run_complete(sampling, split, values, executor)
    tables = ResultTables(records, design, notes)
    if split.folds:
        tables.notes.extend(records_alone(design, split.folds))
        _predict_folds(tables, chains, split.folds, whole_data)
    if focal is not None and whole_data is not None:
        _compare_partial_data(tables, chains, focal, values, whole_data, plan.seed)
    length = {"burn_in": s.burn_in, "samples": s.samples, "thin": s.thin, "seed": s.seed}
    return tables.validation(plan, assembled.model, length, executor.facts)


def choose_sampling(analysis: Analysis, assembled: Assembled) -> Sampling:
    """Choose how each chain is sampled."""
    s, model = analysis.sampler, assembled.model
    chosen = choose_engine(s, model)
    held = analysis.variances.mode == "fixed"
    interweave = () if held else terms_to_interweave(model, s.interweave)
    schedule = Schedule(s.burn_in, s.samples, s.thin, s.refresh_every, interweave=interweave)
    return make_sampling(model, chosen.engine, chosen.partition, schedule, s.seed)


# ------------------------------------------------------------ chains


def _run_complete(
    sampling: Sampling, chosen: Split, values: list[BreedingValue], executor: Executor
) -> Followed | None:
    """The chain of all records; None where nobody asks for it."""
    design = sampling.model.design
    if chosen.focal is None and len(design.responses) == design.n_traits:
        return None
    (followed,) = executor.each(follow, (sampling, values), [(WHOLE, None, "")], ["whole data"])
    return followed


def follow(
    sampling: Sampling, values: list[BreedingValue], number: int, masked: np.ndarray | None, what: str
) -> Followed:
    """Run one chain without the masked records, which are those of `what`."""
    design = sampling.model.design
    training = design if masked is None else drop_records(design, masked, what)[0]
    mean, n = MeanEffects(), sampling.schedule.n_kept
    of_values = [FocalValueAccumulator(value, n) for value in values]
    parameters = sample(sampling, number, training, [mean, *of_values])
    return Followed(mean, [v.found() for v in of_values], parameters)


def predict_fold(
    sampling: Sampling, wanted: Sequence[Predictor], number: int, fold: Fold
) -> tuple[list[FoldPredictions], list[PredictedFold]]:
    """Run one chain without the fold and return the predictions of each response and each predictor."""
    design = sampling.model.design
    training, unfinished = drop_records(design, fold.masked, fold.name)
    of_responses = [Predictions(design, training, r, fold, r.trait in unfinished) for r in design.responses]
    of_effects = [PredictedEffects(design, fold, p, sampling.schedule.n_kept) for p in wanted]
    followers: list[Follower] = [*of_responses, *of_effects]
    sample(sampling, number, training, followers)
    return [p.found() for p in of_responses], [p.found() for p in of_effects]


# ------------------------------------------------------------ the two methods


def _predict_folds(tables: ResultTables, chains: _Chains, folds: list[Fold], whole_data: Followed | None) -> None:
    """Cross-validation: a chain without each fold."""
    design, assembled = chains.prepared.design, chains.assembled
    wanted = [] if whole_data is None else list_predictors(assembled, chains.prepared, named(assembled, whole_data))
    calls, names = list(enumerate(folds)), [f.name for f in folds]
    responses, predicted = [], []
    with closing(chains.executor.each(predict_fold, (chains.sampling, wanted), calls, names)) as of_folds:
        for fold, (of_responses, of_effects) in zip(folds, of_folds, strict=True):
            chains.say(f"{fold.name}: {np.count_nonzero(fold.masked):,} of {design.n_records:,} records left out")
            responses.append(of_responses)
            predicted.append(of_effects)
    traits = [design.traits[response.trait] for response in design.responses]
    lost = [
        {trait: of.not_predicted for trait, of in zip(traits, predictions, strict=True)} for predictions in responses
    ]
    tables.add_folds(folds, lost)
    for i, (trait, response) in enumerate(zip(traits, design.responses, strict=True)):
        of_response = [of[i] for of in responses]
        scored = score_folds(design, response, of_response)
        tables.add_scores(scored, folds)
        tables.notes.extend(note_not_predicted(chains.prepared, trait, folds, of_response))
        tables.notes.extend(incomplete_search_note(trait, folds, of_response))
        tables.notes.extend(note_missing_statistics(design, folds, scored))
    if whole_data is not None:
        y = correct_for_fixed_effects(design, whole_data.effects)
        for i, predictor in enumerate(wanted):
            over_folds = stack_folds(design, predictor, [of[i] for of in predicted], folds, y)
            tables.add_predictor(over_folds, folds)
            tables.notes.extend(note_noise(over_folds, design.traits[predictor.trait]))


def named(assembled: Assembled, whole_data: Followed) -> NamedParameters:
    """Parameters of the chain of all records."""
    draws = {name: values[None] for name, values in whole_data.parameters.items()}
    return named_parameters(assembled.terms, draws, assembled.residual, assembled.markers)


def _compare_partial_data(
    tables: ResultTables,
    chains: _Chains,
    focal: Focal,
    values: list[BreedingValue],
    whole_data: Followed,
    seed: int,
) -> None:
    """The LR method: a chain of the partial data beside that of the whole."""
    n, units = int(focal.masked.sum()), chains.records.units
    chains.say(f"LR: {n:,} of {focal.masked.size:,} records left out, {len(focal.animals):,} focal {units}")
    call = (PARTIAL, focal.masked, focal.what)
    (partial,) = chains.executor.each(follow, (chains.sampling, values), [call], ["partial data"])
    family, model = focal_families(focal, chains.prepared.pedigree), chains.assembled.model
    matrices = {i: info.matrix for i, info in zip(model.random_terms, chains.assembled.terms, strict=True)}
    compared = compare_chains(
        model.design, values, whole_data.values, partial.values, whole_data.parameters, matrices, family, seed
    )
    animals = [focal.animals.gather(value.animals) for value in values]
    tables.add_comparisons(focal, family, compared, animals, 0, FROM_DRAWS)
