"""The structured engine: levels of one colour at once, across threads, on equations that are never stored as a matrix.

Levels of one colour share neither a relationship nor a record, so they may be drawn in any order: the chain is the
serial engine's for the colour partition, whatever the number of threads. Three shapes of parallel work (Mahani 2012;
docs/explanation/theory.md, "The structured sweep"):

    animals, dams            many levels, short lists     levels side by side (lanes.py), ranges of levels over threads
    contemporary groups      many levels, longer lists    the same, in ranges with about equally many visits
    sex, herd types          few levels, endless lists    on collapsed records (collapsed.py); or, with covariates,
                                                          lists cut into pieces of fixed length, summed in fixed
                                                          order (pieces.py)
    genotyped animals        all related to all           one after another, whose sums over the others are shared
                                                          over threads (../dense.py)
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mmgibbs.draws.purpose import AUGMENT, Site, stream
from mmgibbs.engines.augment import Sums
from mmgibbs.engines.base import BlockSweep, Key, SweepEngine
from mmgibbs.engines.coloured.collapsed import CollapsedSweep, has_few_levels, runs_of_blocks
from mmgibbs.engines.coloured.lanes import LaneSweep, LaneTables, fit_in_lanes
from mmgibbs.engines.coloured.pieces import LongSweep, long_levels
from mmgibbs.engines.coloured.record_rows import RowScaling
from mmgibbs.engines.coloured.squares import SQUARES, augmented_products, quadratic_of_rows
from mmgibbs.engines.coloured.unrolled import unroll, unroll_term
from mmgibbs.engines.costs import SweepCost
from mmgibbs.engines.dense import DenseSweep
from mmgibbs.engines.scores import ScoreSweep
from mmgibbs.engines.serial import LevelSweep
from mmgibbs.equations.partition import Block
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import ModelError
from mmgibbs.machine.threads import Threads, equal_ranges

SMALL = 4096  # a range of levels with less work (visits and progeny) than this is not worth a thread
RANGES_PER_THREAD = 4  # so that a thread that is held up does not hold up the others
Ranges = tuple[tuple[int, int], ...]


class StructuredEngine(SweepEngine):
    """Coloured sweeps. State, and everything but the sweep, are the serial engine's."""

    name = "structured"
    options = ("update", "threads")
    sweep_cost = SweepCost(0.057, 0.138, 0.0053, 2.6e-6, 1.5e-5, 0.5e-5)

    def __init__(self, equations: StructuredEquations, update: str = "level", threads: int = 1):
        refuse_other_partitions(equations)
        self.threads = Threads(threads)
        super().__init__(equations, block_sweeps(equations, update == "level", self.threads))
        self._scaling = RowScaling(equations, self.rows, self.threads)

    def _quadratic_form_of_lists(self, term: int) -> np.ndarray:
        """theta' K^-1 theta of a term, over threads where its lists have an unrolled kernel."""
        K, k_ = self.equations.relationships[term], unroll_term(self.equations, term)[0]
        if not k_ or type(K) not in SQUARES:
            return super()._quadratic_form_of_lists(term)
        return quadratic_of_rows(K, k_, self.rows[term], self.threads)

    def _sums_of_residuals(self, number: int, key: Key) -> Sums | None:
        """The pass that fills in residuals of missing traits and adds up their products; None: too many traits."""
        T_ = unroll(self.e.shape[1], len(self.e))
        data, site = (self.equations.records, self.e, T_), Site(number, stream(AUGMENT, 0), *key)
        return partial(augmented_products, *data, site=site, threads=self.threads) if T_ else None


def refuse_other_partitions(equations: StructuredEquations) -> None:
    if equations.partition.kind != "colour":
        raise ModelError(
            f"sampler.partition: found '{equations.partition.kind}', which cannot be combined with engine: structured; "
            "needed colour"
        )


def block_sweeps(equations: StructuredEquations, joint: bool, threads: Threads) -> list[BlockSweep]:
    """Return the sweep of each block, in the order of the partition (see the module)."""
    runs = runs_of_blocks(equations)
    is_of_scores = lambda run: run[0].term in equations.design.n_scores
    ranges = {
        block: ranges_of_short_levels(equations, block, threads.count)
        for run in runs
        if not (run[0].dense or has_few_levels(equations, run) or is_of_scores(run))
        for block in run
    }
    lanes = {
        i: LaneTables(equations, i, [r for block in ranges if block.term == i for r in ranges[block]])
        for i in {block.term for block in ranges if ranges[block]}
        if joint and fit_in_lanes(equations, i)
    }
    sweeps: list[BlockSweep] = []
    for run in runs:
        if is_of_scores(run):
            sweeps += [ScoreSweep(equations, block, threads) for block in run]
            continue
        if run[0].dense:
            sweeps.append(DenseSweep(equations, run[0], joint, threads))
            continue
        if run[0] not in ranges:
            sweeps.append(CollapsedSweep(equations, run, joint, threads))
            continue
        (block,) = run
        if long_levels(equations.terms[block.term], block.first, block.last).size:
            sweeps.append(LongSweep(equations, block, joint, threads))
        if ranges[block] and block.term in lanes:
            before = sweeps[-1] if sweeps and threads.count == 1 else None
            if isinstance(before, LaneSweep) and before.block.term == block.term:
                before.follow(ranges[block])
            else:
                sweeps.append(LaneSweep(equations, block, lanes[block.term], ranges[block], threads))
        elif ranges[block]:
            sweeps.append(LevelSweep(equations, block, joint, ranges[block], threads))
    return sweeps


def ranges_of_short_levels(equations: StructuredEquations, block: Block, threads: int) -> Ranges:
    """The levels between the long ones, as ranges of about equal work."""
    edges = [block.first - 1, *long_levels(equations.terms[block.term], block.first, block.last), block.last]
    return tuple(
        r
        for before, after in zip(edges[:-1], edges[1:], strict=True)
        for r in _ranges(equations, block.term, int(before) + 1, int(after), threads)
    )


def _ranges(equations: StructuredEquations, term: int, first: int, last: int, threads: int) -> list[tuple[int, int]]:
    """Divide a colour into pieces (first, last) with about the same work, some for each thread."""
    if first >= last:
        return []
    lists, K = equations.terms[term], equations.relationships[term]
    work = np.diff(lists.visit_ptr[first : last + 1].astype(np.int64)) + 2
    if K.relative_ptr is not None:
        work = work + np.diff(K.relative_ptr[first : last + 1].astype(np.int64))
    most = 1 if threads == 1 else int(min(threads * RANGES_PER_THREAD, max(1, work.sum() // SMALL)))
    return equal_ranges(work, most, first)
