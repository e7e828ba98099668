"""Polya-Gamma draws PG(h, z) (Polson, Scott & Windle 2013): h a positive whole number, z real.

PG(1, z) = J*/4, J* with density cosh(c) exp(-c^2 x/2) sum_n (-1)^n a_n(x), c = |z|/2 (Devroye 2009). The sum alternates
and a_n/a_0 = (2n+1) rho^(n(n+1)/2) with rho = exp(-4/x) for x <= t and rho = exp(-pi^2 x) for x > t = 0.64. Proposals
come from an envelope of a_0(x) exp(-c^2 x/2) whose pieces have masses in closed form, so no normal distribution
function is needed and every rejection starts afresh:

    x > t:             (pi/2) exp(-K x), K = pi^2/8 + c^2/2; mass pi/(2K) exp(-K t);  x = t + E/K
    x <= t, c < 1.4:   x = 1/n^2, n = 1.25 + e, density 2 sqrt(2/pi) exp(-n^2/2 - c^2 x/2); e by Robert's Exp(a)
    x <= t, c >= 1.4:  2 exp(-c) times InvGauss(1/c, 1), draws above t rejected

At worst (c near 1.4) 0.70 of the proposals are accepted. One block each: words 0, 1 the exponential or the radius of
the normal, word 2 the decision (c < 1.4) or the angle (c >= 1.4), word 3 with the 12 low bits of word 1 a uniform that
chooses the piece and, rescaled after each choice to a uniform independent of it, the root of the inverse Gaussian and
the alternating series.

Sums: h <= 16 adds PG(1, z) draws, exactly. Beyond that PG(h, z) = sum_k g_k / (2 pi^2 (k - 1/2)^2 + z^2/2), g_k ~
Gamma(h, 1), of which the first 8 are drawn and the rest is one inverse Gaussian with the exact remaining mean and
variance (its limit as z -> infinity). So mean and variance are exact; the skewness is off by less than 4e-8/sqrt(h) for
|z| <= 1, 3e-5/sqrt(h) for |z| <= 10, and 0.012/sqrt(h) at worst (|z| about 100). A normal would be off by 2/sqrt(h).
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.elementary import exp, log
from mmgibbs.draws.gamma import gamma_large_shape
from mmgibbs.draws.inverse_gaussian import half_chi_square_1, inverse_gaussian_attempt, small_root
from mmgibbs.draws.philox import SHIFT_12, SHIFT_20, WORD, draw_word, exhausted, philox, short_uniform, uniform
from mmgibbs.pedigree.kernels import kernel

PI = 3.141592653589793
PI_SQUARED = 9.869604401089358
CUT = 0.64  # t
CUT_ROOT = 1.25  # 1/sqrt(t)
SWITCH = 1.4  # c from which the inverse Gaussian is the better proposal
CENTRE = 0.5542476415070755  # 1/a, a = (1.25 + sqrt(1.25^2 + 4))/2
LEFT_MASS = 0.4721575136019979  # 2 sqrt(2/pi) exp(-1.25^2/2 + 1/(2 a^2)) / a
SURE = 0.994  # below 1 - a_1/a_0 everywhere
EXACT_UP_TO = 16
SERIES_TERMS = 8


@kernel(fastmath=False)
def series_accepts(rho, v):
    """v < 1 - 3 rho + 5 rho^3 - 7 rho^6 + ...: the partial sums bracket the limit."""
    total, power, step = 1.0, 1.0, rho
    n = 1.0
    while True:
        power = power * step  # rho^(n(n+1)/2)
        step = step * rho
        total -= (2.0 * n + 1.0) * power
        if v < total:
            return True
        power = power * step
        step = step * rho
        total += (2.0 * n + 3.0) * power
        if not v < total:
            return False
        n += 2.0


@kernel(fastmath=False)
def polya_gamma_1_attempts(z, c0, c1, c2, draw, first, k0, k1):
    """PG(1, z) from attempts first..first + 4095."""
    c = 0.5 * abs(z)
    if not c < np.inf:
        return np.nan if np.isnan(c) else 0.0
    k = 0.125 * PI_SQUARED + 0.5 * c * c
    near_zero = c < SWITCH
    odds = 0.5 * PI / k * (exp(-CUT * k) / LEFT_MASS if near_zero else 0.5 * exp(c - CUT * k))
    right_share = odds / (1.0 + odds)
    attempt = np.uint64(0)
    while True:
        w0, w1, w2, w3 = philox(c0, c1, c2, draw_word(draw, np.uint64(first) + attempt), k0, k1)
        u = uniform(w0, w1)
        v = uniform(w3, (w1 << SHIFT_20) & WORD)
        if v < right_share:
            v = v / right_share
            x = CUT - log(u) / k
            accepted = v < SURE or series_accepts(exp(-PI_SQUARED * x), v)
        else:
            v = (v - right_share) / (1.0 - right_share)
            if near_zero:
                excess = -log(u) * CENTRE
                n = CUT_ROOT + excess
                x = 1.0 / (n * n)
                off = excess - CENTRE
                accepted = short_uniform(w2) < exp(-0.5 * (off * off + c * c * x))
            else:
                x, g = small_root(1.0 / c, half_chi_square_1(w0, w1, w2))
                small = g / (1.0 + g)
                if v < small:
                    v = v / small
                else:
                    v = (v - small) / (1.0 - small)
                    x = x * g * g
                accepted = x <= CUT
            accepted = accepted and (v < SURE or series_accepts(exp(-4.0 / x), v))
        if accepted:
            return 0.25 * x
        attempt += np.uint64(1)
        if exhausted(attempt, u):
            return np.nan


@kernel(fastmath=False)
def polya_gamma_1(z, c0, c1, c2, draw, k0, k1):
    """PG(1, z) draw `draw` (0..255) of the site (sweep c0, level c1, stream c2); nan for nan, 0 for infinite z."""
    return polya_gamma_1_attempts(z, c0, c1, c2, draw, 0, k0, k1)


@kernel(fastmath=False)
def polya_gamma_mean(h, z):
    """E PG(h, z) = h tanh(z/2) / (2 z), h/4 at 0."""
    if abs(z) < 0.5:
        y = 0.25 * z * z
        s = -0.0014558343870513183 + 0.00059002744094558598 * y
        s = 0.0035921280365724810 + s * y
        s = -0.0088632355299021966 + s * y
        s = 0.021869488536155203 + s * y
        s = -0.053968253968253968 + s * y
        s = 0.13333333333333333 + s * y
        s = -0.33333333333333333 + s * y
        return 0.25 * h * (1.0 + s * y)
    e = exp(-abs(z))
    return h * ((1.0 - e) / (1.0 + e)) / (2.0 * abs(z))


@kernel(fastmath=False)
def polya_gamma_variance(h, z):
    """Var PG(h, z) = h (sinh z - z) / (4 z^3 cosh(z/2)^2), h/24 at 0."""
    if abs(z) < 0.5:
        y = 0.25 * z * z  # -1/8 of the derivative by y of the series above
        s = -7.0 * 0.0014558343870513183 + 8.0 * 0.00059002744094558598 * y
        s = 6.0 * 0.0035921280365724810 + s * y
        s = -5.0 * 0.0088632355299021966 + s * y
        s = 4.0 * 0.021869488536155203 + s * y
        s = -3.0 * 0.053968253968253968 + s * y
        s = 2.0 * 0.13333333333333333 + s * y
        return -0.125 * h * (-0.33333333333333333 + s * y)
    size = abs(z)
    e = exp(-size)
    t = (1.0 - e) / (1.0 + e)
    return h * (2.0 * t - size * (1.0 - t * t)) / (4.0 * size * size * size)


@kernel(fastmath=False)
def polya_gamma(h, z, c0, c1, c2, draw, k0, k1):
    """PG(h, z) draw `draw` (0..255) of the site, h a whole number; 0 for h = 0 or infinite z, nan for h < 0 or nan z.

    Part i of the sum uses attempts 4096 i .. 4096 i + 4095 of the draw.
    """
    if h < 0 or np.isnan(z):
        return np.nan
    if h == 0 or abs(z) == np.inf:
        return 0.0
    total = 0.0
    if h <= EXACT_UP_TO:
        for i in range(np.uint64(h)):
            total += polya_gamma_1_attempts(z, c0, c1, c2, draw, i << SHIFT_12, k0, k1)
        return total
    shape = np.float64(h)
    mean, variance = polya_gamma_mean(shape, z), polya_gamma_variance(shape, z)
    if abs(z) > 1e40:  # the standard deviation is below the spacing of doubles at the mean
        return mean
    for i in range(np.uint64(SERIES_TERMS)):
        half = np.float64(i) + 0.5
        weight = 1.0 / (2.0 * PI_SQUARED * (half * half) + 0.5 * z * z)
        mean -= shape * weight
        variance -= shape * weight * weight
        total += weight * gamma_large_shape(shape, c0, c1, c2, draw, i << SHIFT_12, k0, k1)
    rest = mean * mean * mean / variance
    return total + inverse_gaussian_attempt(mean, rest, c0, c1, c2, draw, np.uint64(SERIES_TERMS) << SHIFT_12, k0, k1)
