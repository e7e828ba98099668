"""A barrier for threads within one kernel: `meet(arrived, me)` continues when all threads have come as far.

A kernel that meets thousands of times in a few milliseconds cannot be called anew each time: all threads are in it from
beginning to end, each with its number `me`, and wait for each other in turn. They look at a counter of their own
`SPINS` times, then let others have the core between looks, so that a machine with fewer free cores than threads keeps
working. What a thread wrote before it came is seen by all others afterwards.

arrived (threads + 1, LINE) int64, from 0, a row for each thread (a cache line of its own): how often it came. The last
row says that one of them has given up: every meeting then returns at once with False, and kernels leave.
"""

from __future__ import annotations

import sys

import numpy as np
from numba import types

from mmgibbs.machine.intrinsics import load_acquire, pause, store_release
from mmgibbs.pedigree.kernels import kernel

LINE = 16  # int64: two cache lines, which some processors fetch together
SPINS = 2_000  # looks, some tens of microseconds

# of the C library, which every process has
_give_way = types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32())


def places_of_threads(count: int) -> np.ndarray:
    """`arrived` of so many threads."""
    return np.zeros((count + 1, LINE), np.int64)


@kernel
def meet(arrived, me):
    """True once every thread has come; False where one gave up."""
    threads = arrived.shape[0] - 1
    if threads == 1:
        return True
    turn = load_acquire(arrived, me) + 1
    store_release(arrived, me, turn)
    for thread in range(threads):
        looks = 0
        while load_acquire(arrived, thread) < turn:
            if load_acquire(arrived, threads) != 0:
                return False
            looks += 1
            if looks < SPINS:
                pause()
            else:
                _give_way()
    return True


@kernel(inline="always")
def share(n, me, threads, unit=1):
    """(first, stop) of thread `me` among n things that come in units, the last of which may be short."""
    units = -(-n // unit)
    return min(n, unit * (units * me // threads)), min(n, unit * (units * (me + 1) // threads))
