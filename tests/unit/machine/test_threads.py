"""Work shared out: ranges that cover every part once, of about equal work, and calls that run once each."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mmgibbs.machine.threads import ALONE, PIECE, Pieces, Threads, equal_ranges, fold, run_at_once


@pytest.mark.parametrize("most", [1, 2, 7, 40, 1000])
def test_ranges_cover_every_part_once(most):
    rng = np.random.default_rng(1)
    for work in (np.ones(40), rng.integers(1, 1000, 40), np.r_[1, 10**6, np.ones(38)]):
        ranges = equal_ranges(work, most, first=5)
        assert [i for a, b in ranges for i in range(a, b)] == list(range(5, 45))
        assert len(ranges) <= most and all(a < b for a, b in ranges)
        assert max(work[a - 5 : b - 5].sum() for a, b in ranges) <= work.sum() / most + work.max()


def test_no_parts_no_ranges():
    assert equal_ranges(np.zeros(0), 4) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_every_call_runs_once_and_errors_come_back(threads):
    with ThreadPoolExecutor(3) as pool:
        done = []
        run_at_once(pool, threads, [lambda i=i: done.append(i) for i in range(50)])
        assert sorted(done) == list(range(50))
        with pytest.raises(ZeroDivisionError):
            run_at_once(pool, threads, [lambda: 1 // 0] * 5)


def test_folded_lists_have_the_same_sums():
    sizes = np.array([1, 64, 65, 500, 3, 128])
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    starts, first = fold(ptr, 64)
    assert np.diff(np.append(starts, ptr[-1])).max() == 64 and len(starts) == 1 + 1 + 2 + 8 + 1 + 2
    x = np.random.default_rng(1).integers(0, 100, ptr[-1])
    assert np.array_equal(np.add.reduceat(np.add.reduceat(x, starts), first), np.add.reduceat(x, ptr[:-1]))


def test_threads_stay_in_their_process():
    assert pickle.loads(pickle.dumps(Threads(3))).count == 1


def test_sums_of_pieces_share_no_line_of_the_cache():
    sums = Pieces(3 * PIECE, ALONE).sums(2, 3)
    assert sums.shape[0] == 3 and sums.shape[2] == 3 and not sums.any()
    apart = sums[1, 0].__array_interface__["data"][0] - sums[0, 1].__array_interface__["data"][0]
    assert apart - 3 * 8 >= 128
