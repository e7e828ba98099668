"""String ids in any row order -> int32 codes, parents before their progeny.

Ids are matched by two 64-bit hashes, one for the place in an open-addressing table and one compared there. Two
different ids among ten million agree in both with a probability below 1e-9; one of ten million absent ids and one of
65,536, with one of 4e-8. A join of the same tables costs four times as long.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from mmgibbs.pedigree.kernels import kernel

_SEEDS = (20240229, 977)


class IdIndex:
    """Index of the ids of a series. first: (n,) int32, the first row with the same id."""

    def __init__(self, ids: pl.Series):
        self._hashes = _Table(*_hashes(ids))
        self.first = self._hashes.first

    def find(self, ids: pl.Series) -> np.ndarray:
        """(m,) int32: the row of each id; -1 where it is absent, or null."""
        rows = self._hashes.find(*_hashes(ids))
        if ids.null_count():
            rows[ids.is_null().to_numpy()] = -1
        return rows


def _hashes(ids: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    place, tag = (ids.hash(seed).to_numpy() for seed in _SEEDS)
    return place, tag


class _Table:
    """Hashes in an open-addressing table."""

    def __init__(self, place: np.ndarray, tag: np.ndarray):
        slots = 1 << max(4, int(1.5 * place.size).bit_length())
        self.slots = np.zeros((slots, 2), np.uint64)
        self.first = np.empty(place.size, np.int32)
        _insert(self.slots, place, tag, self.first)

    def find(self, place: np.ndarray, tag: np.ndarray) -> np.ndarray:
        rows = np.empty(place.size, np.int32)
        _find(self.slots, place, tag, rows)
        return rows


@kernel(forceinline=True)
def _slot(table, place, tag):
    """Find the position of the id with this tag in the table, or the free slot where the search from `place` ends."""
    mask = np.uint64(table.shape[0] - 1)
    at = place & mask
    while table[at, 1] != 0 and table[at, 0] != tag:
        at = (at + np.uint64(1)) & mask
    return at


@kernel
def _insert(table, place, tag, first):
    for i in range(place.size):
        at = _slot(table, place[i], tag[i])
        if table[at, 1] == 0:
            table[at, 0], table[at, 1] = tag[i], np.uint64(i + 1)
        first[i] = np.int32(table[at, 1]) - 1


@kernel
def _find(table, place, tag, row):
    for i in range(place.size):
        at = _slot(table, place[i], tag[i])
        row[i] = np.int32(table[at, 1]) - 1


def parents_first(sire: np.ndarray, dam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Generations, and a loop if there is one.

    sire, dam: (n,) int32 rows, -1 unknown, any order. Returns generation, (n,) int32: 0 for founders, else one more
    than the later parent's; and loop: rows a, b, ... each a progeny of the next and the last one a progeny of the
    first; empty where all is well (generations are then complete).
    """
    sire, dam = (np.ascontiguousarray(p, dtype=np.int32) for p in (sire, dam))
    generation, stack = np.full(sire.size, -1, np.int32), np.empty(sire.size, np.int32)
    first, last = _generations(sire, dam, generation, stack)
    return generation, stack[first:last].copy()


def parents_first_order(sire: np.ndarray, dam: np.ndarray, generation: np.ndarray) -> np.ndarray:
    """(n,) int32 rows, parents before progeny: in the given order where that is one, else by generation, then row."""
    row = np.arange(sire.size, dtype=np.int32)
    if np.all(sire < row) and np.all(dam < row):
        return row
    return np.argsort(generation, kind="stable").astype(np.int32)


def recode(sire: np.ndarray, dam: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """code of each row, (n,) int32, and the parents' codes by code, for `order` as from `parents_first_order`."""
    code = np.empty(order.size, np.int32)
    code[order] = np.arange(order.size, dtype=np.int32)
    return code, _parent_codes(sire, code, order), _parent_codes(dam, code, order)


def _parent_codes(parent: np.ndarray, code: np.ndarray, order: np.ndarray) -> np.ndarray:
    row = parent[order]
    return np.where(row >= 0, code[row], np.int32(-1))  # code[-1] is read and not taken


@kernel
def _generations(sire, dam, generation, stack):
    """generation: -1 throughout before; stack: room. Returns where on the stack a loop runs, (0, 0) for none."""
    n = sire.size
    unseen, open_ = np.int32(-1), np.int32(-2)
    for first in range(n):
        if generation[first] >= 0:
            continue
        top = 0
        stack[0] = first
        generation[first] = open_
        while top >= 0:
            i = stack[top]
            latest = np.int32(-1)
            waiting = False
            for side in range(2):
                p = sire[i] if side == 0 else dam[i]
                if p < 0:
                    continue
                g = generation[p]
                if g == open_:  # p is on the stack: from it up to i runs the loop
                    at = top
                    while stack[at] != p:
                        at -= 1
                    return at, top + 1
                if g == unseen:
                    top += 1
                    stack[top] = p
                    generation[p] = open_
                    waiting = True
                    break
                latest = max(latest, g)
            if not waiting:
                generation[i] = latest + 1
                top -= 1
    return 0, 0
