"""Chains side by side in processes: equations shared read-only through memory maps, kernels compiled once before, progress in a file."""

from __future__ import annotations

import dataclasses
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mmgibbs.chains.result import ChainResult
from mmgibbs.engines.choice import EngineChoice, cores
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import DeviceError
from mmgibbs.memory import free_bytes
from mmgibbs.sampler import MixedModel, Schedule, Variances, bytes_per_chain, sample_chain

REPORT_EVERY = 0.2  # seconds between two reports of a chain
REPORT = 200  # bytes that a table of solutions needs for an equation, roughly


def sampling_bytes(model: MixedModel, schedule: Schedule, equations: int, real: np.dtype) -> int:
    """What sampling needs at least, its chains one after another: `equations` (bytes), a chain at work, the results of all, their report."""
    n = sum(t.n_levels * t.n_components for t in model.design.terms)
    sizes = [c.start.size for c in (*model.covariances, model.residual) if c is not None]
    components = {t.name: t.n_components for t in model.design.terms}
    saved = sum(codes.size * components[name] for name, codes in model.saved.items())
    result = n * 8 * 4 + schedule.n_kept * (sum(sizes) + saved) * 8
    return equations + bytes_per_chain(model.design, real) + schedule.chains * result + n * REPORT


def processes_for(model: MixedModel, equations: StructuredEquations, chains: int, device: str = "cpu") -> int:
    """min(chains, cores), and no more at once than their estimated memory allows; one at a time on a GPU, which one chain fills."""
    if device == "gpu":
        return 1
    wanted = min(chains, cores())
    free = free_bytes()
    each = bytes_per_chain(model.design, equations.real) + 150_000_000  # the interpreter and its libraries
    if free is not None and wanted > 1 and wanted * each + equations.bytes > free:
        wanted = max(1, int((free - equations.bytes) // each))
    return wanted


class Progress:
    """The last sweep and variances of each chain, written by the chains and read by whoever shows them."""

    def __init__(self, path: Path, chains: int, model: MixedModel):
        self.sizes = [0 if c is None else c.start.shape[0] for c in model.covariances]
        n_values = sum(k * k for k in self.sizes) + model.residual.start.size
        self.path, self.shape = path, (chains, 1 + n_values)
        if not path.exists():
            np.zeros(self.shape).tofile(path)
        self.values = np.memmap(path, np.float64, "r+", shape=self.shape)

    def writer(self, chain: int, n_sweeps: int) -> Callable[[int, Variances], None]:
        last = [0.0]

        def write(number: int, variances: Variances) -> None:
            now = time.monotonic()
            if now - last[0] >= REPORT_EVERY or number == n_sweeps:
                last[0] = now
                flat = [g.ravel() for g in variances.G if g is not None] + [variances.R.ravel()]
                self.values[chain, 1:] = np.concatenate(flat)
                self.values[chain, 0] = number

        return write

    def read(self, chain: int) -> tuple[int, Variances]:
        row, T = np.array(self.values[chain]), None
        G, at = [], 1
        for k in self.sizes:
            G.append(row[at : at + k * k].reshape(k, k) if k else None)
            at += k * k
        T = int(round((row.size - at) ** 0.5))
        return int(row[0]), Variances(G, row[at:].reshape(T, T))


def run_chains(
    model: MixedModel,
    equations: StructuredEquations,
    choice: EngineChoice,
    schedule: Schedule,
    seed: int,
    show: Callable[[int, int, Variances], None] | None = None,
) -> list[ChainResult]:
    """All chains of a run, in the order of their numbers. `show(chain, sweep, variances)` is called a few times a second."""
    processes = processes_for(model, equations, schedule.chains, choice.device)
    with tempfile.TemporaryDirectory(prefix="mmgibbs-") as scratch:
        path = Path(scratch) / "progress"
        progress = Progress(path, schedule.chains, model)
        with _Watcher(progress, show):
            if processes == 1:
                return [_one_chain(model, equations, choice, schedule, (seed, c), path) for c in range(schedule.chains)]
            _compile_kernels(model, equations, choice, seed)
            from joblib import Parallel, delayed, parallel_config
            from joblib.externals.loky.process_executor import BrokenProcessPool

            jobs = (delayed(_one_chain)(model, equations, choice, schedule, (seed, c), path) for c in range(schedule.chains))
            try:
                with (
                    parallel_config(backend="loky", inner_max_num_threads=1),
                    Parallel(processes, return_as="generator", mmap_mode="c", max_nbytes=100_000, temp_folder=scratch) as parallel,
                ):
                    with _interrupts_ignored():
                        started = parallel(delayed(int)() for _ in range(processes))
                    list(started)
                    return list(parallel(jobs))
            except BrokenProcessPool as error:
                raise DeviceError(
                    "the process of a chain was ended from outside, most likely by the system for want of memory; "
                    "needed fewer chains (sampler.chains) or more memory"
                ) from error


@contextmanager
def _interrupts_ignored():
    """Processes started here never see Ctrl-C, so that none of them shows a traceback: the parent, which sees it, stops them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _compile_kernels(model, equations, choice, seed) -> None:
    """One sweep and one record here, so that the processes find compiled kernels in the cache."""
    sample_chain(model, choice.build(equations), Schedule(0, 1, 1, refresh_every=1), (seed, 0))


def _one_chain(model, equations, choice, schedule, key, progress_path) -> ChainResult:
    model, equations = plain_arrays(model), plain_arrays(equations)
    progress = Progress(progress_path, schedule.chains, model)
    return sample_chain(model, choice.build(equations), schedule, key, progress.writer(key[1], schedule.n_sweeps))


def plain_arrays(value):
    """The same nested tuples and dataclasses with memory-mapped arrays seen as plain ones: kernels are compiled for plain arrays."""
    if isinstance(value, np.memmap):
        return np.asarray(value)
    if isinstance(value, tuple):
        items = [plain_arrays(v) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [plain_arrays(v) for v in value]
    if isinstance(value, dict):
        return {k: plain_arrays(v) for k, v in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **{f.name: plain_arrays(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init})
    return value


class _Watcher:
    """Calls `show` for every chain from a thread of its own, and once more at the end."""

    def __init__(self, progress: Progress, show):
        self.progress, self.show = progress, show
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def _tell(self) -> None:
        for chain in range(self.progress.shape[0]):
            number, variances = self.progress.read(chain)
            if number:
                self.show(chain, number, variances)

    def _watch(self) -> None:
        while not self.done.wait(REPORT_EVERY):
            self._tell()

    def __enter__(self):
        if self.show is not None:
            self.thread.start()
        return self

    def __exit__(self, *_):
        if self.show is not None:
            self.done.set()
            self.thread.join()
            self._tell()
