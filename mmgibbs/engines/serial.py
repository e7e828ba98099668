"""The serial engine: the structured equations in plain compiled loops. This is the truth that the other engines are
held to.

One visit of level l draws its k effects given everything else (docs/explanation/theory.md, "Full conditionals"). With

    P   = kappa_ll G^-1 + sum_{r in l} W_r' R_r^-1 W_r
    rhs = -G^-1 sum_m kappa_lm theta_m + sum_{r in l} W_r' R_r^-1 e_r          (m = l included, e the current residual)

the change of theta_l is N(P^-1 rhs, P^-1): `update="site"` draws its k elements one after another, `update="level"` all
of it through the Cholesky factor of P, over-relaxed (draws/over_relaxation.py). Then e_r -= W_r (change) for the
level's records.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import carray

from mmgibbs.draws.normal import fill_normals
from mmgibbs.draws.purpose import LOCATION, stream
from mmgibbs.engines.base import Key, SweepEngine, refuse_singular
from mmgibbs.engines.dense import DenseSweep
from mmgibbs.engines.visit import (
    AHEAD,
    draw_level,
    draw_sites,
    hold_inactive,
    join_prior,
    move_visits,
    prefetch_visit,
    shift,
    sum_visits,
    unrolled,
)
from mmgibbs.equations.partition import Block
from mmgibbs.equations.passes import level_precisions
from mmgibbs.equations.relationships import times_row, weight
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.intrinsics import stack
from mmgibbs.machine.threads import ALONE, Threads
from pedigree.kernels import kernel

CHUNK = 1024  # levels whose normals are drawn together, so that drawing them vectorises


class SerialEngine(SweepEngine):
    """Serial Gibbs sweeps over structured equations, block after block of their partition."""

    name = "serial"
    options = ("update", "threads")

    def __init__(self, equations: StructuredEquations, update: str = "level", threads: int = 1):
        """threads: of steps beside the sweep, such as SNP effects; the levels are drawn one after another."""
        self.threads = Threads(threads)
        super().__init__(
            equations,
            (
                (DenseSweep if b.dense else LevelSweep)(equations, b, update == "level")
                for b in equations.partition.blocks
            ),
        )


class LevelSweep:
    """The levels of a block one after another, in ranges that may run at once where the levels share nothing.

    joint: levels are drawn whole; else the block's components of a level one by one.
    """

    def __init__(
        self,
        equations: StructuredEquations,
        block: Block,
        joint: bool,
        ranges: tuple[tuple[int, int], ...] | None = None,
        threads: Threads = ALONE,
    ):
        self.equations, self.block, self.threads = equations, block, threads
        self.sites = component_ranges(block, joint)
        self.ranges = ((block.first, block.last),) if ranges is None else ranges
        self.unrolled = unrolled(equations, block.term)
        self.lists = (equations.terms[block.term], equations.relationships[block.term], equations.records)
        self.stream = stream(LOCATION, block.term)

    def renew(self, state: SweepEngine) -> None:
        """Nothing is kept that depends on the variances."""

    def __call__(self, state: SweepEngine, number: int, key: Key) -> None:
        self.threads([partial(self.sweep_range, state, first, last, number, key) for first, last in self.ranges])

    def sweep_range(self, state: SweepEngine, first: int, last: int, number: int, key: Key) -> None:
        """Draw the levels first ... last - 1 (sweep positions)."""
        i = self.block.term
        failed = sweep_block(
            *self.lists, *self.unrolled, state.theta[i], state.e, state.Ginv[i], state.Rinv,
            first, last, self.sites, number, self.stream, key[0], key[1],
        )  # fmt: skip
        if failed >= 0:
            refuse_singular(self.equations, i, failed)


def component_ranges(block: Block, joint: bool) -> tuple[int, int] | None:
    """For `sweep_block`: None to draw levels whole, else the first of the block's components and the one behind them,
    to draw these one by one. By its type the compiler leaves out the way that is not gone."""
    return None if joint else (block.first_component, block.last_component)


@kernel
def sweep_block(term, K, records, k_, T_, theta, e, Ginv, Rinv, first, last, sites, number, stream, seed, chain):
    """Draw the levels first ... last - 1 (sweep positions) of one term. Returns -1, or the position whose P is not
    positive definite.

    theta_l | rest ~ N(theta_l + P^-1 rhs, P^-1),   P = kappa_ll G^-1 + sum_r W_r' R_r^-1 W_r,
    rhs = sum_r W_r' R_r^-1 e_r - G^-1 sum_m kappa_lm theta_m.

    term, K, records: lists of equations/structured.py; k_, T_: of visit.py; sites: see `component_ranges`. theta (q, k)
    and e (n, T) are updated in place; Ginv (k, k), Rinv (patterns, T, T). Draws are those of the site
    (number, stream) and the key (seed, chain).
    """
    k = len(k_) if len(k_) > 0 else theta.shape[1]
    P = carray(stack(k_, 2, 1), (k, k)) if len(k_) > 0 else np.empty((k, k))
    L = carray(stack(k_, 2, 1), (k, k)) if len(k_) > 0 else np.empty((k, k))
    row = carray(stack(k_, 1, 1), (k,)) if len(k_) > 0 else np.empty(k)
    rhs = carray(stack(k_, 1, 1), (k,)) if len(k_) > 0 else np.empty(k)
    change = carray(stack(k_, 1, 1), (k,)) if len(k_) > 0 else np.empty(k)
    normals = np.empty((CHUNK, k))
    masked = term.active.shape[0] > 0
    for chunk in range(np.uint64(first), np.uint64(last), np.uint64(CHUNK)):
        end = min(np.uint64(last), chunk + np.uint64(CHUNK))
        fill_normals(normals, number, term.code[chunk:end], stream, seed, chain)
        for level in range(chunk, end):
            prefetch_visit(term, K, records, min(level + np.uint64(AHEAD), np.uint64(last) - np.uint64(1)), theta, e)
            z = normals[level - chunk]
            level_precisions(term, Rinv, level, P)
            times_row(K, level, theta, row)
            join_prior(k_, Ginv, weight(K, level), row, P, rhs)
            from_visit, to_visit = term.visit_ptr[level], term.visit_ptr[level + np.uint64(1)]
            sum_visits(term, records, T_, from_visit, to_visit, e, Rinv, rhs)
            if masked:
                hold_inactive(term.active[level], P, rhs, z)
            if sites is None:
                drawn = draw_level(k_, P, L, rhs, z, change)
            else:
                drawn = draw_sites(k_, P, rhs, z, change, sites[0], sites[1])
            if not drawn:
                return np.int64(level)
            shift(theta, level, change)
            move_visits(term, from_visit, to_visit, e, change)
    return np.int64(-1)
