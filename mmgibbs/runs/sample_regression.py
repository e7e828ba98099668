"""The chains of a regression, side by side, from their checkpoint to the end:
on this machine, or as one walk on a worker.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mmgibbs.errors import Stopped
from mmgibbs.machine.signals import StopSignals
from mmgibbs.machine.threads import blas_threads
from mmgibbs.regressions.estimators import make_arrays
from mmgibbs.regressions.loop import RegressionRun
from mmgibbs.regressions.protocol import Keys, RegressionData, RegressionDraws, Sampler
from mmgibbs.regressions.registry import find_plugin
from mmgibbs.runs.chains import Executor
from mmgibbs.runs.checkpoints import Checkpoints, CheckpointWriter, unwritten

CHAINS = "chains"  # the name of their checkpoint, which holds all of them


@dataclass(frozen=True)
class RegressionSchedule:
    seed: int
    chains: int
    burn_in: int
    samples: int  # sweeps after burn-in
    thin: int

    @property
    def n_sweeps(self) -> int:
        return self.burn_in + self.samples


@dataclass(frozen=True)
class RegressionChains:
    """All there is to begin the chains, on whatever machine: plugin by name, data, options."""

    plugin: str
    data: RegressionData
    options: object
    device: str
    threads: int | None
    schedule: RegressionSchedule

    def prepare(self) -> tuple[Sampler, object]:
        """The plugin's sampler and the arrays that it works with.

        ConfigError for a plugin that is not installed here.
        """
        arrays = make_arrays(self.device, self.threads)
        with blas_threads(arrays.threads):
            return find_plugin(self.plugin).prepare(self.data, self.options, arrays), arrays

    def begin(self, walk: int, state: dict[str, np.ndarray] | None) -> RegressionWalk:
        return self.start(*self.prepare(), state)

    def start(self, sampler: Sampler, arrays, state: dict[str, np.ndarray] | None) -> RegressionWalk:
        s = self.schedule
        with blas_threads(arrays.threads):
            run = RegressionRun(sampler, arrays, Keys(s.seed, tuple(range(s.chains))), s.burn_in, s.samples, s.thin)
        if state is not None:
            run.restore(state)
        return RegressionWalk(run)

    def stand(self, walk: RegressionWalk) -> RegressionPosition:
        return RegressionPosition(walk.number)


@dataclass(frozen=True)
class RegressionPosition:
    """Where the chains are."""

    number: int  # of their last sweep


class RegressionWalk:
    """The chains as one thing that advances, is put down and taken up."""

    def __init__(self, run: RegressionRun):
        self.run = run

    @property
    def number(self) -> int:
        return self.run.sweep

    def advance(self, until: int, pause: Callable[[RegressionWalk], bool]) -> None:
        with blas_threads(self.run.arrays.threads):
            self.run.advance(until - self.number, pause=lambda _: pause(self))

    def state(self) -> dict[str, np.ndarray]:
        return self.run.stored()

    def result(self) -> RegressionDraws:
        return self.run.result()


class RegressionJob:
    """The chains of a run, and what they do besides sampling: see cluster.walks.Work."""

    names = (CHAINS,)

    def __init__(
        self,
        shared: RegressionChains,
        checkpoints: Checkpoints | None,
        show: Callable[[int], None],
        say: Callable[[str], None],
    ):
        self.shared, self.checkpoints = shared, checkpoints
        self._show, self._say = show, say
        self.asked_to_stop = False

    def ask_to_stop(self) -> None:
        self.asked_to_stop = True

    def progress_callback(self, until: int) -> Callable[[RegressionPosition], None]:
        return lambda stand: self._show(stand.number)

    def write_saved(self, walk: int, sweep: int, error: OSError | None) -> None:
        if error is not None:
            self._say(f"warning: {unwritten(CHAINS, sweep, error)}")


def sample_regression(job: RegressionJob, begun: tuple[Sampler, object] | None, executor: Executor) -> RegressionDraws:
    """The kept draws. begun: sampler and arrays, where the chains are to run in this process; None: where `where` runs
    them.

    Raises Stopped where SIGINT or SIGTERM came: after the sweep, the state kept.
    """
    schedule = job.shared.schedule
    with StopSignals(job.ask_to_stop) as stop:
        if begun is not None:
            found = _in_this_process(job, *begun)
        else:
            with executor.walks(job) as advance:
                (found,) = advance(schedule.n_sweeps)
        if stop.signal is not None:
            name, sweep = signal.Signals(stop.signal).name, 0 if found is None else found.sweeps
            raise Stopped(stop.signal, f"stopped by {name} after sweep {sweep:,} of {schedule.n_sweeps:,}")
    return found


def _in_this_process(job: RegressionJob, sampler: Sampler, arrays) -> RegressionDraws | None:
    checkpoints = job.checkpoints
    found = None if checkpoints is None else checkpoints.read(CHAINS)[0]
    walk = job.shared.start(sampler, arrays, None if found is None else found.arrays)
    keeper = (
        None
        if checkpoints is None
        else CheckpointWriter(checkpoints, CHAINS, walk.number, lambda sweep, error: job.write_saved(0, sweep, error))
    )
    show = job.progress_callback(job.shared.schedule.n_sweeps)

    def after_sweep(walk: RegressionWalk) -> bool:
        show(RegressionPosition(walk.number))
        if keeper is not None and keeper.due(walk.number):
            keeper.save(walk.number, walk.state(), {})
        return job.asked_to_stop

    walk.advance(job.shared.schedule.n_sweeps, after_sweep)
    if keeper is not None:
        keeper.save(walk.number, walk.state(), {})
    return walk.result()
