"""One sweep over the effects of all SNPs on T traits together, in animal space and in exact blocks.

As sweep.py, with vectors in place of numbers: D_a = sum over the records r of animal a of w_r Q_r (T x T), Q_r = R^-1
of the record's missing pattern, s_a = the same sums of w_r Q_r e_r (T), and for SNP j

    C_j = sum_a x_ja^2 D_a (T x T)          q_j = sum_a x_ja s_a + C_j a_j (T)

The products within a block are kept by missing pattern P, G_P = X_b' W_P X_b with W_P the sums of weights of an
animal's records of that pattern: C_j = sum_P (G_P)_jj Q_P, and missing traits cost no more than their patterns.

All traits at once: with B_k = factor_k G_kk over the traits of state k, the effects are integrated out,

    log P(k) = log pi_k - log|B_k| / 2 - log|C_kk + B_k^-1| / 2 + q_k' (C_kk + B_k^-1)^-1 q_k / 2 + constant

then a_k ~ N((C_kk + B_k^-1)^-1 q_k, (C_kk + B_k^-1)^-1), and the other effects are 0.

One trait at a time: b ~ N(0, G) of all traits, a_t = b_t where the state acts on t and 0 elsewhere. The b of traits
that the state leaves out are drawn given the others; then for t = 1 ... T, o the other traits,

    r_1 = q_t - C_to a_o - (G^-1)_to b_o,   c_1 = C_tt + (G^-1)_tt         r_0 = -(G^-1)_to b_o,   c_0 = (G^-1)_tt
    log odds(in : out) = log(pi_in / pi_out) - log(c_1 / c_0) / 2 + r_1^2 / c_1 / 2 - r_0^2 / c_0 / 2

given the state of the other traits, and b_t ~ N(r / c, 1 / c) by the outcome (Cheng et al. 2018, Genetics 209:89).
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from mmgibbs.draws.elementary import exp, log
from mmgibbs.draws.small_matrices import cholesky
from mmgibbs.genotypes.products import CHUNK, DOTS, add_rows, dot_rows
from mmgibbs.machine.barrier import meet, share
from mmgibbs.sampler.markers.choose import NO_CLASS, choose
from pedigree.kernels import kernel


class Block(NamedTuple):
    """What the threads of a sweep share of the block at hand."""

    r: np.ndarray  # (T, b) right-hand sides
    changes: np.ndarray  # (T, b) of the effects
    moved: np.ndarray  # (animals,) X Delta of a trait


def make_block(traits: int, size: int, animals: int, real: np.dtype) -> Block:
    """Room for blocks of `size` SNPs."""
    return Block(np.empty((traits, size)), np.empty((traits, size)), np.empty(animals, real))


@kernel
def sweep_states(arrived, me, block, genotypes, products, animals, a, state, prior, z, u, chances):
    """State and effects of every SNP, all traits at once; s, g, a (p, T), state (p,) and chances (p, K) in place.

    z (p, T) standard normals, u (p,) uniforms; prior: `States`. arrived, me: as of machine/barrier.py.
    """
    grams, Q = products
    traits, n_traits, precision, log_weight = prior
    p, T = a.shape
    K, size, threads = log_weight.size, grams.shape[2], arrived.shape[0] - 1
    r, changes, moved = block
    weight, C, q, new = np.empty(K), np.empty((T, T)), np.empty(T), np.empty(T)
    A, L, half = np.empty((T, T)), np.zeros((K, T, T)), np.empty((K, T))
    for number in range(grams.shape[1]):
        first = number * size
        b = min(size, p - first)
        _start_block(genotypes, animals.s, first, b, r, me, threads)
        if not meet(arrived, me):
            return
        for j in range(b if me == 0 else 0):
            i = first + j
            _equations(grams, Q, number, j, r, a[i], C, q)
            for k in range(K):
                weight[k] = log_weight[k] + _log_evidence(C, q, traits[k], n_traits[k], precision[k], A, L[k], half[k])
            chosen = choose(weight, u[i], chances[i])
            state[i] = chosen
            _draw_effects(traits[chosen], n_traits[chosen], L[chosen], half[chosen], z[i], new)
            _change(grams, Q, number, j, b, a[i], new, changes, r)
        if not meet(arrived, me):
            return
        _move_animals(genotypes, first, changes[:, :b], animals, moved, me, threads)
        if not meet(arrived, me):
            return


@kernel
def sweep_single_sites(
    arrived, me, block, genotypes, products, animals, a, state, prior, z, z_outside, u, inside, chances
):
    """State and effects of every SNP, one trait at a time; states are those of `model.markers.states_of_traits`.

    prior: `SingleSites`; z and z_outside (p, T) standard normals, the latter of the effects that states leave out;
    u (p, T). inside (p, T) and chances (p, K) are filled: the probability of each trait given the others, and that of
    each state, the mean over the traits. The first arguments, up to state, as of `sweep_states`.
    """
    grams, Q = products
    inverse, given, noise, log_pi = prior
    p, T = a.shape
    size, threads = grams.shape[2], arrived.shape[0] - 1
    r, changes, moved = block
    C, q = np.empty((T, T)), np.empty(T)
    new, all_effects = np.empty(T), np.empty(T)
    for number in range(grams.shape[1]):
        first = number * size
        b = min(size, p - first)
        _start_block(genotypes, animals.s, first, b, r, me, threads)
        if not meet(arrived, me):
            return
        for j in range(b if me == 0 else 0):
            i, now = first + j, state[first + j]
            _equations(grams, Q, number, j, r, a[i], C, q)
            for t in range(T):
                new[t] = a[i, t]
                all_effects[t] = a[i, t]
                for o in range(T):
                    all_effects[t] += given[now, t, o] * a[i, o] + noise[now, t, o] * z_outside[i, o]
            chances[i, :] = 0.0
            is_known = True
            for t in range(T):
                r0, r1 = 0.0, q[t]
                for o in range(T):
                    if o != t:
                        r0 -= inverse[t, o] * all_effects[o]
                        r1 -= C[t, o] * new[o]
                r1 += r0
                c0, c1 = inverse[t, t], C[t, t] + inverse[t, t]
                out = now & ~(1 << t)
                within = out | (1 << t)
                odds = log_pi[within] - log_pi[out] + 0.5 * (log(c0 / c1) + r1 * r1 / c1 - r0 * r0 / c0)
                chance = 1.0 / (1.0 + exp(-odds))
                is_known = is_known and chance >= 0.0
                inside[i, t] = chance
                chances[i, within] += chance / T
                chances[i, out] += (1.0 - chance) / T
                if u[i, t] < chance:
                    now = within
                    new[t] = all_effects[t] = r1 / c1 + z[i, t] / sqrt(c1)
                else:
                    now, new[t] = out, 0.0
                    all_effects[t] = r0 / c0 + z[i, t] / sqrt(c0)
            state[i] = now if is_known else NO_CLASS
            _change(grams, Q, number, j, b, a[i], new, changes, r)
        if not meet(arrived, me):
            return
        _move_animals(genotypes, first, changes[:, :b], animals, moved, me, threads)
        if not meet(arrived, me):
            return


@kernel
def _start_block(genotypes, s, first, b, r, me, threads):
    """r of the SNPs of this thread."""
    begin, stop = share(b, me, threads, DOTS)
    rows = np.arange(first + begin, first + stop)
    r[:, begin:stop] = 0.0
    for t in range(r.shape[0]):
        dot_rows(genotypes.array, rows, genotypes.values, s[t], 0, genotypes.chunks, r[t, begin:stop])


@kernel
def _equations(grams, Q, block, j, r, a, C, q):
    """C and q of SNP j of a block."""
    T = a.size
    for t in range(T):
        q[t] = r[t, j]
        for o in range(T):
            C[t, o] = 0.0
            for P in range(grams.shape[0]):
                C[t, o] += grams[P, block, j, j] * Q[P, t, o]
            q[t] += C[t, o] * a[o]


@kernel
def _log_evidence(C, q, traits, n, precision, A, L, half):
    """-log|C + B^-1| / 2 + q' (C + B^-1)^-1 q / 2 of one state; L its Cholesky factor, half L^-1 q."""
    for t in range(n):
        for o in range(t + 1):
            A[t, o] = C[traits[t], traits[o]] + precision[t, o]
    cholesky(A[:n, :n], L[:n, :n], 0.0)
    total = 0.0
    for t in range(n):
        half[t] = q[traits[t]]
        for o in range(t):
            half[t] -= L[t, o] * half[o]
        half[t] /= L[t, t]
        total += 0.5 * half[t] * half[t] - log(L[t, t])
    return total


@kernel
def _draw_effects(traits, n, L, half, z, new):
    """new = L'^-1 (half + z) on the traits of the state, 0 on the others."""
    new[:] = 0.0
    for t in range(n - 1, -1, -1):
        x = half[t] + z[t]
        for o in range(t + 1, n):
            x -= L[o, t] * new[traits[o]]
        new[traits[t]] = x / L[t, t]


@kernel
def _change(grams, Q, block, j, b, a, new, changes, r):
    """The effects of SNP j are `new`; the right-hand sides of the SNPs after it follow."""
    T, is_changed = a.size, False
    for t in range(T):
        changes[t, j] = new[t] - a[t]
        a[t] = new[t]
        is_changed = is_changed or changes[t, j] != 0.0
    if not is_changed:
        return
    for P in range(grams.shape[0]):
        for t in range(T):
            step = 0.0
            for o in range(T):
                step += Q[P, t, o] * changes[o, j]
            if step != 0.0:
                for snp in range(j + 1, b):
                    r[t, snp] -= grams[P, block, j, snp] * step


@kernel
def _move_animals(genotypes, first, changes, animals, moved, me, threads):
    """s -= D X Delta and g += X Delta for the effects that changed, of the animals of this thread; moved (n,) is
    written over."""
    T, b = changes.shape
    D, s, g = animals
    chosen, by = np.empty(b, np.int64), np.empty(b)
    begin, stop = share(genotypes.chunks, me, threads)
    places = range(np.uint64(begin * CHUNK), np.uint64(stop * CHUNK))
    for t in range(T):
        n = 0
        for j in range(b):
            if changes[t, j] != 0.0:
                chosen[n], by[n] = first + j, changes[t, j]
                n += 1
        if n == 0:
            continue
        for i in places:
            moved[i] = 0.0
        add_rows(genotypes.array, chosen[:n], genotypes.values, by[:n], begin, stop, moved)
        for i in places:
            g[t, i] += moved[i]
        for o in range(T):
            for i in places:
                s[o, i] -= D[o, t, i] * moved[i]
