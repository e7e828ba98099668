"""Chains in processes of this machine, as many as its cores and its memory allow; those that share a GPU are in threads
of this process.

The processes share what chains have in common read-only through memory maps. Before the chains start one process sweeps
once, which compiles the kernels or reads those that are kept; the others then read them.

joblib replaces a process that has come to hold 300 MB more than at first: it takes what a chain needs for its
equations for a leak. The new process has to do what the first ones do.

Chains that share a GPU, each in a thread of this process.

A chain has a stream of its own, so that the device works on all of them at once: while one waits for memory, or for a
draw that a single thread makes, the others go on. What they only read is on the device once (machine/shared_arrays.py).
Each has the draws, and the checkpoint, that it would have alone.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import shutil
import signal
import threading
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mmgibbs.errors import DeviceError, submit_in_context
from mmgibbs.machine.memory import free_bytes, peak_bytes
from mmgibbs.machine.parent import end_with_parent
from mmgibbs.machine.signals import SIGNALS
from mmgibbs.machine.threads import blas_threads, cores
from mmgibbs.pedigree.kernel_store import kernel_store
from mmgibbs.runs.chains import Advance, ChainFactory, Job, advance_chain, start_chain
from mmgibbs.sampler.loop import ResumableChain


def advance_side_by_side(job: Job, at_once: int, until: int) -> list:
    """Results of all chains up to a sweep, `at_once` of them at a time; None of those that were stopped before."""
    chains = range(len(job.names))
    groups = [chains[first : first + at_once] for first in range(0, len(chains), at_once)]
    return [result for group in groups for result in _advance_group(job, group, until)]


def _advance_group(job: Job, chains: Sequence[int], until: int) -> list:
    """Advance chains side by side; where one fails the others end after their sweep, and its error is raised."""
    if job.progress.asked_to_stop:
        return [None for _ in chains]
    started: list[ResumableChain] = []  # one after another: the first uploads what the others read
    for chain in chains:
        started.append(start_chain(job, chain, started[0] if started else None))
    failed = threading.Event()
    with ThreadPoolExecutor(len(chains)) as pool:
        running = [
            submit_in_context(pool, advance_chain, job, chain, of, until, failed.is_set)
            for chain, of in zip(chains, started, strict=True)
        ]
        for ended in as_completed(running):
            if ended.exception() is not None:
                failed.set()
    return [advanced.result() for advanced in running]


NO_SPACE = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
SHARED_MEMORY = Path("/dev/shm")  # where Linux has the semaphores of processes
MIN_SHARED_BYTES = 1_000_000  # free in it, for some tens of semaphores of 4 kB
INTERPRETER = 150_000_000  # bytes of a process and its libraries


class LocalExecutor:
    """Chains in processes of this machine; calls in this one, on so many threads of it at once."""

    max_local_calls = 1

    def __init__(self, threads: int = 1, say: Callable[[str], None] | None = None) -> None:
        self.facts: dict = {}
        self.worker_peaks: dict[str, int] = {}
        self._say = say
        if threads > 1:
            self.max_local_calls = threads

    def chains(self, job: Job) -> AbstractContextManager[Advance]:
        at_once = job.factory.chains_at_once
        if at_once > 1:
            self.facts |= {"processes": 1, "chains_at_once": at_once}
            return nullcontext(partial(advance_side_by_side, job, at_once))
        processes = self.facts["processes"] = count_processes(job.factory)
        return _run_processes(job, processes, self.worker_peaks)

    def each(self, function: Callable, shared: tuple, calls: Sequence[tuple], names: Sequence[str]) -> Generator:
        if self.max_local_calls == 1:
            return (function(*shared, *call) for call in calls)
        return self._run_threads([partial(function, *shared, *call) for call in calls], names)

    def _run_threads(self, calls: Sequence[Callable], names: Sequence[str]) -> Generator:
        """BLAS has one thread meanwhile: a call that set its number and then put it back would change that of the
        others, and with it the order of their sums."""
        with blas_threads(1), ThreadPoolExecutor(self.max_local_calls) as pool:
            running = [submit_in_context(pool, call) for call in calls]
            try:
                for call in running:
                    yield call.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                begun = [name for name, call in zip(names, running, strict=True) if not call.done()]
                if begun and self._say is not None:
                    self._say(f"waiting for the end of {', '.join(begun)}, which cannot be stopped")


def bytes_of_processes(factory: ChainFactory) -> int:
    """Count the bytes of processes of chains, beside what they share with this one; 0 for chains in this one."""
    processes = count_processes(factory)
    return processes * _bytes_of_process(factory) if processes > 1 else 0


def _bytes_of_process(factory: ChainFactory) -> int:
    return factory.bytes_per_chain + INTERPRETER


def count_processes(factory: ChainFactory) -> int:
    """min(chains, cores), and no more at once than their estimated memory allows; one on a GPU."""
    if factory.device == "gpu" or len(factory.names) == 1:
        return 1
    wanted, free = min(len(factory.names), cores()), free_bytes()
    bytes_each, shared = _bytes_of_process(factory), factory.shared_bytes
    if free is not None and wanted > 1 and wanted * bytes_each + shared > free:
        wanted = max(1, int((free - shared) // bytes_each))
    return wanted


@contextmanager
def _run_processes(job: Job, processes: int, peaks: dict[str, int]) -> Iterator[Advance]:
    """peaks: takes, by chain, the most memory that its process has held."""
    parent = os.getpid() if processes > 1 else None
    archive = kernel_store().archive if processes > 1 else None
    with _workers(processes, str(job.progress.path.parent)) as at_once:
        if processes > 1:
            kernel_store().save()
            at_once(_compile_kernels, [(job.factory, archive, parent)])
            kernel_store().load()

        def advance(until: int) -> list:
            answers = at_once(_run_chain, [(job, c, until, parent, archive) for c in range(len(job.names))])
            if parent is not None:
                of_chains = {name: n for name, (_, n) in zip(job.names, answers, strict=True)}
                peaks.update({name: max(n, peaks.get(name, 0)) for name, n in of_chains.items()})
            return [result for result, _ in answers]

        yield advance


@contextmanager
def _workers(processes: int, scratch: str) -> Iterator[Callable[[Callable, list[tuple]], list]]:
    """Yields at_once(function, list of arguments) -> results in order:
    here, one after another, or in so many processes.
    """
    if processes == 1:
        yield lambda function, calls: [function(*arguments) for arguments in calls]
        return
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import BrokenProcessPool

    _leftovers_unsaid()
    if SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free < MIN_SHARED_BYTES:
        raise DeviceError(no_space(scratch))  # or workers end with tracebacks of their own
    try:
        with (
            _replacements_unsaid(),
            parallel_config(
                backend="loky", inner_max_num_threads=1, initializer=_end_with_the_run, initargs=(os.getpid(),)
            ),
            Parallel(
                processes, return_as="generator", mmap_mode="c", max_nbytes=100_000, temp_folder=scratch
            ) as parallel,
        ):
            with signals_ignored():
                started = parallel(delayed(int)() for _ in range(processes))
            list(started)
            yield lambda function, calls: list(parallel(delayed(function)(*arguments) for arguments in calls))
    except OSError as error:
        if error.errno not in NO_SPACE or error.filename is not None:
            raise
        raise DeviceError(no_space(scratch)) from error
    except BrokenProcessPool as error:
        raise DeviceError(
            "the process of a chain was ended from outside, most likely by the system because memory ran out; "
            "needed fewer chains (sampler.chains) or more memory"
        ) from error


def no_space(scratch: str) -> str:
    """The message where processes find no room for what they share."""
    places = [place for place in (Path(scratch).parent, SHARED_MEMORY) if place.is_dir()]
    free = ", ".join(f"{shutil.disk_usage(place).free / 1e6:,.1f} MB in '{place}'" for place in places)
    return (
        f"temporary files: no space left for what the processes of chains share; found {free}; needed more room there "
        "(containers have an option for the size of /dev/shm, TMPDIR names another temporary folder), or chains one "
        "after another (sampler.chains: 1)"
    )


@contextmanager
def _replacements_unsaid() -> Iterator[None]:
    """Ignore warnings of processes that joblib replaces.

    Where warnings are errors, one would end joblib's thread that hands out work, and the run would wait for ever.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        warnings.filterwarnings("ignore", ".*joblib will operate in serial mode", UserWarning)
        yield


def _leftovers_unsaid() -> None:
    """The process of joblib that removes what killed chains have left in memory does so without warnings, which would
    follow the message of the run. It takes its filters from the environment it is started in.
    """
    from joblib.externals.loky.backend import resource_tracker

    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [before, "ignore:resource_tracker:UserWarning"]))
    try:
        resource_tracker.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


@contextmanager
def signals_ignored() -> Iterator[None]:
    """Processes started here do not see the signals, so that none of them shows a traceback or ends early:
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


def _end_with_the_run(parent: int) -> None:
    """Let a process of chains end with the run, and remove its folder of kernels if it has one."""

    def remove_kernels() -> None:
        folder = kernel_store().folder if kernel_store.cache_info().currsize else None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    end_with_parent(parent, remove_kernels)


def _leave_signals_to_the_parent() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _compile_kernels(factory: ChainFactory, archive: Path | None, parent: int | None) -> None:
    if os.getpid() != parent:
        _leave_signals_to_the_parent()
        kernel_store().share(archive)
    plain_arrays(factory).compile_kernels()
    kernel_store().save()


def _run_chain(job: Job, chain: int, until: int, parent: int | None, archive: Path | None) -> tuple[Any | None, int]:
    """(result, peak memory of this process); in a process of its own where there is a parent."""
    if job.progress.asked_to_stop:
        return None, 0
    if parent is None or parent == os.getpid():  # joblib stays in this process where the system gives it no semaphores
        return advance_chain(job, chain, start_chain(job, chain), until), 0

    _leave_signals_to_the_parent()
    kernel_store().share(archive)

    def end_with_the_parent() -> bool:
        if os.getppid() != parent:
            kernel_store().close()
            os._exit(1)  # the run was killed, and may have been started anew: nothing of this chain is wanted
        return False

    job = dataclasses.replace(job, factory=plain_arrays(job.factory))
    return advance_chain(job, chain, start_chain(job, chain), until, end_with_the_parent), peak_bytes()


def plain_arrays(value: Any) -> Any:
    """Convert memory-mapped arrays within nested tuples and dataclasses to plain ones.

    Kernels are compiled for plain arrays.
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
