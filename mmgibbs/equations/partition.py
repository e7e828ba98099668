"""In which order, and in which blocks, one sweep visits the equations.

A partition is an order of the levels of each term (the *sweep order*) and a list of blocks; a block is a range of
levels of one term in that order, and a range of its components. Engines take it as an argument: with the same partition
they give the same chain.

    term     one block per term, levels in model order, but those of a dense block
    effect   one block per scalar effect (term, component), as on the poster of Golden, Lupo & Garrick; sites only
    equal    about equally many equations per block, levels kept whole
    colour   levels of one colour share neither a relationship nor a record, so a block may be sampled in any order
             (or at once)

Levels of a term that a dense block of K^-1 joins come last in its order, in the order of that block, and are a block of
the partition (one for each component in 'effect'): see engines/dense.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mmgibbs.equations.reading_order import reading_orders
from mmgibbs.errors import ModelError
from mmgibbs.models.design import Design
from mmgibbs.models.terms import Term
from mmgibbs.pedigree.kernels import kernel

KINDS = ("term", "effect", "equal", "colour")


@dataclass(frozen=True)
class Block:
    term: int
    first: int  # sweep positions first <= position < last
    last: int
    first_component: int
    last_component: int
    dense: bool = False  # the levels that the dense block of K^-1 joins

    @property
    def n_equations(self) -> int:
        return (self.last - self.first) * (self.last_component - self.first_component)


@dataclass(frozen=True)
class Partition:
    kind: str
    order: tuple[np.ndarray, ...]  # per term (q,) int32: the model-order level at each sweep position
    blocks: tuple[Block, ...]

    def keeps_complete_levels(self, design: Design) -> bool:
        return all(b.last_component - b.first_component == design.terms[b.term].n_components for b in self.blocks)


def partition(design: Design, kind: str = "term", n_blocks: int = 8) -> Partition:
    """Build the partition of a kind (see the module); `n_blocks` is for 'equal' alone."""
    natural = tuple(np.concatenate(_listed_and_dense(t)) for t in design.terms)
    blocks = [block for i in range(len(design.terms)) for block in _term_blocks(design, i)]
    if kind == "term":
        return Partition(kind, natural, tuple(blocks))
    if kind == "effect":
        return Partition(
            kind,
            natural,
            tuple(Block(b.term, b.first, b.last, c, c + 1, b.dense) for b in blocks for c in range(b.last_component)),
        )
    if kind == "equal":
        return Partition(kind, natural, tuple(_equal(design, n_blocks)))
    if kind == "colour":
        return _split_colours(design)
    raise ModelError(f"partition: expected one of {', '.join(KINDS)}, got {kind!r}")


def _listed_and_dense(term: Term) -> tuple[np.ndarray, np.ndarray]:
    """Levels, model order, that the lists alone join with others; and those of the dense block."""
    every = np.arange(term.n_levels, dtype=np.int32)
    dense = term.relationship.dense
    return (every, every[:0]) if dense is None else (np.delete(every, dense.levels), dense.levels.astype(np.int32))


def _term_blocks(design: Design, i: int) -> Iterator[Block]:
    """Yield a term as one block, or as two where there is a dense one; none is empty, but for no levels."""
    term = design.terms[i]
    q, k, listed = term.n_levels, term.n_components, _listed_and_dense(term)[0].size
    if listed or not q:
        yield Block(i, 0, listed, 0, k)
    if listed < q:
        yield Block(i, listed, q, 0, k, dense=True)


def _equal(design: Design, n_blocks: int) -> Iterator[Block]:
    """Cut the terms, in order, wherever the running number of equations passes a multiple of total / n_blocks."""
    total = design.n_effects
    size, places_left = max(1, -(-total // n_blocks)), max(1, -(-total // n_blocks))
    for term_block in (block for i in range(len(design.terms)) for block in _term_blocks(design, i)):
        k, first = term_block.last_component, term_block.first
        while first < term_block.last:
            last = term_block.last if term_block.dense else min(term_block.last, first + max(1, places_left // k))
            yield Block(term_block.term, first, last, 0, k, term_block.dense)
            places_left -= (last - first) * k
            places_left = places_left if places_left >= k else size
            first = last


def _split_colours(design: Design) -> Partition:
    orders, blocks = [], []
    for i, (term, near) in enumerate(zip(design.terms, reading_orders(design), strict=True)):
        colours, dense = level_colours(term), _listed_and_dense(term)[1]
        if dense.size:
            near = near[np.isin(near, dense, invert=True)]
        orders.append(np.concatenate([near[np.argsort(colours[near], kind="stable")], dense]))
        blocks += _blocks_of_colours(design, i, colours)
    return Partition("colour", tuple(orders), tuple(blocks))


def _blocks_of_colours(design: Design, i: int, colours: np.ndarray) -> list[Block]:
    """List a block for each colour of the listed levels of term i, and one for its dense levels."""
    term = design.terms[i]
    listed, dense = _listed_and_dense(term)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(colours[listed]))])
    blocks = [Block(i, int(a), int(b), 0, term.n_components) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
    if dense.size:
        blocks.append(Block(i, listed.size, term.n_levels, 0, term.n_components, dense=True))
    return blocks


def count_blocks_by_colour(design: Design) -> int:
    """Count the blocks of the partition 'colour' without the order of its levels."""
    return sum(len(_blocks_of_colours(design, i, level_colours(t))) for i, t in enumerate(design.terms))


def level_colours(term: Term) -> np.ndarray:
    """Colour the level graph of a term, (q,) int32: greedy, largest degree first.

    Two levels are neighbours if K^-1 joins them or if one record meets both. Colour 0 is given first and is the largest
    as a rule. Levels of a dense block are swept apart and have no neighbours here.
    """
    apart = np.zeros(term.n_levels, bool)
    if term.relationship.dense is not None:
        apart[term.relationship.dense.levels] = True
    indptr, indices = _adjacency(level_pairs(term), apart)
    if indices.size == 0:
        return np.zeros(term.n_levels, np.int32)
    degree = np.diff(indptr).astype(np.int32)
    by_degree = np.argsort(np.negative(degree, out=degree), kind="stable").astype(np.int32)
    colours, taken_by = np.full(term.n_levels, -1, np.int32), np.full(term.n_levels + 1, -1, np.int32)
    _greedy(indptr, indices, by_degree, colours, taken_by)
    return colours


def level_pairs(term: Term) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs of levels that may not share a colour, in parts (-1: none); a pair may come more than once."""
    levels = term.incidence.slots
    return [*term.relationship.edges(), *((levels[i], levels[j]) for i in range(len(levels)) for j in range(i))]


def joined_pairs(pairs: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of levels in parts as two int32 arrays, without those of a level that is none (-1) or the other itself."""
    kept = [(a >= 0) & (b >= 0) & (a != b) for a, b in pairs]
    join = lambda side: np.concatenate(
        [p[side][k] for p, k in zip(pairs, kept, strict=True)] or [np.empty(0, np.int32)]
    )
    return join(0).astype(np.int32, copy=False), join(1).astype(np.int32, copy=False)


def _adjacency(pairs: list[tuple[np.ndarray, np.ndarray]], apart: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """CSR of the graph of all pairs, both directions, without the levels `apart` (q,) bool: indptr (q + 1,) int64,
    indices int32. Pairs are read where they are: to put them together takes as much memory as the graph."""
    of_int32 = [(np.asarray(a, np.int32), np.asarray(b, np.int32)) for a, b in pairs]
    ptr = np.zeros(apart.size + 1, np.int64)
    for a, b in of_int32:
        _count_pairs(a, b, apart, ptr)
    counts = ptr[1:].copy()
    np.cumsum(counts, out=ptr[1:])
    indices = np.empty(ptr[-1], np.int32)
    ptr[1:] -= counts  # where the next neighbour of each level goes, one place on: a list ends where it was filled to
    for a, b in of_int32:
        _fill_pairs(a, b, apart, ptr, indices)
    return ptr, indices


@kernel
def _joins(a, b, apart):
    return a >= 0 and b >= 0 and a != b and not apart[a] and not apart[b]


@kernel
def _count_pairs(a, b, apart, ptr):
    for i in range(a.size):
        if _joins(a[i], b[i], apart):
            ptr[a[i] + 1] += 1
            ptr[b[i] + 1] += 1


@kernel
def _fill_pairs(a, b, apart, ptr, indices):
    for i in range(a.size):
        if _joins(a[i], b[i], apart):
            indices[ptr[a[i] + 1]] = b[i]
            ptr[a[i] + 1] += 1
            indices[ptr[b[i] + 1]] = a[i]
            ptr[b[i] + 1] += 1


@kernel
def _greedy(indptr, indices, sequence, colours, taken_by):
    """Give each level, in sequence, the smallest colour that none of its neighbours has.

    colours (q,) and taken_by (q + 1,), the last level that saw a colour among its neighbours: -1 throughout before.
    """
    for i in range(sequence.size):
        level = sequence[i]
        for j in range(indptr[level], indptr[level + 1]):
            colour = colours[indices[j]]
            if colour >= 0:
                taken_by[colour] = level
        colour = 0
        while taken_by[colour] == level:
            colour += 1
        colours[level] = colour
