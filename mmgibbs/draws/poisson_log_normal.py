"""The log rate of a Poisson count, given the count and a normal prior of the log rate:

    f(l) = y l - E exp(l) - (l - m)^2 / (2 v)        y a count, E > 0 its exposure, m and v > 0 of the prior

is concave, so its tangents lie above it: an exact draw by rejection from three of them, at the mode l* and 1.2 of its
curvature's standard deviations to either side (Gilks & Wild 1992 without the adaptation). The mode is l* = a - W,
a = m + v y, where W = W0(v E exp(a)) solves W + log W = log(v E) + a, by Newton's iteration on that logarithmic scale,
which no exponential can overflow.

Attempt a uses block (draw, a): words 0 and 1 pick the place under the tangents, words 2 and 3 accept it. Acceptance is
above 0.7 everywhere.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from mmgibbs.draws.elementary import exp, log
from mmgibbs.draws.philox import draw_word, exhausted, philox, uniform
from mmgibbs.pedigree.kernels import kernel

REACH = 1.2  # from the mode to the outer tangents, in standard deviations by the curvature there
NEWTON_STEPS = 8  # from the start below, quadratic convergence to the last bit takes at most six


@kernel(fastmath=False)
def lambert_of_exp(c):
    """W > 0 with W + log W = c, that is W0(exp(c)); exp(c) where c < -36, to which it rounds there."""
    if c < -36.0:
        return exp(max(c, -700.0))
    w = c - log(c) if c > 2.0 else exp(0.5 * min(c, 0.0) - 0.4) if c > -2.0 else exp(c)
    for _ in range(NEWTON_STEPS):
        w = w * (1.0 + c - log(w)) / (1.0 + w)
    return w


@kernel(fastmath=False)
def poisson_log_normal(count, exposure, mean, variance, c0, c1, c2, draw, k0, k1):
    """l with density proportional to exp(f(l)).

    nan unless count >= 0, exposure > 0, variance > 0 and mean are finite numbers (or, practically impossible, after
    4096 rejections). count need not be whole.
    """
    if not (0.0 <= count < np.inf and 0.0 < exposure < np.inf and 0.0 < variance < np.inf and abs(mean) < np.inf):
        return np.nan
    a = mean + variance * count
    w = lambert_of_exp(log(variance * exposure) + a)
    mode = a - w
    # In x = l - mode, where E exp(mode) = rate = y - (mode - m) / v:
    # f(mode + x) - f(mode) = rate (1 + x - exp(x)) - x^2 / (2 v)
    rate = w / variance
    reach = REACH / sqrt(1.0 / variance + rate)
    low = rate * (1.0 - reach - exp(-reach)) - 0.5 * reach * reach / variance
    high = rate * (1.0 + reach - exp(reach)) - 0.5 * reach * reach / variance
    rise = rate * (1.0 - exp(-reach)) + reach / variance  # of the tangent to the left, above 0
    fall = rate * (exp(reach) - 1.0) + reach / variance  # of the tangent to the right, above 0
    lower = -reach - low / rise  # where the tangents cross the level of the mode
    right = reach + high / fall
    area_left, area_right = 1.0 / rise, 1.0 / fall
    area = area_left + (right - lower) + area_right
    attempt = np.uint64(0)
    while True:
        w0, w1, w2, w3 = philox(c0, c1, c2, draw_word(draw, attempt), k0, k1)
        u, v = uniform(w0, w1), uniform(w2, w3)
        at, tangent = area * u, 0.0
        if at < area_left:
            x = lower + log(at * rise) / rise
            tangent = rise * (x - lower)
        elif at < area - area_right:
            x = lower + (at - area_left)
        else:
            x = right - log((area - at) * fall) / fall
            tangent = -fall * (x - right)
        if log(v) < rate * (1.0 + x - exp(x)) - 0.5 * x * x / variance - tangent:
            return mode + x
        attempt += np.uint64(1)
        if exhausted(attempt, u):
            return np.nan
