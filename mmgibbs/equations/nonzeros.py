"""Nonzeros of the explicit C, in all and inside the diagonal blocks of a partition, counted without building C.

Two equations (level l, component c) and (l', c') share a nonzero if K^-1 joins the levels of one random term, or if
some record meets both levels and observes both traits. Positions are counted, not values: an entry that happens to
cancel is counted too.

Of two terms each pair of levels is one number that is followed by what joins it: a missing pattern, seen by two
slots of effects, or K^-1. These numbers are sorted; which components are joined is then a bit for each, united over
equal pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mmgibbs.equations.partition import Partition, joined_pairs
from mmgibbs.models.design import Design
from mmgibbs.models.terms import Term


def count_nonzeros(design: Design, partition: Partition | None = None) -> tuple[int, int]:
    """Count nonzeros, in total and inside diagonal blocks, both triangles and the diagonal; 0 without a partition."""
    counts = list(count_nonzeros_by_terms(design, partition).values())
    return sum(total for total, _ in counts), sum(inside for _, inside in counts)


def count_nonzeros_by_terms(design: Design, partition: Partition | None) -> dict[tuple[int, int], tuple[int, int]]:
    """Count the nonzeros of each pair of terms i >= j, both triangles together."""
    where = [_Place(design.terms[i], i, partition) for i in range(len(design.terms))]
    counts = {}
    for i, a in enumerate(where):
        for j, b in enumerate(where[: i + 1]):
            total, inside = _count(a, b, _pairs(design, a.term, b.term, i == j))
            dense = _count_dense(a) if i == j and a.dense is not None else (0, 0)
            triangles = 1 if i == j else 2
            counts[i, j] = triangles * total + dense[0], triangles * inside + dense[1]
    return counts


def _count_dense(place: _Place) -> tuple[int, int]:
    """Count the elements that the dense block of K^-1 fills, with every pair of components, whatever records add."""
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


class _Pairs(NamedTuple):
    """Levels of two terms that records or K^-1 join, each pair once, in the order of level_a q_b + level_b."""

    number: np.ndarray  # (n,) int64, level_a q_b + level_b
    bits: np.ndarray  # (words, n) uint64: bit c k_b + d where components c of a and d of b are joined


def _pairs(design: Design, a: Term, b: Term, same: bool) -> _Pairs:
    k_a, k_b, n_patterns = a.n_components, b.n_components, len(design.patterns)
    slots_a, slots_b = (list(zip(t.incidence.slot_effect, t.incidence.slots, strict=True)) for t in (a, b))
    shift = (len(slots_a) * len(slots_b) * n_patterns).bit_length()
    seen = design.patterns[:, a.component_trait, None] & design.patterns[:, None, b.component_trait]
    joined: list[np.ndarray] = []  # (., k_a k_b) bool, of each number that follows a pair
    keys = []
    for ea, level_a in slots_a:
        for eb, level_b in slots_b:
            met = (level_a >= 0) & (level_b >= 0)
            pair = level_a[met].astype(np.int64) * b.n_levels + level_b[met]
            keys.append((pair << shift) | (len(joined) * n_patterns + design.pattern[met]))
            in_force = (a.component_effect == ea)[:, None] & (b.component_effect == eb)
            joined.append((seen & in_force).reshape(n_patterns, k_a * k_b))
    if same:
        in_force, levels = _joined_by_prior(a)
        keys += [(pair << shift) | (len(joined) * n_patterns) for pair in levels]
        joined.append(in_force.reshape(1, k_a * k_b))
    code = np.concatenate(keys)
    code.sort()  # not np.unique, which hashes them: ten times as long for millions
    pair = code >> shift
    first = np.flatnonzero(np.append(True, pair[1:] != pair[:-1])) if pair.size else np.empty(0, np.int64)
    code &= (1 << shift) - 1
    bits = [
        np.bitwise_or.reduceat(word[code], first) if first.size else word[:0] for word in _bits(np.concatenate(joined))
    ]
    pairs = _Pairs(pair[first], np.stack(bits))
    dense = a.relationship.dense if same else None
    return pairs if dense is None else _outside(dense.levels, pairs, a.n_levels)


def _bits(flags: np.ndarray) -> np.ndarray:
    """Pack (n, m) bool into (words, n) uint64, one bit each."""
    out = np.zeros((-(-flags.shape[1] // 64), len(flags)), np.uint64)
    for i, flag in enumerate(flags.T):
        out[i // 64] |= flag.astype(np.uint64) << np.uint64(i % 64)
    return out


def _joined_by_prior(term: Term) -> tuple[np.ndarray, Iterator[np.ndarray]]:
    """List which components (k, k) of which pairs of levels the prior of a term joins."""
    if term.kind == "random":
        return np.ones((term.n_components, term.n_components), bool), _prior_keys(term)
    if term.prior_precision is not None:
        return term.prior_precision != 0, iter([np.arange(term.n_levels, dtype=np.int64) * (term.n_levels + 1)])
    return np.zeros((term.n_components, term.n_components), bool), iter(())


def _outside(levels: np.ndarray, pairs: _Pairs, q: int) -> _Pairs:
    """Drop pairs of two levels of the dense block of K^-1, which are counted apart."""
    within = np.zeros(q, bool)
    within[levels] = True
    apart = ~(within[pairs.number // q] & within[pairs.number % q])
    return _Pairs(pairs.number[apart], pairs.bits[:, apart])


def _prior_keys(term: Term) -> Iterator[np.ndarray]:
    """Pairs of levels that K^-1 joins, the diagonal and both triangles."""
    q = term.n_levels
    yield np.arange(q, dtype=np.int64) * (q + 1)
    a, b = (side.astype(np.int64) for side in joined_pairs(term.relationship.edges()))
    yield a * q + b
    yield b * q + a


def _count(a: _Place, b: _Place, pairs: _Pairs) -> tuple[int, int]:
    bits, k_a, k_b = pairs.bits, a.term.n_components, b.term.n_components
    if a.active is not None:
        bits = bits & _bits(np.repeat(a.active, k_b, axis=1))[:, pairs.number // b.term.n_levels]
    if b.active is not None:
        bits = bits & _bits(np.tile(b.active, k_a))[:, pairs.number % b.term.n_levels]
    total = int(np.bitwise_count(bits).sum(dtype=np.int64))
    if a.block is None or b.block is None:
        return total, 0
    row_block, column_block = a.block[pairs.number // b.term.n_levels], b.block[pairs.number % b.term.n_levels]
    inside = 0
    for i in range(k_a * k_b):
        joined = (bits[i // 64] & np.uint64(1 << (i % 64))) != 0
        inside += int(np.count_nonzero(joined & (row_block[:, i // k_b] == column_block[:, i % k_b])))
    return total, inside
