"""Levels that a dense block S of K^-1 joins, drawn one after another: exact Gauss-Seidel at the speed of memory.

    rhs_l = -G^-1 (sum_m kappa_lm theta_m + sum_j S_lj theta_j) + sum_{r in l} W_r' R_r^-1 e_r

The levels are taken in tiles. Before a tile the sums over j of all of its levels are made at once: over the tile and
those before it from its rows of S, over those after it by what they left in the sweep before (LaterTiles). Within the
tile each level adds S_lj times what the levels before it have moved by. Then the rows of the tile, still in the cache,
are read again for what the tiles before it need in the next sweep: of memory a sweep reads one half of S.

All threads go through the tiles together (machine/barrier.py), each with the same columns in both readings; one of them
draws. The chain is that of draws one by one, up to rounding; no bit of it depends on the number of threads: sums over
stretches of columns are added up in order. Everything else of a draw is the serial engine's.
"""

from __future__ import annotations

from typing import NamedTuple

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
from mmgibbs.equations.core import CoreLevels
from mmgibbs.equations.dense import DenseLevels, add_of_rows, rows_by_stretch, sum_stretches
from mmgibbs.equations.partition import Block
from mmgibbs.equations.records import accumulate_level_rhs, subtract_level_fit, sum_level_cross_products
from mmgibbs.equations.relationships import times_row, weight
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import ModelError
from mmgibbs.machine.barrier import meet, share
from mmgibbs.machine.threads import ALONE, Threads
from mmgibbs.models.design import Design
from mmgibbs.pedigree.kernels import kernel

ONE = np.uint64(1)


def with_dense_block(design: Design) -> str | None:
    """Describe the first term with a dense block in K^-1, for engines without a sweep for it; None: none."""
    for term in design.terms:
        if term.relationship.dense is not None:
            return (
                f"{term.relationship.words} relationships (model.random.{term.name}); use engine: serial, pcg, "
                "marginal or structured"
            )
    return None


class DenseSweep:
    """A dense block of a partition, tile after tile.

    joint: levels are drawn whole; else the block's components of a level one by one.
    """

    def __init__(self, equations: StructuredEquations, block: Block, joint: bool, threads: Threads = ALONE):
        dense = equations.dense[block.term]
        if isinstance(dense, CoreLevels):
            raise ModelError(
                f"term '{equations.design.terms[block.term].name}': found an inverse by a core that is kept as "
                "products, for method: blup and engine: pcg; a sweep needed its rows (a DenseBlock of CoreBlock.values)"
            )
        assert dense is not None and np.array_equal(dense.positions, np.arange(block.first, block.last))
        self.dense: DenseLevels = dense
        self.equations, self.block, self.threads = equations, block, threads
        self.components = select_components(block, joint)
        self.lists = (equations.terms[block.term], equations.relationships[block.term], equations.records)
        self.stream = stream(LOCATION, block.term)

    def renew(self, state: SweepEngine) -> None:
        """Nothing is kept that depends on the variances."""

    def __call__(self, state: SweepEngine, number: int, key: Key) -> None:
        b, i, S = self.block, self.block.term, self.dense.values
        columns, kept = self.dense.columns(state.theta[i]), state.dense_tiles.find(i)
        assert kept is not None, "the block is dense"
        later, end = kept.begin(columns), np.full(1, b.first, np.uint64)
        stretches = -(-len(S) // kept.stretch)
        sums, parts = np.empty((kept.tile, len(columns))), np.empty((kept.tile, len(columns), stretches))
        self.threads.together(
            sweep_tiles, kept.stretch, self.lists, S, np.uint64(b.first), TileWork(columns, later, sums, parts, end),
            state.theta[i], state.e, state.Ginv[i], state.Rinv, (b.first_component, b.last_component), self.components,
            Site(number, self.stream, *key),
        )  # fmt: skip
        if end[0] < b.last:
            refuse_singular(self.equations, i, int(end[0]))
        kept.take(later, columns)


class TileWork(NamedTuple):
    """Arrays that all threads of a sweep share, beside its state."""

    columns: np.ndarray  # (k, m) theta of the levels of S, transposed; updated in place
    later: np.ndarray  # (k, m) sums over the tiles behind that of each level; updated for the block's components
    sums: np.ndarray  # (tile, k) work space
    parts: np.ndarray  # (tile, k, stretches) work space
    end: np.ndarray  # (1,) uint64, becomes the position behind the last one that was drawn


@kernel
def sweep_tiles(
    arrived, me, stretch, lists, S, position, work, theta, e, Ginv, Rinv, block_components, components, site
):
    """Draw the levels of S (m, m), which stand from sweep position `position` on, by all threads (machine/barrier.py).

    lists: term, K and records of equations/structured.py; work: TileWork. theta (q, k) and e (n, T) are updated in
    place.
    """
    term, K, records = lists
    columns, later, sums, parts, end = work
    m, tile, threads = S.shape[0], sums.shape[0], arrived.shape[0] - 1
    c_first, c_last = block_components
    for first in range(0, m, tile):
        last = min(m, first + tile)
        begin, stop = share(last, me, threads, stretch)
        rows_by_stretch(S, first, last, columns, begin, stop, stretch, parts)
        if not meet(arrived, me):
            return
        if me == 0:
            sum_stretches(parts, -(-last // stretch), later[:, first:last], sums)
            end[0] = sweep_tile(
                term, K, records, S[first:last, first:last], position + np.uint64(first), sums, columns[:, first:last],
                theta, e, Ginv, Rinv, components, site,
            )  # fmt: skip
            later[c_first:c_last, first:last] = 0.0
        if not meet(arrived, me) or end[0] < position + np.uint64(last):
            return
        add_of_rows(S, first, last, columns[c_first:c_last], begin, min(first, stop), stretch, later[c_first:c_last])


@kernel
def sweep_tile(term, K, records, S, first, sums, columns, theta, e, Ginv, Rinv, components, site):
    """Draw the levels of a tile of S (n, n), which stand from sweep position `first` on. Returns the position behind
    the last one that was drawn.

    sums (n, k): sum_j S_lj theta_j over the whole of S as they are before the tile. columns (k, n): theta of the tile
    turned over; it, theta (q, k) and e (n, T) are updated in place.
    """
    k, n = theta.shape[1], np.uint64(S.shape[0])
    number, stream, seed, chain = site
    P, L = np.empty((k, k)), np.empty((k, k))
    row, rhs, change = np.empty(k), np.empty(k), np.empty(k)
    normals, moved = np.empty((n, k)), np.empty((n, k))
    fill_normals(normals, number, term.code[first : first + n], stream, seed, chain)
    masked = term.active.shape[0] > 0
    for i in range(n):
        level = first + i
        first_entry, last_entry = term.visit_ptr[level], term.visit_ptr[level + ONE]
        sum_level_cross_products(term, Rinv, level, P)
        times_row(K, level, theta, row)
        for a in range(k):
            row[a] += sums[i, a]
        for j in range(i):
            s = np.float64(S[i, j])
            for a in range(k):
                row[a] += s * moved[j, a]
        add_prior(Ginv, weight(K, level) + S[i, i], row, P, rhs)
        accumulate_level_rhs(term, records, first_entry, last_entry, Rinv, e, rhs)
        z = normals[i]
        if masked:
            mask_inactive(term.active[level], P, rhs, z)
        if components is None:
            is_drawn = draw_level(P, rhs, z, L, change)
        else:
            is_drawn = draw_components(components, P, rhs, z, change)
        if not is_drawn:
            return level
        apply_increment(theta, level, change)
        for a in range(k):
            moved[i, a] = change[a]
            columns[a, i] = theta[level, a]
        subtract_level_fit(term, first_entry, last_entry, change, e)
    return first + n
