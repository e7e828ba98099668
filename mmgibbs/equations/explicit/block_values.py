"""Values of row blocks at given variances, written as streams: where each piece goes is found once
(equations/explicit/row_blocks.py).

    values[element, d, c] = G^-1[c, d] kappa
                            + sum over contributions to the element of  R_p^-1[t(c), u(d)] U^p_a(c),b(d)

with kappa in the order of the stored elements and contributions (a missing pattern's part of an element,
unit_blocks.py) in the order of the rows of the block, so that new variances cost one pass over each list, in sequence.

Rows and columns of components set to 0 are written like any other: an engine keeps x at 0 there and never reads the
sums of such rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmgibbs.equations.explicit.unit_blocks import UnitBlock
from mmgibbs.model.design import Design
from mmgibbs.model.terms import Term
from pedigree.kernels import kernel

NOWHERE = np.uint32(0xFFFFFFFF)  # place of an element that is stored elsewhere
UNROLL_FROM = 2000  # contributions from which a kernel for their very k pays
ONE = np.uint64(1)


class PriorGroup(NamedTuple):
    """G^-1 (x) K^-1 of a random term, or the prior precision (x) I of a fixed one:
    all components, the sparsity of K^-1.
    """

    terms: tuple[int, int]
    rows: tuple[int, int]  # components first ... last - 1 of the row term
    columns: tuple[int, int]
    indptr: np.ndarray  # (q + 1,) uint64
    indices: np.ndarray  # (nnz,) uint32 model order
    kappa: np.ndarray  # (nnz,)


class RecordGroup(NamedTuple):
    """The records' share of one pair of effects: elements with at least one contribution."""

    terms: tuple[int, int]
    rows: tuple[int, int]
    columns: tuple[int, int]
    indptr: np.ndarray  # (q + 1,) uint64
    indices: np.ndarray  # (nnz,) uint32 model order
    ptr: np.ndarray  # (q + 1,) uint64 the first contribution of each row
    position: np.ndarray  # (m,) uint32 the element of each contribution
    pattern: np.ndarray  # (m,) uint16
    sums: np.ndarray  # (m_e, m_f, m)


def groups(design: Design, units: dict[tuple[int, int], UnitBlock]) -> list[PriorGroup | RecordGroup]:
    """C as a sum of prior and record groups."""
    effects = []  # (term, range of components) by number
    for i, term in enumerate(design.terms):
        bounds = np.cumsum([0, *(len(e.traits) * e.n_regressors for e in term.effects)]).tolist()
        effects += [(i, part) for part in zip(bounds[:-1], bounds[1:], strict=True)]
    out: list[PriorGroup | RecordGroup] = []
    seen: set[int] = set()
    for (e, f), unit in units.items():
        (i, rows), (j, columns) = effects[e], effects[f]
        if unit.kappa.size and i not in seen:
            seen.add(i)
            whole = (0, design.terms[i].n_components)
            out.append(
                PriorGroup(
                    (i, i), whole, whole, *_find_elements(unit, np.flatnonzero(unit.kappa)), unit.kappa[unit.kappa != 0]
                )
            )
        if unit.position.size:
            elements, position = np.unique(unit.position, return_inverse=True)
            ptr = np.searchsorted(unit.position, unit.indptr).astype(np.uint64)
            out.append(
                RecordGroup(
                    (i, j),
                    rows,
                    columns,
                    *_find_elements(unit, elements),
                    ptr,
                    position.astype(np.uint32),
                    unit.pattern,
                    unit.sums,
                )
            )
    return out


def _find_elements(unit: UnitBlock, elements: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """indptr and indices of some of the elements of a unit block, ascending."""
    if elements.size == unit.indices.size:
        return unit.indptr.view(np.uint64), unit.indices.view(np.uint32)
    return np.searchsorted(elements, unit.indptr).astype(np.uint64), unit.indices[elements].view(np.uint32)


class _Records(NamedTuple):
    """Contributions to the elements of a store."""

    place: np.ndarray  # (m,) uint32 element
    pattern: np.ndarray  # (m,) uint16
    sums: np.ndarray  # (m_e, m_f, m)
    traits: tuple[np.ndarray, np.ndarray]  # t(c), u(d)
    regressors: tuple[np.ndarray, np.ndarray]  # a(c), b(d), uint64


@dataclass(frozen=True)
class Share:
    """What one group writes into a store: some components of its elements."""

    term: int  # of the rows
    rows: tuple[int, int]
    columns: tuple[int, int]
    at: tuple[int, int]  # where the first row and column component stand in `values`
    kappa: np.ndarray | None  # (elements of the store,)
    records: _Records | None

    def write(self, inverses: list[np.ndarray], by_pattern: np.ndarray, values: np.ndarray) -> None:
        if self.kappa is not None:
            _add_prior(self.kappa, prior_matrix(inverses[self.term], self.rows, self.columns), values, *self.at)
        if self.records is not None:
            r = self.records
            t, u = r.traits
            coefficients = np.ascontiguousarray(by_pattern[:, u][:, :, t])
            sizes = (_unrolled(a.size, r.place.size) for a in r.traits)
            _add_records(r.place, r.pattern, r.sums, *r.regressors, coefficients, values, *self.at, *sizes)


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


def prior_matrix(inverse: np.ndarray, rows: tuple[int, int], columns: tuple[int, int]) -> np.ndarray:
    """(column components, row components) of G^-1."""
    return np.ascontiguousarray(inverse[slice(*rows), slice(*columns)].T)


def share(
    design: Design,
    group: PriorGroup | RecordGroup,
    order: np.ndarray,
    place: np.ndarray,
    n: int,
    rows: tuple[int, int],
    columns: tuple[int, int],
    at: tuple[int, int] = (0, 0),
) -> Share:
    """The share of a group in the rows `order` (model-order levels); place: (elements of these rows,) uint32, in that
    order; n elements stored.

    rows, columns: ranges of the group's components that are written, the first of them to values[:, at[1], at[0]].
    """
    if isinstance(group, PriorGroup):
        return Share(group.terms[0], rows, columns, at, kappa_in_place(group, order, place, n), None)
    return Share(group.terms[0], rows, columns, at, None, _records(design, group, order, place, rows, columns))


def meet(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int] | None:
    """The common part of two ranges."""
    first, last = max(a[0], b[0]), min(a[1], b[1])
    return (first, last) if first < last else None


def _records(
    design: Design,
    group: RecordGroup,
    order: np.ndarray,
    place: np.ndarray,
    rows: tuple[int, int],
    columns: tuple[int, int],
) -> _Records:
    size = int((group.ptr[order + 1].astype(np.int64) - group.ptr[order].astype(np.int64)).sum())
    where, number = np.empty(size, np.uint32), np.empty(size, np.int64)
    n = _contributions_in_place(order, group.indptr, place, group.ptr, group.position, where, number)
    number = number[:n]
    sides = [
        (design.terms[i], part, whole[0])
        for i, part, whole in zip(group.terms, (rows, columns), group[1:3], strict=True)
    ]
    t, u = (term.component_trait[slice(*part)] for term, part, _ in sides)
    a, b = (_component_regressors(term, part, first) for term, part, first in sides)
    return _Records(
        where[:n].copy(), group.pattern[number], np.ascontiguousarray(group.sums[:, :, number]), (t, u), (a, b)
    )


def _component_regressors(term: Term, components: tuple[int, int], first: int) -> np.ndarray:
    """The regressor of each component, counted within the effect whose first component is `first`."""
    return (term.component_regressor[slice(*components)] - term.component_regressor[first]).astype(np.uint64)


def _unrolled(size: int, work: int) -> tuple:
    """A tuple whose length the compiler sees, where there is enough work to pay for a kernel of its own."""
    return (0,) * size if size <= 4 and work >= UNROLL_FROM else ()


# Walks over the rows `order` of a group, elements in the order of the rows, then of the columns. Numbers are unsigned.


def kappa_in_place(group: PriorGroup, order: np.ndarray, place: np.ndarray, n: int) -> np.ndarray:
    """(n,) kappa of each stored element; 0 where the group has none."""
    out = np.zeros(n, group.kappa.dtype)
    _move_kappa(order, group.indptr, group.kappa, place, out)
    return out


@kernel
def _move_kappa(order, indptr, kappa, place, out):
    step = np.uint64(0)
    for row in range(np.uint64(order.size)):
        level = np.uint64(order[row])
        for e in range(indptr[level], indptr[level + ONE]):
            if place[step] != NOWHERE:
                out[place[step]] = kappa[e]
            step += ONE


@kernel
def _contributions_in_place(order, indptr, place, ptr, position, where, number):
    """The stored element and the number of each contribution to a stored element; returns how many there are."""
    step, n = np.uint64(0), np.uint64(0)
    for row in range(np.uint64(order.size)):
        level = np.uint64(order[row])
        for m in range(ptr[level], ptr[level + ONE]):
            p = place[step + (position[m] - indptr[level])]
            if p != NOWHERE:
                where[n], number[n] = p, m
                n += ONE
        step += indptr[level + ONE] - indptr[level]
    return n


# The two streams of new values.


@kernel
def _add_prior(kappa, prior, values, row_at, column_at):
    """values += kappa prior; prior (columns, rows)."""
    row_at, column_at = np.uint64(row_at), np.uint64(column_at)
    for e in range(np.uint64(kappa.size)):
        for b in range(np.uint64(prior.shape[0])):
            for a in range(np.uint64(prior.shape[1])):
                values[e, column_at + b, row_at + a] += prior[b, a] * kappa[e]


@kernel
def _add_records(
    place, pattern, sums, row_regressor, column_regressor, coefficients, values, row_at, column_at, kr_, kc_
):
    """values += coefficients[p, b, a] U^p_ab for every contribution; coefficients (patterns, columns, rows).

    kr_, kc_: tuples as long as there are row and column components, () for loops of any length."""
    kr = np.uint64(len(kr_) if len(kr_) > 0 else row_regressor.size)
    kc = np.uint64(len(kc_) if len(kc_) > 0 else column_regressor.size)
    row_at, column_at = np.uint64(row_at), np.uint64(column_at)
    plain = sums.shape[0] == 1 and sums.shape[1] == 1
    for m in range(np.uint64(place.size)):
        p, c, s = place[m], coefficients[pattern[m]], np.float64(sums[0, 0, m])
        for b in range(kc):
            for a in range(kr):
                if not plain:
                    s = np.float64(sums[row_regressor[a], column_regressor[b], m])
                values[p, column_at + b, row_at + a] += c[b, a] * s
