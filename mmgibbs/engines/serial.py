"""The serial engine: the structured equations in plain compiled loops. This is the truth that the other engines are
held to.

One visit of level l draws its k effects given everything else (docs/theory.md, "Full conditionals"). With

    P   = kappa_ll G^-1 + sum_{r in l} W_r' R_r^-1 W_r
    rhs = -G^-1 sum_m kappa_lm theta_m + sum_{r in l} W_r' R_r^-1 e_r          (m = l included, e the current residual)

the change of theta_l is N(P^-1 rhs, P^-1): `update="level"` draws it jointly through the Cholesky factor of P,
`update="site"` draws its k elements one after another. Then e_r -= W_r (change) for the level's records.
"""

from __future__ import annotations

import numpy as np
from numba import carray, njit

from mmgibbs.draws.normal import fill_normals
from mmgibbs.draws.purpose import LOCATION, stream
from mmgibbs.engines.augment import residual_products
from mmgibbs.engines.base import refuse_singular
from mmgibbs.engines.intrinsics import stack
from mmgibbs.engines.visit import (
    AHEAD,
    draw_level,
    draw_sites,
    hold_inactive,
    move_visits,
    prefetch_visit,
    shift,
    sum_visits,
    unroll,
)
from mmgibbs.equations.base import precisions
from mmgibbs.equations.passes import level_precisions, subtract_term
from mmgibbs.equations.relationships import quadratic_form, times_row, weight
from mmgibbs.equations.scaling import Scaling
from mmgibbs.equations.structured import StructuredEquations

CHUNK = 1024  # levels whose normals are drawn together, so that drawing them vectorises


class SerialEngine:
    """Serial Gibbs sweeps over structured equations. State:
    Theta per term and e, in sweep order, in the equations' precision.
    """

    name = "serial"

    def __init__(self, equations: StructuredEquations, update: str = "level"):
        self.equations = equations
        self.joint = update == "level"
        work = [
            max(t.n_levels, lists.visit_record.size)
            for t, lists in zip(equations.design.terms, equations.terms, strict=True)
        ]
        sizes = [(t.n_components, equations.design.n_traits) for t in equations.design.terms]
        self._unrolled = [(unroll(k, w), unroll(T, w)) for (k, T), w in zip(sizes, work, strict=True)]
        self._scaling = Scaling(equations)
        self._streams = [stream(LOCATION, i) for i in range(len(equations.terms))]
        self.start()

    def start(self, theta: list[np.ndarray] | None = None) -> None:
        """Take Theta (model order; zero where None) and compute e = y - W theta."""
        q_k = [(t.n_levels, t.n_components) for t in self.equations.design.terms]
        theta = theta or [np.zeros(shape) for shape in q_k]
        self.theta = [
            np.ascontiguousarray(t[lists.code].astype(self.equations.real))
            for t, lists in zip(theta, self.equations.terms, strict=True)
        ]
        self.refresh()

    def refresh(self) -> None:
        """e = y - W theta from scratch: rounding drift ends here."""
        self.e = self.equations.records.y.copy()
        for lists, theta in zip(self.equations.terms, self.theta, strict=True):
            subtract_term(lists, theta, self.e)

    def set_variances(self, G, R) -> None:
        self.R = np.array(R, dtype=float)
        self.Ginv, self.Rinv = precisions(self.equations.design, G, self.R)

    def sweep(self, number: int, key: tuple[int, int]) -> None:
        """One Gibbs sweep through the blocks of the partition;
        `number` and key = (seed, chain) say which draws to use.
        """
        eq = self.equations
        for block in eq.partition.blocks:
            i = block.term
            failed = sweep_block(
                eq.terms[i], eq.relationships[i], eq.records, *self._unrolled[i],
                self.theta[i], self.e, self.Ginv[i], self.Rinv,
                block.first, block.last, block.first_component, block.last_component, self.joint,
                number, self._streams[i], key[0], key[1],
            )  # fmt: skip
            if failed >= 0:
                refuse_singular(eq, i, failed)

    def quadratic_form(self, term: int) -> np.ndarray:
        return quadratic_form(self.equations.relationships[term], self.theta[term])

    def residual_products(self, number: int, key: tuple[int, int], blocks):
        return residual_products(
            self.equations.records, self.equations.design.patterns, self.e, self.R, blocks, number, key
        )

    def scaling_products(self, term: int, elements):
        return self._scaling.products(term, elements, self.theta[term], self.e, self.Rinv)

    def transform_term(self, term: int, M: np.ndarray) -> None:
        self._scaling.transform(term, M, self.theta[term], self.e)

    def fetch(self) -> list[np.ndarray]:
        out = []
        for theta, lists in zip(self.theta, self.equations.terms, strict=True):
            ordered = np.empty(theta.shape)
            ordered[lists.code] = theta
            out.append(ordered)
        return out

    def state(self) -> dict[str, np.ndarray]:
        """Theta per term and e, sweep order; e as it is, since computed afresh it would differ in its last bits."""
        return {"e": self.e, **{f"theta.{i}": theta for i, theta in enumerate(self.theta)}}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.e[:] = state["e"]
        for i, theta in enumerate(self.theta):
            theta[:] = state[f"theta.{i}"]


@njit(cache=True, nogil=True, error_model="numpy")
def sweep_block(
    term, K, records, k_, T_, theta, e, Ginv, Rinv, first, last, c_first, c_last, joint, number, stream, seed, chain
):
    """Draw the levels first ... last - 1 (sweep positions) of one term. Returns -1, or the position whose P is not
    positive definite.

    theta (q, k) and e (n, T) are updated in place.
    """
    k = len(k_) if len(k_) > 0 else theta.shape[1]
    P = carray(stack(k_, 2, 1), (k, k)) if len(k_) > 0 else np.empty((k, k))
    L = carray(stack(k_, 2, 1), (k, k)) if len(k_) > 0 else np.empty((k, k))
    row = carray(stack(k_, 1, 1), (k,)) if len(k_) > 0 else np.empty(k)
    rhs = carray(stack(k_, 1, 1), (k,)) if len(k_) > 0 else np.empty(k)
    change = carray(stack(k_, 1, 1), (k,)) if len(k_) > 0 else np.empty(k)
    normals = np.empty((CHUNK, k))
    masked = term.active.shape[0] > 0
    for chunk in range(np.uint64(first), np.uint64(last), np.uint64(CHUNK)):
        end = min(np.uint64(last), chunk + np.uint64(CHUNK))
        fill_normals(normals, number, term.code[chunk:end], stream, seed, chain)
        for level in range(chunk, end):
            prefetch_visit(term, K, records, min(level + np.uint64(AHEAD), np.uint64(last) - np.uint64(1)), theta, e)
            z = normals[level - chunk]
            level_precisions(term, Rinv, level, P)
            times_row(K, level, theta, row)
            kappa = weight(K, level)
            for a in range(k):
                rhs[a] = 0.0
                for b in range(k):
                    rhs[a] -= Ginv[a, b] * row[b]
                for b in range(a + 1):
                    P[a, b] += kappa * Ginv[a, b]
            from_visit, to_visit = term.visit_ptr[level], term.visit_ptr[level + np.uint64(1)]
            sum_visits(term, records, T_, from_visit, to_visit, e, Rinv, rhs)
            if masked:
                hold_inactive(term.active[level], P, rhs, z)
            if joint:
                drawn = draw_level(k_, P, L, rhs, z, change)
            else:
                drawn = draw_sites(k_, P, rhs, z, change, c_first, c_last)
            if not drawn:
                return np.int64(level)
            shift(theta, level, change)
            move_visits(term, from_visit, to_visit, e, change)
    return np.int64(-1)
