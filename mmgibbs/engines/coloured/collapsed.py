"""Neighbouring terms of few levels (sex, age of dam, an intercept) are swept on collapsed records.

To these terms, records that meet the same levels and observe the same traits are one record with the sum of their
weights and their weighted mean residual:

    w_s = sum_{r in s} w_r        e_s = sum_{r in s} w_r e_r / w_s        sweep        e_r -= e_s(before) - e_s(after)

That is two passes over millions of residuals, in the order in which they are stored, however many terms and levels
there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from mmgibbs.draws.purpose import LOCATION, Site, stream
from mmgibbs.engines.base import Key, SweepEngine, refuse_singular
from mmgibbs.engines.coloured import pieces
from mmgibbs.engines.coloured.unrolled import unroll
from mmgibbs.engines.level import select_components
from mmgibbs.engines.serial import sweep_levels
from mmgibbs.equations.partition import Block
from mmgibbs.equations.structured import Records, StructuredEquations, TermLists, visits_of_levels
from mmgibbs.machine.threads import Threads
from mmgibbs.pedigree.kernels import kernel

PLACES = 4096  # combinations of levels and patterns, at most: their sums stay in the cache
RECORDS_PER_PLACE = 8  # at least, on average


@dataclass(frozen=True)
class Collapsed:
    """Blocks, one after another in the sweep, and the records as they see them: n records fall into m classes."""

    blocks: tuple[Block, ...]
    terms: dict[int, TermLists]  # of each term: its visits are those of the m records
    records: Records  # m records: y is empty, no one reads it
    of_record: np.ndarray  # (n,) uint16 the class of each record
    bounds: (
        np.ndarray
    )  # (pieces + 1,) int64 the records are read in pieces of fixed length, whatever the number of threads


class CollapsedSweep:
    """The mean residual of each class of records, the levels of all blocks, and what the means moved by."""

    def __init__(self, equations: StructuredEquations, blocks: list[Block], joint: bool, threads: Threads):
        self.equations, self.joint, self.threads = equations, joint, threads
        self.few = collapse(equations, blocks)
        self.shares = [s for s in np.array_split(np.arange(self.few.bounds.size - 1), threads.count) if s.size]
        self.traits = unroll(equations.design.n_traits, equations.design.n_records)

    def renew(self, state: SweepEngine) -> None:
        """Nothing is kept that depends on the variances."""

    def __call__(self, state: SweepEngine, number: int, key: Key) -> None:
        eq, few, classes = self.equations, self.few, self.few.records.weight
        sums = np.zeros((few.bounds.size - 1, classes.size, state.e.shape[1]))
        data = (few.of_record, self.traits, state.e, few.bounds)
        self.threads([partial(sum_residuals, eq.records.weight, *data, share, sums) for share in self.shares])
        before = sums.sum(axis=0) / classes[:, None]
        means = before.copy()
        for b in few.blocks:
            i = b.term
            end = sweep_levels(
                few.terms[i], eq.relationships[i], few.records, state.theta[i], means, state.Ginv[i], state.Rinv,
                np.uint64(b.first), np.uint64(b.last), select_components(b, self.joint),
                Site(number, stream(LOCATION, i), *key),
            )  # fmt: skip
            if end < b.last:
                refuse_singular(eq, i, end)
        change = before - means
        self.threads([partial(move_residuals, *data, share, change) for share in self.shares])


def collapse(equations: StructuredEquations, blocks: list[Block]) -> Collapsed:
    """Records that meet the same levels of the terms of these blocks, and observe the same traits, as one."""
    records, numbers = equations.records, sorted({b.term for b in blocks})
    place, levels = records.pattern.astype(np.int64), {}
    for i in numbers:
        levels[i] = _levels_of_records(equations.terms[i], records.pattern.size)
        for column in levels[i].T:
            place = place * (equations.design.terms[i].n_levels + 1) + column + 1
    _, example, of_record = np.unique(place, return_index=True, return_inverse=True)
    weight = np.bincount(of_record, records.weight if records.weight.size else None).astype(np.float64)
    few = Records(records.y[:0], records.pattern[example], weight, example.astype(np.uint32))
    terms = {i: _with_visits(equations.terms[i], levels[i][example]) for i in numbers}
    n = records.pattern.size
    return Collapsed(
        tuple(blocks), terms, few, of_record.astype(np.uint16), np.append(np.arange(0, n, pieces.PIECE), n)
    )


def runs_of_blocks(equations: StructuredEquations) -> list[list[Block]]:
    """Group the blocks in sweep order: neighbours whose terms have few levels in total are one run."""
    runs: list[list[Block]] = []
    for block in equations.partition.blocks:
        if runs and has_few_levels(equations, [*runs[-1], block]):
            runs[-1].append(block)
        else:
            runs.append([block])
    return runs


def has_few_levels(equations: StructuredEquations, blocks: list[Block]) -> bool:
    """Are there long lists of records, and few combinations of the levels that they meet and the traits that they
    observe?
    """
    n, places = equations.records.pattern.size, len(equations.design.patterns)
    terms = {b.term for b in blocks}
    for term in (equations.design.terms[i] for i in terms):
        places *= (term.n_levels + 1) ** len(term.effects)
    plain = all(
        equations.terms[i].covariates.shape[0] == 0
        and not equations.design.terms[i].has_several_levels
        and i not in equations.design.n_scores
        for i in terms
    ) and not any(b.dense for b in blocks)
    return plain and n > pieces.LONG and places <= min(PLACES, n / RECORDS_PER_PLACE)


def _levels_of_records(term: TermLists, n: int) -> np.ndarray:
    """Find the sweep position of the level that each record meets through each effect, (n, effects) int32; -1: none."""
    levels = np.full((n, term.effect_first.size - 1), -1, np.int32)
    effect = term.visit_effect if term.visit_effect.size else np.zeros(term.visit_record.size, np.uint8)
    counts: np.ndarray = np.diff(term.visit_ptr.astype(np.int64))
    levels[term.visit_record, effect] = np.repeat(np.arange(term.code.size), counts)
    return levels


def _with_visits(term: TermLists, levels: np.ndarray) -> TermLists:
    """The lists of a term for other records, which meet `levels`; its cells stay."""
    ptr, record, effect, _ = visits_of_levels(levels, term.code.size)
    return term._replace(
        visit_ptr=ptr, visit_record=record, visit_effect=effect if term.visit_effect.size else effect[:0]
    )


@kernel
def sum_residuals(weight, of_record, T_, e, bounds, share, sums):
    """sums[p, s] = sum of w_r e_r over the records of class s in piece p, for the pieces in `share`;
    sums (pieces, m, T).
    """
    weighted = weight.size > 0
    T = len(T_) if len(T_) > 0 else e.shape[1]
    for p in share:
        for r in range(np.uint64(bounds[p]), np.uint64(bounds[p + 1])):
            w, s = np.float64(weight[r]) if weighted else 1.0, of_record[r]
            for t in range(T):
                sums[p, s, t] += w * e[r, t]


@kernel
def move_residuals(of_record, T_, e, bounds, share, change):
    """e_r -= change_s for the records of the pieces in `share`; change (m, T)."""
    T = len(T_) if len(T_) > 0 else e.shape[1]
    for p in share:
        for r in range(np.uint64(bounds[p]), np.uint64(bounds[p + 1])):
            for t in range(T):
                e[r, t] -= change[of_record[r], t]
