"""Passes over the levels of two competing terms, of which records see the sum (model/shared_levels.py).

Component t of term p goes with component m(t) of term a, level by level, and s = a_m + p is what the data know of.
Given s, both covariance matrices and the residuals have nothing to do with the data any more. A set C of levels is
chosen that neither K_a^-1 nor K_p^-1 joins, and their effects x_i (a_m of level i, and p_i = s_i - x_i) are integrated
out given all others. With A = G_a^-1, Q = G_p^-1, and rows of K^-1 times effects of which those of C are 0,

    r_i = sum_j kappa^a_ij a_j      g_i = sum_j kappa^p_ij p_j + kappa^p_ii s_i
    P_i = kappa^a_ii A_mm + kappa^p_ii Q               b_i = Q g_i - A_m r_i
    x_i ~ N(P_i^-1 b_i, P_i^-1)

    log p(G_a, G_p, a, p but those of C | s) = log p(G_a) + log p(G_p) - (q_a log|G_a| + q_p log|G_p|) / 2
        - (tr A a'K_a^-1 a + tr Q (p'K_p^-1 p + sum_C g_i s_i' + s_i g_i' - kappa^p_ii s_i s_i')) / 2
        + sum_C (b_i' P_i^-1 b_i - log|P_i|) / 2

Where the effects a_m outside C become c times as large, p gives way: it gains (1 - c) a_m, r becomes c r and g becomes
g + (1 - c) d, with d_i the row of K_p^-1 times those a_m. Levels with the same diagonals of both K^-1 share the sum of
z z', z = (r, g, d), so that a value of the density costs next to nothing, however many levels there are. Where
diagonals differ a little within such a bin, the sum over levels one by one tells by how much the shared one is off.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy
from numba import njit

from mmgibbs.draws.small_matrices import SINGULAR, cholesky
from mmgibbs.equations.relationships import quadratic_form, times_row, weight
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.kernel_options import ENTRY, WITHIN
from mmgibbs.machine.threads import PIECE, SHARES_PER_THREAD, Threads
from mmgibbs.model.shared_levels import SharedLevels

BINS = 32  # of levels by the diagonals of both K^-1


class Sums(NamedTuple):
    """What the passes over the levels leave of theta, for densities of both matrices; z is k_a + 2 k_p."""

    components: np.ndarray  # (k_p,) int64 m(t)
    squares_a: np.ndarray  # (k_a, k_a) a'K_a^-1 a, those of C 0
    squares_p: np.ndarray  # (2 k_p, 2 k_p) the same of p, and of a_m at the levels of p, side by side
    cross: np.ndarray  # (2 k_p, k_p) sum_C (g, d)_i s_i'
    own: np.ndarray  # (k_p, k_p) sum_C kappa^p_ii s_i s_i'
    kappa: np.ndarray  # (bins, 2) kappa^a_ii and kappa^p_ii
    n: np.ndarray  # (bins,) levels
    products: np.ndarray  # (bins, z, z) sum of (r, g, d)_i (r, g, d)_i'


class CompetingTerms:
    """The levels C of two terms of the equations, in bins, and the passes over them and over the other levels.

    `a` (q_a, k_a) and `p` (q_p, k_p) are the effects, float64 in sweep order; at C, a_m is the mean of x, or 0, and p
    is 0. Sums are taken in pieces of fixed length: they do not depend on the number of threads.
    """

    def __init__(self, equations: StructuredEquations, shared: SharedLevels, threads: Threads):
        self.shared, self.threads = shared, threads
        self.K_a, self.K_p = (equations.relationships[i] for i in (shared.a, shared.p))
        self.components = np.array(shared.components, np.int64)
        terms = [equations.design.terms[i].relationship.inverse_csr() for i in (shared.a, shared.p)]
        of_a, of_p = (scipy.sparse.csr_array((values, indices, indptr)) for indptr, indices, values in terms)
        chosen = unjoined(shared.levels, of_a, of_p)
        kappa = np.stack([of_a.diagonal()[shared.levels[0, chosen]], of_p.diagonal()[shared.levels[1, chosen]]], axis=1)
        order, bins, self.kappa_of_bin, self.alike = in_bins(kappa)
        self.kappa, chosen = kappa[order], chosen[order]
        self.count = np.diff(bins)
        cuts = [np.arange(first, last, PIECE) for first, last in pairwise(bins)]
        self.first = np.concatenate(cuts)  # of each piece; none lies in two bins
        self.last = np.concatenate([np.append(cut[1:], end) for cut, end in zip(cuts, bins[1:], strict=True)])
        self.bin_begins = np.concatenate([[0], np.cumsum([cut.size for cut in cuts])[:-1]])  # among the pieces
        code_a, code_p = (equations.terms[i].code for i in (shared.a, shared.p))
        at_a, at_p = positions(code_a)[shared.levels[0]], positions(code_p)[shared.levels[1]]
        self.at_a, self.at_p = at_a[chosen], at_p[chosen]  # (n,) sweep positions of C
        self.code = shared.levels[0, chosen].astype(np.int32)  # (n,) model order, of a
        self.x_in_a = self.at_a[:, None], self.components  # where `a` has the effects of C
        others = np.setdiff1d(np.arange(len(at_a)), chosen)
        self.other_a, self.other_p = at_a[others], at_p[others]
        # The levels of a outside C that a sweep moves: those whose p is joined with others stay where they are.
        pair = np.full(len(code_a), -1)
        pair[at_a] = at_p
        outside = np.setdiff1d(np.arange(len(code_a)), self.at_a)
        self.outside = outside if of_p.nnz == len(code_p) else outside[pair[outside] < 0]
        self.outside_p = pair[self.outside]  # -1: none
        self.outside_code = code_a[self.outside]
        self.outside_kappa = np.where(self.outside_p < 0, 0.0, of_p.diagonal()[code_p[self.outside_p]])
        near = of_a[self.outside_code][:, self.code]
        self.near_first, self.near, self.near_kappa = near.indptr.astype(np.int64), near.indices, near.data

    def __len__(self) -> int:
        """Levels of C."""
        return len(self.code)

    def take(self, theta_a: np.ndarray, theta_p: np.ndarray) -> None:
        """Begin from these effects, in sweep order."""
        self.a, self.p = theta_a.astype(float), theta_p.astype(float)
        self.s = self.a[self.x_in_a] + self.p[self.at_p]  # (n, k_p)
        self.p[self.at_p] = 0.0

    def sums(self) -> Sums:
        """Of the effects as they are now. What belongs to single levels is kept for `of_levels` and `expect`."""
        k = len(self.components)
        self.a[self.x_in_a] = 0.0
        beside = np.zeros((len(self.p), 2 * k))
        beside[:, :k] = self.p
        beside[self.other_p, k:] = self.a[self.other_a[:, None], self.components]
        self.z = np.empty((len(self), self.a.shape[1] + 2 * k))
        products, cross = np.empty((len(self.first), *2 * (self.z.shape[1],))), np.empty((len(self.first), 2 * k, k))
        own = np.empty((len(self.first), k, k))
        where = self.at_a, self.at_p, self.kappa, self.first, self.last
        self._pieces(sum_levels, self.K_a, self.K_p, self.a, beside, self.s, *where, self.z, products, cross, own)
        return Sums(
            self.components,
            quadratic_form(self.K_a, self.a),
            quadratic_form(self.K_p, beside),
            cross.sum(axis=0),
            own.sum(axis=0),
            self.kappa_of_bin,
            self.count,
            np.add.reduceat(products, self.bin_begins, axis=0),
        )

    def of_levels(self, P_a: np.ndarray, P_p: np.ndarray, B: np.ndarray) -> float:
        """sum_C (b'P^-1 b - log|P|) / 2 level by level: P = kappa^a P_a + kappa^p P_p, b = B z; P_a and P_p (k_p, k_p),
        B (k_p, z)."""
        sums = np.empty(len(self.first))
        self._pieces(sum_of_levels, P_a, P_p, B, self.kappa, self.z, self.first, self.last, sums)
        return float(sums.sum())

    def expect(self, given: tuple[np.ndarray, np.ndarray, np.ndarray], scale: np.ndarray) -> None:
        """The a_m outside C times scale (k_p,), p gives way; at C their means P^-1 b. given: P_a, P_p and B, from which
        `of_levels` has P and b."""
        self.factors, self.follow = np.empty((2, len(self), *given[0].shape))
        means, own = np.empty_like(self.s), (*given, self.kappa, self.z)
        self._pieces(expect_levels, *own, self.first, self.last, self.factors, means, self.follow)
        others = self.other_a[:, None], self.components
        self.p[self.other_p] += (1.0 - scale) * self.a[others]
        self.a[:, self.components] *= scale
        self.a[self.x_in_a] = means

    def sweep(self, A: np.ndarray, Q: np.ndarray, normals: np.ndarray) -> int:
        """A Gibbs sweep over the levels outside C given s, those of C integrated out: normals (levels, k_p). Returns
        -1, or the sweep position of a level of a that cannot be drawn."""
        failed: int = sweep_outside(
            (0,) * len(Q), self.K_a, A, Q, self.components, self.outside, self.outside_p, self.outside_kappa,
            self.near_first, self.near, self.near_kappa, self.at_a, self.follow, normals, self.a, self.p,
        )  # fmt: skip
        return failed

    def draw(self, normals: np.ndarray) -> None:
        """x of C; normals (n, k_p)."""
        k = len(self.components)
        for t in range(k - 1, -1, -1):  # x = mean + L^-T normals
            for u in range(t + 1, k):
                normals[:, t] -= self.factors[:, u, t] * normals[:, u]
            normals[:, t] /= self.factors[:, t, t]
        self.a[self.x_in_a] += normals

    def effects(self, theta_a: np.ndarray, theta_p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Copies of these (q, k), with the effects as they are now: what p loses is what a gains as it is stored."""
        of_a, of_p, m = theta_a.copy(), theta_p.copy(), self.components
        of_a[:, m] = self.a[:, m]
        change = of_a[:, m].astype(float) - theta_a[:, m]
        for at_a, at_p in ((self.at_a, self.at_p), (self.other_a, self.other_p)):
            of_p[at_p] = theta_p[at_p] - change[at_a]
        return of_a, of_p

    def _pieces(self, kernel: Callable[..., None], *arguments: Any) -> None:
        """kernel(*arguments, first, last) on shares of the pieces."""
        n = len(self.first)
        shares = min(n, 1 if self.threads.count == 1 else SHARES_PER_THREAD * self.threads.count)
        cuts = [n * i // shares for i in range(shares + 1)]
        self.threads([partial(kernel, *arguments, a, b) for a, b in pairwise(cuts)])


def positions(code: np.ndarray) -> np.ndarray:
    """(q,) the sweep position of each level of the model."""
    out = np.empty(code.size, np.int64)
    out[code] = np.arange(code.size)
    return out


def unjoined(pairs: np.ndarray, K_a: scipy.sparse.csr_array, K_p: scipy.sparse.csr_array) -> np.ndarray:
    """(n,) int64, rising: of the pairs of levels (2, m), as many as are found that no K^-1 joins with each other, those
    with the fewest relatives first. K_a and K_p: both K^-1."""
    taken, joined = np.zeros((2, pairs.shape[1]), np.bool_)
    lists, relatives = [], np.zeros(pairs.shape[1], np.int64)
    for levels, K in zip(pairs, (K_a, K_p), strict=True):
        pair = np.full(K.shape[0], -1)
        pair[levels] = np.arange(len(levels))
        relatives += np.diff(K.indptr)[levels]
        lists += [levels, K.indptr.astype(np.int64), K.indices, pair]
    take_unjoined(np.argsort(relatives, kind="stable"), *lists, joined, taken)
    return np.flatnonzero(taken)


def in_bins(kappa: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """Levels by their diagonals (n, 2): their order, where each bin begins (bins + 1,), the diagonals of the bins
    (bins, 2), and whether all levels of a bin have just these."""
    values, inverse = np.unique(kappa, axis=0, return_inverse=True)
    alike, inverse = len(values) <= BINS, inverse.reshape(-1)
    if not alike:
        rank = np.argsort(np.argsort(kappa[:, 0] / kappa[:, 1], kind="stable"), kind="stable")
        inverse = rank * BINS // len(kappa)
        values = np.stack([np.bincount(inverse, weights=column) for column in kappa.T], axis=1)
        values /= np.bincount(inverse)[:, None]
    order = np.argsort(inverse, kind="stable")
    return order, np.concatenate([[0], np.cumsum(np.bincount(inverse))]), values, alike


@njit(cache=True, **ENTRY)
def take_unjoined(order, of_a, ptr_a, index_a, pair_a, of_p, ptr_p, index_p, pair_p, joined, taken):
    """taken[i] of pairs in `order`, unless one that is taken is its relative; pair_a and pair_p: of each level, or -1.
    joined (m,) are those that have a relative which is taken."""
    for i in order:
        if joined[i]:
            continue
        taken[i] = True
        for j in range(ptr_a[of_a[i]], ptr_a[of_a[i] + 1]):
            if pair_a[index_a[j]] >= 0:
                joined[pair_a[index_a[j]]] = True
        for j in range(ptr_p[of_p[i]], ptr_p[of_p[i] + 1]):
            if pair_p[index_p[j]] >= 0:
                joined[pair_p[index_p[j]]] = True


@njit(cache=True, **ENTRY)
def sum_levels(
    K_a, K_p, a, beside, s, at_a, at_p, kappa, first, last, z, products, cross, own, first_piece, last_piece
):
    """z (n, k_a + 2 k_p) and the sums of `Sums` of each piece (pieces, ...), from effects of which those of C are 0:
    a (q_a, k_a), and p with the a_m of its levels beside it (q_p, 2 k_p)."""
    k_a, k = a.shape[1], s.shape[1]
    for piece in range(first_piece, last_piece):
        products[piece], cross[piece], own[piece] = 0.0, 0.0, 0.0
        for i in range(first[piece], last[piece]):
            times_row(K_a, np.uint64(at_a[i]), a, z[i, :k_a])
            times_row(K_p, np.uint64(at_p[i]), beside, z[i, k_a:])
            for t in range(k):
                z[i, k_a + t] += kappa[i, 1] * s[i, t]
                for u in range(k):
                    own[piece, t, u] += kappa[i, 1] * s[i, t] * s[i, u]
            for v in range(z.shape[1]):
                for w in range(v + 1):
                    products[piece, v, w] += z[i, v] * z[i, w]
            for v in range(2 * k):
                for u in range(k):
                    cross[piece, v, u] += z[i, k_a + v] * s[i, u]
        for v in range(z.shape[1]):
            for w in range(v):
                products[piece, w, v] = products[piece, v, w]


@njit(cache=True, forceinline=True, **WITHIN)
def factor_and_solve(P_a, P_p, B, kappa_a, kappa_p, z, P, L, b):
    """L L' = P = kappa^a P_a + kappa^p P_p and b <- L^-1 B z; log|P| / 2, nan where P is not positive definite."""
    k = b.size
    for t in range(k):
        for u in range(t + 1):
            P[t, u] = kappa_a * P_a[t, u] + kappa_p * P_p[t, u]
    if not cholesky(P, L, SINGULAR):
        return np.nan
    half = 0.0
    for t in range(k):
        b[t] = 0.0
        for v in range(z.size):
            b[t] += B[t, v] * z[v]
        for u in range(t):
            b[t] -= L[t, u] * b[u]
        b[t] /= L[t, t]
        half += np.log(L[t, t])
    return half


@njit(cache=True, **ENTRY)
def sum_of_levels(P_a, P_p, B, kappa, z, first, last, sums, first_piece, last_piece):
    """sums[piece] of `of_levels`."""
    k = len(P_a)
    P, L, b = np.empty((k, k)), np.empty((k, k)), np.empty(k)
    for piece in range(first_piece, last_piece):
        sums[piece] = 0.0
        for i in range(first[piece], last[piece]):
            sums[piece] -= factor_and_solve(P_a, P_p, B, kappa[i, 0], kappa[i, 1], z[i], P, L, b)
            for t in range(k):
                sums[piece] += 0.5 * b[t] * b[t]


@njit(cache=True, **ENTRY)
def expect_levels(P_a, P_p, B, kappa, z, first, last, factors, means, follow, first_piece, last_piece):
    """factors[i] <- L, means[i] <- P^-1 b and follow[i] <- P^-1 P_a of the levels of the pieces."""
    k = len(P_a)
    P, column = np.empty((k, k)), np.empty(k)
    for piece in range(first_piece, last_piece):
        for i in range(first[piece], last[piece]):
            factor_and_solve(P_a, P_p, B, kappa[i, 0], kappa[i, 1], z[i], P, factors[i], means[i])
            solve_transposed(factors[i], means[i])
            for u in range(k):
                for t in range(k):
                    column[t] = P_a[t, u]
                solve(factors[i], column)
                solve_transposed(factors[i], column)
                for t in range(k):
                    follow[i, t, u] = column[t]


@njit(cache=True, forceinline=True, **WITHIN)
def solve(L, b):
    """b <- L^-1 b."""
    for t in range(b.size):
        for u in range(t):
            b[t] -= L[t, u] * b[u]
        b[t] /= L[t, t]


@njit(cache=True, forceinline=True, **WITHIN)
def solve_transposed(L, b):
    """b <- L^-T b."""
    for t in range(b.size - 1, -1, -1):
        for u in range(t + 1, b.size):
            b[t] -= L[u, t] * b[u]
        b[t] /= L[t, t]


@njit(cache=True, **ENTRY)
def sweep_outside(
    k_, K_a, A, Q, components, outside, outside_p, kappa_p, near_first, near, near_kappa, at_a, follow, normals, a, p
):
    """Draw a_m of each level outside C given s and all others outside C: with x of C integrated out,

        P = kappa^a A_mm + kappa^p Q - sum over near i of C of kappa_i^2 A_mm P_i^-1 A_mm
        change ~ N(P^-1 (Q kappa^p p - A_m sum_j kappa_j a_j), P^-1)

    a_m of C are their means, which follow: follow[i] = P_i^-1 A_mm. k_: a tuple of length k_p, for unrolled loops.
    Returns -1, or the sweep position of a level whose P is not positive definite.
    """
    k, k_a = len(k_), a.shape[1]
    row, change = np.empty(k_a), np.empty(k)
    P, L = np.empty((k, k)), np.empty((k, k))
    A_m, A_mm = A[components], A[components][:, components]
    for n in range(np.uint64(outside.size)):
        level, own = np.uint64(outside[n]), kappa_p[n]
        times_row(K_a, level, a, row)
        diagonal = weight(K_a, level)
        for t in range(k):
            change[t] = 0.0
            for j in range(k_a):
                change[t] -= A_m[t, j] * row[j]
            for u in range(k):
                P[t, u] = diagonal * A_mm[t, u] + own * Q[t, u]
                if own > 0.0:
                    change[t] += own * Q[t, u] * p[outside_p[n], u]
        for j in range(near_first[n], near_first[n + np.uint64(1)]):
            square, i = near_kappa[j] * near_kappa[j], near[j]
            for t in range(k):
                for u in range(k):
                    for v in range(k):
                        P[t, u] -= square * A_mm[t, v] * follow[i, v, u]
        if not cholesky(P, L, SINGULAR):
            return np.int64(level)
        solve(L, change)
        for t in range(k):
            change[t] += normals[n, t]
        solve_transposed(L, change)
        for t in range(k):
            a[level, components[t]] += change[t]
            if own > 0.0:
                p[outside_p[n], t] -= change[t]
        for j in range(near_first[n], near_first[n + np.uint64(1)]):
            at, i = at_a[near[j]], near[j]
            for t in range(k):
                for u in range(k):
                    a[at, components[t]] -= near_kappa[j] * follow[i, t, u] * change[u]
    return np.int64(-1)
