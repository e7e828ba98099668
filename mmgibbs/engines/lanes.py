"""Levels of one colour side by side: their k x k systems are factored and solved in the lanes of vector instructions.

First the parts of LANES levels are gathered, one after another (what waits for memory is then independent, and overlaps); then

    P = kappa_ll G^-1 + data part of the level's class,    P = L L',    change = L'^-1 (L^-1 rhs + z)

for all of them at once; then their thetas and residuals move. The arithmetic of a level is that of visit.draw_level, operation by operation.
"""

from __future__ import annotations

import numpy as np
from numba import carray, njit

from mmgibbs.draws.normal import fill_normals
from mmgibbs.engines.scratch import stack
from mmgibbs.engines.visit import AHEAD, ask_for_visit, shift
from mmgibbs.equations.relationships import times_row, weight
from mmgibbs.equations.structured import TermLists

LANES = 64  # levels side by side: enough for the loops over them to become vector instructions, few enough for the L1 cache


@njit(cache=True, nogil=True, error_model="numpy")
def sweep_lanes(term, K, records, k_, T_, theta, e, Ginv, Rinv, classes, parts, rows, steps, first, last, number, stream, seed, chain):
    """Draw the levels first ... last - 1 (sweep positions, all of one colour) jointly per level; 1 <= k <= 4.

    classes (q,) and parts (classes, k, k): the data parts of P (cell_classes.py); rows, steps: see plain_visits. The term has no covariates.
    Returns -1, or the position of a level among LANES of which one has a P that is not positive definite.
    """
    k = len(k_)
    P = carray(stack(k_, 2, LANES), (k, k, LANES))
    rhs = carray(stack(k_, 1, LANES), (k, LANES))
    z, normals = np.zeros((k + 1, LANES)), np.empty((LANES, k))  # the last row of z is scratch
    row, total = carray(stack(k_, 1, 1), (k,)), carray(stack(k_, 1, 1), (k,))
    one = np.uint64(1)
    for group in range(np.uint64(first), np.uint64(last), np.uint64(LANES)):
        n = min(np.uint64(LANES), np.uint64(last) - group)
        for lane in range(n, np.uint64(LANES)):  # lanes that the last group does not fill hold an identity
            for a in range(k):
                rhs[a, lane] = 0.0
                for b in range(a + 1):
                    P[a, b, lane] = 1.0 if a == b else 0.0
        fill_normals(normals, number, term.code[group : group + n], stream, seed, chain)
        for lane in range(n):
            level = group + lane
            ask_for_visit(term, K, records, min(level + np.uint64(AHEAD), np.uint64(last) - one), theta, e)
            times_row(K, level, theta, row)
            for a in range(k):
                total[a] = 0.0
                for b in range(k):
                    total[a] -= Ginv[a, b] * row[b]
            sum_plain_visits(term, records, k_, T_, term.visit_ptr[level], term.visit_ptr[level + one], e, rows, total)
            kappa, part = weight(K, level), classes[level]
            for a in range(k):
                rhs[a, lane], z[a, lane] = total[a], normals[lane, a]
                for b in range(a + 1):
                    P[a, b, lane] = parts[part, a, b] + kappa * Ginv[a, b]
        if not draw_lanes(k_, P, rhs, z):
            return np.int64(group)
        for lane in range(n):
            level = group + lane
            for a in range(k):
                total[a] = rhs[a, lane]
            shift(theta, level, total)
            move_plain_visits(term, k_, T_, term.visit_ptr[level], term.visit_ptr[level + one], e, steps, total)
    return np.int64(-1)


def plain_visits(term: TermLists, Rinv: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """W_r' R_r^-1 and W_r of a record that meets a level through one effect, by pattern: there are few, and no indices are left in them.

    rows (patterns, E, k, T): rhs += w_r rows[p, effect] e_r.        steps (E, T, k) 0 or 1: e_r -= steps[effect] change.
    """
    n_effects, T, k = term.effect_first.size - 1, Rinv.shape[1], term.trait.size
    steps = np.zeros((n_effects, T, k))
    for effect in range(n_effects):
        for c in range(term.effect_first[effect], term.effect_first[effect + 1]):
            steps[effect, term.trait[c], c] = 1.0
    return np.ascontiguousarray(np.einsum("etc,ptu->pecu", steps, Rinv)), steps


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def sum_plain_visits(term, records, k_, T_, first, last, e, rows, rhs):
    several, weighted = term.visit_effect.size > 0, records.weight.size > 0
    for v in range(first, last):
        r = term.visit_record[v]
        p, w = records.pattern[r], np.float64(records.weight[r]) if weighted else 1.0
        effect = term.visit_effect[v] if several else np.uint8(0)
        for c in range(len(k_)):
            s = 0.0
            for t in range(len(T_)):
                s += rows[p, effect, c, t] * e[r, t]
            rhs[c] += w * s


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def move_plain_visits(term, k_, T_, first, last, e, steps, change):
    several = term.visit_effect.size > 0
    for v in range(first, last):
        r = term.visit_record[v]
        effect = term.visit_effect[v] if several else np.uint8(0)
        for t in range(len(T_)):
            s = 0.0
            for c in range(len(k_)):
                s += steps[effect, t, c] * change[c]
            e[r, t] -= s


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def draw_lanes(k_, P, rhs, z):
    """In each lane: P <- its factor L with 1 / l_jj on the diagonal, rhs <- L'^-1 (L^-1 rhs + z). False where some P is not positive definite.

    The loop over lanes is innermost everywhere: that is what the compiler turns into vector instructions.
    """
    k = len(k_)
    bad = 0
    for j in range(k):
        for lane in range(LANES):
            z[k, lane] = 1e-12 * P[j, j, lane]
        for m in range(j):
            for lane in range(LANES):
                P[j, j, lane] -= P[j, m, lane] * P[j, m, lane]
        for lane in range(LANES):
            bad += 0 if P[j, j, lane] > z[k, lane] else 1
        for lane in range(LANES):
            P[j, j, lane] = 1.0 / np.sqrt(P[j, j, lane])
        for i in range(j + 1, k):
            for m in range(j):
                for lane in range(LANES):
                    P[i, j, lane] -= P[i, m, lane] * P[j, m, lane]
            for lane in range(LANES):
                P[i, j, lane] *= P[j, j, lane]
    for i in range(k):
        for m in range(i):
            for lane in range(LANES):
                rhs[i, lane] -= P[i, m, lane] * rhs[m, lane]
        for lane in range(LANES):
            rhs[i, lane] *= P[i, i, lane]
    for i in range(k - 1, -1, -1):
        for lane in range(LANES):
            rhs[i, lane] += z[i, lane]
        for m in range(i + 1, k):
            for lane in range(LANES):
                rhs[i, lane] -= P[m, i, lane] * rhs[m, lane]
        for lane in range(LANES):
            rhs[i, lane] *= P[i, i, lane]
    return bad == 0
