"""A stand-in for `mmgibbs.machine.device.Device` without a GPU: streams whose work is done late and in random order,
kernels compiled by g++.

Work queued on a stream runs only when someone waits, one operation at a time from a stream drawn at random, as the
events allow. So whatever order a real device could choose turns up, and work that reads host memory too late, or with
an event missing, gives a wrong chain.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import weakref
from collections import deque
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import mmgibbs.draws
from mmgibbs.machine.device import DeviceMemoryError

SHIM = Path(mmgibbs.draws.__file__).with_name("host_shim.h")
PROLOGUE = """
#include "%s"
#define __global__
struct Dim { unsigned long long x; };
static thread_local Dim blockIdx, blockDim, threadIdx;
"""
KERNEL = re.compile(r'extern "C" __global__ void (\w+)\((.*?)\) \{', re.DOTALL)
RUN = """
extern "C" void run_%(name)s(unsigned long long blocks, unsigned long long threads, %(parameters)s) {
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) %(name)s(%(names)s);
}
"""


@cache
def compiled(folder: Path, source: str, definitions: tuple) -> ctypes.CDLL:
    """The kernels of a .cu source for the host: a visible skip where there is no g++."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++, which is not here")
    runners = [
        RUN % {"name": name, "parameters": parameters, "names": ", ".join(re.findall(r"(\w+)(?:,|$)", parameters))}
        for name, parameters in KERNEL.findall(source)
    ]
    number = len(list(folder.glob("*.cpp")))
    file, library = folder / f"kernels{number}.cpp", folder / f"kernels{number}.so"
    file.write_text(PROLOGUE % SHIM + source + "".join(runners))
    options = [f"-D{name}={value}" for name, value in definitions]
    subprocess.run(
        ["g++", "-O2", "-std=c++17", "-ffp-contract=off", "-shared", "-fPIC", *options, "-o", library, file], check=True
    )
    return ctypes.CDLL(str(library))


class FakeEvent:
    def __init__(self, device):
        self.device, self.done = device, False

    def synchronize(self) -> None:
        self.device.run_until(lambda: self.done)


class FakeStream:
    def __init__(self, device):
        self.device, self.work = device, deque()

    def record(self) -> FakeEvent:
        event = FakeEvent(self.device)
        self.work.append((None, lambda: setattr(event, "done", True)))
        return event

    def wait_event(self, event: FakeEvent) -> None:
        self.work.append((event, lambda: None))

    def synchronize(self) -> None:
        self.device.run_until(lambda: not self.work)

    def queue(self, work) -> None:
        self.work.append((None, work))

    @property
    def can_run(self) -> bool:
        return bool(self.work) and (self.work[0][0] is None or self.work[0][0].done)


class FakeKernels:
    def __init__(self, library):
        self.compiled = library

    def launch(self, name: str, n: int, *arguments, stream) -> None:
        plain = [
            ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_uint64(int(a))
            for a in (n, *arguments)
        ]
        threads = 8
        run = getattr(self.compiled, f"run_{name}")
        run.restype = None
        if n:
            stream.queue(
                lambda: run(ctypes.c_uint64(-(-n // threads)), ctypes.c_uint64(threads), *plain) if arguments else None
            )


class FakeDevice:
    """folder: where kernels are compiled. memory: bytes of the device."""

    name = "fake"

    def __init__(self, folder: Path, seed: int = 0, memory: int = 1 << 40):
        self.folder, self.rng, self.memory, self.used, self.streams = folder, np.random.default_rng(seed), memory, 0, []

    def run_until(self, reached) -> None:
        while not reached():
            ready = [s for s in self.streams if s.can_run]
            assert ready, "a deadlock: every stream waits for an event that no stream will reach"
            ready[self.rng.integers(len(ready))].work.popleft()[1]()

    def free_bytes(self) -> int:
        return self.memory - self.used

    def empty(self, shape, dtype):
        array = np.empty(shape, dtype)
        if self.used + array.nbytes > self.memory:
            raise DeviceMemoryError
        self.used += array.nbytes
        weakref.finalize(array, self._give_back, array.nbytes)
        array.reshape(-1).view(np.uint8)[:] = 0xFF
        return array

    def _give_back(self, size: int) -> None:
        self.used -= size

    def release(self) -> None:
        """Arrays are given back when nobody holds them."""

    def pinned(self, shape, dtype):
        return np.empty(shape, dtype)

    def upload(self, host, array, stream) -> None:
        assert host.nbytes == array.nbytes and host.flags.c_contiguous and array.flags.c_contiguous
        stream.queue(lambda: np.copyto(array, host))

    def download(self, array, host, stream) -> None:
        self.upload(array, host, stream)

    def copy(self, source, target, stream) -> None:
        self.upload(source, target, stream)

    def stream(self) -> FakeStream:
        self.streams.append(FakeStream(self))
        return self.streams[-1]

    def kernels(self, source: str, **definitions) -> FakeKernels:
        return FakeKernels(compiled(self.folder, source, tuple(sorted(definitions.items()))))

    def seconds(self, work, stream) -> float:
        work()
        stream.synchronize()
        return float(self.rng.random())

    def sparse_product(self, shape, indptr, indices, values, x, y, stream):
        from scipy.sparse import csr_array

        return lambda: stream.queue(lambda: np.copyto(y, csr_array((values, indices, indptr), shape=shape) @ x))
