"""Expected shares of unknown-parent groups in animals."""

from __future__ import annotations

import numpy as np

from mmgibbs.pedigree.kernels import kernel

GROUPS_AT_ONCE = 16  # columns of Q that are in memory where only sums of them are wanted


def group_composition(sire: np.ndarray, dam: np.ndarray, n_groups: int) -> np.ndarray:
    """Compute Q, (n + n_groups, n_groups) float32: the expected shares of each unknown-parent group in an animal.

    Q runs down the pedigree, q_i = (q_s + q_d) / 2, where the row of a group is a unit vector. With groups as fixed
    effects the columns of [X, ZQ] decide which group means can be told apart (Quaas & Pollak 1981). sire, dam: (n,)
    int32 codes, parents first; -1 unknown; n and above: groups.
    """
    return _expected_shares(sire, dam, n_groups, np.arange(n_groups))


def sum_squared_shares(sire: np.ndarray, dam: np.ndarray, n_groups: int) -> np.ndarray:
    """Compute diag(Q Q'), (n + n_groups,) float64, some groups at a time.

    It is the variance that group effects of variance 1 give an animal: 1 of an animal with parents of one group, 1/2 of
    one with parents of two groups.
    """
    out = np.zeros(len(sire) + n_groups)
    for first in range(0, n_groups, GROUPS_AT_ONCE):
        shares = _expected_shares(sire, dam, n_groups, np.arange(first, min(first + GROUPS_AT_ONCE, n_groups)))
        out += np.einsum("ig,ig->i", shares, shares, dtype=np.float64)
    return out


def _expected_shares(sire: np.ndarray, dam: np.ndarray, n_groups: int, groups: np.ndarray) -> np.ndarray:
    """Columns of Q."""
    n = len(sire)
    Q = np.zeros((n + n_groups, groups.size), np.float32)
    Q[n + groups, np.arange(groups.size)] = 1.0
    _pass_down(sire, dam, Q)
    return Q


@kernel
def _pass_down(sire, dam, Q):
    for i in range(len(sire)):
        for parent in (sire[i], dam[i]):
            if parent >= 0:
                for g in range(Q.shape[1]):
                    Q[i, g] += np.float32(0.5) * Q[parent, g]
