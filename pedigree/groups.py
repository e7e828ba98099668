"""Unknown-parent groups: levels that take the place of missing parents.

Quaas & Pollak 1981, J. Dairy Sci. 64:1868; Westell, Quaas & Van Vleck 1988, J. Dairy Sci. 71:1310.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def groups_by_age(sire: np.ndarray, dam: np.ndarray, birth: np.ndarray | None, in_order: Sequence[int]) -> np.ndarray:
    """(g,) int64 numbers of the groups, that with the oldest animals first; groups that are equally old as `in_order`.

    sire, dam: (n,) codes as `group_codes` gives them. birth: (n,) float64, NaN where unknown, or None. A group is as
    old as the first birth among the animals that it has parents of; without births, older the more generations come
    after one of them. Both stay as they are when younger animals are added.
    """
    n, g = sire.size, len(in_order)
    age = np.full(g, np.inf)
    if birth is not None and not np.isnan(birth).all():
        value = np.where(np.isnan(birth), np.inf, birth)
    else:
        value = -_descendant_depth(sire, dam).astype(np.float64)
    for parent in (sire, dam):
        is_group = parent >= n
        np.minimum.at(age, parent[is_group] - n, value[is_group])
    order = np.asarray(in_order, np.int64)
    return order[np.argsort(age[order], kind="stable")]


def _descendant_depth(sire: np.ndarray, dam: np.ndarray) -> np.ndarray:
    """(n,) int32: the length of the longest line of descendants of each animal."""
    n = sire.size
    after = np.zeros(n, np.int32)
    lines = [
        (parent[known], np.flatnonzero(known)) for parent in (sire, dam) for known in [(parent >= 0) & (parent < n)]
    ]
    while True:
        before = after.copy()
        for parents, animals in lines:
            np.maximum.at(after, parents, before[animals] + 1)
        if np.array_equal(after, before):
            return after
