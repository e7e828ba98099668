"""Kept draws on their way from a device to the host, without a wait in the sweeps."""

from __future__ import annotations

import numpy as np

from mmgibbs.machine.device import DeviceArray, Event
from mmgibbs.machine.gpu_queue import GpuQueue

MAX_SLOTS = 64
MAX_RING_BYTES = 1 << 28


def count_slots(slot_bytes: int) -> int:
    """Slots of a ring, an even number from 2: MAX_SLOTS, or as many as take MAX_RING_BYTES."""
    return 2 * max(1, min(MAX_SLOTS, MAX_RING_BYTES // slot_bytes) // 2)


class Ring:
    """Slots in device memory that kernels fill one after another, draw k in slot k mod n.

    slots (n, values): the buffer, n even. Once one half is full, a second stream copies it to pinned memory while
    kernels fill the other; the host looks at the copy when the other half is full, so that it hardly ever waits.
    `first`: number of the first draw.
    """

    def __init__(self, queue: GpuQueue, slots: DeviceArray, first: int = 0):
        n, n_values = slots.shape
        self.queue, self.slots, self.half = queue, slots, n // 2
        self.written = self.read = first  # draws that were queued, and that are on the host
        self._side = queue.device.stream()
        self._pinned = queue.device.pinned((2, self.half, n_values), slots.dtype)
        self._copied: list[Event | None] = [None, None]  # of each half: its copy is done
        self._draws: list[np.ndarray] = []

    def count(self) -> None:
        """Note that the kernels of one more kept draw were queued."""
        self.written += 1
        if self.written % self.half:
            return
        full = (self.written // self.half - 1) % 2
        self._send(full)
        self._receive(1 - full)

    def take(self) -> list[np.ndarray]:
        """Wait for all draws that were queued; those that were not taken before, (values,) each, in order."""
        for half in (0, 1):  # at most one is on its way
            self._receive(half)
        if self.read < self.written:
            rows = self._rows(self.read, self.written)
            self._draws += list(self.queue.read(self.slots[rows]))
            self.read = self.written
        draws, self._draws = self._draws, []
        return draws

    def _rows(self, first: int, last: int) -> slice:
        """The slots of draws first ... last - 1, which lie in one half."""
        start = first % (2 * self.half)
        return slice(start, start + last - first)

    def _send(self, half: int) -> None:
        """Queue the copy of a half to the host, behind the kernels that filled it."""
        self._side.wait_event(self.queue.stream.record())
        rows = slice(half * self.half, (half + 1) * self.half)
        self.queue.device.download(self.slots[rows], self._pinned[half], self._side)
        self._copied[half] = self._side.record()

    def _receive(self, half: int) -> None:
        """Take over what was sent of a half, less the draws that were taken before."""
        event, self._copied[half] = self._copied[half], None
        if event is None:
            return
        event.synchronize()
        last = (self.read // self.half + 1) * self.half
        rows = self._rows(self.read, last)
        first_row = rows.start - half * self.half
        self._draws += list(self._pinned[half, first_row:].copy())
        self.read = last
