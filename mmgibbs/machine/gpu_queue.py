"""One queue of work on a device: buffers, copies, kernels and recorded work, done in the order asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
import numpy.typing as npt

from mmgibbs.errors import DeviceError
from mmgibbs.machine.device import Argument, Device, DeviceArray, DeviceMemoryError, Shape

STAGED = 1 << 16  # bytes of small values on their way to the device


class GpuQueue:
    """A stream of a device (mmgibbs.machine.device.Device; the current one where None).

    DeviceError where there is none. remedy: what a user can do where its memory does not suffice.
    """

    def __init__(self, device: Device | None = None, remedy: str = "use device: cpu"):
        self.device, self.remedy = Device() if device is None else device, remedy
        self.stream = self.device.stream()
        self._recorded: dict[Hashable, Callable[[], None] | None] = {}
        self._pinned = np.empty(0, np.uint8)
        self._staging: np.ndarray | None = None
        self._staged = 0  # bytes of it that copies may still have to read

    def empty(self, shape: Shape, dtype: npt.DTypeLike) -> DeviceArray:
        """A buffer of zeros. DeviceError where it does not fit."""
        try:
            return self.device.zeros(shape, dtype, self.stream)
        except DeviceMemoryError as error:
            raise DeviceError(
                f"device: gpu: {self.device.free_bytes() / 1e9:.1f} GB free on the device are too few "
                f"({error}); {self.remedy}"
            ) from None

    def upload(self, array: np.ndarray) -> DeviceArray:
        """A buffer with these values."""
        buffer = self.empty(array.shape, array.dtype)
        self.write(buffer, array)
        return buffer

    def fill(self, buffer: DeviceArray, byte: int) -> None:
        """Set every byte of a buffer."""
        self.device.fill(buffer, byte, self.stream)

    def write(self, buffer: DeviceArray, array: np.ndarray) -> None:
        """New values for a buffer; `array` may change afterwards.

        Small ones go by way of pinned memory, and nothing is waited for: a sweep has several, and a device that is
        waited for stands still until the next kernel reaches it. Others wait for the copy."""
        array = np.ascontiguousarray(array)
        if array.nbytes > STAGED // 4:
            self.device.upload(array, buffer, self.stream)
            self.stream.synchronize()
            return
        if self._staging is None:
            self._staging = self.device.pinned(STAGED, np.uint8)
        if self._staged + array.nbytes > STAGED:
            self.synchronize()
        place = self._staging[self._staged : self._staged + array.nbytes].view(array.dtype).reshape(array.shape)
        place[...] = array
        self.device.upload(place, buffer, self.stream)
        self._staged += -(-array.nbytes // 64) * 64

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        self.device.copy(source, target, self.stream)

    def read(self, buffer: DeviceArray) -> np.ndarray:
        """Wait for everything asked for so far; the values of a buffer, brought over through pinned memory."""
        if self._pinned.size < buffer.nbytes:
            self._pinned = self.device.pinned(buffer.nbytes, np.uint8)
        values = self._pinned[: buffer.nbytes].view(buffer.dtype).reshape(buffer.shape)
        self.device.download(buffer, values, self.stream)
        self.synchronize()
        return values.copy()

    def address(self, buffer: DeviceArray) -> int:
        return self.device.address(buffer)

    def kernels(self, text: str, names: list[str], cooperative: bool = False) -> dict[str, Callable]:
        """Compile; each kernel is asked for as kernel(blocks, threads, *arguments).

        Arguments: buffers, NumPy scalars, structures (1,), None for no array."""
        functions = self.device.instances(text, names, **({"cooperative": True} if cooperative else {}))
        return {name: self._run_stream(function) for name, function in functions.items()}

    def _run_stream(self, function: Callable[..., None]) -> Callable:
        def ask(blocks: int, threads: int, *arguments: Argument) -> None:
            with self.stream:
                function((blocks,), (threads,), arguments)

        return ask

    def repeat(self, name: Hashable, work: Callable[[], None]) -> None:
        """Ask for what `work()` asks for, the same kernels with the same arguments every time it has this name.

        At the second time it is recorded, and from then on one thing to ask for: kernels are loaded at their first
        launch, which must not be recorded."""
        if name not in self._recorded:
            self._recorded[name] = None
            work()
            return
        recorded = self._recorded[name]
        if recorded is None:
            recorded = self._recorded[name] = self.device.graph(work, self.stream)
        recorded()

    def seconds(self, work: Callable[[], None]) -> float:
        """Time that what `work()` asks for takes on the device."""
        return self.device.seconds(work, self.stream)

    def synchronize(self) -> None:
        """Wait until all queued work is done."""
        self.stream.synchronize()
        self._staged = 0

    def free_bytes(self) -> int:
        return self.device.free_bytes()
