"""Levels of a random term whose covariance matrix has no inverse, G = L L' (k x k of rank f): drawn by their scores.

theta_l = L s_l with s ~ MN(0, K (x) I), so that given everything else the scores of a level move by N(P^-1 rhs, P^-1),

    P   = kappa_ll I + L' (sum_{r in l} W_r' R_r^-1 W_r) L
    rhs = -sum_m kappa_lm s_m + L' sum_{r in l} W_r' R_r^-1 e_r          (m = l included, s_m = (L'L)^-1 L' theta_m)

and theta_l by L times that. L is the one of the leading eigenvectors of G: any other rotation gives the same G, and so
the same distribution of theta. Levels that a dense block of K^-1 joins read their row of it.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mmgibbs.draws.normal import fill_normals
from mmgibbs.draws.purpose import LOCATION, Site, stream
from mmgibbs.engines.base import Key, SweepEngine, refuse_singular
from mmgibbs.engines.level import apply_increment, draw_level
from mmgibbs.equations.dense import DenseLevels, dot
from mmgibbs.equations.partition import Block
from mmgibbs.equations.records import accumulate_level_rhs, subtract_level_fit, sum_level_cross_products
from mmgibbs.equations.relationships import times_row, weight
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import ModelError
from mmgibbs.machine.threads import ALONE, Threads, equal_ranges
from mmgibbs.models.design import Design
from mmgibbs.models.structures.reduced_rank import factor_of_rank
from mmgibbs.pedigree.kernels import kernel

LEVELS_PER_CHUNK = np.uint64(1024)  # whose normals are drawn together
MIN_LEVELS_PER_RANGE = 512  # fewer are not worth a thread
ONE = np.uint64(1)


def with_scores(design: Design) -> str | None:
    """Say of the first term whose covariance matrix has no inverse that an engine has no sweep for it."""
    name = design.reduced_rank_name
    return name and (
        f"a covariance matrix of reduced rank (variances.{name}.structure), which has no inverse; use engine: serial, "
        "or structured on the CPU"
    )


class ScoreSweep:
    """The levels of a block one after another, in ranges that may run at once where the levels share nothing."""

    def __init__(self, equations: StructuredEquations, block: Block, threads: Threads = ALONE):
        term, dense = equations.design.terms[block.term], equations.dense[block.term]
        if block.last_component - block.first_component < term.n_components:
            raise ModelError(
                "sampler.partition: found effect, which cannot be combined with a covariance matrix of reduced rank "
                f"(variances.{term.name}.structure); needed auto"
            )
        if block.dense and not isinstance(dense, DenseLevels):
            raise ModelError(
                f"variances.{term.name}.structure: reduced_rank cannot be combined with an inverse by a core of the "
                "genotyped animals; needed structure: factor_analytic, or an inverse without a core"
            )
        self.equations, self.block, self.threads = equations, block, threads
        self.n_scores = equations.design.n_scores[block.term]
        self.rows = dense.values if isinstance(dense, DenseLevels) and block.dense else np.empty((0, 0))
        self.lists = (equations.terms[block.term], equations.relationships[block.term], equations.records)
        self.stream = stream(LOCATION, block.term)
        n, count = block.last - block.first, 1 if block.dense else threads.count
        self.ranges = equal_ranges(np.ones(n), max(1, min(count, n // MIN_LEVELS_PER_RANGE)), block.first)

    def renew(self, state: SweepEngine) -> None:
        """L and (L'L)^-1 L' of the current G."""
        G = state.G[self.block.term]
        assert G is not None
        self.L = factor_of_rank(np.asarray(G, np.float64), self.n_scores)
        self.to_scores = np.ascontiguousarray(np.linalg.pinv(self.L))  # (f, k)

    def __call__(self, state: SweepEngine, number: int, key: Key) -> None:
        site = Site(number, self.stream, *key)
        self.threads([partial(self._sweep_range, state, first, last, site) for first, last in self.ranges])

    def _sweep_range(self, state: SweepEngine, first: int, last: int, site: Site) -> None:
        """Draw the levels first ... last - 1 (sweep positions)."""
        i = self.block.term
        end = sweep_scores(
            *self.lists, self.rows, np.uint64(self.block.first), state.theta[i], state.e, self.L, self.to_scores,
            state.Rinv, np.uint64(first), np.uint64(last), site,
        )  # fmt: skip
        if end < last:
            refuse_singular(self.equations, i, end)


@kernel
def sweep_scores(term, K, records, S, start, theta, e, L, to_scores, Rinv, first, last, site):
    """Draw the levels first ... last - 1 (sweep positions, unsigned) of one term. Returns `last`, or the position whose
    P is not positive definite.

    term, K, records: lists of equations/structured.py; S (m, m): the dense block of K^-1, of the levels from `start`
    on, or without rows; theta (q, k) and e (n, T) are updated in place; L (k, f), to_scores (f, k) its pseudo-inverse;
    Rinv (patterns, T, T). site: Site of the draws.
    """
    k, f = L.shape
    C, row, rhs, change = np.empty((k, k)), np.empty(k), np.empty(k), np.empty(k)
    P, factor, rhs_of_scores, move = np.empty((f, f)), np.empty((f, f)), np.empty(f), np.empty(f)
    product, normals = np.empty((k, f)), np.empty((LEVELS_PER_CHUNK, f))
    number, stream, seed, chain = site
    dense = S.shape[0]
    columns = np.empty((k, dense))  # theta of the dense block, turned over
    for a in range(k):
        for j in range(dense):
            columns[a, j] = theta[start + np.uint64(j), a]
    for chunk in range(first, last, LEVELS_PER_CHUNK):
        end = min(last, chunk + LEVELS_PER_CHUNK)
        fill_normals(normals, number, term.code[chunk:end], stream, seed, chain)
        for level in range(chunk, end):
            z, first_entry, last_entry = normals[level - chunk], term.visit_ptr[level], term.visit_ptr[level + ONE]
            sum_level_cross_products(term, Rinv, level, C)  # C = W_l' R^-1 W_l, lower triangle
            times_row(K, level, theta, row)  # row = sum_m kappa_lm theta_m
            kappa = weight(K, level)
            if dense > 0:
                kappa += S[level - start, level - start]
                for a in range(k):
                    row[a] += dot(S[level - start], columns[a], 0, dense)
            rhs[:] = 0.0
            accumulate_level_rhs(term, records, first_entry, last_entry, Rinv, e, rhs)  # rhs = W_l' R^-1 e
            for a in range(k):  # product = C L
                for j in range(f):
                    s = 0.0
                    for b in range(k):
                        s += (C[a, b] if b <= a else C[b, a]) * L[b, j]
                    product[a, j] = s
            for i in range(f):
                rhs_of_scores[i] = 0.0
                for a in range(k):
                    rhs_of_scores[i] += L[a, i] * rhs[a] - to_scores[i, a] * row[a]
                for j in range(i + 1):
                    P[i, j] = kappa if i == j else 0.0
                    for a in range(k):
                        P[i, j] += L[a, i] * product[a, j]
            if not draw_level(P, rhs_of_scores, z, factor, move):
                return level
            for a in range(k):
                change[a] = 0.0
                for j in range(f):
                    change[a] += L[a, j] * move[j]
            apply_increment(theta, level, change)
            if dense > 0:
                for a in range(k):
                    columns[a, level - start] = theta[level, a]
            subtract_level_fit(term, first_entry, last_entry, change, e)  # e -= W_l change
    return last
