"""The cells of levels (TermLists): of a level and each missing pattern among its records the sums over these records,

    sums[a, b] = sum_r w_r z_ra z_rb

z_ra: the covariate of regressor a, 1 without covariates, where record r meets the level through the effect of a, times
the weight of the visit; else 0. A record that meets a level through two effects adds their cross product too, and one
that meets it twice through one effect has the sum of its weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.pedigree.kernels import kernel


class Visits(NamedTuple):
    """Records that levels meet: those of a level by record, then effect."""

    ptr: np.ndarray  # (q + 1,) uint64
    record: np.ndarray  # (v,) uint32
    effect: np.ndarray  # (v,) uint8
    weight: np.ndarray  # (v,) float64; empty where all are 1


class Regressors(NamedTuple):
    """Regressors of the levels of a term."""

    effect: np.ndarray  # (m,) int64: the effect of each
    covariates: np.ndarray  # (n, m) float64; no rows where every regressor is the constant 1


class Cells(NamedTuple):
    """Cells of q levels; the cells of a level in the order in which its records bring their patterns."""

    ptr: np.ndarray  # (q + 1,) uint64
    pattern: np.ndarray  # (cells,) uint32
    sums: np.ndarray  # (cells, m, m) float64


def cells_of_levels(
    visits: Visits, regressors: Regressors, pattern: np.ndarray, weight: np.ndarray, n_patterns: int
) -> Cells:
    """pattern (n,) and weight (n,), or empty where all are 1, of the records."""
    m = regressors.effect.size
    ptr, seen = np.zeros(visits.ptr.size, np.uint64), np.full(n_patterns, -1, np.int64)
    _count_cells(visits.ptr, visits.record, pattern, seen, ptr)
    cells = Cells(ptr, np.empty(int(ptr[-1]), np.uint32), np.zeros((int(ptr[-1]), m, m)))
    seen[:] = -1
    _sum_cells(
        *visits, *regressors, pattern, weight, ptr, seen, np.zeros(n_patterns, np.int64), np.zeros(m), *cells[1:]
    )
    return cells


@kernel
def _count_cells(visit_ptr, visit_record, pattern, seen, ptr):
    """seen (patterns,): the last level that met a pattern, -1 before."""
    for level in range(ptr.size - 1):
        n_cells = 0
        for v in range(visit_ptr[level], visit_ptr[level + 1]):
            p = pattern[visit_record[v]]
            if seen[p] != level:
                seen[p] = level
                n_cells += 1
        ptr[level + 1] = ptr[level] + np.uint64(n_cells)


@kernel
def _sum_cells(
    visit_ptr, visit_record, visit_effect, visit_weight, regressor_effect, covariates, pattern, weight, ptr, seen,
    where, z, cells, sums,
):  # fmt: skip
    """where (patterns,), z (m,): room; sums: 0 before."""
    m = regressor_effect.size
    for level in range(ptr.size - 1):
        filled, v, last = np.int64(ptr[level]), np.int64(visit_ptr[level]), np.int64(visit_ptr[level + 1])
        while v < last:
            r = visit_record[v]
            p = pattern[r]
            if seen[p] != level:
                seen[p], where[p] = level, filled
                cells[filled] = p
                filled += 1
            for a in range(m):
                z[a] = 0.0
            while v < last and visit_record[v] == r:
                w_v = visit_weight[v] if visit_weight.size > 0 else 1.0
                for a in range(m):
                    if regressor_effect[a] == visit_effect[v]:
                        z[a] += w_v * (covariates[r, a] if covariates.shape[0] > 0 else 1.0)
                v += 1
            for a in range(m):
                for b in range(m):
                    sums[where[p], a, b] += (weight[r] if weight.size > 0 else 1.0) * z[a] * z[b]
