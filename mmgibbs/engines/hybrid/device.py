"""Queues of updates on a CUDA device: one stream per target block, events between them; diagonal blocks are sampled on
the host.

    publish_effects(i) copy x_i to the device on a stream of its own, then an event
    subtract(k, i)   stream k waits for that event, then r_k -= A_ki x_i
    wait(k)          stream k copies r_k to pinned memory; the host waits for it alone

The matrix stays on the device where it fits. Else each A_ki is copied from pinned host memory when it is needed, into
the one of two buffers whose last reader is done, while kernels work on the other (as on the poster of Golden, Lupo &
Garrick).

No x_i is overwritten while an update still reads it: before block i is sampled again every other block was waited for,
with all its updates.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmgibbs.engines.hybrid.kernels import PIECE
from mmgibbs.equations.explicit.row_blocks import BlockSlice, RowBlocks
from mmgibbs.errors import DeviceError
from mmgibbs.machine.device import Device, DeviceArray, DeviceMemoryError, Event

SOURCE = Path(__file__).resolve().parents[1] / "kernels" / "row_blocks.cu"
ALIGNMENT_BYTES = 256  # where an array of a buffer may begin


class _Pieces(NamedTuple):
    """Rows of more than PIECE elements, cut into pieces that are added up afterwards; on the device."""

    n: int
    first: DeviceArray  # (n,) the elements of a piece
    last: DeviceArray
    ptr: DeviceArray  # (rows + 1,) the pieces of each row of the slice


@dataclass
class _Slice:
    """A slice on the device: its matrices, and its lists where those of all slices fit."""

    host: BlockSlice
    matrices: DeviceArray
    pieces: _Pieces | None  # None: no row is long
    lists: list[DeviceArray] | None = None


class DeviceUpdates:
    """The `order.Queues` of a device; b, x: pinned arrays per block. `renew` follows new variances or b."""

    def __init__(self, blocks: RowBlocks, b: list[np.ndarray], x: list[np.ndarray], device: Device):
        self.device, self.blocks, self.b, self.x = device, blocks, b, x
        self.real = blocks.equations.real
        self.notes: list[str] = []
        self.kernels = device.kernels(
            SOURCE.read_text(encoding="utf-8"), PIECE=PIECE, REAL={4: "float", 8: "double"}[self.real.itemsize]
        )
        self.streams = [device.stream() for _ in b]
        self._handing_over, self._copying = device.stream(), device.stream()
        self._ready: list[Event | None] = [None] * len(b)  # the event of the last copy of each x_i
        self.r = [device.pinned(rhs.shape, np.float64) for rhs in b]
        try:
            self._hold_vectors()
            self._hold_matrix()
        except DeviceMemoryError:
            free, matrix = device.free_bytes(), blocks.bytes_off_diagonal
            raise DeviceError(
                f"device: gpu: found {free / 1e9:.3g} GB of device memory free; the matrix needs "
                f"{matrix / 1e9:.3g} GB, or two of its blocks at "
                f"a time {2 * self._largest_slice_bytes() / 1e9:.3g} GB, beside vectors; use partition: equal with "
                "more blocks, precision: single, or device: cpu"
            ) from None

    def _hold_vectors(self) -> None:
        """Allocate right-hand sides, solutions, matrices of components and partial sums."""
        empty = self.device.empty
        self._r, self._b = ([empty(rhs.shape, np.float64) for rhs in self.b] for _ in range(2))
        self._x: list[Any] = [empty(x.shape, self.real) for x in self.x]
        self._slices = {
            key: [_Slice(s, empty(s.matrices.shape, np.float64), self._cut_rows(s)) for s in slices]
            for key, slices in self.blocks.slices.items()
        }
        # One work space per target: its stream runs one kernel after another.
        sizes = [0] * len(self.b)
        for (k, _), slices in self._slices.items():
            sizes[k] = max(sizes[k], *(s.pieces.n * s.host.widths[1] for s in slices if s.pieces is not None), 0)
        self._partial = [empty(size, np.float64) for size in sizes]

    def _cut_rows(self, block_slice: BlockSlice) -> _Pieces | None:
        """Cut the rows of more than PIECE elements."""
        indptr = block_slice.lists.indptr.view(np.int64)
        length = np.diff(indptr)
        counts = np.where(length > PIECE, -(-length // PIECE), 0)
        ptr = np.append(0, np.cumsum(counts))
        if ptr[-1] == 0:
            return None
        first = indptr[:-1].repeat(counts) + PIECE * (np.arange(ptr[-1]) - ptr[:-1].repeat(counts))
        last = np.minimum(first + PIECE, indptr[1:].repeat(counts))
        return _Pieces(int(ptr[-1]), *(self._copy_to_device(a.astype(np.uint64)) for a in (first, last, ptr)))

    def _copy_to_device(self, host: np.ndarray) -> DeviceArray:
        """An array copied to the device, there when this returns."""
        array = self.device.empty(host.shape, host.dtype)
        self.device.upload(np.ascontiguousarray(host), array, self._copying)
        self._copying.synchronize()
        return array

    # The matrix

    def _every_slice(self) -> Iterator[_Slice]:
        return chain.from_iterable(self._slices.values())

    def _hold_matrix(self) -> None:
        """The whole matrix on the device where it fits, else two buffers through which it passes."""
        try:
            for s in self._every_slice():
                s.lists = self._allocate_lists(s.host)
            self._resident = True
        except DeviceMemoryError:
            self._resident = False
        if self._resident:
            for s in self._every_slice():
                for host, there in zip(s.host.lists, s.lists or [], strict=True):
                    self.device.upload(host, there, self._copying)
            self._copying.synchronize()
        else:  # outside `except`, which would keep the arrays made so far alive
            for s in self._every_slice():
                s.lists = None
            self._hold_buffers()

    def _allocate_lists(self, block_slice: BlockSlice) -> list[DeviceArray]:
        """Arrays of the same shapes on the device, not filled yet."""
        return [self.device.empty(a.shape, a.dtype) for a in block_slice.lists]

    def _largest_slice_bytes(self) -> int:
        every = chain.from_iterable(self.blocks.slices.values())
        return max((sum(map(_aligned_bytes, block_slice.lists)) for block_slice in every), default=0)

    def _hold_buffers(self) -> None:
        """Allocate two buffers of the size of the largest slice, filled in turn."""
        self.device.release()
        free = self.device.free_bytes()
        self._buffers = [self.device.empty(self._largest_slice_bytes(), np.uint8) for _ in range(2)]
        self._free: list[Event | None] = [None, None]  # the event after the last kernel that read the buffer
        self._next = 0
        self.notes.append(
            f"the matrix ({self.blocks.bytes_off_diagonal / 1e9:.3g} GB) does not fit on the device "
            f"({free / 1e9:.3g} GB free): its blocks are copied there in every sweep"
        )
        warnings.warn(self.notes[-1], RuntimeWarning, stacklevel=5)

    def renew(self) -> None:
        """Take b and the matrices of components of the host; nothing may be running."""
        matrices = [(s.host.matrices, s.matrices) for s in self._every_slice()]
        for source, target in [*zip(self.b, self._b, strict=True), *matrices]:
            self.device.upload(source, target, self._copying)
        self._copying.synchronize()

    # Queues

    def publish_effects(self, i: int) -> None:
        self.device.upload(self.x[i], self._x[i], self._handing_over)
        self._ready[i] = self._handing_over.record()

    def reset(self, k: int) -> None:
        self.device.copy(self._b[k], self._r[k], self.streams[k])

    def subtract(self, k: int, i: int) -> None:
        ready = self._ready[i]
        assert ready is not None, "x_i is handed over before it is subtracted"
        self.streams[k].wait_event(ready)
        for s in self._slices[k, i]:
            if s.lists is None:
                self._subtract_from_buffer(k, i, s)
            else:
                self._launch(k, i, s, s.lists)

    def wait(self, k: int) -> None:
        self.device.download(self._r[k], self.r[k], self.streams[k])
        self.streams[k].record().synchronize()

    def discard(self) -> None:
        """Wait for the work that is queued on the device."""
        for stream in (*self.streams, self._handing_over, self._copying):
            stream.synchronize()

    def stop(self) -> None:
        self.discard()

    # Kernels

    def _launch(self, k: int, i: int, s: _Slice, lists: Sequence[DeviceArray]) -> None:
        """r_k -= A_ki x_i for one slice whose lists are on the device."""
        launch = partial(self.kernels.launch, stream=self.streams[k])
        (kr, kc), columns, (indices, number) = s.host.widths, s.host.columns, lists[3:]
        x, r = (self._x[i], self.x[i].shape[1]), (self._r[k], self.b[k].shape[1])
        pieces, sums = s.pieces, self._partial[k]
        if pieces is not None:
            launch("sum_pieces", pieces.n * kc, pieces.first, pieces.last, indices, number, kc, *columns, *x, sums)
        ptr = 0 if pieces is None else pieces.ptr
        n = s.host.lists.row.size * kr
        launch("subtract_rows", n, *lists, s.matrices, kr, kc, *s.host.rows, *columns, *x, *r, ptr, sums)

    def _subtract_from_buffer(self, k: int, i: int, s: _Slice) -> None:
        """Copy a slice into the next free buffer, and subtract its product from there."""
        slot = self._next
        self._next = 1 - slot
        free = self._free[slot]
        if free is not None:
            self._copying.wait_event(free)
        lists, begin = [], 0
        for host in s.host.lists:
            array = self._buffers[slot][begin : begin + host.nbytes].view(host.dtype).reshape(host.shape)
            self.device.upload(host, array, self._copying)
            lists.append(array)
            begin += _aligned_bytes(host)
        self.streams[k].wait_event(self._copying.record())
        self._launch(k, i, s, lists)
        self._free[slot] = self.streams[k].record()


def _aligned_bytes(array: np.ndarray) -> int:
    """Bytes of an array up to the next multiple of ALIGNMENT_BYTES."""
    return -(-array.nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
