"""What slopes at successive points say of the curvature of a likelihood, beside the average information (BFGS).

Average and observed information differ where the likelihood is far from a quadratic, so that steps by the average
information alone may be too short, or too long, again and again. With s the last step and f by how much the gradient
fell along it,

    H <- (I - s f'/f's) H (I - f s'/f's) + s s'/f's
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MIN_CURVATURE = 1e-12  # f's over s's, below which the slopes bend upwards


@dataclass(frozen=True)
class Secant:
    """The inverse of the information of x, corrected; 0 for parameters that do not move."""

    x: np.ndarray  # (p,)
    gradient: np.ndarray  # (p,)
    inverse: np.ndarray  # (p, p)
    is_free: np.ndarray  # (p,) not at a bound, and the data say something of it
    is_learnt: bool = False


def update_secant(
    before: Secant | None, x: np.ndarray, gradient: np.ndarray, inverse: np.ndarray, is_free: np.ndarray
) -> Secant:
    """The secant at the next point; by `inverse`, that of the average information, alone at the first one, and where
    other parameters move now, or the slopes bend upwards.
    """
    begun = Secant(x, gradient, inverse, is_free)
    if before is None or not np.array_equal(is_free, before.is_free):
        return begun
    step, fall = (x - before.x) * is_free, (before.gradient - gradient) * is_free
    curvature = float(step @ fall)
    if curvature <= MIN_CURVATURE * float(step @ step):
        return begun
    projection = np.eye(x.size) - np.outer(step, fall) / curvature
    corrected = projection @ before.inverse @ projection.T + np.outer(step, step) / curvature
    return Secant(x, gradient, corrected, is_free, True)
