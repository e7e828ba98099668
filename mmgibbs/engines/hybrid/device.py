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
from collections.abc import Sequence
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


class _LongRows(NamedTuple):
    """Rows of more than PIECE elements, on the device."""

    n_pieces: int
    n_rows: int
    piece_first: DeviceArray
    piece_last: DeviceArray
    row: DeviceArray
    ptr: DeviceArray


class DeviceUpdates:
    """The `order.Queues` of a device; b, x: pinned arrays per block. `renew` follows a change of the values or of b."""

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
        """Allocate right-hand sides, solutions and partial sums."""
        empty, slices = self.device.empty, self.blocks.slices
        self._r, self._b = ([empty(rhs.shape, np.float64) for rhs in self.b] for _ in range(2))
        self._x: list[Any] = [empty(x.shape, self.real) for x in self.x]
        self._long = {key: [self._long_rows(block_slice) for block_slice in slices[key]] for key in slices}
        self._partial = [self._allocate_partial_sums(k) for k in range(len(self.b))]

    def _long_rows(self, block_slice: BlockSlice) -> _LongRows | None:
        """Rows of more than PIECE elements, cut into pieces that are added up afterwards; None: there are none."""
        length: np.ndarray = np.diff(block_slice.indptr.view(np.int64))
        rows = np.flatnonzero(length > PIECE)
        if rows.size == 0:
            return None
        counts: np.ndarray = -(-length[rows] // PIECE)
        ptr = np.concatenate([[0], np.cumsum(counts)])
        begin, end = (block_slice.indptr[at].astype(np.int64).repeat(counts) for at in (rows, rows + 1))
        first = begin + PIECE * (np.arange(ptr[-1]) - ptr[:-1].repeat(counts))
        last = np.minimum(first + PIECE, end)
        lists = (first.astype(np.uint64), last.astype(np.uint64), block_slice.row[rows], ptr.astype(np.uint64))
        return _LongRows(int(ptr[-1]), rows.size, *(self._copy_to_device(a) for a in lists))

    def _allocate_partial_sums(self, k: int) -> DeviceArray:
        """One work space per target: its stream runs one kernel after another."""
        sizes = [
            long.n_pieces * block_slice.widths[0]
            for i in self.blocks.sources(k)
            for block_slice, long in zip(self.blocks.slices[k, i], self._long[k, i], strict=True)
            if long is not None
        ]
        return self.device.empty(max(sizes, default=0), np.float64)

    def _copy_to_device(self, host: np.ndarray) -> DeviceArray:
        """An array copied to the device, there when this returns."""
        array = self.device.empty(host.shape, host.dtype)
        self.device.upload(np.ascontiguousarray(host), array, self._copying)
        self._copying.synchronize()
        return array

    # The matrix

    def _hold_matrix(self) -> None:
        """The whole matrix on the device where it fits, else two buffers through which it passes."""
        self._resident: dict[tuple[int, int], list[BlockSlice]] | None
        try:
            slices = self.blocks.slices
            self._resident = {key: [self._allocate_slice(block_slice) for block_slice in slices[key]] for key in slices}
        except DeviceMemoryError:
            self._resident = None
        if self._resident is None:  # outside `except`, which would keep the arrays made so far alive
            self._hold_buffers()
            return
        for host, device in self._resident_pairs():
            for source, target in zip(host.arrays[:3], device.arrays[:3], strict=True):
                self.device.upload(source, target, self._copying)
        self._copying.synchronize()

    def _allocate_slice(self, block_slice: BlockSlice) -> BlockSlice:
        """A slice with arrays of the same shapes on the device, not filled yet."""
        return _replace_arrays(block_slice, [self.device.empty(a.shape, a.dtype) for a in block_slice.arrays])

    def _resident_pairs(self) -> list[tuple[BlockSlice, BlockSlice]]:
        """Each slice on the host and on the device; none where the matrix passes through buffers."""
        resident, slices = self._resident or {}, self.blocks.slices
        return [pair for key in resident for pair in zip(slices[key], resident[key], strict=True)]

    def _largest_slice_bytes(self) -> int:
        every = chain.from_iterable(self.blocks.slices.values())
        return max((sum(map(_aligned_bytes, block_slice.arrays)) for block_slice in every), default=0)

    def _hold_buffers(self) -> None:
        """Two buffers of the size of the largest slice, filled in turn."""
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
        """Take the values and b of the host; nothing may be running."""
        values = [(host.values, device.values) for host, device in self._resident_pairs()]
        for source, target in [*zip(self.b, self._b, strict=True), *values]:
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
        for number, block_slice in enumerate(self.blocks.slices[k, i]):
            if self._resident is None:
                self._subtract_from_buffer(k, i, number, block_slice)
            else:
                self._launch(k, i, number, self._resident[k, i][number])

    def wait(self, k: int) -> None:
        self.device.download(self._r[k], self.r[k], self.streams[k])
        self.streams[k].record().synchronize()

    def discard(self) -> None:
        """What is queued on a device runs: it is waited for."""
        for stream in (*self.streams, self._handing_over, self._copying):
            stream.synchronize()

    def stop(self) -> None:
        self.discard()

    # Kernels

    def _launch(self, k: int, i: int, number: int, block_slice: BlockSlice) -> None:
        """r_k -= A_ki x_i for one slice whose arrays are on the device."""
        launch = partial(self.kernels.launch, stream=self.streams[k])
        (kr, kc), (row_at, column_at) = block_slice.widths, block_slice.offset
        row, indptr, indices, values = block_slice.arrays
        x, r = (self._x[i], self.x[i].shape[1]), (self._r[k], self.b[k].shape[1])
        launch("subtract_rows", len(row) * kr, row, indptr, indices, values, kr, kc, row_at, column_at, *x, *r)
        long, sums = self._long[k, i][number], self._partial[k]
        if long is not None:
            pieces = long.piece_first, long.piece_last
            launch("sum_pieces", long.n_pieces * kr, *pieces, indices, values, kr, kc, column_at, *x, sums)
            launch("subtract_long_rows", long.n_rows * kr, long.row, long.ptr, kr, row_at, sums, *r)

    def _subtract_from_buffer(self, k: int, i: int, number: int, block_slice: BlockSlice) -> None:
        """Copy a slice into the next free buffer, and subtract its product from there."""
        slot = self._next
        self._next = 1 - slot
        free = self._free[slot]
        if free is not None:
            self._copying.wait_event(free)
        arrays, begin = [], 0
        for host in block_slice.arrays:
            array = self._buffers[slot][begin : begin + host.nbytes].view(host.dtype).reshape(host.shape)
            self.device.upload(host, array, self._copying)
            arrays.append(array)
            begin += _aligned_bytes(host)
        self.streams[k].wait_event(self._copying.record())
        self._launch(k, i, number, _replace_arrays(block_slice, arrays))
        self._free[slot] = self.streams[k].record()


def _replace_arrays(block_slice: BlockSlice, arrays: Sequence[Any]) -> BlockSlice:
    row, indptr, indices, values = arrays
    return BlockSlice(row, indptr, indices, values, block_slice.offset)


def _aligned_bytes(array: np.ndarray) -> int:
    """Bytes of an array up to the next multiple of ALIGNMENT_BYTES."""
    return -(-array.nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
