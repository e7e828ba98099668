"""Slice sampling (Neal 2003) of the coefficients of many groups, a coordinate at a time: loops for the host.

Coordinate beta_a of a group, all else given, has log density g; only h(d) = g(beta_a + d) - g(beta_a) is ever needed:

    h(d) = d (sum_r x_r y_r + b) - Q_aa d^2 / 2 - sum_r [l_r(psi_r + x_r d) - l_r(psi_r)],     b = -[Q (beta - m)]_a

with the prior N(m, Q^-1), l(psi) = t log(1 + e^psi) for t trials, e^psi for a Poisson count. For more than two classes
psi = eta_k - log sum_{l != k} exp(eta_l), so that class k against the rest is a binary logit. psi is kept and moved,
psi += x d, so an evaluation costs n_i terms and never n_i p.

Most decisions h(d) > log u need no evaluation. The pass over the observations that moves psi also sums the first four
derivatives of h for the next coordinate, and Taylor's theorem bounds the rest:

    |h(d) - sum_{k <= 4} h_k d^k / k!| <= M |d|^5 / 120,     M = 0.1278 sum t |x|^5  (logit),
                                                             M = max|x| sum x^4 mu exp(max|x| |d|)  (Poisson)

for |l^(5)| <= 0.1278 t. Only where the bound does not decide is h evaluated, so the chain is that of plain slice sampling.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from mmgibbs.draws.elementary import LOG2_E, ROUND, SHIFT_52, bits, exp, from_bits, log
from mmgibbs.draws.philox import ONE_BITS, draw_word, uniform_pair

FIFTH = 0.1278  # above the largest fifth derivative of log(1 + e^psi)
ROUNDING = 1e-9  # of a sum of derivatives, far above what it is: nearer than this to the level, h is evaluated
MOST_CANDIDATES = 500
LN2 = 0.6931471805599453


class Conditional(NamedTuple):
    """h and its bounds for one coordinate of one group."""

    h1: float
    h2: float
    h3: float
    h4: float
    bound: float  # M / 120 at d = 0
    growth: float  # M grows as exp(growth |d|)
    linear: float  # sum x y + b
    curvature: float  # Q_aa
    psi: np.ndarray  # (n_i,)
    x: np.ndarray  # (n_i,) the column as it is stored
    centre: float
    factor: float
    trials: np.ndarray  # (n_i,)
    poisson: bool
    here: np.ndarray  # (1,) sum of l at d = 0, once it has been needed; nan before


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
def bounded_exp(x):
    """e^x to 5e-14 of itself for |x| <= 700, e^700 or e^-700 beyond; no branches, so that loops over it vectorise.

    x = n log 2 + r; e^r by its Chebyshev series on |r| <= log(2)/2 to degree 9. Not for draws, whose bits are fixed.
    """
    x = x if x > -700.0 else -700.0
    x = x if x < 700.0 else 700.0
    shifted = x * LOG2_E + ROUND
    r = x - (shifted - ROUND) * LN2
    rr = r * r
    low = (1.0000000000000135 + 1.0000000000000067 * r) + (0.49999999999438055 + 0.16666666666554297 * r) * rr
    middle = (0.041666667040810505 + 0.008333333385702744 * r) + (0.0013888801710226376 + 0.00019841170226646184 * r) * rr
    high = 2.4884478239156414e-05 + 2.7640198843428343e-06 * r
    return (low + (middle + high * (rr * rr)) * (rr * rr)) * from_bits((bits(shifted) << SHIFT_52) + ONE_BITS)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def advance_logit(psi, previous, previous_centre, previous_factor, d, x, centre, factor, trials):
    """psi += previous d in place; then sums of x^k times the k-th derivative of l, k = 1 ... 4."""
    s1, s2, s3, s4 = 0.0, 0.0, 0.0, 0.0
    step = previous_factor * d
    for r in range(psi.size):
        z = psi[r] + (previous[r] - previous_centre) * step
        psi[r] = z
        e = bounded_exp(-z)
        p = 1.0 / (1.0 + e)
        q = e * p
        xr = (x[r] - centre) * factor
        tx = trials[r] * xr
        w = p * q
        xx = xr * xr
        t2 = tx * xr * w
        s1 += tx * p
        s2 += t2
        s3 += t2 * xr * (q - p)
        s4 += t2 * xx * (1.0 - 6.0 * w)
    return s1, s2, s3, s4


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def advance_poisson(psi, previous, previous_centre, previous_factor, d, x, centre, factor, trials):
    """The same for l = t e^psi."""
    s1, s2, s3, s4 = 0.0, 0.0, 0.0, 0.0
    step = previous_factor * d
    for r in range(psi.size):
        z = psi[r] + (previous[r] - previous_centre) * step
        psi[r] = z
        xr = (x[r] - centre) * factor
        t1 = trials[r] * bounded_exp(z) * xr
        xx = xr * xr
        s1 += t1
        s2 += t1 * xr
        s3 += t1 * xx
        s4 += t1 * xx * xr
    return s1, s2, s3, s4


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def loss(psi, x, centre, factor, d, trials, poisson):
    """sum_r l_r(psi_r + x_r d)."""
    total = 0.0
    step = factor * d
    if poisson:
        for r in range(psi.size):
            total += trials[r] * bounded_exp(psi[r] + (x[r] - centre) * step)
        return total
    for r in range(psi.size):
        z = psi[r] + (x[r] - centre) * step
        total += trials[r] * ((z if z > 0.0 else 0.0) + log(1.0 + bounded_exp(-abs(z))))
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def above(d, level, h):
    """h(d) > level."""
    size = abs(d)
    near = d * (h.h1 + d * (0.5 * h.h2 + d * (0.16666666666666666 * h.h3 + d * (0.041666666666666664 * h.h4))))
    rest = h.bound * (size * size) * (size * size) * size
    if h.growth > 0.0:
        rest *= exp(h.growth * size)
    rest += ROUNDING
    if near - rest > level:
        return True
    if near + rest < level:
        return False
    if np.isnan(h.here[0]):
        h.here[0] = loss(h.psi, h.x, h.centre, h.factor, 0.0, h.trials, h.poisson)
    moved = loss(h.psi, h.x, h.centre, h.factor, d, h.trials, h.poisson)
    return d * (h.linear - 0.5 * h.curvature * d) - (moved - h.here[0]) > level


def slice_step_on(above):
    """slice_step(target, width, most_steps, sweep, level, stream, seed, chain), compiled for one kind of density.

    above(d, log_u, target), compiled, says whether h(d) > log_u, where h(0) = 0 and `target` holds what h depends on.
    """

    @njit(cache=True, nogil=True, error_model="numpy")
    def slice_step(target, width, most_steps, sweep, level, stream, seed, chain):
        """How far a coordinate moves: a draw d from the slice h(d) > log u, u uniform, found by stepping out and shrinkage.

        The bracket of size `width` lies uniformly about 0 and grows by floor(m v) steps to the left at most, by
        m - 1 - floor(m v) to the right, m = `most_steps`. Uniforms of the site (sweep, level, stream), two in each draw:
        u, bracket, v, then the candidates. nan after 500 candidates (never seen).
        """
        u, place = uniform_pair(sweep, level, stream, draw_word(0, 0), seed, chain)
        share, spare = uniform_pair(sweep, level, stream, draw_word(1, 0), seed, chain)
        log_u = log(u)
        left = -width * place
        right = left + width
        steps_left = np.int64(most_steps * share)
        steps_right = most_steps - 1 - steps_left
        while steps_left > 0 and above(left, log_u, target):
            left -= width
            steps_left -= 1
        while steps_right > 0 and above(right, log_u, target):
            right += width
            steps_right -= 1
        for candidate in range(MOST_CANDIDATES):
            w = spare
            if candidate & 1:
                w, spare = uniform_pair(sweep, level, stream, draw_word((candidate + 3) >> 1, 0), seed, chain)
            d = left + w * (right - left)
            if above(d, log_u, target):
                return d
            if d < 0.0:
                left = d
            else:
                right = d
        return np.nan

    return slice_step


slice_step = slice_step_on(above)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def linear_predictor(block, beta, centre, factor, out):
    """out = x beta; block (D, n_i) as stored."""
    out[:] = 0.0
    for j in range(beta.size):
        x, c, step = block[j], centre[j], factor[j] * beta[j]
        for r in range(out.size):
            out[r] += (x[r] - c) * step


@njit(cache=True, nogil=True, error_model="numpy")
def log_sum_of_others(eta, k, out):
    """out = log sum_{l != k} exp(eta_l), the reference class with eta = 0 among them; eta (M, n_i)."""
    for r in range(out.size):
        most = 0.0
        for m in range(eta.shape[0]):
            if m != k and eta[m, r] > most:
                most = eta[m, r]
        total = bounded_exp(-most)
        for m in range(eta.shape[0]):
            if m != k:
                total += bounded_exp(eta[m, r] - most)
        out[r] = most + log(total)


@njit(cache=True, nogil=True, error_model="numpy")
def sweep_groups(groups, poisson, Q, mean, width, most_steps, squeeze, beta, first, last, sweep, stream, seed, chain):
    """Every coordinate of groups first ... last - 1, one after another, by a slice step; beta (G, M D) in place.

    Q (M D, M D): the prior's precision; mean, width (G, M D). Draws of coordinate a of group i: site (sweep, i, stream + a).
    Without `squeeze` every decision is an evaluation: the same chain, slower.
    """
    M, D = groups.cross.shape[1], groups.cross.shape[2]
    longest = np.int64(0)
    for i in range(first, last):
        longest = max(longest, groups.ptr[i + 1] - groups.ptr[i])
    etas, psis, others, here = np.empty((M, longest)), np.empty(longest), np.empty(longest), np.empty(1)
    for i in range(first, last):
        a, n = groups.ptr[i], groups.ptr[i + 1] - groups.ptr[i]
        block = groups.columns[D * a : D * (a + n)].reshape(D, n)
        eta, psi, other, trials = etas[:, :n], psis[:n], others[:n], groups.trials[a : a + n]
        for k in range(M):
            linear_predictor(block, beta[i, k * D : (k + 1) * D], groups.centre, groups.factor, eta[k])
        for k in range(M):
            psi[:] = eta[k]
            if M > 1:
                log_sum_of_others(eta, k, other)
                psi -= other
            d, last_j = 0.0, 0
            for j in range(D):
                c = k * D + j
                move = (psi, block[last_j], groups.centre[last_j], groups.factor[last_j], d, block[j], groups.centre[j], groups.factor[j], trials)
                s1, s2, s3, s4 = advance_poisson(*move) if poisson else advance_logit(*move)
                pull = 0.0
                for m in range(M * D):
                    pull -= Q[c, m] * (beta[i, m] - mean[i, m])
                linear = groups.cross[i, k, j] + pull
                here[0] = np.nan
                reach = groups.reach[i, j]
                if not squeeze:
                    bound, growth = np.inf, 0.0
                elif poisson:
                    bound, growth = reach * s4 / 120.0, reach
                else:
                    bound, growth = FIFTH / 120.0 * groups.fifth[i, j], 0.0
                h = Conditional(
                    linear - s1, -s2 - Q[c, c], -s3, -s4, bound, growth, linear, Q[c, c],
                    psi, block[j], groups.centre[j], groups.factor[j], trials, poisson, here,
                )  # fmt: skip
                d = slice_step(h, width[i, c], most_steps, sweep, i, stream + c, seed, chain)
                beta[i, c] += d
                last_j = j
            if M > 1:
                x, centre, step = block[D - 1], groups.centre[D - 1], groups.factor[D - 1] * d
                for r in range(n):
                    eta[k, r] = psi[r] + (x[r] - centre) * step + other[r]
