"""log p(x | y) of the variances with the location effects integrated out, and the normal density nearest to it.

That starts as the one at the mode with the curvature there, which is narrow where p is skewed, and continues as the
variational one (Opper & Archambeau 2009): N(m, S) with

    E[g(x)] = 0,      S^-1 = -E[Hessian(x)] = -E[S^-1 (x - m) g(x)'],      g the gradient of log p, x ~ N(m, S)

by steps of decreasing size, each with the mean over some pairs of points on opposite sides of m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmgibbs.engines.base import Integrated
from mmgibbs.sampler.marginal.log_cholesky import LogCholesky
from mmgibbs.sampler.marginal.moves import SHAPE_POINTS, Shape, normals

STEP = 1e-3  # of the differences of gradients
NEAR = (
    1e-2  # slope in x up to which a mode is near enough: a posterior standard deviation of x is a few hundredths and up
)
FLATTEST = 0.1  # curvature: a standard deviation of x is 3 at most, where a variance may be 0
ROUNDS, PAIRS = 12, 6  # of steps, and of points in each, at least; p pairs where there are more elements
CHANGE = (0.25, 4.0)  # of a curvature in one step
UNLIKELY = 1e10  # in place of infinity, where a line search has gone too far


@dataclass(frozen=True)
class Target:
    """log p(x | y) up to a constant."""

    space: LogCholesky
    likelihood: Integrated

    def evaluate(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return log p(x | y) and psi; -inf where matrices cannot be inverted in float64."""
        psi, prior = self.space.psi(x)
        if not (np.isfinite(prior) and np.all(np.isfinite(psi))):
            return -np.inf, psi
        return self.likelihood.evaluate(psi) + prior, psi

    def gradient(self, x: np.ndarray, kept: bool = False) -> np.ndarray:
        """Compute the gradient (p,) at x, the last point that was asked for; or the one that was kept."""
        G, R = self.likelihood.gradient(kept)
        return self.space.gradient(x, np.concatenate([*(g.ravel() for g in G), R.ravel()]))

    def mode(self, x: np.ndarray) -> np.ndarray:
        """Find the mode (p,) from x by a quasi-Newton method (BFGS, Nocedal & Wright 2006), or a point near it."""
        from scipy.optimize import minimize

        def downhill(x: np.ndarray) -> tuple[float, np.ndarray]:
            """Minus log density and gradient, for a minimiser; a large number where there is no likelihood."""
            value = self.evaluate(x)[0]
            return (-value, -self.gradient(x)) if np.isfinite(value) else (UNLIKELY, np.zeros(x.size))

        minimum = minimize(downhill, x, jac=True, method="BFGS", options={"gtol": NEAR, "maxiter": 40 + 10 * x.size})
        return minimum.x if self.evaluate(minimum.x)[0] >= self.evaluate(x)[0] else x

    def covariance(self, x: np.ndarray) -> np.ndarray:
        """Invert minus the Hessian (p, p), by differences of gradients, with eigenvalues of FLATTEST at least."""
        H = np.empty((x.size, x.size))
        for i in range(x.size):
            step = np.zeros(x.size)
            step[i] = STEP
            sides = []
            for point in (x + step, x - step):
                sides.append(self.gradient(point) if np.isfinite(self.evaluate(point)[0]) else np.zeros(x.size))
            H[i] = (sides[1] - sides[0]) / (2 * STEP)
        values, vectors = np.linalg.eigh((H + H.T) / 2)
        return (vectors / np.maximum(values, FLATTEST)) @ vectors.T

    def mode_density(self, x: np.ndarray) -> Shape:
        """Find the mode nearest to x and return the normal density with its curvature."""
        center = self.mode(x)
        values, vectors = np.linalg.eigh(self.covariance(center))
        return Shape(center, vectors * np.sqrt(values))

    def nearest(self, shape: Shape) -> Shape:
        """Return the normal density that is nearest to p, starting from another."""
        for number in range(ROUNDS):
            shape = self._nearer(shape, number)
        return shape

    def _nearer(self, shape: Shape, number: int) -> Shape:
        """Move the shape 2 / (2 + number) of the way to the nearest density, in units of the shape."""
        p, way = shape.center.size, 2.0 / (2.0 + number)
        slope, curvature, points = np.zeros(p), np.zeros((p, p)), 0
        for pair in range(max(PAIRS, p)):
            z = normals(SHAPE_POINTS, number, (0, 0), p, pair)
            for u in (z, -z):
                x = shape.x(u)
                if np.isfinite(self.evaluate(x)[0]):
                    g = shape.root.T @ self.gradient(x)
                    slope, curvature, points = slope + g, curvature - np.outer(u, g), points + 1
        if points == 0:
            return shape
        values, vectors = np.linalg.eigh((curvature + curvature.T) / (2 * points))
        values = 1.0 - way + way * np.clip(values, *CHANGE)
        moved = vectors @ np.clip(vectors.T @ slope / points / values, -1.0, 1.0)
        return Shape(shape.x(way * moved), shape.root @ (vectors / np.sqrt(values)))
