"""Whole numbers of matings from contributions, and who is mated with whom: the least inbreeding of the progeny.

A progeny of sire i and dam j has an expected inbreeding of K_ij / 2. Each sire and each dam stands in the list as often
as it has matings; the pairs with the least sum are a linear assignment.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.optimize import linear_sum_assignment

from mmgibbs.population.contributions.coancestry import Coancestry
from mmgibbs.population.contributions.optimum import Limits

MAX_MATINGS_ASSIGNED = 5000  # 200 MB


def round_matings(contributions: np.ndarray, limits: Limits, matings: int) -> np.ndarray:
    """(m,) int64 matings of each candidate, with the sum `matings` in each sex, within its limits; a selfed plant has
    two in each of its matings with itself, and the sum over plants that may be either parent is twice `matings`.

    Each gets the whole part of its share; the rest goes to the largest fractions.
    """
    shares = 2.0 * matings * contributions
    lowest, highest = (np.rint(2.0 * matings * limit).astype(np.int64) for limit in (limits.lowest, limits.highest))
    out = np.clip(np.floor(shares + 1e-7).astype(np.int64), lowest, highest)
    for sex in limits.sexes():
        missing = int(2 * limits.share * matings) - int(out[sex].sum())
        while missing:
            rest = shares[sex] - out[sex]
            sign = 1 if missing > 0 else -1
            can_change = out[sex] < highest[sex] if sign > 0 else out[sex] > lowest[sex]
            order = np.argsort(np.where(can_change, -sign * rest, np.inf), kind="stable")
            chosen = sex[order[: min(abs(missing), int(can_change.sum()))]]
            out[chosen] += sign
            missing -= sign * chosen.size
    return out


def assign_matings(K: Coancestry, is_male: np.ndarray | None, matings: np.ndarray) -> pl.DataFrame:
    """Pairs of males and females (m,) with these numbers of matings: sire, dam (places), matings, coancestry.

    is_male: None where each may be either parent; it is then sire as often as dam, give or take one mating.
    """
    of_sires, of_dams = _split_roles(matings) if is_male is None else (matings * is_male, matings * ~is_male)
    sires, dams = np.flatnonzero(of_sires), np.flatnonzero(of_dams)
    if not sires.size:
        return pl.DataFrame(schema={"sire": pl.Int64, "dam": pl.Int64, "matings": pl.Int64, "inbreeding": pl.Float64})
    if sires.size <= dams.size:
        inbreeding = K.pairs(dams, sires).T / 2
    else:
        inbreeding = K.pairs(sires, dams) / 2
    roles = ((sires, of_sires), (dams, of_dams))
    row, column = (np.repeat(np.arange(places.size), counts[places]) for places, counts in roles)
    first, second = linear_sum_assignment(inbreeding[np.ix_(row, column)])
    sire, dam = row[first], column[second]
    pairs = pl.DataFrame({"sire": sires[sire], "dam": dams[dam], "inbreeding": inbreeding[sire, dam]})
    return (
        pairs.group_by("sire", "dam", maintain_order=True)
        .agg(matings=pl.len().cast(pl.Int64), inbreeding=pl.col("inbreeding").first())
        .sort("sire", "dam")
    )


def _split_roles(matings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Matings as sire and as dam, halves of each; of two odd numbers one gets the larger half here, one there."""
    is_odd = matings % 2 == 1
    as_sire = matings // 2 + (is_odd & (np.cumsum(is_odd) % 2 == 1))
    return as_sire, matings - as_sire
