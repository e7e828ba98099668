"""Ranges of levels one after another, as the serial engine draws them, for terms with covariates and `update: site`.

The loop is that of serial.py. Only its work space differs: where a term has up to four components and is large enough,
it is on the stack and of a size that the compiler knows. A sweep of random regressions takes four fifths of the time.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mmgibbs.draws.normal import fill_normals
from mmgibbs.engines.coloured.unrolled import unroll_term
from mmgibbs.engines.level import (
    add_prior,
    apply_increment,
    draw_components,
    draw_level,
    mask_inactive,
)
from mmgibbs.engines.serial import LEVELS_PER_CHUNK, ONE, LevelSweep
from mmgibbs.equations.partition import Block
from mmgibbs.equations.records import accumulate_level_rhs, subtract_level_fit, sum_level_cross_products
from mmgibbs.equations.relationships import times_row, weight
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.intrinsics import stack_array
from mmgibbs.machine.threads import Threads
from pedigree.kernels import kernel


class UnrolledLevelSweep(LevelSweep):
    """A `LevelSweep` compiled for the number of components of its term."""

    def __init__(
        self,
        equations: StructuredEquations,
        block: Block,
        joint: bool,
        ranges: tuple[tuple[int, int], ...],
        threads: Threads,
    ):
        super().__init__(equations, block, joint, ranges, threads)
        k_, _ = unroll_term(equations, block.term)
        if k_:
            self.kernel = partial(sweep_levels_unrolled, k_)


@kernel
def sweep_levels_unrolled(k_, term, K, records, theta, e, Ginv, Rinv, first, last, components, site):
    """`serial.sweep_levels` with work space on the stack; k_: a tuple of coloured/unrolled.py."""
    P, L = stack_array((len(k_), len(k_))), stack_array((len(k_), len(k_)))
    row, rhs, change = stack_array((len(k_),)), stack_array((len(k_),)), stack_array((len(k_),))
    normals = np.empty((LEVELS_PER_CHUNK, len(k_)))
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
