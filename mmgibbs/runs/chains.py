"""Chains side by side: in processes of this machine, or wherever else a `Where` runs them.

On this machine the processes share the equations read-only through memory maps, kernels are compiled once before, and
progress is kept in a file.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from mmgibbs.engines.choice import EngineChoice, cores
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import DeviceError, Stopped
from mmgibbs.machine.memory import free_bytes
from mmgibbs.machine.signals import SIGNALS, StopSignals
from mmgibbs.posterior.result import ChainResult
from mmgibbs.runs.checkpoints import Checkpoints, CheckpointWriter
from mmgibbs.runs.job import Chains, Job, Progress, Watcher, chain_name
from mmgibbs.sampler.chain import Chain, bytes_per_chain, sample_chain
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule

REPORT = 200  # bytes that a table of solutions needs for an equation, roughly


def sampling_bytes(model: MixedModel, schedule: Schedule, equations: int, real: np.dtype) -> int:
    """What sampling needs at least, its chains one after another:
    `equations` (bytes), a chain at work, the results of all, their report.
    """
    n = sum(t.n_levels * t.n_components for t in model.design.terms)
    sizes = [c.start.size for c in (*model.covariances, model.residual) if c is not None]
    components = {t.name: t.n_components for t in model.design.terms}
    saved = sum(codes.size * components[name] for name, codes in model.saved.items())
    decided = 0 if model.decisions is None else model.decisions.nbytes
    result = n * 8 * 4 + schedule.n_kept * (sum(sizes) + saved) * 8 + decided
    return equations + bytes_per_chain(model.design, real) + decided + schedule.chains * result + n * REPORT


def processes_for(model: MixedModel, equations: StructuredEquations, chains: int, device: str = "cpu") -> int:
    """min(chains, cores), and no more at once than their estimated memory allows;
    one at a time on a GPU, which one chain fills.
    """
    if device == "gpu":
        return 1
    wanted = min(chains, cores())
    free = free_bytes()
    each = bytes_per_chain(model.design, equations.real) + 150_000_000  # the interpreter and its libraries
    each += 0 if model.decisions is None else model.decisions.nbytes
    if free is not None and wanted > 1 and wanted * each + equations.bytes > free:
        wanted = max(1, int((free - equations.bytes) // each))
    return wanted


Advance = Callable[
    [int], list[ChainResult | None]
]  # all chains up to a sweep, or to where they are asked to stop: None where that is at once


class Executor(Protocol):
    """Where work is done. It does not change what comes out."""

    facts: dict  # for run.json

    def walks(self, job: Job) -> AbstractContextManager[Advance]:
        """Within the block the chains of a job run."""

    def each(self, function: Callable, shared: tuple, calls: Sequence[tuple], names: Sequence[str]) -> Iterator:
        """Results of function(*shared, *call) in the order of the calls; function: of a module, names: of the calls."""


class LocalExecutor:
    """Chains in processes of this machine, as many as its cores and its memory allow; calls one after another."""

    def __init__(self):
        self.facts: dict = {}

    def walks(self, job: Job) -> AbstractContextManager[Advance]:
        chains = job.shared
        processes = processes_for(chains.model, chains.equations, chains.schedule.chains, chains.choice.device)
        self.facts["processes"] = processes
        if processes > 1:
            _compile_kernels(chains)
        return _in_processes(job, processes)

    def each(self, function: Callable, shared: tuple, calls: Sequence[tuple], names: Sequence[str]) -> Iterator:
        return (function(*shared, *call) for call in calls)


def run_chains(
    model: MixedModel,
    equations: StructuredEquations,
    choice: EngineChoice,
    schedule: Schedule,
    seed: int,
    show: Callable[[int, int, dict[str, np.ndarray]], None] | None = None,
    *,
    checkpoints: Checkpoints | None = None,
    pauses: Sequence[int] = (),
    reached: int = 0,
    enough: Callable[[list[ChainResult]], bool] | None = None,
    warn: Callable[[str], None] | None = None,
    executor: Executor | None = None,
) -> list[ChainResult]:
    """All chains of a run, in the order of their numbers.

    `show(chain, sweep, parameters)` is called a few times a second. checkpoints: where chains keep their state, and
    whence they go on; None: nowhere. pauses: sweeps after burn-in at which all chains wait for each other and
    `enough(results)` says whether they end there; reached: sweeps, burn-in included, of the chain that is farthest
    already. warn: takes what the user should know at once. executor: None for this machine; the results are the same
    anywhere.

    Raises Stopped where SIGINT or SIGTERM came: each chain has then finished its sweep and kept its state.
    """
    rounds = [schedule.burn_in + p for p in pauses] or [schedule.n_sweeps]
    rounds = [until for until in rounds if until >= reached] or [reached]
    with tempfile.TemporaryDirectory(prefix="mmgibbs-") as scratch:
        progress = Progress(Path(scratch) / "progress", schedule.chains, model)
        if checkpoints is None and len(rounds) > 1:
            checkpoints = Checkpoints(Path(scratch), "")  # from one round to the next
        job = Job(Chains(model, equations, choice, schedule, seed), progress, checkpoints)
        with (
            Watcher(progress, show, warn),
            StopSignals(progress.ask_to_stop) as stop,
            (executor or LocalExecutor()).walks(job) as advance,
        ):
            for until in rounds:
                results = advance(until)
                if stop.signal is not None:
                    at = ", ".join(
                        f"{_sweep_kept(checkpoints, c) if r is None else r.sweeps:,}" for c, r in enumerate(results)
                    )
                    raise Stopped(
                        stop.signal, f"stopped by {signal.Signals(stop.signal).name} after sweep {at} of {rounds[-1]:,}"
                    )
                if enough is not None and enough(results):
                    break
        return results


@contextmanager
def _in_processes(job: Job, processes: int):
    path, parent = job.progress.path, os.getpid() if processes > 1 else None
    with _workers(processes, str(path.parent)) as at_once:

        def advance(until: int) -> list[ChainResult | None]:
            return at_once(
                _one_chain, [(c, job.shared, path, until, job.checkpoints, parent) for c in range(len(job.names))]
            )

        yield advance


@contextmanager
def _workers(processes: int, scratch: str):
    """Yields at_once(function, list of arguments) -> results in order:
    here, one after another, or in so many processes.
    """
    if processes == 1:
        yield lambda function, calls: [function(*arguments) for arguments in calls]
        return
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import BrokenProcessPool

    try:
        with (
            parallel_config(backend="loky", inner_max_num_threads=1),
            Parallel(
                processes, return_as="generator", mmap_mode="c", max_nbytes=100_000, temp_folder=scratch
            ) as parallel,
        ):
            with signals_ignored():
                started = parallel(delayed(int)() for _ in range(processes))
            list(started)
            yield lambda function, calls: list(parallel(delayed(function)(*arguments) for arguments in calls))
    except BrokenProcessPool as error:
        raise DeviceError(
            "the process of a chain was ended from outside, most likely by the system for want of memory; "
            "needed fewer chains (sampler.chains) or more memory"
        ) from error


@contextmanager
def signals_ignored():
    """Processes started here see neither Ctrl-C nor SIGTERM, so that none of them shows a traceback or ends early:
    the parent tells them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _compile_kernels(chains: Chains) -> None:
    """One sweep and one record here, so that the processes find compiled kernels in the cache."""
    sample_chain(
        chains.model, chains.choice.build(chains.equations), Schedule(0, 1, 1, refresh_every=1), (chains.seed, 0)
    )


def _one_chain(
    number: int, chains: Chains, progress_path: Path, until: int, checkpoints: Checkpoints | None, parent: int | None
) -> ChainResult | None:
    """The chain from its checkpoint, or from the start, up to sweep `until`, or to where it is asked to stop:
    None where that is at once.
    """
    chains = plain_arrays(chains)
    progress = Progress(progress_path, chains.schedule.chains, chains.model)
    if progress.asked_to_stop:
        return None
    name = chain_name(number)
    found = None if checkpoints is None else checkpoints.read(name)[0]
    chain = chains.begin(number, None if found is None else found.arrays)
    keeper = (
        None
        if checkpoints is None
        else CheckpointWriter(checkpoints, name, chain.number, partial(progress.write_saved, number))
    )
    report = progress.writer(until)

    def after_sweep(chain: Chain) -> bool:
        report(chain)
        if parent is not None and os.getppid() != parent:
            os._exit(1)  # the run was killed, and may have been started anew: nothing of this chain is wanted
        if keeper is not None and keeper.due(chain.number):
            keeper.save(chain.number, chain.state(), {})
        return progress.asked_to_stop

    report(chain)
    chain.advance(until, after_sweep)
    report(chain)
    if keeper is not None:
        keeper.save(chain.number, chain.state(), {})
    return chain.result()


def _sweep_kept(checkpoints: Checkpoints | None, chain: int) -> int:
    """Of the checkpoint of a chain that was stopped before it went on; 0 for none."""
    found = None if checkpoints is None else checkpoints.read(chain_name(chain))[0]
    return 0 if found is None else found.facts["sweep"]


def plain_arrays(value):
    """The same nested tuples and dataclasses with memory-mapped arrays seen as plain ones:
    kernels are compiled for plain arrays.
    """
    if isinstance(value, np.memmap):
        return np.asarray(value)
    if isinstance(value, tuple):
        items = [plain_arrays(v) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [plain_arrays(v) for v in value]
    if isinstance(value, dict):
        return {k: plain_arrays(v) for k, v in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(
            value, **{f.name: plain_arrays(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}
        )
    return value
