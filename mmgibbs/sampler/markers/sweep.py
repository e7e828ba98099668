"""One sweep over the effects of all SNPs on T traits, in animal space and in exact blocks.

With D_a = sum over the records r of animal a of w_r Q_r (T x T), Q_r = R^-1 of the record's missing pattern, and s_a =
the same sums of w_r Q_r e_r (T), the full conditional of the effects of SNP j given all others has

    C_j = sum_a x_ja^2 D_a (T x T)          q_j = sum_a x_ja s_a + C_j a_j (T)

from which they are drawn: on one trait (class_draws.py), or on several with a prior in common (state_draws.py). s moves
by -D x_j Delta. Repeated records, weights and missing traits are in s and D alone, and cost nothing here.

BLOCK SNPs at a time share one pass over the animals: r = X_b' s; in sequence q_j = r_j + C_j a_j, a draw, and
r_l -= G_jl Delta_j for the SNPs l after it, G = X_b' D X_b; then s -= D X_b Delta over those that changed. That is the
chain of one SNP at a time up to rounding: the blocks are exact, and no cycle is repeated within them. The idea of
updating right-hand sides by block is that of Calus (2014, Genet. Sel. Evol. 46:24).

Bytes a genotype and trait: a quarter for the dot products, and again for the SNPs that change.

Where a sweep is the proposal of a Metropolis step (share_moves.py), it may go backward.

Several threads share the SNPs of a block in X_b' s, and the animals in D X_b Delta; the draws between are one thread's.
Each sum is made whole by one of them, in the order of one thread alone: the draws do not depend on how many there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from mmgibbs.engines.device_sweep import ClassDraws, SiteDraws, StateDraws
from mmgibbs.genotypes.products import CHUNK, DOTS, add_rows, dot_rows
from mmgibbs.genotypes.store import Store
from mmgibbs.machine.barrier import meet, share
from mmgibbs.machine.threads import ALONE, Threads
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.sampler.markers.arguments import Products
from mmgibbs.sampler.markers.block import Block, Snps, place_of_turn
from mmgibbs.sampler.markers.class_draws import draw_classes
from mmgibbs.sampler.markers.state_draws import draw_sites, draw_states

SHARED = 8  # chunks of animals from which on threads share a sweep
DRAWS = {ClassDraws: draw_classes, StateDraws: draw_states, SiteDraws: draw_sites}


def draw_block(draws: Any, block: Block, products: Products, snps: Snps, a: np.ndarray) -> None:
    """Draw the effects of a block of SNPs, one after another: block.r and block.changes follow."""
    raise NotImplementedError("only compiled code can call this: Numba takes its body from the overload below")


@overload(draw_block, strict=False)
def _draw_block(draws, block, products, snps, a):
    return DRAWS[draws.instance_class].py_func


@kernel
def sweep(arrived, me, block, genotypes, products, animals, a, draws, is_backward):
    """Effects a (p, T) of every SNP by `draws`, from the last SNP to the first where it goes backward.

    arrived (threads + 1, ..) and me: as of machine/barrier.py. a, s and g move in place, and what the draws say.
    """
    p, size, threads, n_blocks = len(a), products.gram.shape[2], arrived.shape[0] - 1, products.gram.shape[1]
    for turn in range(n_blocks):
        number = n_blocks - 1 - turn if is_backward else turn
        first = number * size
        snps = Snps(number, first, min(size, p - first), is_backward)
        _start_block(genotypes, animals.s, snps, block.r, me, threads)
        if not meet(arrived, me):
            return
        if me == 0:
            draw_block(draws, block, products, snps, a)
        if not meet(arrived, me):
            return
        _move_animals(genotypes, animals, snps, block, me, threads)
        if not meet(arrived, me):
            return


@kernel
def _start_block(genotypes, s, snps, r, me, threads):
    """r = X_b' s of the SNPs of this thread."""
    begin, stop = share(snps.size, me, threads, DOTS)
    rows = np.arange(snps.first + begin, snps.first + stop)
    r[:, begin:stop] = 0.0
    for t in range(len(r)):
        dot_rows(genotypes.array, rows, genotypes.values, s[t], 0, genotypes.chunks, r[t, begin:stop])


@kernel
def _move_animals(genotypes, animals, snps, block, me, threads):
    """s -= D X_b Delta and g += X_b Delta for the effects that changed, of the animals of this thread."""
    D, s, g = animals
    moved, rows, by = block.moved, np.empty(snps.size, np.int64), np.empty(snps.size)
    begin, stop = share(genotypes.chunks, me, threads)
    places = range(np.uint64(begin * CHUNK), np.uint64(stop * CHUNK))  # unsigned: these loops then run in lanes
    for t in range(len(s)):
        n = 0
        for turn in range(snps.size):
            j = place_of_turn(snps.size, turn, snps.is_backward)
            if block.changes[t, j] != 0.0:
                rows[n], by[n] = snps.first + j, block.changes[t, j]
                n += 1
        if n == 0:
            continue
        for i in places:
            moved[i] = 0.0
        add_rows(genotypes.array, rows[:n], genotypes.values, by[:n], begin, stop, moved)
        of_trait = g[t]
        for i in places:
            of_trait[i] += moved[i]
        for o in range(len(s)):
            sums, d = s[o], D[o, t]
            for i in places:
                sums[i] -= d[i] * moved[i]


def sharing(threads: Threads, chunks: int) -> Threads:
    """Choose the threads of a sweep: one where the animals are so few that waiting would take longer."""
    return threads if chunks >= SHARED else ALONE


def recorded_chunks(store: Store, n_recorded: int) -> int:
    """Number of the chunks of animals that hold those with records."""
    return min(-(-n_recorded // CHUNK), store.n_chunks)
