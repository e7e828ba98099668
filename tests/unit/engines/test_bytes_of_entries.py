"""Bytes of the entries of lists: the lane of the level, and whether the entry goes on with that level's sum."""

import numpy as np
import pytest

from mmgibbs.engines.coloured.gather import LANES, _bytes_of_entries, _bytes_of_levels

LISTS = [[3, 0, 2, 1], [0, 0, 0], [2] * 400, [0] * 150 + [1, 3] * 150]


@pytest.mark.parametrize("lengths", LISTS, ids=["short", "empty", "groups", "many"])
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_against_one_entry_after_another(lengths, parts):
    q = len(lengths)
    edges = np.linspace(1, q - 1, parts + 1).astype(int)  # other levels are swept in another way
    ranges = [(a, b - 1 if b - a > 2 else b) for a, b in zip(edges[:-1], edges[1:], strict=True)]
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
    expected = []
    for level, n in enumerate(lengths):
        first = next((a for a, b in ranges if a <= level < b), None)
        for entry in range(n):
            lane = 0 if first is None else (level - first) % LANES
            expected.append(lane + (LANES if entry > 0 and first is not None else 0))
    found = _bytes_of_entries(ptr, _bytes_of_levels(q, ranges))
    assert found.dtype == np.uint8 and found.tolist() == expected
