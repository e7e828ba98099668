"""Nonzeros of the explicit C, in all and inside the diagonal blocks of a partition, counted without building C.

Two equations (level l, component c) and (l', c') share a nonzero if K^-1 joins the levels of one random term, or if
some record meets both levels and observes both traits. Positions are counted, not values: an entry that happens to
cancel is counted too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mmgibbs.equations.partition import Partition, joined_pairs
from mmgibbs.model.design import Design
from mmgibbs.model.terms import Term


def count_nonzeros(design: Design, partition: Partition | None = None) -> tuple[int, int]:
    """(all, inside diagonal blocks) nonzeros, both triangles and the diagonal; without a partition the second is 0."""
    where = [_Place(design.terms[i], i, partition) for i in range(len(design.terms))]
    total = inside = 0
    for i, a in enumerate(where):
        for b in where[: i + 1]:
            pairs, shared = _pairs(design, a.term, b.term, a.index == b.index)
            n, m = _count(a, b, pairs, shared)
            factor = 1 if a.index == b.index else 2
            total, inside = total + factor * n, inside + factor * m
            if a.index == b.index and a.dense is not None:
                n, m = _count_dense(a)
                total, inside = total + n, inside + m
    return total, inside


def _count_dense(place: _Place) -> tuple[int, int]:
    """What the dense block of K^-1 fills, with every pair of components, whatever records add."""
    term, dense = place.term, place.dense
    active = np.ones((term.n_levels, term.n_components), bool) if place.active is None else place.active
    in_force = active[dense]
    total = int(in_force.sum()) ** 2
    if place.block is None:
        return total, 0
    blocks = place.block[dense][in_force]
    return total, int((np.unique(blocks, return_counts=True)[1].astype(np.int64) ** 2).sum())


class _Place:
    """A term with, per level and component, whether the equation is in force and in which block of the partition it
    stands.
    """

    def __init__(self, term: Term, index: int, partition: Partition | None):
        self.term, self.index = term, index
        self.active = term.active
        dense = term.relationship.dense
        self.dense = None if dense is None else dense.levels
        self.block: np.ndarray | None = None
        if partition is not None:
            self.block = np.full((term.n_levels, term.n_components), -1, np.int32)
            for number, b in enumerate(partition.blocks):
                if b.term == index:
                    self.block[partition.order[index][b.first : b.last], b.first_component : b.last_component] = number


def _pairs(design: Design, a: Term, b: Term, same: bool) -> tuple[np.ndarray, np.ndarray]:
    """Unique (level of a, level of b) pairs as (n, 2), and (n, k_a, k_b) bool: which component pairs they join."""
    k_a, k_b = a.n_components, b.n_components
    T = design.n_traits
    n_patterns = len(design.patterns)
    traits_seen = (design.patterns[:, :, None] & design.patterns[:, None, :]).reshape(n_patterns, T * T)
    keys, columns = [], []
    for ea, effect_a in enumerate(a.effects):
        for eb, effect_b in enumerate(b.effects):
            met = (effect_a.level >= 0) & (effect_b.level >= 0)
            key = effect_a.level[met].astype(np.int64) * b.n_levels + effect_b.level[met]
            unique = np.unique(key * n_patterns + design.pattern[met])
            seen = traits_seen[unique % n_patterns]
            keys.append(unique // n_patterns)
            column = np.zeros((k_a, k_b), np.int64) - 1
            for c in np.flatnonzero(a.component_effect == ea):
                for d in np.flatnonzero(b.component_effect == eb):
                    column[c, d] = a.component_trait[c] * T + b.component_trait[d]
            joined = np.zeros((len(unique), k_a * k_b), bool)
            flat = column.ravel()
            joined[:, flat >= 0] = seen[:, flat[flat >= 0]]
            columns.append(joined)
    if same and a.kind == "random":
        for key in _prior_keys(a):
            keys.append(key)
            columns.append(np.ones((key.size, k_a * k_b), bool))
    elif same and a.prior_precision is not None:
        keys.append(np.arange(a.n_levels, dtype=np.int64) * (a.n_levels + 1))
        columns.append(np.tile((a.prior_precision != 0).ravel(), (a.n_levels, 1)))
    key = np.concatenate(keys)
    order = np.argsort(key, kind="stable")
    key, joined = key[order], np.concatenate(columns)[order]
    starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if key.size else np.empty(0, np.int64)
    joined = np.logical_or.reduceat(joined, starts, axis=0) if starts.size else joined
    unique = key[starts]
    if same and a.relationship.dense is not None:  # pairs of its levels are counted apart
        within = np.zeros(a.n_levels, bool)
        within[a.relationship.dense.levels] = True
        apart = ~(within[unique // b.n_levels] & within[unique % b.n_levels])
        unique, joined = unique[apart], joined[apart]
    return np.stack([unique // b.n_levels, unique % b.n_levels], axis=1), joined.reshape(-1, k_a, k_b)


def _prior_keys(term: Term) -> Iterator[np.ndarray]:
    """Pairs of levels that K^-1 joins, the diagonal and both triangles."""
    q = term.n_levels
    yield np.arange(q, dtype=np.int64) * (q + 1)
    a, b = (side.astype(np.int64) for side in joined_pairs(term.relationship.edges()))
    yield a * q + b
    yield b * q + a


def _count(a: _Place, b: _Place, pairs: np.ndarray, joined: np.ndarray) -> tuple[int, int]:
    for place, side, axis in ((a, 0, 2), (b, 1, 1)):
        if place.active is not None:
            joined = joined & np.expand_dims(place.active[pairs[:, side]], axis)
    if a.block is None or b.block is None:
        return int(joined.sum()), 0
    same_block = a.block[pairs[:, 0]][:, :, None] == b.block[pairs[:, 1]][:, None, :]
    return int(joined.sum()), int((joined & same_block).sum())
