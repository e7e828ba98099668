"""Passes over the records of a term: W theta, W' u and W' R^-1 W, for one vector or for several at once.

    subtract_matvec                  e_r -= W_r theta_l(r)                      one vector: theta (q, k), e (n, T)
    add_weighted_transpose_matvec    out_l += sum_{r in l} W_r' R_r^-1 e_r
    add_matvec                       f_r += W_r theta_l(r)                      m vectors: theta (q, k, m), f (n, T, m)
    add_transpose_matvec             out_l += sum_{r in l} W_r' u_r
    sum_level_cross_products         sum_{r in l} W_r' R_r^-1 W_r               (k, k), from sums that are stored

Of several vectors each sees the same operations in the same order whatever m is, so its values do not depend, to the
last bit, on its company. `subtract_level_fit` and `accumulate_level_rhs` are the first two for the records of one
level; sweeps have them compiled into their loops.

`term` and `records` are the TermLists and the Records of structured.py: q levels of k components in sweep order, n
records of T traits. An *entry* is a record that meets a level through one effect; where a term has `several` effects
each entry says which, and where levels are `weighted` each entry has a weight. `varying` regressors are covariates,
others 1. Traits are in the units of y, regressors in those
of the covariates. R_P^-1, by missing pattern, is `Rinv` (patterns, T, T) float64, 0 for traits that a pattern lacks.
Unobserved traits get fitted values too; no one reads them. Nothing is checked, and no bounds are.

The loops stand in each function: a call with a tuple of arrays counts references to all of them, at each entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mmgibbs.pedigree.kernels import kernel

if TYPE_CHECKING:
    from mmgibbs.equations.structured import StructuredEquations

ONE = np.uint64(1)


# One vector


@kernel(forceinline=True)
def subtract_level_fit(term, first, last, theta, e):
    """e_r -= W_r theta for the entries first ... last - 1 (unsigned) of one level: theta (k,), e (n, T)."""
    several, varying = term.visit_effect.size > 0, term.covariates.shape[0] > 0
    weighted = term.visit_weight.size > 0
    for v in range(first, last):
        r = term.visit_record[v]
        effect, times = term.visit_effect[v] if several else 0, term.visit_weight[v] if weighted else 1.0
        for c in range(term.effect_first[effect], term.effect_first[effect + 1]):
            e[r, term.trait[c]] -= theta[c] * (times * (term.covariates[r, term.regressor[c]] if varying else 1.0))


@kernel(forceinline=True)
def accumulate_level_rhs(term, records, first, last, Rinv, e, out):
    """out += sum of W_r' R_r^-1 e_r over the entries first ... last - 1 (unsigned) of one level: e (n, T), out (k,)."""
    several, varying = term.visit_effect.size > 0, term.covariates.shape[0] > 0
    weighted = term.visit_weight.size > 0
    for v in range(first, last):
        r = term.visit_record[v]
        p, w = records.pattern[r], records.weight[r] if records.weight.size > 0 else 1.0
        effect, times = term.visit_effect[v] if several else 0, term.visit_weight[v] if weighted else 1.0
        for c in range(term.effect_first[effect], term.effect_first[effect + 1]):
            s = 0.0
            for t in range(e.shape[1]):
                s += Rinv[p, term.trait[c], t] * e[r, t]
            out[c] += w * (times * (term.covariates[r, term.regressor[c]] if varying else 1.0)) * s


@kernel
def subtract_matvec(term, theta, e):
    """e_r -= W_r theta_l(r): theta (q, k), e (n, T) in place."""
    for level in range(theta.shape[0]):
        subtract_level_fit(term, term.visit_ptr[level], term.visit_ptr[level + 1], theta[level], e)


@kernel
def add_weighted_transpose_matvec(term, records, Rinv, e, out):
    """out_l += sum_{r in l} W_r' R_r^-1 e_r: e (n, T), out (q, k) float64 in place."""
    for level in range(out.shape[0]):
        accumulate_level_rhs(term, records, term.visit_ptr[level], term.visit_ptr[level + 1], Rinv, e, out[level])


def compute_term_rhs(equations: StructuredEquations, term: int, by_pattern: np.ndarray, y: np.ndarray) -> np.ndarray:
    """W' R^-1 y of a term, (q, k) float64 in sweep order, 0 where set to 0; by_pattern: (patterns, T, T) R_p^-1."""
    t, lists = equations.design.terms[term], equations.terms[term]
    total = np.zeros((t.n_levels, t.n_components))
    add_weighted_transpose_matvec(lists, equations.records, by_pattern, y, total)
    return total if t.active is None else np.where(lists.active, total, 0.0)


# Several vectors


@kernel
def add_matvec(term, theta, fitted):
    """fitted_r += W_r theta_l(r): theta (q, k, m), fitted (n, T, m) float64 in place."""
    several, varying = term.visit_effect.size > 0, term.covariates.shape[0] > 0
    weighted = term.visit_weight.size > 0
    for level in range(theta.shape[0]):
        for v in range(term.visit_ptr[level], term.visit_ptr[level + 1]):
            r = term.visit_record[v]
            effect, times = term.visit_effect[v] if several else 0, term.visit_weight[v] if weighted else 1.0
            for c in range(term.effect_first[effect], term.effect_first[effect + 1]):
                t, z = term.trait[c], times * (term.covariates[r, term.regressor[c]] if varying else 1.0)
                for j in range(theta.shape[2]):
                    fitted[r, t, j] += z * theta[level, c, j]


@kernel
def add_transpose_matvec(term, u, out):
    """out_l += sum_{r in l} W_r' u_r: u (n, T, m), out (q, k, m) float64 in place."""
    several, varying = term.visit_effect.size > 0, term.covariates.shape[0] > 0
    weighted = term.visit_weight.size > 0
    for level in range(out.shape[0]):
        for v in range(term.visit_ptr[level], term.visit_ptr[level + 1]):
            r = term.visit_record[v]
            effect, times = term.visit_effect[v] if several else 0, term.visit_weight[v] if weighted else 1.0
            for c in range(term.effect_first[effect], term.effect_first[effect + 1]):
                t, z = term.trait[c], times * (term.covariates[r, term.regressor[c]] if varying else 1.0)
                for j in range(out.shape[2]):
                    out[level, c, j] += z * u[r, t, j]


@kernel
def weigh(records, Rinv, e):
    """e_r <- R_r^-1 e_r = w_r R_P^-1 e_r; e (n, T, m) float64 in place, what unobserved traits hold becomes 0."""
    n, T, m = e.shape
    old = np.empty((T, m))
    for r in range(n):
        p = records.pattern[r]
        w = records.weight[r] if records.weight.size > 0 else 1.0
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


# Cross-products


@kernel(forceinline=True)
def sum_level_cross_products(term, Rinv, level, out):
    """out = sum_{r in l} W_r' R_r^-1 W_r from the cells of level l; (k, k) float64, the lower triangle is written."""
    sum_class_cross_products(term, Rinv, term.cell_class[level] if term.cell_class.size > 0 else level, out)


@kernel(forceinline=True)
def sum_class_cross_products(term, Rinv, i, out):
    """Sum the cross-products of the levels of class i; i is a level where each has cells of its own."""
    k = out.shape[0]
    for a in range(k):
        for b in range(a + 1):
            out[a, b] = 0.0
    for cell in range(term.cell_ptr[i], term.cell_ptr[i + ONE]):
        p = term.cell_pattern[cell]
        for a in range(k):
            for b in range(a + 1):
                out[a, b] += (
                    term.cell_sums[cell, term.regressor[a], term.regressor[b]] * Rinv[p, term.trait[a], term.trait[b]]
                )
