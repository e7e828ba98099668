"""Values of row blocks at given variances, written as streams: where each piece goes is found once (equations/row_blocks.py).

    values[element, d, c] = G^-1[c, d] kappa  +  sum over contributions to the element of  R_p^-1[t(c), u(d)] U^p_a(c),b(d)

with kappa in the order of the stored elements and contributions (a missing pattern's part of an element, unit_blocks.py) in the order of the
rows of the block, so that new variances cost one pass over each list, in sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from mmgibbs.design import Design, Term
from mmgibbs.equations.unit_blocks import UnitBlock

NOWHERE = np.uint32(0xFFFFFFFF)  # place of an element that is stored elsewhere
UNROLL_FROM = 2000  # contributions from which a kernel for their very k pays
ONE = np.uint64(1)


class EffectPair(NamedTuple):
    """A pair of effects: the ranges of their components in the row and the column term, and the records' share of their elements."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    ptr: np.ndarray  # (q + 1,) uint64 the first contribution of each row
    unit: UnitBlock


class Group(NamedTuple):
    """Pairs of effects of two terms with one sparsity."""

    terms: tuple[int, int]
    rows: tuple[int, int]  # components first ... last - 1 of the row term
    columns: tuple[int, int]
    indptr: np.ndarray  # (q + 1,) uint64
    indices: np.ndarray  # (nnz,) uint32 model order
    kappa: np.ndarray  # (nnz,) K^-1, or no elements
    pairs: tuple[EffectPair, ...]


class _Records(NamedTuple):
    """The contributions of one pair of effects."""

    place: np.ndarray  # (m,) uint32 element
    pattern: np.ndarray  # (m,) uint16
    sums: np.ndarray  # (m_e, m_f, m)
    traits: tuple[np.ndarray, np.ndarray]  # t(c), u(d)
    regressors: tuple[np.ndarray, np.ndarray]  # a(c), b(d), uint64
    at: tuple[int, int]  # where the first row and column component stand in `values`


@dataclass(frozen=True)
class Share:
    """What one group writes into a store: some components of its elements."""

    term: int  # of the rows, and of the columns where there is kappa
    rows: tuple[int, int]
    columns: tuple[int, int]
    at: tuple[int, int]
    kappa: np.ndarray | None  # (elements of the store,)
    records: tuple[_Records, ...]
    held: np.ndarray  # (m,) int64 flat positions of values held at 0

    def write(self, inverses: list[np.ndarray], by_pattern: np.ndarray, values: np.ndarray) -> None:
        if self.kappa is not None:
            prior = np.ascontiguousarray(inverses[self.term][slice(*self.rows), slice(*self.columns)].T)
            _write_prior(self.kappa, prior, values, *self.at)
        for r in self.records:
            t, u = r.traits
            coefficients = np.ascontiguousarray(by_pattern[:, u][:, :, t])
            sizes = (_unrolled(a.size, r.place.size) for a in r.traits)
            _add_records(r.place, r.pattern, r.sums, *r.regressors, coefficients, values, *r.at, *sizes)
        values.reshape(-1)[self.held] = 0.0


@dataclass(frozen=True)
class Store:
    """One array of values (elements, column components, row components) and all that is written into it."""

    values: np.ndarray
    shares: tuple[Share, ...]

    def write(self, inverses: list[np.ndarray], by_pattern: np.ndarray) -> None:
        """inverses: G^-1 per term; by_pattern: (patterns, T, T) R_p^-1."""
        if len(self.shares) != 1 or self.shares[0].kappa is None:
            self.values[:] = 0.0
        for share in self.shares:
            share.write(inverses, by_pattern, self.values)


def share(design: Design, group: Group, order: np.ndarray, place: np.ndarray, values: np.ndarray, rows, columns, at) -> Share:
    """The share of a group in the rows `order` (model-order levels); place: (elements of these rows,) uint32, in that order.

    rows, columns: ranges of the group's components that are written, the first of them to values[:, at[1], at[0]].
    """
    i, j = group.terms
    kappa = None
    if i == j and group.kappa.size:
        kappa = np.zeros(len(values), values.dtype)
        _kappa_in_place(order, group.indptr, group.kappa, place, kappa)
    pairs = [(p, meet(rows, p.rows), meet(columns, p.columns)) for p in group.pairs]
    records = tuple(
        _records(design, group, order, place, p, r, c, (at[0] + r[0] - rows[0], at[1] + c[0] - columns[0]))
        for p, r, c in pairs
        if r is not None and c is not None
    )
    return Share(i, rows, columns, at, kappa, records, _held(design, group, order, place, values, rows, columns, at))


def meet(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int] | None:
    """The common part of two ranges."""
    first, last = max(a[0], b[0]), min(a[1], b[1])
    return (first, last) if first < last else None


def _records(design, group: Group, order, place, pair: EffectPair, rows, columns, at) -> _Records:
    size = int((pair.ptr[order + 1].astype(np.int64) - pair.ptr[order].astype(np.int64)).sum())
    where, number = np.empty(size, np.uint32), np.empty(size, np.int64)
    n = _contributions_in_place(order, group.indptr, place, pair.ptr, pair.unit.position, where, number)
    number = number[:n]
    terms = design.terms[group.terms[0]], design.terms[group.terms[1]]
    ranges = (rows, pair.rows), (columns, pair.columns)
    traits = tuple(t.component_trait[slice(*part)] for t, (part, _) in zip(terms, ranges, strict=True))
    regressors = tuple(
        (t.component_regressor[slice(*part)] - t.component_regressor[whole[0]]).astype(np.uint64) for t, (part, whole) in zip(terms, ranges, strict=True)
    )
    return _Records(where[:n].copy(), pair.unit.pattern[number], np.ascontiguousarray(pair.unit.sums[:, :, number]), traits, regressors, at)


def _held(design, group: Group, order, place, values, rows, columns, at) -> np.ndarray:
    """Flat positions in `values` of rows and columns held at 0."""
    row_held, column_held = (_held_components(design.terms[i], part) for i, part in zip(group.terms, (rows, columns), strict=True))
    if not row_held.any() and not column_held.any():
        return np.empty(0, np.int64)
    row, column, element = _elements_with_held(order, group.indptr, group.indices, place, row_held.any(axis=1), column_held.any(axis=1))
    held = column_held[column][:, :, None] | row_held[row][:, None, :]
    e, d, c = np.nonzero(held)
    _, k_columns, k_rows = values.shape
    return (element[e] * k_columns + d + at[1]) * k_rows + c + at[0]


def _held_components(term: Term, components: tuple[int, int]) -> np.ndarray:
    if term.active is None:
        return np.zeros((term.n_levels, components[1] - components[0]), bool)
    return ~term.active[:, slice(*components)]


def _unrolled(size: int, work: int) -> tuple:
    """A tuple whose length the compiler sees, where there is enough work to pay for a kernel of its own."""
    return (0,) * size if size <= 4 and work >= UNROLL_FROM else ()


# Walks over the rows `order` of a unit block, elements in the order of the rows, then of the columns. Numbers are unsigned.


@njit(cache=True, nogil=True, error_model="numpy")
def _kappa_in_place(order, indptr, kappa, place, out):
    step = np.uint64(0)
    for row in range(np.uint64(order.size)):
        level = np.uint64(order[row])
        for e in range(indptr[level], indptr[level + ONE]):
            if place[step] != NOWHERE:
                out[place[step]] = kappa[e]
            step += ONE


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def _elements_with_held(order, indptr, indices, place, any_row, any_column):
    """Row level, column level (model order) and place of each stored element whose row or column has components held at 0."""
    n = 0
    for fill in range(2):
        row_level, column_level, element = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
        n, step = 0, np.uint64(0)
        for row in range(np.uint64(order.size)):
            level = np.uint64(order[row])
            for e in range(indptr[level], indptr[level + ONE]):
                if place[step] != NOWHERE and (any_row[level] or any_column[indices[e]]):
                    if fill:
                        row_level[n], column_level[n], element[n] = level, indices[e], place[step]
                    n += 1
                step += ONE
    return row_level, column_level, element


# The two streams of new values.


@njit(cache=True, nogil=True, error_model="numpy")
def _write_prior(kappa, prior, values, row_at, column_at):
    """values = kappa prior; prior (columns, rows)."""
    row_at, column_at = np.uint64(row_at), np.uint64(column_at)
    for e in range(np.uint64(kappa.size)):
        for b in range(np.uint64(prior.shape[0])):
            for a in range(np.uint64(prior.shape[1])):
                values[e, column_at + b, row_at + a] = prior[b, a] * kappa[e]


@njit(cache=True, nogil=True, error_model="numpy")
def _add_records(place, pattern, sums, row_regressor, column_regressor, coefficients, values, row_at, column_at, kr_, kc_):
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
