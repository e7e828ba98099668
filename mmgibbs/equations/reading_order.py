"""The order in which levels of one colour are swept, and so stand in memory: what is read together stands together.

A dam, her daughters and theirs are of one herd as a rule, as are animals of one contemporary group. A *herd* is what
these links, and others of small groups (litters, permanent environments), join, up to HERD animals: some herds that are
one in truth come as several, and where animals have moved several come as one. Herds follow one another by their first
animal in model order, parents first, and so do animals of a herd. The rows of Theta and the residuals that a herd needs
then mostly fit the cache of one core together; what AI sires share is read from all over memory.

Levels of other terms (contemporary groups, dams' environments) come in the order of the first record that they meet.

Draws are keyed by model order, and levels of a colour may be drawn in any order: this one moves sums by rounding only.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.models.design import Design
from mmgibbs.pedigree.kernels import kernel

HERD = 8192  # animals in a herd, at most: 28 bytes each of rows and residuals (k = 4, T = 3, single precision)
MANY = 6400  # levels: fewer fit the cache in any order
GROUP = 250  # records: levels that more records meet, sexes and classes of age, say nothing of who stands near whom


def reading_orders(design: Design) -> list[np.ndarray]:
    """Return the (q,) int32 levels of each term in reading order; model order where no order is better."""
    near = [t.relationship.nearest_relative() if t.n_levels >= MANY else None for t in design.terms]
    herds = {i: order_by_herd(design, i, relative) for i, relative in enumerate(near) if relative is not None}
    if not herds:
        return [np.arange(t.n_levels, dtype=np.int32) for t in design.terms]
    lead = max(herds, key=lambda i: design.terms[i].n_levels)
    place = positions(herds[lead])[design.terms[lead].incidence.slots[0]]  # of each record
    return [herds[i] if i in herds else order_by_first_record(design, i, place) for i in range(len(design.terms))]


def term_of_most_levels(design: Design) -> int:
    """The first of these; records stand in the order of its levels."""
    return max(range(len(design.terms)), key=lambda i: design.terms[i].n_levels)


def positions(order: np.ndarray) -> np.ndarray:
    """Invert an order of levels, (q + 1,) int32; the last one, of level -1 (none), is after all others."""
    place = np.empty(order.size + 1, np.int32)
    place[order] = np.arange(order.size, dtype=np.int32)
    place[-1] = order.size
    return place


def order_by_herd(design: Design, i: int, nearest: np.ndarray) -> np.ndarray:
    """Order the levels of term i herd by herd, (q,) int32; nearest (q,) int32: a relative of each level, or -1."""
    term, other_terms = design.terms[i], [t for j, t in enumerate(design.terms) if j != i]
    nodes = term.n_levels + sum(t.n_levels for t in other_terms)  # levels of other terms join levels of this one
    earliest, size = np.arange(nodes, dtype=np.int32), np.zeros(nodes, np.int32)
    size[: term.n_levels] = 1
    join(np.arange(term.n_levels, dtype=np.int32), nearest, 0, earliest, size, HERD)
    first = term.n_levels
    for effect_term in other_terms:
        for level in effect_term.incidence.slots:
            join(term.incidence.slots[0], find_small_groups(level), first, earliest, size, HERD)
        first += effect_term.n_levels
    herd = earliest[: term.n_levels]
    while np.any((further := earliest[herd]) != herd):
        herd = further
    return np.argsort(herd, kind="stable").astype(np.int32)


def find_small_groups(level: np.ndarray) -> np.ndarray:
    """Find the level of each record, (n,) int32; -1 where it, or the average level, has more than GROUP records."""
    counts = np.bincount(level[level >= 0], minlength=1)
    small = (counts <= GROUP) & (counts.mean() <= GROUP)
    return np.where(small[level], level, np.int32(-1)).astype(np.int32, copy=False)


def order_by_first_record(design: Design, i: int, place: np.ndarray) -> np.ndarray:
    """Order the levels of term i, (q,) int32, by the first position (n,) int32 of the records that each meets."""
    term = design.terms[i]
    first = np.full(term.n_levels + 1, np.iinfo(np.int32).max, np.int32)  # the last one: of level -1
    for level in term.incidence.slots:
        np.minimum.at(first, level, place)
    return np.argsort(first[:-1], kind="stable").astype(np.int32)


@kernel
def _root(earliest, node):
    while earliest[node] != node:
        earliest[node] = earliest[earliest[node]]
        node = earliest[node]
    return node


@kernel
def join(a, b, first, earliest, size, most):
    """Join a[i] with first + b[i], i = 0 ..., unless one is none (-1) or they came to more than `most` levels.

    earliest (nodes,) int32: for each node one that was joined with it and stands before it in model order, at last the
    first of all itself; size (nodes,) int32: levels joined with each of these.
    """
    for i in range(a.size):
        if a[i] >= 0 and b[i] >= 0:
            x, y = _root(earliest, a[i]), _root(earliest, first + b[i])
            if x != y and size[x] + size[y] <= most:
                early, late = min(x, y), max(x, y)
                earliest[late] = early
                size[early] += size[late]
