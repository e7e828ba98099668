"""Levels with endless lists of records (sex, a covariate): the list is cut into pieces of fixed length, whatever the
number of threads.

rhs_l = prior part + sum over pieces, in order, of ( sum over the piece of W_r' R_r^-1 e_r )
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mmgibbs.draws.normal import fill_normals
from mmgibbs.draws.purpose import LOCATION, stream
from mmgibbs.engines.base import Key, SweepEngine, refuse_singular
from mmgibbs.engines.visit import (
    draw_level,
    draw_sites,
    hold_inactive,
    join_prior,
    move_visits,
    shift,
    sum_visits,
    unrolled,
)
from mmgibbs.equations.partition import Block
from mmgibbs.equations.passes import level_precisions
from mmgibbs.equations.relationships import times_row, weight
from mmgibbs.equations.structured import StructuredEquations, TermLists
from mmgibbs.machine.threads import Threads
from pedigree.kernels import kernel

PIECE = 32_768  # visits in one piece: fixed, so that the order of summation does not depend on the number of threads
LONG = 2 * PIECE  # a level with more visits than this is cut into pieces


class LongSweep:
    """The levels of a block with endless lists: sum the pieces, add the sums in order, draw, and move the records
    piece by piece.
    """

    def __init__(self, equations: StructuredEquations, block: Block, joint: bool, threads: Threads):
        self.equations, self.block, self.joint, self.threads = equations, block, joint, threads
        self.term = equations.terms[block.term]
        self.levels = long_levels(self.term, block.first, block.last)
        self.pieces = cut_into_pieces(self.term, self.levels)
        self.shares = [s for s in np.array_split(np.arange(len(self.pieces)), threads.count) if s.size]
        self.unrolled, self.stream = unrolled(equations, block.term), stream(LOCATION, block.term)

    def renew(self, state: SweepEngine) -> None:
        """Nothing is kept that depends on the variances."""

    def __call__(self, state: SweepEngine, number: int, key: Key) -> None:
        b, i, term, pieces = self.block, self.block.term, self.term, self.pieces
        k, T_ = term.trait.size, self.unrolled[1]
        sums, changes = np.zeros((len(pieces), k)), np.zeros((self.levels.size, k))
        data = (term, self.equations.records, T_, state.e, state.Rinv, pieces)
        self.threads([partial(sum_pieces, *data, share, sums) for share in self.shares])
        failed = draw_long_levels(
            term, self.equations.relationships[i], state.theta[i], state.Ginv[i], state.Rinv, self.levels, pieces, sums,
            changes, b.first_component, b.last_component, self.joint, number, self.stream, key[0], key[1],
        )  # fmt: skip
        if failed >= 0:
            refuse_singular(self.equations, i, failed)
        self.threads([partial(move_pieces, term, state.e, pieces, share, changes) for share in self.shares])


def long_levels(term: TermLists, first: int, last: int) -> np.ndarray:
    """(m,) int64: the levels among first ... last - 1 whose lists are cut."""
    return first + np.flatnonzero(np.diff(term.visit_ptr.astype(np.int64))[first:last] > LONG)


def cut_into_pieces(term: TermLists, long: np.ndarray) -> np.ndarray:
    """(n, 3) int64 the pieces of the long levels: number of the level among them, first visit, last visit.

    A record that meets a level through two effects has both visits in one piece, so that no two threads write to it.
    """
    ptr = term.visit_ptr.astype(np.int64)
    pieces = []
    for n, level in enumerate(long):
        a, end = ptr[level], ptr[level + 1]
        while a < end:
            b = min(a + PIECE, end)
            while b < end and term.visit_record[b] == term.visit_record[b - 1]:
                b += 1
            pieces.append((n, a, b))
            a = b
    return np.array(pieces, np.int64).reshape(-1, 3)


@kernel
def sum_pieces(term, records, T_, e, Rinv, pieces, share, sums):
    """sums[p] = sum over the visits of piece p of W_r' R_r^-1 e_r, for the pieces in `share` (numbers of pieces).

    e (n, T), Rinv (patterns, T, T), pieces (n, 3) of `cut_into_pieces`, sums (n, k) float64.
    """
    for p in share:
        sum_visits(term, records, T_, np.uint64(pieces[p, 1]), np.uint64(pieces[p, 2]), e, Rinv, sums[p])


@kernel
def draw_long_levels(
    term, K, theta, Ginv, Rinv, levels, pieces, sums, changes, c_first, c_last, joint, number, stream, seed, chain
):
    """Draw each level from its sums and move theta; changes[n] is what theta moved by.

    theta (q, k), Ginv (k, k), Rinv (patterns, T, T); levels (m,) sweep positions; pieces (p, 3) and sums (p, k),
    changes (m, k) float64. Returns -1, or the level that failed.
    """
    k = theta.shape[1]
    P, L = np.empty((k, k)), np.empty((k, k))
    row, rhs, normals = np.empty(k), np.empty(k), np.empty((1, k))
    for n in range(levels.size):
        level = np.uint64(levels[n])
        fill_normals(normals, number, term.code[level : level + np.uint64(1)], stream, seed, chain)
        z, change = normals[0], changes[n]
        level_precisions(term, Rinv, level, P)
        times_row(K, level, theta, row)
        join_prior((), Ginv, weight(K, level), row, P, rhs)
        for p in range(pieces.shape[0]):
            if pieces[p, 0] == n:
                for a in range(k):
                    rhs[a] += sums[p, a]
        if term.active.shape[0] > 0:
            hold_inactive(term.active[level], P, rhs, z)
        if joint:
            drawn = draw_level((), P, L, rhs, z, change)
        else:
            drawn = draw_sites((), P, rhs, z, change, c_first, c_last)
        if not drawn:
            return np.int64(level)
        shift(theta, level, change)
    return np.int64(-1)


@kernel
def move_pieces(term, e, pieces, share, changes):
    """e_r -= W_r change for the visits of the pieces in `share`: e (n, T), pieces (p, 3), changes (levels, k)."""
    for p in share:
        move_visits(term, np.uint64(pieces[p, 1]), np.uint64(pieces[p, 2]), e, changes[pieces[p, 0]])
