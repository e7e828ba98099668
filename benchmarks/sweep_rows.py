"""The explicit equations as one CSR matrix in sweep order, scalar by scalar: what a classic single-site sampler reads.

    C theta = b,    row n holds C_nm for every m != n that can differ from 0;   the diagonal stands apart

Rows follow the partition: block by block, level by level, component by component. Components set to 0 keep their row,
which is empty. An element is stored where K^-1 joins the two levels of a random term or some record observes both
traits, whatever the variances are, so new variances rewrite `values` in one pass and nothing else. Within a row columns
run by pair of effects, then level, then component, so that the components of one level are neighbours: a gather of k of
them touches one cache line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mmgibbs.equations.base import precisions
from mmgibbs.equations.explicit.unit_blocks import UnitBlock, unit_blocks
from mmgibbs.equations.partition import Block, Partition
from mmgibbs.equations.records import compute_term_rhs
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.models.design import Design
from mmgibbs.pedigree.kernels import kernel

HELD = np.uint32(0xFFFFFFFF)  # no row: set to 0
ZERO, ONE = np.uint64(0), np.uint64(1)


@dataclass
class SweepRows:
    """CSR without the diagonal, rows and columns in sweep order."""

    equations: StructuredEquations
    first: np.ndarray  # (blocks + 1,) int64 the first row of each block
    indptr: np.ndarray  # (n + 1,) uint64
    indices: np.ndarray  # (nnz,) uint32
    values: np.ndarray  # (nnz,) float64 or float32
    diagonal: np.ndarray  # (n,) float64; 0 where set to 0
    right_hand_side: np.ndarray  # (n,) float64
    _pairs: list[_Pair]

    @property
    def nonzeros(self) -> int:
        """Stored elements, the diagonal of the equations in force included."""
        return self.indices.size + self.equations.n_equations

    @property
    def bytes(self) -> int:
        return sum(a.nbytes for a in (self.indptr, self.indices, self.values, self.diagonal, self.right_hand_side))

    def set_variances(self, G: Sequence[np.ndarray | None], R: np.ndarray, y: np.ndarray | None = None) -> None:
        """Values, diagonal and right-hand side at new variances; the pattern stays. y: (n, T), else the records'."""
        inverses, by_pattern = precisions(self.equations.design, G, R)
        fill = self.indptr[:-1].copy()
        self.diagonal[:] = 0.0
        for pair in self._pairs:
            pair.write(inverses, by_pattern, fill, self.values, self.diagonal)
        self.set_right_hand_side(by_pattern, self.equations.records.y if y is None else y)

    def set_right_hand_side(self, by_pattern: np.ndarray, y: np.ndarray) -> None:
        """b = W' R^-1 y; by_pattern: (patterns, T, T) R_p^-1."""
        sums = [compute_term_rhs(self.equations, i, by_pattern, y) for i in range(len(self.equations.terms))]
        self.right_hand_side[:] = in_blocks(self.equations.partition, sums, self.first)


def in_blocks(partition: Partition, theta: list[np.ndarray], first: np.ndarray) -> np.ndarray:
    """One vector over the rows from one (q, k) array per term in sweep order."""
    out = np.empty(first[-1], theta[0].dtype if theta else np.float64)
    for block, a, b in zip(partition.blocks, first[:-1], first[1:], strict=True):
        out[a:b] = theta[block.term][block.first : block.last, block.first_component : block.last_component].ravel()
    return out


def per_term(design: Design, partition: Partition, x: np.ndarray, first: np.ndarray) -> list[np.ndarray]:
    """The inverse of `in_blocks`."""
    out = [np.empty((t.n_levels, t.n_components), x.dtype) for t in design.terms]
    for block, a, b in zip(partition.blocks, first[:-1], first[1:], strict=True):
        part = out[block.term][block.first : block.last, block.first_component : block.last_component]
        part[...] = x[a:b].reshape(part.shape)
    return out


def first_rows(blocks: tuple[Block, ...]) -> np.ndarray:
    return np.cumsum([0] + [b.n_equations for b in blocks], dtype=np.int64)


@dataclass(frozen=True)
class _Pair:
    """A pair of effects and what a walk over its unit block needs."""

    unit: UnitBlock
    contribution_ptr: np.ndarray  # (q_e + 1,) uint64: the first contribution of each row
    row: np.ndarray  # (q_e, k_e) uint32 sweep row of each component; HELD: set to 0
    column: np.ndarray  # (q_f, k_f) uint32
    both: np.ndarray  # (patterns, k_e, k_f) bool: the pattern observes both traits
    terms: tuple[int, int]
    components: tuple[np.ndarray, np.ndarray]
    traits: tuple[np.ndarray, np.ndarray]
    covariates: tuple[np.ndarray, np.ndarray]

    @property
    def walk(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        unit = self.unit
        return (
            unit.indptr.view(np.uint64),
            unit.indices.view(np.uint32),
            unit.kappa,
            self.contribution_ptr,
            unit.position,
            unit.pattern,
        )

    def write(
        self,
        inverses: list[np.ndarray],
        by_pattern: np.ndarray,
        fill: np.ndarray,
        values: np.ndarray,
        diagonal: np.ndarray,
    ) -> None:
        (i, j), (c, d), (t, u), (a, b) = self.terms, self.components, self.traits, self.covariates
        prior = inverses[i][np.ix_(c, d)] if i == j else np.zeros((c.size, d.size))
        of_records = np.ascontiguousarray(by_pattern[:, t][:, :, u])
        _write_values(
            *self.walk, self.unit.sums, self.row, self.column, self.both, prior, of_records,
            a.view(np.uint64), b.view(np.uint64), fill, values, diagonal,
        )  # fmt: skip


def sweep_rows(equations: StructuredEquations) -> SweepRows:
    """The pattern of C in the sweep order of the equations' partition; `SweepRows.set_variances` gives it values."""
    design, part = equations.design, equations.partition
    first = first_rows(part.blocks)
    assert first[-1] < HELD, "rows are numbered in 32 bits"
    number = _row_numbers(design, part, first)
    pairs = list(_pairs(design, unit_blocks(design, equations.real), number))
    sizes = np.zeros(int(first[-1]) + 1, np.uint64)
    for p in pairs:
        _count(*p.walk, p.row, p.column, p.both, sizes)
    indptr = np.cumsum(sizes, dtype=np.uint64)
    indices, fill = np.empty(int(indptr[-1]), np.uint32), indptr[:-1].copy()
    for p in pairs:
        _write_columns(*p.walk, p.row, p.column, p.both, fill, indices)
    n = int(first[-1])
    return SweepRows(
        equations, first, indptr, indices, np.zeros(indices.size, equations.real), np.zeros(n), np.zeros(n), pairs
    )


def _row_numbers(design: Design, part: Partition, first: np.ndarray) -> list[np.ndarray]:
    """Per term (q, k) uint32: the sweep row of each component of each level, levels in model order;
    HELD where set to 0.
    """
    in_sweep_order = per_term(design, part, np.arange(first[-1], dtype=np.uint32), first)
    out = []
    for term, order, rows in zip(design.terms, part.order, in_sweep_order, strict=True):
        numbers = np.empty_like(rows)
        numbers[order] = rows
        out.append(numbers if term.active is None else np.where(term.active, numbers, HELD))
    return out


def _pairs(design: Design, units: dict[tuple[int, int], UnitBlock], number: list[np.ndarray]) -> Iterator[_Pair]:
    effects = [(i, e) for i, term in enumerate(design.terms) for e in range(len(term.effects))]
    for (row, column), unit in units.items():
        terms, own = zip(effects[row], effects[column], strict=True)
        c, d = (np.flatnonzero(design.terms[i].component_effect == e) for i, e in zip(terms, own, strict=True))
        components = c, d
        t, u = (design.terms[i].component_trait[of] for i, of in zip(terms, components, strict=True))
        traits = t, u
        a, b = (
            (design.terms[i].component_regressor - np.flatnonzero(design.terms[i].regressor_effect == e)[0])[of]
            for i, e, of in zip(terms, own, components, strict=True)
        )
        both = np.ascontiguousarray(
            design.patterns[:, traits[0]][:, :, None] & design.patterns[:, traits[1]][:, None, :]
        )
        rows, columns = (np.ascontiguousarray(number[i][:, of]) for i, of in zip(terms, components, strict=True))
        ptr = np.searchsorted(unit.position, unit.indptr).astype(np.uint64)
        yield _Pair(unit, ptr, rows, columns, both, terms, components, traits, (a, b))


# Three walks over a unit block, in the same order: sizes of rows, columns, values. All numbers are unsigned (see
# classic.py).


@kernel(forceinline=True)
def _is_stored(joined, pattern, m, m_end, both, c, d):
    """Can an element of components c and d differ from 0? joined: by K^-1; its contributions are m ... m_end - 1."""
    if joined:
        return True
    for v in range(m, m_end):
        if both[pattern[v], c, d]:
            return True
    return False


@kernel(forceinline=True)
def _end(position, e, m, last):
    """The contribution after those of element e, which begin at m."""
    while m < last and position[m] == e:
        m += ONE
    return m


@kernel
def _count(indptr, indices, kappa, contribution_ptr, position, pattern, row, column, both, sizes):
    """sizes[row + 1] += stored elements off the diagonal."""
    for level in range(np.uint64(indptr.size - 1)):
        for c in range(np.uint64(row.shape[1])):
            here, m, n = row[level, c], contribution_ptr[level], ZERO
            if here == HELD:
                continue
            for e in range(indptr[level], indptr[level + ONE]):
                m_end = _end(position, e, m, contribution_ptr[level + ONE])
                joined = kappa.size > 0 and kappa[e] != 0.0
                for d in range(np.uint64(column.shape[1])):
                    there = column[indices[e], d]
                    if there != HELD and there != here and _is_stored(joined, pattern, m, m_end, both, c, d):
                        n += ONE
                m = m_end
            sizes[np.uint64(here) + ONE] += n


@kernel
def _write_columns(indptr, indices, kappa, contribution_ptr, position, pattern, row, column, both, fill, out):
    """Columns of the stored elements; fill: (n,) uint64 the next place of each row."""
    for level in range(np.uint64(indptr.size - 1)):
        for c in range(np.uint64(row.shape[1])):
            here, m = row[level, c], contribution_ptr[level]
            if here == HELD:
                continue
            place = fill[here]
            for e in range(indptr[level], indptr[level + ONE]):
                m_end = _end(position, e, m, contribution_ptr[level + ONE])
                joined = kappa.size > 0 and kappa[e] != 0.0
                for d in range(np.uint64(column.shape[1])):
                    there = column[indices[e], d]
                    if there != HELD and there != here and _is_stored(joined, pattern, m, m_end, both, c, d):
                        out[place] = there
                        place += ONE
                m = m_end
            fill[here] = place


@kernel
def _write_values(
    indptr, indices, kappa, contribution_ptr, position, pattern, sums, row, column, both, prior, of_records, a, b,
    fill, out, diagonal,
):  # fmt: skip
    """C_cd = prior_cd kappa + sum over the element's patterns p of of_records[p, c, d] U^p_ab;
    the diagonal is added to.
    """
    for level in range(np.uint64(indptr.size - 1)):
        for c in range(np.uint64(row.shape[1])):
            here, m = row[level, c], contribution_ptr[level]
            if here == HELD:
                continue
            place = fill[here]
            for e in range(indptr[level], indptr[level + ONE]):
                m_end = _end(position, e, m, contribution_ptr[level + ONE])
                shared = np.float64(kappa[e]) if kappa.size > 0 else 0.0
                for d in range(np.uint64(column.shape[1])):
                    there = column[indices[e], d]
                    if there == HELD or not _is_stored(shared != 0.0, pattern, m, m_end, both, c, d):
                        continue
                    value = prior[c, d] * shared
                    for v in range(m, m_end):
                        value += of_records[pattern[v], c, d] * sums[a[c], b[d], v]
                    if there == here:
                        diagonal[here] += value
                    else:
                        out[place] = value
                        place += ONE
                m = m_end
            fill[here] = place
