"""Unknown-parent groups: levels that take the place of missing parents.

Quaas & Pollak 1981, J. Dairy Sci. 64:1868; Westell, Quaas & Van Vleck 1988, J. Dairy Sci. 71:1310.
"""

from __future__ import annotations

import numpy as np
import polars as pl


def group_codes(
    sire: np.ndarray, dam: np.ndarray, group: pl.Series
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...], np.ndarray]:
    """Parents with group codes n .. n + g - 1 in the place of -1.

    sire, dam: (n,) int32 codes, -1 unknown. group: (n,) String, the group of each animal's missing parents, looked at
    only where a parent is missing. Returns sire, dam, the group names (sorted; code n is the first) and the codes of
    animals that miss a parent and have no group (their parents stay -1).
    """
    missing = (sire < 0) | (dam < 0)
    used = pl.Series(missing)
    names = group.filter(used).drop_nulls().unique().sort()
    rank = group.replace_strict(
        names, np.arange(len(names), dtype=np.int32), default=-1, return_dtype=pl.Int32
    ).to_numpy()
    code = np.where(rank >= 0, rank + np.int32(sire.size), np.int32(-1)).astype(np.int32)
    sire, dam = (np.where(p < 0, code, p).astype(np.int32) for p in (sire, dam))
    return sire, dam, tuple(names), np.flatnonzero(missing & (rank < 0))
