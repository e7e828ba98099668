"""E(u | u2) = B u2 of all animals given chosen ones (2), without a factor of the whole pedigree.

    ancestors of the chosen    b = -(A^11)^-1 A^12 u2, of the pedigree of the chosen and their ancestors alone
    all others                 b_i = (b_s + b_d) / 2, since their Mendelian sampling is independent of u2

The second part takes one pass from parents to progeny. Most animals of an evaluation are in it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mmgibbs.pedigree.kernels import kernel
from mmgibbs.pedigree.partitioned import drop_groups, partitioned, restricted
from mmgibbs.pedigree.relationship import Relatives


class ConditionalMeans:
    """B as products; levels are animals by code, then metafounders."""

    def __init__(self, kin: Relatives, chosen: np.ndarray):
        """chosen: (m,) codes; metafounders are all among them, or none is."""
        self.chosen = np.asarray(chosen, np.int64)
        self.n_levels = kin.n_levels
        pedigree = kin if np.any(self.chosen >= kin.n_animals) else drop_groups(kin)
        small, number = restricted(pedigree, self.chosen)
        self._parts = partitioned(small, number[self.chosen])
        self._down = self._parts.across.T.tocsr()
        self.ancestors = np.flatnonzero(number >= 0)[self._parts.others]
        is_known = np.zeros(kin.n_levels, bool)
        is_known[self.chosen] = is_known[self.ancestors] = True
        self._others = np.flatnonzero(~is_known[: kin.n_animals])
        has_progeny = np.zeros(kin.n_levels, bool)
        for parent in (pedigree.sire, pedigree.dam):
            has_progeny[parent[self._others][parent[self._others] >= 0]] = True
        # rows of the chosen, their ancestors and all other parents; the last one, of 0, is an unknown parent's
        kept = np.flatnonzero(is_known | has_progeny)
        self._n_rows = kept.size + 1
        self._row = np.full(kin.n_levels + 1, -1, np.int64)
        self._row[kept] = np.arange(kept.size)
        self._row[-1] = kept.size
        self._sire, self._dam = (self._row[parent[self._others]] for parent in (pedigree.sire, pedigree.dam))

    def products(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the diagonal of B x y' B', (n_levels,), of x and y (m, k); 0 of the chosen."""
        out, rows = np.zeros(self.n_levels), []
        for values in (x, y):
            of_ancestors = -self._parts.solve(self._down @ np.ascontiguousarray(values))
            made = np.zeros((self._n_rows, values.shape[1]))
            made[self._row[self.chosen]], made[self._row[self.ancestors]] = values, of_ancestors
            rows.append(made)
        at = self._row[self.ancestors]
        out[self.ancestors] = np.einsum("ij,ij->i", rows[0][at], rows[1][at])
        of_others = np.empty(self._others.size)
        _pass_to_progeny(self._sire, self._dam, self._row[self._others], rows[0], rows[1], of_others)
        out[self._others] = of_others
        return out

    def quadratic(self, columns: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return what these columns of a matrix V, values (m, w), add to the diagonal of B V B', (n_levels,)."""
        unit = np.zeros(values.shape)
        unit[columns, np.arange(columns.size)] = 1.0
        return self.products(unit, values)

    def columns(self, width: int) -> Iterator[np.ndarray]:
        """Yield the numbers of the chosen, `width` at a time."""
        for first in range(0, self.chosen.size, width):
            yield np.arange(first, min(self.chosen.size, first + width))


@kernel
def _pass_to_progeny(sire, dam, row, X, Y, out):
    """x_i = (x_s + x_d) / 2, y_i likewise, out_i = x_i'y_i; kept where the animal is a parent (row not -1)."""
    k = X.shape[1]
    for i in range(sire.size):
        s, d, value, total = sire[i], dam[i], row[i], 0.0
        for j in range(k):
            x, y = 0.5 * (X[s, j] + X[d, j]), 0.5 * (Y[s, j] + Y[d, j])
            total += x * y
            if value >= 0:
                X[value, j], Y[value, j] = x, y
        out[i] = total
