"""The order in which levels of one colour are swept, and so stand in memory: what is read together stands together.

A dam, her daughters and theirs are of one herd as a rule, as are animals of one contemporary group. A *herd* is what
these links join, up to HERD animals: some herds that are one in truth come as several, where a cow has moved several
come as one. Herds follow one another by their oldest animal, animals of a herd by age (in model order). The rows of
Theta and the residuals that a herd needs then fit the cache of one core together; only what AI sires share is read
from all over memory.

Levels of other terms (contemporary groups, dams' environments) come in the order of the first record that they meet.

Draws are keyed by model order, and levels of a colour may be drawn in any order: this one moves sums by rounding only.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mmgibbs.machine.kernel_options import ENTRY, WITHIN
from mmgibbs.model.design import Design

HERD = 8192  # animals in a herd, at most: some 50 bytes of rows, residuals and lists each
MANY = 6400  # levels: fewer fit the cache in any order
GROUP = 250  # records: levels that more records meet, sexes and classes of age, say nothing of who stands near whom


def reading_orders(design: Design) -> list[np.ndarray]:
    """For each term its (q,) int32 levels in reading order; model order where no order is better."""
    natural = [np.arange(t.n_levels, dtype=np.int32) for t in design.terms]
    if not design.terms or design.terms[lead := term_of_most_levels(design)].n_levels < MANY:
        return natural
    near = [t.relationship.nearest_relative() for t in design.terms]
    if near[lead] is None:
        return natural
    orders = [o if n is None else by_herds(design, i, n) for i, (o, n) in enumerate(zip(natural, near, strict=True))]
    place = positions(orders[lead])
    return [
        by_first_record(design, i, place[design.terms[lead].effects[0].level]) if near[i] is None else order
        for i, order in enumerate(orders)
    ]


def term_of_most_levels(design: Design) -> int:
    """The first of these; records stand in the order of its levels."""
    return max(range(len(design.terms)), key=lambda i: design.terms[i].n_levels)


def positions(order: np.ndarray) -> np.ndarray:
    """(q + 1,) int32 where each level stands in an order; the last one, of level -1 (none), after all others."""
    place = np.empty(order.size + 1, np.int32)
    place[order] = np.arange(order.size, dtype=np.int32)
    place[-1] = order.size
    return place


def by_herds(design: Design, i: int, nearest: np.ndarray) -> np.ndarray:
    """(q,) int32 levels of term i herd by herd; nearest (q,) int32: a relative of each level, -1 for none."""
    term, others = design.terms[i], [t for j, t in enumerate(design.terms) if j != i]
    nodes = term.n_levels + sum(t.n_levels for t in others)  # levels of other terms join levels of this one
    oldest, size = np.arange(nodes, dtype=np.int32), np.zeros(nodes, np.int32)
    size[: term.n_levels] = 1
    join(np.arange(term.n_levels, dtype=np.int32), nearest, 0, oldest, size, HERD)
    first = term.n_levels
    for other in others:
        for effect in other.effects:
            join(term.effects[0].level, of_small_groups(effect.level), first, oldest, size, HERD)
        first += other.n_levels
    herd = oldest[: term.n_levels]
    while np.any((further := oldest[herd]) != herd):
        herd = further
    return np.argsort(herd, kind="stable").astype(np.int32)


def of_small_groups(level: np.ndarray) -> np.ndarray:
    """(n,) int32 the level of each record; -1 where it, or the average level, is met by more than GROUP records."""
    counts = np.bincount(level[level >= 0], minlength=1)
    small = (counts <= GROUP) & (counts.mean() <= GROUP)
    return np.where(small[level], level, np.int32(-1)).astype(np.int32, copy=False)


def by_first_record(design: Design, i: int, place: np.ndarray) -> np.ndarray:
    """(q,) int32 levels of term i by the first place (n,) int32 of the records that each meets."""
    term = design.terms[i]
    first = np.full(term.n_levels + 1, np.iinfo(np.int32).max, np.int32)  # the last one: of level -1
    for effect in term.effects:
        np.minimum.at(first, effect.level, place)
    return np.argsort(first[:-1], kind="stable").astype(np.int32)


@njit(**WITHIN)
def _root(oldest, node):
    while oldest[node] != node:
        oldest[node] = oldest[oldest[node]]
        node = oldest[node]
    return node


@njit(cache=True, _nrt=False, **ENTRY)
def join(a, b, first, oldest, size, most):
    """Join a[i] with first + b[i], i = 0 ..., unless one is none (-1) or they came to more than `most` levels.

    oldest (nodes,) int32: for each node one that was joined with it and is older, at last the oldest itself; size
    (nodes,) int32: levels joined with each oldest one.
    """
    for i in range(a.size):
        if a[i] >= 0 and b[i] >= 0:
            x, y = _root(oldest, a[i]), _root(oldest, first + b[i])
            if x != y and size[x] + size[y] <= most:
                old, young = min(x, y), max(x, y)
                oldest[young] = old
                size[old] += size[young]
