"""How far chains are, in a file: written by each after a sweep, wherever it runs, and read by whoever shows it."""

from __future__ import annotations

import errno
import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mmgibbs.runs.checkpoints import unwritten

REPORT_EVERY = 0.2  # seconds between two reports of a chain


@dataclass(frozen=True)
class Position:
    """Position of a chain."""

    number: int  # of its last sweep
    values: Mapping[str, np.ndarray] = field(default_factory=dict)  # current draws that are shown


class ProgressFile:
    """A file in which each chain writes its last sweep, the draws that are shown and its checkpoint, and reads whether
    it is to stop. A row for each chain, and one more.
    """

    HEAD = 3  # sweep, sweep of the last good checkpoint, error number of the last write (0: good)

    def __init__(self, path: Path, names: Sequence[str], shown: Mapping[str, tuple[int, ...]]):
        self.path, self.names, self.shown = path, tuple(names), dict(shown)
        shape = (len(names) + 1, self.HEAD + sum(math.prod(s) for s in self.shown.values()))
        if not path.exists():
            path.write_bytes(bytes(8 * math.prod(shape)))
        self.rows = np.asarray(np.memmap(path, np.float64, "r+", shape=shape))  # plain: read after every sweep

    def __reduce__(self) -> tuple[type[ProgressFile], tuple[Path, tuple[str, ...], dict[str, tuple[int, ...]]]]:
        """Another process opens the file anew."""
        return ProgressFile, (self.path, self.names, self.shown)

    def ask_to_stop(self) -> None:
        self.rows[-1, 0] = 1.0

    @property
    def asked_to_stop(self) -> bool:
        return self.rows[-1, 0] != 0.0

    def writer(self, chain: int, until: int) -> ProgressWriter:
        return ProgressWriter(self, chain, until)

    def write(self, chain: int, position: Position) -> None:
        row = self.rows[chain]
        if self.shown:
            row[self.HEAD :] = np.concatenate([np.ravel(position.values[name]) for name in self.shown])
        row[0] = position.number

    def read(self, chain: int) -> Position:
        row, at, values = np.array(self.rows[chain]), self.HEAD, {}
        for name, shape in self.shown.items():
            size = math.prod(shape)
            values[name] = row[at : at + size].reshape(shape)
            at += size
        return Position(int(row[0]), values)

    def write_saved(self, chain: int, sweep: int, error: OSError | None) -> None:
        self.rows[chain, 1:3] = sweep, 0 if error is None else error.errno or errno.EIO

    def saved(self, chain: int) -> tuple[int, int]:
        """Sweep of the last good checkpoint, and the error number of the last write, 0 for a good one."""
        sweep, error = self.rows[chain, 1:3]
        return int(sweep), int(error)


class ProgressWriter:
    """Writes where one chain is, a few times a second."""

    def __init__(self, progress: ProgressFile, chain: int, until: int):
        self.progress, self.chain, self.until = progress, chain, until
        self._last = -math.inf

    def due(self, number: int) -> bool:
        return number == self.until or time.monotonic() - self._last >= REPORT_EVERY

    def write(self, position: Position) -> None:
        self._last = time.monotonic()
        self.progress.write(self.chain, position)


class ProgressWatcher:
    """Calls `show(chain, position)` for every chain from a thread of its own, and once more at the end; `warn` where a
    checkpoint could not be written.
    """

    def __init__(
        self,
        progress: ProgressFile,
        show: Callable[[int, Position], None] | None,
        warn: Callable[[str], None] | None,
    ):
        self.progress, self.show, self.warn = progress, show, warn
        self.errors: dict[int, int] = {}  # of the last write, as told
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def _tell(self) -> None:
        for chain in range(len(self.progress.names)):
            position = self.progress.read(chain)
            if position.number and self.show is not None:
                self.show(chain, position)
            self._tell_of_checkpoint(chain)

    def _tell_of_checkpoint(self, chain: int) -> None:
        name, (sweep, error) = self.progress.names[chain], self.progress.saved(chain)
        if self.warn is not None and error != self.errors.get(chain, 0):
            failed = f"warning: {unwritten(name, sweep, OSError(error, os.strerror(error)))}"
            self.warn(failed if error else f"{name}: its checkpoints can be written again")
        self.errors[chain] = error

    def _watch(self) -> None:
        while not self.done.wait(REPORT_EVERY):
            self._tell()

    def __enter__(self) -> ProgressWatcher:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()
        self._tell()
