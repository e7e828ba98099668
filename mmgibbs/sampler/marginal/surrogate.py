"""A surrogate of p(x | y) that takes microseconds, learnt from points of burn-in, and the move along it.

    log s(x) = log t(u) + r(u),   u = root^-1 (x - c),   r(u) = sum_i a_i k(u, u_i),   k = 1/(1 + |u - u_i|^2/(2 l^2))

t is the multivariate t of the other moves. r is what log p(x | y) - log t(u) is at the points u_i, less its mean, and
what a Gaussian process expects between them (Rasmussen & Williams 2006, chapter 2): a = (K + NUGGET I)^-1 times those
differences, with the length l of LENGTHS under which they are most likely. Far from all points s is near t, so that its
tails are as heavy.

The move is one of surrogate transition (Liu 2001, section 9.4.3). From u on, STEPS times,

    u' = sqrt(1 - b^2) u + b z / sqrt(tau),   tau | u ~ Gamma((DF + p)/2, rate (DF + u'u)/2),   b ~ Uniform(0, 1)

which is reversible with respect to t, is accepted with probability min(1, exp(r(u') - r(u))), so that the whole is
reversible with respect to s. Where it ends, at x', is accepted with min(1, p(x' | y) s(x) / (p(x | y) s(x'))). If s
were p, draws would be all but independent; however wrong s is, p(x | y) is what is drawn from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.draws.gamma import gamma
from mmgibbs.draws.normal import normal
from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.draws.purpose import MARGINAL, stream
from mmgibbs.pedigree.kernels import kernel
from mmgibbs.sampler.marginal.moves import DF, SURROGATE, Key, Shape, log_t

STEPS = 40
LENGTHS = (1.0, 1.4, 2.0, 2.8)  # l, in units of sqrt(p)
NUGGET = 1e-5
MAX_ELEMENTS = 40  # elements of x: with more of them the points that there are say nothing of what lies between them
MAX_POINTS = 800  # points, from which r is learnt in a fifth of a second, three times a chain
ALIKE = 1e-9  # differences of log p
RANGE = 8.0  # of log p below its largest, and a quarter for each element of x: points farther down are left out
FIRST_LEVEL, OF_TAU, OF_B = 2, 254, 255  # of draws: level 1 is that of the decision


class Surrogate(NamedTuple):
    """r in the coordinates u of a shape."""

    points: np.ndarray  # (p, n) u_i
    weights: np.ndarray  # (n,) a_i
    length: np.ndarray  # () l

    def r(self, u: np.ndarray) -> float:
        return float(_r(u, self.points, self.weights, float(self.length)))


def points_kept(p: int) -> int:
    """Return the number of points that are remembered."""
    return min(60 * (p + 1), MAX_POINTS) if p <= MAX_ELEMENTS else 1


def learn(shape: Shape, x: np.ndarray, values: np.ndarray) -> Surrogate | None:
    """Fit a surrogate to values (n,) of log p(x | y) at x (n, p).

    None with fewer than 2 p + 2 points, or where they do not differ.
    """
    p = shape.center.size
    near = values > values.max(initial=-np.inf) - RANGE - p / 4
    if near.sum() < 2 * p + 2:
        return None
    u = np.array([shape.u(point) for point in x[near]])
    differences = values[near] - np.array([log_t(row) for row in u])
    differences -= differences.mean()
    if not np.all(np.isfinite(differences)) or not np.any(np.abs(differences) > ALIKE):
        return None
    points, best, surrogate = np.ascontiguousarray(u.T), -np.inf, None
    for length in np.sqrt(p) * np.array(LENGTHS):
        weights = np.empty(len(u))
        log_likelihood = _interpolate(points, differences, length, NUGGET, weights)
        if log_likelihood > best:
            best, surrogate = log_likelihood, Surrogate(points, weights, np.array(length))
    return surrogate


def along_surrogate(
    x: np.ndarray, shape: Shape, surrogate: Surrogate, number: int, key: Key
) -> tuple[np.ndarray, float]:
    """Propose x' by a walk on the surrogate s; return it and log s(x) - log s(x')."""
    now = shape.u(x)
    u = now.copy()
    before, after = _walk(u, *surrogate[:2], float(surrogate.length), number, stream(MARGINAL, SURROGATE), *key)
    return shape.x(u), log_t(now) + before - log_t(u) - after


@kernel
def _walk(u, points, weights, length, number, stream_of_move, seed, chain):
    """STEPS steps of u (p,), in place; r where it began and where it ends."""
    p = u.size
    proposed = np.empty(p)
    before = _r(u, points, weights, length)
    r = before
    for step in range(STEPS):
        level = FIRST_LEVEL + step
        squares = 0.0
        for i in range(p):
            squares += u[i] * u[i]
        tau = gamma(0.5 * (DF + p), number, level, stream_of_move, OF_TAU, seed, chain) / (0.5 * (DF + squares))
        b, decision = uniform_pair(number, level, stream_of_move, draw_word(OF_B, 0), seed, chain)
        kept_share, noise = np.sqrt(1.0 - b * b), b / np.sqrt(tau)
        for i in range(p):
            proposed[i] = kept_share * u[i] + noise * normal(number, level, stream_of_move, i, seed, chain)
        r_proposed = _r(proposed, points, weights, length)
        if np.log(decision) < r_proposed - r:
            u[:], r = proposed, r_proposed
    return before, r


@kernel
def _r(u, points, weights, length):
    """sum_i a_i / (1 + |u - u_i|^2 / (2 l^2))"""
    n = weights.size
    terms = np.ones(n)
    scale = 0.5 / (length * length)
    for j in range(u.size):
        for i in range(n):
            difference = points[j, i] - u[j]
            terms[i] += scale * difference * difference
    for i in range(n):
        terms[i] = weights[i] / terms[i]
    total = 0.0
    for i in range(n):
        total += terms[i]
    return total


@kernel
def _interpolate(points, values, length, nugget, weights):
    """weights (n,) = (K + nugget I)^-1 values; the log likelihood of the values, their variance the likeliest one.

    K + nugget I = U'U by rows of U, so that loops vectorise; -inf where that fails."""
    p, n = points.shape
    K = np.empty((n, n))
    scale = 0.5 / (length * length)
    for i in range(n):
        for j in range(i, n):
            K[i, j] = 1.0
        for q in range(p):
            for j in range(i, n):
                K[i, j] += scale * (points[q, i] - points[q, j]) ** 2
        for j in range(i, n):
            K[i, j] = 1.0 / K[i, j]
        K[i, i] += nugget
    log_root = 0.0
    weights[:] = values
    for k in range(n):
        if not K[k, k] > 0.0:
            return -np.inf
        d = np.sqrt(K[k, k])
        log_root += np.log(d)
        for j in range(k, n):
            K[k, j] /= d
        weights[k] /= d
        for i in range(k + 1, n):
            factor = K[k, i]
            weights[i] -= factor * weights[k]
            for j in range(i, n):
                K[i, j] -= factor * K[k, j]
    squares = 0.0
    for k in range(n):
        squares += weights[k] * weights[k]
    for k in range(n - 1, -1, -1):
        s = weights[k]
        for j in range(k + 1, n):
            s -= K[k, j] * weights[j]
        weights[k] = s / K[k, k]
    return -0.5 * n * np.log(squares / n) - log_root
