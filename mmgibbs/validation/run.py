"""`mmgibbs validate`: analysis -> evaluations with and without records -> statistics -> files.

Several analyses of the same records validated alike, and compared, such as one with SNP effects and one without.

All leave out the same records. Folds and focal animals are chosen for one analysis that uses every record that any of
them uses, and taken over by row of the table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mmgibbs.build.memory_estimate import solutions_that_fit
from mmgibbs.config import Analysis
from mmgibbs.config.frames import as_polars
from mmgibbs.config.load import listed_overrides
from mmgibbs.data.alike_levels import describe_alike
from mmgibbs.data.prepare import prepare
from mmgibbs.data.prepared import Prepared
from mmgibbs.data.traits import load_analysis
from mmgibbs.errors import ConfigError, option_name
from mmgibbs.machine.threads import cores
from mmgibbs.models.design import Design
from mmgibbs.results.reading import list_inputs
from mmgibbs.runs.chains import Executor
from mmgibbs.runs.fingerprint import states_of_files
from mmgibbs.runs.local import LocalExecutor
from mmgibbs.runs.progress import Console
from mmgibbs.runs.starts import read_starts
from mmgibbs.validation import splits
from mmgibbs.validation.blup import validate_by_blup
from mmgibbs.validation.evaluation import Recorded, drop_unused, read_recorded
from mmgibbs.validation.files import output_folder, write, write_comparison
from mmgibbs.validation.gibbs import validate_by_sampling
from mmgibbs.validation.options import SAMPLE, ValidationPlan, plan_each, resolve_plan
from mmgibbs.validation.results import (
    Comparison,
    Validation,
    compare_validations,
    describe_analysis,
)
from mmgibbs.validation.splits import Split, choose

# On two cores, maternal model of 100,000 animals, 202,065 equations
SECONDS_PER_EQUATION = 4.1e-6  # seconds of one evaluation for an equation: 0.83 s measured
WORKER_STARTUP_SECONDS = (
    4.0  # seconds to start workers of this machine, to load the program, to end them: measured step by step
)
SERIAL_FRACTION = 0.15  # of an evaluation, what threads of one process cannot do side by side: assumed (above 6)


@dataclass(frozen=True)
class Work:
    """The work for one analysis."""

    analysis: Analysis
    design: Design
    plan: ValidationPlan
    folds: int  # as the data have them; 0: none are left out

    @property
    def by_blup(self) -> bool:
        return not sampled(self.design, self.plan)

    @property
    def evaluations(self) -> int:
        return max(1, self.folds)

    @property
    def with_matrices(self) -> bool:
        """A relationship has a dense matrix, which every fold makes anew."""
        return any(t.relationship.dense is not None for t in self.design.terms)


def sampled(design: Design, plan: ValidationPlan) -> bool:
    """Chains, not solutions of BLUP, are what takes time."""
    return bool(design.responses or design.markers or plan.variances == SAMPLE)


def workers_pay(workers: int, equations: int, evaluations: int) -> bool:
    """Processes on this machine save more than it takes to start them, beside as many threads.

    equations: of an evaluation by BLUP. Counts decide, not the clock, so that the same command does the same again.
    """
    on_threads = max(1 / workers, SERIAL_FRACTION)
    return SECONDS_PER_EQUATION * equations * evaluations * (on_threads - 1 / workers) > WORKER_STARTUP_SECONDS


@contextmanager
def open_executors(cluster: str | None, works: Sequence[Work], say: Callable[[str], None]) -> Iterator[list[Executor]]:
    """Yields who does the work of each validation.

    cluster: as the user gave it; 'local:N' is N threads of this process where starting N processes would take longer
    than they save. Without one, `sampler.threads` of each.
    """
    if cluster is None:
        yield [_count_threads(w, w.analysis.sampler.threads or 1, say) if w.by_blup else LocalExecutor() for w in works]
        return
    from mmgibbs.runs.cluster import ClusterExecutor, connect
    from mmgibbs.runs.cluster.workers import count_local_workers

    n_local = count_local_workers(cluster)
    if n_local and all(w.by_blup and not workers_pay(n_local, w.design.n_equations, w.evaluations) for w in works):
        at_once = min(n_local, cores())
        say(
            f"cluster {cluster}: {at_once} {'threads' if at_once > 1 else 'thread'} of this process, as starting "
            "workers would take longer than they save"
        )
        yield [_count_threads(w, at_once, say) for w in works]
        return
    with connect(cluster, say) as workers:
        yield [ClusterExecutor(workers, say) for _ in works]


def _count_threads(work: Work, threads: int, say: Callable[[str], None]) -> LocalExecutor:
    """Reduce threads to as many evaluations by BLUP as memory has room for.

    One where relationships have dense matrices: BLAS shares these out over all cores as it is. Side by side each would
    have to make its own with one thread of BLAS, in which the sums run in another order.
    """
    if threads > 1 and work.with_matrices:
        say(f"{work.analysis.name}: one fold at a time, as each makes matrices of relationships, on all cores")
        return LocalExecutor(1, say)
    wanted = min(threads, work.evaluations)
    fit = solutions_that_fit(work.design, work.analysis.sampler.precision, wanted)
    if fit < wanted:
        say(
            f"{work.analysis.name}: {fit} in place of {wanted} folds at once, as no more of "
            f"{work.design.n_equations:,} equations fit into the memory that is free"
        )
        return LocalExecutor(fit, say)
    return LocalExecutor(threads, say)


def validate_analysis(
    config: str | os.PathLike | dict,
    plan: ValidationPlan = ValidationPlan(),  # noqa: B008  frozen
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
    console, (plan,) = Console(progress), plan_each(plan, 1)
    analysis = load_with_plan(config, plan, overrides)
    path = output_folder(
        output or f"{analysis.output.directory}-validation", overwrite, inputs=_list_inputs(analysis, plan)
    )
    records = read_recorded(analysis, sampled=plan.variances == SAMPLE)
    prepared = prepare(records.analysis, table=records.table)
    chosen = choose(drop_unused(records, prepared), prepared, plan)  # what is asked for must fit the data
    work = Work(analysis, prepared.design, plan, len(chosen.folds))
    with open_executors(cluster, [work], console.say) as (executor,):
        validation = examine(records, plan, console.say, executor, chosen, prepared)
    write(validation, path, report, console.say, analysis.output.escape_formulas)
    return replace(validation, directory=path)


def _list_inputs(analysis: Analysis, plan: ValidationPlan) -> list[object]:
    """List the files that a validation reads."""
    of_run = [] if plan.variances in (None, SAMPLE) else list_inputs(plan.variances, "validate: ")
    return [analysis.path, plan.focal, *states_of_files(analysis), *of_run]


def load_with_plan(config: str | os.PathLike | dict, plan: ValidationPlan, overrides: Sequence[str]) -> Analysis:
    """The analysis, with the variances that the plan asks for."""
    overrides = listed_overrides(overrides)
    if plan.variances is None or plan.variances == SAMPLE:
        more = [] if plan.variances is None else ["sampler.method=gibbs", "variances.mode=sample"]
        return load_analysis(config, [*overrides, *more])
    # the file need not have starts, which BLUP and fixed variances ask for
    without = load_analysis(config, [*overrides, "sampler.method=gibbs", "variances.mode=sample"])
    return load_analysis(config, [*overrides, *read_starts(plan.variances, without)])


def examine(
    records: Recorded,
    plan: ValidationPlan,
    say: Callable[[str], None],
    executor: Executor | None = None,
    chosen: Split | None = None,
    prepared: Prepared | None = None,
) -> Validation:
    """Statistics, without files. executor: None for this machine; the same come out anywhere. chosen: what is left out,
    where that is not for the plan to say; prepared: of the analysis, where it is there already."""
    executor, plan = executor or LocalExecutor(), resolve_plan(plan)
    prepared = prepare(records.analysis, table=records.table) if prepared is None else prepared
    records = drop_unused(records, prepared)
    # what is asked for must fit the data before the first of many solutions
    chosen = choose(records, prepared, plan) if chosen is None else chosen
    method = validate_by_sampling if sampled(prepared.design, plan) else validate_by_blup
    outcome = method(records, prepared, plan, chosen, say, executor)
    notes = [*outcome.info["notes"], *_describe_spellings(records, plan)]
    info = outcome.info | {"notes": notes}
    return replace(outcome, head=describe_analysis(records.analysis, prepared), info=info)


def _describe_spellings(records: Recorded, plan: ValidationPlan) -> list[str]:
    """A note where levels of the column of folds may be one."""
    if plan.column is None:
        return []
    path = option_name("column")
    said = describe_alike(records.phenotypes.text(plan.column, path), plan.column)
    return [] if said is None else [f"{records.phenotypes.name}: {path}: {said}"]


# ------------------------------------------------------------ several analyses

FOLDER = "validations"  # beside the run folder of the first analysis


@dataclass(frozen=True)
class _Loaded:
    """An analysis, its records and its design."""

    plan: ValidationPlan
    records: Recorded
    prepared: Prepared

    @property
    def rows(self) -> np.ndarray:
        """(n,) lines of the table."""
        return self.records.phenotypes.rows


def validate_several(
    files: Sequence[str | os.PathLike | dict],
    plan: ValidationPlan = ValidationPlan(),  # noqa: B008  frozen
    overrides: Sequence[str] = (),
    *,
    output: str | os.PathLike | None = None,
    overwrite: bool = False,
    progress: bool = True,
    report: bool = True,
    cluster: str | None = None,
) -> Comparison:
    """Validate each analysis into a folder of its name, and write their comparison beside those.

    output: the folder of folders. The rest as of `validate_analysis`. Raises ConfigError too where the analyses
    have the same name, or not the same table of records.
    """
    console, plans = Console(progress), plan_each(plan, len(files))
    analyses = [load_with_plan(file, p, overrides) for file, p in zip(files, plans, strict=True)]
    refuse_alike(analyses)
    beside = Path(analyses[0].output.directory or ".").parent
    path = output_folder(output or beside / FOLDER, overwrite, [a.name or "" for a in analyses], [
        path for a, p in zip(analyses, plans, strict=True) for path in _list_inputs(a, p)
    ])  # fmt: skip
    loaded = [_load(analysis, p) for analysis, p in zip(analyses, plans, strict=True)]
    base = widest_dataset(loaded)
    chosen = choose(base.records, base.prepared, base.plan)

    works = [
        Work(a, loaded_analysis.prepared.design, loaded_analysis.plan, len(chosen.folds))
        for a, loaded_analysis in zip(analyses, loaded, strict=True)
    ]
    with open_executors(cluster, works, console.say) as executors:
        validations = [
            _examine(loaded_analysis, base, chosen, console.say, executor)
            for loaded_analysis, executor in zip(loaded, executors, strict=True)
        ]
    escaped = any(analysis.output.escape_formulas for analysis in analyses)
    for validation in validations:
        write(validation, path / validation.info["analysis"], report, console.say, escaped)
    comparison = compare_validations(validations)
    write_comparison(comparison, path, report, console.say, escaped)
    return replace(comparison, directory=path)


def refuse_alike(analyses: Sequence[Analysis]) -> None:
    """ConfigError where two analyses have the same name, or another table of records."""
    names = [a.name for a in analyses]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"validate: found {names.count(name)} analyses called '{name}', needed a name for each")
    first, *following = analyses
    for analysis in following:
        if not _same_table(first.data.phenotypes, analysis.data.phenotypes):
            called, first_called = (_called(a.data.phenotypes) for a in (analysis, first))
            raise ConfigError(
                f"validate: analysis '{analysis.name}' has the records of {called}, '{first.name}' those of "
                f"{first_called}; needed the same data.phenotypes, so that the same records are left out"
            )


def _same_table(a: object, b: object) -> bool:
    """Check whether tables are one file, or frames of the same rows: what is left out is chosen by row."""
    if isinstance(a, Path) or isinstance(b, Path):
        return isinstance(a, Path) and isinstance(b, Path) and a == b
    frame, another = as_polars(a), as_polars(b)
    return a is b or (frame is not None and another is not None and frame.equals(another))


def _called(table: object) -> str:
    return f"'{table}'" if isinstance(table, Path) else "another data frame"


def _load(analysis: Analysis, plan: ValidationPlan) -> _Loaded:
    records = read_recorded(analysis, sampled=plan.variances == SAMPLE)
    prepared = prepare(records.analysis, table=records.table)
    return _Loaded(plan, drop_unused(records, prepared), prepared)


def widest_dataset(loaded: Sequence[_Loaded]) -> _Loaded:
    """Find an analysis that uses every record that another uses, with a pedigree where there is one.

    ConfigError without.
    """
    every = np.unique(np.concatenate([analysis.rows for analysis in loaded]))
    wide = [analysis for analysis in loaded if analysis.rows.size == every.size]
    if not wide:
        sizes = ", ".join(f"'{analysis.records.analysis.name}' {analysis.rows.size:,}" for analysis in loaded)
        raise ConfigError(
            f"validate: no analysis uses all {every.size:,} records that one of them uses ({sizes}); needed one that "
            "does, so that the same records are left out"
        )
    return next((analysis for analysis in wide if analysis.prepared.pedigree is not None), wide[0])


def _examine(
    analysis: _Loaded, base: _Loaded, chosen: Split, say: Callable[[str], None], executor: Executor
) -> Validation:
    say(f"--- {analysis.records.analysis.name}")
    of_analysis = restrict_split(chosen, base.rows, analysis.rows)
    splits.check_folds(analysis.prepared.design, of_analysis.folds, analysis.plan.by)
    return examine(analysis.records, analysis.plan, say, executor, of_analysis, analysis.prepared)


def restrict_split(chosen: Split, rows: np.ndarray, rows_of_analysis: np.ndarray) -> Split:
    """Restrict a split among the records of `rows` (n,) to `rows_of_analysis` (m,), which are some of them."""
    order = np.argsort(rows)
    place = order[np.searchsorted(rows, rows_of_analysis, sorter=order)]
    folds = [replace(f, masked=f.masked[place], tested=f.tested[place]) for f in chosen.folds]
    focal = None if chosen.focal is None else replace(chosen.focal, masked=chosen.focal.masked[place])
    return Split(folds, focal)


# ------------------------------------------------------------ the function of Python and of the command


def validate(
    config: str | os.PathLike | dict | Sequence[str | os.PathLike | dict],
    overrides: Sequence[str] = (),
    plan: ValidationPlan = ValidationPlan(),  # noqa: B008  frozen
    *,
    cluster: str | None = None,
    output: str | os.PathLike | None = None,
    overwrite: bool = False,
    progress: bool = True,
    report: bool = True,
) -> Validation | Comparison:
    """Validate an evaluation: how well does it predict records that it has not seen?

    The arguments, with those of `ValidationPlan`, are the options of `mmgibbs validate`.

    Parameters
    ----------
    config : str, path or dict, or a list of these
        The analysis, as of `mmgibbs.run`. Several analyses of the same records are validated in the same way and
        compared.
    overrides : sequence of str, optional
        Strings 'key.path=value' that replace what the analysis says.
    plan : ValidationPlan, optional
        Which records are left out, and how: by default five folds of animals at random, and the LR method for the
        youngest animals.
    cluster : str, optional
        Address of a Dask scheduler, 'tcp://HOST:PORT', or 'local:N' for N workers of this machine.
    output : str or path, optional
        Folder to write (default: that of the run with -validation added; of several analyses the folder validations
        beside it).
    overwrite : bool, default False
        Replace an existing validation.
    progress : bool, default True
        Print what is being done.
    report : bool, default True
        Write validation.html.

    Returns
    -------
    Validation or Comparison
        `table` has the statistics with their standard errors and expected values, `predictions` every prediction
        beside what was observed, as Polars frames; `info` is the contents of validation.json, `directory` the folder.
        A Comparison, of several analyses, has a `table` with their differences, and their `validations`.

    Raises
    ------
    MmgibbsError
        If options do not fit each other or the data: a fold without records, a variance without a start.

    See Also
    --------
    run : Run the analysis.

    Examples
    --------
    >>> import mmgibbs
    >>> data = mmgibbs.simulate("data/young", animals=400)
    >>> analysis = {
    ...     "name": "weaning",
    ...     "data": {"phenotypes": data.phenotypes, "pedigree": data.pedigree},
    ...     "traits": ["weaning_weight"],
    ...     "model": {"fixed": {"sex": {}}, "random": {"animal": {"relationship": "pedigree"}}},
    ...     "variances": {"animal": 170, "residual": 300},
    ... }
    >>> validated = mmgibbs.validate(
    ...     analysis, plan=mmgibbs.ValidationPlan("kfold", folds=2), progress=False, output="validation"
    ... )
    >>> validated.table["statistic"].to_list()
    ['predictive_ability', 'accuracy', 'dispersion', 'bias']
    """
    files: list[Any] = list(config) if isinstance(config, Sequence) and not isinstance(config, str) else [config]
    if not files:
        raise ConfigError("validate: found no analysis, needed one or more")
    written: dict[str, Any] = {"output": output, "overwrite": overwrite, "progress": progress}
    written |= {"report": report, "cluster": cluster}
    if len(files) == 1:
        return validate_analysis(files[0], plan, overrides, **written)
    return validate_several(files, plan, overrides, **written)
