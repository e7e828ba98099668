"""One sweep over the effects of all SNPs of a term, in animal space and in exact blocks.

With D = diag(d_a), d_a = sum over the records r of animal a of w_r Q_tt (Q = R^-1 of the record), and s = the same sums
of w_r (Q e_r)_t, the full conditional of the effect of SNP j given all others has

    C_j = x_j' D x_j            q_j = x_j' s + C_j a_j

    normal     a_j ~ N(q / (C + 1/v_j), 1 / (C + 1/v_j))
    mixture    log P(class k) = log pi_k - log(1 + C v_k) / 2 + q^2 / (C + 1/v_k) / 2 + constant,    v_k = 0: a_j = 0
               then a_j as above with v_k: the effect is integrated out when its class is drawn

and s moves by -D x_j Delta. Repeated records, weights and missing traits are in s and d alone, and cost nothing here.

BLOCK SNPs at a time share one pass over the animals: r = X_b' s; in sequence q_j = r_j + C_j a_j, a draw, and
r_l -= G_jl Delta_j for the SNPs l after it, G = X_b' D X_b; then s -= D X_b Delta over those that changed. That is the
chain of one SNP at a time up to rounding: the blocks are exact, and no cycle is repeated within them. The idea of
updating right-hand sides by block is that of Calus (2014, Genet. Sel. Evol. 46:24).

Bytes a genotype: a quarter for the dot products, and again for the SNPs that change.

Where a sweep is the proposal of a Metropolis step (share_moves.py), it may go backward.

Several threads share the SNPs of a block in X_b' s, and the animals in D X_b Delta; the draws between are one thread's.
Each sum is made whole by one of them, in the order of one thread alone: the draws do not depend on how many there are.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from mmgibbs.draws.elementary import exp, log
from mmgibbs.genotypes.products import CHUNK, DOTS, add_rows, dot_rows
from mmgibbs.genotypes.store import Store
from mmgibbs.machine.barrier import meet, share
from mmgibbs.machine.threads import ALONE, Threads
from mmgibbs.sampler.markers.choose import choose
from pedigree.kernels import kernel

BLOCK = 64
SHARED = 8  # chunks of animals from which on threads share a sweep


def gram_blocks(store: Store, values: np.ndarray, weight: np.ndarray, size: int = BLOCK) -> np.ndarray:
    """(blocks, size, size) float32: X_b' diag(w) X_b of each block of SNPs; weight (n,) of each animal.

    The last block is filled up with 0. One pass over the genotypes, decoded block by block: p n size / 2 products.
    """
    p = store.n_snps
    out = np.zeros((-(-p // size), size, size), np.float32)
    said = np.flatnonzero(weight)
    n = int(said[-1]) + 1 if said.size else 0
    w = weight[:n].astype(np.float32)
    for block, first in enumerate(range(0, p, size)):
        X = store.decode(store.every[first : first + size], values)[:, :n]
        b = len(X)
        out[block, :b, :b] = (X * w) @ X.T
    return out


class Block(NamedTuple):
    """What the threads of a sweep share of the block at hand."""

    r: np.ndarray  # (b,) right-hand sides
    changes: np.ndarray  # (b,) of the effects at `rows`
    rows: np.ndarray
    n_changed: np.ndarray  # (1,)
    moved: np.ndarray  # (animals,) X Delta
    log_ratio: np.ndarray  # (1,) of the sums of weights under two priors, over the SNPs so far


def make_block(size: int, animals: int, real: np.dtype) -> Block:
    """Room for blocks of `size` SNPs."""
    vectors = np.empty(size), np.empty(size), np.empty(size, np.int64)
    return Block(*vectors, np.zeros(1, np.int64), np.empty(animals, real), np.zeros(1))


@kernel
def _right_hand_sides(genotypes, first, b, s, r, me, threads):
    """r (b,) of SNPs first .. first + b - 1: those of this thread."""
    begin, stop = share(b, me, threads, DOTS)
    rows = np.arange(first + begin, first + stop)
    r[begin:stop] = 0.0
    dot_rows(genotypes.array, rows, genotypes.values, s, 0, genotypes.chunks, r[begin:stop])


@kernel
def _move_animals(genotypes, rows, changes, animals, moved, me, threads):
    """s -= D X Delta and g += X Delta for the rows that changed, of the animals of this thread; moved is written
    over."""
    if rows.size == 0:
        return
    d, s, g = animals
    begin, stop = share(genotypes.chunks, me, threads)
    first, last = np.uint64(begin * CHUNK), np.uint64(stop * CHUNK)  # unsigned: these loops then run in lanes
    for i in range(first, last):
        moved[i] = 0.0
    add_rows(genotypes.array, rows, genotypes.values, changes, begin, stop, moved)
    for i in range(first, last):
        s[i] -= d[i] * moved[i]
        g[i] += moved[i]


@kernel(forceinline=True)
def _update_right_hand_sides(r, gram, precision, j, begin, stop, change):
    """r of the SNPs begin .. stop - 1 after the effect of SNP j moved by `change`."""
    step = precision * change
    for snp in range(begin, stop):
        r[snp] -= gram[j, snp] * step


@kernel
def sweep_normal(arrived, me, block, genotypes, products, animals, a, v, z):
    """Every a_j from its normal, v (p,) its prior variance, z (p,) standard normals; s, g and a (p,) move in place.

    arrived (threads + 1, ..) and me: as of machine/barrier.py.
    """
    gram, precision = products
    p, size, threads = a.size, gram.shape[1], arrived.shape[0] - 1
    for number in range(gram.shape[0]):
        first = number * size
        b = min(size, p - first)
        _right_hand_sides(genotypes, first, b, animals.s, block.r, me, threads)
        if not meet(arrived, me):
            return
        if me == 0:
            _draw_normals(block, gram[number], precision, first, b, a, v, z)
        if not meet(arrived, me):
            return
        _move_animals(genotypes, block.rows[:b], block.changes[:b], animals, block.moved, me, threads)
        if not meet(arrived, me):
            return


@kernel
def _draw_normals(block, gram, precision, first, b, a, v, z):
    r, changes = block.r, block.changes
    for j in range(b):
        block.rows[j] = first + j
        C = precision * gram[j, j]
        P = C + 1.0 / v[first + j]
        new = (r[j] + C * a[first + j]) / P + z[first + j] / sqrt(P)
        changes[j] = new - a[first + j]
        a[first + j] = new
        _update_right_hand_sides(r, gram, precision, j, j + 1, b, changes[j])


@kernel
def sweep_mixture(
    arrived, me, block, genotypes, products, animals, a, of_class, prior, compared, backward, z, u, chances
):
    """Class and effect of every SNP under `prior`, from the last SNP to the first where it goes backward.

    z and u (p,) a normal and a uniform for each SNP; of_class (p,) int8 and chances (p, K) float32 are filled: the
    probability of each class given all else. arrived, me, block, genotypes, products, animals and a as of
    `sweep_normal`. compared: another prior, or one of no classes. block.log_ratio: sum over the SNPs of
    log(sum of the weights under prior / sum under compared), where it has classes.
    """
    gram, precision = products
    p, size, threads, n_blocks = a.size, gram.shape[1], arrived.shape[0] - 1, gram.shape[0]
    weight = np.empty(prior.log_share.size)
    for turn in range(n_blocks):
        number = n_blocks - 1 - turn if backward else turn
        first = number * size
        b = min(size, p - first)
        _right_hand_sides(genotypes, first, b, animals.s, block.r, me, threads)
        if not meet(arrived, me):
            return
        if me == 0:
            drawn = a, of_class, z, u, chances, weight
            block.n_changed[0] = _draw_classes(
                block, gram[number], precision, first, b, drawn, prior, compared, backward
            )
        if not meet(arrived, me):
            return
        n = block.n_changed[0]
        _move_animals(genotypes, block.rows[:n], block.changes[:n], animals, block.moved, me, threads)
        if not meet(arrived, me):
            return


@kernel
def _draw_classes(block, gram, precision, first, b, drawn, prior, compared, backward):
    """How many effects of the block have changed."""
    a, of_class, z, u, chances, weight = drawn
    r, v, n_changed = block.r, prior.variance, 0
    for turn in range(b):
        j = b - 1 - turn if backward else turn
        i = first + j
        C = precision * gram[j, j]
        q = r[j] + C * a[i]
        if compared.log_share.size > 0:
            _log_weights(C, q, i, compared, weight)
            block.log_ratio[0] -= _log_sum(weight)
            _log_weights(C, q, i, prior, weight)
            block.log_ratio[0] += _log_sum(weight)
        else:
            _log_weights(C, q, i, prior, weight)
        chosen = choose(weight, u[i], chances[i])
        of_class[i] = chosen
        variance, new = v[chosen, i if v.shape[1] > 1 else 0], 0.0
        if variance > 0.0:
            P = C + 1.0 / variance
            new = q / P + z[i] / sqrt(P)
        change = new - a[i]
        if change != 0.0:
            a[i] = new
            block.rows[n_changed], block.changes[n_changed] = i, change
            n_changed += 1
            begin, stop = (0, j) if backward else (j + 1, b)
            _update_right_hand_sides(r, gram, precision, j, begin, stop, change)
    return n_changed


@kernel(forceinline=True)
def _log_weights(C, q, i, classes, weight):
    """weight (K,): log of P(class k) of SNP i, its effect integrated out, less the same for every class."""
    v = classes.variance
    for k in range(weight.size):
        variance = v[k, i if v.shape[1] > 1 else 0]
        weight[k] = classes.log_share[k]
        if variance != 0.0:  # also where it is not a number: then nor is the weight
            weight[k] += 0.5 * (q * q / (C + 1.0 / variance) - log(1.0 + C * variance))


@kernel(forceinline=True)
def _log_sum(weight):
    """log sum_k exp(weight_k)."""
    top, total = -np.inf, 0.0
    for k in range(weight.size):
        if weight[k] > top:
            top = weight[k]
    for k in range(weight.size):
        total += exp(weight[k] - top)
    return top + log(total)


def sharing(threads: Threads, chunks: int) -> Threads:
    """Those that share a sweep: one alone where the animals are so few that waiting would take longer."""
    return threads if chunks >= SHARED else ALONE


def recorded_chunks(store: Store, n_recorded: int) -> int:
    """Number of the chunks of animals that hold those with records."""
    return min(-(-n_recorded // CHUNK), store.n_chunks)
