"""The explicit equations cut into row blocks: what the hybrid engine streams.

    A_ki  for every pair of blocks k, i of a partition        (C theta = b, levels in sweep order)

A part of A_ki holds, for each pair of levels that it joins, the small dense matrix of their components, so that one index serves all of
them: for four effects on a pedigree that is 17 words for 16 elements instead of 32. Pairs of effects whose unit blocks have one sparsity
share a part; others have a part each. Only rows with elements are listed. Levels are numbered from the first of their block.

What couples the levels *within* a block (nothing in a colour block) is one square part, `Coupling`; the diagonal k x k block of a level
belongs to the engine. `set_variances` rewrites values in place: patterns and places are found once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from mmgibbs.equations.base import precisions
from mmgibbs.equations.block_values import NOWHERE, EffectPair, Group, Store, meet, share
from mmgibbs.equations.partition import Block
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.equations.unit_blocks import UnitBlock, unit_blocks

ONE = np.uint64(1)


class Part(NamedTuple):
    """Some components of A_ki; values[e, b, a]: column component b, row component a, so that the rows' components are neighbours."""

    row: np.ndarray  # (m,) uint32 ascending: the levels of block k that meet block i
    indptr: np.ndarray  # (m + 1,) uint64
    indices: np.ndarray  # (nnz,) uint32 level of block i
    values: np.ndarray  # (nnz, k_i, k_k) float64 or float32
    row_component: int  # the first of its row components, counted from the first of block k
    column_component: int


class Coupling(NamedTuple):
    """A_kk between different levels; no elements where levels of the block do not meet."""

    indptr: np.ndarray  # (levels + 1,) uint64
    indices: np.ndarray  # (nnz,) uint32
    values: np.ndarray  # (nnz, k, k) column component, row component


@dataclass
class RowBlocks:
    """A_ki of a partition, at the variances given last."""

    equations: StructuredEquations
    parts: dict[tuple[int, int], tuple[Part, ...]]  # (k, i), k != i; absent: zero
    couplings: tuple[Coupling, ...]
    _stores: list[Store]

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self.equations.partition.blocks

    @property
    def bytes(self) -> int:
        """Bytes that one sweep reads of the matrix."""
        return self.bytes_off_diagonal + sum(a.nbytes for coupling in self.couplings for a in coupling)

    @property
    def bytes_off_diagonal(self) -> int:
        """Bytes of all A_ki, k != i."""
        return sum(a.nbytes for parts in self.parts.values() for part in parts for a in part[:4])

    @property
    def stored_values(self) -> tuple[int, int]:
        """Values off and inside the diagonal blocks, the levels' own k x k blocks not counted."""
        return sum(p.values.size for parts in self.parts.values() for p in parts), sum(c.values.size for c in self.couplings)

    def sources(self, k: int) -> list[int]:
        """The blocks i with A_ki other than 0, ascending."""
        return sorted(i for target, i in self.parts if target == k)

    def set_variances(self, G: list[np.ndarray | None], R: np.ndarray, pool: ThreadPoolExecutor | None = None) -> None:
        """Values at new variances; `pool` shares the work out, store by store."""
        inverses, by_pattern = precisions(self.equations.design, G, R)
        write = lambda store: store.write(inverses, by_pattern)  # noqa: E731
        list((map if pool is None else pool.map)(write, self._stores))


def row_blocks(equations: StructuredEquations, empty=np.empty) -> RowBlocks:
    """The pattern of every A_ki of the equations' partition; `RowBlocks.set_variances` gives values.

    empty(shape, dtype): where the arrays of the parts live, e.g. in pinned memory."""
    design, part = equations.design, equations.partition
    groups = _groups(design, unit_blocks(design, equations.real))
    parts: dict[tuple[int, int], list[Part]] = {}
    couplings, stores = [], []
    for k, block in enumerate(part.blocks):
        order = part.order[block.term][block.first : block.last]
        inside = []
        for group in groups:
            rows = meet(group.rows, (block.first_component, block.last_component)) if group.terms[0] == block.term else None
            if rows is None:
                continue
            for columns, owner, local in _owners(equations, group):
                inner = meet(columns, group.columns)
                if inner is None:
                    continue
                new, store = _off_diagonal(equations, group, order, k, rows, inner, owner, local, empty)
                for i, p in new:
                    parts.setdefault((k, i), []).append(p)
                stores.append(store)
                if group.terms[0] == group.terms[1] and columns == (block.first_component, block.last_component):
                    inside.append((group, rows, inner, owner, local))
        coupling, own = _inside(equations, k, block, order, inside)
        couplings.append(coupling)
        stores.append(Store(coupling.values, tuple(own)))
    stores.sort(key=lambda store: -store.values.size)  # the long ones first, so that threads end together
    return RowBlocks(equations, {key: tuple(p) for key, p in parts.items()}, tuple(couplings), stores)


def _groups(design, units: dict[tuple[int, int], UnitBlock]) -> list[Group]:
    """One group per pair of terms where all pairs of their effects share a sparsity, else one per pair of effects."""
    ranges, numbers = [], []
    number = 0
    for term in design.terms:
        sizes = [len(e.traits) * e.n_regressors for e in term.effects]
        bounds = np.cumsum([0, *sizes])
        ranges.append([(int(a), int(b)) for a, b in zip(bounds[:-1], bounds[1:], strict=True)])
        numbers.append(range(number, number + len(sizes)))
        number += len(sizes)
    out = []
    for i in range(len(design.terms)):
        for j in range(len(design.terms)):
            pairs = []
            for e, row in zip(numbers[i], ranges[i], strict=True):
                for f, column in zip(numbers[j], ranges[j], strict=True):
                    if (e, f) in units:
                        unit = units[e, f]
                        pairs.append(EffectPair(row, column, np.searchsorted(unit.position, unit.indptr).astype(np.uint64), unit))
            together = len(pairs) == len(ranges[i]) * len(ranges[j]) and all(_same_sparsity(p.unit, pairs[0].unit) for p in pairs)
            for several in [pairs] if together else [[p] for p in pairs]:
                unit = several[0].unit
                rows = several[0].rows[0], several[-1].rows[1]
                columns = several[0].columns[0], several[-1].columns[1]
                out.append(Group((i, j), rows, columns, unit.indptr.view(np.uint64), unit.indices.view(np.uint32), unit.kappa, tuple(several)))
    return out


def _same_sparsity(a: UnitBlock, b: UnitBlock) -> bool:
    return np.array_equal(a.indptr, b.indptr) and np.array_equal(a.indices, b.indices)


def _owners(equations: StructuredEquations, group: Group):
    """For each range of components that blocks of the column term have: the range, (q,) int32 the block of each level (-1: none) and
    (q,) uint32 its number within the block, levels in model order."""
    term, part = group.terms[1], equations.partition
    of_term = [(i, b) for i, b in enumerate(part.blocks) if b.term == term]
    for components in dict.fromkeys((b.first_component, b.last_component) for _, b in of_term):
        owner = np.full(part.order[term].size, -1, np.int32)
        local = np.zeros(part.order[term].size, np.uint32)
        for i, b in of_term:
            if (b.first_component, b.last_component) == components:
                levels = part.order[term][b.first : b.last]
                owner[levels], local[levels] = i, np.arange(levels.size)
        yield components, owner, local


def _off_diagonal(equations, group, order, k, rows, columns, owner, local, empty):
    """The parts of one group in the rows of block k, one per source block, as slices of one store; and how they are filled."""
    n_blocks = len(equations.partition.blocks)
    elements, listed = np.zeros(n_blocks, np.int64), np.zeros(n_blocks, np.int64)
    walked = _count(order, group.indptr, group.indices, owner, k, elements, listed)
    first, first_row = (np.concatenate([[0], np.cumsum(sizes)]) for sizes in (elements, listed))
    first_ptr = first_row + np.arange(n_blocks + 1)  # one more pointer than rows for each source
    assert first[-1] < NOWHERE, "elements of a row block are numbered in 32 bits"
    place, indices = np.empty(walked, np.uint32), empty(int(first[-1]), np.uint32)
    row, indptr = empty(int(first_row[-1]), np.uint32), empty(int(first_ptr[-1]), np.uint64)
    _fill(order, group.indptr, group.indices, owner, local, k, first, first_row, first_ptr, place, indices, row, indptr)
    values = empty((int(first[-1]), columns[1] - columns[0], rows[1] - rows[0]), equations.real)
    blocks = equations.partition.blocks
    parts = []
    for i in np.flatnonzero(elements):
        e, m, p = slice(first[i], first[i + 1]), slice(first_row[i], first_row[i + 1]), slice(first_ptr[i], first_ptr[i + 1])
        at = rows[0] - blocks[k].first_component, columns[0] - blocks[i].first_component
        parts.append((int(i), Part(row[m], indptr[p], indices[e], values[e], *at)))
    return parts, Store(values, (share(equations.design, group, order, place, values, rows, columns, (0, 0)),))


def _inside(equations, k, block, order, inside):
    """The coupling of a block and how it is filled: the union of the sparsities of its groups, a level's own block left out."""
    width = block.last_component - block.first_component
    keys, walks = [], []
    for group, _, _, owner, local in inside:
        walk = np.full(int(np.diff(group.indptr.view(np.int64))[order].sum()), -1, np.int64)
        _own_keys(order, group.indptr, group.indices, owner, local, k, walk)
        walks.append(walk)
        keys.append(walk[walk >= 0])
    union = np.unique(np.concatenate(keys)) if keys else np.empty(0, np.int64)
    assert union.size < NOWHERE, "elements of a diagonal block are numbered in 32 bits"
    rows = union // max(1, order.size)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=order.size))]).astype(np.uint64)
    values = np.empty((union.size, width, width), equations.real)
    coupling = Coupling(indptr, (union % max(1, order.size)).astype(np.uint32), values)
    shares = []
    if union.size:
        for (group, row_range, column_range, _, _), walk in zip(inside, walks, strict=True):
            place = np.where(walk >= 0, np.searchsorted(union, walk), NOWHERE).astype(np.uint32)
            at = row_range[0] - block.first_component, column_range[0] - block.first_component
            shares.append(share(equations.design, group, order, place, values, row_range, column_range, at))
    return coupling, shares


# Walks over the rows `order` of a unit block: elements in the order of the rows, then of the columns. Numbers are unsigned.


@njit(cache=True, nogil=True, error_model="numpy")
def _count(order, indptr, indices, owner, k, elements, listed):
    """Elements and rows with elements for each source block other than k; returns the length of the walk."""
    last = np.full(elements.size, -1, np.int64)
    walked = 0
    for row in range(order.size):
        for e in range(indptr[order[row]], indptr[np.uint64(order[row]) + ONE]):
            walked += 1
            i = owner[indices[e]]
            if i >= 0 and i != k:
                elements[i] += 1
                if last[i] != row:
                    last[i] = row
                    listed[i] += 1
    return walked


@njit(cache=True, nogil=True, error_model="numpy")
def _fill(order, indptr, indices, owner, local, k, first, first_row, first_ptr, place, out_indices, out_row, out_indptr):
    element, listed = first[:-1].copy(), np.zeros(first.size - 1, np.int64)
    last = np.full(first.size - 1, -1, np.int64)
    step = 0
    for row in range(order.size):
        for e in range(indptr[order[row]], indptr[np.uint64(order[row]) + ONE]):
            i = owner[indices[e]]
            if i < 0 or i == k:
                place[step] = NOWHERE
            else:
                if last[i] != row:
                    last[i] = row
                    out_row[first_row[i] + listed[i]] = row
                    out_indptr[first_ptr[i] + listed[i]] = element[i] - first[i]
                    listed[i] += 1
                place[step] = element[i]
                out_indices[element[i]] = local[indices[e]]
                element[i] += 1
            step += 1
    for i in range(first.size - 1):
        out_indptr[first_ptr[i] + listed[i]] = element[i] - first[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _own_keys(order, indptr, indices, owner, local, k, walk):
    """walk = row * levels + column for elements between different levels of block k; others keep their -1."""
    step = 0
    for row in range(order.size):
        for e in range(indptr[order[row]], indptr[np.uint64(order[row]) + ONE]):
            if owner[indices[e]] == k and local[indices[e]] != row:
                walk[step] = row * order.size + local[indices[e]]
            step += 1
