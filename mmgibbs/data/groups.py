"""Unknown-parent groups seen from the records: what share of each group an animal is expected to carry.

Q (animals x groups) runs down the pedigree, parents before progeny: q_i = (q_s + q_d) / 2, where the row of a group is
a unit vector. With groups as fixed effects the columns of [X, ZQ] decide which group means can be told apart
(Quaas & Pollak 1981).
"""

from __future__ import annotations

import numba
import numpy as np


def group_composition(sire: np.ndarray, dam: np.ndarray, n_groups: int) -> np.ndarray:
    """(n + n_groups, n_groups) float32 Q; the rows of the groups themselves are unit vectors.

    sire, dam: (n,) int32 codes, parents first; -1 unknown; n and above: groups.
    """
    n = len(sire)
    Q = np.zeros((n + n_groups, n_groups), np.float32)
    Q[np.arange(n, n + n_groups), np.arange(n_groups)] = 1.0
    _pass_down(sire, dam, Q)
    return Q


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _pass_down(sire, dam, Q):
    for i in range(len(sire)):
        for parent in (sire[i], dam[i]):
            if parent >= 0:
                for g in range(Q.shape[1]):
                    Q[i, g] += np.float32(0.5) * Q[parent, g]
