"""Calls of a function on the workers: folds of a validation, blocks of replicates, solutions.

Dask spreads them, and makes a call whose worker is lost again on another one: it has no state to continue from.
"""

from __future__ import annotations

import pickle
import time
import uuid
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

import mmgibbs
from mmgibbs.errors import DeviceError, MmgibbsError
from mmgibbs.machine.memory import peak_bytes
from mmgibbs.pedigree.errors import PedigreeError, TableError
from mmgibbs.runs.cluster.workers import LOOKING, LOSSES, NO_WORKERS, Cluster, keep_freed_memory, no_worker

if TYPE_CHECKING:
    from distributed import Future

REFUSALS = (MmgibbsError, PedigreeError, TableError)  # they would come again on every worker
SOON = 0.02  # seconds of waiting for a result


def each(
    cluster: Cluster,
    function: Callable,
    shared: tuple,
    calls: Sequence[tuple],
    names: Sequence[str],
    tell: Callable[[str], None],
    peaks: dict[str, int],
) -> Generator:
    """Yields function(*shared, *call) in the order of the calls, as many at once as the workers have threads.

    function: of a module; shared: sent once to each worker; names: of the calls, for messages; peaks: takes, by call,
    the most memory that its worker has held. What a call raises is raised here, in its turn; the others are then given
    up.
    """
    from distributed import as_completed

    client = cluster.client
    keys = [f"mmgibbs-{uuid.uuid4().hex}" for _ in calls]
    packed = [pickle.dumps((function, call), 5) for call in calls]
    sent = client.scatter(_Shared(shared), broadcast=True, hash=False)
    futures = client.map(_call, packed, key=keys, retries=LOSSES, pure=False, shared=sent, version=mmgibbs.__version__)
    losses = _Losses(cluster, dict(zip(keys, names, strict=True)), tell)
    answers: dict[str, Future] = {}
    ended = as_completed(futures, loop=client.loop)
    try:
        for future, name in zip(futures, names, strict=True):
            while future.key not in answers:
                answers |= {f.key: f for f in ended.next_batch(block=False)}
                losses.look()
                time.sleep(0 if ended.has_ready() or future.key in answers else SOON)
            answer, peaks[name] = _answer(answers.pop(future.key), name)
            yield answer
    finally:
        client.cancel(futures)


class _Shared:
    """Data that all calls share. It travels as one block of bytes, so that arrays are plain ones where it arrives."""

    def __init__(self, values: tuple):
        self.values = values

    def __reduce__(self) -> tuple[Callable[[bytes], _Shared], tuple[bytes]]:
        return _unpacked, (pickle.dumps(self.values, 5),)


def _unpacked(packed: bytes) -> _Shared:
    keep_freed_memory()
    return _Shared(pickle.loads(packed))


def _call(packed: bytes, shared: _Shared, version: str) -> bytes:
    """(whether it went well, result or refusal, peak memory), on a worker. What else it raises, Dask tries again."""
    try:
        if mmgibbs.__version__ != version:
            raise DeviceError(f"a worker has mmgibbs {mmgibbs.__version__}, needed {version}")
        function, call = pickle.loads(packed)
        return pickle.dumps((True, function(*shared.values, *call), peak_bytes()), 5)
    except REFUSALS as error:
        return pickle.dumps((False, error, 0), 5)


def _answer(future: Future, name: str) -> tuple[Any, int]:
    """The result of a call that has ended, and the peak memory of its worker."""
    from distributed import KilledWorker

    try:
        good, answer, peak = pickle.loads(future.result())
    except KilledWorker as error:
        lost = getattr(error, "allowed_failures", LOSSES) + 1
        raise DeviceError(
            f"{name}: {lost} workers were lost, one after another, most likely because memory ran out; needed "
            "workers with more memory"
        ) from error
    except CancelledError as error:
        raise DeviceError(
            f"{name}: every worker with its data was lost, most likely because memory ran out; needed workers with "
            "more memory"
        ) from error
    if not good:
        raise answer
    return answer, peak


class _Losses:
    """Tells which calls are begun again as their worker is lost. `look` as often as you like."""

    def __init__(self, cluster: Cluster, names: Mapping[str, str], tell: Callable[[str], None]):
        self.cluster, self.names, self.tell = cluster, names, tell
        self._doing: dict[str, list[str]] = {}  # worker -> names of calls, when last looked
        self._last = self._seen = time.monotonic()  # of the last look, of the last worker

    def look(self) -> None:
        now = time.monotonic()
        if now - self._last < LOOKING:
            return
        self._last, workers = now, self.cluster.workers()
        for worker in self._doing.keys() - workers.keys():
            for name in self._doing[worker]:
                self.tell(f"{name}: worker {worker} was lost; it starts again on another one")
        if workers:
            self._seen = now
        elif now - self._seen > NO_WORKERS:
            raise no_worker(self.cluster.address)
        doing = self.cluster.client.processing()
        self._doing = {w: self._begun(doing[w], n) for w, n in workers.items() if w in doing}

    def _begun(self, keys: Collection[str], threads: int) -> list[str]:
        """List the calls of a worker that its threads are working on: the first ones."""
        return [name for key, name in self.names.items() if key in keys][:threads]
