"""Normals of standard deviation 1 truncated to a half-line or an interval (Robert 1995).

With alpha the distance from the mean to the nearer end of an interval that lies to its right, the excess e over that
end has density proportional to exp(-alpha e - e^2/2). Robert's proposal is Exp(a), a = (alpha + sqrt(alpha^2 + 4))/2,
accepted with exp(-(e - 1/a)^2/2), for alpha - a = -1/a. Draws are the end plus e: no digit is lost however far out the
end lies.

Attempt a uses block (draw, a): two normals, tried one after the other, or one exponential (words 0, 1) or uniform and
its decision (words 2, 3). Each proposal is accepted with probability above 0.49. After 4096 attempts the draw is nan.
`fill_truncated` makes the first attempts of many levels side by side.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from mmgibbs.draws.elementary import exp, exp_unchecked, log
from mmgibbs.draws.normal import box_muller
from mmgibbs.draws.philox import draw_word, exhausted, philox, uniform, uniform_pair
from mmgibbs.pedigree.kernels import kernel

SWITCH = 0.47  # from this mean on, normals are accepted often enough
SQRT_TWO_PI = 2.5066282746310002


@kernel(fastmath=False)
def truncated_normal_positive(mean, c0, c1, c2, draw, k0, k1):
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


@kernel(fastmath=False)
def truncated_normal_negative(mean, c0, c1, c2, draw, k0, k1):
    """TN(mean, 1; < 0), strictly negative: minus TN(-mean, 1; > 0)."""
    return -truncated_normal_positive(-mean, c0, c1, c2, draw, k0, k1)


@kernel(fastmath=False)
def truncated_normal(mean, lower, upper, c0, c1, c2, draw, k0, k1):
    """TN(mean, 1; lower, upper), either end possibly infinite: a draw in [lower, upper] (`lower` where they are equal).

    nan unless lower <= upper and mean is finite. For standard deviation s pass mean/s, lower/s, upper/s and multiply by
    s.
    """
    return retry_truncated_normal(np.uint64(0), mean, lower, upper, c0, c1, c2, draw, k0, k1)


@kernel(fastmath=False)
def retry_truncated_normal(attempt, mean, lower, upper, c0, c1, c2, draw, k0, k1):
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


@kernel(fastmath=False, forceinline=True)
def attempt_without_normals(mean, lower, upper, u, v):
    """(draw, whether it is accepted) of one attempt of `truncated_normal` by an exponential or a uniform.

    Nothing branches, so that loops over it vectorise; of what is not chosen nothing is right, and nothing read. What is
    chosen has a power between -650 and 0.
    """
    width = upper - lower
    alpha, beta = lower - mean, upper - mean
    right, inside = alpha > 0.0, (alpha <= 0.0) & (beta >= 0.0)
    near, far = alpha if right else -beta, beta if right else -alpha
    rate = 0.5 * (near + sqrt(near * near + 4.0))
    centre = 1.0 / rate
    by_uniform = inside | (width * (near + far) <= 2.0)
    uniform_excess, exponential_excess = width * u, -log(u) * centre
    excess = uniform_excess if by_uniform else exponential_excess
    x, past = alpha + excess, excess - centre
    power_inside, power_outside, power_exponential = -0.5 * x * x, -excess * (near + 0.5 * excess), -0.5 * past * past
    power = power_outside if by_uniform else power_exponential
    power = power_inside if inside else power
    valid = (lower <= upper) & (abs(mean) < np.inf)
    accepted = (v < exp_unchecked(power)) & (by_uniform | (excess <= width)) & valid
    up, down = min(lower + excess, upper), max(upper - excess, lower)
    return up if inside | right else down, accepted


@kernel(fastmath=False)
def truncated_work_arrays(n):
    """Memory for `fill_truncated` of up to n levels."""
    return np.empty((10, n)), np.empty((2, n), np.int64), np.empty((2, n), np.bool_)


@kernel(fastmath=False)
def fill_truncated(out, mean, sd, lower, upper, level, n, work, c0, c2, draw, k0, k1):
    """out[i] = sd[i] times `truncated_normal` of (mean[i], lower[i], upper[i]) / sd[i] at level[i], i < n.

    The same random numbers and, up to rounding, the same draws; where sd[i] = 0, out[i] has no meaning. First attempts
    are made side by side, by loops that vectorise; the few levels that need more are listed and done one after another.

    out, mean, sd, lower, upper: (>= n,) float64; level: (>= n,) uint64; work: of `truncated_work_arrays`.
    """
    numbers, listed, flags = work
    u, v, z0, z1, by_normals, accepted = numbers[0], numbers[1], numbers[2], numbers[3], flags[0], flags[1]
    for i in range(n):
        u[i], v[i] = uniform_pair(c0, level[i], c2, draw_word(draw, 0), k0, k1)
    for i in range(n):
        z0[i], z1[i] = box_muller(u[i], v[i])
    for i in range(n):
        x = mean[i] + sd[i] * z0[i]
        out[i] = x
        by_normals[i] = (lower[i] <= mean[i]) & (mean[i] <= upper[i]) & (upper[i] - lower[i] > SQRT_TWO_PI * sd[i])
        accepted[i] = (lower[i] <= x) & (x <= upper[i])
    again, by_other_method, n_again, n_others = listed[0], listed[1], 0, 0
    for i in range(n):
        again[n_again], by_other_method[n_others] = i, i
        n_again += by_normals[i] & (not accepted[i])
        n_others += not by_normals[i]
    _second_normals(out, mean, sd, lower, upper, level, again[:n_again], z1, c0, c2, draw, k0, k1)
    _draw_by_exponentials(out, mean, sd, lower, upper, level, by_other_method[:n_others], work, c0, c2, draw, k0, k1)


@kernel(fastmath=False)
def _second_normals(out, mean, sd, lower, upper, level, listed, z1, c0, c2, draw, k0, k1):
    """The second normal of the first attempt, for the levels listed, and further attempts where it fails too."""
    for i in listed:
        x = mean[i] + sd[i] * z1[i]
        if lower[i] <= x <= upper[i]:
            out[i] = x
        elif sd[i] > 0.0:
            m, a, b = mean[i] / sd[i], lower[i] / sd[i], upper[i] / sd[i]
            out[i] = sd[i] * retry_truncated_normal(np.uint64(1), m, a, b, c0, level[i], c2, draw, k0, k1)


@kernel(fastmath=False)
def _draw_by_exponentials(out, mean, sd, lower, upper, level, listed, work, c0, c2, draw, k0, k1):
    """First attempts by exponentials and uniforms for the levels listed, and further ones where they fail."""
    numbers, accepted, n = work[0], work[2][0], len(listed)
    m, a, b, u, v, x = numbers[4], numbers[5], numbers[6], numbers[7], numbers[8], numbers[9]
    for j in range(n):
        i = listed[j]
        s = sd[i] if sd[i] > 0.0 else 1.0
        m[j], a[j], b[j], u[j], v[j] = mean[i] / s, lower[i] / s, upper[i] / s, numbers[0, i], numbers[1, i]
    for j in range(n):
        x[j], accepted[j] = attempt_without_normals(m[j], a[j], b[j], u[j], v[j])
    for j in range(n):
        i = listed[j]
        if accepted[j]:
            out[i] = sd[i] * x[j]
        elif sd[i] > 0.0:
            out[i] = sd[i] * retry_truncated_normal(np.uint64(1), m[j], a[j], b[j], c0, level[i], c2, draw, k0, k1)
