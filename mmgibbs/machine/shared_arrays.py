"""Arrays that are on a device once, for all chains that read them side by side."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from mmgibbs.machine.device import DeviceArray
from mmgibbs.machine.gpu_queue import GpuQueue


class SharedArrays:
    """Arrays on a device by name, each uploaded by the chain that needs it first; none of them is written again.

    `wait()`: until they are complete; a chain that starts beside others, on a queue of its own, calls it first.
    """

    def __init__(self, queue: GpuQueue):
        self._queue = queue
        self._arrays: dict[Hashable, DeviceArray] = {}

    def find(self, name: Hashable, upload: Callable[[], DeviceArray]) -> DeviceArray:
        """The array of this name; `upload()` makes it where there is none yet."""
        if name not in self._arrays:
            self._arrays[name] = upload()
        return self._arrays[name]

    def wait(self) -> None:
        """Wait until the uploads are on the device."""
        self._queue.synchronize()
