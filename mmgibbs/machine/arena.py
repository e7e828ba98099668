"""Device memory of a sampler: every buffer by name, allocated before its first sweep and never again."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from mmgibbs.machine.device import DeviceArray, Shape, refuse_beyond_device
from mmgibbs.machine.gpu_queue import GpuQueue

ALIGNMENT_BYTES = 512  # between two allocations of a device


class Arena:
    """Buffers on a device: copies of the `constants`, and zeros of the (shape, dtype) of the `buffers`.

    DeviceError where they do not fit, before anything is allocated. A sweep that gets its memory here allocates none,
    so that it can be recorded as a graph and never waits for the allocator.
    """

    def __init__(
        self,
        queue: GpuQueue,
        constants: Mapping[str, np.ndarray],
        buffers: Mapping[str, tuple[Shape, npt.DTypeLike]],
    ):
        assert not constants.keys() & buffers.keys()
        self.queue = queue
        self.nbytes = count_bytes(constants, buffers)
        refuse_beyond_device(self.nbytes, queue.free_bytes(), "the sampler", queue.remedy)
        self._buffers = {name: queue.empty(shape, dtype) for name, (shape, dtype) in buffers.items()}
        self._buffers |= {name: queue.upload(np.ascontiguousarray(values)) for name, values in constants.items()}

    def __getitem__(self, name: str) -> DeviceArray:
        return self._buffers[name]

    def __contains__(self, name: str) -> bool:
        return name in self._buffers

    def address(self, name: str) -> int:
        """Return the address of a buffer, for structures that kernels take by value."""
        return self.queue.address(self._buffers[name])


def count_bytes(constants: Mapping[str, np.ndarray], buffers: Mapping[str, tuple[Shape, npt.DTypeLike]]) -> int:
    """Bytes that an `Arena` of these takes."""
    sizes = [values.nbytes for values in constants.values()]
    sizes += [int(np.prod(shape)) * np.dtype(dtype).itemsize for shape, dtype in buffers.values()]
    return sum(-(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES for size in sizes)
