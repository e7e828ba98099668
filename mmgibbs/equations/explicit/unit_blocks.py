"""What the explicit form stores once: for each pair of effects the sparsity of their blocks and parts of the values.

A *scalar effect* is one component of one term: a trait t and a covariate a of an effect e. Its block of C with the
scalar effect (trait u, covariate b, effect f) is

    C_cd  = G^-1[c, d] K^-1  +  sum over missing patterns p of  R_p^-1[t, u] U^p_ab
    U^p_ab[l, m] = sum of w_r z_ra z_rb over the records r of pattern p that meet level l of e and level m of f

(K^-1 only within a term). A record that meets several levels through an effect counts once for each of its pairs of
levels, z being their weights. Only the coefficients depend on variances, so K^-1 and U^p are computed once, on the
union of their sparsities, and shared by all pairs of traits and covariates of the two effects.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.models.design import Design
from mmgibbs.models.terms import Effect, Term
from mmgibbs.pedigree.kernels import kernel

_NONE = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0)


class UnitBlock(NamedTuple):
    """Levels of e (rows) by levels of f (columns), CSR. A *contribution* is a missing pattern's part of an element."""

    indptr: np.ndarray  # (q_e + 1,) int64
    indices: np.ndarray  # (nnz,) int32, sorted within a row
    kappa: np.ndarray  # (nnz,) K^-1; no elements between terms and where a fixed term has a flat prior
    position: np.ndarray  # (m,) uint32, ascending: the stored element of each contribution
    pattern: np.ndarray  # (m,) uint16 its missing pattern
    sums: np.ndarray  # (m_e, m_f, m) U_ab^p

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in self)


Csr = tuple[np.ndarray, np.ndarray, np.ndarray]  # indptr, indices, values


def unit_blocks(design: Design, real: np.dtype) -> dict[tuple[int, int], UnitBlock]:
    """Build the blocks of all pairs of effects, numbered through the terms, with at least one stored element.

    Values are held as `real`. Sums are formed in float64. Both triangles are stored: a transposed product is slow.
    """
    effects = [(number, effect, term) for number, term in enumerate(design.terms) for effect in term.effects]
    n_patterns = len(design.patterns)
    assert n_patterns < 2**16, "missing patterns are numbered in 16 bits"
    priors = [_prior(term) for term in design.terms]
    blocks, by_pattern = {}, dict[int, np.ndarray]()
    for j, (column_term, f, _) in enumerate(effects):
        sequences: dict[
            int, np.ndarray
        ] = {}  # meetings by column, within it by pattern; for each number of levels of e
        for i, (number, e, row_term) in enumerate(effects):
            meetings, times = _meet(design, e, f), len(e.slots)
            m, q = meetings.pattern.size, design.terms[column_term].n_levels
            if m not in by_pattern:
                by_pattern[m] = _sorted_by(meetings.pattern, np.arange(m, dtype=np.uint32), n_patterns)[1]
            if times not in sequences:
                sequences[times] = _sorted_by(meetings.column, by_pattern[m], q)[1]
            prior = priors[number] if number == column_term else _NONE
            ptr, record = _sorted_by(meetings.row, sequences[times], row_term.n_levels)
            block = _unit_block(meetings, ptr, record, prior, real)
            if block.indices.size:
                blocks[i, j] = block
    return dict(sorted(blocks.items()))


class _Meetings(NamedTuple):
    """Records that meet a level through each of two effects.

    A record with several levels is listed for each pair of a level of e and one of f.
    """

    row: np.ndarray  # (m,) int32 level of e, -1: none
    column: np.ndarray  # (m,) int32 level of f
    pattern: np.ndarray  # (m,)
    weight: np.ndarray  # (m,) float64 of the record
    row_z: np.ndarray | None  # (m, m_e) float64; None: 1
    column_z: np.ndarray | None  # (m, m_f)


def _meet(design: Design, e: Effect, f: Effect) -> _Meetings:
    if not (e.has_several_levels or f.has_several_levels):
        return _Meetings(e.level, f.level, design.pattern, design.weight, e.covariates, f.covariates)
    sizes = len(e.slots), len(f.slots)
    each = lambda of_record: np.repeat(of_record, sizes[0] * sizes[1], axis=0)
    of_row = lambda of_slots: np.repeat(of_slots.reshape(-1, sizes[0]), sizes[1], axis=1).ravel()
    of_column = lambda of_slots: np.tile(of_slots.reshape(-1, sizes[1]), sizes[0]).ravel()
    z = [
        effect.covariates
        if effect.covariates is None
        else spread(effect.covariates)[:, None]
        if effect.has_several_levels
        else each(effect.covariates)
        for effect, spread in ((e, of_row), (f, of_column))
    ]
    return _Meetings(of_row(e.level), of_column(f.level), each(design.pattern), each(design.weight), *z)


def _prior(term: Term) -> Csr:
    """Return (indptr, indices, values) of the factor of the prior precision: K^-1; I if fixed, nothing if flat."""
    flat = term.kind == "fixed" and term.prior_precision is None
    return _NONE if flat else term.relationship.inverse_csr()


def _unit_block(meetings: _Meetings, ptr: np.ndarray, record: np.ndarray, prior: Csr, real: np.dtype) -> UnitBlock:
    """ptr and record: the meetings by row, within it by column and pattern."""
    prior_ptr, prior_column, prior_value = prior
    _, column, of_meeting, weight, row_z, column_z = meetings
    indptr, contributions = _union_sizes(ptr, record, column, of_meeting, prior_ptr, prior_column)
    nnz = int(indptr[-1])
    assert nnz < 2**32, "positions of stored elements are numbered in 32 bits"
    indices, kappa = np.empty(nnz, np.int32), np.zeros(nnz if prior_column.size else 0)
    position, pattern = np.empty(contributions, np.uint32), np.empty(contributions, np.uint16)
    sum_ = np.empty(contributions)
    first = np.empty(contributions + 1, np.int64)
    _union(
        ptr, record, column, of_meeting, prior_ptr, prior_column, prior_value, indices, kappa, position, pattern, first
    )
    columns = [[np.empty(0)] if z is None else [np.ascontiguousarray(c) for c in z.T] for z in (row_z, column_z)]
    sums = np.empty((len(columns[0]), len(columns[1]), contributions), real)
    for a, za in enumerate(columns[0]):
        for b, zb in enumerate(columns[1]):
            _sum_products(first, record, weight, za, zb, sum_)
            sums[a, b] = sum_
    return UnitBlock(indptr, indices, kappa.astype(real), position, pattern, sums)


@kernel
def _sorted_by(level, sequence, q):
    """Stable counting sort of the records in `sequence` by their level; records without one (-1) are left out."""
    ptr = np.zeros(q + 1, np.int64)
    for r in sequence:
        if level[r] >= 0:
            ptr[level[r] + 1] += 1
    for i in range(q):
        ptr[i + 1] += ptr[i]
    fill = ptr[:-1].copy()
    record = np.empty(ptr[q], np.uint32)
    for r in sequence:
        if level[r] >= 0:
            record[fill[level[r]]] = r
            fill[level[r]] += 1
    return ptr, record


@kernel
def _union_sizes(ptr, record, column, pattern, prior_ptr, prior_column):
    """indptr of the union of prior and records, number of contributions: a merge of two sorted lists per row."""
    q = ptr.size - 1
    indptr = np.zeros(q + 1, np.int64)
    contributions = 0
    for row in range(q):
        v, v_end = ptr[row], ptr[row + 1]
        k, k_end = (prior_ptr[row], prior_ptr[row + 1]) if prior_column.size > 0 else (0, 0)
        count = 0
        while v < v_end or k < k_end:
            from_records = v < v_end and (k == k_end or column[record[v]] <= prior_column[k])
            level = column[record[v]] if from_records else prior_column[k]
            if k < k_end and prior_column[k] == level:
                k += 1
            last = -1
            while v < v_end and column[record[v]] == level:
                if pattern[record[v]] != last:
                    last = pattern[record[v]]
                    contributions += 1
                v += 1
            count += 1
        indptr[row + 1] = indptr[row] + count
    return indptr, contributions


@kernel
def _union(
    ptr, record, column, pattern, prior_ptr, prior_column, prior_value, indices, kappa, position, patterns, first
):
    """Fill the union: columns, K^-1; for each contribution its element, its pattern and the first of its records."""
    element, contribution = 0, 0
    for row in range(ptr.size - 1):
        v, v_end = ptr[row], ptr[row + 1]
        k, k_end = (prior_ptr[row], prior_ptr[row + 1]) if prior_column.size > 0 else (0, 0)
        while v < v_end or k < k_end:
            from_records = v < v_end and (k == k_end or column[record[v]] <= prior_column[k])
            level = column[record[v]] if from_records else prior_column[k]
            indices[element] = level
            if k < k_end and prior_column[k] == level:
                kappa[element] = prior_value[k]
                k += 1
            last = -1
            while v < v_end and column[record[v]] == level:
                if pattern[record[v]] != last:
                    last = pattern[record[v]]
                    position[contribution], patterns[contribution], first[contribution] = element, last, v
                    contribution += 1
                v += 1
            element += 1
    first[contribution] = record.size


@kernel
def _sum_products(first, record, weight, za, zb, out):
    """out = sum of z_a z_b w over the records of each contribution; an empty covariate is the constant 1.

    The order of the factors makes the sums of (e, f) and (f, e) equal to the last bit.
    """
    for m in range(out.size):
        total = 0.0
        for v in range(first[m], first[m + 1]):
            r = record[v]
            product = za[r] if za.size > 0 else 1.0
            if zb.size > 0:
                product *= zb[r]
            total += product * weight[r]
        out[m] = total
