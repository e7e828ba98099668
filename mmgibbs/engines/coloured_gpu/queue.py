"""One queue of work on a device: buffers, copies, kernels and recorded work, done in the order asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mmgibbs.errors import DeviceError
from mmgibbs.machine.device import Argument, Device, DeviceArray, OutOfDeviceMemory, Shape


class GpuQueue:
    """A stream of a device (mmgibbs.machine.device.Device; the current one where None).

    DeviceError where there is none.
    """

    def __init__(self, device: Device | None = None):
        self.device = Device() if device is None else device
        self.stream = self.device.stream()
        self._pinned = np.empty(0, np.uint8)

    def empty(self, shape: Shape, dtype: npt.DTypeLike) -> DeviceArray:
        """A buffer of zeros. DeviceError where it does not fit."""
        try:
            return self.device.zeros(shape, dtype, self.stream)
        except OutOfDeviceMemory as error:
            raise DeviceError(
                f"device: gpu: {self.device.free_bytes() / 1e9:.1f} GB free on the device are too few for the "
                f"structured engine ({error}); use precision: single, engine: hybrid, or device: cpu"
            ) from None

    def upload(self, array: np.ndarray) -> DeviceArray:
        """A buffer with these values."""
        buffer = self.empty(array.shape, array.dtype)
        self.write(buffer, array)
        return buffer

    def write(self, buffer: DeviceArray, array: np.ndarray) -> None:
        """New values for a buffer. Waits for the copy, since `array` may be gone afterwards."""
        self.device.upload(np.ascontiguousarray(array), buffer, self.stream)
        self.stream.synchronize()

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        self.device.copy(source, target, self.stream)

    def read(self, buffer: DeviceArray) -> np.ndarray:
        """Wait for everything asked for so far; the values of a buffer, brought over through pinned memory."""
        if self._pinned.size < buffer.nbytes:
            self._pinned = self.device.pinned(buffer.nbytes, np.uint8)
        values = self._pinned[: buffer.nbytes].view(buffer.dtype).reshape(buffer.shape)
        self.device.download(buffer, values, self.stream)
        self.stream.synchronize()
        return values.copy()

    def address(self, buffer: DeviceArray) -> int:
        return self.device.address(buffer)

    def kernels(self, text: str, names: list[str]) -> dict[str, Callable]:
        """Compile; each kernel is asked for as kernel(blocks, threads, *arguments).

        Arguments: buffers, NumPy scalars, structures (1,), None for no array."""
        return {name: self._on_stream(function) for name, function in self.device.instances(text, names).items()}

    def _on_stream(self, function: Callable[..., None]) -> Callable:
        def ask(blocks: int, threads: int, *arguments: Argument) -> None:
            with self.stream:
                function((blocks,), (threads,), arguments)

        return ask

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """What `work()` asks for, as one thing to ask for again and again. Its kernels must have run before."""
        return self.device.graph(work, self.stream)

    def seconds(self, work: Callable[[], None]) -> float:
        """Time that what `work()` asks for takes on the device."""
        return self.device.seconds(work, self.stream)

    def synchronize(self) -> None:
        self.stream.synchronize()

    def free_bytes(self) -> int:
        return self.device.free_bytes()
