"""The serial engine: the structured equations in plain compiled loops. This is the truth that the other engines are
held to.

Level l of a term draws its k effects given everything else (docs/explanation/theory.md, "Full conditionals"). With

    P   = kappa_ll G^-1 + sum_{r in l} W_r' R_r^-1 W_r
    rhs = -G^-1 sum_m kappa_lm theta_m + sum_{r in l} W_r' R_r^-1 e_r          (m = l included, e the current residual)

the change of theta_l is N(P^-1 rhs, P^-1): `update="site"` draws its k elements one after another, `update="level"` all
of it through the Cholesky factor of P, over-relaxed (draws/over_relaxation.py). Then e_r -= W_r (change) for the
level's records.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mmgibbs.draws.normal import fill_normals
from mmgibbs.draws.purpose import LOCATION, Site, stream
from mmgibbs.engines.base import Key, SweepEngine, refuse_singular
from mmgibbs.engines.costs import SweepCost
from mmgibbs.engines.dense import DenseSweep
from mmgibbs.engines.level import (
    add_prior,
    apply_increment,
    draw_components,
    draw_level,
    mask_inactive,
    select_components,
)
from mmgibbs.engines.scores import ScoreSweep
from mmgibbs.equations.partition import Block
from mmgibbs.equations.records import accumulate_level_rhs, subtract_level_fit, sum_level_cross_products
from mmgibbs.equations.relationships import times_row, weight
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.threads import ALONE, Threads
from mmgibbs.pedigree.kernels import kernel

# Positions are unsigned numbers: compiled code then does not look for negative ones.
LEVELS_PER_CHUNK = np.uint64(1024)  # whose normals are drawn together
ONE = np.uint64(1)


class SerialEngine(SweepEngine):
    """Serial Gibbs sweeps over structured equations, block after block of their partition."""

    name = "serial"
    options = ("update", "threads")
    sweep_cost = SweepCost(0.058, 0.083, 0.0, 5.0e-6, 0.9e-5, 3.5e-5)

    def __init__(self, equations: StructuredEquations, update: str = "level", threads: int = 1):
        """threads: of steps beside the sweep, such as SNP effects; the levels are drawn one after another."""
        self.threads = Threads(threads)
        super().__init__(
            equations,
            (
                ScoreSweep(equations, b)
                if b.term in equations.design.n_scores
                else (DenseSweep if b.dense else LevelSweep)(equations, b, update == "level")
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
        self.components = select_components(block, joint)
        self.ranges = ((block.first, block.last),) if ranges is None else ranges
        self.lists = (equations.terms[block.term], equations.relationships[block.term], equations.records)
        self.stream = stream(LOCATION, block.term)

    def renew(self, state: SweepEngine) -> None:
        """Nothing is kept that depends on the variances."""

    def __call__(self, state: SweepEngine, number: int, key: Key) -> None:
        site = Site(number, self.stream, *key)
        if len(self.ranges) == 1:
            self.sweep_range(state, *self.ranges[0], site)
        else:
            self.threads([partial(self.sweep_range, state, first, last, site) for first, last in self.ranges])

    def sweep_range(self, state: SweepEngine, first: int, last: int, site: Site) -> None:
        """Draw the levels first ... last - 1 (sweep positions)."""
        i = self.block.term
        end = sweep_levels(
            *self.lists, state.theta[i], state.e, state.Ginv[i], state.Rinv, np.uint64(first), np.uint64(last),
            self.components, site,
        )  # fmt: skip
        if end < last:
            refuse_singular(self.equations, i, end)


@kernel
def sweep_levels(term, K, records, theta, e, Ginv, Rinv, first, last, components, site):
    """Draw the levels first ... last - 1 (sweep positions, unsigned) of one term. Returns `last`, or the position whose
    P is not positive definite.

    term, K, records: lists of equations/structured.py; theta (q, k) and e (n, T) are updated in place; Ginv (k, k),
    Rinv (patterns, T, T). components: of `select_components`. site: Site of the draws.
    """
    k = theta.shape[1]
    P, L, row, rhs, change = np.empty((k, k)), np.empty((k, k)), np.empty(k), np.empty(k), np.empty(k)
    normals = np.empty((LEVELS_PER_CHUNK, k))
    number, stream, seed, chain = site
    masked = term.active.shape[0] > 0
    for chunk in range(first, last, LEVELS_PER_CHUNK):
        end = min(last, chunk + LEVELS_PER_CHUNK)
        fill_normals(normals, number, term.code[chunk:end], stream, seed, chain)
        for level in range(chunk, end):
            z, first_entry, last_entry = normals[level - chunk], term.visit_ptr[level], term.visit_ptr[level + ONE]
            sum_level_cross_products(term, Rinv, level, P)  # P = W_l' R^-1 W_l
            times_row(K, level, theta, row)  # row = sum_m kappa_lm theta_m
            add_prior(Ginv, weight(K, level), row, P, rhs)  # P += kappa_ll G^-1, rhs = -G^-1 row
            accumulate_level_rhs(term, records, first_entry, last_entry, Rinv, e, rhs)  # rhs += W_l' R^-1 e
            if masked:
                mask_inactive(term.active[level], P, rhs, z)
            if components is None:
                is_drawn = draw_level(P, rhs, z, L, change)
            else:
                is_drawn = draw_components(components, P, rhs, z, change)
            if not is_drawn:
                return level
            apply_increment(theta, level, change)
            subtract_level_fit(term, first_entry, last_entry, change, e)  # e -= W_l change
    return last
