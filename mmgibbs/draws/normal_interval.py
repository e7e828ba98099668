"""Phi(b) - Phi(a), the probability of an interval under a standard normal, and its logarithm wherever it lies.

With a <= b, and the interval turned to the left of 0 where it lies to the right (Phi(b) - Phi(a) = Phi(-a) - Phi(-b)),

    log(Phi(b) - Phi(a)) = log Phi(b) + log(1 - exp(log Phi(a) - log Phi(b)))

loses no digit far out: both logarithms are of the same tail.
"""

from __future__ import annotations

from math import erfc, log1p

import numpy as np

from mmgibbs.draws.elementary import exp, log
from mmgibbs.pedigree.kernels import kernel

SQRT_HALF = 0.7071067811865476
LOG_SQRT_TWO_PI = 0.9189385332046727


@kernel(fastmath=False)
def log_phi(x):
    """log Phi(x); -inf for x = -inf, 0 for x = inf. Below -30 by the continued fraction of Mills' ratio."""
    if x < -1e160:
        return -np.inf
    if x > -30.0:
        return log1p(-0.5 * erfc(x * SQRT_HALF)) if x > 0.0 else log(0.5 * erfc(-x * SQRT_HALF))
    t = -x
    f = t
    for n in range(12, 0, -1):
        f = t + n / f
    return -0.5 * t * t - LOG_SQRT_TWO_PI - log(f)


@kernel(fastmath=False)
def normal_interval(a, b):
    """Phi(b) - Phi(a) for a <= b, either end possibly infinite, with a small relative error until it underflows: beyond
    37 standard deviations it is 0.
    """
    return interval_given_tails(a, b, tail(a), tail(b))


@kernel(fastmath=False, forceinline=True)
def tail(x):
    """2 (1 - Phi(|x|))."""
    return erfc(abs(x) * SQRT_HALF)


@kernel(fastmath=False, forceinline=True)
def interval_given_tails(a, b, tail_a, tail_b):
    """`normal_interval` of (a, b), a <= b, whose tails are known: tail_a = `tail`(a), tail_b = `tail`(b)."""
    if a > 0.0:
        return 0.5 * (tail_a - tail_b)
    if b > 0.0:  # both sides of 0: the tails are what is left out
        return 1.0 - 0.5 * (tail_a + tail_b)
    return 0.5 * (tail_b - tail_a)


@kernel(fastmath=False)
def log_normal_interval(a, b):
    """log(Phi(b) - Phi(a)) for a < b, either end possibly infinite; -inf where they are equal."""
    if a > 0.0:
        a, b = -b, -a
    above = log_phi(b)
    if a == -np.inf:
        return above
    share = exp(log_phi(a) - above)
    return above + log1p(-share) if share < 1.0 else -np.inf
