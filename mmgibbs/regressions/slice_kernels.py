"""Slice sampling (Neal 2003) of the coefficients of many groups, a coordinate at a time: loops for the host.

Coordinate beta_a of a group, all else given, has log density g; only h(d) = g(beta_a + d) - g(beta_a) is ever needed:

    h(d) = d (sum_r x_r y_r + b) - Q_aa d^2 / 2 - sum_r [l_r(psi_r + x_r d) - l_r(psi_r)],     b = -[Q (beta - m)]_a

with the prior N(m, Q^-1), l(psi) = t log(1 + e^psi) for t trials, e^psi for a Poisson count. For more than two classes
psi = eta_k - log sum_{l != k} exp(eta_l), so that class k against the rest is a binary logit. psi is kept and moved,
psi += x d, so an evaluation costs n_i terms and never n_i p.

Most decisions h(d) > log u need no evaluation. The pass over the observations that moves psi also sums the first four
derivatives of h for the next coordinate, and Taylor's theorem bounds the rest:

    |h(d) - sum_{k <= 4} h_k d^k / k!| <= M |d|^5 / 120,     M = 0.1278 sum t |x|^5  (logit),
                                                             M = max|x| sum x^4 e^psi exp(max|x| |d|)  (Poisson)

for |l^(5)| <= 0.1278 t. Only where the bound does not decide is h evaluated, so the chain is that of plain slice sampling.
For logits the derivatives are summed in single precision, twice as many at a time, and what that may cost is part of the bound:

    |error of the sums in h(d)| <= SINGLE |d| sum t |x| (1 + y/2 + y^2/4 + y^3/6),     y = max|x| |d|
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
SINGLE = 5e-6  # above the error of a derivative in float32, for all its parts together
FACTORS = 512  # of 1 ... 2, multiplied before one logarithm
STRETCH = 256  # terms that are added in float32
SHORT_ZERO, SHORT_ONE, SHORT_TWO, SHORT_THREE_HALVES = np.float32(0), np.float32(1), np.float32(2), np.float32(1.5)
MOST_SHORT = np.float32(120)
SHORT_ROUND = np.float32(12582912)  # 1.5 * 2^23
SHORT_SHIFT = np.uint32(23)
SHORT_ONE_BITS = np.uint32(0x3F800000)
E0, E1, E2, E3, E4 = (np.float32(c) for c in (1.0000001, 0.693121, 0.24022107, 0.055922035, 0.009676037))  # Chebyshev series of 2^r on |r| <= 1/2


class Conditional(NamedTuple):
    """h and its bounds for one coordinate of one group."""

    h1: float
    h2: float
    h3: float
    h4: float
    bound: float  # M / 120 at d = 0
    growth: float  # M grows as exp(growth |d|)
    single: float  # SINGLE sum t |x|
    reach: float  # max |x|
    linear: float  # sum x y + b
    curvature: float  # Q_aa
    psi: np.ndarray  # (n_i,)
    x: np.ndarray  # (n_i,) the column as it is stored
    centre: float
    factor: float
    trials: np.ndarray  # (n_i,), or (0,) where all are 1
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


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
def short_exp2(z):
    """2^z in float32, to 4e-6 of itself for |z| <= 120, as at the nearer end beyond; no branches."""
    z = z if z > -MOST_SHORT else -MOST_SHORT
    z = z if z < MOST_SHORT else MOST_SHORT
    shifted = z + SHORT_ROUND
    r = z - (shifted - SHORT_ROUND)
    rr = r * r
    value = (E0 + E1 * r) + ((E2 + E3 * r) + E4 * rr) * rr
    return value * np.uint32((np.float32(shifted).view(np.uint32) << SHORT_SHIFT) + SHORT_ONE_BITS).view(np.float32)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def advance(psi, previous, previous_centre, previous_factor, d, x, centre, factor, z, short_x):
    """psi += previous d in place; z = -psi / log 2 and short_x = x in float32."""
    step = previous_factor * d
    for r in range(psi.size):
        moved = psi[r] + (previous[r] - previous_centre) * step
        psi[r] = moved
        z[r] = np.float32(moved * -LOG2_E)
        short_x[r] = np.float32((x[r] - centre) * factor)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def logit_derivatives(z, x, t):
    """Sums of x^k times the k-th derivative of l = t log(1 + e^psi), k = 1 ... 4, less sum t x / 2 for k = 1; z = -psi / log 2.

    With s = 1 - 2 p and u = 1 - s^2 = 4 p (1 - p) the derivatives are t (1 - s)/2, t u/4, t u s/4 and t u (1 - 3u/2)/4.
    float32, in stretches that are added in float64.
    """
    h1, h2, h3, h4 = 0.0, 0.0, 0.0, 0.0
    for first in range(0, z.size, STRETCH):
        s1, s2, s3, s4 = SHORT_ZERO, SHORT_ZERO, SHORT_ZERO, SHORT_ZERO
        for r in range(first, min(first + STRETCH, z.size)):
            s = SHORT_ONE - SHORT_TWO / (SHORT_ONE + short_exp2(z[r]))
            u = SHORT_ONE - s * s
            tx = t[r] * x[r]
            txu = tx * x[r] * u
            txxu = txu * x[r]
            s1 += tx * s
            s2 += txu
            s3 += txxu * s
            s4 += txxu * x[r] * (SHORT_ONE - SHORT_THREE_HALVES * u)
        h1 += s1
        h2 += s2
        h3 += s3
        h4 += s4
    return 0.5 * h1, 0.25 * h2, 0.25 * h3, 0.25 * h4


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def advance_poisson(psi, previous, previous_centre, previous_factor, d, x, centre, factor):
    """psi += previous d in place; then sums of x^k times the k-th derivative of l = e^psi, k = 1 ... 4."""
    s1, s2, s3, s4 = 0.0, 0.0, 0.0, 0.0
    step = previous_factor * d
    for r in range(psi.size):
        z = psi[r] + (previous[r] - previous_centre) * step
        psi[r] = z
        xr = (x[r] - centre) * factor
        t1 = bounded_exp(z) * xr
        xx = xr * xr
        s1 += t1
        s2 += t1 * xr
        s3 += t1 * xx
        s4 += t1 * xx * xr
    return s1, s2, s3, s4


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def loss(psi, x, centre, factor, d, trials, poisson):
    """sum_r l_r(psi_r + x_r d); no `trials`: one each."""
    total = 0.0
    step = factor * d
    if poisson:
        for r in range(psi.size):
            total += bounded_exp(psi[r] + (x[r] - centre) * step)
    elif trials.size == 0:
        for first in range(0, psi.size, FACTORS):
            product = 1.0
            for r in range(first, min(first + FACTORS, psi.size)):
                z = psi[r] + (x[r] - centre) * step
                total += z if z > 0.0 else 0.0
                product *= 1.0 + bounded_exp(-abs(z))
            total += log(product)
    else:
        for r in range(psi.size):
            z = psi[r] + (x[r] - centre) * step
            total += trials[r] * ((z if z > 0.0 else 0.0) + log(1.0 + bounded_exp(-abs(z))))
    return total


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def above(d, level, h):
    """h(d) > level."""
    size = abs(d)
    near = d * (h.h1 + d * (0.5 * h.h2 + d * (0.16666666666666666 * h.h3 + d * (0.041666666666666664 * h.h4))))
    rest = h.bound * (size * size) * (size * size) * size
    if h.growth > 0.0:
        rest *= exp(h.growth * size)
    y = h.reach * size
    rest += ROUNDING + h.single * size * (1.0 + y * (0.5 + y * (0.25 + y * 0.16666666666666666)))
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

    @njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
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
    """out = x beta; block (D, n_i) as stored. Four coordinates at a time: `out` is read and written less often."""
    D = beta.size
    start = 0.0
    for j in range(D):
        start -= centre[j] * factor[j] * beta[j]
    out[:] = start
    for j in range(0, D - 3, 4):
        x0, x1, x2, x3 = block[j], block[j + 1], block[j + 2], block[j + 3]
        b0, b1, b2, b3 = factor[j] * beta[j], factor[j + 1] * beta[j + 1], factor[j + 2] * beta[j + 2], factor[j + 3] * beta[j + 3]
        for r in range(out.size):
            out[r] += (b0 * x0[r] + b1 * x1[r]) + (b2 * x2[r] + b3 * x3[r])
    for j in range(D - D % 4, D):
        x, b = block[j], factor[j] * beta[j]
        for r in range(out.size):
            out[r] += b * x[r]


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
    shorts = np.empty((3, longest), np.float32)
    for i in range(first, last):
        a, n = groups.ptr[i], groups.ptr[i + 1] - groups.ptr[i]
        block = groups.columns[D * a : D * (a + n)].reshape(D, n)
        eta, psi, other, trials = etas[:, :n], psis[:n], others[:n], groups.trials[a : a + n]
        z, short_x, short_trials = shorts[0, :n], shorts[1, :n], shorts[2, :n]
        one_each = True
        for r in range(n):
            short_trials[r] = np.float32(trials[r])
            one_each = one_each and trials[r] == 1.0
        if one_each:
            trials = trials[:0]
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
                move = psi, block[last_j], groups.centre[last_j], groups.factor[last_j], d, block[j], groups.centre[j], groups.factor[j]
                reach = groups.reach[i, j]
                if poisson:
                    s1, s2, s3, s4 = advance_poisson(*move)
                    bound, growth, single = reach * s4 / 120.0, reach, 0.0
                else:
                    advance(*move, z, short_x)
                    s1, s2, s3, s4 = logit_derivatives(z, short_x, short_trials)
                    s1 = 0.5 * groups.sums[i, j] - s1
                    bound, growth, single = FIFTH / 120.0 * groups.fifth[i, j], 0.0, SINGLE * groups.sizes[i, j]
                if not squeeze:
                    bound = np.inf
                pull = 0.0
                for m in range(M * D):
                    pull -= Q[c, m] * (beta[i, m] - mean[i, m])
                linear = groups.cross[i, k, j] + pull
                here[0] = np.nan
                h = Conditional(
                    linear - s1, -s2 - Q[c, c], -s3, -s4, bound, growth, single, reach, linear, Q[c, c],
                    psi, block[j], groups.centre[j], groups.factor[j], trials, poisson, here,
                )  # fmt: skip
                d = slice_step(h, width[i, c], most_steps, sweep, i, stream + c, seed, chain)
                beta[i, c] += d
                last_j = j
            if M > 1:
                x, centre, step = block[D - 1], groups.centre[D - 1], groups.factor[D - 1] * d
                for r in range(n):
                    eta[k, r] = psi[r] + (x[r] - centre) * step + other[r]
