"""The whole flow on one page: analysis file -> tables -> model -> chains -> summary -> run folder."""

from __future__ import annotations

import json
import os
import reprlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mmgibbs.config.load import listed_overrides
from mmgibbs.data.traits import load_analysis
from mmgibbs.errors import ConfigError, option
from mmgibbs.machine.device import explain_device_errors
from mmgibbs.machine.memory import peak_bytes
from mmgibbs.posterior.diagnostics import refuse_without_docstrings
from mmgibbs.results.curves import curves_frame
from mmgibbs.results.folder import WORKING, name_tables
from mmgibbs.results.reading import RunFiles
from mmgibbs.results.tables import negative_reliabilities
from mmgibbs.runs.chains import Executor
from mmgibbs.runs.first_run import first_run
from mmgibbs.runs.local import LocalExecutor
from mmgibbs.runs.place import FINISHED, RunFolder
from mmgibbs.runs.problem import Clock, Problem, Tables
from mmgibbs.runs.progress import Console
from mmgibbs.runs.result import Result


def run(
    config: str | os.PathLike | dict,
    overrides: Sequence[str] = (),
    *,
    overwrite: bool = False,
    resume: bool = False,
    extend: int = 0,
    progress: bool = True,
    verbose: bool = False,
    report: bool = False,
    directory: str | os.PathLike | None = None,
    cluster: str | None = None,
) -> Result:
    """Run an analysis and write its run folder.

    Parameters
    ----------
    config : path-like or dict
        Path of a YAML file, or a dict with the same keys. In a dict, `data.phenotypes` and `data.pedigree` may be data
        frames of Polars, pandas or any library with the Arrow PyCapsule interface.
    overrides : sequence of str, default ()
        Strings such as "sampler.samples=100", with values as in the file.
    overwrite : bool, default False
        Replace an existing run.
    resume : bool, default False
        Continue from the checkpoints of a run that ended early, with the same draws as an uninterrupted run.
    extend : int, default 0
        Sweeps to add to a finished run.
    progress : bool, default True
        Print what is being done, with a progress bar.
    verbose : bool, default False
        Print notes, every stage and all parameters too, which otherwise are in run.log only.
    report : bool, default False
        Write report.html at each checkpoint while the chains run, and when the run has ended.
    directory : path-like or None, default None
        Run folder, in place of `output.directory`.
    cluster : str or None, default None
        "tcp://host:port" of a Dask scheduler, whose workers then run the chains with the same draws, or "local:N" for N
        workers on this machine (a script then needs the usual `if __name__ == "__main__":`).

    Returns
    -------
    Result
        Tables, draws and record of the run.

    Raises
    ------
    MmgibbsError
        The analysis or its data cannot be used; one readable message says why.
    mmgibbs.pedigree.errors.PedigreeError, mmgibbs.pedigree.errors.TableError
        The pedigree or a table cannot be used.
    Stopped
        SIGINT, SIGTERM or SIGHUP ended the sampling, after its state was saved. It is a KeyboardInterrupt.

    Examples
    --------
    >>> import mmgibbs
    >>> result = mmgibbs.run(
    ...     "configs/first.yaml", ["sampler.samples=50", "sampler.burn_in=20"], directory="runs/short", progress=False
    ... )
    >>> result.summary["parameter"].to_list()
    ['animal.var[yearling_weight]', 'residual.var[yearling_weight]', 'h2[yearling_weight]']
    """
    refuse_without_docstrings()  # before hours of sampling
    console = Console(progress, verbose=verbose)
    if directory is not None and not isinstance(directory, (str, os.PathLike)):
        raise ConfigError(f"directory: found {reprlib.repr(directory)}, needed the path of a folder")
    output = [f"output.directory={json.dumps(str(directory), ensure_ascii=False)}"] if directory else []
    analysis = load_analysis(config, [*listed_overrides(overrides), *output])
    with RunFolder(analysis, console, overwrite=overwrite, resume=resume, extend=extend, page=report) as folder:
        if cluster is None or folder.kind == FINISHED:
            return run_folder(folder, console, LocalExecutor())
        from mmgibbs.runs.cluster import ClusterExecutor, connect  # and Dask with it

        with connect(cluster, console.say) as workers:
            return run_folder(folder, console, ClusterExecutor(workers, console.say))


def run_folder(folder: RunFolder, console: Console, executor: Executor) -> Result:
    """Run the analysis of a folder, on this machine or elsewhere, and write its page where that is wanted."""
    result = finished_result(folder.path) if folder.kind == FINISHED else _solved(folder, console, executor)
    if folder.page:
        from mmgibbs.report.make import report_after_run

        report_after_run(result.directory, console.say, result.solutions)
    return result


def _solved(folder: RunFolder, console: Console, executor: Executor) -> Result:
    """Solve the problem of a folder, in the same stages for every kind of analysis."""
    clock = Clock()
    sampled = folder.analysis.model.plugin is None and folder.analysis.sampler.method == "gibbs"
    with first_run(console, sampled):
        problem = read_problem(folder, console, clock)
        folder.start()
        with explain_device_errors():
            estimates = problem.solve(folder, console, executor)
    clock.lap(problem.stage)
    tables = problem.tables(estimates)
    clock.lap("summary")
    memory = {"main": peak_bytes(), "workers": dict(sorted(executor.worker_peaks.items()))}
    record = problem.record(estimates, clock.seconds) | {"peak_memory": memory, "run_id": folder.run_id}
    record |= {"data_files": folder.data_files}
    negative = negative_reliabilities(tables.solutions, record)
    record |= {} if negative is None else {"negative_reliabilities": negative}
    return written(folder, tables, record, console)


def read_problem(folder: RunFolder, console: Console, clock: Clock) -> Problem:
    """Read the analysis of a run folder with its data."""
    analysis = folder.analysis
    if analysis.model.plugin is not None:
        from mmgibbs.runs.regression import read_regression_problem  # a mixed model does not wait for the plugins

        return read_regression_problem(analysis, folder.samples, console, clock)
    from mmgibbs.runs.mixed_model_input import read_mixed_model

    problem = read_mixed_model(analysis, folder.samples, console, clock, folder.begun_with)
    folder.engine = problem.choice.name
    return problem


def written(folder: RunFolder, tables: Tables, record: dict, console: Console) -> Result:
    """Write the result into its run folder and print it."""
    draws: Any = (tables.draws or {}).get("parameters")
    curves = name_tables({"curves": curves_frame(record, draws) if draws else None}, folder.analysis.output.csv)
    info = folder.write_results(replace(tables, files={**tables.files, **curves}), record)
    folder.live = None  # nothing is at work; and it holds the data, which the page at the end has no use for
    console.finish(tables.summary, folder.path, info)
    return Result(tables.summary, tables.solutions, info, folder.path, tables.decisions, tables.response)


def open_run(directory: str | os.PathLike) -> Result:
    """Open the result of a finished run: what `run` returned when it wrote the folder.

    Nothing is run, and draws are read when you use them. While a finished run is being extended or replaced, its folder
    still has the earlier results, and these are returned.

    Parameters
    ----------
    directory : path-like
        Run folder of a mixed model (sampled, REML or BLUP) or of a regression.

    Returns
    -------
    Result
        Tables, draws and record of the run.

    Raises
    ------
    ConfigError
        There is no finished run in the folder, or one of its files is damaged or missing.

    Examples
    --------
    >>> import mmgibbs
    >>> result = mmgibbs.open_run("runs/first")
    >>> result.info["name"]
    'first'
    """
    if not isinstance(directory, (str, os.PathLike)):
        raise ConfigError(f"open_run: found {reprlib.repr(directory)}, needed the folder of a finished run")
    path = Path(directory)
    if not all((path / name).is_file() for name in ("run.json", "summary.parquet")):
        raise ConfigError(
            f"open_run: {_describe_existing(path)}; needed the folder of a finished run, with all its files"
        )
    return finished_result(path.resolve())


def _describe_existing(path: Path) -> str:
    """Describe what is at a path in place of a finished run."""
    if path.is_file():
        return f"'{path}' is a file"
    if not path.is_dir():
        return f"found no folder '{path}'"
    inside = {entry.name for entry in path.iterdir()}
    if "run.json" in inside:
        return f"'{path}' has no summary.parquet"
    if inside & WORKING:
        return f"the run in '{path}' has not finished: it works, or it ended early and {option('resume')} continues it"
    runs = sorted(entry.parent.name for entry in path.glob("*/run.json"))
    if runs:
        return f"'{path}' is no run folder, but holds {', '.join(runs[:3])}{', ...' if len(runs) > 3 else ''}"
    return f"'{path}' holds no run" if inside else f"'{path}' is empty"


def finished_result(path: Path) -> Result:
    """Read the result of a finished run from its folder. ConfigError where a file is damaged or missing."""
    files = RunFiles(path)
    solutions, decisions, response = (
        files.table_if_any(f"{name}.parquet") for name in ("solutions", "decisions", "response")
    )
    return Result(files.table("summary.parquet"), solutions, files.record, path, decisions, response)


def check(config: str | os.PathLike | dict, overrides: Sequence[str] = ()) -> dict:
    """Read and check everything, and count what a run would have; nothing is sampled or written.

    Parameters
    ----------
    config : path-like or dict
        Path of a YAML file, or a dict with the same keys. In a dict, `data.phenotypes` and `data.pedigree` may be data
        frames of Polars, pandas or any library with the Arrow PyCapsule interface.
    overrides : sequence of str, default ()
        Strings such as "sampler.samples=100", with values as in the file.

    Returns
    -------
    dict
        Numbers of records, levels and equations, the memory needed in bytes, the engine, notes and warnings.

    Raises
    ------
    MmgibbsError
        The analysis or its data cannot be used; one readable message says why.
    mmgibbs.pedigree.errors.PedigreeError, mmgibbs.pedigree.errors.TableError
        The pedigree or a table cannot be used.

    Examples
    --------
    >>> import mmgibbs
    >>> counts = mmgibbs.check("configs/first.yaml")
    >>> counts["equations"]
    3573
    """
    from mmgibbs.runs.check_text import Counts

    analysis = load_analysis(config, overrides)
    if analysis.model.plugin is not None:
        from mmgibbs.runs.regression import regression_counts

        return Counts(regression_counts(analysis))
    from mmgibbs.runs.mixed_model_input import mixed_model_counts

    return Counts(mixed_model_counts(analysis))
