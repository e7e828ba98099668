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

Several threads share the SNPs of a block in X_b' s, and the animals in D X_b Delta; the draws between are one thread's.
Each sum is made whole by one of them, in the order of one thread alone: the draws do not depend on how many there are.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np

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


class Block:
    """What the threads of a sweep share of the block at hand."""

    def __init__(self, size: int, animals: int, real: np.dtype):
        self.r, self.changes, self.rows = np.empty(size), np.empty(size), np.empty(size, np.int64)
        self.n_changed, self.moved = np.zeros(1, np.int64), np.empty(animals, real)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.r, self.changes, self.rows, self.n_changed, self.moved


@kernel
def _right_hand_sides(genotypes, first, b, values, s, chunks, r, me, threads):
    """r (b,) of SNPs first .. first + b - 1: those of this thread."""
    begin, stop = share(b, me, threads, DOTS)
    rows = np.arange(first + begin, first + stop)
    r[begin:stop] = 0.0
    dot_rows(genotypes, rows, values, s, 0, chunks, r[begin:stop])


@kernel
def _move_animals(genotypes, rows, values, changes, chunks, d, s, g, moved, me, threads):
    """s -= D X Delta and g += X Delta for the rows that changed, of the animals of this thread; moved: its room."""
    if rows.size == 0:
        return
    begin, stop = share(chunks, me, threads)
    first, last = np.uint64(begin * CHUNK), np.uint64(stop * CHUNK)  # unsigned: these loops then run in lanes
    for i in range(first, last):
        moved[i] = 0.0
    add_rows(genotypes, rows, values, changes, begin, stop, moved)
    for i in range(first, last):
        s[i] -= d[i] * moved[i]
        g[i] += moved[i]


@kernel(forceinline=True)
def _follow(r, gram, precision, j, b, change):
    """The right-hand sides of the SNPs after j."""
    step = precision * change
    for other in range(j + 1, b):
        r[other] -= gram[j, other] * step


@kernel
def sweep_normal(arrived, me, of_block, genotypes, values, chunks, gram, precision, d, s, g, a, v, z):
    """Every a_j from its normal, v (p,) its prior variance, z (p,) standard normals; s, g and a (p,) move in place.

    genotypes, values: of a store (genotypes/products.py), whose first `chunks` chunks are the animals with records.
    gram (blocks, b, b): times `precision` it is X_b' D X_b. d, s and g (128 chunks,). arrived (threads + 1, ..) and
    me: as of machine/barrier.py; of_block: the arrays of a Block.
    """
    r, changes, rows, _, moved = of_block
    p, size, threads = a.size, gram.shape[1], arrived.shape[0] - 1
    for block in range(gram.shape[0]):
        first = block * size
        b = min(size, p - first)
        _right_hand_sides(genotypes, first, b, values, s, chunks, r, me, threads)
        if not meet(arrived, me):
            return
        if me == 0:
            _draw_normals(r, gram[block], precision, first, b, a, v, z, changes, rows)
        if not meet(arrived, me):
            return
        _move_animals(genotypes, rows[:b], values, changes[:b], chunks, d, s, g, moved, me, threads)
        if not meet(arrived, me):
            return


@kernel
def _draw_normals(r, gram, precision, first, b, a, v, z, changes, rows):
    for j in range(b):
        rows[j] = first + j
        C = precision * gram[j, j]
        P = C + 1.0 / v[first + j]
        new = (r[j] + C * a[first + j]) / P + z[first + j] / sqrt(P)
        changes[j] = new - a[first + j]
        a[first + j] = new
        _follow(r, gram, precision, j, b, changes[j])


@kernel
def sweep_mixture(
    arrived, me, of_block, genotypes, values, chunks, gram, precision, d, s, g, a, of_class, v, log_pi, z, u, chances
):
    """Class and effect of every SNP; v (K, p) or (K, 1) variances by class, that of class 0 is 0.

    log_pi (K,); z and u (p,) a normal and a uniform for each SNP; of_class (p,) int8 and chances (p, K) float32 are
    filled: the probability of each class given all else. arrived, me, of_block, genotypes, values, chunks, gram,
    precision, d, s, g and a as of `sweep_normal`.
    """
    r, changes, rows, n_changed, moved = of_block
    p, size, threads = a.size, gram.shape[1], arrived.shape[0] - 1
    weight = np.empty(log_pi.size)
    for block in range(gram.shape[0]):
        first = block * size
        b = min(size, p - first)
        _right_hand_sides(genotypes, first, b, values, s, chunks, r, me, threads)
        if not meet(arrived, me):
            return
        if me == 0:
            drawn = a, of_class, v, log_pi, z, u, chances, weight
            n_changed[0] = _draw_classes(r, gram[block], precision, first, b, drawn, changes, rows)
        if not meet(arrived, me):
            return
        n = n_changed[0]
        _move_animals(genotypes, rows[:n], values, changes[:n], chunks, d, s, g, moved, me, threads)
        if not meet(arrived, me):
            return


@kernel
def _draw_classes(r, gram, precision, first, b, drawn, changes, rows):
    """How many effects of the block have changed."""
    a, of_class, v, log_pi, z, u, chances, weight = drawn
    n_changed, K = 0, log_pi.size
    for j in range(b):
        i = first + j
        C = precision * gram[j, j]
        q = r[j] + C * a[i]
        for k in range(K):
            variance = v[k, i if v.shape[1] > 1 else 0]
            weight[k] = log_pi[k]
            if variance > 0.0:
                weight[k] += 0.5 * (q * q / (C + 1.0 / variance) - log(1.0 + C * variance))
        chosen = choose(weight, u[i], chances[i])
        of_class[i] = chosen
        variance, new = v[chosen, i if v.shape[1] > 1 else 0], 0.0
        if variance > 0.0:
            P = C + 1.0 / variance
            new = q / P + z[i] / sqrt(P)
        change = new - a[i]
        if change != 0.0:
            a[i] = new
            rows[n_changed], changes[n_changed] = i, change
            n_changed += 1
            _follow(r, gram, precision, j, b, change)
    return n_changed


def sharing(threads: Threads, chunks: int) -> Threads:
    """Those that share a sweep: one alone where the animals are so few that waiting would take longer."""
    return threads if chunks >= SHARED else ALONE


def room(store: Store, n_recorded: int) -> int:
    """Chunks of animals that hold those with records."""
    return min(-(-n_recorded // CHUNK), store.n_chunks)
