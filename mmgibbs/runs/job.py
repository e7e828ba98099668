"""The chains of a run as a job: what they have in common, and what they say while they run, wherever that is."""

from __future__ import annotations

import errno
import math
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.runs.checkpoints import Checkpoints, unwritten
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.covariances import starting_matrices
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule

REPORT_EVERY = 0.2  # seconds between two reports of a chain


@dataclass(frozen=True)
class Chains:
    """What the chains of a run have in common, wherever they run; all there is to begin one."""

    model: MixedModel
    equations: StructuredEquations
    choice: EngineChoice
    schedule: Schedule
    seed: int

    def begin(self, chain: int, state: dict[str, np.ndarray] | None) -> Chain:
        return Chain(self.model, self.choice.build(self.equations), self.schedule, (self.seed, chain), state)

    def stand(self, chain: Chain) -> Position:
        return Position(chain.number, chain.key, chain.draws())


@dataclass(frozen=True)
class Position:
    """Where a chain is."""

    number: int  # of its last sweep
    key: tuple[int, int]
    values: dict[str, np.ndarray]  # of the parameters

    def draws(self) -> dict[str, np.ndarray]:
        return self.values


@dataclass(frozen=True)
class Job:
    """The chains of a run, and what they do besides sampling."""

    shared: Chains
    progress: Progress  # where they say how far they are, and read whether they are to stop
    checkpoints: Checkpoints | None  # where they keep their state, and whence they go on

    @property
    def names(self) -> list[str]:
        return [chain_name(c) for c in range(self.shared.schedule.chains)]

    @property
    def asked_to_stop(self) -> bool:
        return self.progress.asked_to_stop

    def progress_callback(self, until: int) -> Callable[[Position], None]:
        return self.progress.writer(until)

    def write_saved(self, chain: int, sweep: int, error: OSError | None) -> None:
        self.progress.write_saved(chain, sweep, error)


def chain_name(chain: int) -> str:
    """What the checkpoint of a chain is called."""
    return f"chain-{chain + 1}"


class Progress:
    """A file in which each chain writes its last sweep, parameters and checkpoint, for whoever shows them, and reads
    whether it is to stop.
    """

    HEAD = 3  # sweep, sweep of the last good checkpoint, error number of the last write (0: good)

    def __init__(self, path: Path, chains: int, model: MixedModel):
        self.shapes = {name: m.shape for name, m in starting_matrices(model, 0).items()}
        n_values = sum(math.prod(shape) for shape in self.shapes.values())
        self.path, self.chains, shape = path, chains, (chains + 1, self.HEAD + n_values)
        if not path.exists():
            np.zeros(shape).tofile(path)
        self.values = np.asarray(np.memmap(path, np.float64, "r+", shape=shape))  # plain: read after every sweep

    def ask_to_stop(self) -> None:
        self.values[self.chains, 0] = 1.0

    @property
    def asked_to_stop(self) -> bool:
        return self.values[self.chains, 0] != 0.0

    def writer(self, until: int) -> Callable[[Chain | Position], None]:
        last = [0.0]

        def write(chain: Chain | Position) -> None:
            now, row = time.monotonic(), self.values[chain.key[1]]
            if now - last[0] >= REPORT_EVERY or chain.number == until:
                last[0] = now
                values = chain.draws()
                row[self.HEAD :] = np.concatenate([values[name].ravel() for name in self.shapes])
                row[0] = chain.number

        return write

    def write_saved(self, chain: int, sweep: int, error: OSError | None) -> None:
        self.values[chain, 1:3] = sweep, 0 if error is None else error.errno or errno.EIO

    def saved(self, chain: int) -> tuple[int, int]:
        """Sweep of the last good checkpoint, and the error number of the last write, 0 for a good one."""
        sweep, error = self.values[chain, 1:3]
        return int(sweep), int(error)

    def read(self, chain: int) -> tuple[int, dict[str, np.ndarray]]:
        row = np.array(self.values[chain])
        values, at = {}, self.HEAD
        for name, shape in self.shapes.items():
            values[name] = row[at : at + math.prod(shape)].reshape(shape)
            at += math.prod(shape)
        return int(row[0]), values


class Watcher:
    """Calls `show` for every chain from a thread of its own, and once more at the end;
    `warn` where a checkpoint could not be written.
    """

    def __init__(self, progress: Progress, show, warn):
        self.progress, self.show, self.warn = progress, show, warn
        self.errors: dict[int, int] = {}  # of the last write, as told
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def _tell(self) -> None:
        for chain in range(self.progress.chains):
            number, values = self.progress.read(chain)
            if number and self.show is not None:
                self.show(chain, number, values)
            sweep, error = self.progress.saved(chain)
            if self.warn is not None and error != self.errors.get(chain, 0):
                failed = f"warning: {unwritten(chain_name(chain), sweep, OSError(error, os.strerror(error)))}"
                self.warn(failed if error else f"{chain_name(chain)}: its checkpoints can be written again")
            self.errors[chain] = error

    def _watch(self) -> None:
        while not self.done.wait(REPORT_EVERY):
            self._tell()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        self._tell()
