"""Validation by BLUP at given variances: solutions with and without records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from mmgibbs.data.prepared import Prepared
from mmgibbs.machine.threads import Threads
from mmgibbs.runs.chains import Executor
from mmgibbs.validation import kfold, lr
from mmgibbs.validation.estimability import records_alone
from mmgibbs.validation.evaluation import Evaluation, Recorded, evaluate, evaluate_masked
from mmgibbs.validation.options import REPLICATES, ValidationPlan
from mmgibbs.validation.results import FROM_MODEL, ResultTables, Validation
from mmgibbs.validation.splits import Focal, Split, focal_families, focal_levels


def validate_by_blup(
    records: Recorded,
    prepared: Prepared,
    plan: ValidationPlan,
    split: Split,
    say: Callable[[str], None],
    executor: Executor,
) -> Validation:
    """See run.examine."""
    if plan.replicates is None and split.focal is not None:
        plan = replace(plan, replicates=REPLICATES)
    # as many threads as the folds will have; one where nothing is said: on shared cores a second one was slower
    threads = Threads(max(records.analysis.sampler.threads or 1, executor.max_local_calls))
    whole_data = evaluate(records.analysis, prepared, threads)
    of = f"{whole_data.design.n_records:,} records of {records.units} (column '{records.column}')"
    say(f"whole data: {of}, {whole_data.design.n_equations:,} equations")
    tables = ResultTables(records, whole_data.design)
    if split.folds:
        for predicted in kfold.cross_validate(records, whole_data, split.folds, say, executor):
            tables.add_predictor(predicted, split.folds)
        tables.add_folds(split.folds)
        tables.notes.extend(records_alone(whole_data.design, split.folds))
    if split.focal is not None:
        _compare_partial_data(tables, whole_data, split.focal, plan, say, executor)
    return tables.validation(plan, whole_data.assembled.model, None, executor.facts)


def _compare_partial_data(
    tables: ResultTables,
    whole_data: Evaluation,
    focal: Focal,
    plan: ValidationPlan,
    say: Callable[[str], None],
    executor: Executor,
) -> None:
    """The LR method."""
    n, units = int(focal.masked.sum()), tables.records.units
    say(f"LR: {n:,} of {focal.masked.size:,} records left out, {len(focal.animals):,} focal {units}")
    levels, family = focal_levels(focal, whole_data.prepared), focal_families(focal, whole_data.prepared.pedigree)
    without = partial(evaluate_masked, tables.records, focal.masked, focal.what)
    assert plan.replicates is not None, "it was filled in"
    replicates = plan.replicates if lr.can_simulate(whole_data) else 0
    compared = lr.compare_evaluations(
        whole_data, without, focal.masked, levels, family, replicates, plan.seed, executor
    )
    tables.add_comparisons(focal, family, compared, [focal.animals] * len(compared), replicates, FROM_MODEL)
