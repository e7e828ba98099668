"""log Phi of many numbers, compiled into vector instructions: more than twice as fast as a general log_ndtr."""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.elementary import LN2_HIGH, LN2_LOW, LOG2_E, ROUND, SHIFT_52, bits, from_bits, log
from mmgibbs.draws.philox import ONE_BITS
from mmgibbs.pedigree.kernels import kernel

SLOPE = 0.4 * 0.7071067811865476


@kernel(fastmath={"contract"}, forceinline=True)
def exp_in_range(x):
    """e^x for -700 <= x <= 700, without a branch. e^x = 2^n e^r, |r| <= log(2)/2, by Taylor's series."""
    shifted = x * LOG2_E + ROUND
    n = shifted - ROUND
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    p = 1 / 6227020800
    p = ((p * r + 1 / 479001600) * r + 1 / 39916800) * r + 1 / 3628800
    p = (((p * r + 1 / 362880) * r + 1 / 40320) * r + 1 / 5040) * r + 1 / 720
    p = (((p * r + 1 / 120) * r + 1 / 24) * r + 1 / 6) * r + 1 / 2
    return ((p * r + 1.0) * r + 1.0) * from_bits((bits(shifted) << SHIFT_52) + ONE_BITS)


@kernel(fastmath={"contract"}, forceinline=True)
def log_scaled_tail(s):
    """log(erfcx(x) / t), t = 1/(1 + 0.4 x), s = 2 t - 1: Chebyshev interpolation, error below 1e-13 for all x >= 0."""
    p = (-9.6579543439576806e-08 * s + 1.3886059995792586e-07) * s + 8.7799993201300330e-07
    p = ((p * s - 1.3570636128856052e-06) * s - 4.4240551183496338e-06) * s + 7.4245055824609587e-06
    p = ((p * s + 1.7661363563184928e-05) * s - 3.1504171917558973e-05) * s - 6.6191815837115858e-05
    p = ((p * s + 1.1714563843777181e-04) * s + 2.5448456586055093e-04) * s - 3.9515160423884369e-04
    p = ((p * s - 1.0479557607695120e-03) * s + 1.1575269825215059e-03) * s + 4.7209763789659185e-03
    p = ((p * s - 1.9463307643029072e-03) * s - 2.3787984293357774e-02) * s - 1.7983809916099970e-02
    return ((p * s + 1.3925290696417883e-01) * s + 7.6340375493247825e-01) * s - 8.6366809216731855e-01


@kernel(fastmath={"contract"})
def log_ndtr_in_place(x):
    """x_i <- log Phi(x_i), x (m,) float64 finite; absolute error below 1e-12 (1 + x_i^2).

    log Phi(-a) = -a^2/2 + log(erfcx(a / sqrt 2) / 2) for a >= 0;  log Phi(a) = log(1 - Phi(-a)).
    """
    for i in range(np.uint64(x.size)):
        a = abs(x[i])
        t = 1.0 / (1.0 + SLOPE * a)
        below = log(0.5 * t) + log_scaled_tail(2.0 * t - 1.0) - 0.5 * a * a
        above = log(1.0 - exp_in_range(max(below, -700.0)))
        x[i] = below if x[i] < 0.0 else above
