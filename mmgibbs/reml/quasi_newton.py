"""Where average information creeps: quasi-Newton steps in factors of the matrices.

Small data sets may have their maximum where matrices lack several directions. The information there is far from the
curvature, and the iteration gains a hundredth of the way at a time. With G = B B' (units of the data) the gradient is

    d log L / d B = 2 D B

also on the boundary, and BFGS learns the curvature from it (Broyden, Fletcher, Goldfarb & Shanno 1970).
"""

from __future__ import annotations

import numpy as np

from mmgibbs.likelihood.base import Likelihood, LikelihoodPoint
from mmgibbs.reml.boundary import raise_to_floor
from mmgibbs.reml.elements import Elements

OUTSIDE = 1e10  # in place of minus the log likelihood where C is not positive definite
SMALLEST = 1e-8  # gradient at which it ends


class _Followed:
    """Minus the log likelihood of the factors, one after another in a vector; the highest point so far."""

    def __init__(self, likelihood: Likelihood, elements: Elements, start: LikelihoodPoint):
        self.likelihood, self.elements, self.best = likelihood, elements, start
        scaled = [block.scaled(block.extract(start.variances)) for block in elements.blocks]
        spectra = [np.linalg.eigh(matrix) for matrix in scaled]
        self.factors = [vectors * np.sqrt(np.maximum(values, 0.0)) for values, vectors in spectra]
        self.cuts = np.cumsum([B.size for B in self.factors])[:-1]

    def split(self, x: np.ndarray) -> list[np.ndarray]:
        return [values.reshape(B.shape) for values, B in zip(np.split(x, self.cuts), self.factors, strict=True)]

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        if not np.isfinite(x).all():
            return OUTSIDE, np.zeros(x.size)
        factors, moved = self.split(x), self.best.variances.copy_matrices()
        for block, B in zip(self.elements.blocks, factors, strict=True):
            matrix = raise_to_floor(B @ B.T) * block.scale[:, None] * block.scale
            block.assign(moved, matrix)
        point = self.likelihood.try_evaluate(moved)
        if point is None:
            return OUTSIDE, np.zeros(x.size)
        if point.log_likelihood > self.best.log_likelihood:
            self.best = point
        return -point.log_likelihood, -self._gradient(point, factors)

    def _gradient(self, point: LikelihoodPoint, factors: list[np.ndarray]) -> np.ndarray:
        slopes = [
            block.extract(point.derivatives) * block.scale[:, None] * block.scale for block in self.elements.blocks
        ]
        return np.concatenate([(2.0 * S @ B).ravel() for S, B in zip(slopes, factors, strict=True)])


def quasi_newton(likelihood: Likelihood, elements: Elements, start: LikelihoodPoint, most: int) -> LikelihoodPoint:
    """Climb to the highest point that so many iterations from `start` meet: `start` itself where none is higher."""
    from scipy.optimize import minimize

    followed = _Followed(likelihood, elements, start)
    x = np.concatenate([B.ravel() for B in followed.factors])
    minimize(followed, x, jac=True, method="BFGS", options={"maxiter": most, "gtol": SMALLEST})
    return followed.best
