"""Eight levels of one colour side by side: their k x k systems are factored and solved in the lanes of vector instructions.

First the parts of eight levels are gathered, one after another (what waits for memory is then independent, and overlaps); then

    P = kappa_ll G^-1 + data part of the level's class,    P = L L',    change = L'^-1 (L^-1 rhs + z)

for all eight at once; then their thetas and residuals move. The arithmetic of a level is that of visit.draw_level, operation by operation.
"""

from __future__ import annotations

import numpy as np
from numba import carray, njit

from mmgibbs.draws.normal import fill_normals
from mmgibbs.engines.scratch import stack
from mmgibbs.engines.visit import move_visits, shift, sum_visits
from mmgibbs.equations.relationships import times_row, weight

CHUNK = 512  # levels whose normals are drawn together


@njit(cache=True, nogil=True, error_model="numpy")
def sweep_lanes(term, K, records, k_, T_, theta, e, Ginv, Rinv, classes, parts, first, last, number, stream, seed, chain):
    """Draw the levels first ... last - 1 (sweep positions, all of one colour) jointly per level; 1 <= k <= 4.

    classes (q,) and parts (classes, k, k): the data parts of P (cell_classes.py). Returns -1, or a position whose P is not positive definite.
    """
    k = len(k_)
    P = carray(stack(k_, 2, 8), (k, k, 8))
    rhs = carray(stack(k_, 1, 8), (k, 8))
    row, total = carray(stack(k_, 1, 1), (k,)), carray(stack(k_, 1, 1), (k,))
    normals = np.empty((CHUNK, k))
    one = np.uint64(1)
    for chunk in range(np.uint64(first), np.uint64(last), np.uint64(CHUNK)):
        end = min(np.uint64(last), chunk + np.uint64(CHUNK))
        fill_normals(normals, number, term.code[chunk:end], stream, seed, chain)
        for group in range(chunk, end, np.uint64(8)):
            n = min(np.uint64(8), end - group)
            for lane in range(np.uint64(8)):
                level = group + min(lane, n - one)  # lanes beyond the end repeat the last level, and are not stored
                times_row(K, level, theta, row)
                for a in range(k):
                    total[a] = 0.0
                    for b in range(k):
                        total[a] -= Ginv[a, b] * row[b]
                sum_visits(term, records, T_, term.visit_ptr[level], term.visit_ptr[level + one], e, Rinv, total)
                kappa, part = weight(K, level), classes[level]
                for a in range(k):
                    rhs[a, lane] = total[a]
                    for b in range(a + 1):
                        P[a, b, lane] = parts[part, a, b] + kappa * Ginv[a, b]
            if not draw_eight(k_, P, rhs, normals, group - chunk, n):
                return np.int64(group)
            for lane in range(n):
                level = group + lane
                for a in range(k):
                    total[a] = rhs[a, lane]
                shift(theta, level, total)
                move_visits(term, term.visit_ptr[level], term.visit_ptr[level + one], e, total)
    return np.int64(-1)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def draw_eight(k_, P, rhs, normals, first, n):
    """In each lane: P <- its factor L with 1 / l_jj on the diagonal, rhs <- L'^-1 (L^-1 rhs + z). False where some P is not positive definite."""
    k = len(k_)
    good = True
    for j in range(k):
        for lane in range(8):
            d = P[j, j, lane]
            for m in range(j):
                d -= P[j, m, lane] * P[j, m, lane]
            good = good and d > 1e-12 * P[j, j, lane]
            P[j, j, lane] = 1.0 / np.sqrt(d)
        for i in range(j + 1, k):
            for lane in range(8):
                s = P[i, j, lane]
                for m in range(j):
                    s -= P[i, m, lane] * P[j, m, lane]
                P[i, j, lane] = s * P[j, j, lane]
    for i in range(k):
        for lane in range(8):
            s = rhs[i, lane]
            for m in range(i):
                s -= P[i, m, lane] * rhs[m, lane]
            rhs[i, lane] = s * P[i, i, lane]
    for i in range(k - 1, -1, -1):
        for lane in range(np.uint64(8)):
            s = rhs[i, lane] + normals[first + min(lane, n - np.uint64(1)), i]
            for m in range(i + 1, k):
                s -= P[m, i, lane] * rhs[m, lane]
            rhs[i, lane] = s * P[i, i, lane]
    return good
