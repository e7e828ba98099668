"""Levels whose records weigh the same share one data part of P, sum_{r in l} W_r' R_r^-1 W_r: it is formed once per
class, not per level.

Most animals have one record of their own and few calves, so a million levels fall into a few thousand classes. Where
covariates or weights make nearly every level a class of its own there is nothing to gain, and levels are left without
classes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mmgibbs.equations.passes import level_precisions
from mmgibbs.equations.structured import TermLists

WORTHWHILE = 8  # levels per class, at least, on average


def cell_classes(term: TermLists) -> tuple[np.ndarray, np.ndarray]:
    """(q,) uint32 class of each level and (classes,) a level of each class;
    both empty where classes are not worthwhile.
    """
    q = term.visit_ptr.size - 1
    none = np.empty(0, np.uint32), np.empty(0, np.int64)
    if q < 4 * WORTHWHILE:
        return none
    fingerprints = np.zeros(q, np.uint64)
    _fingerprints(
        term.cell_ptr, term.cell_pattern, np.asarray(term.cell_sums, np.float64).view(np.uint64), fingerprints
    )
    _, example, which = np.unique(fingerprints, return_index=True, return_inverse=True)
    if example.size * WORTHWHILE > q:
        return none
    which = which.ravel().astype(np.uint32)
    if not _same_cells(term.cell_ptr, term.cell_pattern, term.cell_sums, which, example):
        return none  # two different levels with one fingerprint: once in 10^7 runs of a million levels
    return which, example


def class_precisions(term: TermLists, examples: np.ndarray, Rinv: np.ndarray) -> np.ndarray:
    """(classes, k, k) float64, lower triangles: the data part of P of each class."""
    k = term.trait.size
    out = np.zeros((examples.size, k, k))
    _class_precisions(term, examples, Rinv, out)
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _class_precisions(term, examples, Rinv, out):
    for i in range(examples.size):
        level_precisions(term, Rinv, np.uint64(examples[i]), out[i])


@njit(cache=True, nogil=True)
def _mix(x):
    """A 64-bit finaliser (splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def _fingerprints(ptr, pattern, bits, out):
    """out (q,) uint64: equal for levels with the same cells in any order (a sum over cells), different otherwise but
    for chance. bits: the sums of the cells as uint64; a view within a kernel takes half a second to compile.
    """
    m = bits.shape[1]
    for level in range(out.size):
        total = np.uint64(0)
        for cell in range(ptr[level], ptr[level + 1]):
            h = _mix(np.uint64(pattern[cell]) + np.uint64(0x9E3779B97F4A7C15))
            for a in range(m):
                for b in range(a + 1):
                    h = _mix(h + bits[cell, a, b])
            total += h
        out[level] = total


@njit(cache=True, nogil=True)
def _same_cells(ptr, pattern, sums, which, example):
    m = sums.shape[1]
    for level in range(which.size):
        other = example[which[level]]
        if ptr[level + 1] - ptr[level] != ptr[other + 1] - ptr[other]:
            return False
        for cell in range(ptr[level], ptr[level + 1]):
            found = False
            for there in range(ptr[other], ptr[other + 1]):
                if pattern[there] == pattern[cell]:
                    found = True
                    for a in range(m):
                        for b in range(a + 1):
                            found = found and sums[there, a, b] == sums[cell, a, b]
            if not found:
                return False
    return True
