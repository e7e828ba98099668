"""Levels whose records weigh the same have the same cells (structured.py) and share one list of them: a class.

Most animals have one record of their own and few calves, so a million levels fall into a few thousand classes, and
their data part of P, sum_{r in l} W_r' R_r^-1 W_r, is formed once per class. Where covariates or weights make nearly
every level a class of its own there is nothing to gain, and levels keep cells of their own.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.pedigree.kernels import kernel

WORTHWHILE = 8  # levels per class, at least, on average
MANY = 2000  # levels of a term, at least: fewer hold next to nothing


def shared_cells(
    ptr: np.ndarray, pattern: np.ndarray, sums: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Share the cells of q levels: class (q,) uint32, ptr (classes + 1,), pattern, sums.

    Where classes are not worthwhile, class is empty, and the others are those given.
    """
    q = ptr.size - 1
    which, example = np.empty(0, np.uint32), np.empty(0, np.int64)
    if q >= MANY:
        bits = sums.view(np.uint32 if sums.itemsize == 4 else np.uint64)  # a view in a kernel is slow to compile
        which, example = _classes(ptr, pattern, bits, int(q / WORTHWHILE))
    if not which.size:
        return which, ptr, pattern, sums
    counts = (ptr[example + 1] - ptr[example]).astype(np.int64)
    first = np.concatenate([[0], np.cumsum(counts)])
    kept = np.repeat(ptr[example].astype(np.int64) - first[:-1], counts) + np.arange(first[-1])
    return which, first.astype(np.uint64), pattern[kept], sums[kept]


def _classes(ptr: np.ndarray, pattern: np.ndarray, bits: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Number the class of each level, uint32, and find the first level of each class, in the order of these.

    Both are empty where there are more than `most`. bits: the sums of the cells as whole numbers.
    """
    q = ptr.size - 1
    slots = max(16, 1 << (2 * most - 1).bit_length())
    at, prints = np.full(slots, -1, np.int64), np.empty(most, np.uint64)
    which, example = np.empty(q, np.uint32), np.empty(most, np.int64)
    n = _classify(ptr, pattern, bits, at, prints, which, example)
    return (which, example[:n].copy()) if n <= most else (which[:0], example[:0])


@kernel
def _classify(ptr, pattern, bits, at, prints, which, example):
    """Count the classes, or return one more than there is room for.

    at, -1 before, and prints are a table of them: open addressing, a power of 2 of slots.
    """
    slots, n = at.size, 0
    for level in range(ptr.size - 1):
        fingerprint = _fingerprint(ptr[level], ptr[level + 1], pattern, bits)
        slot = np.int64(fingerprint & np.uint64(slots - 1))
        while at[slot] >= 0:
            known = at[slot]
            if prints[known] == fingerprint and _same_cells(ptr, pattern, bits, level, example[known]):
                break
            slot = (slot + 1) % slots
        if at[slot] < 0:
            if n == prints.size:
                return n + 1
            at[slot], prints[n], example[n] = n, fingerprint, level
            n += 1
        which[level] = at[slot]
    return n


@kernel
def _mix(x):
    """A 64-bit finaliser (splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def _fingerprint(first, last, pattern, bits):
    """uint64: equal for levels with the same cells in any order (a sum over cells), different otherwise but for
    chance."""
    m, total = bits.shape[1], np.uint64(0)
    for cell in range(first, last):
        h = _mix(np.uint64(pattern[cell]) + np.uint64(0x9E3779B97F4A7C15))
        for a in range(m):
            for b in range(a + 1):
                h = _mix(h + np.uint64(bits[cell, a, b]))
        total += h
    return total


@kernel
def _same_cells(ptr, pattern, bits, level, other_level):
    m = bits.shape[1]
    if ptr[level + 1] - ptr[level] != ptr[other_level + 1] - ptr[other_level]:
        return False
    for cell in range(ptr[level], ptr[level + 1]):
        is_same = False
        for other_cell in range(ptr[other_level], ptr[other_level + 1]):
            if pattern[other_cell] == pattern[cell]:
                is_same = True
                for a in range(m):
                    for b in range(a + 1):
                        is_same = is_same and bits[other_cell, a, b] == bits[cell, a, b]
        if not is_same:
            return False
    return True
