"""The explicit equations cut into row blocks: what the hybrid engine streams.

    A_ki  for every pair of blocks k, i of a partition        (C theta = b, levels in sweep order)

A_ki is a sum of slices, one for each pair of effects, with one index for the components of two levels that it joins: a
small dense matrix of components for each pair of levels. Only rows with elements are listed; levels are numbered from
the first of their block. What couples the levels *within* a block (nothing in a colour block) is one square matrix,
`Coupling`; the k x k block of a level with itself belongs to the engine. `set_variances` rewrites values in place:
patterns and places are found once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmgibbs.equations.base import precisions
from mmgibbs.equations.explicit.block_values import NOWHERE, Group, Selection, Store, groups, meet, share
from mmgibbs.equations.explicit.unit_blocks import unit_blocks
from mmgibbs.equations.partition import Block
from mmgibbs.equations.structured import StructuredEquations
from pedigree.kernels import kernel

ONE = np.uint64(1)


class BlockSlice(NamedTuple):
    """Some components of A_ki; values[e, b, a]: column component b, row component a, so that the rows' components are
    neighbours.
    """

    row: np.ndarray  # (m,) uint32 ascending: the levels of block k that meet block i
    indptr: np.ndarray  # (m + 1,) uint64
    indices: np.ndarray  # (nnz,) uint32 level of block i
    values: np.ndarray  # (nnz, k_i, k_k) float64 or float32
    offset: tuple[int, int]  # where its row and column components begin, counted from the first of blocks k and i

    @property
    def widths(self) -> tuple[int, int]:
        """Row components, column components."""
        return self.values.shape[2], self.values.shape[1]

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.row, self.indptr, self.indices, self.values

    @property
    def bytes(self) -> int:
        return sum(a.nbytes for a in self.arrays)


class Coupling(NamedTuple):
    """A_kk between different levels; no elements where levels of the block do not meet."""

    indptr: np.ndarray  # (levels + 1,) uint64
    indices: np.ndarray  # (nnz,) uint32
    values: np.ndarray  # (nnz, k, k) column component, row component


@dataclass
class RowBlocks:
    """A_ki of a partition, at the variances given last."""

    equations: StructuredEquations
    slices: dict[tuple[int, int], tuple[BlockSlice, ...]]  # (k, i), k != i; absent: zero
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
        return sum(block_slice.bytes for slices in self.slices.values() for block_slice in slices)

    def sources(self, k: int) -> list[int]:
        """The blocks i with A_ki other than 0, ascending."""
        return sorted(i for target, i in self.slices if target == k)

    def set_variances(
        self, G: Sequence[np.ndarray | None], R: np.ndarray, pool: ThreadPoolExecutor | None = None
    ) -> None:
        """Values at new variances; `pool` shares the work out, store by store."""
        inverses, by_pattern = precisions(self.equations.design, G, R)
        write = lambda store: store.write(inverses, by_pattern)
        list((map if pool is None else pool.map)(write, self._stores))


def row_blocks(equations: StructuredEquations, empty: Callable[..., np.ndarray] = np.empty) -> RowBlocks:
    """The pattern of every A_ki of the equations' partition; `RowBlocks.set_variances` gives values.

    empty(shape, dtype): where the arrays of the slices live, e.g. in pinned memory."""
    design, partition = equations.design, equations.partition
    build = _Builder(equations, empty)
    all_groups = groups(design, unit_blocks(design, equations.real))
    couplings = []
    for k, block in enumerate(partition.blocks):
        inside = []
        for group in all_groups:
            drawn = block.first_component, block.last_component
            rows = meet(group.rows, drawn)
            if group.terms[0] != block.term or rows is None:
                continue
            for components, owner, local in _owners(equations, group.terms[1]):
                columns = meet(components, group.columns)
                if columns is None:
                    continue
                selection = Selection(group, rows, columns, owner, local)
                build.build_off_diagonal(k, selection)
                if group.terms[1] == block.term and components == drawn:
                    inside.append(selection)
        couplings.append(build.coupling(k, inside))
    build.stores.sort(key=lambda store: -store.values.size)  # the long ones first, so that threads end together
    slices = {key: tuple(of_pair) for key, of_pair in build.slices.items()}
    return RowBlocks(equations, slices, tuple(couplings), build.stores)


def _owners(equations: StructuredEquations, term: int) -> Iterator[tuple[tuple[int, int], np.ndarray, np.ndarray]]:
    """For each range of components that blocks of a term have: the range, (q,) int32 the block of each level (-1: none)
    and (q,) uint32 its number within the block, levels in model order."""
    order = equations.partition.order[term]
    of_term = [(i, b) for i, b in enumerate(equations.partition.blocks) if b.term == term]
    for components in dict.fromkeys((b.first_component, b.last_component) for _, b in of_term):
        owner, local = np.full(order.size, -1, np.int32), np.zeros(order.size, np.uint32)
        for i, b in of_term:
            if (b.first_component, b.last_component) == components:
                levels = order[b.first : b.last]
                owner[levels], local[levels] = i, np.arange(levels.size)
        yield components, owner, local


class _Builder:
    """Collects the slices, block by block and group by group."""

    def __init__(self, equations: StructuredEquations, empty: Callable[..., np.ndarray]):
        self.equations, self.empty = equations, empty
        self.slices: dict[tuple[int, int], list[BlockSlice]] = {}
        self.stores: list[Store] = []

    def build_off_diagonal(self, k: int, selection: Selection) -> None:
        """The slices of one group in the rows of block k, one per source block: of the same arrays."""
        group, rows, columns, owner, local = selection
        blocks, order = self.equations.partition.blocks, self._rows(k)
        elements, listed = np.zeros(len(blocks), np.int64), np.zeros(len(blocks), np.int64)
        walked = _count(order, group.indptr, group.indices, owner, k, elements, listed)
        if not elements.any():
            return
        first, first_row = (np.concatenate([[0], np.cumsum(sizes)]) for sizes in (elements, listed))
        first_ptr = first_row + np.arange(len(blocks) + 1)  # one more pointer than rows for each source
        n = int(first[-1])
        assert n < NOWHERE, "elements of a row block are numbered in 32 bits"
        place, indices = np.empty(walked, np.uint32), self.empty(n, np.uint32)
        row, indptr = self.empty(int(first_row[-1]), np.uint32), self.empty(int(first_ptr[-1]), np.uint64)
        _fill(
            order, group.indptr, group.indices, owner, local, k, first, first_row, first_ptr, place, indices, row,
            indptr,
        )  # fmt: skip
        values = self.empty((n, columns[1] - columns[0], rows[1] - rows[0]), self.equations.real)
        self.stores.append(Store(values, (share(self.equations.design, selection, order, place, n),)))
        for i in np.flatnonzero(elements).tolist():
            e, m, p = (slice(*a[i : i + 2]) for a in (first, first_row, first_ptr))
            offset = rows[0] - blocks[k].first_component, columns[0] - blocks[i].first_component
            block_slice = BlockSlice(row[m], indptr[p], indices[e], values[e], offset)
            self.slices.setdefault((k, i), []).append(block_slice)

    def coupling(self, k: int, inside: Sequence[Selection]) -> Coupling:
        """What the groups `inside` put between different levels of block k: the union of their sparsities."""
        block, order = self.equations.partition.blocks[k], self._rows(k)
        walks = []
        for group, _, _, owner, local in inside:
            walks.append(np.full(_length(group, order), -1, np.int64))
            _element_keys(order, group.indptr, group.indices, owner, local, k, walks[-1])
        union = np.unique(np.concatenate([w[w >= 0] for w in walks])) if walks else np.empty(0, np.int64)
        assert union.size < NOWHERE, "elements of a diagonal block are numbered in 32 bits"
        sizes = np.bincount(union // max(1, order.size), minlength=order.size)
        indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
        width = block.last_component - block.first_component
        values = np.empty((union.size, width, width), self.equations.real)
        if union.size:
            shares = []
            for selection, walk in zip(inside, walks, strict=True):
                place = np.where(walk >= 0, np.searchsorted(union, walk), NOWHERE).astype(np.uint32)
                offset = selection.rows[0] - block.first_component, selection.columns[0] - block.first_component
                shares.append(share(self.equations.design, selection, order, place, union.size, offset))
            self.stores.append(Store(values, tuple(shares)))
        return Coupling(indptr, (union % max(1, order.size)).astype(np.uint32), values)

    def _rows(self, k: int) -> np.ndarray:
        block = self.equations.partition.blocks[k]
        return self.equations.partition.order[block.term][block.first : block.last]


def _length(group: Group, order: np.ndarray) -> int:
    """Elements of the rows `order`."""
    return int(np.diff(group.indptr.view(np.int64))[order].sum())


# Walks over the rows `order` of a group: elements in the order of the rows, then of the columns.


@kernel
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


@kernel
def _fill(
    order, indptr, indices, owner, local, k, first, first_row, first_ptr, place, out_indices, out_row, out_indptr
):
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


@kernel
def _element_keys(order, indptr, indices, owner, local, k, walk):
    """walk = row * levels + column for elements between different levels of block k; others keep their -1."""
    step = 0
    for row in range(order.size):
        for e in range(indptr[order[row]], indptr[np.uint64(order[row]) + ONE]):
            if owner[indices[e]] == k and local[indices[e]] != row:
                walk[step] = row * order.size + local[indices[e]]
            step += 1
