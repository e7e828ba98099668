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

from typing import NamedTuple

import numpy as np
from numba import njit

from mmgibbs.draws.elementary import exp, log
from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.regressions.group_likelihood import (
    SINGLE,
    advance,
    advance_poisson,
    linear_predictor,
    log_sum_of_others,
    logit_derivatives,
    loss,
)

FIFTH = 0.1278  # above the largest fifth derivative of log(1 + e^psi)
ROUNDING = 1e-9  # of a sum of derivatives, far above what it is: nearer than this to the level, h is evaluated
MOST_CANDIDATES = 500


class Conditional(NamedTuple):
    """h and its bounds for one coordinate of one group."""

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
    psi: np.ndarray  # (n_i,)
    x: np.ndarray  # (n_i,) the column as it is stored
    centre: float
    factor: float
    trials: np.ndarray  # (n_i,), or (0,) where all are 1
    poisson: bool
    here: np.ndarray  # (1,) sum of l at d = 0, once it has been needed; nan before


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def above(d, level, h):
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
    if np.isnan(h.here[0]):
        h.here[0] = loss(h.psi, h.x, h.centre, h.factor, 0.0, h.trials, h.poisson)
    moved = loss(h.psi, h.x, h.centre, h.factor, d, h.trials, h.poisson)
    return d * (h.linear - 0.5 * h.curvature * d) - (moved - h.here[0]) > level


def slice_step_on(above):
    """slice_step(target, width, most_steps, sweep, level, stream, seed, chain), compiled for one kind of density.

    above(d, log_u, target), compiled, says whether h(d) > log_u, where h(0) = 0 and `target` holds what h depends on.
    """

    @njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
    def slice_step(target, width, most_steps, sweep, level, stream, seed, chain):
        """How far a coordinate moves: a draw d from the slice h(d) > log u, u uniform, found by stepping out and
        shrinkage.

        The bracket of size `width` lies uniformly about 0 and grows by floor(m v) steps to the left at most, by
        m - 1 - floor(m v) to the right, m = `most_steps`. Uniforms of the site (sweep, level, stream), two in each
        draw: u, bracket, v, then the candidates. nan after 500 candidates (never seen).
        """
        u, place = uniform_pair(sweep, level, stream, draw_word(0, 0), seed, chain)
        share, spare = uniform_pair(sweep, level, stream, draw_word(1, 0), seed, chain)
        log_u = log(u)
        left = -width * place
        right = left + width
        steps_left = np.int64(most_steps * share)
        steps_right = most_steps - 1 - steps_left
        while steps_left > 0 and above(left, log_u, target):
            left -= width
            steps_left -= 1
        while steps_right > 0 and above(right, log_u, target):
            right += width
            steps_right -= 1
        for candidate in range(MOST_CANDIDATES):
            w = spare
            if candidate & 1:
                w, spare = uniform_pair(sweep, level, stream, draw_word((candidate + 3) >> 1, 0), seed, chain)
            d = left + w * (right - left)
            if above(d, log_u, target):
                return d
            if d < 0.0:
                left = d
            else:
                right = d
        return np.nan

    return slice_step


slice_step = slice_step_on(above)


@njit(cache=True, nogil=True, error_model="numpy")
def sweep_groups(groups, poisson, Q, mean, width, most_steps, squeeze, beta, first, last, sweep, stream, seed, chain):
    """Every coordinate of groups first ... last - 1, one after another, by a slice step; beta (G, M D) in place.

    Q (M D, M D): the prior's precision; mean, width (G, M D). Draws of coordinate a of group i: site (sweep, i, stream
    + a). Without `squeeze` every decision is an evaluation: the same chain, slower.
    """
    M, D = groups.cross.shape[1], groups.cross.shape[2]
    longest = np.int64(0)
    for i in range(first, last):
        longest = max(longest, groups.ptr[i + 1] - groups.ptr[i])
    etas, psis, others, here = np.empty((M, longest)), np.empty(longest), np.empty(longest), np.empty(1)
    shorts = np.empty((3, longest), np.float32)
    for i in range(first, last):
        a, n = groups.ptr[i], groups.ptr[i + 1] - groups.ptr[i]
        block = groups.columns[D * a : D * (a + n)].reshape(D, n)
        eta, psi, other, trials = etas[:, :n], psis[:n], others[:n], groups.trials[a : a + n]
        z, short_x, short_trials = shorts[0, :n], shorts[1, :n], shorts[2, :n]
        one_each = True
        for r in range(n):
            short_trials[r] = np.float32(trials[r])
            one_each = one_each and trials[r] == 1.0
        if one_each:
            trials = trials[:0]
        for k in range(M):
            linear_predictor(block, beta[i, k * D : (k + 1) * D], groups.centre, groups.factor, eta[k])
        for k in range(M):
            psi[:] = eta[k]
            if M > 1:
                log_sum_of_others(eta, k, other)
                psi -= other
            d, last_j = 0.0, 0
            for j in range(D):
                c = k * D + j
                move = (
                    psi,
                    block[last_j],
                    groups.centre[last_j],
                    groups.factor[last_j],
                    d,
                    block[j],
                    groups.centre[j],
                    groups.factor[j],
                )
                reach = groups.reach[i, j]
                if poisson:
                    s1, s2, s3, s4 = advance_poisson(*move)
                    bound, growth, single = reach * s4 / 120.0, reach, 0.0
                else:
                    advance(*move, z, short_x)
                    s1, s2, s3, s4 = logit_derivatives(z, short_x, short_trials)
                    s1 = 0.5 * groups.sums[i, j] - s1
                    bound, growth, single = FIFTH / 120.0 * groups.fifth[i, j], 0.0, SINGLE * groups.sizes[i, j]
                if not squeeze:
                    bound = np.inf
                pull = 0.0
                for m in range(M * D):
                    pull -= Q[c, m] * (beta[i, m] - mean[i, m])
                linear = groups.cross[i, k, j] + pull
                here[0] = np.nan
                h = Conditional(
                    linear - s1, -s2 - Q[c, c], -s3, -s4, bound, growth, single, reach, linear, Q[c, c],
                    psi, block[j], groups.centre[j], groups.factor[j], trials, poisson, here,
                )  # fmt: skip
                d = slice_step(h, width[i, c], most_steps, sweep, i, stream + c, seed, chain)
                beta[i, c] += d
                last_j = j
            if M > 1:
                x, centre, step = block[D - 1], groups.centre[D - 1], groups.factor[D - 1] * d
                for r in range(n):
                    eta[k, r] = psi[r] + (x[r] - centre) * step + other[r]
