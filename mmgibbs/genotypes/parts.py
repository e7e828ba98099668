"""Variances, among the animals of a store, of what parts of the genome add to their breeding values.

With g_w = X_w a_w the sum over the SNPs of part w (a window), the parts of a group (a chromosome) add to g_c, and all
of them to g. For each draw of the effects a, over the n animals as they are (no assumption of equilibrium):

    var(g),    var(g_w) of each part,    var(g_c) and cov(g_c, g) of each group

One pass over the packed genotypes for each draw; 8 n (groups + 2) bytes beside them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.genotypes.products import CHUNK, add_rows
from mmgibbs.genotypes.store import Store
from mmgibbs.pedigree.kernels import kernel


class RealisedVariances(NamedTuple):
    """Realised variances of n animals, divided by n, for each of k draws."""

    total: np.ndarray  # (k,) var(g)
    of_part: np.ndarray  # (k, parts) var(g_w)
    of_group: np.ndarray  # (k, groups) var(g_c)
    with_total: np.ndarray  # (k, groups) cov(g_c, g)

    @property
    def with_rest(self) -> np.ndarray:
        """(k, groups) cov(g_c, g - g_c)."""
        return self.with_total - self.of_group


def realised_variances(
    store: Store,
    values: np.ndarray,
    draws: np.ndarray,
    group_of_snp: np.ndarray,
    group: np.ndarray,
    animals: int | None = None,
) -> RealisedVariances:
    """values (p, 4) of the store; draws (k, p) of effects on their scale; part (p,) int of each SNP; group (parts,) int
    of each part; animals: the first so many of the store, None: all.
    """
    n = store.n_animals if animals is None else animals
    k, parts, groups = len(draws), len(group), int(group.max()) + 1
    rows = np.argsort(group_of_snp, kind="stable")
    bounds = np.searchsorted(group_of_snp[rows], np.arange(parts + 1))
    out = RealisedVariances(np.empty(k), np.empty((k, parts)), np.empty((k, groups)), np.empty((k, groups)))
    sums = np.empty((groups + 2, store.n_chunks * CHUNK))  # of each group, of a part, of all
    for i, draw in enumerate(draws):
        by = draw[rows].astype(np.float64)
        sums_of_draw = out.of_part[i], out.of_group[i], out.with_total[i]
        out.total[i] = _accumulate_draw(store.array, rows, values, by, bounds, group, n, sums, *sums_of_draw)
    return out


@kernel
def _accumulate_draw(genotypes, rows, values, by, bounds, group, n, sums, of_part, of_group, with_total):
    groups, chunks = of_group.size, genotypes.shape[1]
    remainder, every = sums[groups], sums[groups + 1]
    sums[:] = 0.0
    for w in range(of_part.size):
        remainder[:] = 0.0
        first, stop = bounds[w], bounds[w + 1]
        add_rows(genotypes, rows[first:stop], values, by[first:stop], 0, chunks, remainder)
        of_part[w] = _covariance(remainder, remainder, n)
        of = sums[group[w]]
        for i in range(n):
            of[i] += remainder[i]
    for c in range(groups):
        for i in range(n):
            every[i] += sums[c, i]
    for c in range(groups):
        of_group[c] = _covariance(sums[c], sums[c], n)
        with_total[c] = _covariance(sums[c], every, n)
    return _covariance(every, every, n)


@kernel
def _covariance(x, y, n):
    mean_x = mean_y = total = 0.0
    for i in range(n):
        mean_x += x[i]
        mean_y += y[i]
    mean_x /= n
    mean_y /= n
    for i in range(n):
        total += (x[i] - mean_x) * (y[i] - mean_y)
    return total / n
