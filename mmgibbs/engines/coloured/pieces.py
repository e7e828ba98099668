"""Levels with endless lists of records (sex, a covariate): the list is cut into pieces of fixed length, whatever the
number of threads.

rhs_l = prior part + sum over pieces, in order, of ( sum over the piece of W_r' R_r^-1 e_r )
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mmgibbs.draws.normal import fill_normals
from mmgibbs.draws.purpose import LOCATION, Site, stream
from mmgibbs.engines.base import Key, SweepEngine, refuse_singular
from mmgibbs.engines.level import (
    add_prior,
    apply_increment,
    draw_components,
    draw_level,
    mask_inactive,
    select_components,
)
from mmgibbs.equations.partition import Block
from mmgibbs.equations.records import accumulate_level_rhs, subtract_level_fit, sum_level_cross_products
from mmgibbs.equations.relationships import times_row, weight
from mmgibbs.equations.structured import StructuredEquations, TermLists
from mmgibbs.machine.threads import Threads
from mmgibbs.pedigree.kernels import kernel

PIECE = 32_768  # entries in one piece: fixed, so that the order of summation does not depend on the number of threads
ONE = np.uint64(1)
LONG = 2 * PIECE  # a level with more entries than this is cut into pieces


class LongSweep:
    """The levels of a block with endless lists: sum the pieces, add the sums in order, draw, and move the records
    piece by piece.
    """

    def __init__(self, equations: StructuredEquations, block: Block, joint: bool, threads: Threads):
        self.equations, self.block, self.threads = equations, block, threads
        self.components = select_components(block, joint)
        self.term = equations.terms[block.term]
        self.levels = long_levels(self.term, block.first, block.last)
        self.pieces = cut_into_pieces(self.term, self.levels)
        self.shares = [s for s in np.array_split(np.arange(len(self.pieces)), threads.count) if s.size]
        self.stream = stream(LOCATION, block.term)

    def renew(self, state: SweepEngine) -> None:
        """Nothing is kept that depends on the variances."""

    def __call__(self, state: SweepEngine, number: int, key: Key) -> None:
        i, term, pieces = self.block.term, self.term, self.pieces
        sums, changes = np.zeros((len(pieces), term.trait.size)), np.zeros((self.levels.size, term.trait.size))
        data = (term, self.equations.records, state.e, state.Rinv, pieces)
        self.threads([partial(sum_pieces, *data, share, sums) for share in self.shares])
        end = draw_long_levels(
            term, self.equations.relationships[i], state.theta[i], state.Ginv[i], state.Rinv, self.levels, pieces, sums,
            changes, self.components, Site(number, self.stream, *key),
        )  # fmt: skip
        if end < self.levels.size:
            refuse_singular(self.equations, i, int(self.levels[end]))
        self.threads([partial(move_pieces, term, state.e, pieces, share, changes) for share in self.shares])


def long_levels(term: TermLists, first: int, last: int) -> np.ndarray:
    """List the levels among first ... last - 1 whose lists are cut, (m,) int64."""
    return first + np.flatnonzero(np.diff(term.visit_ptr.astype(np.int64))[first:last] > LONG)


def cut_into_pieces(term: TermLists, long: np.ndarray) -> np.ndarray:
    """Cut the long levels into pieces (n, 3) int64: number of the level among them, first visit, last visit.

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
def sum_pieces(term, records, e, Rinv, pieces, share, sums):
    """sums[p] = sum over the entries of piece p of W_r' R_r^-1 e_r, for the pieces in `share` (numbers of pieces).

    e (n, T), Rinv (patterns, T, T), pieces (n, 3) of `cut_into_pieces`, sums (n, k) float64.
    """
    for p in share:
        accumulate_level_rhs(term, records, np.uint64(pieces[p, 1]), np.uint64(pieces[p, 2]), Rinv, e, sums[p])


@kernel
def draw_long_levels(term, K, theta, Ginv, Rinv, levels, pieces, sums, changes, components, site):
    """Draw each level from its sums and move theta; changes[n] is what theta moved by.

    theta (q, k), Ginv (k, k), Rinv (patterns, T, T); levels (m,) sweep positions; pieces (p, 3) and sums (p, k),
    changes (m, k) float64. Returns m, or the number of the level whose P is not positive definite.
    """
    k, (number, stream, seed, chain) = theta.shape[1], site
    P, L = np.empty((k, k)), np.empty((k, k))
    row, rhs, normals = np.empty(k), np.empty(k), np.empty((1, k))
    masked = term.active.shape[0] > 0
    for n in range(levels.size):
        level = np.uint64(levels[n])
        fill_normals(normals, number, term.code[level : level + ONE], stream, seed, chain)
        z, change = normals[0], changes[n]
        sum_level_cross_products(term, Rinv, level, P)
        times_row(K, level, theta, row)
        add_prior(Ginv, weight(K, level), row, P, rhs)
        for p in range(pieces.shape[0]):
            if pieces[p, 0] == n:
                for a in range(k):
                    rhs[a] += sums[p, a]
        if masked:
            mask_inactive(term.active[level], P, rhs, z)
        if components is None:
            is_drawn = draw_level(P, rhs, z, L, change)
        else:
            is_drawn = draw_components(components, P, rhs, z, change)
        if not is_drawn:
            return n
        apply_increment(theta, level, change)
    return levels.size


@kernel
def move_pieces(term, e, pieces, share, changes):
    """e_r -= W_r change for the entries of the pieces in `share`: e (n, T), pieces (p, 3), changes (levels, k)."""
    for p in share:
        subtract_level_fit(term, np.uint64(pieces[p, 1]), np.uint64(pieces[p, 2]), changes[pieces[p, 0]], e)
