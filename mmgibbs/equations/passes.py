"""Passes over records, levels and relationship lists that the engines share.

    e = y - W theta        W' R^-1 e        sum_{r in l} W_r' R_r^-1 W_r

and, below, what C times several vectors at once is made of: Theta (q, k, m), residuals (n, T, m),

    C Theta_j = W' R^-1 W Theta_j + K^-1 Theta_j G^-1,        j = 1 ... m

where each column sees the same operations in the same order whatever m is, so its values do not depend, to the last
bit, on its company.

`term`, `records` and `K` are the TermLists, the Records and the relationship lists of structured.py: q levels of k
components in sweep order, n records of T traits. Traits are in the units of y, regressors in those of the covariates.
G^-1 is `Ginv` (k, k) float64; R_P^-1, by missing pattern, is `Rinv` (patterns, T, T) float64, 0 for traits that a
pattern lacks. Nothing is checked, and no bounds are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mmgibbs.equations.relationships import times_row
from pedigree.kernels import kernel

if TYPE_CHECKING:
    from mmgibbs.equations.structured import StructuredEquations


@kernel
def subtract_term(term, theta, e):
    """e_r -= W_r theta_l(r) for one term: theta (q, k), e (n, T) updated in place.

    Unobserved traits get fitted values too; no one reads them.
    """
    plain = term.covariates.shape[0] == 0
    several = term.visit_effect.size > 0
    for level in range(np.uint64(theta.shape[0])):
        for v in range(term.visit_ptr[level], term.visit_ptr[level + np.uint64(1)]):
            r = term.visit_record[v]
            effect = term.visit_effect[v] if several else np.uint8(0)
            for c in range(term.effect_first[effect], term.effect_first[effect + 1]):
                z = 1.0 if plain else np.float64(term.covariates[r, term.regressor[c]])
                e[r, term.trait[c]] -= z * theta[level, c]


@kernel
def add_weighted(term, records, Rinv, e, out):
    """out_l += sum_{r in l} W_r' R_r^-1 e_r for one term: out (q, k), e (n, T) float64; out is updated in place."""
    plain = term.covariates.shape[0] == 0
    several = term.visit_effect.size > 0
    n_traits = e.shape[1]
    for level in range(np.uint64(out.shape[0])):
        for v in range(term.visit_ptr[level], term.visit_ptr[level + np.uint64(1)]):
            r = term.visit_record[v]
            effect = term.visit_effect[v] if several else np.uint8(0)
            for c in range(term.effect_first[effect], term.effect_first[effect + 1]):
                z = 1.0 if plain else np.float64(term.covariates[r, term.regressor[c]])
                s = 0.0
                for t in range(n_traits):
                    s += Rinv[records.pattern[r], term.trait[c], t] * e[r, t]
                out[level, c] += z * s * (records.weight[r] if records.weight.size > 0 else 1.0)


@kernel(forceinline=True)
def level_precisions(term, Rinv, level, out):
    """out = sum_{r in l} W_r' R_r^-1 W_r from the cells of level l (`level`); (k, k) float64, the lower triangle is
    written.
    """
    of_class = np.uint64(term.cell_class[level]) if term.cell_class.size > 0 else np.uint64(level)
    class_precisions(term, Rinv, of_class, out)


@kernel(forceinline=True)
def class_precisions(term, Rinv, of_class, out):
    """The same for the levels of a class, number `of_class` (of a level, where each has cells of its own): out (k, k)
    float64, the lower triangle is written.
    """
    k = out.shape[0]
    for a in range(k):
        for b in range(a + 1):
            out[a, b] = 0.0
    for cell in range(term.cell_ptr[of_class], term.cell_ptr[of_class + np.uint64(1)]):
        p = term.cell_pattern[cell]
        for a in range(k):
            for b in range(a + 1):
                out[a, b] += (
                    term.cell_sums[cell, term.regressor[a], term.regressor[b]] * Rinv[p, term.trait[a], term.trait[b]]
                )


# Several vectors in one pass


@kernel
def add_fitted(term, theta, fitted):
    """fitted_r += W_r theta_l(r) for one term: theta (q, k, m), fitted (n, T, m) float64, updated in place."""
    plain = term.covariates.shape[0] == 0
    several = term.visit_effect.size > 0
    m = np.uint64(theta.shape[2])
    for level in range(np.uint64(theta.shape[0])):
        for v in range(term.visit_ptr[level], term.visit_ptr[level + np.uint64(1)]):
            r = term.visit_record[v]
            effect = term.visit_effect[v] if several else np.uint8(0)
            for c in range(term.effect_first[effect], term.effect_first[effect + 1]):
                z = 1.0 if plain else np.float64(term.covariates[r, term.regressor[c]])
                t = term.trait[c]
                for j in range(m):
                    fitted[r, t, j] += z * theta[level, c, j]


@kernel
def add_transposed(term, u, out):
    """out_l += sum_{r in l} W_r' u_r for one term: u (n, T, m), out (q, k, m) float64, updated in place."""
    plain = term.covariates.shape[0] == 0
    several = term.visit_effect.size > 0
    m = np.uint64(out.shape[2])
    for level in range(np.uint64(out.shape[0])):
        for v in range(term.visit_ptr[level], term.visit_ptr[level + np.uint64(1)]):
            r = term.visit_record[v]
            effect = term.visit_effect[v] if several else np.uint8(0)
            for c in range(term.effect_first[effect], term.effect_first[effect + 1]):
                z = 1.0 if plain else np.float64(term.covariates[r, term.regressor[c]])
                t = term.trait[c]
                for j in range(m):
                    out[level, c, j] += z * u[r, t, j]


@kernel
def weigh(records, Rinv, e):
    """e_r <- R_r^-1 e_r = w_r R_P^-1 e_r; e (n, T, m) float64 in place, what unobserved traits hold becomes 0."""
    n, T, m = e.shape
    old = np.empty((T, m))
    for r in range(np.uint64(n)):
        p = records.pattern[r]
        w = np.float64(records.weight[r]) if records.weight.size > 0 else 1.0
        for t in range(T):
            for j in range(m):
                old[t, j] = w * e[r, t, j]
                e[r, t, j] = 0.0
        for t in range(T):
            for u in range(T):
                a = Rinv[p, t, u]
                if a != 0.0:
                    for j in range(m):
                        e[r, t, j] += a * old[u, j]


@kernel
def add_prior(K, Ginv, theta, out):
    """out_l += (K^-1 Theta_j)_l G^-1 for each j: theta, out (q, k, m) float64; out is updated in place."""
    q, k, m = theta.shape
    flat = theta.reshape((q, k * m))
    row = np.empty(k * m)
    for level in range(np.uint64(q)):
        times_row(K, level, flat, row)
        for a in range(k):
            for b in range(k):
                for j in range(m):
                    out[level, a, j] += Ginv[a, b] * row[b * m + j]


@kernel
def add_dense(Ginv, rows, out):
    """out_l += rows_l G^-1 for each of several vectors: rows, out (levels, k, m) float64; out is updated in place."""
    q, k, m = rows.shape
    for level in range(np.uint64(q)):
        for a in range(k):
            for b in range(k):
                for j in range(m):
                    out[level, a, j] += Ginv[a, b] * rows[level, b, j]


@kernel
def precondition(inverses, residual, out):
    """out_l = M_l residual_l: inverses (q, k, k), residual and out (q, k, m) float64."""
    q, k, m = residual.shape
    for level in range(np.uint64(q)):
        for a in range(k):
            for j in range(m):
                s = 0.0
                for b in range(k):
                    s += inverses[level, a, b] * residual[level, b, j]
                out[level, a, j] = s


def weighted_sums(equations: StructuredEquations, term: int, by_pattern: np.ndarray, y: np.ndarray) -> np.ndarray:
    """W' R^-1 y of a term, (q, k) float64 in sweep order, 0 where set to 0; by_pattern: (patterns, T, T) R_p^-1."""
    t, lists = equations.design.terms[term], equations.terms[term]
    total = np.zeros((t.n_levels, t.n_components))
    add_weighted(lists, equations.records, by_pattern, y, total)
    return total if t.active is None else np.where(lists.active, total, 0.0)
