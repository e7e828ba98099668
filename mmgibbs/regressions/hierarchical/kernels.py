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

for |l^(5)| <= 0.1278 t. Only where the bound does not decide is h evaluated, so the chain is that of plain slice
sampling. For logits the derivatives are summed in single precision, twice as many at a time, and what that may cost is
part of the bound:

    |error of the sums in h(d)| <= SINGLE |d| sum t |x| (1 + y/2 + y^2/4 + y^3/6),     y = max|x| |d|
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mmgibbs.draws.elementary import exp, log
from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.regressions.hierarchical.likelihood import (
    SINGLE,
    advance,
    advance_poisson,
    linear_predictor,
    log_sum_except,
    logit_derivatives,
    loss,
)

FIFTH = 0.1278  # above the largest fifth derivative of log(1 + e^psi)
ROUNDING = 1e-9  # of a sum of derivatives, far above what it is: nearer than this to the level, h is evaluated
MAX_CANDIDATES = 500


class Conditional(NamedTuple):
    """h and its bounds for one coordinate of one group: numbers alone, so that making one costs nothing."""

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
    j: int  # x is column j of the block


class Observations(NamedTuple):
    """Observations of one group, as h needs them where it is evaluated."""

    psi: np.ndarray  # (n_i,)
    block: np.ndarray  # (D, n_i) as stored
    centre: np.ndarray  # (D,)
    factor: np.ndarray  # (D,)
    trials: np.ndarray  # (n_i,), or (0,) where all are 1
    poisson: bool
    here: np.ndarray  # (1,) sum of l at d = 0, once it has been needed; nan before


@kernel(forceinline=True)
def above(d, level, h, o):
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
    if np.isnan(o.here[0]):
        o.here[0] = loss(o.psi, o.block, h.j, 0.0, o.centre, o.factor, o.trials, o.poisson)
    moved = loss(o.psi, o.block, h.j, d, o.centre, o.factor, o.trials, o.poisson)
    return d * (h.linear - 0.5 * h.curvature * d) - (moved - o.here[0]) > level


def compile_slice_step(above: Callable[..., bool]) -> Callable[..., float]:
    """slice_step(target, data, width, most_steps, sweep, level, stream, seed, chain), compiled for one kind of density.

    above(d, log_u, target, data), compiled, says whether h(d) > log_u; h(0) = 0; `target` and `data` are what h depends
    on.
    """

    @kernel(forceinline=True)
    def slice_step(target, data, width, most_steps, sweep, level, stream, seed, chain):
        """Draw the move of a coordinate: d from the slice h(d) > log u, u uniform, found by stepping out and shrinkage.

        The bracket of size `width` lies uniformly about 0 and grows by floor(m v) steps to the left at most, by
        m - 1 - floor(m v) to the right, m = `most_steps`. Uniforms of the site (sweep, level, stream), two in each
        draw: u, bracket, v, then the candidates. nan after 500 candidates (never seen).
        """
        u, place = uniform_pair(sweep, level, stream, draw_word(0, 0), seed, chain)
        share, spare = uniform_pair(sweep, level, stream, draw_word(1, 0), seed, chain)
        log_u = log(u)
        lower = -width * place
        right = lower + width
        steps_left = np.int64(most_steps * share)
        steps_right = most_steps - 1 - steps_left
        while steps_left > 0 and above(lower, log_u, target, data):
            lower -= width
            steps_left -= 1
        while steps_right > 0 and above(right, log_u, target, data):
            right += width
            steps_right -= 1
        for candidate in range(MAX_CANDIDATES):
            w = spare
            if candidate & 1:
                w, spare = uniform_pair(sweep, level, stream, draw_word((candidate + 3) >> 1, 0), seed, chain)
            d = lower + w * (right - lower)
            if above(d, log_u, target, data):
                return d
            if d < 0.0:
                lower = d
            else:
                right = d
        return np.nan

    return slice_step


slice_step = compile_slice_step(above)


@kernel
def sweep_groups(groups, poisson, Q, mean, width, most_steps, squeeze, beta, first, last, sweep, stream, seed, chain):
    """Update every coordinate of groups first ... last - 1 in turn by a slice step; beta (G, M D) in place.

    Q (M D, M D): the prior's precision; mean, width (G, M D). Draws of coordinate a of group i: site (sweep, i, stream
    + a). Without `squeeze` every decision is an evaluation: the same chain, slower.
    """
    M, D = groups.cross.shape[1], groups.cross.shape[2]
    longest = np.int64(0)
    for i in range(first, last):
        longest = max(longest, groups.ptr[i + 1] - groups.ptr[i])
    etas, psis, log_sums, at_zero = np.empty((M, longest)), np.empty(longest), np.empty(longest), np.empty(1)
    shorts = np.empty((3, longest), np.float32)
    centre, factor = groups.centre, groups.factor
    for i in range(first, last):
        a, n = groups.ptr[i], groups.ptr[i + 1] - groups.ptr[i]
        block = groups.columns[D * a : D * (a + n)].reshape(D, n)
        eta, psi, log_sum, trials = etas[:, :n], psis[:n], log_sums[:n], groups.trials[a : a + n]
        z, short_x, short_trials = shorts[0, :n], shorts[1, :n], shorts[2, :n]
        one_each = True
        for r in range(n):
            short_trials[r] = np.float32(trials[r])
            one_each = one_each and trials[r] == 1.0
        observations = Observations(psi, block, centre, factor, trials[:0] if one_each else trials, poisson, at_zero)
        for k in range(M):
            linear_predictor(block, beta[i, k * D : (k + 1) * D], centre, factor, eta[k])
        for k in range(M):
            for r in range(n):  # not psi[:] = eta[k]: the check of its shapes takes seconds to compile
                psi[r] = eta[k, r]
            if M > 1:
                log_sum_except(eta, k, log_sum)
                psi -= log_sum
            d, moved = 0.0, 0
            for j in range(D):
                c = k * D + j
                reach, bound, growth, single = groups.reach[i, j], np.inf, 0.0, 0.0
                if poisson:
                    s1, s2, s3, s4 = advance_poisson(psi, block, moved, d, j, centre, factor)
                    if squeeze:
                        bound, growth = reach * s4 / 120.0, reach
                else:
                    advance(psi, block, moved, d, j, centre, factor, z, short_x)
                    s1, s2, s3, s4 = logit_derivatives(z, short_x, short_trials)
                    s1 = 0.5 * groups.sums[i, j] - s1
                    if squeeze:
                        bound, single = FIFTH / 120.0 * groups.fifth[i, j], SINGLE * groups.sizes[i, j]
                linear, Qcc = groups.cross[i, k, j], Q[c, c]
                for m in range(M * D):
                    linear -= Q[c, m] * (beta[i, m] - mean[i, m])
                at_zero[0] = np.nan
                h = Conditional(linear - s1, -s2 - Qcc, -s3, -s4, bound, growth, single, reach, linear, Qcc, j)
                d = slice_step(h, observations, width[i, c], most_steps, sweep, i, stream + c, seed, chain)
                beta[i, c] += d
                moved = j
            if M > 1:
                before, size = centre[moved], factor[moved] * d
                for r in range(n):
                    eta[k, r] = psi[r] + (block[moved, r] - before) * size + log_sum[r]
