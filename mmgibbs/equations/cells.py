"""The cells of levels: a level and one missing pattern among its records (structured.py), with sums over these,

    sums[a, b] = sum_r w_r z_ra z_rb

z_ra: the covariate of regressor a, 1 without covariates, where record r meets the level through the effect of a;
else 0. A record that meets a level through two effects adds their cross product too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

AT_ONCE = 1 << 16  # visits, and places for (level, pattern): what is made of them stays in the cache


class Visits(NamedTuple):
    """Records that levels meet: those of a level by record, then effect (TermLists)."""

    ptr: np.ndarray  # (q + 1,) uint64
    record: np.ndarray  # (v,) uint32
    effect: np.ndarray  # (v,) uint8


class Cells(NamedTuple):
    """Of q levels; the cells of a level in the order in which its records bring their patterns."""

    ptr: np.ndarray  # (q + 1,) uint64
    pattern: np.ndarray  # (cells,) uint32
    sums: np.ndarray  # (cells, m, m) float64


def cells_of_levels(
    visits: Visits,
    regressor_effect: np.ndarray,
    covariates: np.ndarray,
    pattern: np.ndarray,
    weight: np.ndarray,
    n_patterns: int,
) -> Cells:
    """regressor_effect (m,): the effect of each regressor; covariates (n, m) or without rows; pattern (n,) and weight
    (n,), or empty, of records. Sums are taken in the order of the visits."""
    q = visits.ptr.size - 1
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    first = 0
    while first < q or not parts:
        beyond = int(np.searchsorted(visits.ptr, visits.ptr[first] + np.uint64(AT_ONCE), side="right")) - 1
        last = min(max(beyond, first + 1), first + max(1, AT_ONCE // n_patterns), q)
        parts.append(_cells_of(visits, first, last, regressor_effect, covariates, pattern, weight, n_patterns))
        first = last
    counts, patterns, sums = (np.concatenate(p) for p in zip(*parts, strict=True))
    return Cells(np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64), patterns, sums)


def _cells_of(
    visits: Visits,
    first: int,
    last: int,
    regressor_effect: np.ndarray,
    covariates: np.ndarray,
    pattern: np.ndarray,
    weight: np.ndarray,
    n_patterns: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells of each of the levels first ... last - 1, patterns and sums of the cells."""
    ptr = visits.ptr[first : last + 1].astype(np.int64)
    record, effect = (x[ptr[0] : ptr[-1]] for x in (visits.record, visits.effect))
    level = np.repeat(np.arange(last - first), np.diff(ptr))

    begins = np.ones(record.size, bool)  # where a level meets a record; what follows is the same through other effects
    begins[1:] = (record[1:] != record[:-1]) | (level[1:] != level[:-1])
    meeting = np.cumsum(begins) - 1
    r, level = record[begins], level[begins]

    place, order = level * n_patterns + pattern[r], np.arange(r.size)
    earliest = np.empty((last - first) * n_patterns, np.int64)
    earliest[place[::-1]] = order[::-1]  # the meeting that is written last stays
    opens = earliest[place] == order
    cell = (np.cumsum(opens) - 1)[earliest[place]]

    m, n_cells = regressor_effect.size, int(opens.sum())
    z = np.zeros((m, r.size))
    for a in range(m):
        through = effect == regressor_effect[a]
        z[a, meeting[through]] = covariates[record[through], a] if covariates.shape[0] else 1.0
    sums = np.empty((n_cells, m, m))
    for a in range(m):
        weighted = weight[r] * z[a] if weight.size else z[a]
        for b in range(m):
            sums[:, a, b] = np.bincount(cell, weighted * z[b], n_cells)
    counts = np.bincount(level[opens], minlength=last - first)
    return counts, pattern[r[opens]].astype(np.uint32), sums
