"""Chains on the workers of a Dask cluster, to the same draws as on one machine.

    with connect("tcp://10.0.0.5:8786", print) as cluster:     # or 'local:2': two workers on this machine
        run_chains(model, equations, choice, schedule, seed, where=cluster)

Model and equations are sent once to each worker. A chain stays in the memory of its worker and advances by turns of
about a second; when its checkpoint is due its state is sent here, where the file is. A chain whose worker is lost goes
on elsewhere from that file. A draw is keyed by what it is for, and a state is all there is of a chain, so neither the
worker nor the turns change a result.
"""

from __future__ import annotations

import pickle
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import mmgibbs
from mmgibbs.chains.checkpoint import Keeper
from mmgibbs.chains.result import ChainResult
from mmgibbs.engines.choice import cores
from mmgibbs.errors import ConfigError, DeviceError
from mmgibbs.parallel import Job, chain_name, signals_ignored
from mmgibbs.sampler import Chain, Variances

TURN = 1.0  # seconds that a chain advances before it says where it is
LOOKING = 2.0  # seconds of waiting for a worker before looking whether it is still there
CONNECTING = 10.0  # seconds
NO_WORKERS = 60.0  # seconds that a cluster may be without one
LOSSES = 3  # that a chain may suffer between two of its checkpoints
ADDRESS = re.compile(r"(local:(?P<workers>[1-9][0-9]*))|((tcp|tls|ws|wss)://.+:[0-9]+)")


# ------------------------------------------------------------------------------------------------- on a worker


class _Held:
    """What a worker holds of a run, for as long as the run's client wants it."""

    def __init__(self, shared: bytes):
        self.model, self.equations, self.choice, self.schedule, self.seed = pickle.loads(shared)
        self.chains: dict[int, Chain] = {}

    def __reduce__(self):
        raise TypeError("chains stay with their worker: what is sent is their state")


@dataclass(frozen=True)
class _Stand:
    """Where a chain is."""

    number: int
    key: tuple[int, int]
    variances: Variances


def _stand(chain: Chain) -> _Stand:
    return _Stand(chain.number, chain.key, chain.variances)


def _begin(held: _Held, chain: int, state: bytes | None) -> _Stand:
    found = None if state is None else pickle.loads(state)
    engine = held.choice.build(held.equations)
    held.chains[chain] = Chain(held.model, engine, held.schedule, (held.seed, chain), found)
    return _stand(held.chains[chain])


def _turn(held: _Held, chain: int, until: int, seconds: float) -> _Stand | None:
    """None, here and below, where the chain is not here: the worker is a new one under the old address."""
    if chain not in held.chains:
        return None
    end = time.monotonic() + seconds
    held.chains[chain].advance(until, lambda _: time.monotonic() >= end)
    return _stand(held.chains[chain])


def _state(held: _Held, chain: int) -> bytes | None:
    return pickle.dumps(held.chains[chain].state(), 5) if chain in held.chains else None


def _result(held: _Held, chain: int) -> bytes | None:
    return pickle.dumps(held.chains[chain].result(), 5) if chain in held.chains else None


# ----------------------------------------------------------------------------------------------- on this machine


@contextmanager
def connect(address: str, say: Callable[[str], None]):
    """Yields the cluster at `address`, 'tcp://host:port' of a Dask scheduler or 'local:N' for N workers on this machine.

    say: takes what the user should know. Raises ConfigError where the address is none, where `distributed` is not
    installed, where a worker has another version of mmgibbs; DeviceError where the scheduler does not answer.
    """
    form = ADDRESS.fullmatch(address)
    if form is None:
        raise ConfigError(f"--cluster: found {address!r}, needed tcp://HOST:PORT of a Dask scheduler, or local:WORKERS")
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ConfigError(f"--cluster needs Dask: pip install 'mmgibbs[cluster]' ({error})") from error
    with ExitStack() as stack:
        at = address
        if form["workers"]:
            n = int(form["workers"])
            with signals_ignored():
                here = LocalCluster(
                    n, threads_per_worker=max(1, cores() // n), memory_limit=0, dashboard_address=None, silence_logs="CRITICAL"
                )  # fmt: skip
            at = stack.enter_context(here).scheduler_address
        try:
            client = stack.enter_context(Client(at, timeout=CONNECTING, set_as_default=False))
        except (OSError, TimeoutError) as error:
            raise DeviceError(
                f"--cluster: no Dask scheduler answers at {address} within {CONNECTING:g} seconds; "
                "needed the address that `dask scheduler` prints"
            ) from error
        yield Cluster(client, address, say)


class Cluster:
    """The workers of a Dask scheduler, all with this version of mmgibbs: a place where chains run (see parallel.Where)."""

    def __init__(self, client, address: str, say: Callable[[str], None]):
        self.client, self.address, self._say = client, address, say
        self.happened: list[str] = []  # what there is to tell of the run
        self._versions: dict[str, str] = {}  # of the workers ever seen
        self.first_workers: dict[str, int] = {}
        try:
            client.wait_for_workers(1, timeout=CONNECTING)
        except TimeoutError as error:
            raise DeviceError(f"--cluster: the scheduler at {address} has no worker after {CONNECTING:g} seconds") from error
        self.first_workers = self.workers()
        others = [f"worker {w} has mmgibbs {v}" for w, v in self._versions.items() if v != mmgibbs.__version__]
        if others:
            raise ConfigError(f"--cluster {address}: {', '.join(others)}; needed {mmgibbs.__version__}, as here")
        say(f"cluster {address}: {len(self.first_workers)} workers with {sum(self.first_workers.values())} threads")

    def tell(self, text: str) -> None:
        self.happened.append(text)
        self._say(text)

    def workers(self) -> dict[str, int]:
        """Address -> threads of the workers that are there now; those of another version are left out, and told."""
        try:
            found = self.client.nthreads()
            new = [w for w in found if w not in self._versions]
            answers = self.client.run(_version_asker(), workers=new, on_error="return") if new else {}
        except (OSError, TimeoutError) as error:
            raise DeviceError(f"--cluster: the scheduler at {self.address} no longer answers ({error})") from error
        for worker, answer in answers.items():
            if isinstance(answer, OSError):
                continue  # lost meanwhile
            self._versions[worker] = answer if isinstance(answer, str) else f"not installed ({answer})"
            if self.first_workers and self._versions[worker] != mmgibbs.__version__:
                self.tell(f"worker {worker} is not used: it has mmgibbs {self._versions[worker]}, needed {mmgibbs.__version__}")
        return {w: n for w, n in found.items() if self._versions.get(w) == mmgibbs.__version__}

    @property
    def facts(self) -> dict:
        """For run.json."""
        return {"address": self.address, "workers": self.first_workers, "happened": self.happened}

    @contextmanager
    def __call__(self, job: Job):
        with ThreadPoolExecutor(job.schedule.chains) as waiting:
            yield _Spread(self, job, waiting).advance


def _version_asker() -> Callable[[], str]:
    """A function that is sent whole, so that it also answers where there is no mmgibbs."""

    def version() -> str:
        from mmgibbs import __version__

        return __version__

    return version


class _Lost(Exception):
    """The worker of a chain is gone, with the chain."""


class _Spread:
    """The chains of one job over the workers: a thread here for each, and one that waits for what its worker answers."""

    def __init__(self, cluster: Cluster, job: Job, waiting: ThreadPoolExecutor):
        self.cluster, self.client, self.job, self._waiting = cluster, cluster.client, job, waiting
        self._shared = pickle.dumps((job.model, job.equations, job.choice, job.schedule, job.seed), 5)
        self._held: dict[str, object] = {}  # worker -> future of what it holds
        self._at: dict[int, str] = {}  # chain -> its worker
        self._keepers: dict[int, Keeper | None] = {}
        self._reached = Counter()  # chain -> last sweep that is known of
        self._lock, self._failed = threading.Lock(), threading.Event()

    @property
    def _ending(self) -> bool:
        return self._failed.is_set() or self.job.progress.asked_to_stop

    def advance(self, until: int) -> list[ChainResult | None]:
        with ThreadPoolExecutor(self.job.schedule.chains) as pool:
            try:
                chains = [pool.submit(self._one_chain, c, until) for c in range(self.job.schedule.chains)]
                for first in wait(chains, return_when=FIRST_EXCEPTION).done:
                    first.result()
                return [chain.result() for chain in chains]
            except BaseException:
                self._failed.set()
                raise

    def _one_chain(self, chain: int, until: int) -> ChainResult | None:
        """Up to sweep `until`, or to where it is asked to stop; from its last checkpoint wherever its worker is lost."""
        losses = Counter()  # by sweep of the checkpoint
        while not self._ending:
            try:
                if chain not in self._at:
                    self._place(chain)
                return self._to(until, chain)
            except _Lost:
                worker = self._at.pop(chain)
                found = self._checkpoint(chain)
                sweep = 0 if found is None else found.facts["sweep"]
                whence = f"its checkpoint of sweep {sweep:,}" if sweep else "the start"
                self.cluster.tell(
                    f"{chain_name(chain)}: worker {worker} was lost after sweep {self._reached[chain]:,}; "
                    f"the chain goes on from {whence}"
                )
                losses[sweep] += 1
                if losses[sweep] > LOSSES:
                    raise DeviceError(
                        f"{chain_name(chain)}: {losses[sweep]} workers were lost, one after another, between its checkpoint of "
                        f"sweep {sweep:,} and the next, most likely for want of memory; needed workers with more memory"
                    ) from None
        return None

    def _to(self, until: int, chain: int) -> ChainResult:
        keeper, report = self._keepers[chain], self.job.progress.writer(until)
        while True:
            stand = self._call(_turn, chain, until, TURN)
            report(stand)
            self._reached[chain] = stand.number
            done = stand.number >= until or self._ending
            if keeper is not None and (done or keeper.due(stand.number)):
                keeper.save(stand.number, pickle.loads(self._call(_state, chain)), {})
            if done:
                return pickle.loads(self._call(_result, chain))

    def _checkpoint(self, chain: int):
        return None if self.job.checkpoints is None else self.job.checkpoints.read(chain_name(chain))[0]

    def _place(self, chain: int) -> None:
        """Begin the chain, from its checkpoint where there is one, on the worker with the fewest chains for its threads."""
        with self._lock:  # each worker is sent the equations once
            worker = self._at[chain] = self._freest_worker()
            if worker not in self._held:
                sent = self._send(worker, self._shared)
                self._held[worker] = self.client.submit(_Held, sent, workers=[worker], pure=False)
        found = self._checkpoint(chain)
        state = None if found is None else self._send(worker, pickle.dumps(found.arrays, 5))
        stand = self._call(_begin, chain, state)
        told = partial(self.job.progress.write_saved, chain)
        keeping = self.job.checkpoints is not None
        self._keepers[chain] = Keeper(self.job.checkpoints, chain_name(chain), stand.number, told) if keeping else None

    def _freest_worker(self) -> str:
        end = time.monotonic() + NO_WORKERS
        while not (workers := self.cluster.workers()):
            if time.monotonic() > end or self._ending:
                raise DeviceError(f"--cluster {self.cluster.address}: no worker was there for {NO_WORKERS:g} seconds")
            time.sleep(LOOKING)
        busy = Counter(self._at.values())
        return min(workers, key=lambda w: busy[w] / workers[w])

    def _send(self, worker: str, data: bytes):
        try:
            return self.client.scatter(data, workers=[worker], hash=False)
        except Exception as error:  # noqa: BLE001  of several kinds where the worker is gone
            raise (error if worker in self.cluster.workers() else _Lost) from None

    def _call(self, function, chain: int, *arguments):
        """function(held, chain, *arguments) on the worker of the chain."""
        worker = self._at[chain]
        held = self._held.get(worker)
        if held is None:  # another chain has found the worker lost
            raise _Lost
        future = self.client.submit(function, held, chain, *arguments, workers=[worker], pure=False)
        answer = self._waiting.submit(future.result)
        try:
            while not wait([answer], timeout=LOOKING).done:
                if worker not in self.cluster.workers():
                    raise _Lost
            answer = answer.result()
        except (_Lost, CancelledError) as error:
            future.cancel()
            if self._held.get(worker) is held:
                del self._held[worker]
            self.cluster.workers()  # says so where it is the scheduler that is gone
            raise _Lost from error
        if answer is None:
            raise _Lost
        return answer
