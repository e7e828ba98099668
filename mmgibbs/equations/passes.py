"""Passes over records that every engine shares: e = y - W theta, W' R^-1 e, and the sums of squares and products of
residuals.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def add_weighted(term, records, Rinv, e, out):
    """out_l += sum_{r in l} W_r' R_r^-1 e_r: out (q, k) float64, e (n, T), Rinv (patterns, T, T)."""
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


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def level_precisions(term, Rinv, level, out):
    """out = sum_{r in l} W_r' R_r^-1 W_r from the cells of the level; (k, k) float64, the lower triangle is written."""
    k = out.shape[0]
    for a in range(k):
        for b in range(a + 1):
            out[a, b] = 0.0
    for cell in range(term.cell_ptr[level], term.cell_ptr[level + np.uint64(1)]):
        p = term.cell_pattern[cell]
        for a in range(k):
            for b in range(a + 1):
                out[a, b] += (
                    term.cell_sums[cell, term.regressor[a], term.regressor[b]] * Rinv[p, term.trait[a], term.trait[b]]
                )
