"""Levels that a dense block S of K^-1 joins, drawn one after another: exact Gauss-Seidel at the speed of memory.

    rhs_l = -G^-1 (sum_m kappa_lm theta_m + sum_j S_lj theta_j) + sum_{r in l} W_r' R_r^-1 e_r

The levels are taken in tiles. Before a tile the sums over j of all of its levels are made at once: over the tile and
those before it from its rows of S, over those after it by what they left in the sweep before (LaterTiles). Within the
tile each level adds S_lj times what the levels before it have moved by. Then the rows of the tile, still in the cache,
are read again for what the tiles before it need in the next sweep: of memory a sweep reads one half of S.

All threads go through the tiles together (machine/barrier.py), each with the same columns in both readings; one of them
draws. The chain is that of visits one by one, up to rounding; no bit of it depends on the number of threads: sums over
stretches of columns are added up in order. Everything else of a visit is the serial engine's.
"""

from __future__ import annotations

import numpy as np
from numba import carray

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
from mmgibbs.equations.core import CoreLevels
from mmgibbs.equations.dense import DenseLevels, add_of_rows, rows_by_stretch, sum_stretches
from mmgibbs.equations.partition import Block
from mmgibbs.equations.passes import level_precisions
from mmgibbs.equations.relationships import times_row, weight
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import ModelError
from mmgibbs.machine.barrier import meet, share
from mmgibbs.machine.intrinsics import stack
from mmgibbs.machine.threads import ALONE, Threads
from mmgibbs.model.design import Design
from pedigree.kernels import kernel


def with_dense_block(design: Design) -> str | None:
    """The first term whose K^-1 has a dense block, in words: what engines say that have no sweep for it."""
    for term in design.terms:
        if term.relationship.dense is not None:
            return (
                f"{term.relationship.words} relationships (model.random.{term.name}); use engine: serial, pcg, "
                "marginal, or structured on the CPU"
            )
    return None


class DenseSweep:
    """A dense block of a partition, tile after tile.

    joint: levels are drawn whole; else the block's components of a level one by one.
    """

    def __init__(self, equations: StructuredEquations, block: Block, joint: bool, threads: Threads = ALONE):
        found = equations.dense[block.term]
        if isinstance(found, CoreLevels):
            raise ModelError(
                f"term '{equations.design.terms[block.term].name}': found an inverse by a core that is kept as "
                "products, for method: blup and engine: pcg; a sweep needed its rows (a DenseBlock of CoreBlock.values)"
            )
        assert found is not None and np.array_equal(found.positions, np.arange(block.first, block.last))
        self.dense: DenseLevels = found
        self.equations, self.block, self.joint, self.threads = equations, block, joint, threads
        self.unrolled = unrolled(equations, block.term)
        self.lists = (equations.terms[block.term], equations.relationships[block.term], equations.records)
        self.stream = stream(LOCATION, block.term)

    def renew(self, state: SweepEngine) -> None:
        """Nothing is kept that depends on the variances."""

    def __call__(self, state: SweepEngine, number: int, key: Key) -> None:
        b, i, S = self.block, self.block.term, self.dense.values
        columns, kept = self.dense.columns(state.theta[i]), state.later_tiles(i)
        later, failed = kept.begin(columns), np.full(1, -1)
        stretches = -(-len(S) // kept.stretch)
        sums, parts = np.empty((kept.tile, len(columns))), np.empty((kept.tile, len(columns), stretches))
        self.threads.together(
            sweep_tiles, kept.stretch, *self.lists, *self.unrolled, S, b.first, columns, later, sums, parts,
            state.theta[i], state.e, state.Ginv[i], state.Rinv, b.first_component, b.last_component, self.joint, number,
            self.stream, key[0], key[1], failed,
        )  # fmt: skip
        if failed[0] >= 0:
            refuse_singular(self.equations, i, int(failed[0]))
        kept.take(later, columns)


@kernel
def sweep_tiles(
    arrived, me, stretch, term, K, records, k_, T_, S, position, columns, later, sums, parts, theta, e, Ginv, Rinv,
    c_first, c_last, joint, number, stream, seed, chain, failed,
):  # fmt: skip
    """Draw the levels of S (m, m), which stand from sweep position `position` on, by all threads (machine/barrier.py).
    failed[0] becomes a position whose P is not positive definite.

    columns (k, m), theta (q, k) and e (n, T) are updated in place; so is later (k, m), for components c_first ...
    c_last - 1. sums (tile, k) and parts (tile, k, stretches) are work space that all threads share.
    """
    m, tile, threads = S.shape[0], sums.shape[0], arrived.shape[0] - 1
    for first in range(0, m, tile):
        last = min(m, first + tile)
        begin, end = share(last, me, threads, stretch)
        rows_by_stretch(S, first, last, columns, begin, end, stretch, parts)
        if not meet(arrived, me):
            return
        if me == 0:
            sum_stretches(parts, -(-last // stretch), later[:, first:last], sums)
            failed[0] = sweep_tile(
                term, K, records, k_, T_, S, position, first, sums[: last - first], columns, theta, e, Ginv, Rinv,
                c_first, c_last, joint, number, stream, seed, chain,
            )  # fmt: skip
            later[c_first:c_last, first:last] = 0.0
        if not meet(arrived, me) or failed[0] >= 0:
            return
        add_of_rows(S, first, last, columns[c_first:c_last], begin, min(first, end), stretch, later[c_first:c_last])


@kernel
def sweep_tile(
    term, K, records, k_, T_, S, position, first, sums, columns, theta, e, Ginv, Rinv, c_first, c_last, joint, number,
    stream, seed, chain,
):  # fmt: skip
    """Draw the levels of rows first ... first + len(sums) - 1 of S, which stand from sweep position `position` on.
    Returns -1, or the position whose P is not positive definite.

    sums (levels, k): sum_j S_lj theta_j as they are before the tile. columns (k, m), theta (q, k) and e (n, T) are
    updated in place.
    """
    k = len(k_) if len(k_) > 0 else theta.shape[1]
    P = carray(stack(k_, 2, 1), (k, k)) if len(k_) > 0 else np.empty((k, k))
    L = carray(stack(k_, 2, 1), (k, k)) if len(k_) > 0 else np.empty((k, k))
    row = carray(stack(k_, 1, 1), (k,)) if len(k_) > 0 else np.empty(k)
    rhs = carray(stack(k_, 1, 1), (k,)) if len(k_) > 0 else np.empty(k)
    change = carray(stack(k_, 1, 1), (k,)) if len(k_) > 0 else np.empty(k)
    n = np.uint64(sums.shape[0])
    begin = np.uint64(position) + np.uint64(first)
    normals, moved = np.empty((n, k)), np.empty((n, k))
    fill_normals(normals, number, term.code[begin : begin + n], stream, seed, chain)
    masked = term.active.shape[0] > 0
    for own in range(n):
        level, of_block = begin + own, np.uint64(first) + own
        z = normals[own]
        level_precisions(term, Rinv, level, P)
        times_row(K, level, theta, row)
        for a in range(k):
            row[a] += sums[own, a]
        for j in range(own):
            s = np.float64(S[of_block, np.uint64(first) + j])
            for a in range(k):
                row[a] += s * moved[j, a]
        kappa = weight(K, level) + np.float64(S[of_block, of_block])
        join_prior(k_, Ginv, kappa, row, P, rhs)
        from_visit, to_visit = term.visit_ptr[level], term.visit_ptr[level + np.uint64(1)]
        sum_visits(term, records, T_, from_visit, to_visit, e, Rinv, rhs)
        if masked:
            hold_inactive(term.active[level], P, rhs, z)
        if joint:
            drawn = draw_level(k_, P, L, rhs, z, change)
        else:
            drawn = draw_sites(k_, P, rhs, z, change, c_first, c_last)
        if not drawn:
            return np.int64(level)
        shift(theta, level, change)
        for a in range(k):
            moved[own, a] = change[a]
            columns[a, of_block] = theta[level, a]
        move_visits(term, from_visit, to_visit, e, change)
    return np.int64(-1)
