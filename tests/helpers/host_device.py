"""A device without a GPU: kernels compiled by g++, their grids run as plain loops.

The same text, the same launches and the same arguments as on a GPU; only blocks and threads come one after another.
"""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
import threading
import time

import numpy as np
from helpers.draw_batches import compiler

from mmgibbs.draws.source import FOLDER

GRID = """
#include <stddef.h>
#include <utility>
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
struct Dimension { unsigned x; };
static Dimension blockIdx, threadIdx, blockDim, gridDim;
static bool backwards = false;
static inline unsigned place(unsigned turn, unsigned n) { return backwards ? n - 1 - turn : turn; }
#define BLOCKS for (unsigned block = 0; block < gridDim.x && (blockIdx.x = place(block, gridDim.x), true); ++block)
#define BARRIER_OF_BLOCKS(arrived, target) (void)(arrived), (void)(target);
#define PHASE for (unsigned turn = 0; turn < blockDim.x && (threadIdx.x = place(turn, blockDim.x), true); ++turn)
#define BARRIER
static inline void atomicMin(unsigned long long *at, unsigned long long value) { if (value < *at) *at = value; }

template <class... Argument, size_t... I>
void run(void (*kernel)(Argument...), unsigned blocks, unsigned threads, void **arguments, std::index_sequence<I...>) {
    blockDim.x = threads, gridDim.x = blocks;
    for (unsigned turn = 0; turn < blocks; ++turn) {
        blockIdx.x = place(turn, blocks);
        kernel(*(Argument *)arguments[I]...);
    }
}

template <class... Argument, size_t... I>
void run_once(void (*kernel)(Argument...), void **arguments, std::index_sequence<I...>) {
    kernel(*(Argument *)arguments[I]...);
}

// A cooperative launch, which runs its blocks itself.
template <class... Argument>
void run_together(void (*kernel)(Argument...), unsigned blocks, unsigned threads, void **arguments) {
    blockDim.x = threads, gridDim.x = blocks;
    run_once(kernel, arguments, std::index_sequence_for<Argument...>());
}

template <class... Argument>
void run(void (*kernel)(Argument...), unsigned blocks, unsigned threads, void **arguments) {
    run(kernel, blocks, threads, arguments, std::index_sequence_for<Argument...>());
}
"""


def build(folder, name: str, text: str, kernels: list[str]) -> ctypes.CDLL:
    """The shared library of these kernels; kernel i is run by kernel_i(blocks, threads, addresses of its arguments)."""
    runners = 'extern "C" void run_backwards(bool value) { backwards = value; }\n' + "".join(
        f'extern "C" void kernel_{i}(unsigned blocks, unsigned threads, void **arguments)'
        f"{{ run{'_together' * ('all_rounds' in kernel)}(&{kernel}, blocks, threads, arguments); }}\n"
        for i, kernel in enumerate(kernels)
    )
    shim = (FOLDER / "host_shim.h").read_text(encoding="utf-8").replace("#pragma once\n", "")
    code, library = folder / f"{name}.cpp", folder / f"{name}.so"
    code.write_text(shim + GRID + text + runners, encoding="utf-8")
    options = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-shared", "-fPIC"]
    done = subprocess.run(
        [compiler(), *options, str(code), "-o", str(library)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = ctypes.CDLL(str(library))
    loaded.kernels = list(kernels)
    return loaded


ONE_KERNEL = threading.Lock()  # at a time: where a thread is lies in variables of the library


class Buffer(np.ndarray):
    """Device memory; other arrays are structures, passed by value."""


class HostEvent:
    """A point in a stream, which has always been reached."""

    def __init__(self, device):
        self.device = device

    def synchronize(self) -> None:
        self.device.note("wait")


class HostStream:
    """Work is done at once; while a graph is made, it is kept."""

    def __init__(self, device):
        self.device, self.entered, self.capturing = device, False, None

    def __enter__(self):
        self.entered = True

    def __exit__(self, *_):
        self.entered = False

    def synchronize(self) -> None:
        assert self.capturing is None, "a graph may not wait"
        self.device.note("wait")

    def record(self) -> HostEvent:
        assert self.capturing is None
        return HostEvent(self.device)

    def wait_event(self, event: HostEvent) -> None:
        assert self.capturing is None


class HostDevice:
    """What the engine asks of mmgibbs.machine.device.Device; `libraries` from `build`, one or several.

    backwards: the last block and the last thread come first."""

    def __init__(self, libraries: ctypes.CDLL | tuple[ctypes.CDLL, ...], backwards: bool = False):
        self.compiled = libraries if isinstance(libraries, tuple) else (libraries,)
        self.backwards = backwards
        self.launched: list[str] = []  # kernels in order
        self.free, self.graphs, self.allocated = 1 << 40, 0, 0  # bytes
        self.nodes: list[int] = []  # of each graph that was launched
        self.asked: list[str] = []  # what the host allocated, copied and waited for
        self.queue: HostStream | None = None  # the first stream, on which kernels run

    def note(self, what: str) -> None:
        self.asked.append(what)

    def free_bytes(self) -> int:
        return self.free

    def stream(self) -> HostStream:
        stream = HostStream(self)
        self.queue = self.queue or stream
        return stream

    def zeros(self, shape, dtype, stream):
        assert stream.capturing is None, "a graph may not allocate"
        self.note("allocate")
        array = np.zeros(shape, dtype).view(Buffer)
        self.allocated += array.nbytes
        return array

    def fill(self, array, byte, stream) -> None:
        assert stream.capturing is None and type(array) is Buffer and array.flags.c_contiguous
        np.ndarray.view(array, np.uint8)[...] = byte

    def pinned(self, shape, dtype):
        return np.empty(shape, dtype)

    def address(self, array) -> int:
        return array.ctypes.data

    def upload(self, host, array, stream) -> None:
        assert host.size == array.size and host.dtype == array.dtype and host.flags.c_contiguous
        assert stream.capturing is None and type(array) is Buffer
        self.note("upload")
        array.reshape(-1)[:] = host.reshape(-1)

    def download(self, array, host, stream) -> None:
        assert stream.capturing is None and type(array) is Buffer
        self.note("download")
        host[:] = array

    def copy(self, source, target, stream) -> None:
        assert type(source) is type(target) is Buffer and source.dtype == target.dtype
        target[:] = source

    multiprocessors = 3

    def instances(self, source: str, names, cooperative=False):
        assert cooperative == any("all_rounds" in name for name in names)
        return {name: self._instance(name) for name in names}

    def _instance(self, name: str):
        library = next(library for library in self.compiled if name in library.kernels)
        function = getattr(library, f"kernel_{library.kernels.index(name)}")

        def launch(blocks: tuple, threads: tuple, arguments: tuple) -> None:
            assert self.queue.entered, "a kernel is launched on the engine's stream"
            # By value, as they are now: a graph keeps what it was recorded with.
            values = [
                np.atleast_1d(
                    np.uint64(self.address(a)) if isinstance(a, Buffer) else np.uint64(0) if a is None else a
                ).copy()
                for a in arguments
            ]

            def run():
                addresses = (ctypes.c_void_p * len(values))(*(v.ctypes.data for v in values))
                self.launched.append(name)
                with ONE_KERNEL:
                    library.run_backwards(ctypes.c_bool(self.backwards))
                    function(ctypes.c_uint(*blocks), ctypes.c_uint(*threads), addresses)

            if self.queue.capturing is None:
                run()
            else:
                self.queue.capturing.append(run)

        return launch

    name, nominal_bandwidth = "this host", 1e12

    def seconds(self, work, stream) -> float:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    def graph(self, work, stream):
        stream.capturing = kept = []
        work()
        stream.capturing = None
        self.graphs += 1

        def launch() -> None:
            self.nodes.append(len(kept))
            for run in kept:
                run()

        return launch


class CompilingDevice(HostDevice):
    """A device that compiles what it is given, in `folder`, as a real one does."""

    def __init__(self, folder, backwards: bool = False):
        super().__init__((), backwards)
        self.folder = folder

    def instances(self, source: str, names, cooperative=False):
        name = hashlib.sha256("\n".join([source, *names]).encode()).hexdigest()[:16]
        self.compiled = (*self.compiled, build(self.folder, name, source, list(names)))
        return super().instances(source, names, cooperative)
