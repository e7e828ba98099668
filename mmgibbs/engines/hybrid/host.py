"""Queues of updates run by worker threads, and by the main thread while it waits.

A target block is cut into segments of rows with a queue each: a queue runs in order, one thread at a time, so every
element of r sees its updates in one order and the chain is the same for any number of threads. Threads sleep on a
condition when there is nothing to do.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from mmgibbs.engines.coloured.unrolled import unroll
from mmgibbs.engines.hybrid.kernels import subtract_rows
from mmgibbs.equations.explicit.row_blocks import RowBlocks

SEGMENT = 1 << 15  # levels of a target block that one queue serves
RESET = -1


@dataclass(eq=False)
class _Segment:
    target: int
    first: int  # levels first ... last - 1 of the target block
    last: int
    calls: dict[int, list[tuple]]  # source -> arguments of `subtract_rows` for these levels, per slice
    pending: deque[int] = field(default_factory=deque)
    busy: bool = False

    @property
    def drained(self) -> bool:
        return not self.pending and not self.busy


class HostUpdates:
    """The `order.Queues` of a machine's cores; one of `threads` is the main thread, which works while it waits."""

    def __init__(self, blocks: RowBlocks, b: list[np.ndarray], x: list[np.ndarray], threads: int):
        self.b, self.x, self.n_blocks = b, x, len(b)
        self.r = [np.zeros(rhs.shape) for rhs in b]
        self.segments = [self._segments(blocks, k) for k in range(self.n_blocks)]
        self.threads = threads
        self.notes: list[str] = []
        # (target, source or -1), called before each update; tests delay it
        self.before_update: Callable[[int, int], None] | None = None
        self._changed = threading.Condition()
        self._workers: list[threading.Thread] = []
        self._current = 0  # the block that is sampled next: its updates come first
        self._stopped = False
        self._failure: BaseException | None = None

    def _segments(self, blocks: RowBlocks, k: int) -> list[_Segment]:
        levels = blocks.blocks[k].last - blocks.blocks[k].first
        bounds = np.linspace(0, levels, max(1, -(-levels // SEGMENT)) + 1).astype(np.int64)
        segments = [_Segment(k, int(a), int(z), {}) for a, z in zip(bounds[:-1], bounds[1:], strict=True)]
        for i in blocks.sources(k):
            for block_slice in blocks.slices[k, i]:
                lists = block_slice.lists
                sizes = [unroll(width, lists.indices.size) for width in block_slice.widths]
                places = tuple(tuple(map(np.uint64, place)) for place in (block_slice.rows, block_slice.columns))
                fixed = (*lists, block_slice.matrices, *sizes, *places, self.x[i], self.r[k])
                rows = np.searchsorted(lists.row, bounds)
                for segment, first, last in zip(segments, rows[:-1], rows[1:], strict=True):
                    if first < last:
                        segment.calls.setdefault(i, []).append((*fixed, int(first), int(last)))
        return segments

    def renew(self) -> None:
        """Values and b are read where they are."""

    # Queues

    def publish_effects(self, i: int) -> None:
        """Do nothing: updates read x_i where it was drawn; those of the last x_i are done when block i is consumed."""

    def reset(self, k: int) -> None:
        self._queue(k, RESET)

    def subtract(self, k: int, i: int) -> None:
        self._queue(k, i)

    def wait(self, k: int) -> None:
        with self._changed:
            self._current = k
            while not all(segment.drained for segment in self.segments[k]):
                if not self._run_next():
                    self._changed.wait()
                self._raise_failure()
            self._raise_failure()
            self._current = (k + 1) % self.n_blocks

    def discard(self) -> None:
        with self._changed:
            for segment in self._all_segments():
                segment.pending.clear()
            while any(segment.busy for segment in self._all_segments()):
                self._changed.wait()
            self._raise_failure()

    def stop(self) -> None:
        """End the worker threads; they start again when something is queued."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for worker in self._workers:
            if worker is not threading.current_thread():  # a forgotten engine may be collected in any thread
                worker.join()
        self._workers = []

    # Threads

    def _all_segments(self) -> Iterator[_Segment]:
        return (segment for segments in self.segments for segment in segments)

    def _queue(self, k: int, source: int) -> None:
        with self._changed:
            if not self._workers and self.threads > 1:
                self._stopped = False
                self._workers = [
                    threading.Thread(target=self._work, name=f"update-{i + 1}", daemon=True)
                    for i in range(self.threads - 1)
                ]
                for worker in self._workers:
                    worker.start()
            for segment in self.segments[k]:
                if source == RESET or source in segment.calls:
                    segment.pending.append(source)
            self._changed.notify_all()

    def _work(self) -> None:
        with self._changed:
            while not self._stopped:
                if not self._run_next():
                    self._changed.wait()

    def _run_next(self) -> bool:
        """Take the most urgent update and run it, the lock released meanwhile; False where none can run."""
        segment = self._most_urgent()
        if segment is None:
            return False
        source = segment.pending.popleft()
        segment.busy = True
        self._changed.release()
        try:
            if self.before_update is not None:
                self.before_update(segment.target, source)
            self._update(segment, source)
        except BaseException as error:  # noqa: BLE001  raised again in the main thread
            self._failure = error
        finally:
            self._changed.acquire()
            segment.busy = False
            self._changed.notify_all()
        return True

    def _most_urgent(self) -> _Segment | None:
        for distance in range(self.n_blocks):
            for segment in self.segments[(self._current + distance) % self.n_blocks]:
                if segment.pending and not segment.busy:
                    return segment
        return None

    def _update(self, segment: _Segment, source: int) -> None:
        if source == RESET:
            levels = slice(segment.first, segment.last)
            self.r[segment.target][levels] = self.b[segment.target][levels]
            return
        for arguments in segment.calls[source]:
            subtract_rows(*arguments)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
