"""Draws of the effects of a block of SNPs on T traits with a prior in common, with C_j and q_j of sweep.py.

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

import numpy as np

from mmgibbs.draws.elementary import exp, log
from mmgibbs.draws.small_matrices import cholesky
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.sampler.markers.block import change_effects, make_equations, place_of_turn
from mmgibbs.sampler.markers.choose import NO_CLASS, choose


@kernel
def draw_states(draws, block, products, snps, a):
    """State and effects of each SNP, all traits at once; draws: `StateDraws`."""
    (state, prior, z, u, chances), (grams, Q) = draws, products
    traits, n_traits, precision, log_weight = prior
    K, T = traits.shape
    weight, C, q, new = np.empty(K), np.empty((T, T)), np.empty(T), np.empty(T)
    A, L, half = np.empty((T, T)), np.zeros((K, T, T)), np.empty((K, T))
    for turn in range(snps.size):
        j = place_of_turn(snps.size, turn, snps.is_backward)
        i = snps.first + j
        make_equations(grams, Q, snps.number, j, block.r, a[i], C, q)
        for k in range(K):
            weight[k] = log_weight[k] + _log_evidence(C, q, traits[k], n_traits[k], precision[k], A, L[k], half[k])
        chosen = choose(weight, u[i], chances[i])
        state[i] = chosen
        _draw_effects(traits[chosen], n_traits[chosen], L[chosen], half[chosen], z[i], new)
        change_effects(grams, Q, snps, j, a[i], new, block.changes, block.r)


@kernel
def draw_sites(draws, block, products, snps, a):
    """State and effects of each SNP, one trait at a time; states are those of `model.markers.states_of_traits`.

    draws: `SiteDraws`. Of its chances (p, K), those of each state are the mean over the traits.
    """
    (state, prior, z, z_outside, u, inside, chances), (grams, Q) = draws, products
    inverse, given, noise, log_pi = prior
    T = len(inverse)
    C, q, new, all_effects = np.empty((T, T)), np.empty(T), np.empty(T), np.empty(T)
    for turn in range(snps.size):
        j = place_of_turn(snps.size, turn, snps.is_backward)
        i = snps.first + j
        now, is_known = state[i], True
        make_equations(grams, Q, snps.number, j, block.r, a[i], C, q)
        for t in range(T):
            new[t] = a[i, t]
            all_effects[t] = a[i, t]
            for o in range(T):
                all_effects[t] += given[now, t, o] * a[i, o] + noise[now, t, o] * z_outside[i, o]
        chances[i, :] = 0.0
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
        change_effects(grams, Q, snps, j, a[i], new, block.changes, block.r)


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
