"""Whole numbers of matings from contributions, and who is mated with whom: the least inbreeding of the progeny.

A progeny of sire i and dam j has an expected inbreeding of K_ij / 2. Each sire and each dam stands in the list as often
as it has matings; the pairs with the least sum are a linear assignment.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.optimize import linear_sum_assignment

from mmgibbs.contributions.coancestry import Coancestry
from mmgibbs.contributions.optimum import Limits

MAX_MATINGS_ASSIGNED = 5000  # 200 MB


def round_matings(contributions: np.ndarray, limits: Limits, matings: int) -> np.ndarray:
    """(m,) int64 matings of each candidate, with the sum `matings` in each sex, within its limits.

    Each gets the whole part of its share; the rest goes to the largest fractions.
    """
    shares = 2.0 * matings * contributions
    lowest, highest = (np.rint(2.0 * matings * limit).astype(np.int64) for limit in (limits.lowest, limits.highest))
    out = np.clip(np.floor(shares + 1e-7).astype(np.int64), lowest, highest)
    for sex in limits.sexes():
        missing = matings - int(out[sex].sum())
        while missing:
            rest = shares[sex] - out[sex]
            sign = 1 if missing > 0 else -1
            can_change = out[sex] < highest[sex] if sign > 0 else out[sex] > lowest[sex]
            order = np.argsort(np.where(can_change, -sign * rest, np.inf), kind="stable")
            chosen = sex[order[: min(abs(missing), int(can_change.sum()))]]
            out[chosen] += sign
            missing -= sign * chosen.size
    return out


def assign_matings(K: Coancestry, is_male: np.ndarray, matings: np.ndarray) -> pl.DataFrame:
    """Pairs of males and females (m,) with these numbers of matings: sire, dam (places), matings, coancestry."""
    sires, dams = (np.flatnonzero(sex & (matings > 0)) for sex in (is_male, ~is_male))
    if not sires.size:
        return pl.DataFrame(schema={"sire": pl.Int64, "dam": pl.Int64, "matings": pl.Int64, "inbreeding": pl.Float64})
    if sires.size <= dams.size:
        inbreeding = K.pairs(dams, sires).T / 2
    else:
        inbreeding = K.pairs(sires, dams) / 2
    row, column = (np.repeat(np.arange(sex.size), matings[sex]) for sex in (sires, dams))
    first, second = linear_sum_assignment(inbreeding[np.ix_(row, column)])
    sire, dam = row[first], column[second]
    pairs = pl.DataFrame({"sire": sires[sire], "dam": dams[dam], "inbreeding": inbreeding[sire, dam]})
    return (
        pairs.group_by("sire", "dam", maintain_order=True)
        .agg(matings=pl.len().cast(pl.Int64), inbreeding=pl.col("inbreeding").first())
        .sort("sire", "dam")
    )
