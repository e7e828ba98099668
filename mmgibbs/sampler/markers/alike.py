"""SNPs that the records can hardly tell apart: columns x_j that are equal, or nearly, up to sign and a shift.

Columns are centred, given length 1 and projected on DIRECTIONS random vectors: the squared distance of two projections
is about 2 DIRECTIONS (1 - |r|) with r their correlation, so that neighbours are found, and correlated, without all
other pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.genotypes.store import Store

MIN_R2 = 0.99  # of SNPs that are alike
DIRECTIONS = 16
RADIUS = (2 * DIRECTIONS * 2 * (1 - MIN_R2**0.5)) ** 0.5  # of projections: twice the expected squared distance
MAX_GROUPS = 16  # of equal SNPs, to which one SNP may move
EQUAL = 1e-6  # largest difference of projections of SNPs that are equal
SEED = 1  # of the directions, which are no draws of a chain
BLOCK = 64  # SNPs that are decoded at a time


class AlikeSnps(NamedTuple):
    """SNPs in groups, which are equal up to sign, and the groups that are alike.

    A SNP without any other that is alike is in no group. Signs are 1 or -1.
    """

    snp: np.ndarray  # (m,) int64 rising; the place of each in the term
    group: np.ndarray  # (m,) int64 its group
    sign: np.ndarray  # (p,) float64 by which the columns of a group are one column
    first: np.ndarray  # (groups + 1,) int64 where the members of each group begin
    members: np.ndarray  # int64 SNPs by group
    near_first: np.ndarray  # (groups + 1,) int64 where the groups that are alike begin, the group itself among them
    near: np.ndarray  # int64 these groups
    near_sign: np.ndarray  # float64 the sign of their correlation


def find_alike(store: Store, values: np.ndarray, weight: np.ndarray) -> AlikeSnps:
    """Find the SNPs of a store that are alike among the animals with information; weight (n,): how much."""
    p, every = store.n_snps, np.flatnonzero(weight[: store.n_animals] > 0)
    y, mean, length = np.empty((p, DIRECTIONS)), np.empty(p), np.empty(p)
    directions = np.random.default_rng(SEED).normal(size=(every.size, DIRECTIONS))
    for first in range(0, p, BLOCK):
        rows = slice(first, first + BLOCK)
        x = store.decode(store.every[rows], values)[:, every].astype(np.float64)
        mean[rows] = x.mean(axis=1) if every.size else 0.0
        x -= mean[rows, None]
        length[rows] = np.sqrt(np.einsum("ja,ja->j", x, x))
        y[rows] = x @ directions
    varies = length > EQUAL * np.sqrt(max(every.size, 1))
    y[varies] /= length[varies, None]
    largest = np.take_along_axis(y, np.abs(y).argmax(axis=1)[:, None], axis=1)[:, 0]
    sign = np.where(largest < 0, -1.0, 1.0)
    y *= sign[:, None]
    whole = np.column_stack([y, sign * mean, length])
    chosen = np.flatnonzero(varies)
    of_chosen = _number_equal(whole[chosen], np.abs(whole[chosen]).max(axis=0, initial=1.0))
    representative = chosen[np.unique(of_chosen, return_index=True)[1]]
    near = []
    for groups in _find_near(y[representative]):
        r = _correlate_first(store, values, every, representative[groups])
        of_groups = sign[representative[groups]]
        is_near = r**2 >= MIN_R2
        near.append((groups[is_near], np.sign(r * of_groups * of_groups[0])[is_near]))
    is_alike = np.bincount(of_chosen, minlength=representative.size) > 1
    for groups, _ in near:
        if len(groups) > 1:
            is_alike[groups] = True
    return _list_groups(chosen, of_chosen, sign, near, is_alike)


def _number_equal(rows: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Number the rows (m,), equal rows alike: these are neighbours in the order of one column."""
    order = np.argsort(rows[:, 0], kind="stable")
    is_new = np.any(np.abs(np.diff(rows[order], axis=0)) > EQUAL * scale, axis=1)
    out = np.empty(len(rows), np.int64)
    out[order] = np.append(0, np.cumsum(is_new))[: len(rows)]
    return out


def _find_near(y: np.ndarray) -> list[np.ndarray]:
    """Find the rows within RADIUS of each row or of its negative, the row itself first."""
    from scipy.spatial import cKDTree  # when it is called: chains begin without SciPy

    if not len(y):
        return []
    m, k = len(y), min(MAX_GROUPS, 2 * len(y))
    distance, places = map(np.asarray, cKDTree(np.vstack([y, -y])).query(y, k=k, distance_upper_bound=RADIUS))
    found = [row[np.isfinite(far)] % m for row, far in zip(places, distance, strict=True)]
    return [np.append(i, rows[rows != i]) for i, rows in enumerate(found)]


def _correlate_first(store: Store, values: np.ndarray, every: np.ndarray, snps: np.ndarray) -> np.ndarray:
    """Correlate the first of these SNPs with each, (m,), 1 with itself."""
    if len(snps) == 1:
        return np.ones(1)
    x = store.decode(snps, values)[:, every].astype(np.float64)
    x -= x.mean(axis=1)[:, None]
    r = x @ x[0] / np.sqrt(np.einsum("ja,ja->j", x, x) * (x[0] @ x[0]))
    r[0] = 1.0
    return np.asarray(r)


def _list_groups(
    chosen: np.ndarray,
    of_chosen: np.ndarray,
    sign: np.ndarray,
    near: list[tuple[np.ndarray, np.ndarray]],
    is_alike: np.ndarray,
) -> AlikeSnps:
    """The groups with others, numbered anew."""
    kept = np.flatnonzero(is_alike)
    number = np.full(is_alike.size, -1, np.int64)
    number[kept] = np.arange(kept.size)
    of_snp = number[of_chosen]
    snp, group = chosen[of_snp >= 0].astype(np.int64), of_snp[of_snp >= 0]
    members = snp[np.argsort(group, kind="stable")]
    first = np.append(0, np.cumsum(np.bincount(group, minlength=kept.size))).astype(np.int64)
    lists = [(number[near[g][0]], near[g][1]) for g in kept]
    near_first = np.append(0, np.cumsum([len(groups) for groups, _ in lists])).astype(np.int64)
    near_groups = np.concatenate([g for g, _ in lists] or [np.empty(0, np.int64)])
    near_sign = np.concatenate([s for _, s in lists] or [np.empty(0)])
    return AlikeSnps(snp, group, sign, first, members, near_first, near_groups, near_sign)
