"""Several analyses in one go, each into a run folder of its own: one after another here, at once on a cluster.

    for scenario in run_scenarios(["ignore.yaml", "account.yaml"], cluster="tcp://10.0.0.5:8786"):
        print(scenario.name, scenario.error or scenario.result.directory)

One that fails does not end the others. On a cluster each reads its tables and writes its folder here, and its chains go
to the workers, beside those of the others.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from mmgibbs.config import Analysis
from mmgibbs.config.load import listed_overrides
from mmgibbs.data.traits import load_analysis
from mmgibbs.errors import ConfigError, MmgibbsError, Stopped, submit_in_context
from mmgibbs.machine.signals import StopSignals
from mmgibbs.pedigree.errors import PedigreeError, TableError
from mmgibbs.posterior.diagnostics import refuse_without_docstrings
from mmgibbs.runs.chains import Executor
from mmgibbs.runs.local import LocalExecutor
from mmgibbs.runs.place import RunFolder
from mmgibbs.runs.progress import Console
from mmgibbs.runs.result import Result
from mmgibbs.runs.run import run_folder

REFUSALS = (MmgibbsError, PedigreeError, TableError)


@dataclass(frozen=True)
class Scenario:
    """One of several analyses, and its outcome.

    Attributes
    ----------
    name : str
        Name of the analysis file.
    result : Result or None
        Result of the run; None if it failed.
    error : Exception or None
        Why it failed.
    """

    name: str
    result: Result | None
    error: Exception | None = None  # one of REFUSALS

    def _repr_html_(self) -> str:
        from mmgibbs.report.notebook import lines_as_html

        if self.result is not None:
            return f"<div>{lines_as_html([self.name])}{self.result._repr_html_()}</div>"
        return lines_as_html([f"{self.name}: {self.error}"])


def run_scenarios(
    files: Sequence[str | os.PathLike],
    overrides: Sequence[str] = (),
    *,
    output: str | os.PathLike | None = None,
    overwrite: bool = False,
    resume: bool = False,
    extend: int = 0,
    progress: bool = True,
    verbose: bool = False,
    report: bool = False,
    cluster: str | None = None,
    done: Callable[[Scenario], None] | None = None,
) -> list[Scenario]:
    """Run several analyses, each into its own run folder.

    An analysis that fails does not end the others.

    Parameters
    ----------
    files : sequence of path-like
        Analysis files (YAML).
    overrides : sequence of str, default ()
        Strings such as "sampler.samples=100", with values as in the file. They apply to all files.
    output : path-like or None, default None
        Folder for the run folders, which are named after the files. None: each file has its own `output.directory`.
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
    cluster : str or None, default None
        "tcp://host:port" of a Dask scheduler, whose workers then run the chains with the same draws, or "local:N" for N
        workers on this machine (a script then needs the usual `if __name__ == "__main__":`).
    done : callable or None, default None
        Called with each `Scenario` as it ends.

    Returns
    -------
    list of Scenario
        Outcome of each analysis, in the order of the files.

    Raises
    ------
    ConfigError
        Before anything is run: a file cannot be used, or two would write the same folder.
    Stopped
        SIGINT, SIGTERM or SIGHUP ended the sampling, after its state was saved. It is a KeyboardInterrupt.

    Examples
    --------
    >>> import mmgibbs
    >>> scenarios = mmgibbs.run_scenarios(
    ...     ["configs/first.yaml"], ["sampler.samples=50"], output="runs/scenarios", progress=False
    ... )
    >>> [(scenario.name, scenario.error) for scenario in scenarios]
    [('first', None)]
    """
    refuse_without_docstrings()
    notify = done or (lambda scenario: None)
    files = _listed(files)
    analyses = _load(files, overrides, output)
    names = _names(files)
    how = {"overwrite": overwrite, "resume": resume, "extend": extend, "page": report}
    if cluster is None:
        scenarios: list[Scenario] = []
        for analysis, name in zip(analyses, names, strict=True):
            console = Console(progress, verbose=verbose)
            console.say(f"--- {name} ({len(scenarios) + 1} of {len(names)})")
            scenarios.append(_run(analysis, name, console, how, LocalExecutor()))
            notify(scenarios[-1])
        return scenarios
    from mmgibbs.runs.cluster import ClusterExecutor, connect

    with connect(cluster, Console(progress).say) as workers:

        def run_scenario(analysis: Analysis, name: str) -> Scenario:
            console = Console(progress, name=name, verbose=verbose)
            return _run(analysis, name, console, how, ClusterExecutor(workers, console.say))

        return _run_threads(run_scenario, analyses, names, workers.threads, notify)


def _run(analysis: Analysis, name: str, console: Console, how: dict, executor: Executor) -> Scenario:
    try:
        with RunFolder(analysis, console, **how) as folder:
            return Scenario(name, run_folder(folder, console, executor))
    except REFUSALS as error:
        return Scenario(name, None, error)


def _run_threads(
    run_scenario: Callable[[Analysis, str], Scenario],
    analyses: list[Analysis],
    names: list[str],
    threads: int,
    done: Callable[[Scenario], None],
) -> list[Scenario]:
    """Run as many at once as keep the threads of the workers busy: each holds its equations here while it runs."""
    chains = [a.sampler.chains if a.sampler.method == "gibbs" and a.model.plugin is None else 1 for a in analyses]
    at_once = min(len(analyses), -(-threads // min(chains)))
    with StopSignals(lambda: None) as stop, ThreadPoolExecutor(at_once) as pool:
        try:
            running = [submit_in_context(pool, run_scenario, a, name) for a, name in zip(analyses, names, strict=True)]
            waiting = set(running)
            while waiting and stop.signal is None:
                ended, waiting = wait(waiting, timeout=1, return_when=FIRST_COMPLETED)
                for scenario in ended:
                    if not isinstance(scenario.exception(), Stopped):
                        done(scenario.result())
        finally:
            pool.shutdown(cancel_futures=True)
        if stop.signal is not None:
            raise _all_stopped(stop.signal, names, running)
        return [scenario.result() for scenario in running]


def _all_stopped(number: int, names: list[str], running: list) -> Stopped:
    """Describe the outcome of each in one message.

    `kept` says whether there is anything that --resume need not do again.
    """
    lines, kept = [], False
    for name, scenario in zip(names, running, strict=True):
        if scenario.cancelled():
            lines.append(f"{name}: not begun")
        elif isinstance(stopped := scenario.exception(), Stopped):
            lines.append(f"{name}: {stopped}")
            kept |= stopped.kept
        else:
            lines.append(f"{name}: {scenario.result().error or 'finished'}")
            kept |= scenario.result().error is None
    return Stopped(number, "\n".join(lines), kept)


def _names(files: Sequence[str | os.PathLike]) -> list[str]:
    """Name the files by their stems; with their folders where those are not enough to tell them apart."""
    stems = [Path(f).stem for f in files]
    several = {s for s, n in Counter(stems).items() if n > 1}
    return [str(Path(f).with_suffix("")) if s in several else s for f, s in zip(files, stems, strict=True)]


def _listed(files: object) -> list[str | os.PathLike]:
    """List the paths. ConfigError for what is no list of paths: run folders are named after the files."""
    if isinstance(files, (str, os.PathLike)):
        raise ConfigError(f"files: found {os.fspath(files)!r}, needed a list of analysis files: [{os.fspath(files)!r}]")
    needed = "needed a list of paths of analysis files (YAML), such as ['one.yaml', 'other.yaml']"
    if isinstance(files, Mapping) or not isinstance(files, Iterable):
        raise ConfigError(f"files: found {_called(files)}, {needed}{_IN_A_DICT * isinstance(files, Mapping)}")
    listed = list(files)
    for i, file in enumerate(listed, 1):
        if not isinstance(file, (str, os.PathLike)):
            source = f"{_called(file)} as number {i} of the list"
            raise ConfigError(f"files: found {source}, {needed}{_IN_A_DICT * isinstance(file, Mapping)}")
    return listed


_IN_A_DICT = "; an analysis in a dict is run by mmgibbs.run(analysis)"


def _called(source: object) -> str:
    """Name a value in a message; a dict may hold whole tables."""
    return "a dict" if isinstance(source, Mapping) else repr(source)


def _load(
    files: Sequence[str | os.PathLike], overrides: Sequence[str], output: str | os.PathLike | None
) -> list[Analysis]:
    """Load the analyses. ConfigError with what is wrong with all of them."""
    analyses, problems = [], []
    for file in files:
        overrides_of_scenario = (
            []
            if output is None
            else [f"output.directory={json.dumps(str(Path(output) / Path(file).stem), ensure_ascii=False)}"]
        )
        try:
            analyses.append(load_analysis(file, [*listed_overrides(overrides), *overrides_of_scenario]))
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError("\n".join(problems))
    of_folder: dict[Path, list[str]] = {}
    for file, analysis in zip(files, analyses, strict=True):
        assert analysis.output.directory is not None, "load_config completes it"
        of_folder.setdefault(Path(analysis.output.directory).resolve(), []).append(str(file))
    for folder, names in of_folder.items():
        if len(names) > 1:
            raise ConfigError(
                f"output.directory: {' and '.join(names)} would both write '{folder}'; needed a folder for each"
            )
    return analyses
