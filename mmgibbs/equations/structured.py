"""The structured mixed-model equations: records, levels and relationship lists, joined here and nowhere else.

    C = sum_r W_r' R_r^-1 W_r + blockdiag(K^-1 (x) G^-1)        C theta = sum_r W_r' R_r^-1 y_r

C is never stored. For each term there is a list of the records that each level meets, the sums of weights (times
squared covariates) per level and missing pattern, which give the level's k x k block of C without a pass over its
records, and the relationship lists. Levels and records stand in *sweep order* (see partition.py); random numbers are
keyed by the *model order* kept in `code` and `record`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple
from zlib import crc32

import numpy as np

from mmgibbs.equations.cell_classes import shared_cells
from mmgibbs.equations.cells import Regressors, Visits, cells_of_levels
from mmgibbs.equations.core import CoreLevels
from mmgibbs.equations.dense import DenseLevels
from mmgibbs.equations.partition import Partition
from mmgibbs.equations.reading_order import positions, term_of_most_levels
from mmgibbs.models.design import Design
from mmgibbs.models.relationships.base import DenseBlock, Lists
from mmgibbs.models.terms import Term
from mmgibbs.pedigree.kernels import kernel


class Records(NamedTuple):
    """Arrays per record, in sweep order."""

    y: np.ndarray  # (n, T) traits; 0 where not observed
    pattern: np.ndarray  # (n,) uint8 (uint32 beyond 256 of them) missing pattern
    weight: np.ndarray  # (n,); empty where every weight is 1
    record: np.ndarray  # (n,) uint32 model-order number of the record


class TermLists(NamedTuple):
    """Lists that a sweep of one term reads: q levels with k components, m regressors, E effects, v visits of records.

    A *visit* is a record that meets the level through one effect, or through one of the slots of an effect with several
    levels per record; the visits of a level are ordered by record, then effect. A *cell* is a level and one missing
    pattern among its records, with sums over these (cells.py).
    Levels with the same cells may share one list of them (cell_classes.py): a level has the cells of its class.
    """

    trait: np.ndarray  # (k,) int64 t(c)
    regressor: np.ndarray  # (k,) int64 a(c)
    effect_first: np.ndarray  # (E + 1,) int64: components of effect e are effect_first[e] ... effect_first[e + 1] - 1
    visit_ptr: np.ndarray  # (q + 1,) uint64
    visit_record: np.ndarray  # (v,) uint32
    visit_effect: np.ndarray  # (v,) uint8; empty where E = 1
    visit_weight: np.ndarray  # (v,) of levels; empty where every weight is 1
    cell_class: np.ndarray  # (q,) uint32; empty where every level has cells of its own
    cell_ptr: np.ndarray  # (classes + 1,) uint64, or (q + 1,)
    cell_pattern: np.ndarray  # (cells,) uint32
    cell_sums: np.ndarray  # (cells, m, m)
    covariates: np.ndarray  # (n, m); no rows where every regressor is the constant 1
    active: np.ndarray  # (q, k) uint8; no rows where every component is in force
    code: np.ndarray  # (q,) int32 model-order level


@dataclass(frozen=True)
class StructuredEquations:
    design: Design
    partition: Partition
    records: Records
    terms: tuple[TermLists, ...]
    relationships: tuple[Lists, ...]
    real: np.dtype
    dense: tuple[DenseLevels | CoreLevels | None, ...]  # per term what K^-1 has beside the lists

    @property
    def n_equations(self) -> int:
        return self.design.n_equations

    @cached_property
    def order(self) -> np.ndarray:
        """Checksum of the sweep order of records and levels, () uint64.

        Arrays that are kept in that order say which.
        """
        ordered = (self.records.record, *(t.code for t in self.terms))
        return np.array(reduce(lambda sum_, a: crc32(np.ascontiguousarray(a).data, sum_), ordered, 0), np.uint64)

    @property
    def bytes(self) -> int:
        """Bytes of all arrays that a sweep may read, the state Theta and e included."""
        dense = (d for d in self.dense if d is not None)
        every: list[Iterable[object]] = [self.records, *self.terms, *self.relationships, *dense]
        arrays = [a for lists in every for a in lists if isinstance(a, np.ndarray)]
        state = self.records.y.size + self.design.n_effects
        return sum(a.nbytes for a in arrays) + state * self.real.itemsize


def structured_equations(design: Design, partition: Partition, precision: str = "double") -> StructuredEquations:
    """Join records, levels and relationships of a design in the sweep order of a partition;
    `precision` is 'double' or 'single'.
    """
    real = np.dtype(np.float32 if precision == "single" else np.float64)
    records_order = _records_order(design, partition)
    records = Records(
        np.nan_to_num(design.y[records_order]).astype(real),
        design.pattern[records_order].astype(np.uint8 if len(design.patterns) <= 256 else np.uint32),
        np.empty(0, real) if np.all(design.weight == 1.0) else design.weight[records_order].astype(real),
        records_order,
    )
    terms = tuple(
        _term_lists(term, order, records_order, records, len(design.patterns), real)
        for term, order in zip(design.terms, partition.order, strict=True)
    )
    relationships = tuple(
        t.relationship.lists(order, real) for t, order in zip(design.terms, partition.order, strict=True)
    )
    dense = tuple(_dense_levels(t, order, real) for t, order in zip(design.terms, partition.order, strict=True))
    return StructuredEquations(design, partition, records, terms, relationships, real, dense)


def estimated_bytes(design: Design, precision: str = "double") -> int:
    """Estimate the bytes of `structured_equations`, state included, from above and before anything is allocated."""
    real = 4 if precision == "single" else 8
    n, T = design.y.shape
    total = n * (2 * T * real + real + 8)  # y, e, weight, pattern and number of each record
    for term in design.terms:
        q, k, m = term.n_levels, term.n_components, term.n_regressors
        visits = sum(int(np.count_nonzero(e.level >= 0)) for e in term.effects)
        cells = min(visits, q * len(design.patterns))
        of_visit = 5 + (real if term.incidence.slot_weights.size else 0)
        total += (
            visits * of_visit + cells * (4 + m * m * real) + q * (20 + k * real) + (0 if term.active is None else q * k)
        )
        total += 0 if all(e.covariates is None for e in term.effects) else n * m * real
        total += term.relationship.list_bytes(real)
        dense = term.relationship.dense
        total += 0 if dense is None else dense.bytes(real) + 8 * dense.levels.size
    return total


def _dense_levels(term: Term, order: np.ndarray, real: np.dtype) -> DenseLevels | CoreLevels | None:
    """Build the dense block, uncopied where it is stored in this precision or a lower one."""
    dense = term.relationship.dense
    if dense is None:
        return None
    places, in_real = positions(order)[dense.levels], lambda a: a.astype(min(real, a.dtype), copy=False)
    if isinstance(dense, DenseBlock):
        return DenseLevels(places, in_real(dense.values))
    parts, of_pedigree = dense.parts, (dense.weight, dense.pedigree, dense.less)
    products = np.ascontiguousarray(in_real(parts.products))
    of_core = np.ascontiguousarray(in_real(parts.of_core))
    return CoreLevels(places, parts.core, parts.others, of_core, products, parts.left, *of_pedigree)


def _records_order(design: Design, partition: Partition) -> np.ndarray:
    """Records follow the sweep order of the term with most levels, so that its visits read the residuals as a
    stream.
    """
    if not design.terms:
        return np.arange(design.n_records, dtype=np.uint32)
    largest = term_of_most_levels(design)
    place = positions(partition.order[largest])[design.terms[largest].incidence.slots[0]]
    return np.argsort(place, kind="stable").astype(np.uint32)


def _term_lists(
    term: Term, order: np.ndarray, records_order: np.ndarray, records: Records, n_patterns: int, real: np.dtype
) -> TermLists:
    covariates = _covariates(term, records_order)
    visits = _visits(term, order, records_order)
    regressors = Regressors(term.regressor_effect, covariates)
    cells = cells_of_levels(visits, regressors, records.pattern, records.weight, n_patterns)
    k = term.n_components
    traits_per_effect = [len(e.traits) * e.n_regressors for e in term.effects]
    return TermLists(
        term.component_trait,
        term.component_regressor,
        np.concatenate([[0], np.cumsum(traits_per_effect)]).astype(np.int64),
        visits.ptr,
        visits.record,
        visits.effect if len(term.effects) > 1 else np.empty(0, np.uint8),
        visits.weight.astype(real),
        *shared_cells(cells.ptr, cells.pattern, cells.sums.astype(real)),
        covariates.astype(real),
        np.empty((0, k), np.uint8) if term.active is None else term.active[order].astype(np.uint8),
        order.astype(np.int32, copy=False),
    )


def _visits(term: Term, order: np.ndarray, records_order: np.ndarray) -> Visits:
    position = positions(order)
    position[-1] = -1  # level -1 (met by no record) stays -1
    incidence = term.incidence
    levels = np.empty((records_order.size, len(incidence.slots)), np.int32)
    for column, level in enumerate(incidence.slots):
        levels[:, column] = position[level[records_order]]
    weights = incidence.slot_weights
    in_order = weights[records_order] if len(weights) else weights
    return visits_of_levels(levels, term.n_levels, incidence.slot_effect, in_order)


def _covariates(term: Term, records_order: np.ndarray) -> np.ndarray:
    """Join the covariates of all effects side by side, (n, m); no rows where each is the constant 1."""
    covariates = [None if e.has_several_levels else e.covariates for e in term.effects]
    if all(z is None for z in covariates):
        return np.empty((0, term.n_regressors))
    columns = [np.ones((records_order.size, 1)) if z is None else z[records_order] for z in covariates]
    return np.concatenate(columns, axis=1)


def visits_of_levels(
    levels: np.ndarray, q: int, effects: np.ndarray | None = None, weights: np.ndarray | None = None
) -> Visits:
    """Counting sort of (record, slot) by level; levels (n, slots) int32, -1 for none.

    effects (slots,): the effect of each slot, without it one effect each; weights (n, slots) of levels, or no rows.
    """
    ptr = np.zeros(q + 1, np.uint64)
    for level in levels.T:
        ptr[1:] += np.bincount(level[level >= 0], minlength=q).astype(np.uint64)
    np.cumsum(ptr, out=ptr)
    effects = np.arange(levels.shape[1]) if effects is None else effects
    weights = np.empty((0, levels.shape[1])) if weights is None else weights
    record, effect = np.empty(int(ptr[-1]), np.uint32), np.empty(int(ptr[-1]), np.uint8)
    weight = np.empty(record.size if len(weights) else 0)
    _sort_visits(levels, effects, weights, ptr[:-1].copy(), record, effect, weight)
    return Visits(ptr, record, effect, weight)


@kernel
def _sort_visits(levels, effects, weights, fill, record, effect, weight):
    """fill (q,): where the first visit of each level goes."""
    n, n_slots = levels.shape
    for r in range(n):
        for slot in range(n_slots):
            if levels[r, slot] >= 0:
                place = fill[levels[r, slot]]
                record[place], effect[place] = r, effects[slot]
                if weight.size > 0:
                    weight[place] = weights[r, slot]
                fill[levels[r, slot]] += np.uint64(1)
