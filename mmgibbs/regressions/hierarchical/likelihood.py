"""Log likelihood of one group and its derivatives by one coordinate: loops over its observations that vectorise.

l(psi) = t log(1 + e^psi) for a logit of t trials, e^psi for a Poisson count; x = (column - centre) * factor.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.elementary import LOG2_E, ROUND, SHIFT_52, bits, from_bits, log
from mmgibbs.draws.philox import ONE_BITS
from mmgibbs.pedigree.kernels import kernel

LN2 = 0.6931471805599453
FACTORS = 512  # of 1 ... 2, multiplied before one logarithm
STRETCH = 256  # terms that are added in float32
SINGLE = 5e-6  # above the error of logit_derivatives, see kernels.py
SHORT_ZERO, SHORT_ONE, SHORT_TWO, SHORT_THREE_HALVES = np.float32(0), np.float32(1), np.float32(2), np.float32(1.5)
SHORT_ROUND = np.float32(12582912)  # 1.5 * 2^23
SHORT_SHIFT = np.uint32(23)
SHORT_ONE_BITS = np.uint32(0x3F800000)
MOST_SHORT = np.float32(120)
CHEBYSHEV = (1.0000001, 0.693121, 0.24022107, 0.055922035, 0.009676037)  # of 2^r on |r| <= 1/2
E0, E1, E2, E3, E4 = (np.float32(c) for c in CHEBYSHEV)


@kernel(fastmath={"contract"}, forceinline=True)
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
    middle = (0.041666667040810505 + 0.008333333385702744 * r) + (
        0.0013888801710226376 + 0.00019841170226646184 * r
    ) * rr
    high = 2.4884478239156414e-05 + 2.7640198843428343e-06 * r
    return (low + (middle + high * (rr * rr)) * (rr * rr)) * from_bits((bits(shifted) << SHIFT_52) + ONE_BITS)


@kernel(fastmath={"contract"}, forceinline=True)
def short_exp2(z):
    """2^z in float32, to 4e-6 of itself for |z| <= 120, as at the nearer end beyond; no branches."""
    z = z if z > -MOST_SHORT else -MOST_SHORT
    z = z if z < MOST_SHORT else MOST_SHORT
    shifted = z + SHORT_ROUND
    r = z - (shifted - SHORT_ROUND)
    rr = r * r
    value = (E0 + E1 * r) + ((E2 + E3 * r) + E4 * rr) * rr
    return value * np.uint32((np.float32(shifted).view(np.uint32) << SHORT_SHIFT) + SHORT_ONE_BITS).view(np.float32)


@kernel(fastmath={"reassoc", "contract", "nsz"})
def advance(psi, block, moved, step, j, centre, factor, z, short_x):
    """psi += step x_moved in place, then z = -psi / log 2 and short_x = x_j in float32.

    block (D, n_i) as stored; x_j = (block[j] - centre[j]) * factor[j].
    """
    before, size, c, f = centre[moved], factor[moved] * step, centre[j], factor[j]
    for r in range(np.uint64(psi.size)):
        now = psi[r] + (block[moved, r] - before) * size
        psi[r] = now
        z[r] = np.float32(now * -LOG2_E)
        short_x[r] = np.float32((block[j, r] - c) * f)


@kernel(fastmath={"reassoc", "contract", "nsz"})
def logit_derivatives(z, x, t):
    """Sums of x^k times the k-th derivative of l = t log(1 + e^psi), k = 1 ... 4, less sum t x / 2 for k = 1; z = -psi
    / log 2.

    With s = 1 - 2 p and u = 1 - s^2 = 4 p (1 - p) the derivatives are t (1 - s)/2, t u/4, t u s/4 and t u (1 - 3u/2)/4.
    float32, in stretches that are added in float64.
    """
    h1, h2, h3, h4 = 0.0, 0.0, 0.0, 0.0
    n, stretch = np.uint64(z.size), np.uint64(STRETCH)
    for first in range(np.uint64(0), n, stretch):
        s1, s2, s3, s4 = SHORT_ZERO, SHORT_ZERO, SHORT_ZERO, SHORT_ZERO
        for r in range(first, min(first + stretch, n)):
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


@kernel(fastmath={"reassoc", "contract", "nsz"})
def advance_poisson(psi, block, moved, step, j, centre, factor):
    """psi += step x_moved in place; then sums of x_j^k times the k-th derivative of l = e^psi, k = 1 ... 4;
    see advance.
    """
    s1, s2, s3, s4 = 0.0, 0.0, 0.0, 0.0
    before, size, c, f = centre[moved], factor[moved] * step, centre[j], factor[j]
    for r in range(np.uint64(psi.size)):
        psi[r] += (block[moved, r] - before) * size
    for r in range(np.uint64(psi.size)):
        xr = (block[j, r] - c) * f
        t1 = bounded_exp(psi[r]) * xr
        xx = xr * xr
        s1 += t1
        s2 += t1 * xr
        s3 += t1 * xx
        s4 += t1 * xx * xr
    return s1, s2, s3, s4


@kernel(fastmath={"reassoc", "contract", "nsz"})
def loss(psi, block, j, d, centre, factor, trials, poisson):
    """sum_r l_r(psi_r + x_rj d); no `trials`: one each."""
    total = 0.0
    c, step = centre[j], factor[j] * d
    if poisson:
        for r in range(np.uint64(psi.size)):
            total += bounded_exp(psi[r] + (block[j, r] - c) * step)
    elif trials.size == 0:
        n, factors = np.uint64(psi.size), np.uint64(FACTORS)
        for first in range(np.uint64(0), n, factors):
            product = 1.0
            for r in range(first, min(first + factors, n)):
                z = psi[r] + (block[j, r] - c) * step
                total += z if z > 0.0 else 0.0
                product *= 1.0 + bounded_exp(-abs(z))
            total += log(product)
    else:
        for r in range(np.uint64(psi.size)):
            z = psi[r] + (block[j, r] - c) * step
            total += trials[r] * ((z if z > 0.0 else 0.0) + log(1.0 + bounded_exp(-abs(z))))
    return total


@kernel(fastmath={"reassoc", "contract", "nsz"})
def linear_predictor(block, beta, centre, factor, out):
    """out = x beta; block (D, n_i) as stored. Four coordinates at a time: `out` is read and written less often."""
    D = beta.size
    start = 0.0
    for j in range(D):
        start -= centre[j] * factor[j] * beta[j]
    out[:] = start
    scaled = factor * beta
    for j in range(0, D - 3, 4):
        b0, b1, b2, b3 = scaled[j], scaled[j + 1], scaled[j + 2], scaled[j + 3]
        for r in range(np.uint64(out.size)):
            out[r] += (b0 * block[j, r] + b1 * block[j + 1, r]) + (b2 * block[j + 2, r] + b3 * block[j + 3, r])
    for j in range(D - D % 4, D):
        for r in range(np.uint64(out.size)):
            out[r] += scaled[j] * block[j, r]


@kernel
def log_sum_except(eta, k, out):
    """out = log sum_{l != k} exp(eta_l), the reference class with eta = 0 among them; eta (M, n_i)."""
    for r in range(np.uint64(out.size)):
        most = 0.0
        for m in range(eta.shape[0]):
            if m != k and eta[m, r] > most:
                most = eta[m, r]
        total = bounded_exp(-most)
        for m in range(eta.shape[0]):
            if m != k:
                total += bounded_exp(eta[m, r] - most)
        out[r] = most + log(total)
