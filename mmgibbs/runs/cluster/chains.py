"""Chains on the workers: each stays in the memory of its worker and advances by turns of about a second.

When its checkpoint is due its state is sent here, where the file is; a chain whose worker is lost goes on elsewhere
from that file. A draw is keyed by what it is for, and a state is all there is of a chain, so neither the worker nor the
turns change a result.

What advances is called a walk: one chain of a mixed model, or the chains of a regression side by side.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Protocol

from mmgibbs.errors import DeviceError
from mmgibbs.runs.checkpoints import Checkpoint, Checkpoints, CheckpointWriter
from mmgibbs.runs.cluster.workers import LOSSES, ClusterExecutor, Payload, WorkerLost, WorkerState

TURN = 1.0  # seconds that a walk advances before it says where it is


class Walk(Protocol):
    """What advances on a worker."""

    number: int  # sweeps so far

    def advance(self, until: int, pause: Callable[[object], bool]) -> None: ...

    def state(self) -> dict: ...  # named arrays, all there is to go on from

    def result(self): ...


class Shared(Protocol):
    """What all walks of a piece of work have in common: it can be pickled, and is sent once to each worker."""

    def begin(self, walk: int, state: dict | None) -> Walk: ...

    def stand(self, walk: Walk): ...  # where it is, with its `number`: what is sent here after each turn


class Work(Protocol):
    """Walks, and what is done here with what they say."""

    shared: Shared
    names: list[str]  # of the walks and of their checkpoints
    checkpoints: Checkpoints | None

    @property
    def asked_to_stop(self) -> bool: ...

    def progress_callback(self, until: int) -> Callable[[object], None]: ...  # takes the stand of one walk

    def write_saved(self, walk: int, sweep: int, error: OSError | None) -> None: ...


# ------------------------------------------------------------------------------------------------- on a worker


def _begin(held: WorkerState, walk: int, state: bytes | None):
    held.walks[walk] = held.shared.begin(walk, None if state is None else pickle.loads(state))
    return held.shared.stand(held.walks[walk])


def _turn(held: WorkerState, walk: int, until: int, seconds: float):
    """None, here and below, where the walk is not here: the worker is a new one under the old address."""
    if walk not in held.walks:
        return None
    end = time.monotonic() + seconds
    held.walks[walk].advance(until, lambda _: time.monotonic() >= end)
    return held.shared.stand(held.walks[walk])


def _state(held: WorkerState, walk: int) -> bytes | None:
    return pickle.dumps(held.walks[walk].state(), 5) if walk in held.walks else None


def _result(held: WorkerState, walk: int) -> bytes | None:
    return pickle.dumps(held.walks[walk].result(), 5) if walk in held.walks else None


# ----------------------------------------------------------------------------------------------- on this machine


@contextmanager
def spread(place: ClusterExecutor, work: Work):
    """Yields advance(until) -> results in the order of the walks, None for one that was stopped before it began."""
    with ThreadPoolExecutor(len(work.names)) as waiting:
        walks = _Spread(place, work, waiting)
        try:
            yield walks.advance
        finally:
            walks.leave()


class _Spread:
    """The walks of one piece of work: a thread here for each, and one that waits for what its worker answers."""

    def __init__(self, place: ClusterExecutor, work: Work, waiting: ThreadPoolExecutor):
        self.place, self.work = place, work
        self._sent = Payload(place.cluster, work.shared, waiting)
        self._at: dict[int, str] = {}  # walk -> its worker
        self._keepers: dict[int, CheckpointWriter | None] = {}
        self._reached = Counter()  # walk -> last sweep that is known of
        self._failed = threading.Event()

    def _ending(self) -> bool:
        return self._failed.is_set() or self.work.asked_to_stop

    def leave(self) -> None:
        for worker in self._at.values():
            self.place.cluster.leave(worker)
        self._at.clear()

    def advance(self, until: int) -> list:
        n = len(self.work.names)
        with ThreadPoolExecutor(n) as pool:
            try:
                walks = [pool.submit(self._one, w, until) for w in range(n)]
                for first in wait(walks, return_when=FIRST_EXCEPTION).done:
                    first.result()
                return [walk.result() for walk in walks]
            except BaseException:
                self._failed.set()
                raise

    def _one(self, walk: int, until: int):
        """Up to sweep `until`, or to where it is asked to stop;
        from its last checkpoint wherever its worker is lost.
        """
        losses, name = Counter(), self.work.names[walk]  # losses by sweep of the checkpoint
        while not self._ending():
            try:
                if walk not in self._at:
                    self._place(walk)
                return self._to(until, walk)
            except WorkerLost:
                worker = self._at.pop(walk)
                self.place.cluster.leave(worker)
                found = self._checkpoint(walk)
                sweep = 0 if found is None else found.facts["sweep"]
                whence = f"its checkpoint of sweep {sweep:,}" if sweep else "the start"
                self.place.tell(
                    f"{name}: worker {worker} was lost after sweep {self._reached[walk]:,}; the chain goes on "
                    f"from {whence}"
                )
                losses[sweep] += 1
                if losses[sweep] > LOSSES:
                    raise DeviceError(
                        f"{name}: {losses[sweep]} workers were lost, one after another, between its checkpoint of "
                        f"sweep {sweep:,} and the next, most likely for want of memory; needed workers with more memory"
                    ) from None
        return None

    def _to(self, until: int, walk: int):
        keeper, show = self._keepers[walk], self.work.progress_callback(until)
        while True:
            stand = self._call(_turn, walk, until, TURN)
            show(stand)
            self._reached[walk] = stand.number
            done = stand.number >= until or self._ending()
            if keeper is not None and (done or keeper.due(stand.number)):
                keeper.save(stand.number, pickle.loads(self._call(_state, walk)), {})
            if done:
                return pickle.loads(self._call(_result, walk))

    def _checkpoint(self, walk: int) -> Checkpoint | None:
        checkpoints = self.work.checkpoints
        return None if checkpoints is None else checkpoints.read(self.work.names[walk])[0]

    def _place(self, walk: int) -> None:
        """Begin the walk, from its checkpoint where there is one, on the worker with the least work for its threads."""
        worker = self._at[walk] = self.place.cluster.take_worker(self._ending)
        self._sent.to(worker)
        found, name = self._checkpoint(walk), self.work.names[walk]
        state = None if found is None else self._sent.send(worker, pickle.dumps(found.arrays, 5))
        stand = self._call(_begin, walk, state)
        keeping = self.work.checkpoints is not None
        told = lambda sweep, error: self.work.write_saved(walk, sweep, error)
        self._keepers[walk] = CheckpointWriter(self.work.checkpoints, name, stand.number, told) if keeping else None

    def _call(self, function: Callable, walk: int, *arguments):
        answer = self._sent.call(self._at[walk], function, walk, *arguments)
        if answer is None:
            raise WorkerLost
        return answer
