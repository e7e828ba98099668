"""Levels of one colour side by side: their k x k systems are factored and solved in the lanes of vector instructions.

For a group of LANES levels at a time, what the levels take from relatives and records is gathered (gather.py), then

    P = kappa_ll G^-1 + data part,    P = L L',    change = L'^-1 (f L^-1 rhs + n z)

for all of them at once; then their thetas and residuals move. The arithmetic of a level is that of level.draw_level.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from mmgibbs.draws.normal import fill_normals_transposed
from mmgibbs.draws.over_relaxation import NOISE, TOWARDS_MEAN
from mmgibbs.draws.purpose import Site
from mmgibbs.engines.base import Key, SweepEngine, refuse_singular
from mmgibbs.engines.coloured.gather import (
    LANES,
    codes_to_rows,
    gather_relatives,
    gather_residuals,
    lane_lists,
    scatter_increments,
)
from mmgibbs.engines.coloured.unrolled import unroll_term
from mmgibbs.engines.serial import LevelSweep
from mmgibbs.equations.partition import Block
from mmgibbs.equations.records import sum_class_cross_products
from mmgibbs.equations.relationships import weight as diagonal
from mmgibbs.equations.structured import StructuredEquations, TermLists
from mmgibbs.machine.intrinsics import add_multiple, set_multiple, stack_array
from mmgibbs.machine.threads import Threads
from mmgibbs.pedigree.kernels import kernel


def fit_in_lanes(equations: StructuredEquations, term: int) -> bool:
    """Are the levels of a term many enough, of 1 to 4 components and traits, and without covariates or weights?"""
    lists = equations.terms[term]
    return all(unroll_term(equations, term)) and lists.covariates.shape[0] == 0 and lists.visit_weight.size == 0


class LaneCells(NamedTuple):
    """The lists of TermLists that make the data part of P."""

    trait: np.ndarray
    regressor: np.ndarray
    cell_class: np.ndarray
    cell_ptr: np.ndarray
    cell_pattern: np.ndarray
    cell_sums: np.ndarray


class LaneLevels(NamedTuple):
    """The lists of TermLists and Records that a sweep reads for each level and its records."""

    code: np.ndarray
    visit_ptr: np.ndarray
    visit_record: np.ndarray
    visit_effect: np.ndarray
    effect_first: np.ndarray
    trait: np.ndarray
    active: np.ndarray
    weight: np.ndarray  # (n,) of the records, or empty


class LanePrecisions(NamedTuple):
    """Precisions, which change with the variances."""

    Ginv: np.ndarray  # (k, k)
    Rinv: np.ndarray  # (patterns, T, T)
    parts: np.ndarray  # (classes, k, k) the data part of P, lower triangles; no classes where cells are not shared
    rows: np.ndarray  # (codes T, k) of gather.codes_to_rows


class LaneWork(NamedTuple):
    """Work space of one call, all 0 before the first one; what a call leaves in it is written over by the next."""

    normals: np.ndarray  # (k rounded up to even, LANES)
    moves: np.ndarray  # (effects LANES, T) what records move by


class LaneTables:
    """Lists that the lanes of a term read; the blocks of a term share them."""

    def __init__(self, equations: StructuredEquations, term: int, ranges: list[tuple[int, int]]):
        self.term, lists = term, equations.terms[term]
        of_term = {name: getattr(lists, name) for name in LaneLevels._fields if name != "weight"}
        self.levels = LaneLevels(**of_term, weight=equations.records.weight)
        self.cells = LaneCells(*(getattr(lists, name) for name in LaneCells._fields))
        self.lists = lane_lists(lists, equations.relationships[term], equations.records.pattern, ranges)
        self._made_for: np.ndarray | None = None

    def renew(self, state: SweepEngine) -> None:
        """The data parts of P and the rows that codes represent; made once for each R^-1, by the first block."""
        if self._made_for is not state.Rinv:
            lists = state.equations.terms[self.term]
            self.parts = parts_of_classes(lists, state.Rinv)
            self.rows = codes_to_rows(lists, state.Rinv)
            self._made_for = state.Rinv


def parts_of_classes(term: TermLists, Rinv: np.ndarray) -> np.ndarray:
    """Compute the data part of P of each class, (classes, k, k) float64, lower triangles; none without classes."""
    k = term.trait.size
    out = np.zeros((term.cell_ptr.size - 1 if term.cell_class.size else 0, k, k))
    if len(out):
        _parts_of_classes(term, Rinv, out)
    return out


@kernel
def _parts_of_classes(term, Rinv, out):
    for i in range(np.uint64(out.shape[0])):
        sum_class_cross_products(term, Rinv, i, out[i])


class LaneSweep(LevelSweep):
    """The levels of a block, of one colour, LANES at a time."""

    def __init__(
        self,
        equations: StructuredEquations,
        block: Block,
        tables: LaneTables,
        ranges: tuple[tuple[int, int], ...],
        threads: Threads,
    ):
        super().__init__(equations, block, True, ranges, threads)
        self.unrolled = unroll_term(equations, block.term)
        self.tables, self.bounds = tables, np.array(ranges, np.int64)
        self._work = self._allocate_work() if threads.count == 1 else None

    def follow(self, ranges: tuple[tuple[int, int], ...]) -> None:
        """Append the next colour of the term to this call, where one thread sweeps: nobody has to be waited for."""
        self.bounds = np.concatenate([self.bounds, np.array(ranges, np.int64)])

    def renew(self, state: SweepEngine) -> None:
        """Mark the tables as outdated, to be made when they are read next.

        Other steps of a sweep, which may be compiled alone, need none.
        """

    def __call__(self, state: SweepEngine, number: int, key: Key) -> None:
        self.tables.renew(state)
        if self.threads.count == 1:
            self._sweep(state, self.bounds, number, key)
            return
        bounds_of_ranges = np.split(self.bounds, len(self.bounds))
        self.threads([partial(self._sweep, state, bounds, number, key) for bounds in bounds_of_ranges])

    def _allocate_work(self) -> LaneWork:
        """Allocate the work arrays of one thread, or of one call where ranges may be swept at once."""
        k_, T_ = self.unrolled
        effects = self.lists[0].effect_first.size - 1
        return LaneWork(np.zeros((len(k_) + len(k_) % 2, LANES)), np.zeros((effects * LANES, len(T_))))

    def _sweep(self, state: SweepEngine, bounds: np.ndarray, number: int, key: Key) -> None:
        """Draw the levels of each of bounds (ranges, 2), one after another."""
        i, tables = self.block.term, self.tables
        failed = sweep_lanes(
            tables.levels, tables.cells, self.lists[1], tables.lists, *self.unrolled, state.rows[i], state.e,
            LanePrecisions(state.Ginv[i], state.Rinv, tables.parts, tables.rows), self._work or self._allocate_work(),
            bounds, Site(number, self.stream, *key),
        )  # fmt: skip
        if failed >= 0:
            refuse_singular(self.equations, i, failed)


@kernel
def sweep_lanes(levels, cells, K, lists, k_, T_, theta, e, precisions, work, bounds, site):
    """Draw the levels bounds[i, 0] ... bounds[i, 1] - 1 (sweep positions, all of one colour), i = 0 ..., jointly per
    level; 1 <= k, T <= 4, no covariates.

    levels: LaneLevels, cells: LaneCells, lists: gather.LaneLists, k_ and T_: of `unroll_term`, precisions:
    LanePrecisions, work: LaneWork, site: Site. bounds (ranges, 2) int64, theta (q + 1, k), its last row 0, e (n, T).
    Returns -1, or the position of the first of a group of levels of which one has a P that is not positive definite.
    """
    # Tuples of arrays are taken apart once: each mention of one in the loop would be compiled as a copy of it.
    code, visit_ptr, visit_record, visit_effect, effect_first, trait, active, weight = levels
    Ginv, Rinv, parts, rows = precisions
    z, moves = work
    number, stream, seed, chain = site
    k = len(k_)
    P = stack_array((k, k, LANES))
    P[:] = 0.0
    for lane in range(LANES):  # an identity until a level fills the lane, later that level's, which had a factor
        for a in range(k):
            P[a, a, lane] = 1.0
    parents, progeny = stack_array((LANES, k)), stack_array((LANES, k))
    data, change = stack_array((LANES, k)), stack_array((LANES, k))
    for i in range(np.uint64(bounds.shape[0])):
        first, last = np.uint64(bounds[i, 0]), np.uint64(bounds[i, 1])
        for group in range(first, last, np.uint64(LANES)):
            n = min(np.uint64(LANES), last - group)
            fill_normals_transposed(z, number, code[group : group + n], stream, seed, chain)
            progeny[:] = 0.0
            data[:] = 0.0
            gather_relatives(k_, K, lists, theta, group, n, parents, progeny)
            v, v_end = visit_ptr[group], visit_ptr[group + n]
            gather_residuals(k_, T_, visit_record, lists.visit_code, lists.visit_lane, weight, e, rows, v, v_end, data)
            gather_precisions(cells, active, K, k_, Ginv, Rinv, parts, group, n, P)
            if not draw_lanes(k_, P, Ginv, parents, progeny, data, z, change):
                return np.int64(group)
            move_thetas(k_, active, theta, group, n, change)
            spread(effect_first, trait, change, moves)
            scatter_increments(T_, visit_record, visit_effect, lists.visit_lane, e, v, v_end, moves)
    return np.int64(-1)


@kernel(forceinline=True)
def gather_precisions(cells, active, K, k_, Ginv, Rinv, parts, first, n, P):
    """P[:, :, lane] = kappa_ll G^-1 + the data part of the level, lower triangles; lanes that no level fills stay as
    they are.

    P (k, k, LANES) float64 of the levels first ... first + n - 1 (uint64); Ginv (k, k), Rinv (patterns, T, T); cells,
    active and parts: `sweep_lanes`.
    """
    k, shared = len(k_), cells.cell_class.size > 0
    unshared = stack_array((1, k, k))
    source = parts if shared else unshared
    for lane in range(n):
        level = first + lane
        kappa, of_class = diagonal(K, level), np.uint64(0)
        if shared:
            of_class = np.uint64(cells.cell_class[level])
        else:
            sum_class_cross_products(cells, Rinv, level, unshared[0])
        for a in range(k):
            for b in range(a + 1):
                P[a, b, lane] = source[of_class, a, b] + kappa * Ginv[a, b]
        if active.shape[0] > 0:  # components set to 0 leave the system
            for a in range(k):
                for b in range(a + 1):
                    if active[level, a] == 0 or active[level, b] == 0:
                        P[a, b, lane] = 1.0 if a == b else 0.0


@kernel(forceinline=True)
def draw_lanes(k_, P, Ginv, parents, progeny, data, z, change):
    """change[lane] = L'^-1 (f L^-1 rhs + n z), P = L L', rhs = data - G^-1 (parents + progeny), f and n of
    draws/over_relaxation.py. False where some P is not positive definite.

    P (k, k, LANES), lower triangles; Ginv (k, k); parents, progeny, data and change (LANES, k), z (k or more, LANES)
    standard normals; float64. The loops within a lane are unrolled, so the loop over lanes is one of vector
    instructions. 1 / l_jj is on the diagonal of L.
    """
    k, bad = len(k_), 0
    L, x = stack_array((k, k)), stack_array((k,))
    G = stack_array((k, k))
    for a in range(k):
        for b in range(k):
            G[a, b] = Ginv[a, b]
    for lane in range(LANES):
        for j in range(k):
            d = P[j, j, lane]
            for m in range(j):
                d -= L[j, m] * L[j, m]
            bad += 0 if d > 1e-12 * P[j, j, lane] else 1
            L[j, j] = 1.0 / np.sqrt(d)
            for i in range(j + 1, k):
                s = P[i, j, lane]
                for m in range(j):
                    s -= L[i, m] * L[j, m]
                L[i, j] = s * L[j, j]
        for i in range(k):
            s = data[lane, i]
            for b in range(k):
                s -= G[i, b] * (parents[lane, b] + progeny[lane, b])
            for m in range(i):
                s -= L[i, m] * x[m]
            x[i] = s * L[i, i]
        for i in range(k - 1, -1, -1):
            s = TOWARDS_MEAN * x[i] + NOISE * z[i, lane]
            for m in range(i + 1, k):
                s -= L[m, i] * x[m]
            x[i] = s * L[i, i]
        for i in range(k):
            change[lane, i] = x[i]
    return bad == 0


@kernel
def move_thetas(k_, active, theta, first, n, change):
    """theta_l += change; `change` becomes what the stored precision could hold of it, and 0 for components held at 0.

    theta (q + 1, k), change (LANES, k) float64 of the levels first ... first + n - 1 (uint64); active (q, k) uint8 or
    without rows.
    """
    old = stack_array((1, len(k_)))
    for lane in range(n):
        level = first + lane
        if active.shape[0] > 0:
            for c in range(len(k_)):
                change[lane, c] = change[lane, c] if active[level, c] else 0.0
        set_multiple(k_, old, 0, 1.0, theta, level)
        add_multiple(k_, theta, level, 1.0, change, lane)
        set_multiple(k_, change, lane, 1.0, theta, level)
        add_multiple(k_, change, lane, -1.0, old, 0)


@kernel
def spread(effect_first, trait, change, moves):
    """moves[effect LANES + lane, t(c)] = change[lane, c]: what a record moves by that meets a level through one effect.

    effect_first (effects + 1,) and trait (k,): see TermLists; change (LANES, k), moves (effects LANES, T) float64.
    """
    for effect in range(np.uint64(effect_first.size - 1)):
        block = effect * np.uint64(LANES)
        for c in range(np.uint64(effect_first[effect]), np.uint64(effect_first[effect + np.uint64(1)])):
            t = np.uint64(trait[c])
            for lane in range(np.uint64(LANES)):
                moves[block + lane, t] = change[lane, c]
