"""Preconditioned conjugate gradients on the structured equations: BLUP at given variances, C theta = sum_r W_r' R_r^-1 y_r.

C is applied, never stored: theta -> e = W theta -> W' R^-1 e + K^-1 Theta G^-1. The preconditioner is the inverse of each level's
k x k diagonal block of C. Components held at 0 are left out of the system. The iteration itself is SciPy's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.sparse.linalg import LinearOperator, cg

from mmgibbs.engines.base import refuse_singular
from mmgibbs.equations.base import precisions
from mmgibbs.equations.relationships import inverse_times, weight
from mmgibbs.equations.residuals import add_weighted, level_precisions, subtract_term
from mmgibbs.equations.structured import StructuredEquations
from mmgibbs.errors import ModelError


@dataclass(frozen=True)
class Solution:
    theta: list[np.ndarray]  # per term (q, k) float64, model order
    iterations: int
    relative_residual: float  # |b - C theta| / |b|


class PcgEngine:
    """BLUP by PCG in float64, whatever the precision of the equations' arrays."""

    name = "pcg"

    def __init__(self, equations: StructuredEquations):
        self.equations = equations
        self.shapes = [(t.n_levels, t.n_components) for t in equations.design.terms]
        self.bounds = np.cumsum([0] + [q * k for q, k in self.shapes])
        self.active = np.concatenate([np.ones(q * k) if a.shape[0] == 0 else a.ravel() for (q, k), a in zip(self.shapes, self._masks(), strict=True)])

    def _masks(self):
        return [lists.active for lists in self.equations.terms]

    def split(self, x: np.ndarray) -> list[np.ndarray]:
        """Views of a vector over all equations as (q, k) per term."""
        return [x[a:b].reshape(shape) for a, b, shape in zip(self.bounds[:-1], self.bounds[1:], self.shapes, strict=True)]

    def set_variances(self, G, R) -> None:
        self.Ginv, self.Rinv = precisions(self.equations.design, G, R)
        self._inverse_blocks = [self._level_inverses(i) for i in range(len(self.shapes))]

    def _level_inverses(self, i: int) -> np.ndarray:
        eq = self.equations
        blocks = np.empty((*self.shapes[i], self.shapes[i][1]))
        level_blocks(eq.terms[i], eq.relationships[i], self.Ginv[i], self.Rinv, blocks)
        smallest = np.linalg.eigvalsh(blocks)
        bad = np.flatnonzero(smallest[:, 0] <= 1e-12 * smallest[:, -1])
        if bad.size:
            refuse_singular(eq, i, int(bad[0]))
        return np.linalg.inv(blocks)

    def times(self, x: np.ndarray) -> np.ndarray:
        """C x for a vector over all equations, in sweep order."""
        eq = self.equations
        x = np.ascontiguousarray(x, dtype=np.float64).ravel() * self.active
        minus_fitted = np.zeros(eq.records.y.shape)
        for lists, theta in zip(eq.terms, self.split(x), strict=True):
            subtract_term(lists, theta, minus_fitted)
        out = -self.weighted_sums(minus_fitted)
        for K, Ginv, theta, total in zip(eq.relationships, self.Ginv, self.split(x), self.split(out), strict=True):
            if Ginv.any():
                row = np.empty(theta.shape)
                inverse_times(K, theta, row)
                total += row @ Ginv
        return out * self.active

    def weighted_sums(self, e: np.ndarray) -> np.ndarray:
        """W' R^-1 e over all equations, sweep order."""
        out = np.zeros(self.bounds[-1])
        for lists, total in zip(self.equations.terms, self.split(out), strict=True):
            add_weighted(lists, self.equations.records, self.Rinv, e, total)
        return out

    def precondition(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype=np.float64).ravel() * self.active
        return np.concatenate([np.einsum("lab,lb->la", M, v).ravel() for M, v in zip(self._inverse_blocks, self.split(x), strict=True)] or [x])

    def solve(self, tolerance: float = 1e-12, max_iterations: int | None = None, callback=None) -> Solution:
        """BLUE and BLUP. Raises ModelError where the iteration does not reach |b - C theta| <= tolerance |b|."""
        b = self.weighted_sums(self.equations.records.y.astype(np.float64)) * self.active
        size, norm = b.size, float(np.linalg.norm(b))
        if norm == 0.0:
            return Solution(self.in_model_order(b), 0, 0.0)
        count = [0]

        def step(x):
            count[0] += 1
            if callback is not None:
                callback(count[0])

        C = LinearOperator((size, size), self.times, dtype=np.float64)
        M = LinearOperator((size, size), self.precondition, dtype=np.float64)
        limit = max_iterations or max(2000, min(size * 10, 20000))
        x, _ = cg(C, b, rtol=tolerance, atol=0.0, maxiter=limit, M=M, callback=step)
        reached = float(np.linalg.norm(b - self.times(x))) / norm
        if not reached <= max(100 * tolerance, 1e-10):
            raise ModelError(
                f"PCG stopped after {count[0]} iterations at a relative residual of {reached:.1e}, needed {tolerance:.1e}: "
                "the equations are close to singular; check the variances and the fixed effects"
            )
        return Solution(self.in_model_order(x), count[0], reached)

    def in_model_order(self, x: np.ndarray) -> list[np.ndarray]:
        out = []
        for lists, theta in zip(self.equations.terms, self.split(x), strict=True):
            ordered = np.empty(theta.shape)
            ordered[lists.code] = theta
            out.append(ordered)
        return out


@njit(cache=True, nogil=True, error_model="numpy")
def level_blocks(term, K, Ginv, Rinv, out):
    """out[l] = kappa_ll G^-1 + sum_{r in l} W_r' R_r^-1 W_r, (q, k, k); components held at 0 become rows of the identity."""
    k = out.shape[1]
    for level in range(np.uint64(out.shape[0])):
        level_precisions(term, Rinv, level, out[level])
        for a in range(k):
            for b in range(a + 1):
                out[level, a, b] += weight(K, level) * Ginv[a, b]
                out[level, b, a] = out[level, a, b]
        if term.active.shape[0] > 0:
            for a in range(k):
                if term.active[level, a] == 0:
                    for b in range(k):
                        out[level, a, b] = out[level, b, a] = 0.0
                    out[level, a, a] = 1.0
