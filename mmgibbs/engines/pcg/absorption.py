"""Conjugate gradients on what is left of the equations when animals without progeny are absorbed.

Let I be levels of one term of which no two are related or met by one record, such as animals without progeny, and A
all other levels. C_II is then the levels' own blocks D, and C theta = b is, exactly (Quaas & Pollak 1980; Saad 2003,
ch. 14),

    S theta_A = b_A - C_AI D^-1 b_I        S = C_AA - C_AI D^-1 C_IA        theta_I = D^-1 (b_I - C_IA theta_A)

S x is one pass over the data, as C x is: x_I = -D^-1 C_IA x_A is found on the way, after the records are fitted by x_A
and before their sums are made. The residual of all equations is that of S, as those of I hold exactly. The
preconditioner is the inverse of each level's block of S,

    S_ll = C_ll - sum_{i in I} C_li D_i^-1 C_il
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numba import carray
from numba.extending import overload

from mmgibbs.engines.coloured.record_rows import padded_width
from mmgibbs.engines.pcg.blocks import invert_blocks, level_blocks
from mmgibbs.engines.pcg.rows import AHEAD, RowProduct, fit_in_rows, sum_of_level
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.machine.intrinsics import add_multiple, prefetch, set_multiple, stack
from mmgibbs.machine.threads import Threads
from mmgibbs.models.relationships.base import UNKNOWN
from mmgibbs.models.relationships.pedigree import PedigreeLists
from mmgibbs.pedigree.kernels import kernel

ASKED = 16  # progeny whose memory is asked for: more would drive out what is needed first
MOST_VISITS = 64  # of an absorbed level: each pair of a level and one that its records meet is looked up in a list


class AbsorbedEquations(RowProduct):
    """S x, its preconditioner, and the way from b to S's right-hand side and from theta_A to theta; vectors in sweep
    order. `inverses`: (q, k, k) per term, of the levels' blocks of C."""

    def __init__(
        self,
        equations: StructuredEquations,
        bounds: np.ndarray,
        threads: Threads,
        inverses: list[np.ndarray],
        Ginv: list[np.ndarray],
        Rinv: np.ndarray,
    ):
        super().__init__(equations, bounds, threads)
        self.every, self.Ginv, self.Rinv = bounds, Ginv, Rinv
        self.term, self.absorbed = absorbable(equations, self.levels)
        self.positions[self.term] = np.delete(self.positions[self.term], self.absorbed)
        sizes = [kept.size * len(k_) for kept, (k_, _, _) in zip(self.positions, self.tuples, strict=True)]
        self.bounds = np.cumsum([0, *sizes])
        self.ranges = [self.split_levels(i, kept) for i, kept in enumerate(self.positions)]
        self.ranges_absorbed = self.split_levels(self.term, self.absorbed)
        self.of_absorbed = inverses[self.term]
        self.inverses = self._inverses(inverses)

    def _inverses(self, of_C: list[np.ndarray]) -> list[np.ndarray]:
        """Invert the diagonal blocks of S; a term whose blocks of S cannot be inverted has those of C."""
        out: list[np.ndarray] = [np.empty(0)] * len(of_C)

        def invert(i: int) -> None:
            blocks = self.diagonal_blocks(i)
            out[i] = of_C[i][self.positions[i]] if invert_blocks(blocks) >= 0 else blocks

        self.threads([partial(invert, i) for i in range(len(of_C))])
        return out

    def diagonal_blocks(self, i: int) -> np.ndarray:
        """Compute the diagonal blocks of S of one term, (kept levels, k, k)."""
        eq, kept, k = self.equations, self.positions[i], len(self.tuples[i][0])
        blocks, none = np.empty((kept.size, k, k)), np.empty(0)
        level_blocks(eq.terms[i], eq.relationships[i], none, self.Ginv[i], self.Rinv, kept, blocks)
        row = np.full(len(self.theta[i]), UNKNOWN)
        row[kept] = np.arange(kept.size, dtype=np.uint32)
        K = eq.relationships[i]
        parents = (K.sire, K.dam, K.own) if i == self.term and isinstance(K, PedigreeLists) else None
        related = parents or (np.empty(0, np.uint32), np.empty(0, np.uint32), none)
        absorb: Callable[..., None] = absorb_into_blocks
        absorb(
            self.absorbed,
            eq.terms[self.term],
            self.of_absorbed,
            eq.terms[i],
            self.levels[i],
            *related,
            self.Ginv[i],
            eq.records.pattern,
            eq.records.weight,
            self.Rinv,
            row,
            blocks,
        )
        return blocks

    def product(self, x: np.ndarray) -> np.ndarray:
        """S x; `theta` is left as it stands then, -D^-1 C_IA x at the absorbed levels."""
        self._hold(x)
        self.weigh_fitted(self.Rinv)
        self._absorb()
        return self.sums(self.Ginv)

    def preconditioned(self, x: np.ndarray) -> np.ndarray:
        """Multiply x by the inverse of each level's block of S."""
        return self.precondition(x, self.inverses)

    def right_hand_side(self, b: np.ndarray) -> np.ndarray:
        """b_A - C_AI D^-1 b_I."""
        self._hold(np.zeros(self.bounds[-1]))
        self.theta[self.term][self.absorbed] = self._solved_alone(b)
        self.weigh_fitted(self.Rinv)
        return self.keep(b) - self.sums(self.Ginv)

    def solution(self, x: np.ndarray, b: np.ndarray) -> np.ndarray:
        """theta of all equations from x = theta_A."""
        self.product(x)
        self.theta[self.term][self.absorbed] += self._solved_alone(b)
        return np.concatenate([theta[:-1].ravel() for theta in self.theta])

    def _hold(self, x: np.ndarray) -> None:
        for i, (theta, kept) in enumerate(zip(self.theta, self.positions, strict=True)):
            given = x[self.bounds[i] : self.bounds[i + 1]].reshape(kept.size, len(self.tuples[i][0]))
            if i != self.term:
                theta[:-1] = given
                continue
            theta[self.absorbed] = 0.0
            theta[kept] = given

    def keep(self, b: np.ndarray) -> np.ndarray:
        """b_A of b (N,)."""
        return np.concatenate([self._term_rhs(b, i)[kept].ravel() for i, kept in enumerate(self.positions)])

    def _term_rhs(self, b: np.ndarray, i: int) -> np.ndarray:
        return b[self.every[i] : self.every[i + 1]].reshape(-1, len(self.tuples[i][0]))

    def _solved_alone(self, b: np.ndarray) -> np.ndarray:
        """D^-1 b_I, (absorbed levels, k)."""
        rhs = self._term_rhs(b, self.term)[self.absorbed]
        return np.matmul(self.of_absorbed[self.absorbed], rhs[:, :, None])[:, :, 0]

    def _absorb(self) -> None:
        eq, i, (k_, T_, _) = self.equations, self.term, self.tuples[self.term]
        lists, K = eq.terms[i], eq.relationships[i]
        columns, blocks = self.precision_columns(self.Rinv), self.of_absorbed.reshape(-1, len(k_))
        solve: Callable[..., None] = solve_absorbed
        sizes = k_, T_, padded_width(T_)
        of_term = lists, K, sizes, self.picked(i), self.Ginv[i], blocks
        data = (*of_term, eq.records, columns, self.theta[i], self.u, self.absorbed)
        self.threads([partial(solve, *data, first, last) for first, last in self.ranges_absorbed])


def absorbed_equations(
    equations: StructuredEquations,
    bounds: np.ndarray,
    threads: Threads,
    inverses: list[np.ndarray],
    Ginv: list[np.ndarray],
    Rinv: np.ndarray,
) -> AbsorbedEquations | None:
    """Absorb levels; None where a term does not fit in rows (rows.py), or where no level can be absorbed."""
    if not fit_in_rows(equations):
        return None
    absorbed = AbsorbedEquations(equations, bounds, threads, inverses, Ginv, Rinv)
    return absorbed if absorbed.absorbed.size else None


def absorbable(equations: StructuredEquations, levels: list[np.ndarray]) -> tuple[int, np.ndarray]:
    """Find the term with most equations that may be absorbed at once; return it with these levels.

    Levels are uint32 sweep positions. levels: per term (n, effects), that each record meets.
    """
    unrelated = [_unrelated(equations, i, levels[i]) for i in range(len(levels))]
    terms = equations.design.terms
    sizes = [levels_of_term.size * t.n_components for levels_of_term, t in zip(unrelated, terms, strict=True)]
    term = int(np.argmax(sizes))
    return term, unrelated[term]


def _unrelated(equations: StructuredEquations, i: int, levels: np.ndarray) -> np.ndarray:
    """Levels of a term without progeny, no two of which one record meets."""
    lists, K = equations.terms[i], equations.relationships[i]
    free = np.append(np.diff(lists.visit_ptr.astype(np.int64)) <= MOST_VISITS, False)  # the last: no level
    if K.relative_ptr is not None:
        free[:-1] &= np.diff(K.relative_ptr.astype(np.int64)) == 0
    at = np.minimum(levels, free.size - 1)
    for b in range(at.shape[1]):
        for a in range(b):
            both = free[at[:, a]] & free[at[:, b]] & (at[:, a] != at[:, b])
            free[at[both, b]] = False
    return np.flatnonzero(free).astype(np.uint32)


@kernel
def solve_absorbed(term, K, sizes, picked, Ginv, inverses, records, columns, theta, u, positions, first, last):
    """theta_l = -D_l^-1 (W' u + K^-1 Theta G^-1)_l for levels l = positions[first ... last - 1], whose theta_l is 0,
    and u_r += w_r R_P^-1 W_r theta_l for their records; `columns` as in `weigh_rows`, sizes: the tuples k_, T_, W_."""
    k_, T_, W_ = sizes
    pattern, weight = records.pattern, records.weight
    k, T = np.uint64(len(k_)), np.uint64(len(T_))
    total, row = carray(stack(k_, 1, 1), (1, len(k_))), carray(stack(k_, 1, 1), (1, len(k_)))
    several, weighted = term.visit_effect.size > 0, weight.size > 0
    for j in range(np.uint64(first), np.uint64(last)):
        prefetch_relatives(K, np.uint64(positions[min(j + AHEAD, np.uint64(last - 1))]), theta)
        level = np.uint64(positions[j])
        sum_of_level(term, K, k_, T_, picked, Ginv, theta, u, level, row, total)
        set_multiple(k_, row, 0, -total[0, 0], inverses, level * k)
        for b in range(1, len(k_)):
            add_multiple(k_, row, 0, -total[0, b], inverses, level * k + np.uint64(b))
        set_multiple(k_, theta, level, 1.0, row, 0)
        for v in range(term.visit_ptr[level], term.visit_ptr[level + np.uint64(1)]):
            r, effect = term.visit_record[v], term.visit_effect[v] if several else np.uint8(0)
            w, at = np.float64(weight[r]) if weighted else 1.0, np.uint64(pattern[r]) * T
            for c in range(term.effect_first[effect], term.effect_first[effect + 1]):
                add_multiple(W_, u, r, w * row[0, c], columns, at + np.uint64(term.trait[c]))


@kernel
def absorb_into_blocks(
    absorbed, of_absorbed, inverses, of_kept, levels, sire, dam, mendelian, Ginv, pattern, weight, Rinv, row, blocks
):
    """blocks[row[l]] -= C_li D_i^-1 C_il for the absorbed levels i of the term `of_absorbed` and each level l of the
    term `of_kept` that is their parent or is met by their records.

    levels (n, effects): those of `of_kept` that a record meets. No parents (sire of size 0) where these are two terms.
    """
    k, m = blocks.shape[1], inverses.shape[1]
    several, weighted = of_absorbed.visit_effect.size > 0, weight.size > 0
    effects = levels.shape[1]
    near, between = np.empty(MOST_VISITS * effects + 2, np.uint32), np.empty((MOST_VISITS * effects + 2, k, m))
    product = np.empty((k, m))
    for i in absorbed:
        level, count = np.uint64(i), 0
        if sire.size > 0:
            for parent in (sire[level], dam[level]):
                if parent != UNKNOWN:
                    place, count = _place(near, between, count, parent)
                    for a in range(k):
                        for b in range(m):
                            between[place, a, b] -= 0.5 * mendelian[level] * Ginv[a, b]
        for v in range(of_absorbed.visit_ptr[level], of_absorbed.visit_ptr[level + np.uint64(1)]):
            r, of_own = of_absorbed.visit_record[v], of_absorbed.visit_effect[v] if several else np.uint8(0)
            w = np.float64(weight[r]) if weighted else 1.0
            for effect in range(effects):
                met = levels[r, effect]
                if met == UNKNOWN or row[met] == UNKNOWN:  # none, or the absorbed level itself
                    continue
                place, count = _place(near, between, count, met)
                for a in range(of_kept.effect_first[effect], of_kept.effect_first[effect + 1]):
                    for b in range(of_absorbed.effect_first[of_own], of_absorbed.effect_first[of_own + 1]):
                        between[place, a, b] += w * Rinv[pattern[r], of_kept.trait[a], of_absorbed.trait[b]]
        for place in range(count):
            j = np.uint64(row[near[place]])
            _zero_inactive(between[place], of_kept.active, near[place], of_absorbed.active, level)
            for a in range(k):
                for b in range(m):
                    s = 0.0
                    for c in range(m):
                        s += between[place, a, c] * inverses[level, c, b]
                    product[a, b] = s
            for a in range(k):
                for b in range(a + 1):
                    s = 0.0
                    for c in range(m):
                        s += product[a, c] * between[place, b, c]
                    blocks[j, a, b] -= s
                    blocks[j, b, a] = blocks[j, a, b]


@kernel
def _place(near, between, count, level):
    """Find the position of a level in the list of those near, and its length; a new one gets a block of zeros."""
    for place in range(count):
        if near[place] == level:
            return place, count
    near[count] = level
    between[count] = 0.0
    return count, count + 1


@kernel
def _zero_inactive(block, of_rows, level, of_columns, column_level):
    """Components set to 0 have no share in the block of C between two levels."""
    for a in range(block.shape[0]):
        for b in range(block.shape[1]):
            rows = of_rows.shape[0] > 0 and of_rows[level, a] == 0
            columns = of_columns.shape[0] > 0 and of_columns[column_level, b] == 0
            if rows or columns:
                block[a, b] = 0.0


def prefetch_relatives(K, level, theta):
    """Prefetch what times_row(K, level, theta, ...) will read."""
    raise NotImplementedError("only compiled code can call this: Numba takes its body from the overload below")


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
