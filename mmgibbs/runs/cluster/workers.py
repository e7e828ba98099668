"""Which workers there are, what each of them holds, and how it is found out that one is lost."""

from __future__ import annotations

import ctypes
import pickle
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

import mmgibbs
from mmgibbs.errors import ConfigError, DeviceError, option, option_name
from mmgibbs.machine.threads import cores
from mmgibbs.pedigree.tables import counted
from mmgibbs.runs.local import signals_ignored

if TYPE_CHECKING:
    from distributed import Client, Future, Security

LOOPBACK = "127.0.0.1"  # an address that only this machine can reach
LOOKING = 2.0  # seconds of waiting for a worker before looking whether it is still there
CONNECTING = 10.0  # seconds
NO_WORKERS = 60.0  # seconds that a cluster may be without one
LOSSES = 3  # that a chain or a call may suffer before it is given up
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # names of malloc.h
ADDRESS = re.compile(r"(local:(?P<workers>[1-9][0-9]*))|((tcp|tls|ws|wss)://.+:[0-9]+)")


class WorkerLost(Exception):
    """The worker is gone, with what it held."""


class WorkerState:
    """State of a job on a worker, for as long as the client wants it: what all chains share, and the chains."""

    def __init__(self, shared: bytes):
        keep_freed_memory()
        self.shared = pickle.loads(shared)
        self.chains: dict[int, Any] = {}

    def __reduce__(self) -> NoReturn:
        raise TypeError("chains stay with their worker: what is sent is their state")


def keep_freed_memory() -> None:
    """Dask has its workers give every freed array back to the system (MALLOC_TRIM_THRESHOLD_). A solver makes arrays in
    every iteration, and new pages for them take 0.6 times as long as its work. Here the C library's usual limits
    return.
    """
    with suppress(Exception):  # another C library than glibc
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_THRESHOLD, 32 << 20)
        library.mallopt(M_TRIM_THRESHOLD, 64 << 20)


def count_local_workers(address: str) -> int:
    """Count the workers of this machine that an address asks for; 0 where it is that of a scheduler, or of nothing."""
    form = ADDRESS.fullmatch(address)
    return 0 if form is None else int(form["workers"] or 0)


@contextmanager
def connect(address: str, say: Callable[[str], None]) -> Iterator[Cluster]:
    """Yields the cluster at `address`, 'tcp://host:port' of a Dask scheduler or 'local:N' for N workers on this
    machine.

    say: takes what the user should know. Raises ConfigError where the address is none, where `distributed` is not
    installed, where a worker has another version of mmgibbs; DeviceError where the scheduler does not answer.
    """
    form, where = ADDRESS.fullmatch(address) if isinstance(address, str) else None, option_name("cluster")
    if form is None:
        raise ConfigError(f"{where}: found {address!r}, needed tcp://HOST:PORT of a Dask scheduler, or local:WORKERS")
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ConfigError(f"{where} needs Dask: pip install 'mmgibbs[cluster]' ({error})") from error
    with ExitStack() as stack:
        at, security = address, None
        if form["workers"]:
            n = int(form["workers"])
            security = _temporary_security(where)
            with signals_ignored():
                local_cluster = LocalCluster(
                    n, threads_per_worker=max(1, cores() // n), memory_limit=0, host=LOOPBACK, protocol="tls://",
                    security=security, dashboard_address=f"{LOOPBACK}:0", scheduler_kwargs={"dashboard": False},
                    silence_logs="CRITICAL"
                )  # fmt: skip
            at = stack.enter_context(local_cluster).scheduler_address
        try:
            client = stack.enter_context(Client(at, timeout=CONNECTING, set_as_default=False, security=security))
        except (OSError, TimeoutError) as error:
            raise DeviceError(
                f"{where}: no Dask scheduler answers at {address} within {CONNECTING:g} seconds; "
                "needed the address that `dask scheduler` prints"
            ) from error
        yield Cluster(client, address, say)


def _temporary_security(where: str) -> Security:
    """Keys that only this process and its workers know: whoever connects to a scheduler can run code in its workers,
    and every user of a machine can connect to its own addresses.
    """
    from distributed import Security

    try:
        return Security.temporary()
    except ImportError as error:
        raise ConfigError(
            f"{where}: workers on this machine need the library cryptography, so that only this run can use them: pip "
            f"install 'mmgibbs[cluster]' ({error})"
        ) from error


def no_worker(address: str) -> DeviceError:
    """The workers of a cluster have gone."""
    return DeviceError(f"{option('cluster', address)}: it had no worker for {NO_WORKERS:g} seconds")


class Cluster:
    """The workers of a Dask scheduler, all with this version of mmgibbs. Several runs may share them."""

    def __init__(self, client: Client, address: str, say: Callable[[str], None]):
        self.client, self.address, self._say = client, address, say
        self._versions: dict[str, str] = {}  # of the workers ever seen
        self._busy: Counter[str] = Counter()  # worker -> chains that it has
        self._lock = threading.RLock()
        self.first_workers: dict[str, int] = {}
        try:
            client.wait_for_workers(1, timeout=CONNECTING)
        except TimeoutError as error:
            raise DeviceError(
                f"{option_name('cluster')}: the scheduler at {address} has no worker after {CONNECTING:g} seconds"
            ) from error
        self.first_workers = self.workers()
        differing = [f"worker {w} has mmgibbs {v}" for w, v in self._versions.items() if v != mmgibbs.__version__]
        if differing:
            where = option("cluster", address)
            raise ConfigError(f"{where}: {', '.join(differing)}; needed {mmgibbs.__version__}, as here")
        say(f"cluster {address}: {counted(len(self.first_workers), 'worker')} with {counted(self.threads, 'thread')}")

    @property
    def local(self) -> bool:
        """The workers are of this machine, started for this run."""
        return self.address.startswith("local:")

    @property
    def threads(self) -> int:
        """Number of threads of all workers, as they were at first."""
        return sum(self.first_workers.values())

    def workers(self) -> dict[str, int]:
        """Address -> threads of the workers that are there now; those of another version are left out, and reported."""
        with self._lock:
            try:
                threads = self.client.nthreads()
                new = [w for w in threads if w not in self._versions]
                answers = self.client.run(_version_asker(), workers=new, on_error="return") if new else {}
            except (OSError, TimeoutError) as error:
                raise DeviceError(
                    f"{option_name('cluster')}: the scheduler at {self.address} no longer answers ({error})"
                ) from error
            for worker, answer in answers.items():
                if isinstance(answer, OSError):
                    continue  # lost meanwhile
                self._versions[worker] = answer if isinstance(answer, str) else f"not installed ({answer})"
                if self.first_workers and self._versions[worker] != mmgibbs.__version__:
                    self._say(
                        f"worker {worker} is not used: it has mmgibbs {self._versions[worker]}, needed "
                        f"{mmgibbs.__version__}"
                    )
            return {w: n for w, n in threads.items() if self._versions.get(w) == mmgibbs.__version__}

    def take_worker(self, ending: Callable[[], bool]) -> str:
        """The worker with the least work for its threads; it has one chain more from now on, until `leave`."""
        end = time.monotonic() + NO_WORKERS
        while True:
            with self._lock:
                workers = self.workers()
                if workers:
                    worker = min(workers, key=lambda w: self._busy[w] / workers[w])
                    self._busy[worker] += 1
                    return worker
            if time.monotonic() > end or ending():
                raise no_worker(self.address)
            time.sleep(LOOKING)

    def leave(self, worker: str) -> None:
        with self._lock:
            self._busy[worker] -= 1


def _version_asker() -> Callable[[], str]:
    """A function that is sent whole, so that it also answers where there is no mmgibbs."""

    def version() -> str:
        from mmgibbs import __version__

        return __version__

    return version


class Payload:
    """Data that the chains of a job share, sent once to each worker that has one of them."""

    def __init__(self, cluster: Cluster, shared: object, waiting: ThreadPoolExecutor):
        self.cluster, self.client, self._waiting = cluster, cluster.client, waiting
        self._shared = pickle.dumps(shared, 5)
        self._held: dict[str, Future] = {}  # worker -> future of its WorkerState
        self._lock = threading.Lock()

    def to(self, worker: str) -> None:
        with self._lock:
            if worker not in self._held:
                sent = self.send(worker, self._shared)
                self._held[worker] = self.client.submit(WorkerState, sent, workers=[worker], pure=False)

    def send(self, worker: str, data: bytes) -> Future:
        """A future of data that a worker holds."""
        try:
            return self.client.scatter(data, workers=[worker], hash=False)
        except Exception as error:  # noqa: BLE001  of several kinds where the worker is gone
            raise (error if worker in self.cluster.workers() else WorkerLost) from None

    def call(self, worker: str, function: Callable, *arguments: object) -> Any:
        """function(held, *arguments) on a worker that `to` was called for; WorkerLost where that is gone."""
        held = self._held.get(worker)
        if held is None:  # someone else has found the worker lost
            raise WorkerLost
        future = self.client.submit(function, held, *arguments, workers=[worker], pure=False)
        answer = self._waiting.submit(future.result)
        try:
            while not wait([answer], timeout=LOOKING).done:
                if worker not in self.cluster.workers():
                    raise WorkerLost
            return answer.result()
        except (WorkerLost, CancelledError) as error:
            future.cancel()
            if self._held.get(worker) is held:
                del self._held[worker]
            self.cluster.workers()  # says so where it is the scheduler that is gone
            raise WorkerLost from error
