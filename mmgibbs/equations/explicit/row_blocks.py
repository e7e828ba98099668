"""The explicit equations cut into row blocks: what the hybrid engine streams.

    A_ki  for every pair of blocks k, i of a partition        (C theta = b, levels in sweep order)

C is a sum of known numbers of pairs of levels times small matrices of their components that the variances give:

    C[l, m] = K^-1[l, m] G^-1 + sum over missing patterns p of  U^p[l, m] R_p^-1
    U^p[l, m] = sum of w_r z_ra z_rb over the records r of pattern p that meet level l of an effect and m of another

A row of a `BlockSlice` is a level and one such matrix: its numbers are found once, and new variances cost only the
matrices. Covariates a and b of two effects have numbers of their own; traits share them. Only rows with elements are
listed, and levels are numbered from the first of their block. What couples the levels *within* a block (nothing in a
colour block) is one `Coupling`; the k x k block of a level with itself belongs to the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from mmgibbs.equations.partition import Block, Partition
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.models.design import Design
from mmgibbs.models.terms import Effect, Term


class Lists(NamedTuple):
    """The numbers of some levels of block k with levels of block i: a row for each level and matrix."""

    row: np.ndarray  # (m,) uint32 ascending: its level of block k
    matrix: np.ndarray  # (m,) uint16
    indptr: np.ndarray  # (m + 1,) uint64
    indices: np.ndarray  # (nnz,) uint32 levels of block i
    number: np.ndarray  # (nnz,) float64 or float32


class BlockSlice(NamedTuple):
    """Some components of A_ki: element e of row m stands for number[e] matrices[matrix[m]]' from x to r."""

    lists: Lists
    matrices: np.ndarray  # (matrices, column components, row components) float64, which the variances give
    rows: tuple[int, int]  # the first of the row components, counted from that of block k, and their distance
    columns: tuple[int, int]

    @property
    def widths(self) -> tuple[int, int]:
        """Row components, column components."""
        return self.matrices.shape[2], self.matrices.shape[1]

    @property
    def bytes(self) -> int:
        return sum(a.nbytes for a in self.lists)


class Coupling(NamedTuple):
    """A_kk between different levels; no elements where levels of the block do not meet."""

    indptr: np.ndarray  # (levels + 1,) uint64
    indices: np.ndarray  # (nnz,) uint32
    matrix: np.ndarray  # (nnz,) uint32
    number: np.ndarray  # (nnz,) float64 or float32
    matrices: np.ndarray  # (matrices, k, k) column component, row component


class Product(NamedTuple):
    """Numbers of pairs of levels, and which components they are for."""

    terms: tuple[int, int]
    rows: range  # components of the terms
    columns: range
    level: np.ndarray  # (m,) ascending sweep positions
    matrix: np.ndarray  # (m,) the missing pattern of a row of `numbers`; 0 where `of_prior`
    numbers: csr_array  # (m, q) columns in sweep order
    of_prior: bool  # times G^-1; else times R_p^-1


class Elements(NamedTuple):
    """Elements one by one."""

    row: np.ndarray
    column: np.ndarray
    matrix: np.ndarray
    number: np.ndarray


class Coefficients(NamedTuple):
    """Matrices that the variances give: elements of G^-1 of a term, or of R_p^-1 for every missing pattern p."""

    term: int | None  # None: of R
    rows: np.ndarray  # components of the term, or traits
    columns: np.ndarray
    out: np.ndarray  # (matrices, columns, rows) a view

    def write(self, inverses: Sequence[np.ndarray], by_pattern: np.ndarray) -> None:
        source = by_pattern if self.term is None else inverses[self.term][None]
        self.out[:] = source[:, self.columns[:, None], self.rows]


@dataclass
class RowBlocks:
    """A_ki of a partition, at the variances given last."""

    equations: StructuredEquations
    slices: dict[tuple[int, int], list[BlockSlice]]  # (k, i), k != i; absent: zero
    couplings: list[Coupling]
    _coefficients: list[Coefficients]

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

    def set_variances(self, inverses: Sequence[np.ndarray], by_pattern: np.ndarray) -> None:
        """The matrices at new variances: (k, k) G^-1 per term, and (patterns, T, T) R_p^-1."""
        for coefficients in self._coefficients:
            coefficients.write(inverses, by_pattern)


def row_blocks(equations: StructuredEquations, empty: Callable[..., np.ndarray] = np.empty) -> RowBlocks:
    """List every A_ki of the equations' partition; `RowBlocks.set_variances` computes the matrices.

    empty(shape, dtype): where the arrays of the slices live, e.g. in pinned memory."""
    build = _Builder(equations, empty)
    for product in _products(equations.design, equations.partition):
        build.add(product)
    couplings = [build.coupling(k) for k in range(len(equations.partition.blocks))]
    return RowBlocks(equations, build.slices, couplings, build.coefficients)


# The numbers


def _products(design: Design, partition: Partition) -> Iterator[Product]:
    """C as products, one after another: they take as much memory as C."""
    assert len(design.patterns) < 2**16, "missing patterns are numbered in 16 bits"
    position = [np.argsort(order) for order in partition.order]
    for i, term in enumerate(design.terms):
        if term.kind == "random" or term.prior_precision is not None:
            numbers, every = (
                term.relationship.inverse_matrix()[partition.order[i]][:, partition.order[i]],
                term.n_levels,
            )
            components = range(term.n_components)
            yield Product((i, i), components, components, np.arange(every), np.zeros(every, int), numbers, True)
    incidences = [list(_incidences(design, term, at)) for term, at in zip(design.terms, position, strict=True)]
    for i, of_rows in enumerate(incidences):
        for rows, W in of_rows:
            # A row of its own for the records of each missing pattern of a level.
            record = np.repeat(np.arange(design.n_records), np.diff(W.indptr))
            key = W.indices * np.int64(len(design.patterns)) + design.pattern[record]
            keys, at = np.unique(key, return_inverse=True)
            level, pattern = np.divmod(keys, len(design.patterns))
            weighted = csr_array((W.data * design.weight[record], at, W.indptr), shape=(design.n_records, keys.size))
            transposed = weighted.T.tocsr()
            for j, of_columns in enumerate(incidences):
                for columns, Z in of_columns:
                    yield Product((i, j), rows, columns, level, pattern, transposed @ Z, False)


def _incidences(design: Design, term: Term, position: np.ndarray) -> Iterator[tuple[range, csr_array]]:
    """For each covariate of each effect, yield its components and (n, q) the multipliers of the levels of a record."""
    first = 0
    for effect in term.effects:
        observed = np.any(design.patterns[:, list(effect.traits)], axis=1, keepdims=True)[design.pattern, 0]
        last = first + len(effect.traits) * effect.n_regressors
        for a in range(effect.n_regressors):
            yield range(first + a, last, effect.n_regressors), _incidence(effect, a, observed, position)
        first = last


def _incidence(effect: Effect, a: int, observed: np.ndarray, position: np.ndarray) -> csr_array:
    """Build the incidence (n, q) of covariate a of an effect, levels in sweep order; 0 for records not `observed`."""
    records, levels, values = [], [], []
    for level, z in effect.meetings():
        met = np.flatnonzero((level >= 0) & observed)
        records.append(met)
        levels.append(position[level[met]])
        values.append(np.ones(met.size) if z is None else z[met, a])
    entries = np.concatenate(values), (np.concatenate(records), np.concatenate(levels))
    return csr_array(entries, shape=(observed.size, position.size))


# The blocks


class _Builder:
    """Cuts products into slices of the blocks, and collects what couples the levels of a block."""

    def __init__(self, equations: StructuredEquations, empty: Callable[..., np.ndarray]):
        self.equations, self.empty = equations, empty
        self.slices: dict[tuple[int, int], list[BlockSlice]] = {}
        self.coefficients: list[Coefficients] = []
        self.within: list[list[tuple[Product, range, range, Elements]]] = [[] for _ in equations.partition.blocks]

    def add(self, product: Product) -> None:
        """The slices of a product: those of blocks with the same levels share their lists."""
        product.numbers.sort_indices()
        lists: dict[tuple[int, ...], Lists] = {}
        for k, rows, row_block in self._blocks(product.terms[0], product.rows):
            for i, columns, column_block in self._blocks(product.terms[1], product.columns):
                levels = row_block.first, row_block.last, column_block.first, column_block.last
                if levels not in lists:
                    lists[levels] = Lists(*map(self._move, _cut(product, self.equations.real, *levels)))
                if i == k:
                    elements = _select_coupling(lists[levels])
                    if elements.row.size:
                        self.within[k].append((product, rows, columns, elements))
                elif lists[levels].row.size:
                    matrices = self.empty((self._count(product), len(columns), len(rows)), np.float64)
                    self._fill(product, rows, columns, matrices)
                    places = _place(rows, row_block), _place(columns, column_block)
                    self.slices.setdefault((k, i), []).append(BlockSlice(lists[levels], matrices, *places))

    def _blocks(self, term: int, components: range) -> Iterator[tuple[int, range, Block]]:
        """Yield the blocks of a term that have some of these components, and these components."""
        for k, block in enumerate(self.equations.partition.blocks):
            drawn = [c for c in components if block.first_component <= c < block.last_component]
            if block.term == term and drawn:
                yield k, range(drawn[0], drawn[-1] + 1, components.step), block

    def _move(self, array: np.ndarray) -> np.ndarray:
        out = self.empty(array.shape, array.dtype)
        out[:] = array
        return out

    def _count(self, product: Product) -> int:
        return 1 if product.of_prior else len(self.equations.design.patterns)

    def _fill(self, product: Product, rows: range, columns: range, out: np.ndarray) -> None:
        """Let new variances write the matrices of these components."""
        terms = [self.equations.design.terms[i] for i in product.terms]
        if product.of_prior:
            self.coefficients.append(Coefficients(product.terms[0], np.array(rows), np.array(columns), out))
        else:
            traits = [t.component_trait[list(c)] for t, c in zip(terms, (rows, columns), strict=True)]
            self.coefficients.append(Coefficients(None, traits[0], traits[1], out))

    def coupling(self, k: int) -> Coupling:
        """Build the coupling of the levels of block k."""
        block = self.equations.partition.blocks[k]
        width, origin = block.last_component - block.first_component, block.first_component
        matrices = np.zeros((sum(self._count(product) for product, *_ in self.within[k]), width, width))
        none = np.empty(0, np.uint32)
        every, first = [Elements(none, none, none, np.empty(0, self.equations.real))], 0
        for product, rows, columns, elements in self.within[k]:
            last = first + self._count(product)
            row_part, column_part = (slice(c.start - origin, c.stop - origin, c.step) for c in (rows, columns))
            self._fill(product, rows, columns, matrices[first:last, column_part, row_part])
            every.append(elements._replace(matrix=elements.matrix + np.uint32(first)))
            first = last
        row, column, matrix, number = (np.concatenate(arrays) for arrays in zip(*every, strict=True))
        order = np.argsort(row, kind="stable")
        indptr = np.searchsorted(row[order], np.arange(block.last - block.first + 1)).astype(np.uint64)
        return Coupling(indptr, column[order], matrix[order], number[order], matrices)


def _place(components: range, block: Block) -> tuple[int, int]:
    """Return the position of the first of some components in a block, and the distance to the next one."""
    return components.start - block.first_component, components.step


def _cut(product: Product, real: np.dtype, first: int, last: int, column: int, end: int) -> Lists:
    """The levels first ... last - 1 and the columns column ... end - 1."""
    begin, stop = np.searchsorted(product.level, [first, last])
    numbers = product.numbers[begin:stop]
    inside = (numbers.indices >= column) & (numbers.indices < end)
    ends = np.append(0, np.cumsum(inside))[numbers.indptr]
    listed = np.flatnonzero(np.diff(ends))
    return Lists(
        (product.level[begin:stop][listed] - first).astype(np.uint32),
        product.matrix[begin:stop][listed].astype(np.uint16),
        np.append(0, ends[1:][listed]).astype(np.uint64),
        (numbers.indices[inside] - column).astype(np.uint32),
        numbers.data[inside].astype(real),
    )


def _select_coupling(lists: Lists) -> Elements:
    """Select the elements of C that couple different levels of a block."""
    sizes = np.diff(lists.indptr.view(np.int64)).view(np.int64)
    row = lists.row.repeat(sizes)
    kept = row != lists.indices
    return Elements(
        row[kept], lists.indices[kept], lists.matrix.repeat(sizes)[kept].astype(np.uint32), lists.number[kept]
    )
