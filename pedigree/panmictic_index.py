"""Wright's panmictic index P = 1 - F, to full precision where F is near 1.

F itself is within a rounding of 1 after 170 generations of brother-sister mating. With P_ij = 1 - f_ij, f_ij the
coancestry of i and j, and i no ancestor of j,

    P_ij = (P_sj + P_dj) / 2        P_ii = P_sd / 2 = (1 - F_i) / 2        1 - F_i = P_sd

(an unknown parent has P = 1 with everybody): sums of positive numbers, in which nothing cancels. The matrix is kept for
animals that still have progeny to come, so that a strain needs a few rows at a time. This module needs NumPy only.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.pedigree.inbreeding import checked_codes
from mmgibbs.pedigree.relationship_products import with_ancestors

HIGHEST_F = 1.0 - 1e-6  # up to which 1 - F has nine digits or more


def panmictic_index(sire: np.ndarray, dam: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Compute 1 - F of each animal, (n,) float64.

    sire, dam: (n,) int32 codes, parents before progeny; -1 and codes >= n are unknown parents. F: (n,) inbreeding.
    """
    sire, dam = checked_codes(sire, dam)
    out = 1.0 - np.asarray(F, np.float64)
    extreme = np.flatnonzero(F > HIGHEST_F)
    if extreme.size:
        related = np.flatnonzero(with_ancestors(sire, dam, extreme))
        index = _track_pairs(sire, dam, related)
        out[extreme] = index[np.searchsorted(related, extreme)]
    return out


def _track_pairs(sire: np.ndarray, dam: np.ndarray, animals: np.ndarray) -> np.ndarray:
    """1 - F of animals (codes, with all of their ancestors), by the pairs of those with progeny to come."""
    n = sire.size
    last: dict[int, int] = {}  # parent -> the last of its progeny
    for parent in (sire[animals], dam[animals]):
        for p, i in zip(parent.tolist(), animals.tolist(), strict=True):
            if 0 <= p < n:
                last[p] = max(i, last.get(p, i))
    slot: dict[int, int] = {}  # animal -> its row of the matrix of pairs
    pairs, free = np.ones((16, 16)), list(range(16))
    out = np.ones(animals.size)
    for k, i in enumerate(animals.tolist()):
        parents = sorted({p for p in (int(sire[i]), int(dam[i])) if 0 <= p < n})
        rows = [pairs[slot[p]] if 0 <= p < n else np.ones(len(pairs)) for p in (int(sire[i]), int(dam[i]))]
        row = (rows[0] + rows[1]) / 2
        if 0 <= sire[i] < n and 0 <= dam[i] < n:
            out[k] = pairs[slot[int(sire[i])], slot[int(dam[i])]]
        free += [slot.pop(p) for p in parents if last[p] == i]
        if i not in last:
            continue
        if not free:
            size = len(pairs)
            pairs, row = np.pad(pairs, (0, size)), np.pad(row, (0, size))
            free = list(range(size, 2 * size))
        slot[i] = free.pop()
        pairs[slot[i]] = pairs[:, slot[i]] = row
        pairs[slot[i], slot[i]] = out[k] / 2
    return out
