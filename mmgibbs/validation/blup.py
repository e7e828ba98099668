"""Validation by BLUP at given variances: solutions with and without records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial as bind
from typing import Any

import numpy as np
import polars as pl

from mmgibbs.data.prepared import Prepared
from mmgibbs.machine.threads import Threads
from mmgibbs.runs.chains import Executor
from mmgibbs.runs.record import versions
from mmgibbs.validation import kfold, lr
from mmgibbs.validation.estimability import records_alone
from mmgibbs.validation.evaluation import Evaluation, Recorded, evaluate, evaluate_without
from mmgibbs.validation.lr import can_simulate
from mmgibbs.validation.options import REPLICATES, Plan
from mmgibbs.validation.results import (
    FOLDS_TEXT,
    FROM_FAMILIES,
    FROM_MODEL,
    FROM_SIMULATION,
    OVER_FOLDS,
    Validation,
    facts_of_folds,
    fold_predictions,
    fold_rows,
    lr_predictions,
    lr_rows,
    of_errors,
    statistics_frame,
)
from mmgibbs.validation.splits import Chosen, Focal, family_of, levels_of

FEW_FAMILIES = 20  # below, a bootstrap of families says little


def examine_by_blup(
    records: Recorded,
    prepared: Prepared,
    plan: Plan,
    chosen: Chosen,
    say: Callable[[str], None],
    executor: Executor,
) -> Validation:
    """See run.examine."""
    plan = replace(plan, replicates=REPLICATES) if plan.replicates is None and chosen.focal is not None else plan
    rows: list[tuple] = []
    predictions: list[pl.DataFrame] = []
    info: dict[str, Any] = {"notes": []}
    # those that the folds will have; one where nothing is said: on shared cores a second one was slower
    whole = evaluate(
        records.analysis, prepared, Threads(max(records.analysis.sampler.threads or 1, executor.max_local_calls))
    )
    of = f"{whole.design.n_records:,} records of {records.units} (column '{records.column}')"
    say(f"whole data: {of}, {whole.design.n_equations:,} equations")
    if chosen.folds:
        predicted = kfold.cross_validate(records, whole, chosen.folds, say, executor)
        for p in predicted:
            own, notes = fold_rows(p, whole.design, chosen.folds)
            rows += own
            info["notes"] += notes
        predictions += [fold_predictions(p, records, whole.design, chosen.folds) for p in predicted]
        info["folds"] = facts_of_folds(chosen.folds)
        info["notes"] += records_alone(whole.design, chosen.folds)
    if chosen.focal is not None:
        compared, info["lr"], notes = _lr(records, whole, chosen.focal, plan, say, executor)
        info["notes"] += notes
        others = FROM_SIMULATION if info["lr"]["replicates"] else FROM_FAMILIES
        rows += [row for c in compared for row in lr_rows(c, FROM_MODEL, others)]
        predictions += [lr_predictions(c, chosen.focal.animals) for c in compared]
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
        "standard_errors": of_errors(
            rows,
            {
                OVER_FOLDS: FOLDS_TEXT,
                FROM_MODEL: "how far the breeding values are expected to change when the records that were left out "
                "come in, by the mixed-model equations with and without them, at the given variances",
                FROM_SIMULATION: f"standard deviation over {plan.replicates} sets of records simulated from the "
                "model, with its relationships, at the given variances",
                FROM_FAMILIES: lr.families_text(records.units),
            },
        ),
        **info,
        **executor.facts,
    }
    return Validation(statistics_frame(rows), pl.concat(predictions), record)


def _lr(
    records: Recorded, whole: Evaluation, focal: Focal, plan: Plan, say: Callable[[str], None], executor: Executor
) -> tuple[list[lr.Compared], dict[str, Any], list[str]]:
    """(statistics per component, facts, notes)."""
    n_left_out, levels = int(focal.masked.sum()), levels_of(focal, whole.prepared)
    family = family_of(focal, whole.prepared.pedigree)
    say(f"LR: {n_left_out:,} of {focal.masked.size:,} records left out, {len(focal.animals):,} focal {records.units}")
    without = bind(evaluate_without, records, focal.masked, focal.what)
    assert plan.replicates is not None, "it was filled in"
    replicates = plan.replicates if can_simulate(whole) else 0
    found = lr.compare_evaluations(whole, without, focal.masked, levels, family, replicates, plan.seed, executor)
    facts = focal_facts(focal, family) | {"replicates": replicates}
    notes = [*focal.notes, *([] if replicates else few_families(facts["families"]))]
    return found, facts, notes + [note for c in found for note in c.notes]


def focal_facts(focal: Focal, family: np.ndarray) -> dict[str, Any]:
    """For validation.json."""
    sizes = {
        "left_out": int(focal.masked.sum()),
        "focal_animals": len(focal.animals),
        "families": len(np.unique(family)),
    }
    return {"cutoff": focal.cutoff, **sizes}


def few_families(n: int) -> list[str]:
    """A note where a bootstrap has too few of them."""
    if n >= FEW_FAMILIES:
        return []
    return [
        f"the focal animals belong to {n} half-sib families: standard errors from a bootstrap of so few are too small"
    ]
