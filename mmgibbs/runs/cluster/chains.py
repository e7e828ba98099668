"""Chains on the workers: each stays in the memory of its worker and advances by turns of about a second.

When its checkpoint is due its state is sent here, where the file is; a chain whose worker is lost continues elsewhere
from that file. A draw is keyed by what it is for, and a state is all there is of a chain, so neither the worker nor the
turns change a result.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from mmgibbs.errors import DeviceError, submit_in_context
from mmgibbs.machine.memory import peak_bytes
from mmgibbs.runs.chains import Advance, Job, position
from mmgibbs.runs.checkpoints import CheckpointWriter
from mmgibbs.runs.cluster.workers import LOSSES, Cluster, Payload, WorkerLost, WorkerState
from mmgibbs.runs.progress_file import Position

TURN = 1.0  # seconds that a chain advances before it says where it is


# ------------------------------------------------------------------------------------------------- on a worker


def _start(held: WorkerState, chain: int, state: bytes | None) -> Position:
    held.chains[chain] = held.shared.start(chain, None if state is None else pickle.loads(state))
    return position(held.chains[chain], held.shared.shown)


def _turn(held: WorkerState, chain: int, until: int, seconds: float) -> Position | None:
    """Advance a chain; None, here and below, where it is not here, as the worker is a new one under the old address."""
    if chain not in held.chains:
        return None
    end = time.monotonic() + seconds
    held.chains[chain].advance(until, lambda _: time.monotonic() >= end)
    return position(held.chains[chain], held.shared.shown)


def _state(held: WorkerState, chain: int) -> bytes | None:
    return pickle.dumps(held.chains[chain].state(), 5) if chain in held.chains else None


def _result(held: WorkerState, chain: int) -> tuple[bytes, int] | None:
    """(what the chain has found, peak memory of this worker)."""
    return (pickle.dumps(held.chains[chain].result(), 5), peak_bytes()) if chain in held.chains else None


# ----------------------------------------------------------------------------------------------- on this machine


@contextmanager
def spread(cluster: Cluster, job: Job, tell: Callable[[str], None], peaks: dict[str, int]) -> Iterator[Advance]:
    """Yields advance(until) -> results in the order of the chains, None for one that was stopped before it began.

    peaks: takes, by chain, the most memory that its worker has held.
    """
    with ThreadPoolExecutor(len(job.names)) as waiting:
        chains = _SpreadChains(cluster, job, tell, waiting, peaks)
        try:
            yield chains.advance
        finally:
            chains.leave()


class _SpreadChains:
    """The chains of a job: a thread here for each, and one that waits for what its worker answers."""

    def __init__(
        self,
        cluster: Cluster,
        job: Job,
        tell: Callable[[str], None],
        waiting: ThreadPoolExecutor,
        peaks: dict[str, int],
    ):
        self.cluster, self.job, self._tell, self._peaks = cluster, job, tell, peaks
        self._payload = Payload(cluster, job.factory, waiting)
        self._at: dict[int, str] = {}  # chain -> its worker
        self._writers: dict[int, CheckpointWriter | None] = {}
        self._reached: Counter[int] = Counter()  # chain -> last sweep that is known of
        self._failed = threading.Event()

    def _ending(self) -> bool:
        return self._failed.is_set() or self.job.progress.asked_to_stop

    def leave(self) -> None:
        for worker in self._at.values():
            self.cluster.leave(worker)
        self._at.clear()

    def advance(self, until: int) -> list:
        n = len(self.job.names)
        with ThreadPoolExecutor(n) as pool:
            try:
                chains = [submit_in_context(pool, self._one, c, until) for c in range(n)]
                for first in wait(chains, return_when=FIRST_EXCEPTION).done:
                    first.result()
                return [chain.result() for chain in chains]
            except BaseException:
                self._failed.set()
                raise

    def _one(self, chain: int, until: int) -> Any:
        """Up to sweep `until`, or to where it is asked to stop;
        from its last checkpoint wherever its worker is lost.
        """
        losses: Counter[int] = Counter()  # by sweep of the checkpoint
        while not self._ending():
            try:
                if chain not in self._at:
                    self._place(chain)
                return self._to(until, chain)
            except WorkerLost:
                sweep = self._lose(chain)
                losses[sweep] += 1
                if losses[sweep] > LOSSES:
                    raise DeviceError(
                        f"{self.job.names[chain]}: {losses[sweep]} workers were lost, one after another, between its "
                        f"checkpoint of sweep {sweep:,} and the next, most likely because memory ran out; "
                        f"needed workers "
                        "with more memory"
                    ) from None
        return None

    def _lose(self, chain: int) -> int:
        """The worker of a chain is gone: the sweep that it continues from."""
        worker = self._at.pop(chain)
        self.cluster.leave(worker)
        sweep = self.job.sweep_kept(chain)
        source = f"its checkpoint of sweep {sweep:,}" if sweep else "the start"
        self._tell(
            f"{self.job.names[chain]}: worker {worker} was lost after sweep {self._reached[chain]:,}; the chain "
            f"continues from {source}"
        )
        return sweep

    def _to(self, until: int, chain: int) -> Any:
        writer, report = self._writers[chain], self.job.progress.writer(chain, until)
        while True:
            at: Position = self._call(_turn, chain, until, TURN)
            report.write(at)
            self._reached[chain] = at.number
            done = at.number >= until or self._ending()
            if writer is not None and (done or writer.due(at.number)):
                writer.save(at.number, pickle.loads(self._call(_state, chain)), self.job.kept_facts)
            if done:
                result, peak = self._call(_result, chain)
                self._peaks[self.job.names[chain]] = max(peak, self._peaks.get(self.job.names[chain], 0))
                return pickle.loads(result)

    def _place(self, chain: int) -> None:
        """Start the chain, from its checkpoint where there is one, on the worker with the least work for its
        threads.
        """
        worker = self._at[chain] = self.cluster.take_worker(self._ending)
        self._payload.to(worker)
        checkpoint = self.job.checkpoint(chain)
        state = None if checkpoint is None else self._payload.send(worker, pickle.dumps(checkpoint.arrays, 5))
        at: Position = self._call(_start, chain, state)
        self._writers[chain] = self.job.checkpoint_writer(chain, at.number)

    def _call(self, function: Callable, chain: int, *arguments: object) -> Any:
        answer = self._payload.call(self._at[chain], function, chain, *arguments)
        if answer is None:
            raise WorkerLost
        return answer
