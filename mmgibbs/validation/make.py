"""The whole of a validation on one page: analysis -> evaluations with and without records -> statistics -> files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.config import load_config
from mmgibbs.data.levels import lookup
from mmgibbs.data.prepare import prepare
from mmgibbs.data.prepared import Prepared
from mmgibbs.errors import ConfigError
from mmgibbs.model.design import Design
from mmgibbs.model.response import Categories, Count
from mmgibbs.runs.assemble import assemble, choose_engine
from mmgibbs.runs.chains import Executor
from mmgibbs.runs.local import LocalExecutor
from mmgibbs.runs.progress import Console
from mmgibbs.runs.record import versions
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.validation import cross, lr, sampled
from mmgibbs.validation.evaluation import Evaluation, Recorded, evaluate, evaluate_without, recorded
from mmgibbs.validation.files import output_folder, starts_of_run, write
from mmgibbs.validation.focal import Focal, choose_focal
from mmgibbs.validation.folds import Fold, animal_units, balanced_folds, families, fold_times, forward_folds
from mmgibbs.validation.plan import Plan, settled
from mmgibbs.validation.simulated import can_simulate
from pedigree.read import Pedigree

FEW_FAMILIES = 20  # below, a bootstrap of families says little
OVER_FOLDS, FROM_MODEL, FROM_SIMULATION, FROM_FAMILIES = "folds", "model", "simulation", "bootstrap of families"


@dataclass(frozen=True)
class Validation:
    """What was found."""

    # method, term, effect, trait, statistic, estimate, se, expected, se_from, n: animals (lr) or records (kfold)
    table: pl.DataFrame
    # method, term, effect, trait, fold, animal, row, predicted, observed: corrected record, or whole data (lr)
    predictions: pl.DataFrame
    info: dict
    directory: Path | None = None

    def as_text(self) -> str:
        """The table for people to read."""
        shown = self.table
        with pl.Config(
            tbl_rows=-1,
            tbl_hide_dataframe_shape=True,
            tbl_hide_column_data_types=True,
            tbl_width_chars=160,
            tbl_cols=-1,
            float_precision=4,
            fmt_str_lengths=80,
        ):
            return str(shown)


def validate(
    config: str | os.PathLike | dict,
    plan: Plan = Plan(),  # noqa: B008  frozen
    overrides: Sequence[str] = (),
    *,
    output: str | os.PathLike | None = None,
    overwrite: bool = False,
    progress: bool = True,
    report: bool = True,
    cluster: str | None = None,
) -> Validation:
    """Validate the evaluation of an analysis and write what was found.

    config, overrides, cluster: as of `mmgibbs.run`; folds and simulated records are spread over the workers of a
    cluster. output: the folder (default: that of the run, with -validation).
    Raises MmgibbsError with one readable message: options that do not fit the data, a fold without records, no starts.
    """
    console, plan = Console(progress), settled(plan)
    if plan.variances is None:
        analysis = load_config(config, overrides)
    else:  # the file need not have starts, which BLUP and fixed variances ask for
        without = load_config(config, [*overrides, "sampler.method=gibbs", "variances.mode=sample"])
        analysis = load_config(config, [*overrides, *starts_of_run(plan.variances, without)])
    path = output_folder(output or f"{analysis.output.directory}-validation", overwrite)
    records = recorded(analysis)
    if cluster is None:
        validation = examine(records, plan, console.say)
    else:
        from mmgibbs.runs.cluster import ClusterExecutor, connect  # and Dask with it

        with connect(cluster, console.say) as workers:
            validation = examine(records, plan, console.say, ClusterExecutor(workers, console.say))
    write(validation, path, report, console.say)
    return replace(validation, directory=path)


def examine(records: Recorded, plan: Plan, say: Callable[[str], None], executor: Executor | None = None) -> Validation:
    """Statistics, without files. where: None for this machine; the same come out anywhere."""
    executor, plan = executor or LocalExecutor(), settled(plan)
    prepared = prepare(records.analysis)
    codes = _codes(records.animal, None if prepared.pedigree is None else prepared.pedigree.ids)
    rows: list[tuple] = []
    predictions: list[pl.DataFrame] = []
    info: dict[str, Any] = {"notes": []}
    if prepared.design.responses:
        return _examine_sampled(records, prepared, plan, codes, say, executor)
    # what is asked for must fit the data before the first of many solutions
    folds = _folds(records, plan, codes, prepared) if plan.method in ("kfold", "both") else []
    focal = _focal(records, prepared, plan, codes) if plan.method in ("lr", "both") else None
    whole = evaluate(records.analysis, prepared)
    of = f"{whole.design.n_records:,} records of {records.units} (column '{records.column}')"
    say(f"whole data: {of}, {whole.design.n_equations:,} equations")
    if folds:
        predicted = cross.cross_validate(records, whole, folds, say, executor)
        for p in predicted:
            own, notes = _fold_rows(p, whole)
            rows += own
            info["notes"] += notes
        predictions += [_fold_predictions(p, records, whole, folds) for p in predicted]
        info["folds"] = [
            {"name": f.name, "left_out": int(f.masked.sum()), "predicted": int(f.tested.sum())} for f in folds
        ]
    if focal is not None:
        compared, info["lr"], notes = _lr(records, whole, focal, plan, say, executor)
        info["notes"] += notes
        rows += [row for c in compared for row in _lr_rows(c, info["lr"]["replicates"])]
        predictions += [_lr_predictions(c, focal.animals) for c in compared]
    model = whole.assembled.model
    record = {
        "analysis": records.analysis.name,
        "plan": asdict(plan),
        "versions": versions(),
        "variances": {
            info.name: whole.variance(i) for i, info in zip(model.random_terms, whole.assembled.terms, strict=True)
        }
        | {
            "residual": dict(zip(model.residual.classes, model.residual.start, strict=True))
            if model.residual.classes
            else model.residual.start
        },
        "records": whole.design.n_records,
        "animal_column": records.column,
        "units": records.units,
        "standard_errors": _of_errors(
            rows,
            {
                OVER_FOLDS: "standard deviation over folds divided by the root of their number; folds share "
                "training data",
                FROM_MODEL: "the inverse equations with and without the records, at the given variances",
                FROM_SIMULATION: f"{plan.replicates} sets of records simulated on this pedigree at the given variances",
                FROM_FAMILIES: f"{lr.BOOTSTRAPS} bootstrap samples of half-sib families by sire among the focal "
                f"{records.units}",
            },
        ),
        **info,
        **executor.facts,
    }
    return Validation(pl.DataFrame(rows, schema=_SCHEMA, orient="row"), pl.concat(predictions), record)


def _examine_sampled(
    records: Recorded,
    prepared: Prepared,
    plan: Plan,
    codes: np.ndarray,
    say: Callable[[str], None],
    executor: Executor,
) -> Validation:
    """The same where traits are not normal: each fold is sampled without its records."""
    if plan.method == "lr":
        raise ConfigError(
            "validate: --method lr cannot be combined with traits that are not normal: it compares solutions of two "
            "systems of equations, and liabilities are sampled; needed --method kfold"
        )
    design, s = prepared.design, records.analysis.sampler
    folds = _folds(records, plan, codes, prepared)
    model = assemble(records.analysis, prepared).model
    choice, kind, _ = choose_engine(s, model)
    schedule = Schedule(s.burn_in, s.samples, s.thin, s.refresh_every)
    say(f"whole data: {design.n_records:,} records of {records.units} (column '{records.column}'); a chain per fold")
    scored = sampled.cross_validate(sampled.sampling_of(model, choice, kind, schedule, s.seed), folds, say, executor)
    rows = [row for of in scored for row in _scored_rows(of, design)]
    notes = [note for of in scored for note in of.notes]
    notes += ["the LR method is left out: liabilities are sampled, not solved for"] if plan.method == "both" else []
    normal = [t for i, t in enumerate(design.traits) if i not in {r.trait for r in design.responses}]
    notes += [f"normal traits are not scored here: {', '.join(normal)}"] if normal else []
    random = {design.terms[i].name: model.covariance(i).start for i in model.random_terms}
    residual: Any = model.residual.start
    if model.residual.classes:
        residual = dict(zip(model.residual.classes, residual, strict=True))
    record = {
        "analysis": records.analysis.name,
        "plan": asdict(plan),
        "sampled": {"burn_in": s.burn_in, "samples": s.samples, "thin": s.thin, "seed": s.seed},
        "versions": versions(),
        "variances": random | {"residual": residual},
        "records": design.n_records,
        "animal_column": records.column,
        "units": records.units,
        "standard_errors": {
            OVER_FOLDS: "standard deviation over folds divided by the root of their number; folds share training data"
        },
        "folds": [{"name": f.name, "left_out": int(f.masked.sum()), "predicted": int(f.tested.sum())} for f in folds],
        "notes": notes,
        **executor.facts,
    }
    predictions = [p for of in scored for p in _scored_predictions(of, design, records, folds)]
    return Validation(pl.DataFrame(rows, schema=_SCHEMA, orient="row"), pl.concat(predictions), record)


def _scored_rows(found: sampled.Scored, design: Design) -> list[tuple]:
    rows = []
    for name in found.by_fold[0]:
        estimates = np.array([of[name][0] for of in found.by_fold])
        expected = [e for of in found.by_fold if (e := of[name][1]) is not None]
        error = estimates.std(ddof=1) / np.sqrt(estimates.size)
        numbers = _number(estimates.mean()), _number(error), float(np.mean(expected)) if expected else None
        of_trait = ("kfold", cross.EVERY_EFFECT_AND_FIXED, "", design.traits[found.trait])
        rows.append((*of_trait, name, *numbers, OVER_FOLDS, found.records.size))
    return rows


def _scored_predictions(
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
    return [_predictions("kfold", of(what), trait, names, *who, p, y) for what, p, y in columns]


def _of_errors(rows: list[tuple], texts: dict[str, str]) -> dict[str, str]:
    """Texts about the standard errors that there are."""
    return {
        source: text
        for source, text in texts.items()
        if source in {row[list(_SCHEMA).index("se_from")] for row in rows}
    }


_SCHEMA = dict.fromkeys(("method", "term", "effect", "trait", "statistic"), pl.String) | {
    "estimate": pl.Float64, "se": pl.Float64, "expected": pl.Float64, "se_from": pl.String, "n": pl.Int64,
}  # fmt: skip


def _codes(animals: pl.Series, ids: pl.Series | None) -> np.ndarray:
    """(n,) int64 code of each animal; without a pedigree animals are numbered as they appear, unknown ones -1."""
    ids = animals.drop_nulls().unique(maintain_order=True) if ids is None else ids
    return lookup(animals, ids).fill_null(-1).to_numpy().astype(np.int64)


# ------------------------------------------------------------------------------------------------ k-fold


def _folds(records: Recorded, plan: Plan, codes: np.ndarray, prepared: Prepared) -> list[Fold]:
    folds = _chosen_folds(records, plan, codes, prepared.pedigree)
    cross.check_folds(prepared.design, folds)
    return folds


def _chosen_folds(records: Recorded, plan: Plan, codes: np.ndarray, pedigree: Pedigree | None) -> list[Fold]:
    assert plan.folds is not None, "a settled plan has it"
    if plan.by == "time":
        return forward_folds(fold_times(records, codes, pedigree, plan.time), plan.folds)
    rng, n = (
        np.random.default_rng([plan.seed, 0]),
        int(codes.max(initial=-1)) + 1 if pedigree is None else len(pedigree.ids),
    )
    units = animal_units(records.animal, codes, n)
    if plan.by == "random":
        return balanced_folds(units, plan.folds, rng, records.units)
    if pedigree is None:
        raise ConfigError("validate: found no pedigree, needed one for --by family")
    return balanced_folds(families(pedigree, units), plan.folds, rng, "half-sib families")


def _fold_rows(found: cross.Predicted, whole: Evaluation) -> tuple[list[tuple], list[str]]:
    """(rows, notes)."""
    p, n = found.predictor, len(found.record)
    of, rows = ("kfold", p.term, p.effect, whole.design.traits[p.trait]), []
    expected, void, notes = cross.expectations(found, whole.design)
    for name, v in found.by_fold().items():
        estimate, error = _number(v.mean()), _number(v.std(ddof=1) / np.sqrt(len(v)))
        if name in void:
            estimate = error = None
        rows.append((*of, name, estimate, error, expected.get(name), OVER_FOLDS, n))
    return rows, notes


def _fold_predictions(
    found: cross.Predicted, records: Recorded, whole: Evaluation, folds: Sequence[Fold]
) -> pl.DataFrame:
    names = pl.Series([f.name for f in folds]).gather(found.fold)
    who = (records.animal.gather(found.record), records.phenotypes.rows[found.record])
    trait = whole.design.traits[found.predictor.trait]
    return _predictions("kfold", found.predictor, trait, names, *who, found.predicted, found.observed)


def _predictions(
    method: str,
    of: cross.Predictor | lr.Compared,
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


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


# ------------------------------------------------------------------------------------------------ LR


def _focal(records: Recorded, prepared: Prepared, plan: Plan, codes: np.ndarray) -> Focal:
    if not lr.related_terms(prepared.design):
        raise ConfigError(
            "validate: found no random effect with a relationship, whose breeding values the LR method would compare; "
            "needed one, or --method kfold"
        )
    focal = choose_focal(records, prepared.pedigree, codes, plan.cutoff, plan.focal)
    _levels(focal, prepared)
    return focal


def _levels(focal: Focal, prepared: Prepared) -> dict[int, np.ndarray]:
    """Term with relationships -> (n,) level codes of the focal animals."""
    related = lr.related_terms(prepared.design)
    return {i: focal.levels(prepared.levels[i].ids, prepared.design.terms[i].name) for i in related}


def _lr(
    records: Recorded, whole: Evaluation, focal: Focal, plan: Plan, say: Callable[[str], None], executor: Executor
) -> tuple[list[lr.Compared], dict[str, Any], list[str]]:
    """(statistics per component, facts, notes)."""
    pedigree, n_left_out = whole.prepared.pedigree, int(focal.masked.sum())
    levels = _levels(focal, whole.prepared)
    codes = _codes(focal.animals, None if pedigree is None else pedigree.ids)
    n = len(focal.animals) if pedigree is None else len(pedigree.ids)
    family = families(pedigree, animal_units(focal.animals, codes, n))
    say(f"LR: {n_left_out:,} of {focal.masked.size:,} records left out, {len(focal.animals):,} focal {records.units}")
    partial = evaluate_without(records, focal.masked, focal.what)
    assert plan.replicates is not None, "a settled plan has it"
    replicates = plan.replicates if can_simulate(whole) else 0
    found = lr.compare(whole, partial, focal.masked, levels, family, replicates, plan.seed, executor)
    notes, n_families = list(focal.notes), len(np.unique(family))
    if not replicates and n_families < FEW_FAMILIES:
        few = f"the focal animals are of {n_families} half-sib families"
        notes.append(f"{few}: standard errors from a bootstrap of so few are too small")
    notes += [note for c in found for note in c.notes]
    sizes = {
        "replicates": replicates,
        "left_out": n_left_out,
        "focal_animals": len(focal.animals),
        "families": n_families,
    }
    return found, {"cutoff": focal.cutoff, **sizes}, notes


def _lr_rows(found: lr.Compared, replicates: int) -> list[tuple]:
    of = ("lr", found.term, found.effect, found.trait)
    rows = []
    for name, value in found.estimates.items():
        error, expected = _number(found.errors[name]), _number(found.expected.get(name, np.nan))
        source: str | None = (
            FROM_MODEL if name in found.from_model else FROM_SIMULATION if replicates else FROM_FAMILIES
        )
        if error is None and name in lr.EXPECTED:
            source = None
        rows.append((*of, name, _number(value), error, expected, source, len(found.whole)))
    return rows


def _lr_predictions(found: lr.Compared, animals: pl.Series) -> pl.DataFrame:
    none = [None] * len(animals)
    return _predictions("lr", found, found.trait, none, animals, none, found.partial, found.whole)
