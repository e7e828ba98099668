"""How records see a linear change of a term, theta_l -> M theta_l (equations/scaling.py), for many levels and records:
in pieces of records of fixed length that any thread may take, a row of theta or of e as one vector.

    A record's rows of theta, x_e = theta_l(r, e) for each effect e of the term, and its residuals e_r:

    xx[pattern] = sum_r w_r x_i x_j', j <= i        xe[pattern] = sum_r w_r x_i e_r'        e_r -= W_r (change of theta)

Sums are made piece by piece and added in order, so that they do not depend on the number of threads.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mmgibbs.engines.coloured.unrolled import unroll_term
from mmgibbs.equations.scaling import Plan, Scaling
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.intrinsics import add_multiple, prefetch, set_multiple, stack_array, widen
from mmgibbs.machine.threads import Threads
from mmgibbs.pedigree.kernels import kernel

AHEAD = np.uint64(24)  # records ahead for which memory is asked: rows of theta are mostly waiting for it


class RowScaling(Scaling):
    """`Scaling` with threads, and vectors, for terms of 1 to 4 components and traits without covariates; others as
    `Scaling` does them.

    rows: (q + 1, k) of each term, whose last row, 0, represents a level that a record does not meet.
    """

    def __init__(self, equations: StructuredEquations, rows: list[np.ndarray], threads: Threads):
        super().__init__(equations)
        self.rows, self.threads = rows, threads
        self._tuples = [row_tuples(equations, i) for i in range(len(equations.terms))]
        self._picks: dict[int, np.ndarray] = {}

    def _rows(self, term: int, theta: np.ndarray) -> np.ndarray:
        """Return the rows (q + 1, k) that M multiplies, with the row of 0."""
        at = self._deviations(term, theta)
        return self.rows[term] if at is theta else np.concatenate([at, np.zeros_like(at[:1])])

    def _sums(
        self, term: int, plan: Plan, theta: np.ndarray, e: np.ndarray, Rinv: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        tuples, eq = self._tuples[term], self.equations
        if tuples is None:
            return super()._sums(term, plan, theta, e, Rinv)
        (k_, T_, E_), patterns, pieces = tuples, len(Rinv), self.threads.pieces(len(e))
        k, E, W_ = len(k_), len(E_), padded_width(T_)
        xx, xe = pieces.sums(patterns * E * k * E, k), pieces.sums(patterns * E * k, len(W_))
        of_stack = ((0,) * (E * k * E), (0,) * (E * k)) if patterns == 1 else ((), ())
        met = MetRows(self.record_levels(term), self._rows(term, theta))
        pieces(partial(sum_rows, eq.records, met, *tuples, W_, *of_stack, e), xx, xe)
        of_e = xe[:, : patterns * E * k].sum(axis=0)[:, : len(T_)].reshape(patterns, E, k, -1)
        of_x = xx[:, : patterns * E * k * E].sum(axis=0).reshape(patterns, E, k, E, k)
        return sum_places(plan, of_x, of_e)

    def transform(self, term: int, M: np.ndarray, theta: np.ndarray, e: np.ndarray) -> None:
        tuples = self._tuples[term]
        if tuples is None:
            super().transform(term, M, theta, e)
            return
        lists, rows = self.equations.terms[term], self._rows(term, theta)
        D = np.ascontiguousarray((np.asarray(M, float) - np.eye(len(M))).T)
        if term not in self._picks:
            self._picks[term] = rows_of_traits(lists.effect_first, lists.trait, len(padded_width(tuples[1])))
        moves = D @ self._picks[term]
        data = (self.record_levels(term), *tuples, padded_width(tuples[1]), moves.reshape(-1, moves.shape[-1]), rows, e)
        self.threads.pieces(len(e))(partial(move_records, *data))
        self.threads.pieces(len(theta))(partial(move_rows, tuples[0], D, self.rows[term], rows))


def row_tuples(equations: StructuredEquations, term: int) -> tuple[tuple, tuple, tuple] | None:
    """k_, T_ and one for the effects, of lengths that the compiler sees; None where vectors do not fit: more than 4
    components or traits, more than two effects, covariates, several levels per record, or too few levels for compiling
    to pay."""
    lists, (k_, T_) = equations.terms[term], unroll_term(equations, term)
    effects = lists.effect_first.size - 1
    plain = lists.covariates.shape[0] == 0 and not equations.design.terms[term].has_several_levels
    return (k_, T_, (0,) * effects) if k_ and T_ and effects <= 2 and plain else None


def sum_places(plan: Plan, xx: np.ndarray, xe: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum over the positions of a plan: (patterns, m, m) lower triangle and (patterns, m, T)."""
    effect, component = plan.effect, plan.component
    i, j = pairs_of_places(tuple(effect.tolist()))
    out = np.zeros((len(xx), effect.size, effect.size))
    out[:, i, j] = out[:, j, i] = xx[:, effect[i], component[i], effect[j], component[j]]
    return out, np.ascontiguousarray(xe[:, effect, component])


@cache
def pairs_of_places(effect: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """List each pair of positions once, the position of the later effect first; blocks of effects are listed once."""
    i, j = np.tril_indices(len(effect))
    swap = np.array(effect)[i] < np.array(effect)[j]
    return np.where(swap, j, i), np.where(swap, i, j)


def padded_width(T_: tuple) -> tuple:
    """Pad a vector of three numbers to four: one instruction instead of two."""
    return (0,) * (4 if len(T_) == 3 else len(T_))


def rows_of_traits(effect_first: np.ndarray, trait: np.ndarray, n_traits: int) -> np.ndarray:
    """Mark the trait of each component, (effects, k, T).

    Row c of effect e is 1 at the trait of component c, where c belongs to the effect; else 0.
    """
    out = np.zeros((effect_first.size - 1, trait.size, n_traits))
    for effect, (first, last) in enumerate(pairwise(effect_first)):
        out[effect, np.arange(first, last), trait[first:last]] = 1.0
    return out


class MetRows(NamedTuple):
    """Rows of theta and which of them each record meets."""

    levels: np.ndarray  # (n, E) uint32; q or more: none
    rows: np.ndarray  # (q + 1, k), the last one 0


@kernel
def sum_rows(records, met, k_, T_, E_, W_, X_, Y_, e, size, first_piece, last_piece, xx, xe):
    """xx[p] (patterns E k E, k) and xe[p] (patterns E k, W) of the pieces first_piece ... last_piece - 1 of `size`
    records; they come as zeros.

    met: MetRows; e (n, T). k_, T_, E_ and W_: tuples of the components, traits, effects and of T rounded up
    (`padded_width`); X_ and Y_: of E k E and E k where all records have one pattern, whose sums stay on the stack,
    mostly in registers; else ().
    """
    pattern, weight = records.pattern, records.weight
    levels, rows = met
    k, E, n = np.uint64(len(k_)), np.uint64(len(E_)), np.uint64(e.shape[0])
    none, weighted, end = np.uint32(rows.shape[0] - 1), weight.size > 0, n - np.uint64(1)
    x, residuals = stack_array((2, len(k_))), stack_array((1, len(W_)))
    one_x, one_e = stack_array((len(X_), len(k_))), stack_array((len(Y_), len(W_)))
    for p in range(np.uint64(first_piece), np.uint64(last_piece)):
        for row in range(len(X_)):
            set_multiple(k_, one_x, row, 1.0, xx[p], row)
        for row in range(len(Y_)):
            set_multiple(W_, one_e, row, 1.0, xe[p], row)
        of_x, of_e = (one_x, one_e) if len(X_) > 0 else (xx[p], xe[p])
        for r in range(p * np.uint64(size), min(n, (p + np.uint64(1)) * np.uint64(size))):
            ahead = min(r + AHEAD, end)
            w = np.float64(weight[r]) if weighted else 1.0
            first = np.uint64(0) if len(X_) > 0 else np.uint64(pattern[r]) * E * k
            widen(T_, W_, residuals, e, r)
            for i in range(len(E_)):
                prefetch(rows, min(levels[ahead, i], none))
                set_multiple(k_, x, i, 1.0, rows, min(levels[r, i], none))
            for i in range(len(E_)):
                for a in range(len(k_)):
                    wx, row = w * x[i, a], first + np.uint64(i) * k + np.uint64(a)
                    add_multiple(W_, of_e, row, wx, residuals, 0)
                    for j in range(i + 1):
                        add_multiple(k_, of_x, row * E + np.uint64(j), wx, x, j)
        for row in range(len(X_)):
            set_multiple(k_, xx[p], row, 1.0, one_x, row)
        for row in range(len(Y_)):
            set_multiple(W_, xe[p], row, 1.0, one_e, row)


@kernel
def move_records(levels, k_, T_, E_, W_, moves, rows, e, size, first_piece, last_piece):
    """e_r -= W_r D' (row of each effect) for the records of pieces first_piece ... last_piece - 1 of `size` records.

    moves (E k, W): row i k + b is what a unit of component b moves the T residuals by through effect i. levels (n, E)
    uint32, rows (q + 1, k), the last one 0; e (n, T) in place; k_, T_, E_ and W_: tuples as of `sum_rows`.
    """
    k, n = np.uint64(len(k_)), np.uint64(e.shape[0])
    none, end = np.uint32(rows.shape[0] - 1), n - np.uint64(1)
    residuals = stack_array((1, len(W_)))
    for r in range(np.uint64(first_piece) * np.uint64(size), min(n, np.uint64(last_piece) * np.uint64(size))):
        ahead = min(r + AHEAD, end)
        widen(T_, W_, residuals, e, r)
        for i in range(len(E_)):
            prefetch(rows, min(levels[ahead, i], none))
            level = min(levels[r, i], none)
            for b in range(len(k_)):
                x = -np.float64(rows[level, b])
                add_multiple(W_, residuals, 0, x, moves, np.uint64(i) * k + np.uint64(b))
        set_multiple(T_, e, r, 1.0, residuals, 0)


@kernel
def move_rows(k_, D, theta, rows, size, first_piece, last_piece):
    """theta_l += D' (row l) for the levels of the pieces: theta and rows (q + 1, k), D (k, k) float64."""
    row = stack_array((1, len(k_)))
    last = min(np.uint64(theta.shape[0] - 1), np.uint64(last_piece) * np.uint64(size))
    for level in range(np.uint64(first_piece) * np.uint64(size), last):
        set_multiple(k_, row, 0, 1.0, theta, level)
        for b in range(len(k_)):
            add_multiple(k_, row, 0, np.float64(rows[level, b]), D, b)
        set_multiple(k_, theta, level, 1.0, row, 0)
