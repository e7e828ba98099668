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
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmgibbs.engines.hybrid.kernels import PIECE
from mmgibbs.equations.explicit.row_blocks import BlockSlice, Kronecker, RowBlocks
from mmgibbs.errors import DeviceError
from mmgibbs.machine.device import Device, DeviceArray, DeviceMemoryError, Event

SOURCE = Path(__file__).resolve().parents[1] / "kernels" / "row_blocks.cu"
ALIGNED = 256  # bytes: where an array of a buffer may begin


class _LongRows(NamedTuple):
    """Rows of more than PIECE elements, on the device."""

    n_pieces: int
    n_rows: int
    piece_first: DeviceArray
    piece_last: DeviceArray
    row: DeviceArray
    ptr: DeviceArray


class DeviceUpdates:
    """The `order.Queues` of a device. `renew` follows every change of the values or of b, `b` and `x` are pinned
    arrays per block.
    """

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
        self.r = [device.pinned(part.shape, np.float64) for part in b]
        try:
            self._hold_vectors()
            self._hold_matrix()
        except DeviceMemoryError:
            free, matrix = device.free_bytes(), blocks.bytes_off_diagonal
            raise DeviceError(
                f"device: gpu: found {free / 1e9:.3g} GB of device memory free; the matrix needs "
                f"{matrix / 1e9:.3g} GB, or two of its blocks at "
                f"a time {2 * self._largest_values() / 1e9:.3g} GB, beside vectors; use partition: equal with more "
                "blocks, precision: single, or device: cpu"
            ) from None

    def _hold_vectors(self) -> None:
        """Room for right-hand sides, solutions and partial sums, and for the matrices of Kronecker parts."""
        empty = self.device.empty
        self._r, self._b = ([empty(part.shape, np.float64) for part in self.b] for _ in range(2))
        self._x: list[Any] = [empty(part.shape, self.real) for part in self.x]
        self._long = {key: [self._long_rows(part) for part in parts] for key, parts in self.blocks.parts.items()}
        self._partial = [self._room_for_pieces(k) for k in range(len(self.b))]
        matrices = {
            id(p.matrix): p.matrix for parts in self.blocks.parts.values() for p in parts if isinstance(p, Kronecker)
        }
        self._matrices = {key: (host, empty(host.shape, np.float64)) for key, host in matrices.items()}

    def _long_rows(self, part: BlockSlice | Kronecker) -> _LongRows | None:
        """Rows of more than PIECE elements, cut into pieces that are added up afterwards; None: there are none."""
        length: np.ndarray = np.diff(part.indptr.view(np.int64))
        rows = np.flatnonzero(length > PIECE)
        if rows.size == 0:
            return None
        counts: np.ndarray = -(-length[rows] // PIECE)
        ptr = np.concatenate([[0], np.cumsum(counts)])
        first = part.indptr[rows].astype(np.int64).repeat(counts) + PIECE * (
            np.arange(ptr[-1]) - ptr[:-1].repeat(counts)
        )
        last = np.minimum(first + PIECE, part.indptr[rows + 1].astype(np.int64).repeat(counts))
        lists = (first.astype(np.uint64), last.astype(np.uint64), part.row[rows], ptr.astype(np.uint64))
        return _LongRows(int(ptr[-1]), rows.size, *(self._copy_to_device(a) for a in lists))

    def _room_for_pieces(self, k: int) -> DeviceArray:
        """One work space per target: its stream runs one kernel after another."""
        sizes = [
            long.n_pieces * part.widths[isinstance(part, Kronecker)]
            for i in self.blocks.sources(k)
            for part, long in zip(self.blocks.parts[k, i], self._long[k, i], strict=True)
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
        self._resident: dict[tuple[int, int], list[BlockSlice | Kronecker]] | None
        try:
            self._resident = {
                key: [self._allocate_values(part) for part in parts] for key, parts in self.blocks.parts.items()
            }
        except DeviceMemoryError:
            self._resident = None
        if self._resident is None:  # outside `except`, which would keep the arrays made so far alive
            self._hold_buffers()
            return
        for key, parts in self.blocks.parts.items():
            for part, there in zip(parts, self._resident[key], strict=True):
                fixed = 4 if isinstance(part, Kronecker) else 3
                for host, array in zip(part[:4][:fixed], there[:4][:fixed], strict=True):
                    self.device.upload(host, array, self._copying)
        self._copying.synchronize()

    def _allocate_values(self, part: BlockSlice | Kronecker) -> BlockSlice | Kronecker:
        """A part with arrays of its shapes, not filled yet."""
        return self._with_arrays(part, [self.device.empty(a.shape, a.dtype) for a in part[:4]])

    def _with_arrays(self, part: BlockSlice | Kronecker, arrays: Sequence[Any]) -> BlockSlice | Kronecker:
        """The part with its first four arrays, and its matrix, on the device."""
        if isinstance(part, Kronecker):
            row, indptr, indices, kappa = arrays
            matrix: Any = self._matrices[id(part.matrix)][1]
            return Kronecker(row, indptr, indices, kappa, matrix, part.row_component, part.column_component)
        row, indptr, indices, values = arrays
        return BlockSlice(row, indptr, indices, values, part.row_component, part.column_component)

    def _largest_values(self) -> int:
        """Bytes of the largest part."""
        return max((_room(part) for parts in self.blocks.parts.values() for part in parts), default=0)

    def _hold_buffers(self) -> None:
        """Two buffers of the size of the largest part, filled in turn."""
        self.device.release()
        free = self.device.free_bytes()
        self._buffers = [self.device.empty(self._largest_values(), np.uint8) for _ in range(2)]
        self._free: list[Event | None] = [None, None]  # the event after the last kernel that read the buffer
        self._next = 0
        self.notes.append(
            f"the matrix ({self.blocks.bytes_off_diagonal / 1e9:.3g} GB) does not fit on the device "
            f"({free / 1e9:.3g} GB free): "
            "its blocks are copied there in every sweep"
        )
        warnings.warn(self.notes[-1], RuntimeWarning, stacklevel=5)

    def renew(self) -> None:
        """Take the values and b of the host; nothing may be running."""
        for host, array in [*zip(self.b, self._b, strict=True), *self._matrices.values()]:
            self.device.upload(host, array, self._copying)
        if self._resident is not None:
            for key, parts in self.blocks.parts.items():
                for part, there in zip(parts, self._resident[key], strict=True):
                    if isinstance(part, BlockSlice) and isinstance(there, BlockSlice):
                        self.device.upload(part.values, there.values, self._copying)
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
        for number, part in enumerate(self.blocks.parts[k, i]):
            if self._resident is None:
                self._subtract_from_buffer(k, i, number, part)
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

    def _launch(self, k: int, i: int, number: int, part: BlockSlice | Kronecker) -> None:
        """r_k -= A_ki x_i for one part whose arrays are on the device."""
        stream, (kr, kc), partial = self.streams[k], part.widths, self._partial[k]
        x, r = (self._x[i], self.x[i].shape[1]), (self._r[k], self.b[k].shape[1])
        long = self._long[k, i][number]
        row, indptr, indices, values = part[:4]
        if isinstance(part, Kronecker):
            matrix, row_at, column_at = part[4:]
            self.kernels.launch(
                "subtract_kronecker",
                len(row) * kr,
                row,
                indptr,
                indices,
                values,
                matrix,
                kr,
                kc,
                row_at,
                column_at,
                *x,
                *r,
                stream=stream,
            )
            if long is not None:
                pieces = long.piece_first, long.piece_last
                self.kernels.launch(
                    "sum_kappa_pieces",
                    long.n_pieces * kc,
                    *pieces,
                    indices,
                    values,
                    kc,
                    column_at,
                    *x,
                    partial,
                    stream=stream,
                )
                self.kernels.launch(
                    "subtract_long_kronecker",
                    long.n_rows * kr,
                    long.row,
                    long.ptr,
                    matrix,
                    kr,
                    kc,
                    row_at,
                    partial,
                    *r,
                    stream=stream,
                )
            return
        row_at, column_at = part[4:]
        self.kernels.launch(
            "subtract_rows",
            len(row) * kr,
            row,
            indptr,
            indices,
            values,
            kr,
            kc,
            row_at,
            column_at,
            *x,
            *r,
            stream=stream,
        )
        if long is not None:
            pieces = long.piece_first, long.piece_last
            self.kernels.launch(
                "sum_pieces",
                long.n_pieces * kr,
                *pieces,
                indices,
                values,
                kr,
                kc,
                column_at,
                *x,
                partial,
                stream=stream,
            )
            self.kernels.launch(
                "subtract_long_rows", long.n_rows * kr, long.row, long.ptr, kr, row_at, partial, *r, stream=stream
            )

    def _subtract_from_buffer(self, k: int, i: int, number: int, part: BlockSlice | Kronecker) -> None:
        """Copy a part into the next free buffer, and subtract its product from there."""
        slot = self._next
        self._next = 1 - slot
        free = self._free[slot]
        if free is not None:
            self._copying.wait_event(free)
        arrays, at = [], 0
        for host in part[:4]:
            there = self._buffers[slot][at : at + host.nbytes].view(host.dtype).reshape(host.shape)
            self.device.upload(host, there, self._copying)
            arrays.append(there)
            at += _aligned(host.nbytes)
        self.streams[k].wait_event(self._copying.record())
        self._launch(k, i, number, self._with_arrays(part, arrays))
        self._free[slot] = self.streams[k].record()


def _aligned(size: int) -> int:
    """Bytes up to the next multiple of ALIGNED."""
    return -(-size // ALIGNED) * ALIGNED


def _room(part: BlockSlice | Kronecker) -> int:
    """Bytes of a part in a buffer."""
    return sum(_aligned(a.nbytes) for a in part[:4])
