"""Threads that wait for each other within a kernel."""

import threading

import numpy as np
import pytest
from numba import njit

from mmgibbs.machine.barrier import meet, places_of_threads, share
from mmgibbs.machine.threads import Threads


@njit(nogil=True)
def _handed_on(arrived, me, values, sums):
    """values[t] of a turn is known to all in the next: sums (threads, turns)."""
    for turn in range(sums.shape[1]):
        values[turn, me] = turn * 10 + me
        if not meet(arrived, me):
            return
        for other in range(values.shape[1]):
            sums[me, turn] += values[turn, other]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_everybody_sees_what_all_have_written(count):
    turns = 400
    sums = np.zeros((count, turns))
    Threads(count).together(_handed_on, np.zeros((turns, count)), sums)
    expected = count * 10 * np.arange(turns) + count * (count - 1) / 2
    np.testing.assert_array_equal(sums, np.tile(expected, (count, 1)))


def test_a_thread_that_waits_leaves_when_another_gives_up():
    arrived, sums = places_of_threads(2), np.zeros((2, 5))
    waiting = threading.Thread(target=_handed_on, args=(arrived, 0, np.zeros((5, 2)), sums))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    arrived[2] = 1
    waiting.join(20)
    assert not waiting.is_alive() and not sums.any()


@pytest.mark.parametrize(("n", "unit"), [(64, 3), (7, 3), (2, 3), (15, 1), (0, 1)])
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_shares_are_whole_units_and_all_there_is(n, unit, threads):
    shares = [share(n, me, threads, unit) for me in range(threads)]
    assert [first for first, _ in shares] == [0, *(stop for _, stop in shares[:-1])] and shares[-1][1] == n
    assert all(first % unit == 0 or first == n for first, _ in shares)


@pytest.mark.parametrize("one", [0, 1])
def test_nobody_waits_for_a_thread_that_failed(one):
    """Whichever it is, also one of the pool whose error nobody reads before all have ended."""

    def kernel(arrived, me):
        if me == one:
            raise MemoryError("no room")
        assert not meet(arrived, me)

    with pytest.raises(MemoryError, match="no room"):
        Threads(2).together(kernel)
