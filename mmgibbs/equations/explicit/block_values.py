"""Values of row blocks at given variances, written as streams: where each element goes is found once
(equations/explicit/row_blocks.py).

    values[element, d, c] = G^-1[c, d] kappa
                            + sum over contributions to the element of  R_p^-1[t(c), u(d)] U^p_a(c),b(d)

with kappa in the order of the stored elements and contributions (what a missing pattern adds to an element,
unit_blocks.py) in the order of the rows of the block, so that new variances cost one pass over each list, in sequence.

Rows and columns of components set to 0 are written like any other: an engine keeps x at 0 there and never reads the
sums of such rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mmgibbs.equations.explicit.unit_blocks import UnitBlock
from mmgibbs.models.design import Design
from mmgibbs.models.terms import Term
from pedigree.kernels import kernel

NOWHERE = np.uint32(0xFFFFFFFF)  # place of an element that is stored elsewhere
UNROLL_FROM = 2000  # contributions from which a kernel for their very k pays
ONE = np.uint64(1)


class Group(NamedTuple):
    """One pair of effects: its unit block, and the components first ... last - 1 of the terms that the effects have."""

    terms: tuple[int, int]
    rows: tuple[int, int]
    columns: tuple[int, int]
    unit: UnitBlock
    indptr: np.ndarray  # (q + 1,) uint64 of the unit block
    indices: np.ndarray  # (nnz,) uint32


def groups(design: Design, units: dict[tuple[int, int], UnitBlock]) -> list[Group]:
    """C as one group per pair of effects."""
    effects = []  # (term, range of components) by number
    for i, term in enumerate(design.terms):
        bounds = np.cumsum([0, *(len(e.traits) * e.n_regressors for e in term.effects)]).tolist()
        effects += [(i, components) for components in pairwise(bounds)]
    out = []
    for (e, f), unit in units.items():
        (i, rows), (j, columns) = effects[e], effects[f]
        out.append(Group((i, j), rows, columns, unit, unit.indptr.view(np.uint64), unit.indices.view(np.uint32)))
    return out


class Share(NamedTuple):
    """What one group writes into a store: some components of its elements, and contributions to them."""

    term: int  # of the rows
    rows: tuple[int, int]
    columns: tuple[int, int]
    offset: tuple[int, int]  # where the first row and column component stand in `values`
    kappa: np.ndarray  # (elements of the store,), or (0,)
    place: np.ndarray  # (m,) uint32 the element of each contribution
    pattern: np.ndarray  # (m,) uint16
    sums: np.ndarray  # (m_e, m_f, m)
    traits: tuple[np.ndarray, np.ndarray]  # t(c), u(d)
    regressors: tuple[np.ndarray, np.ndarray]  # a(c), b(d), uint64

    def write(self, inverses: list[np.ndarray], by_pattern: np.ndarray, values: np.ndarray) -> None:
        if self.kappa.size:
            prior = np.ascontiguousarray(inverses[self.term][slice(*self.rows), slice(*self.columns)].T)
            _add_prior(self.kappa, prior, values, *self.offset)
        if self.place.size:
            t, u = self.traits
            coefficients = np.ascontiguousarray(by_pattern[:, u][:, :, t])
            sizes = (_unrolled(a.size, self.place.size) for a in self.traits)
            lists = self.place, self.pattern, self.sums, *self.regressors
            _add_contributions(*lists, coefficients, values, *self.offset, *sizes)


@dataclass(frozen=True)
class Store:
    """One array of values (elements, column components, row components) and all that is written into it."""

    values: np.ndarray
    shares: tuple[Share, ...]

    def write(self, inverses: list[np.ndarray], by_pattern: np.ndarray) -> None:
        """inverses: G^-1 per term; by_pattern: (patterns, T, T) R_p^-1."""
        self.values[:] = 0.0
        for share in self.shares:
            share.write(inverses, by_pattern, self.values)


class Selection(NamedTuple):
    """Components of a group that one block has on each side, and which blocks the levels of the columns belong to."""

    group: Group
    rows: tuple[int, int]  # components first ... last - 1
    columns: tuple[int, int]
    owner: np.ndarray  # (q,) int32 the block of each level, -1: none
    local: np.ndarray  # (q,) uint32 its number within the block


def share(
    design: Design, selection: Selection, order: np.ndarray, place: np.ndarray, n: int, offset: tuple[int, int] = (0, 0)
) -> Share:
    """What is written in the rows `order` (model-order levels); the first components go to values[:, offset[1],
    offset[0]]. place: (elements of these rows,) uint32, in that order; n elements stored.
    """
    group, rows, columns, _, _ = selection
    unit, (row_term, column_term) = group.unit, (design.terms[i] for i in group.terms)
    kappa = np.zeros(n if unit.kappa.size else 0, unit.kappa.dtype)
    if kappa.size:
        _move_kappa(order, group.indptr, unit.kappa, place, kappa)
    ptr = np.searchsorted(unit.position, unit.indptr)  # the first contribution of each row
    size = int((ptr[order + 1] - ptr[order]).sum())
    element, number = np.empty(size, np.uint32), np.empty(size, np.int64)
    size = _place_contributions(order, group.indptr, place, ptr.astype(np.uint64), unit.position, element, number)
    number = number[:size]
    traits = row_term.component_trait[slice(*rows)], column_term.component_trait[slice(*columns)]
    a = _component_regressors(row_term, rows, group.rows[0])
    b = _component_regressors(column_term, columns, group.columns[0])
    sums = np.ascontiguousarray(unit.sums[:, :, number])
    lists = kappa, element[:size].copy(), unit.pattern[number], sums
    return Share(group.terms[0], rows, columns, offset, *lists, traits, (a, b))


def meet(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int] | None:
    """The common part of two ranges."""
    first, last = max(a[0], b[0]), min(a[1], b[1])
    return (first, last) if first < last else None


def _component_regressors(term: Term, components: tuple[int, int], first: int) -> np.ndarray:
    """The regressor of each component, counted within the effect whose first component is `first`."""
    return (term.component_regressor[slice(*components)] - term.component_regressor[first]).astype(np.uint64)


def _unrolled(size: int, work: int) -> tuple:
    """A tuple whose length the compiler sees, where there is enough work to pay for a kernel of its own."""
    return (0,) * size if size <= 4 and work >= UNROLL_FROM else ()


# Walks over the rows `order` of a group, elements in the order of the rows, then of the columns. Numbers are unsigned.


@kernel
def _move_kappa(order, indptr, kappa, place, out):
    """out = kappa of each stored element, which comes as zeros."""
    step = np.uint64(0)
    for row in range(np.uint64(order.size)):
        level = np.uint64(order[row])
        for e in range(indptr[level], indptr[level + ONE]):
            if place[step] != NOWHERE:
                out[place[step]] = kappa[e]
            step += ONE


@kernel
def _place_contributions(order, indptr, place, ptr, position, element, number):
    """The stored element and the number of each contribution to a stored element; returns how many there are."""
    step, n = np.uint64(0), np.uint64(0)
    for row in range(np.uint64(order.size)):
        level = np.uint64(order[row])
        for m in range(ptr[level], ptr[level + ONE]):
            p = place[step + (position[m] - indptr[level])]
            if p != NOWHERE:
                element[n], number[n] = p, m
                n += ONE
        step += indptr[level + ONE] - indptr[level]
    return n


# The two streams of new values.


@kernel
def _add_prior(kappa, prior, values, row_offset, column_offset):
    """values += kappa prior; prior (columns, rows)."""
    for e in range(np.uint64(kappa.size)):
        for b in range(np.uint64(prior.shape[0])):
            for a in range(np.uint64(prior.shape[1])):
                values[e, np.uint64(column_offset) + b, np.uint64(row_offset) + a] += prior[b, a] * kappa[e]


@kernel
def _add_contributions(
    place, pattern, sums, row_regressor, column_regressor, coefficients, values, row_offset, column_offset, kr_, kc_
):
    """values += coefficients[p, b, a] U^p_ab for every contribution; coefficients (patterns, columns, rows).

    kr_, kc_: tuples as long as there are row and column components, () for loops of any length."""
    kr = np.uint64(len(kr_) if len(kr_) > 0 else row_regressor.size)
    kc = np.uint64(len(kc_) if len(kc_) > 0 else column_regressor.size)
    first_row, first_column = np.uint64(row_offset), np.uint64(column_offset)
    plain = sums.shape[0] == 1 and sums.shape[1] == 1
    for m in range(np.uint64(place.size)):
        p, c, s = place[m], coefficients[pattern[m]], np.float64(sums[0, 0, m])
        for b in range(kc):
            for a in range(kr):
                if not plain:
                    s = np.float64(sums[row_regressor[a], column_regressor[b], m])
                values[p, first_column + b, first_row + a] += c[b, a] * s
