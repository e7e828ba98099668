"""The pieces of one visit of a level, which engines share: its records' part of rhs, that of its relatives and prior,
the draw, the move. All are inlined where they are used.

`term`, `records` and `K` are lists of equations/structured.py: q levels with k components in sweep order, n records of
T traits. `k_` and `T_` are tuples whose length is the number of components and traits (see `unroll`).
"""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from mmgibbs.draws.over_relaxation import NOISE, TOWARDS_MEAN
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.intrinsics import prefetch
from mmgibbs.model.relationships.base import UNKNOWN
from mmgibbs.model.relationships.pedigree import PedigreeLists
from pedigree.kernels import kernel

AHEAD = 12  # how many levels ahead memory is asked for: most of a visit is waiting for it
ASKED = 16  # of a long list only the beginning is asked for: the rest would drive out what is needed first
UNROLL_FROM = 2000  # levels or visits of a term from which compiling a kernel for its very k (some seconds) pays


def unroll(size: int, work: int) -> tuple:
    """A tuple whose length the compiler sees: loops over 1 to 4 components or traits are unrolled. () means:
    a general loop.
    """
    return (0,) * size if size <= 4 and work >= UNROLL_FROM else ()


def unrolled(equations: StructuredEquations, term: int) -> tuple[tuple, tuple]:
    """k_ and T_ of a term."""
    t, lists = equations.design.terms[term], equations.terms[term]
    work = max(t.n_levels, lists.visit_record.size)
    return unroll(t.n_components, work), unroll(equations.design.n_traits, work)


@kernel(forceinline=True)
def sum_visits(term, records, T_, first, last, e, Rinv, rhs):
    """rhs += sum of W_r' R_r^-1 e_r over the visits first ... last - 1 (uint64) of one level.

    e (n, T), Rinv (patterns, T, T), rhs (k,) float64.
    """
    T = len(T_) if len(T_) > 0 else e.shape[1]
    plain = term.covariates.shape[0] == 0
    several = term.visit_effect.size > 0
    weighted = records.weight.size > 0
    for v in range(first, last):
        r = term.visit_record[v]
        p, w = records.pattern[r], np.float64(records.weight[r]) if weighted else 1.0
        effect = term.visit_effect[v] if several else np.uint8(0)
        for c in range(term.effect_first[effect], term.effect_first[effect + 1]):
            s = 0.0
            for t in range(T):
                s += Rinv[p, term.trait[c], t] * e[r, t]
            rhs[c] += (w if plain else w * term.covariates[r, term.regressor[c]]) * s


@kernel(forceinline=True)
def join_prior(k_, Ginv, kappa, row, P, rhs):
    """What a level's relatives and prior say of it: rhs = -G^-1 sum_m kappa_lm theta_m, P += kappa_ll G^-1 (the lower
    triangle).

    row (k,): the sum over m, l included; kappa: kappa_ll; Ginv and P (k, k), rhs (k,) float64.
    """
    k = len(k_) if len(k_) > 0 else rhs.size
    for a in range(k):
        rhs[a] = 0.0
        for b in range(k):
            rhs[a] -= Ginv[a, b] * row[b]
        for b in range(a + 1):
            P[a, b] += kappa * Ginv[a, b]


@kernel(forceinline=True)
def hold_inactive(active, P, rhs, z):
    """Components set to 0 leave the system (the lower triangle of P): their change is exactly 0.

    active (k,) uint8; P (k, k), rhs and z (k,) float64, in place.
    """
    for a in range(rhs.size):
        if active[a] == 0:
            rhs[a] = 0.0
            z[a] = 0.0
            for b in range(a):
                P[a, b] = 0.0
            for b in range(a + 1, rhs.size):
                P[b, a] = 0.0
            P[a, a] = 1.0


@kernel(forceinline=True)
def draw_level(k_, P, L, rhs, z, change):
    """change = L'^-1 (f L^-1 rhs + n z), P = L L': N(P^-1 rhs, P^-1) over-relaxed, f and n of
    draws/over_relaxation.py; only the lower triangle of P is read. False where P is not positive definite.

    P and L (k, k), rhs, z (standard normals) and change (k,) float64. The diagonal of `L` holds 1 / l_jj, so that there
    are k divisions and no more.
    """
    k = len(k_) if len(k_) > 0 else rhs.size
    for j in range(k):
        d = P[j, j]
        for m in range(j):
            d -= L[j, m] * L[j, m]
        if not d > 1e-12 * P[j, j]:  # relative: an exactly singular block leaves rounding here, not 0
            return False
        L[j, j] = 1.0 / np.sqrt(d)
        for i in range(j + 1, k):
            s = P[i, j]
            for m in range(j):
                s -= L[i, m] * L[j, m]
            L[i, j] = s * L[j, j]
    for i in range(k):
        s = rhs[i]
        for m in range(i):
            s -= L[i, m] * change[m]
        change[i] = s * L[i, i]
    for i in range(k - 1, -1, -1):
        s = TOWARDS_MEAN * change[i] + NOISE * z[i]
        for m in range(i + 1, k):
            s -= L[m, i] * change[m]
        change[i] = s * L[i, i]
    return True


@kernel(forceinline=True)
def draw_sites(k_, P, rhs, z, change, c_first, c_last):
    """change_c ~ N((rhs_c - sum_b P_cb change_b) / P_cc, 1 / P_cc) for c = c_first ... c_last - 1 in turn; the others
    stay. False where a P_cc is not positive. Plain draws, those of the classic sampler.

    P (k, k), of which the lower triangle is read; rhs, z (standard normals) and change (k,) float64.
    """
    k = len(k_) if len(k_) > 0 else rhs.size
    for c in range(k):
        change[c] = 0.0
    for c in range(c_first, c_last):
        if not P[c, c] > 0.0:
            return False
        s = rhs[c]
        for b in range(k):
            s -= (P[c, b] if b < c else P[b, c]) * change[b]  # change_c itself is still 0
        change[c] = s / P[c, c] + z[c] / np.sqrt(P[c, c])
    return True


@kernel(forceinline=True)
def shift(theta, level, change):
    """theta_l += change, l the sweep position `level`; `change` becomes what the stored precision could hold of it.

    theta (q, k), change (k,) float64.
    """
    for c in range(change.size):
        old = theta[level, c]
        theta[level, c] = old + change[c]
        change[c] = np.float64(theta[level, c]) - np.float64(old)


@kernel(forceinline=True)
def move_visits(term, first, last, e, change):
    """e_r -= W_r change for the visits first ... last - 1 (uint64) of one level: e (n, T), change (k,) float64."""
    plain = term.covariates.shape[0] == 0
    several = term.visit_effect.size > 0
    for v in range(first, last):
        r = term.visit_record[v]
        effect = term.visit_effect[v] if several else np.uint8(0)
        for c in range(term.effect_first[effect], term.effect_first[effect + 1]):
            e[r, term.trait[c]] -= change[c] if plain else change[c] * term.covariates[r, term.regressor[c]]


@kernel(forceinline=True)
def prefetch_visit(term, K, records, level, theta, e):
    """Prefetch what the visit of a level will read: its relatives' rows of theta (q, k), its records' rows of e (n, T)
    and their patterns.
    """
    prefetch_relatives(K, level, theta)
    for v in range(
        term.visit_ptr[level], min(term.visit_ptr[level + np.uint64(1)], term.visit_ptr[level] + np.uint64(ASKED))
    ):
        prefetch(e, term.visit_record[v])
        prefetch(records.pattern, term.visit_record[v])


def prefetch_relatives(K, level, theta):
    """Prefetch what times_row(K, level, theta, ...) will read."""
    raise NotImplementedError("the body is compiled: see the overload below")


def _prefetch_nothing(K, level, theta):
    pass


def _prefetch_family(K, level, theta):
    for parent in (K.sire[level], K.dam[level]):
        if parent != UNKNOWN:
            prefetch(theta, parent)
    for j in range(
        K.progeny_ptr[level], min(K.progeny_ptr[level + np.uint64(1)], K.progeny_ptr[level] + np.uint64(ASKED))
    ):
        prefetch(theta, K.progeny[j])
        if K.mate[j] != UNKNOWN:
            prefetch(theta, K.mate[j])


PREFETCHES = {PedigreeLists: _prefetch_family}  # lists that know in advance what a row will read


@overload(prefetch_relatives, jit_options={"forceinline": True, "no_cfunc_wrapper": True})
def _prefetch_relatives(K, level, theta):
    return PREFETCHES.get(K.instance_class, _prefetch_nothing)
