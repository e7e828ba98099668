"""The structured engine: levels of one colour at once, across threads, on equations that are never stored as a matrix.

Levels of one colour share neither a relationship nor a record, so they may be drawn in any order: the chain is the
serial engine's for the colour partition, whatever the number of threads. Three shapes of parallel work (Mahani 2012;
docs/theory.md, "The structured sweep"):

    animals, dams            many levels, short lists     levels side by side (lanes.py)     , ranges of levels over
    threads
    contemporary groups      many levels, longer lists    the same, in ranges with about equally many visits
    sex, herd types          few levels, endless lists    on collapsed records (collapsed.py); or, with covariates,
    lists cut into
                                                          pieces of fixed length, summed in fixed order (pieces.py)
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from mmgibbs.engines.base import refuse_singular
from mmgibbs.engines.coloured.cell_classes import cell_classes, class_precisions
from mmgibbs.engines.coloured.collapsed import (
    Collapsed,
    collapse,
    move_residuals,
    of_few_levels,
    runs_of_blocks,
    sum_residuals,
)
from mmgibbs.engines.coloured.gather import LaneLists, codes_to_rows, lane_lists
from mmgibbs.engines.coloured.lanes import sweep_lanes
from mmgibbs.engines.coloured.pieces import cut_into_pieces, draw_long_levels, move_pieces, sum_pieces
from mmgibbs.engines.serial import SerialEngine, sweep_block
from mmgibbs.engines.visit import unroll
from mmgibbs.equations.partition import Block
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import ModelError
from mmgibbs.machine.threads import equal_ranges, run_at_once

SMALL = 4096  # a range of levels with less work (visits and progeny) than this is not worth a thread
RANGES_PER_THREAD = 4  # so that a thread that is held up does not hold up the others


@dataclass(frozen=True)
class Work:
    """How one block is shared out."""

    block: Block
    ranges: tuple[tuple[int, int], ...]  # levels with short lists, as ranges of about equal work
    long: np.ndarray  # (m,) int64 levels with long lists
    pieces: np.ndarray  # (pieces, 3) int64: number in `long`, first visit, last visit


class StructuredEngine(SerialEngine):
    """Coloured sweeps. State, and everything but the sweep, are the serial engine's."""

    name = "structured"

    def __init__(self, equations: StructuredEquations, update: str = "level", threads: int = 1):
        if equations.partition.kind != "colour":
            raise ModelError(
                f"sampler.partition: found '{equations.partition.kind}', needed 'colour' for the structured engine"
            )
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None
        self._classes = [cell_classes(lists) for lists in equations.terms]
        self._work = [
            collapse(equations, run) if of_few_levels(equations, run) else share_out(equations, run[0], threads)
            for run in runs_of_blocks(equations)
        ]
        self._traits = unroll(equations.design.n_traits, equations.design.n_records)
        super().__init__(equations, update)
        self._lanes = [self._lists_of_lanes(i) for i in range(len(equations.terms))]

    def _lists_of_lanes(self, i: int) -> LaneLists | None:
        """None for a term that is not swept level beside level."""
        terms, ranges = (
            self.equations.terms,
            [r for w in self._work if isinstance(w, Work) and w.block.term == i for r in w.ranges],
        )
        if not self.joint or not all(self._unrolled[i]) or terms[i].covariates.shape[0] > 0 or not ranges:
            return None
        return lane_lists(terms[i], self.equations.relationships[i], self.equations.records.pattern, ranges)

    def start(self, theta: list[np.ndarray] | None = None) -> None:
        super().start(theta)
        self._rows = [
            np.concatenate([t, np.zeros_like(t[:1])]) for t in self.theta
        ]  # the last row stands for unknown parents
        self.theta = [rows[:-1] for rows in self._rows]

    def set_variances(self, G, R) -> None:
        super().set_variances(G, R)
        terms = self.equations.terms
        self._data_parts = [
            class_precisions(lists, examples, self.Rinv)
            for lists, (_, examples) in zip(terms, self._classes, strict=True)
        ]
        self._of_codes = [codes_to_rows(lists, self.Rinv) for lists in terms]

    def sweep(self, number: int, key: tuple[int, int]) -> None:
        for work in self._work:
            if isinstance(work, Collapsed):
                self._sweep_collapsed(work, number, key)
                continue
            if work.long.size:
                self._sweep_long(work, number, key)
            if work.ranges:
                self._at_once(
                    [lambda a=a, b=b, w=work: self._sweep_range(w.block, a, b, number, key) for a, b in work.ranges]
                )

    def _sweep_range(self, block: Block, first: int, last: int, number: int, key) -> None:
        eq, i = self.equations, block.term
        lists, variances = (eq.terms[i], eq.relationships[i], eq.records), (self.Ginv[i], self.Rinv)
        counter = (number, self._streams[i], key[0], key[1])
        if self._lanes[i]:
            parts = (self._classes[i][0], self._data_parts[i], self._of_codes[i])
            state = (self._rows[i], self.e)
            failed = sweep_lanes(
                *lists, self._lanes[i], *self._unrolled[i], *state, *variances, *parts, first, last, *counter
            )
        else:
            state = (self.theta[i], self.e)
            components = (block.first_component, block.last_component, self.joint)
            failed = sweep_block(*lists, *self._unrolled[i], *state, *variances, first, last, *components, *counter)
        if failed >= 0:
            refuse_singular(eq, i, failed)

    def _sweep_long(self, work: Work, number: int, key) -> None:
        """Levels with endless lists: sum the pieces, add the sums in order, draw, and move the records piece by
        piece.
        """
        eq, i = self.equations, work.block.term
        term, T_ = eq.terms[i], self._unrolled[i][1]
        sums = np.zeros((len(work.pieces), term.trait.size))
        shares = np.array_split(np.arange(len(work.pieces)), self.threads)
        self._at_once(
            [
                lambda s=s: sum_pieces(term, eq.records, T_, self.e, self.Rinv, work.pieces, s, sums)
                for s in shares
                if s.size
            ]
        )
        changes = np.zeros((work.long.size, term.trait.size))
        failed = draw_long_levels(
            term, eq.relationships[i], self.theta[i], self.Ginv[i], self.Rinv, work.long, work.pieces, sums, changes,
            work.block.first_component, work.block.last_component, self.joint, number, self._streams[i], key[0], key[1],
        )  # fmt: skip
        if failed >= 0:
            refuse_singular(eq, i, failed)
        self._at_once([lambda s=s: move_pieces(term, self.e, work.pieces, s, changes) for s in shares if s.size])

    def _sweep_collapsed(self, work: Collapsed, number: int, key) -> None:
        """Terms of few levels: the mean residual of each class of records, the levels, and what the means moved by."""
        eq, T, classes = self.equations, self.e.shape[1], work.records.weight
        sums = np.zeros((work.bounds.size - 1, classes.size, T))
        shares = np.array_split(np.arange(len(sums)), self.threads)
        data = (work.of_record, self._traits, self.e, work.bounds)
        self._at_once([lambda s=s: sum_residuals(eq.records.weight, *data, s, sums) for s in shares if s.size])
        before = sums.sum(axis=0) / classes[:, None]
        means = before.copy()
        for b in work.blocks:
            i = b.term
            failed = sweep_block(
                work.terms[i], eq.relationships[i], work.records, (), (), self.theta[i], means, self.Ginv[i], self.Rinv,
                b.first, b.last, b.first_component, b.last_component, self.joint, number, self._streams[i], key[0],
                key[1],
            )  # fmt: skip
            if failed >= 0:
                refuse_singular(eq, i, failed)
        change = before - means
        self._at_once([lambda s=s: move_residuals(*data, s, change) for s in shares if s.size])

    def _at_once(self, calls) -> None:
        run_at_once(self._pool, self.threads, calls)


def share_out(equations: StructuredEquations, block: Block, threads: int) -> Work:
    """Long levels as pieces of fixed length; the others as ranges of about equal work."""
    long, pieces = cut_into_pieces(equations.terms[block.term], block.first, block.last)
    edges = np.concatenate([[block.first - 1], long, [block.last]])
    ranges = []
    for before, after in zip(edges[:-1], edges[1:], strict=True):
        ranges += _ranges(equations, block.term, int(before) + 1, int(after), threads)
    return Work(block, tuple(ranges), long, pieces)


def _ranges(equations: StructuredEquations, term: int, first: int, last: int, threads: int) -> list[tuple[int, int]]:
    if first >= last:
        return []
    lists, K = equations.terms[term], equations.relationships[term]
    work = np.diff(lists.visit_ptr[first : last + 1].astype(np.int64)) + 2
    if K.relative_ptr is not None:
        work = work + np.diff(K.relative_ptr[first : last + 1].astype(np.int64))
    most = 1 if threads == 1 else int(min(threads * RANGES_PER_THREAD, max(1, work.sum() // SMALL)))
    return equal_ranges(work, most, first)
