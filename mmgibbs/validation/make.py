"""The whole of a validation on one page: analysis -> evaluations with and without records -> statistics -> files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from mmgibbs.config import load_config
from mmgibbs.config.analysis import Analysis
from mmgibbs.data.prepare import prepare
from mmgibbs.data.prepared import Prepared
from mmgibbs.runs.chains import Executor
from mmgibbs.runs.local import LocalExecutor
from mmgibbs.runs.progress import Console
from mmgibbs.validation.by_blup import examine_by_blup
from mmgibbs.validation.by_sampling import examine_by_sampling
from mmgibbs.validation.chosen import Chosen, choose
from mmgibbs.validation.evaluation import Recorded, recorded, without_others
from mmgibbs.validation.files import output_folder, starts_of_run, write
from mmgibbs.validation.found import FROM_FAMILIES, FROM_MODEL, OVER_FOLDS, Validation
from mmgibbs.validation.place import Work, place_of_work, sampled
from mmgibbs.validation.plan import SAMPLE, Plan, settled
from mmgibbs.validation.validated import head_of

__all__ = ["FROM_FAMILIES", "FROM_MODEL", "OVER_FOLDS", "Plan", "Validation", "examine", "validate"]


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
    analysis = analysis_of(config, plan, overrides)
    path = output_folder(output or f"{analysis.output.directory}-validation", overwrite)
    records = recorded(analysis, sampled=plan.variances == SAMPLE)
    prepared = prepare(records.analysis)
    chosen = choose(without_others(records, prepared), prepared, plan)  # what is asked for must fit the data
    work = Work(analysis, prepared.design, plan, len(chosen.folds))
    with place_of_work(cluster, [work], console.say) as (executor,):
        validation = examine(records, plan, console.say, executor, chosen, prepared)
    write(validation, path, report, console.say)
    return replace(validation, directory=path)


def analysis_of(config: str | os.PathLike | dict, plan: Plan, overrides: Sequence[str]) -> Analysis:
    """The analysis, with the variances that the plan asks for."""
    if plan.variances is None or plan.variances == SAMPLE:
        more = [] if plan.variances is None else ["sampler.method=gibbs", "variances.mode=sample"]
        return load_config(config, [*overrides, *more])
    # the file need not have starts, which BLUP and fixed variances ask for
    without = load_config(config, [*overrides, "sampler.method=gibbs", "variances.mode=sample"])
    return load_config(config, [*overrides, *starts_of_run(plan.variances, without)])


def examine(
    records: Recorded,
    plan: Plan,
    say: Callable[[str], None],
    executor: Executor | None = None,
    chosen: Chosen | None = None,
    prepared: Prepared | None = None,
) -> Validation:
    """Statistics, without files. executor: None for this machine; the same come out anywhere. chosen: what is left out,
    where that is not for the plan to say; prepared: of the analysis, where it is there already."""
    executor, plan = executor or LocalExecutor(), settled(plan)
    prepared = prepare(records.analysis) if prepared is None else prepared
    records = without_others(records, prepared)
    # what is asked for must fit the data before the first of many solutions
    chosen = choose(records, prepared, plan) if chosen is None else chosen
    method = examine_by_sampling if sampled(prepared.design, plan) else examine_by_blup
    found = method(records, prepared, plan, chosen, say, executor)
    return replace(found, head=head_of(records.analysis, prepared))
