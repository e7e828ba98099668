"""Expected shares of unknown-parent groups in animals."""

from __future__ import annotations

import numpy as np

from pedigree.kernels import kernel


def group_composition(sire: np.ndarray, dam: np.ndarray, n_groups: int) -> np.ndarray:
    """Compute Q, (n + n_groups, n_groups) float32: the expected shares of each unknown-parent group in an animal.

    Q runs down the pedigree, q_i = (q_s + q_d) / 2, where the row of a group is a unit vector. With groups as fixed
    effects the columns of [X, ZQ] decide which group means can be told apart (Quaas & Pollak 1981). sire, dam: (n,)
    int32 codes, parents first; -1 unknown; n and above: groups.
    """
    n = len(sire)
    Q = np.zeros((n + n_groups, n_groups), np.float32)
    Q[np.arange(n, n + n_groups), np.arange(n_groups)] = 1.0
    _pass_down(sire, dam, Q)
    return Q


@kernel
def _pass_down(sire, dam, Q):
    for i in range(len(sire)):
        for parent in (sire[i], dam[i]):
            if parent >= 0:
                for g in range(Q.shape[1]):
                    Q[i, g] += np.float32(0.5) * Q[parent, g]
