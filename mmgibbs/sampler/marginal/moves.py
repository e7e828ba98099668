"""Metropolis-Hastings moves of a vector x: independence, autoregression, over-relaxation, walks by blocks, gradients.

The draws of a move depend on (seed, chain; sweep) alone. Proposals have the shape of the target: a center c, and a root
with root root' near its covariance matrix (target.py).

    independence     x' = c + root u',  u' ~ t, a multivariate t with DF degrees of freedom.  Ratio t(u) / t(u')
    autoregression   u' = sqrt(1 - b^2) u + b z / sqrt(tau),  tau | u ~ Gamma((DF + p)/2, rate (DF + u'u)/2): reversible
                     with respect to t, so that the ratio is t(u) / t(u') too, whatever b is
    over-relaxation  the same with a factor below 0 of u, so that u' is mostly on the other side of the center
    walk             x'_b = x_b + step 2.38 / sqrt(k_b) root_b z,  the elements of one matrix b at a time.  Ratio 1
    gradient         x' = x + step^2 / 2 S g(x) + step root z,  S = root root',  g the gradient of log p: the
                     Metropolis-adjusted Langevin move (Roberts & Tweedie 1996)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmgibbs.draws.gamma import gamma
from mmgibbs.draws.normal import normal
from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.draws.purpose import MARGINAL, stream
from mmgibbs.pedigree.kernels import kernel

DF = 5
INDEPENDENCE, AUTOREGRESSION, WALK, GRADIENT, SURROGATE = range(5)
SHAPE_POINTS = 5  # a stream of its own: points at which the shape of the target is looked at
OVER_RELAXATION = 6
# of u: 0.45 effective draws of h2 a sweep on 874 binary records; -0.5 gives 0.43, -0.7 gives 0.41, 0 gives 0.3
OVER_RELAXATION_FACTOR = -0.6
Key = tuple[int, int]  # (seed, chain)


class Shape(NamedTuple):
    """Mean and root of the covariance matrix of the target that proposals assume."""

    center: np.ndarray  # (p,)
    root: np.ndarray  # (p, p)

    def u(self, x: np.ndarray) -> np.ndarray:
        """Compute (p,) root^-1 (x - c)."""
        return np.linalg.solve(self.root, x - self.center)

    def x(self, u: np.ndarray) -> np.ndarray:
        return self.center + self.root @ u

    @property
    def sd(self) -> np.ndarray:
        """Standard deviations (p,) of the elements of x."""
        return np.sqrt((self.root**2).sum(axis=1))


def log_t(u: np.ndarray) -> float:
    """log density of a multivariate t, up to a constant."""
    return -0.5 * (DF + u.size) * float(np.log1p(u @ u / DF))


def normals(kind: int, number: int, key: Key, n: int, level: int = 0) -> np.ndarray:
    """Draw normals (n,) for a move of this kind at this sweep."""
    out = np.empty(n)
    _fill(out, number, level, stream(MARGINAL, kind), key[0], key[1])
    return out


def log_uniform(kind: int, number: int, key: Key) -> float:
    """Draw the logarithm of the uniform number of the decision."""
    return float(np.log(uniform_pair(number, 1, stream(MARGINAL, kind), draw_word(0, 0), key[0], key[1])[0]))


def independent(x: np.ndarray, shape: Shape, number: int, key: Key) -> tuple[np.ndarray, float]:
    """Propose x' independently of x; return it and the log ratio."""
    p = x.size
    z = normals(INDEPENDENCE, number, key, p + DF)
    u = z[:p] / np.sqrt(np.sum(z[p:] ** 2) / DF)
    return shape.x(u), log_t(shape.u(x)) - log_t(u)


def autoregressive(x: np.ndarray, shape: Shape, b: float, number: int, key: Key) -> tuple[np.ndarray, float]:
    """Propose x' by autoregression from x; return it and the log ratio."""
    return _autoregress(x, shape, np.sqrt(1.0 - b * b), b, AUTOREGRESSION, number, key)


def over_relaxed(x: np.ndarray, shape: Shape, number: int, key: Key) -> tuple[np.ndarray, float]:
    """Propose x' by over-relaxation from x; return it and the log ratio."""
    return _autoregress(
        x, shape, OVER_RELAXATION_FACTOR, np.sqrt(1.0 - OVER_RELAXATION_FACTOR**2), OVER_RELAXATION, number, key
    )


def _autoregress(
    x: np.ndarray, shape: Shape, a: float, b: float, kind: int, number: int, key: Key
) -> tuple[np.ndarray, float]:
    """Propose u' = a u + b z / sqrt(tau), a^2 + b^2 = 1; return x' and the log ratio."""
    now = shape.u(x)
    shape_of_tau = 0.5 * (DF + x.size)
    tau = gamma(shape_of_tau, number, 2, stream(MARGINAL, kind), 0, *key) / (0.5 * (DF + now @ now))
    u = a * now + b * normals(kind, number, key, x.size) / np.sqrt(tau)
    return shape.x(u), log_t(now) - log_t(u)


def walk(x: np.ndarray, block: np.ndarray, root: np.ndarray, step: float, number: int, key: Key) -> np.ndarray:
    """x'; root (k, k): of the elements `block` given the others."""
    out = x.copy()
    out[block] += step * 2.38 / np.sqrt(block.size) * (root @ normals(WALK, number, key, block.size))
    return out


def along_gradient(
    x: np.ndarray, gradient: np.ndarray, shape: Shape, step: float, number: int, key: Key
) -> tuple[np.ndarray, float]:
    """Propose x' along the gradient; return it and -log q(x' | x)."""
    z = normals(GRADIENT, number, key, x.size)
    drift = 0.5 * step**2 * (shape.root @ (shape.root.T @ gradient))
    return x + drift + step * (shape.root @ z), 0.5 * float(z @ z)


def log_density_back(x: np.ndarray, proposed: np.ndarray, gradient: np.ndarray, shape: Shape, step: float) -> float:
    """log q(x | x') of `along_gradient`, gradient that at x'."""
    drift = 0.5 * step**2 * (shape.root @ (shape.root.T @ gradient))
    z = np.linalg.solve(shape.root, x - proposed - drift) / step
    return -0.5 * float(z @ z)


@kernel
def _fill(out, number, level, stream_of_move, seed, chain):
    for i in range(out.size):
        out[i] = normal(number, level, stream_of_move, i, seed, chain)
