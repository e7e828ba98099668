"""A pedigree with unknown-parent groups: the QP matrix of (u + Q g, g) (Quaas & Pollak 1981, Westell et al. 1988).

Levels are the animals, then the groups, which stand where a parent is unknown. Random groups have variance 1 in units
of sigma2_u; fixed groups a flat prior, so that they count for no degree of freedom and no variance scales them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mmgibbs.models.relationships.base import UNKNOWN, Lists
from mmgibbs.models.relationships.pedigree import Pedigree
from mmgibbs.pedigree.group_shares import group_composition, sum_squared_shares
from mmgibbs.pedigree.kernels import kernel


@dataclass(frozen=True)
class GroupedPedigree(Pedigree):
    """K^-1 = the QP matrix."""

    @property
    def n_groups(self) -> int:
        return self.relatives.n_groups

    @property
    def groups_fixed(self) -> bool:
        return not self.relatives.random_groups

    def group_shares(self) -> np.ndarray:
        """Return the expected share of each group's genes, Q (q, groups) float32; rows of groups are unit vectors."""
        return group_composition(self.relatives.sire, self.relatives.dam, self.n_groups)

    @cached_property
    def prior_diagonal(self) -> np.ndarray | None:
        """1 + F + sum_g Q_lg^2 with random groups: of u + Q g; fixed groups have no variance, and leave 1 + F."""
        if not self.n_groups or self.groups_fixed:
            return None
        kin = self.relatives
        return sum_squared_shares(kin.sire, kin.dam, kin.n_groups) + np.concatenate(
            [1.0 + kin.inbreeding, np.zeros(kin.n_groups)]
        )

    def times(self, x: np.ndarray) -> np.ndarray:
        """Compute (A + Q Q') x with random groups, A x with fixed ones."""
        out = super().times(x)
        if self.n_groups and not self.groups_fixed:
            Q = self.group_shares().astype(np.float64)
            out += Q @ (Q.T @ x)
        return out

    def spread(self, levels: np.ndarray) -> float:
        """Return the spread with random groups, of V = A + Q Q'; fixed groups have no variance: NaN."""
        if self.groups_fixed:
            return np.nan
        Q = self.group_shares()[levels].astype(np.float64)
        return float(super().spread(levels) + (Q**2).sum() / levels.size - (Q.mean(axis=0) ** 2).sum())

    def deviations(self, lists: Lists, parents_first: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Fixed groups have no variance: an animal's deviation from the mean of its groups; 0 in the groups' rows."""
        return from_groups(lists, parents_first, self.n_groups, theta) if self.groups_fixed else theta


@kernel
def from_groups(K, parents_first, n_groups, theta):
    """Theta - Q g, (q, k): Q g is the mean of the parents' Q g, a group's effect, 0 for an unknown parent. Groups: 0.

    parents_first: (q,) sweep positions of animals, parents before progeny, then of the groups.
    """
    q, k = theta.shape
    mean, out = np.zeros((q, k)), np.zeros((q, k))
    n = q - n_groups
    for i in range(n, q):
        for c in range(k):
            mean[parents_first[i], c] = theta[parents_first[i], c]
    for i in range(n):
        level = parents_first[i]
        for parent in (K.sire[level], K.dam[level]):
            if parent != UNKNOWN:
                for c in range(k):
                    mean[level, c] += 0.5 * mean[parent, c]
        for c in range(k):
            out[level, c] = np.float64(theta[level, c]) - mean[level, c]
    return out
