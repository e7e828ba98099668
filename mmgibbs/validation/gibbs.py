"""Validation by sampling: a chain for each fold, and for the LR method one of the whole and one of the partial data.

The LR method by sampling: breeding values from a chain of all records and from one without some of them.

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
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.build.assemble import Assembled, assemble
from mmgibbs.build.engine import choose_engine
from mmgibbs.build.memory_estimate import refuse_folds_beyond_memory
from mmgibbs.config import Analysis
from mmgibbs.data.genotypes.imputed import MOST_SOLVED
from mmgibbs.data.prepared import Prepared
from mmgibbs.errors import ConfigError, option, option_name
from mmgibbs.model.design import Design
from mmgibbs.posterior.parameters import NamedParameters, named_parameters
from mmgibbs.runs.chains import Executor
from mmgibbs.runs.record import versions
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.validation import draws, lr
from mmgibbs.validation.blup import few_families, focal_facts
from mmgibbs.validation.chains import Follower, Sampling, refuse_training, sample, sampling_of, without
from mmgibbs.validation.draws import BreedingValue, FollowedValue, FollowedValues, Left, values_of
from mmgibbs.validation.estimability import records_alone
from mmgibbs.validation.evaluation import Recorded
from mmgibbs.validation.kfold import Predictor
from mmgibbs.validation.lr import EXPECTED, Compared, bootstrap, family_sums, lr_statistics, samples_left_out
from mmgibbs.validation.options import SAMPLE, Plan
from mmgibbs.validation.results import (
    FOLDS_TEXT,
    FROM_DRAWS,
    FROM_FAMILIES,
    OVER_FOLDS,
    Validation,
    facts_of_folds,
    fold_predictions,
    fold_rows,
    lr_predictions,
    lr_rows,
    of_errors,
    scored_predictions,
    scored_rows,
    statistics_frame,
)
from mmgibbs.validation.splits import MIN_FOCAL_ANIMALS, Chosen, Focal, Fold, family_of

MUCH = 0.05  # of the variance of p: from this share on Monte Carlo error is worth a note


def compare_chains(
    design: Design,
    values: Sequence[BreedingValue],
    whole: Sequence[FollowedValue],
    partial: Sequence[FollowedValue],
    parameters: Mapping[str, np.ndarray],
    matrices: Mapping[int, str],
    family: np.ndarray,
    seed: int,
) -> list[Compared]:
    """The LR statistics of each kind of breeding value.

    parameters: draws of the whole data, name -> (draws, ...); matrices: term -> name of its covariance matrix among
    them. family: (n,) of the focal animals.
    """
    rng, out = np.random.default_rng([seed, 1]), []
    known: Left = {}
    for value, w, p in zip(values, whole, partial, strict=True):
        variance = value.variance(design, parameters, matrices, known)
        sums = without_noise(family_sums(w.mean, p.mean, family[value.animals]), w.noise, p.noise)
        found = {k: float(v) for k, v in lr_statistics(sums.sum(axis=0), variance).items()}
        drawn, left_out = bootstrap(sums, variance, rng)
        own = errors_of_contrasts(w, p)
        sd = drawn | own
        notes = [*_notes(found, sd, p, variance), *samples_left_out(found, sd, left_out, own)]
        labelled = tuple(f"{value.label}: {note}" for note in notes)
        names = value.term, value.effect, value.trait
        out.append(Compared(*names, w.mean, p.mean, found, sd, dict(EXPECTED), frozenset(EXPECTED), labelled))
    return out


def without_noise(sums: np.ndarray, of_whole: float, of_partial: float) -> np.ndarray:
    """Family sums (families, 6) of 1, w, p, w^2, p^2, w p, less what Monte Carlo error adds to the squares."""
    out = sums.copy()
    out[:, 3] -= sums[:, 0] * of_whole
    out[:, 4] -= sums[:, 0] * of_partial
    return out


def errors_of_contrasts(w: FollowedValue, p: FollowedValue) -> dict[str, float]:
    """Standard errors of bias and dispersion given p; NaN where the chains are too short to tell."""
    n, deviation = p.mean.size, p.mean - p.mean.mean()
    squares = float((deviation**2).sum()) - n * p.noise
    out = {"bias": _error(w, p, np.full(n, 1 / n)), "dispersion": np.nan}
    if squares > 0:
        out["dispersion"] = _error(w, p, deviation / squares)
    return out


def _error(w: FollowedValue, p: FollowedValue, k: np.ndarray) -> float:
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


def _notes(found: Mapping[str, float], sd: Mapping[str, float], p: FollowedValue, variance: float) -> list[str]:
    notes, of_p = [], float(p.mean.var())
    if np.isnan(found["dispersion"]):
        notes.append("breeding values from partial data vary by no more than their Monte Carlo error")
    notes += [
        f"no standard error of {name}: the draws do not vary less with all records than without some; needed more "
        "sampler.samples"
        for name in EXPECTED
        if np.isnan(sd[name]) and np.isfinite(found[name])
    ]
    if np.isnan(variance):
        notes.append(
            "no accuracy: the relationships of the focal animals are not known (a file has their inverse alone, or "
            f"genotypes of more than {MOST_SOLVED:,} of them are predicted)"
        )
    elif np.isnan(found["accuracy"]) and found["dispersion"] < 0:
        notes.append("no accuracy: breeding values from whole and from partial data have a negative covariance")
    if of_p > 0 and p.noise > MUCH * of_p:
        notes.append(
            f"Monte Carlo error makes up {100 * p.noise / of_p:.0f} % of the variance of the values from partial data; "
            "needed more sampler.samples"
        )
    return notes


# ------------------------------------------------------------------------------------------------ by_sampling

WHOLE, PARTIAL = 100_000, 100_001  # numbers of these chains, beyond those of the folds


@dataclass(frozen=True)
class Followed:
    """What a chain of the whole or of the partial data says."""

    effects: draws.MeanEffects
    values: list[FollowedValue]
    parameters: dict[str, np.ndarray]  # name -> (draws, ...)


def examine_by_sampling(
    records: Recorded,
    prepared: Prepared,
    plan: Plan,
    chosen: Chosen,
    say: Callable[[str], None],
    executor: Executor,
) -> Validation:
    """See run.examine."""
    if plan.replicates:
        raise ConfigError(
            f"validate: found {option('replicates', plan.replicates)} for an analysis that is sampled, where each "
            "would take two more chains; needed none"
        )
    analysis, design = records.analysis, prepared.design
    assembled = assemble(analysis, prepared)
    sampling = sampling_for(analysis, assembled)
    at_once = min(executor.max_local_calls, max(1, len(chosen.folds)))
    refuse_folds_beyond_memory(sampling.model, sampling.schedule, sampling.choice.bytes, at_once)
    of = f"{design.n_records:,} records of {records.units} (column '{records.column}')"
    say(f"whole data: {of}; a chain per fold and set of data")
    values, notes = ([], []) if chosen.focal is None else values_of(assembled, prepared, chosen.focal)
    if chosen.focal is not None and not values:
        raise ConfigError(
            f"validate: fewer than {MIN_FOCAL_ANIMALS} of the {len(chosen.focal.animals)} focal {records.units} are "
            f"genotyped, and no effect has a relationship; needed genotyped ones ({option_name('focal')}, "
            f"{option_name('cutoff')}), or {option('method', 'kfold')}"
        )
    for fold in chosen.folds:
        refuse_training(prepared, fold.masked, fold.name)
    if chosen.focal is not None:
        refuse_training(prepared, chosen.focal.masked, chosen.focal.what)
    whole = _whole(sampling, chosen, values, executor)
    rows: list[tuple] = []
    predictions: list[pl.DataFrame] = []
    info: dict[str, Any] = {"notes": notes}
    if chosen.folds:
        found = _kfold(sampling, assembled, records, prepared, chosen.folds, whole, say, executor)
        rows, predictions = rows + found[0], predictions + found[1]
        info = info | {
            "folds": facts_of_folds(chosen.folds, found[3]),
            "notes": info["notes"] + records_alone(design, chosen.folds) + found[2],
        }
    if chosen.focal is not None and whole is not None:
        of_lr = _lr(sampling, assembled, records, prepared, chosen.focal, values, whole, plan, say, executor)
        rows, predictions = rows + of_lr[0], predictions + of_lr[1]
        info["notes"] += of_lr[2]
        info["lr"] = focal_facts(chosen.focal, family_of(chosen.focal, prepared.pedigree)) | {"replicates": 0}
    return Validation(
        statistics_frame(rows),
        pl.concat(predictions),
        _record(records, assembled, plan, rows) | info | executor.facts,
    )


def sampling_for(analysis: Analysis, assembled: Assembled) -> Sampling:
    """How each chain is sampled."""
    s, model = analysis.sampler, assembled.model
    chosen = choose_engine(s, model)
    held = analysis.variances.mode == "fixed"
    interweave = () if held else terms_to_interweave(model, s.interweave)
    schedule = Schedule(s.burn_in, s.samples, s.thin, s.refresh_every, interweave=interweave)
    return sampling_of(model, chosen.engine, chosen.partition, schedule, s.seed)


def _record(records: Recorded, assembled: Assembled, plan: Plan, rows: list[tuple]) -> dict[str, Any]:
    """For validation.json."""
    model, s = assembled.model, records.analysis.sampler
    random = {model.design.terms[i].name: model.covariance(i).start for i in model.random_terms}
    residual: Any = model.residual.start
    if model.residual.classes:
        residual = dict(zip(model.residual.classes, residual, strict=True))
    texts = {
        OVER_FOLDS: FOLDS_TEXT,
        FROM_DRAWS: "how far the breeding values are expected to change when the records that were left out come in, "
        "by the draws with and without them, and Monte Carlo error",
        FROM_FAMILIES: lr.families_text(records.units),
    }
    return {
        "analysis": records.analysis.name,
        "plan": asdict(plan),
        "sampled": {"burn_in": s.burn_in, "samples": s.samples, "thin": s.thin, "seed": s.seed},
        "versions": versions(),
        "variances": SAMPLE if plan.variances == SAMPLE else random | {"residual": residual},
        "records": model.design.n_records,
        "animal_column": records.column,
        "units": records.units,
        "standard_errors": of_errors(rows, texts),
    }


# ------------------------------------------------------------------------------------------------ chains


def _whole(sampling: Sampling, chosen: Chosen, values: list[BreedingValue], executor: Executor) -> Followed | None:
    """The chain of all records; None where nobody asks for it."""
    design = sampling.model.design
    if chosen.focal is None and len(design.responses) == design.n_traits:
        return None
    (found,) = executor.each(follow, (sampling, values), [(WHOLE, None, "")], ["whole data"])
    return found


def follow(
    sampling: Sampling, values: list[BreedingValue], number: int, masked: np.ndarray | None, what: str
) -> Followed:
    """One chain without the masked records, which are those of `what`."""
    design = sampling.model.design
    training = design if masked is None else without(design, masked, what)[0]
    mean, n = draws.MeanEffects(), sampling.schedule.n_kept
    of_values = [FollowedValues(value, n) for value in values]
    parameters = sample(sampling, number, training, [mean, *of_values])
    return Followed(mean, [v.found() for v in of_values], parameters)


def predict_fold(
    sampling: Sampling, wanted: Sequence[Predictor], number: int, fold: Fold
) -> tuple[list[draws.LeftOut], list[draws.PredictedFold]]:
    """One chain without the fold; what is left out of each response, and what each predictor says."""
    design = sampling.model.design
    training, unfinished = without(design, fold.masked, fold.name)
    of_responses = [draws.Predictions(design, training, r, fold, r.trait in unfinished) for r in design.responses]
    of_effects = [draws.PredictedEffects(design, fold, p, sampling.schedule.n_kept) for p in wanted]
    followers: list[Follower] = [*of_responses, *of_effects]
    sample(sampling, number, training, followers)
    return [p.found() for p in of_responses], [p.found() for p in of_effects]


# ------------------------------------------------------------------------------------------------ the two methods

Tables = tuple[list[tuple], list[pl.DataFrame], list[str]]  # rows of statistics, predictions, notes


def _kfold(
    sampling: Sampling,
    assembled: Assembled,
    records: Recorded,
    prepared: Prepared,
    folds: list[Fold],
    whole: Followed | None,
    say: Callable[[str], None],
    executor: Executor,
) -> tuple[list[tuple], list[pl.DataFrame], list[str], list[dict[str, int]]]:
    """Tables, and for each fold trait -> records that it could not predict."""
    design = prepared.design
    wanted = [] if whole is None else draws.predictors(assembled, prepared, named(assembled, whole))
    calls, names = list(enumerate(folds)), [f.name for f in folds]
    responses, predicted = [], []
    with closing(executor.each(predict_fold, (sampling, wanted), calls, names)) as of_folds:
        for fold, found in zip(folds, of_folds, strict=True):
            say(f"{fold.name}: {np.count_nonzero(fold.masked):,} of {design.n_records:,} records left out")
            responses.append(found[0])
            predicted.append(found[1])
    rows: list[tuple] = []
    frames: list[pl.DataFrame] = []
    notes: list[str] = []
    for i, response in enumerate(design.responses):
        of_response = [of[i] for of in responses]
        scored = draws.scored(design, response, of_response)
        rows += scored_rows(scored, design)
        frames += scored_predictions(scored, design, records, folds)
        notes += draws.not_predicted(prepared, design.traits[response.trait], folds, of_response)
        notes += draws.not_all_found(design.traits[response.trait], folds, of_response)
        notes += draws.not_in_all_folds(design, folds, scored)
    if whole is not None:
        y = draws.corrected(design, whole.effects)
        for i, predictor in enumerate(wanted):
            found_over = draws.over_folds(design, predictor, [of[i] for of in predicted], folds, y)
            own, said = fold_rows(found_over, design, folds)
            rows += own
            frames.append(fold_predictions(found_over, records, design, folds))
            notes += [*said, *draws.noisy(found_over, design.traits[predictor.trait])]
    traits = [design.traits[response.trait] for response in design.responses]
    lost = [{trait: of.not_predicted for trait, of in zip(traits, found, strict=True)} for found in responses]
    return rows, frames, notes, lost


def named(assembled: Assembled, whole: Followed) -> NamedParameters:
    """Parameters of the chain of all records."""
    draws = {name: values[None] for name, values in whole.parameters.items()}
    return named_parameters(assembled.terms, draws, assembled.residual, assembled.markers)


def _lr(
    sampling: Sampling,
    assembled: Assembled,
    records: Recorded,
    prepared: Prepared,
    focal: Focal,
    values: list[BreedingValue],
    whole: Followed,
    plan: Plan,
    say: Callable[[str], None],
    executor: Executor,
) -> Tables:
    left_out, design = int(focal.masked.sum()), prepared.design
    say(f"LR: {left_out:,} of {focal.masked.size:,} records left out, {len(focal.animals):,} focal {records.units}")
    (partial,) = executor.each(follow, (sampling, values), [(PARTIAL, focal.masked, focal.what)], ["partial data"])
    family = family_of(focal, prepared.pedigree)
    matrices = {i: info.matrix for i, info in zip(assembled.model.random_terms, assembled.terms, strict=True)}
    parameters = whole.parameters
    compared = compare_chains(design, values, whole.values, partial.values, parameters, matrices, family, plan.seed)
    rows = [row for c in compared for row in lr_rows(c, FROM_DRAWS, FROM_FAMILIES)]
    frames = [lr_predictions(c, focal.animals.gather(v.animals)) for c, v in zip(compared, values, strict=True)]
    notes = [*focal.notes, *few_families(len(np.unique(family)))]
    return rows, frames, notes + [note for c in compared for note in c.notes]
