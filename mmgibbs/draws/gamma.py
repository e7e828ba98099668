"""Gamma and chi-square draws by Marsaglia & Tsang (2000), for every shape from far below 1 to far beyond 10^6.

With d = shape - 1/3 and w = x / (3 sqrt(d)), x standard normal, propose d (1 + w)^3 and accept with log u < h,

    h = x^2/2 + d (1 - v + log v) = 3 d (log(1 + w) - w + w^2/2 - w^3/3),    v = (1 + w)^3,

written so that nothing cancels when d is large. Attempt a uses block (draw, a): words 0 and 1 the radius, word 2 the
angle of x, word 3 the uniform u. Shapes below 1 draw at shape + 1 and multiply by U^(1/shape), U from block
(draw, 2^24 - 1).

A draw is d (1 + w)^3 with x of density proportional to exp(h - x^2/2), all but standard normal. So an over-relaxed
draw (over_relaxation.py) given the one of before is x' = a x + sqrt(1 - a^2) z, accepted with probability
exp(h' - h).
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from mmgibbs.draws.elementary import exp, log
from mmgibbs.draws.normal import box_muller
from mmgibbs.draws.over_relaxation import NOISE, OVER_RELAXED
from mmgibbs.draws.philox import draw_word, exhausted, philox, short_uniform, uniform
from mmgibbs.pedigree.kernels import kernel

SMALLEST = 2.2250738585072014e-308  # the smallest normal float64
BOOST_ATTEMPT = np.uint64(0xFFFFFF)


@kernel(fastmath=False, forceinline=True)
def log_acceptance(w, d):
    """3 d (log(1 + w) - w + w^2/2 - w^3/3) for w > -1."""
    if abs(w) < 0.03125:
        tail = 0.16666666666666666 + w * (-0.14285714285714285 + w * (0.125 - 0.1111111111111111 * w))
        tail = 0.25 + w * (-0.2 + w * tail)
        return -3.0 * d * (w * w) * (w * w) * tail
    return 3.0 * d * (log(1.0 + w) - w + w * w * (0.5 - 0.3333333333333333 * w))


@kernel(fastmath=False)
def gamma_large_shape(shape, c0, c1, c2, draw, first, k0, k1):
    """Gamma(shape, rate 1) for 1 <= shape < infinity, else nan; its attempts are first..first + 4095."""
    if not (shape >= 1.0 and shape < np.inf):
        return np.nan
    c0, c1, c2, k0, k1 = np.uint64(c0), np.uint64(c1), np.uint64(c2), np.uint64(k0), np.uint64(k1)  # one form of Philox
    d = shape - 0.3333333333333333
    scale = 1.0 / (3.0 * sqrt(d))
    attempt = np.uint64(0)
    while True:
        w0, w1, w2, w3 = philox(c0, c1, c2, draw_word(np.uint64(draw), np.uint64(first) + attempt), k0, k1)
        x, _ = box_muller(uniform(w0, w1), short_uniform(w2))
        u = short_uniform(w3)
        w = x * scale
        if w > -1.0 and (u < 1.0 - 0.0331 * (x * x) * (x * x) or log(u) < log_acceptance(w, d)):
            return d * ((1.0 + w) * (1.0 + w) * (1.0 + w))
        attempt += np.uint64(1)
        if exhausted(attempt, u):
            return np.nan


@kernel(fastmath=False)
def log_boost(shape, c0, c1, c2, draw, k0, k1):
    """log(U)/shape, the logarithm of the factor that takes a Gamma(shape + 1) draw to Gamma(shape)."""
    c0, c1, c2, k0, k1 = np.uint64(c0), np.uint64(c1), np.uint64(c2), np.uint64(k0), np.uint64(k1)
    w0, w1, _, _ = philox(c0, c1, c2, draw_word(np.uint64(draw), BOOST_ATTEMPT), k0, k1)
    return log(uniform(w0, w1)) / shape


@kernel(fastmath=False)
def gamma(shape, c0, c1, c2, draw, k0, k1):
    """Gamma(shape, rate 1) draw `draw` (0..255) of the site (sweep c0, level c1, stream c2).

    nan unless 0 < shape < infinity (or, practically impossible, after 4096 rejections). Draws below 2.2e-308, which
    shapes under about 0.01 give, come back as 2.2e-308 and never as 0: where their size matters, use log_gamma_draw.
    """
    if not shape > 0.0:
        return np.nan
    value = gamma_large_shape(shape if shape >= 1.0 else shape + 1.0, c0, c1, c2, draw, 0, k0, k1)
    if shape < 1.0:
        value = value * exp(log_boost(shape, c0, c1, c2, draw, k0, k1))
    if value < SMALLEST:
        return SMALLEST
    return value


@kernel(fastmath=False)
def log_gamma_draw(shape, c0, c1, c2, draw, k0, k1):
    """The logarithm of the draw that gamma() makes from the same counters, without its floor; nan as there."""
    if not shape > 0.0:
        return np.nan
    value = gamma_large_shape(shape if shape >= 1.0 else shape + 1.0, c0, c1, c2, draw, 0, k0, k1)
    if not value > 0.0:
        return np.nan
    return log(value) if shape >= 1.0 else log(value) + log_boost(shape, c0, c1, c2, draw, k0, k1)


@kernel(fastmath=False)
def chi_square(df, c0, c1, c2, draw, k0, k1):
    """Chi-square with df > 0 degrees of freedom: twice Gamma(df/2)."""
    return 2.0 * gamma(0.5 * df, c0, c1, c2, draw, k0, k1)


@kernel(fastmath=False)
def over_relaxed_chi_square(df, now, c0, c1, c2, draw, k0, k1):
    """A chi-square with df > 0 degrees of freedom given `now` > 0, the one of before: over-relaxed, from 2 degrees of
    freedom on; below, where x is far from normal, independent of it. Attempt 0 is the only one.
    """
    shape = 0.5 * df
    if not (shape >= 1.0 and shape < np.inf):
        return chi_square(df, c0, c1, c2, draw, k0, k1)
    d = shape - 0.3333333333333333
    scale = 1.0 / (3.0 * sqrt(d))
    w_now = exp(0.3333333333333333 * log(0.5 * now / d)) - 1.0
    word = draw_word(np.uint64(draw), np.uint64(0))
    words = np.uint64(c0), np.uint64(c1), np.uint64(c2), word, np.uint64(k0), np.uint64(k1)
    w0, w1, w2, w3 = philox(*words)
    z, _ = box_muller(uniform(w0, w1), short_uniform(w2))
    w = OVER_RELAXED * w_now + NOISE * z * scale
    if w > -1.0 and log(short_uniform(w3)) < log_acceptance(w, d) - log_acceptance(w_now, d):
        return 2.0 * d * ((1.0 + w) * (1.0 + w) * (1.0 + w))
    return now
