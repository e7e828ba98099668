"""Work shared out over threads: the shapes of parallel work that the mixed-model engines and the regressions have in
common.

    BP-LPS   many independent parts, each cheap (animals; coordinates): ranges of equal length
    BP-LPP   many groups of unequal size (contemporary groups; the groups of a hierarchical model): ranges of about
             equal work
    BS-LPP   few parts with endless lists (a sex, an intercept): the lists cut into pieces of fixed length, summed in
             order

In each the values do not depend on the sharing: a part is computed whole by whoever gets it, and a list is cut where
the data say, never where the number of threads does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np


def cores() -> int:
    """Cores this process may use, within its affinity and a container's quota."""
    from joblib import cpu_count  # late: the core is imported without it

    return cpu_count()


def equal_ranges(work: np.ndarray, most: int, first: int = 0) -> list[tuple[int, int]]:
    """Divide consecutive parts into at most `most` ranges (a, b) of about equal work, b excluded.

    Parts are numbered first, first + 1, ...; none of the ranges is empty.

    work: (parts,), above 0: what each part costs, in any unit. A part is never cut.
    """
    if work.size == 0:
        return []
    done = np.cumsum(work, dtype=np.float64)
    cuts = np.searchsorted(done, done[-1] * np.arange(1, most) / most)
    bounds = first + np.unique(np.concatenate([[0], cuts, [work.size]]))
    return [(int(a), int(b)) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]


def fold(ptr: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Lists ptr[i] ... ptr[i+1] - 1, none empty, cut into pieces of at most `most`: (start of each piece, first piece
    of each list).

    Lists of unequal length so become lanes of about equal length: numpy.add.reduceat over the pieces, then over their
    sums.
    """
    sizes = np.diff(ptr)
    pieces = -(-sizes // most)
    first = np.concatenate([[0], np.cumsum(pieces)[:-1]])
    within = np.arange(pieces.sum()) - np.repeat(first, pieces)
    return np.repeat(ptr[:-1], pieces) + most * within, first


def run_at_once(pool: Executor | None, threads: int, calls: Iterable[Callable[[], None]]) -> None:
    """Run the calls and wait for them, on this thread and `threads` - 1 of the pool: each takes the next call when it
    is free."""
    calls = list(calls)
    if pool is None or threads == 1 or len(calls) <= 1:
        for call in calls:
            call()
        return
    waiting = iter(calls)  # next() on one iterator from several threads hands out each call once: the GIL is held

    def take() -> None:
        for call in waiting:
            call()

    futures = [pool.submit(take) for _ in range(min(threads, len(calls)) - 1)]
    take()
    for future in futures:
        future.result()


PIECE = 16_384  # of a pass over all levels or records: fixed, so that the order of summation is
SHARES_PER_THREAD = 4  # so that a thread that is held up does not hold up the others
APART = 16  # float64 between the sums of two pieces: threads that write to one line of the cache wait for each other


class Pieces:
    """0 ... n - 1 in `count` pieces of PIECE each, whatever the number of threads: pieces(kernel, *out) calls
    kernel(PIECE, first piece, last piece, *out) for shares of them at once, and waits."""

    def __init__(self, n: int, threads: Threads):
        self.size, self.count, self.threads = PIECE, -(-n // PIECE), threads

    def __call__(self, kernel: Callable[..., None], *out: np.ndarray) -> None:
        shares = min(self.count, 1 if self.threads.count == 1 else SHARES_PER_THREAD * self.threads.count)
        cuts = [self.count * i // shares for i in range(shares + 1)] if shares else []
        self.threads([partial(kernel, self.size, a, b, *out) for a, b in pairwise(cuts)])

    def sums(self, rows: int, columns: int) -> np.ndarray:
        """(count, rows and more, columns) zeros, for a kernel to sum up each piece in its first `rows`."""
        return np.zeros((self.count, rows - (-APART // columns), columns))


class Threads:
    """This thread and `count` - 1 others: threads(calls) runs the calls at once and waits for them.

    They stay in their process: what is sent to another one works there alone.
    """

    def __init__(self, count: int):
        self.count = count
        self._pool = ThreadPoolExecutor(count - 1) if count > 1 else None

    def __call__(self, calls: Iterable[Callable[[], None]]) -> None:
        if self._pool is None:
            for call in calls:
                call()
        else:
            run_at_once(self._pool, self.count, calls)

    def together(self, kernel: Callable[..., None], *arguments: Any) -> None:
        """kernel(arrived, me, *arguments) on every thread at once, me its number: they wait for each other within
        (machine/barrier.py).
        """
        from mmgibbs.machine.barrier import places_of_threads  # late: it imports Numba

        arrived = places_of_threads(self.count)

        def run_on_thread(me: int) -> None:
            try:
                kernel(arrived, me, *arguments)
            except BaseException:
                arrived[self.count] = 1  # nobody waits for this one
                raise

        self([partial(run_on_thread, me) for me in range(self.count)])

    def __reduce__(self) -> tuple[type[Threads], tuple[int]]:
        return Threads, (1,)

    def pieces(self, n: int) -> Pieces:
        """0 ... n - 1 in pieces for passes over them."""
        return Pieces(n, self)


ALONE = Threads(1)


def blas_threads(threads: int | None) -> AbstractContextManager[Any]:
    """A context in which BLAS uses so many threads; nothing where threadpoolctl is not installed or `threads` is
    None.
    """
    libraries = None if threads is None else _blas_libraries()
    return nullcontext() if libraries is None else libraries.limit(limits=threads, user_api="blas")


@cache
def _blas_libraries() -> Any:
    """Found once: looking for them takes longer than a sweep of a small model."""
    import scipy.linalg  # noqa: F401  its BLAS is another copy than NumPy's

    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
