"""Weights of the levels of fixed effects in adjusted means: over which classes a mean is taken.

Effect V is nested in U if the records of each level of V all have one level of U. For the mean of level l of effect T,

    an effect in which T is nested          has weight 1 for its level that has l,
    other effects, nested in no effect      have equal weights,
    effects nested in others, U1, U2, ...   have as equal weights as those of U1, U2, ... allow,

of the levels that they have beside l if they are nested in T or have a column in common with T. So a nested class is
averaged within its parent class, and parent classes alike. For an interaction the last is the table of highest entropy
with the margins of its columns (Deming & Stephan 1940); if missing combinations leave no such table, every combination
that occurs has the same weight, and the columns have the margins of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

Weights = np.ndarray | sp.csr_array  # (1, q) float64 for every mean alike, or (L, q)
Levels = Mapping[tuple[int, int], np.ndarray]  # (V, U) -> (q,) level of U of each level of V, for V nested in U
MAX_PASSES = 1_000
TOLERANCE = 1e-9  # of a sum of weights


@dataclass(frozen=True)
class Classes:
    """The classes of the records that an effect makes."""

    level: np.ndarray  # (n,) level of each record, or (n, s) several; -1: none
    n_levels: int

    @property
    def occurs(self) -> np.ndarray:
        """(q,) bool: the level has records."""
        return np.bincount(self.level[self.level >= 0], minlength=self.n_levels) > 0


@dataclass
class MarginalWeights:
    """Weights of each effect, by its number, and what there is to say of them."""

    weights: dict[int, Weights] = field(default_factory=dict)
    lacks: dict[int, np.ndarray] = field(default_factory=dict)  # (L,) or (1,) bool: some classes have no records
    nesting: list[int] = field(default_factory=list)  # effects in which the target is nested
    parents: dict[int, list[int]] = field(default_factory=dict)  # the finest effects that each is nested in
    levels: Levels = field(default_factory=dict)
    equalised: list[list[int]] = field(default_factory=list)  # groups whose combinations all have the same weight

    def row(self, effect: int, n: int) -> np.ndarray:
        """(q,) weights of an effect in mean n."""
        weights = sp.csr_array(self.weights[effect])
        return weights[[n if weights.shape[0] > 1 else 0]].toarray()[0]


def weigh_classes(
    target: Classes, order: np.ndarray, effects: Mapping[int, Classes], sharing: Sequence[int]
) -> MarginalWeights:
    """Weights of every effect in the means of the levels `order` of the target.

    sharing: effects that have a column in common with the target.
    """
    occurs = {i: classes.occurs for i, classes in effects.items()}
    several = sorted((i for i in effects if occurs[i].sum() > 1), key=lambda i: (occurs[i].sum(), i))  # coarse first
    found = MarginalWeights({i: occurs[i][None].astype(float) for i in effects if i not in several})
    found.levels = _find_parents(several, effects, found)
    masks: dict[int, sp.csr_array] = {}
    for i in several if target.occurs.sum() > 1 else ():
        mask = _relate_to_target(i, target, order, effects[i], i in sharing, found)
        if mask is not None:
            masks[i] = mask
    common: list[int] = []  # effects with the same weights in every mean
    for i in several:
        if i not in found.nesting and i not in masks and set(found.parents[i]) <= set(common):
            common.append(i)
            _divide(i, occurs[i], found, None)
    _equalise_incomplete(common, effects, found)
    for i in several:
        if i not in found.nesting and i not in common:
            _divide(i, occurs[i], found, masks.get(i))
    return found


def _joint_levels(first: Classes, second: Classes) -> sp.csr_array:
    """(q1, q2) records that have both levels."""
    levels = first.level.reshape(len(first.level), -1)
    a, b = levels.ravel(order="F"), np.tile(second.level, levels.shape[1])
    known = (a >= 0) & (b >= 0)
    shape = (first.n_levels, second.n_levels)
    return sp.csr_array(sp.coo_array((np.ones(known.sum()), (a[known], b[known])), shape=shape).tocsr())


def _map_levels(joint: sp.csr_array) -> np.ndarray | None:
    """Map levels of the first effect to those of the second, (q1,), -1 without records; None where one has several."""
    counts = np.diff(joint.indptr)
    if not counts.size or counts.max() != 1:
        return None
    out = np.full(counts.size, -1, np.int64)
    out[counts == 1] = joint.indices
    return out


def _find_parents(several: Sequence[int], effects: Mapping[int, Classes], found: MarginalWeights) -> Levels:
    """Set the parents of each effect; several: coarse effects first."""
    levels: dict[tuple[int, int], np.ndarray] = {}
    for n, v in enumerate(several):
        for u in several[:n]:
            level = _map_levels(_joint_levels(effects[v], effects[u]))
            if level is not None:
                levels[v, u] = level
        above = [u for u in several[:n] if (v, u) in levels]
        found.parents[v] = [u for u in above if not any((w, u) in levels for w in above)]
    return levels


def _relate_to_target(
    i: int, target: Classes, order: np.ndarray, effect: Classes, is_sharing: bool, found: MarginalWeights
) -> sp.csr_array | None:
    """Set the weights of an effect in which the target is nested, or return (L, q) the levels of it in each mean."""
    joint = _joint_levels(target, effect)
    level = _map_levels(joint)
    if level is not None:
        of_mean = level[order]
        known = np.flatnonzero(of_mean >= 0)
        places = (known, of_mean[known])
        found.weights[i] = sp.csr_array((np.ones(known.size), places), shape=(order.size, effect.n_levels))
        found.lacks[i] = of_mean < 0
        found.nesting.append(i)
        return None
    if _map_levels(sp.csr_array(joint.T)) is not None:
        return sp.csr_array(joint[order])
    if not is_sharing:
        return None
    # records join levels of both only where the columns in common have the same values
    a, b = joint.nonzero()
    n = sum(joint.shape)
    _, part = connected_components(sp.coo_array((np.ones(a.size), (a, target.n_levels + b)), (n, n)), directed=False)
    of_target = sp.csr_array(_indicator(part[: target.n_levels], part.max() + 1)[order])
    of_effect = _indicator(np.where(effect.occurs, part[target.n_levels :], -1), part.max() + 1)
    return sp.csr_array(of_target @ of_effect.T)


def _indicator(level: np.ndarray, n: int) -> sp.csr_array:
    """(q, n) 1 at the level of each row, if it has one."""
    rows = np.flatnonzero(level >= 0)
    return sp.csr_array((np.ones(rows.size), (rows, level[rows])), shape=(level.size, n))


def _divide(i: int, occurs: np.ndarray, found: MarginalWeights, mask: sp.csr_array | None) -> None:
    """Set the weights of an effect from those of its parents; mask: its levels in each mean."""
    weights, levels, parents = found.weights, found.levels, found.parents[i]
    is_alike = mask is None and all(isinstance(weights[u], np.ndarray) for u in parents)
    pattern = sp.csr_array(occurs[None].astype(float)) if mask is None else mask
    for u in parents:
        reached = sp.csr_array(sp.csr_array(weights[u]) @ _indicator(levels[i, u], weights[u].shape[1]).T)
        pattern = _intersect(pattern, reached)
    n = pattern.shape[0]
    rows, columns = pattern.nonzero()
    margins = [_margin(rows, levels[i, u][columns], weights[u]) for u in parents]
    if not parents:
        margins = [(rows, np.ones(n))]
    values, lacking = np.ones(rows.size), np.inf
    for _ in range(MAX_PASSES):
        for place, wanted in margins:
            values *= (wanted / np.bincount(place, values, wanted.size).clip(np.finfo(float).tiny))[place]
        off = [np.abs(np.bincount(place, values, wanted.size) - wanted).max(initial=0.0) for place, wanted in margins]
        if max(off) < TOLERANCE or max(off) == lacking:
            break
        lacking = max(off)
    found.lacks[i] = np.zeros(n, bool)
    for place, wanted in margins:
        is_off = np.abs(np.bincount(place, values, wanted.size) - wanted) > TOLERANCE
        found.lacks[i][rows[is_off[place]]] = True
    for u in parents or [i]:
        total = sp.csr_array(weights[u]).sum(axis=1) if parents else np.ones(n)
        found.lacks[i] |= np.abs(np.bincount(rows, values, n) - total) > TOLERANCE
    out = sp.csr_array((values, (rows, columns)), shape=pattern.shape)
    found.weights[i] = out.toarray() if is_alike else out


def _intersect(a: sp.csr_array, b: sp.csr_array) -> sp.csr_array:
    """Multiply weights, so that both are not 0; one of them may have one row for all."""
    if a.shape[0] == b.shape[0]:
        return sp.csr_array(a.multiply(b))
    many, single = (a, b) if b.shape[0] == 1 else (b, a)
    return sp.csr_array(many.multiply(single.toarray()))


def _margin(rows: np.ndarray, levels: np.ndarray, weights: Weights) -> tuple[np.ndarray, np.ndarray]:
    """Number each position in the table among the pairs of mean and level of a parent; also return its weight."""
    n = weights.shape[1]
    pairs, place = np.unique(rows * np.int64(n) + levels, return_inverse=True)
    row = pairs // n if weights.shape[0] > 1 else np.zeros(pairs.size, np.int64)
    return place, np.asarray(weights[row, pairs % n]).ravel()


def _equalise_incomplete(common: Sequence[int], effects: Mapping[int, Classes], found: MarginalWeights) -> None:
    """Weigh all combinations alike that occur, where some of those have no records that the weights need."""
    done: set[int] = set()
    for i in common:
        if i in done or not found.lacks[i].any():
            continue
        group: set[int] = set()
        added = {i}
        while added:
            group |= added
            kin = {u for j in group for u in found.parents[j]} | {j for j in common if group & set(found.parents[j])}
            added = kin - group
        members = sorted(group)
        codes = np.column_stack([effects[j].level for j in members])
        cells = np.unique(codes[(codes >= 0).all(axis=1)], axis=0)
        for j, level in zip(members, cells.T, strict=True):
            found.weights[j] = np.bincount(level, minlength=effects[j].n_levels)[None] / len(cells)
            found.lacks[j] = np.zeros(1, bool)
        found.equalised.append(members)
        done |= group
