"""Calls of a function on the workers: folds of a validation, blocks of replicates, solutions.

A call whose worker is lost is made again on another one: it has no state to go on from.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from mmgibbs.errors import DeviceError
from mmgibbs.runs.cluster.workers import LOSSES, ClusterExecutor, Payload, WorkerLost, WorkerState


def each(
    place: ClusterExecutor, function: Callable, shared: tuple, calls: Sequence[tuple], names: Sequence[str]
) -> Iterator:
    """Yields function(*shared, *call) in the order of the calls, as many at once as the workers have threads.

    function: of a module; shared: sent once to each worker; names: of the calls, for what is told. What a call raises
    is raised here, in its turn; the others are then not begun.
    """
    at_once = max(1, min(len(calls), place.cluster.threads))
    failed = threading.Event()
    with ThreadPoolExecutor(at_once) as waiting, ThreadPoolExecutor(at_once) as pool:
        sent = Payload(place.cluster, shared, waiting)
        try:
            for result in [
                pool.submit(_one, place, sent, function, call, name, failed)
                for call, name in zip(calls, names, strict=True)
            ]:
                yield result.result()
        finally:
            failed.set()
            pool.shutdown(cancel_futures=True)


def _one(place: ClusterExecutor, sent: Payload, function: Callable, call: tuple, name: str, failed: threading.Event):
    packed = pickle.dumps((function, call), 5)
    for losses in range(LOSSES + 1):
        if failed.is_set():
            return None
        worker = place.cluster.take_worker(failed.is_set)
        try:
            sent.to(worker)
            return pickle.loads(sent.call(worker, _call, packed))
        except WorkerLost:
            again = "; it is begun again on another one" if losses < LOSSES else ""
            place.tell(f"{name}: worker {worker} was lost{again}")
        finally:
            place.cluster.leave(worker)
    raise DeviceError(
        f"{name}: {LOSSES + 1} workers were lost, one after another, most likely for want of memory; needed "
        "workers with more memory"
    )


def _call(held: WorkerState, packed: bytes) -> bytes:
    function, call = pickle.loads(packed)
    return pickle.dumps(function(*held.shared, *call), 5)
