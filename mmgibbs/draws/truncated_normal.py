"""Normals of standard deviation 1 truncated to a half-line or an interval (Robert 1995).

With alpha the distance from the mean to the nearer end of an interval that lies to its right, the excess e over that
end has density proportional to exp(-alpha e - e^2/2). Robert's proposal is Exp(a), a = (alpha + sqrt(alpha^2 + 4))/2,
accepted with exp(-(e - 1/a)^2/2), for alpha - a = -1/a. Draws are the end plus e: no digit is lost however far out the
end lies.

Attempt a uses block (draw, a): two normals, tried one after the other, or one exponential (words 0, 1) or uniform and
its decision (words 2, 3). Each proposal is accepted with probability above 0.49. After 4096 attempts the draw is nan.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numba import njit

from mmgibbs.draws.elementary import exp, log
from mmgibbs.draws.normal import box_muller
from mmgibbs.draws.philox import draw_word, exhausted, philox, uniform

SWITCH = 0.47  # from this mean on, normals are accepted often enough
SQRT_TWO_PI = 2.5066282746310002


@njit(cache=True, nogil=True, error_model="numpy", fastmath=False)
def truncated_normal_above(mean, c0, c1, c2, draw, k0, k1):
    """TN(mean, 1; > 0), strictly positive; nan where mean is nan or infinite."""
    if not abs(mean) < np.inf:
        return np.nan
    rate = 0.5 * (sqrt(mean * mean + 4.0) - mean)
    centre = 1.0 / rate
    attempt = np.uint64(0)
    while True:
        w0, w1, w2, w3 = philox(c0, c1, c2, draw_word(draw, attempt), k0, k1)
        u, v = uniform(w0, w1), uniform(w2, w3)
        if mean > SWITCH:
            z0, z1 = box_muller(u, v)
            if mean + z0 > 0.0:
                return mean + z0
            if mean + z1 > 0.0:
                return mean + z1
        else:
            excess = -log(u) * centre
            if v < exp(-0.5 * (excess - centre) * (excess - centre)):
                return excess
        attempt += np.uint64(1)
        if exhausted(attempt, u):
            return np.nan


@njit(cache=True, nogil=True, error_model="numpy", fastmath=False)
def truncated_normal_below(mean, c0, c1, c2, draw, k0, k1):
    """TN(mean, 1; < 0), strictly negative: minus TN(-mean, 1; > 0)."""
    return -truncated_normal_above(-mean, c0, c1, c2, draw, k0, k1)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=False)
def truncated_normal(mean, lower, upper, c0, c1, c2, draw, k0, k1):
    """TN(mean, 1; lower, upper), either end possibly infinite: a draw in [lower, upper] (`lower` where they are equal).

    nan unless lower <= upper and mean is finite. For standard deviation s pass mean/s, lower/s, upper/s and multiply by
    s.
    """
    return truncated_normal_from(np.uint64(0), mean, lower, upper, c0, c1, c2, draw, k0, k1)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=False)
def truncated_normal_from(attempt, mean, lower, upper, c0, c1, c2, draw, k0, k1):
    """`truncated_normal` from attempt number `attempt` (uint64) on, where those before have been tried elsewhere."""
    if not (lower <= upper and abs(mean) < np.inf):
        return np.nan
    if lower == upper:
        return lower
    width = upper - lower
    alpha, beta = lower - mean, upper - mean
    right = alpha > 0.0
    inside = alpha <= 0.0 and beta >= 0.0
    near, far = (alpha, beta) if right else (-beta, -alpha)
    rate = 0.5 * (near + sqrt(near * near + 4.0))
    centre = 1.0 / rate
    while True:
        w0, w1, w2, w3 = philox(c0, c1, c2, draw_word(draw, attempt), k0, k1)
        u, v = uniform(w0, w1), uniform(w2, w3)
        excess, accept = width * u, 0.0
        if inside and width > SQRT_TWO_PI:
            z0, z1 = box_muller(u, v)
            if alpha <= z0 <= beta:
                return mean + z0
            if alpha <= z1 <= beta:
                return mean + z1
        elif inside:
            x = alpha + excess
            accept = exp(-0.5 * x * x)
        elif width * (near + far) <= 2.0:
            accept = exp(-excess * (near + 0.5 * excess))
        else:
            excess = -log(u) * centre
            if excess <= width:
                accept = exp(-0.5 * (excess - centre) * (excess - centre))
        if v < accept:
            return min(lower + excess, upper) if inside or right else max(upper - excess, lower)
        attempt += np.uint64(1)
        if exhausted(attempt, u):
            return np.nan
