"""Chains that can pause, who starts them, and who runs them: what mixed models and regressions have in common.

    results = run_chains(factory, until=[10_000], executor=LocalExecutor(), checkpoints=..., show=...)

A chain is one chain of a mixed model, or the chains of a regression side by side. An executor runs the chains of a
factory, on this machine (local.py) or on the workers of a cluster (cluster/); the draws are the same anywhere.
"""

from __future__ import annotations

import signal
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from mmgibbs.errors import Stopped
from mmgibbs.machine.device import explain_device_errors
from mmgibbs.machine.signals import StopSignals
from mmgibbs.pedigree.kernel_store import kernel_store
from mmgibbs.runs.checkpoints import Checkpoint, Checkpoints, CheckpointWriter
from mmgibbs.runs.progress_file import Position, ProgressFile, ProgressWatcher
from mmgibbs.sampler.loop import ResumableChain
from mmgibbs.sampler.schedule import Schedule


class ChainFactory(ABC):
    """Factory of the chains of an analysis, on whatever machine: it can be pickled."""

    schedule: Schedule
    device: str  # 'cpu' | 'gpu'
    prefix_of_draws: ClassVar[str]  # of the names of kept draws in a state

    @property
    def engine(self) -> str | None:
        """Name of the engine, which checkpoints keep; None for a regression."""
        return None

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the chains and of their checkpoints."""

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """Labels of the chains, for people."""

    @property
    def shown(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes, by name, of the draws that are shown while a chain runs; empty where none is."""
        return {}

    @property
    @abstractmethod
    def shared_bytes(self) -> int:
        """Memory that chains in processes side by side share."""

    @property
    def bytes_per_chain(self) -> int:
        """Memory that each of them takes beside that."""
        return 0

    @property
    def chains_at_once(self) -> int:
        """Chains that run in threads of one process, where they share a device."""
        return 1

    @abstractmethod
    def start(
        self, chain: int, state: dict[str, np.ndarray] | None, beside: ResumableChain | None = None
    ) -> ResumableChain:
        """The chain of this number, from its first sweep or from a state.

        beside: a chain that was started in this process and runs at the same time, on the same device.
        """

    def keys_of_draws(self, keys: Sequence[str]) -> list[str]:
        """Select the arrays of a state that hold kept draws."""
        return [key for key in keys if key.startswith(self.prefix_of_draws)]

    def kept_draws(self, state: Mapping[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
        """Return the kept draws of each chain in a state with these arrays: name -> (draws, ...)."""
        return [{key.removeprefix(self.prefix_of_draws): values for key, values in state.items()}]

    def compile_kernels(self) -> None:  # noqa: B027  nothing where chains share one process
        """Called in one process before chains start in several, so that they find compiled kernels."""


@dataclass(frozen=True)
class Job:
    """The chains of a run, and what they do besides sampling."""

    factory: ChainFactory
    progress: ProgressFile  # where they say how far they are, and read whether they are to stop
    checkpoints: Checkpoints | None = None  # where they keep their state, and from which they continue

    @property
    def names(self) -> tuple[str, ...]:
        return self.factory.names

    @property
    def kept_facts(self) -> dict:
        """Facts that a checkpoint of a chain has beside its state."""
        return {"engine": self.factory.engine}

    def checkpoint(self, chain: int) -> Checkpoint | None:
        """The last good one of a chain."""
        return None if self.checkpoints is None else self.checkpoints.read(self.names[chain])[0]

    def checkpoint_writer(self, chain: int, sweep: int) -> CheckpointWriter | None:
        """Make the writer of checkpoints of a chain that starts at a sweep; None where none are kept."""
        if self.checkpoints is None:
            return None
        tell = lambda at, error: self.progress.write_saved(chain, at, error)
        return CheckpointWriter(self.checkpoints, self.names[chain], sweep, tell)

    def sweep_kept(self, chain: int) -> int:
        """Return the sweep of the checkpoint of a chain; 0 for none."""
        checkpoint = self.checkpoint(chain)
        return 0 if checkpoint is None else checkpoint.facts["sweep"]


Advance = Callable[[int], list]  # all chains up to a sweep: their results, None of one that was asked to stop before


class Executor(Protocol):
    """Place where the work of a run is done. It does not change the results."""

    @property
    def facts(self) -> dict: ...  # for run.json

    @property
    def worker_peaks(self) -> dict[str, int]:
        """Chain or call -> the most memory, in bytes, of the other process that did it; empty where there was none."""

    @property
    def max_local_calls(self) -> int:
        """Calls that share the memory of this machine, at most; 0 where they are made on others."""

    def chains(self, job: Job) -> AbstractContextManager[Advance]:
        """Run the chains of a job within the block."""

    def each(self, function: Callable, shared: tuple, calls: Sequence[tuple], names: Sequence[str]) -> Generator:
        """Results of function(*shared, *call) in the order of the calls; function: of a module, names: of the calls.

        Closed before its end, it gives up the calls that have not begun."""


def position(chain: ResumableChain, shown: Mapping[str, tuple[int, ...]]) -> Position:
    """Return the position of a chain, with the values that are shown."""
    draws = chain.draws() if shown else {}
    return Position(chain.number, {name: np.array(draws[name]) for name in shown})


def run_chains(
    factory: ChainFactory,
    executor: Executor,
    until: Sequence[int] = (),
    *,
    checkpoints: Checkpoints | None = None,
    reached: int = 0,
    enough: Callable[[list], bool] | None = None,
    show: Callable[[int, Position], None] | None = None,
    warn: Callable[[str], None] | None = None,
) -> list:
    """Results of all chains, in the order of their numbers.

    until: sweeps, burn-in included, at which all chains wait for each other and `enough(results)` says whether they end
    there; none: the end of the schedule. checkpoints: where chains keep their state, and from which they continue.
    reached: sweeps of the chain that is farthest already. `show(chain, position)` is called a few times a
    second, `warn` with what the user should know at once.

    Raises Stopped where SIGINT, SIGTERM or SIGHUP came: each chain has then finished its sweep and kept its state.
    """
    rounds = [sweep for sweep in until or [factory.schedule.n_sweeps] if sweep >= reached] or [reached]
    with tempfile.TemporaryDirectory(prefix="mmgibbs-") as scratch:
        progress = ProgressFile(Path(scratch) / "progress", factory.names, factory.shown)
        if checkpoints is None and len(rounds) > 1:
            checkpoints = Checkpoints(Path(scratch), "")  # from one round to the next
        job = Job(factory, progress, checkpoints)
        with (
            ProgressWatcher(progress, show, warn),
            StopSignals(progress.ask_to_stop) as stop,
            executor.chains(job) as advance,
        ):
            for sweep in rounds:
                results = advance(sweep)
                if stop.signal is not None:
                    raise Stopped(stop.signal, _stopped(stop.signal, job, results, rounds[-1]))
                if enough is not None and enough(results):
                    break
        return results


def _stopped(number: int, job: Job, results: list, last: int) -> str:
    sweeps = [job.sweep_kept(c) if r is None else r.sweeps for c, r in enumerate(results)]
    at = f"{sweeps[0]:,}"
    if len(set(sweeps)) > 1:
        at = ", ".join(f"{sweep:,} ({name})" for sweep, name in zip(sweeps, job.names, strict=True))
    return f"stopped by {signal.Signals(number).name} after sweep {at} of {last:,}"


def start_chain(job: Job, chain: int, beside: ResumableChain | None = None) -> ResumableChain:
    """A chain from its checkpoint, or from its first sweep."""
    checkpoint = job.checkpoint(chain)
    with explain_device_errors():
        return job.factory.start(chain, None if checkpoint is None else checkpoint.arrays, beside)


def advance_chain(
    job: Job, chain: int, running: ResumableChain, until: int, is_over: Callable[[], bool] = lambda: False
) -> Any:
    """Advance a chain to sweep `until`, or to where it is asked to stop, keep its state, and take its result.

    is_over: asked after every sweep, whether nothing of the chain is wanted any more: it ends there too.
    """
    with explain_device_errors():
        return _advance_chain(job, chain, running, until, is_over)


def _advance_chain(job: Job, chain: int, running: ResumableChain, until: int, is_over: Callable[[], bool]) -> Any:
    writer = job.checkpoint_writer(chain, running.number)
    report = job.progress.writer(chain, until)
    at = lambda: position(running, job.factory.shown)

    first = running.number + 1

    def stop_or_report(running: ResumableChain) -> bool:
        if running.number == first:
            kernel_store().save()  # other first runs wait for them
        if report.due(running.number):
            report.write(at())
        if is_over():
            return True
        if writer is not None and writer.due(running.number):
            writer.save(running.number, running.state(), job.kept_facts)
        return job.progress.asked_to_stop

    report.write(at())
    running.advance(until, stop_or_report)
    report.write(at())
    if writer is not None:
        writer.save(running.number, running.state(), job.kept_facts)
    return running.result()
