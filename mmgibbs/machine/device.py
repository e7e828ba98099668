"""The CUDA device: arrays, pinned memory, streams, compiled kernels. The only file that imports
CuPy.

Engines get a `Device` and use nothing of CuPy but what arrays and streams share with NumPy and with each other:
`stream.record()` gives an event, `stream.wait_event(event)`, `stream.synchronize()`, `event.synchronize()`. A test may
hand in any object with these methods.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from mmgibbs.errors import DeviceError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

THREADS_PER_BLOCK = 256
MEMORY_CLOCK_RATE, MEMORY_BUS_WIDTH = 36, 37  # numbers of cudaDeviceAttr


class Event(Protocol):
    """A point in a queue of work."""

    def synchronize(self) -> None: ...


class Stream(AbstractContextManager[Any], Protocol):
    """A queue of work; within its block it is the current one."""

    @property
    def ptr(self) -> int: ...

    def record(self) -> Event: ...

    def wait_event(self, event: Event) -> None: ...

    def synchronize(self) -> None: ...


class DeviceArray(Protocol):
    """An array on the device: what NumPy's and CuPy's have in common, and `data`, where it lies."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...

    @property
    def size(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def data(self) -> Any: ...

    @property
    def flags(self) -> Any: ...

    def __getitem__(self, key: Any, /) -> Any: ...


Shape = int | Sequence[int]
Argument = DeviceArray | np.generic | int | None  # of a kernel


class DeviceMemoryError(MemoryError):
    """An array that does not fit on the device."""


def import_cupy() -> Any:
    """CuPy with a CUDA device behind it. DeviceError says what is missing and how to get it."""
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            f"device: gpu needs CuPy, which cannot be imported here ({error}); "
            'install it with: pip install "mmgibbs[gpu]" (CUDA 13; "mmgibbs[gpu12]" for CUDA 12), or use device: cpu'
        ) from None
    runtime = cupy.cuda.runtime
    try:
        driver, needed = runtime.driverGetVersion(), runtime.runtimeGetVersion()
        if driver == 0:
            raise DeviceError(
                "device: gpu: found no NVIDIA driver on this machine; install the driver of the GPU, or use device: cpu"
            )
        if driver // 1000 < needed // 1000:
            raise DeviceError(
                f"device: gpu: found an NVIDIA driver for CUDA {_version(driver)}, needed CUDA {_version(needed)}: "
                "update the driver, or install "
                'the CuPy of that driver (pip install "mmgibbs[gpu12]" for CUDA 12), or use device: cpu'
            )
        devices = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        raise DeviceError(
            f"device: gpu: found no CUDA device ({error}); needed one that nvidia-smi lists, or device: cpu"
        ) from None
    if devices == 0:
        raise DeviceError("device: gpu: found no CUDA device; needed one that nvidia-smi lists, or device: cpu")
    return cupy


def refuse_beyond_device(needed: int, free: int, what: str, remedy: str) -> None:
    """DeviceError with the numbers of bytes where `what` does not fit on a device; remedy: what to do."""
    if needed > free:
        raise DeviceError(
            f"device: gpu: found {free:,} bytes free on the device, needed {needed:,} for {what}; {remedy}"
        )


def count_bound(device: Device, unit: str, n_bytes: int, n_operations: int | None = None) -> dict[str, Any]:
    """The least time of a unit of work: bytes that it moves over the nominal bandwidth of the device, not measured."""
    bandwidth = device.nominal_bandwidth
    operations = {} if n_operations is None else {"operations": n_operations}
    times = {"nominal_bytes_per_second": bandwidth, "seconds_at_least": n_bytes / bandwidth}
    return {"unit": unit, "bytes": n_bytes, **operations, **times}


@contextmanager
def explain_device_errors() -> Iterator[None]:
    """DeviceError in place of what CuPy raises meanwhile: too little memory, or no answer of the device."""
    cupy = sys.modules.get("cupy")
    try:
        yield
    except Exception as error:
        on_cpu = "device: cpu, with which a run continues from its checkpoints too"
        if cupy is None:
            raise
        if isinstance(error, cupy.cuda.memory.OutOfMemoryError):
            raise DeviceError(
                f"device: gpu: the device has too little memory ({error}); use fewer chains, precision: single, or "
                f"{on_cpu}"
            ) from error
        if not isinstance(error, (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError)):
            raise
        raise DeviceError(
            f"device: gpu: the device does not answer any more ({error}); needed one that works, or {on_cpu}"
        ) from error


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


class Device:
    """The current CUDA device."""

    def __init__(self) -> None:
        self.cupy = import_cupy()

    @property
    def name(self) -> str:
        properties = self.cupy.cuda.runtime.getDeviceProperties(self.cupy.cuda.Device().id)
        name = properties["name"]
        return name.decode() if isinstance(name, bytes) else name

    def free_bytes(self) -> int:
        """Device memory that can still be taken."""
        return int(self.cupy.cuda.runtime.memGetInfo()[0])

    @property
    def nominal_bandwidth(self) -> float:
        """Bytes per second of the device memory by its clock and its width, two transfers a cycle."""
        kilohertz, bits = (
            self.cupy.cuda.runtime.deviceGetAttribute(attribute, self.cupy.cuda.Device().id)
            for attribute in (MEMORY_CLOCK_RATE, MEMORY_BUS_WIDTH)
        )
        return 2 * 1000 * kilohertz * bits / 8

    # Memory

    def empty(self, shape: Shape, dtype: npt.DTypeLike) -> DeviceArray:
        """An array on the device. DeviceMemoryError where it does not fit."""
        try:
            return self.cupy.empty(shape, dtype)
        except self.cupy.cuda.memory.OutOfMemoryError as error:
            raise DeviceMemoryError(str(error)) from None

    def zeros(self, shape: Shape, dtype: npt.DTypeLike, stream: Stream) -> DeviceArray:
        """An array on the device, filled with 0 in the order of the stream. DeviceMemoryError where it does not fit."""
        array = self.empty(shape, dtype)
        self.fill(array, 0, stream)
        return array

    def fill(self, array: DeviceArray, byte: int, stream: Stream) -> None:
        """Queue every byte of a C-contiguous array = byte."""
        assert array.flags.c_contiguous
        if array.nbytes:
            array.data.memset_async(byte, array.nbytes, stream)

    def address(self, array: DeviceArray) -> int:
        """Return the address of an array, for structures that kernels take by value."""
        return int(array.data.ptr)

    def release(self) -> None:
        """Give arrays that nobody holds any more back to the device."""
        self.cupy.get_default_memory_pool().free_all_blocks()

    def pinned(self, shape: Shape, dtype: npt.DTypeLike) -> np.ndarray:
        """A NumPy array that the device can copy while other work continues;
        an ordinary one where no memory can be pinned.
        """
        from cupyx import empty_pinned

        try:
            return empty_pinned(shape, dtype)
        except self.cupy.cuda.runtime.CUDARuntimeError:
            return np.empty(shape, dtype)

    def upload(self, host: np.ndarray, array: DeviceArray, stream: Stream) -> None:
        """Queue array = host; both C-contiguous and of the same size."""
        assert host.nbytes == array.nbytes and host.flags.c_contiguous and array.flags.c_contiguous
        if host.nbytes:
            array.data.copy_from_host_async(host.ctypes.data, host.nbytes, stream)

    def download(self, array: DeviceArray, host: np.ndarray, stream: Stream) -> None:
        """Queue host = array."""
        assert host.nbytes == array.nbytes and host.flags.c_contiguous and array.flags.c_contiguous
        if host.nbytes:
            array.data.copy_to_host_async(host.ctypes.data, host.nbytes, stream)

    def copy(self, source: DeviceArray, target: DeviceArray, stream: Stream) -> None:
        """Queue target = source, both on the device."""
        assert source.nbytes == target.nbytes
        if source.nbytes:
            target.data.copy_from_device_async(source.data, source.nbytes, stream)

    def csr(self, matrix: csr_array) -> Any:
        """A copy of a sparse matrix of the host, canonical: products by `dot`, as SciPy's."""
        from cupyx.scipy.sparse import csr_matrix

        parts = matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
        return csr_matrix(tuple(map(self.cupy.asarray, parts)), shape=matrix.shape)

    def fetch(self, array: DeviceArray | np.ndarray) -> np.ndarray:
        """The array on the host, after what was queued on the current stream; host arrays as they are."""
        return self.cupy.asnumpy(array)

    # Work

    def current_stream(self) -> Stream:
        """The queue on which array operations run."""
        return self.cupy.cuda.get_current_stream()

    def cholesky(self, A: Any) -> Any:
        """Lower factors L L' = A of (..., m, m); LinAlgError where one is not positive definite: it is waited for."""
        from cupyx import errstate

        with errstate(linalg="raise"):
            return self.cupy.linalg.cholesky(A)

    def solve_triangular(self, L: Any, b: Any, transposed: bool) -> Any:
        """L^-1 b, or L'^-1 b, of lower triangular (..., m, m) and (..., m), or (m, columns) of one L."""
        from cupyx.scipy.linalg import solve_triangular

        return solve_triangular(L, b, trans=int(transposed), lower=True)

    def log_ndtr(self, x: Any) -> Any:
        """log Phi(x), the standard normal distribution function."""
        from cupyx.scipy.special import log_ndtr

        return log_ndtr(x)

    def stream(self) -> Stream:
        """A queue of work beside the others."""
        return self.cupy.cuda.Stream(non_blocking=True)

    def kernels(self, source: str, **definitions: int | str) -> Kernels:
        """The `extern "C"` kernels of CUDA C++ source, macros defined as given;
        no fused multiply-adds, so that bits are those of the CPU.
        """
        options = ("--fmad=false", *(f"-D{name}={value}" for name, value in definitions.items()))
        return Kernels(self.cupy.RawModule(code=source, options=options))

    @property
    def multiprocessors(self) -> int:
        """Blocks that are on the device at once, one on each multiprocessor."""
        return int(self.cupy.cuda.runtime.getDeviceProperties(self.cupy.cuda.Device().id)["multiProcessorCount"])

    def instances(self, source: str, names: Iterable[str], cooperative: bool = False) -> dict[str, Callable[..., None]]:
        """Instances of kernel templates by the names that C++ gives them; called as f(blocks, threads, arguments) on
        the current stream.

        Arguments are arrays, NumPy scalars, (1,) NumPy structures, which go by value, or None. No fused
        multiply-adds. cooperative: the blocks of a launch wait for each other, and are on the device at once.
        """
        together = {"enable_cooperative_groups": True} if cooperative else {}
        module = self.cupy.RawModule(
            code=source, options=("--fmad=false", "--std=c++17"), name_expressions=tuple(names), **together
        )
        return {name: module.get_function(name) for name in names}

    def graph(self, work: Callable[[], object], stream: Any) -> Callable[[], None]:
        """Capture what `work()` queues on the stream and return a function that queues it again at once.

        Its kernels must have run before.
        """
        with stream:
            stream.begin_capture()
            try:
                work()
            finally:
                graph = stream.end_capture()
        return lambda: graph.launch(stream)

    def seconds(self, work: Callable[[], object], stream: Stream) -> float:
        """Time that `work()`, which queues on `stream`, takes on the device."""
        start, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        start.record(stream)
        work()
        end.record(stream)
        end.synchronize()
        return self.cupy.cuda.get_elapsed_time(start, end) / 1000


class Kernels:
    """Compiled kernels by name. Their first argument is the number of threads."""

    def __init__(self, module: Any):
        self.module = module
        self._functions: dict[str, Callable[..., None]] = {}

    def launch(self, name: str, n: int, *arguments: Argument, stream: Stream) -> None:
        """Queue `name(n, *arguments)` on n threads; whole numbers go as uint64."""
        if n == 0:
            return
        function = self._functions.get(name) or self._functions.setdefault(name, self.module.get_function(name))
        blocks = -(-n // THREADS_PER_BLOCK)
        assert blocks < 2**31, "more threads than one launch holds"
        plain = tuple(np.uint64(a) if isinstance(a, (int, np.integer)) else a for a in (n, *arguments))
        with stream:
            function((blocks,), (THREADS_PER_BLOCK,), plain)


def make_struct(**fields: Any) -> np.ndarray:
    """(1,) a C structure: int is an address, a NumPy scalar or (k,) array has its own type."""
    values = [np.uint64(v) if isinstance(v, int) else v for v in fields.values()]
    dtype = np.dtype([(name, v.dtype, v.shape) for name, v in zip(fields, values, strict=True)], align=True)
    out = np.zeros(1, dtype)
    for name, value in zip(fields, values, strict=True):
        out[name] = value
    return out
