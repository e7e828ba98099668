"""The draw of one level given everything else, which the serial engine, dense blocks and long levels share.

The level's k effects move from theta_l by `change` ~ N(P^-1 rhs, P^-1), where (docs/explanation/theory.md, "Full
conditionals")

    P   = kappa_ll G^-1 + sum_{r in l} W_r' R_r^-1 W_r
    rhs = -G^-1 sum_m kappa_lm theta_m + sum_{r in l} W_r' R_r^-1 e_r

The records' parts of P and rhs are in equations/records.py, the prior's in `add_prior`. All of these functions are
compiled into the loops that call them, which hold each step in sight. A function of several of them would count
references to its arrays at each level: with `draw_level` and `draw_components` behind one name, or the factor of P by
draws/small_matrices.py, a sweep of one trait takes 1.4 times as long. Only the lower triangle of P is written and
read. P, L, G^-1 (k, k), rhs, row, z and change (k,) float64; theta (q, k).
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.over_relaxation import NOISE, TOWARDS_MEAN
from mmgibbs.draws.small_matrices import SINGULAR
from mmgibbs.equations.partition import Block
from mmgibbs.pedigree.kernels import kernel


def select_components(block: Block, joint: bool) -> tuple[int, int] | None:
    """Return None to draw whole levels of a block (`draw_level`), else the range for `draw_components`.

    The range is the first component of the block and the one behind the last. The compiler leaves out the other way by
    the type of the result.
    """
    return None if joint else (block.first_component, block.last_component)


@kernel(forceinline=True)
def add_prior(Ginv, kappa, row, P, rhs):
    """P += kappa_ll G^-1 and rhs = -G^-1 sum_m kappa_lm theta_m: what relatives and the prior say of a level.

    kappa: kappa_ll; row (k,): sum_m kappa_lm theta_m, m = l included.
    """
    for a in range(rhs.size):
        rhs[a] = 0.0
        for b in range(rhs.size):
            rhs[a] -= Ginv[a, b] * row[b]
        for b in range(a + 1):
            P[a, b] += kappa * Ginv[a, b]


@kernel(forceinline=True)
def mask_inactive(active, P, rhs, z):
    """Components set to 0 leave the system: their change is exactly 0. active (k,) uint8; P, rhs and z in place."""
    for a in range(rhs.size):
        if active[a] == 0:
            rhs[a] = 0.0
            z[a] = 0.0
            for b in range(a):
                P[a, b] = 0.0
            for b in range(a + 1, rhs.size):
                P[b, a] = 0.0
            P[a, a] = 1.0


@kernel(forceinline=True)
def draw_level(P, rhs, z, L, change):
    """change = L'^-1 (f L^-1 rhs + n z), P = L L': N(P^-1 rhs, P^-1) over-relaxed, f and n of
    draws/over_relaxation.py. False where P is not positive definite.

    z: standard normals; L: work space, whose diagonal holds 1 / l_jj, so that there are k divisions and no more.
    """
    k = rhs.size
    for j in range(k):
        d = P[j, j]
        for m in range(j):
            d -= L[j, m] * L[j, m]
        if not d > SINGULAR * P[j, j]:
            return False
        L[j, j] = 1.0 / np.sqrt(d)
        for i in range(j + 1, k):
            s = P[i, j]
            for m in range(j):
                s -= L[i, m] * L[j, m]
            L[i, j] = s * L[j, j]
    for i in range(k):
        s = rhs[i]
        for m in range(i):
            s -= L[i, m] * change[m]
        change[i] = s * L[i, i]
    for i in range(k - 1, -1, -1):
        s = TOWARDS_MEAN * change[i] + NOISE * z[i]
        for m in range(i + 1, k):
            s -= L[m, i] * change[m]
        change[i] = s * L[i, i]
    return True


@kernel(forceinline=True)
def draw_components(components, P, rhs, z, change):
    """change_c ~ N((rhs_c - sum_b P_cb change_b) / P_cc, 1 / P_cc) for the components (first, behind the last) in turn;
    the others stay. False where a P_cc is not positive.
    """
    change[:] = 0.0
    for c in range(components[0], components[1]):
        if not P[c, c] > 0.0:
            return False
        s = rhs[c]
        for b in range(rhs.size):
            s -= (P[c, b] if b < c else P[b, c]) * change[b]  # change_c itself is still 0
        change[c] = s / P[c, c] + z[c] / np.sqrt(P[c, c])
    return True


@kernel(forceinline=True)
def apply_increment(theta, level, change):
    """theta_l += change; `change` becomes what the stored precision of theta could hold of it."""
    for c in range(change.size):
        old = theta[level, c]
        theta[level, c] = old + change[c]
        change[c] = np.float64(theta[level, c]) - np.float64(old)  # exact for float32 too
