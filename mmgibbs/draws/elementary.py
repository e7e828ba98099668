"""log, exp and sincos from +, -, *, / and bit patterns alone, so that every machine gives the same bits.

No libm, no fused multiply-add, no table: the same operations in the same order stand in elementary.cuh. Loops over
these functions vectorise. Polynomials are minimax fits (Remez exchange, 50 digits) of the functions named beside them.

Error, as a multiple of the spacing of doubles at the true value: log and exp below 1, cos and sin below 2 (tests hold
these).
"""

from __future__ import annotations

import numpy as np

from mmgibbs.pedigree.kernels import kernel

MANTISSA = np.uint64(0x000FFFFFFFFFFFFF)
SHIFT_52 = np.uint64(52)
SHIFT_62 = np.uint64(62)
ONE = np.uint64(1)
TWO = np.uint64(2)
SQRT_HALF_BITS = np.uint64(0x3FE6A09E667F3BCD)  # bits of sqrt(1/2)
TO_SQRT_HALF = np.uint64(0x0009_5F61_9980_C433)  # bits of 1 minus bits of sqrt(1/2)
TWO_52_BITS = np.uint64(0x4330000000000000)  # bits of 2^52: an integer below 2^52 joined to them is 2^52 + integer
TWO_52_AND_BIAS = 4503599627371519.0  # 2^52 + 1023
ROUND = 6755399441055744.0  # 1.5 * 2^52: adding and subtracting it rounds to the nearest integer
LN2_HIGH = 0.6931471803691238  # 32 bits of log 2: a multiple of it by an integer below 2^21 is exact
LN2_LOW = 1.9082149292705877e-10
LOG2_E = 1.4426950408889634


@kernel(fastmath=False, forceinline=True)
def bits(x):
    """The 64 bits of a float64 x, as uint64."""
    return np.float64(x).view(np.uint64)


@kernel(fastmath=False, forceinline=True)
def from_bits(n):
    """The float64 whose 64 bits are n, uint64."""
    return np.uint64(n).view(np.float64)


@kernel(fastmath=False, forceinline=True)
def log(x):
    """Natural logarithm of a positive, finite, normal float64 (2.3e-308 and up; nothing else is checked).

    x = 2^e m, sqrt(1/2) <= m < sqrt(2), f = m - 1, s = f/(2 + f), R = s^2 P(s^2):  log x = e log 2 + f - s (f - R),
    for log m = 2 atanh(s) = s (2 + R) and 2 s = f - s f.
    """
    n = bits(x) + TO_SQRT_HALF
    e = from_bits((n >> SHIFT_52) | TWO_52_BITS) - TWO_52_AND_BIAS
    f = from_bits((n & MANTISSA) + SQRT_HALF_BITS) - 1.0
    s = f / (2.0 + f)
    y = s * s
    yy = y * y
    low = (0.6666666666666734 + 0.3999999999941468 * y) + (0.28571428742386984 + 0.22222198573224355 * y) * yy
    high = (0.1818356432504865 + 0.15314050560061773 * y) + 0.14795949773624684 * yy
    p = low + high * (yy * yy)
    return e * LN2_HIGH - ((s * (f - y * p) - e * LN2_LOW) - f)


@kernel(fastmath=False, forceinline=True)
def cos_sin_turns(u):
    """(cos 2 pi u, sin 2 pi u) for 0 <= u < 2^40: u is in turns, so the reduction to an eighth of a turn is exact."""
    t = 4.0 * u
    shifted = t + ROUND
    quadrant = bits(shifted)
    r = t - (shifted - ROUND)
    y = r * r
    yy = y * y
    s_low = (-0.645964097506245 + 0.07969262624606273 * y) + (-0.004681754132616265 + 0.00016044115259847345 * y) * yy
    s_high = -3.598649340545879e-06 + 5.634675063967814e-08 * y
    s = 1.5707963267948966 * r + (s_low + s_high * (yy * yy)) * (y * r)
    c_low = (-1.2337005501361697 + 0.2536695079010469 * y) + (-0.020863480763315442 + 0.000919260274225032 * y) * yy
    c_high = (-2.5202036991529394e-05 + 4.7106156575238903e-07 * y) + -6.321892429764327e-09 * yy
    c = 1.0 + (c_low + c_high * (yy * yy)) * y
    odd = (quadrant & ONE) != np.uint64(0)
    a = s if odd else c
    b = c if odd else s
    cos_sign = ((quadrant + ONE) & TWO) << SHIFT_62
    sin_sign = (quadrant & TWO) << SHIFT_62
    return from_bits(bits(a) ^ cos_sign), from_bits(bits(b) ^ sin_sign)


@kernel(fastmath=False, forceinline=True)
def exp(x):
    """e^x: 0 below -745.2, infinity above 709.8, nan for nan; results below 2.3e-308 are rounded twice.

    x = n log 2 + r, |r| <= log(2)/2, e^x = 2^n (1 + (r + r^2 Q(r))), 2^n in two factors so that neither over- nor
    underflows.
    """
    if not x > -745.2:
        return x if np.isnan(x) else 0.0
    if x > 709.79:
        return np.inf
    return exp_unchecked(x)


@kernel(fastmath=False, forceinline=True)
def exp_unchecked(x):
    """e^x for -745.2 < x <= 709.79, which is not checked: without branches, so that loops vectorise."""
    n = (x * LOG2_E + ROUND) - ROUND
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    rr = r * r
    q_low = (0.5 + 0.16666666666666685 * r) + (0.04166666666666674 + 0.008333333333316671 * r) * rr
    q_4 = 2.4801587387078096e-05 + 2.7557234065366756e-06 * r
    q_middle = (0.0013888888888851619 + 0.00019841269897228147 * r) + q_4 * rr
    q_high = (2.7557221840821903e-07 + 2.51123003753367e-08 * r) + 2.0930577965003344e-09 * rr
    q = q_low + (q_middle + q_high * (rr * rr)) * (rr * rr)
    value = 1.0 + (r + rr * q)
    exponent = np.int64(n)
    half = exponent >> np.int64(1)
    first = from_bits(np.uint64(half + 1023) << SHIFT_52)
    second = from_bits(np.uint64(exponent - half + 1023) << SHIFT_52)
    return value * first * second
