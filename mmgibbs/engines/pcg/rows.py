"""C times one vector, over threads: a row of theta, of e or of a diagonal block is one vector of the processor.

    records    u_r = w_r R_P^-1 W_r theta          pieces of records, each written by one thread
    levels     sum_{r in l} W_r' u_r + G^-1 (K^-1 Theta)_l      ranges of levels with about equal work

Every sum is that of one level or one record, made whole by one thread in the order of its list, so that the values do
not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Self

import numpy as np
from numba import carray
from numba.extending import overload

from mmgibbs.engines.coloured.record_rows import move_records, padded_width, row_tuples, rows_of_traits
from mmgibbs.equations.scaling import Scaling
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.intrinsics import add_multiple, prefetch, set_multiple, stack
from mmgibbs.machine.threads import SHARES_PER_THREAD, Threads, equal_ranges
from mmgibbs.models.relationships.identity import IdentityLists
from mmgibbs.models.relationships.pedigree import PedigreeLists
from mmgibbs.pedigree.kernels import kernel

AHEAD = np.uint64(24)  # visits, or levels, ahead for which memory is asked


class RowProduct:
    """C x and M x for x (N,) in sweep order, where every term fits (`row_product`)."""

    def __init__(self, equations: StructuredEquations, bounds: np.ndarray, threads: Threads):
        self.equations, self.bounds, self.threads = equations, bounds, threads
        tuples = [row_tuples(equations, i) for i in range(len(equations.terms))]
        self.tuples = [t for t in tuples if t is not None]
        scaling, n, self.T_ = Scaling(equations), equations.records.y.shape[0], self.tuples[0][1]
        self.levels = [scaling.record_levels(i) for i in range(len(tuples))]
        self.picks = [rows_of_traits(t.effect_first, t.trait, len(self.T_)) for t in equations.terms]
        self.theta = [np.zeros((t.n_levels + 1, t.n_components)) for t in equations.design.terms]
        self.u = np.zeros((n, len(padded_width(self.T_))))
        self.positions = [np.arange(t.n_levels, dtype=np.uint32) for t in equations.design.terms]
        self.ranges = [self.split_levels(i, levels) for i, levels in enumerate(self.positions)]

    def copy_for_thread(self) -> Self:
        """Copy the equations with vectors of their own, so that another thread can use them at the same time."""
        twin = copy(self)
        twin.theta, twin.u = [np.zeros(theta.shape) for theta in self.theta], np.zeros(self.u.shape)
        return twin

    def split_levels(self, term: int, positions: np.ndarray) -> list[tuple[int, int]]:
        """Ranges of some levels of a term, with about equal work."""
        lists, K = self.equations.terms[term], self.equations.relationships[term]
        work = np.diff(lists.visit_ptr.astype(np.int64)) + 2
        if K.relative_ptr is not None:
            work = work + np.diff(K.relative_ptr.astype(np.int64))
        most = 1 if self.threads.count == 1 else SHARES_PER_THREAD * self.threads.count
        return equal_ranges(work[positions], most)

    def times(self, x: np.ndarray, Ginv: list[np.ndarray], Rinv: np.ndarray) -> np.ndarray:
        """C x, of an x that is 0 where components are set to 0."""
        for i, (k_, _, _) in enumerate(self.tuples):
            self.theta[i][:-1] = x[self.bounds[i] : self.bounds[i + 1]].reshape(-1, len(k_))
        self.weigh_fitted(Rinv)
        return self.sums(Ginv)

    def precision_columns(self, Rinv: np.ndarray) -> np.ndarray:
        """Row P T + t is column t of R_P^-1, in whole vectors."""
        columns = np.zeros((len(Rinv) * len(self.T_), len(padded_width(self.T_))))
        columns[:, : len(self.T_)] = Rinv.transpose(0, 2, 1).reshape(len(columns), -1)
        return columns

    def weigh_fitted(self, Rinv: np.ndarray) -> None:
        """u_r = w_r R_P^-1 W_r theta."""
        records = self.equations.records
        self.u[:] = 0.0
        W_, whole_rows = padded_width(self.T_), len(padded_width(self.T_))
        pieces = self.threads.pieces(len(self.u))
        for i, (k_, _, E_) in enumerate(self.tuples):
            moves = np.zeros((len(E_) * len(k_), whole_rows))
            moves[:, : len(self.T_)] = -self.picks[i].reshape(len(moves), -1)
            pieces(partial(move_records, self.levels[i], k_, W_, E_, W_, moves, self.theta[i], self.u))
        weigh: Callable[..., None] = weigh_rows
        pieces(partial(weigh, records.pattern, records.weight, self.T_, W_, self.precision_columns(Rinv), self.u))

    def picked(self, i: int) -> np.ndarray:
        """Row e T + t (k,) is 1 at the component of effect e on trait t."""
        return np.ascontiguousarray(self.picks[i].transpose(0, 2, 1)).reshape(-1, self.picks[i].shape[1])

    def sums(self, Ginv: list[np.ndarray]) -> np.ndarray:
        """W' u + K^-1 Theta G^-1 of the levels at `positions`, term by term."""
        out, calls = np.empty(self.bounds[-1]), []
        sums: Callable[..., None] = sum_levels
        for i, (k_, _, _) in enumerate(self.tuples):
            total = out[self.bounds[i] : self.bounds[i + 1]].reshape(-1, len(k_))
            lists, K = self.equations.terms[i], self.equations.relationships[i]
            data = (lists, K, k_, self.T_, self.picked(i), Ginv[i], self.theta[i], self.u, self.positions[i], total)
            calls += [partial(sums, *data, first, last) for first, last in self.ranges[i]]
        self.threads(calls)
        return out

    def precondition(self, x: np.ndarray, inverses: list[np.ndarray]) -> np.ndarray:
        """Multiply x by the inverse of each level's block."""
        out, calls = np.empty(x.size), []
        multiply: Callable[..., None] = multiply_blocks
        for i, (k_, _, _) in enumerate(self.tuples):
            of_term = slice(self.bounds[i], self.bounds[i + 1])
            rows = [a[of_term].reshape(-1, len(k_)) for a in (x, out)]
            blocks = inverses[i].reshape(-1, len(k_))
            calls += [partial(multiply, k_, blocks, *rows, first, last) for first, last in self.ranges[i]]
        self.threads(calls)
        return out


def row_product(equations: StructuredEquations, bounds: np.ndarray, threads: Threads) -> RowProduct | None:
    """Build the product by rows; None where a term does not fit."""
    return RowProduct(equations, bounds, threads) if fit_in_rows(equations) else None


def fit_in_rows(equations: StructuredEquations) -> bool:
    """1 to 4 components and traits, no covariates, a pedigree or independent levels without a dense block, and enough
    of them that compiling pays."""
    terms = range(len(equations.terms) if all(d is None for d in equations.dense) else 0)
    fits = all(row_tuples(equations, i) for i in terms) and all(type(K) in ROWS for K in equations.relationships)
    return fits and len(terms) > 0


def row_of_inverse(k_, K, theta, level, out):
    """out (1, k) <- sum_m kappa_lm theta_m, m = l included; the last row of theta (q + 1, k) is 0."""
    raise NotImplementedError("only compiled code can call this: Numba takes its body from the overload below")


def _independent(k_, K, theta, level, out):
    set_multiple(k_, out, 0, 1.0, theta, level)


def _family(k_, K, theta, level, out):
    none = np.uint32(theta.shape[0] - 1)
    half = 0.5 * np.float64(K.own[level])
    set_multiple(k_, out, 0, np.float64(K.diagonal[level]), theta, level)
    add_multiple(k_, out, 0, -half, theta, min(K.sire[level], none))
    add_multiple(k_, out, 0, -half, theta, min(K.dam[level], none))
    end = np.uint64(K.progeny.size) - np.uint64(1)
    for j in range(K.progeny_ptr[level], K.progeny_ptr[level + np.uint64(1)]):
        ahead = min(j + AHEAD, end)
        prefetch(theta, K.progeny[ahead])
        prefetch(theta, min(K.mate[ahead], none))
        of_calf, mate = 0.5 * np.float64(K.progeny_own[j]), min(K.mate[j], none)
        add_multiple(k_, out, 0, -of_calf, theta, K.progeny[j])
        # a group that represents both parents is its own mate: that part is in the diagonal already
        add_multiple(k_, out, 0, 0.5 * of_calf if mate != level else 0.0, theta, mate)


ROWS = {IdentityLists: _independent, PedigreeLists: _family}


@overload(row_of_inverse, jit_options={"forceinline": True}, strict=False)
def _row_of_inverse(k_, K, theta, level, out):
    return ROWS[K.instance_class]


@kernel
def weigh_rows(pattern, weight, T_, W_, columns, u, size, first_piece, last_piece):
    """u_r <- w_r R_P^-1 u_r for the records of the pieces; row P T + t of `columns` is column t of R_P^-1."""
    T, n, weighted = np.uint64(len(T_)), np.uint64(u.shape[0]), weight.size > 0
    weighted_row = carray(stack(W_, 1, 1), (1, len(W_)))
    for r in range(np.uint64(first_piece) * np.uint64(size), min(n, np.uint64(last_piece) * np.uint64(size))):
        w, first = np.float64(weight[r]) if weighted else 1.0, np.uint64(pattern[r]) * T
        set_multiple(W_, weighted_row, 0, w * u[r, 0], columns, first)
        for t in range(1, len(T_)):
            add_multiple(W_, weighted_row, 0, w * u[r, t], columns, first + np.uint64(t))
        set_multiple(W_, u, r, 1.0, weighted_row, 0)


@kernel
def sum_levels(term, K, k_, T_, picked, Ginv, theta, u, positions, out, first, last):
    """out_j = sum_{r in l} W_r' u_r + G^-1 (K^-1 Theta)_l, l = positions[j], j = first ... last - 1.

    out (.., k); the rest as of `sum_of_level`.
    """
    total, row = carray(stack(k_, 1, 1), (1, len(k_))), carray(stack(k_, 1, 1), (1, len(k_)))
    for j in range(np.uint64(first), np.uint64(last)):
        sum_of_level(term, K, k_, T_, picked, Ginv, theta, u, np.uint64(positions[j]), row, total)
        set_multiple(k_, out, j, 1.0, total, 0)


@kernel(forceinline=True)
def sum_of_level(term, K, k_, T_, picked, Ginv, theta, u, level, row, total):
    """total (1, k) <- sum_{r in l} W_r' u_r + G^-1 (K^-1 Theta)_l, 0 for components set to 0.

    term, K: lists of equations/structured.py, k_ and T_ tuples of coloured/unrolled.py. picked (effects T, k): row
    e T + t is 1 at the component of effect e on trait t; Ginv (k, k); theta (q + 1, k), its last row 0; u (n, T);
    level: its position in the sweep, uint64; row (1, k): work space.
    """
    several, masked, T = term.visit_effect.size > 0, term.active.shape[0] > 0, np.uint64(len(T_))
    end = max(np.uint64(term.visit_record.size), np.uint64(1)) - np.uint64(1)
    row_of_inverse(k_, K, theta, level, row)
    set_multiple(k_, total, 0, row[0, 0], Ginv, 0)
    for b in range(1, len(k_)):
        add_multiple(k_, total, 0, row[0, b], Ginv, b)
    for v in range(term.visit_ptr[level], term.visit_ptr[level + np.uint64(1)]):
        prefetch(u, term.visit_record[min(v + AHEAD, end)])
        r, at = term.visit_record[v], np.uint64(term.visit_effect[v]) * T if several else np.uint64(0)
        for t in range(len(T_)):
            add_multiple(k_, total, 0, u[r, t], picked, at + np.uint64(t))
    if masked:
        for c in range(len(k_)):
            total[0, c] = total[0, c] if term.active[level, c] else 0.0


@kernel
def multiply_blocks(k_, blocks, x, out, first, last):
    """out_l = block_l x_l for symmetric blocks (q k, k), levels first ... last - 1."""
    k, total = np.uint64(len(k_)), carray(stack(k_, 1, 1), (1, len(k_)))
    for level in range(np.uint64(first), np.uint64(last)):
        set_multiple(k_, total, 0, x[level, 0], blocks, level * k)
        for b in range(1, len(k_)):
            add_multiple(k_, total, 0, x[level, b], blocks, level * k + np.uint64(b))
        set_multiple(k_, out, level, 1.0, total, 0)
