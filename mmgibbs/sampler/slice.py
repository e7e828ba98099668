"""Slice sampling (Neal 2003): of one number within an interval, and of the components of a vector in turn.

A point whose log density is not a number is outside of every slice. Where that of the point so far is not finite there
is no slice: `LostDensityError`, which a step raises anew with its name (`named_lost_density`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from mmgibbs.errors import ModelError

WIDTH = 1.0  # of a first interval, for parameters of which 1 is about one step: logarithms, maps of correlations
MAX_STEPS_OUT = 20
MAX_TRIES = 127  # an interval that has shrunk so often has no length left: the value stays

LogDensity = Callable[[np.ndarray], float]


class LostDensityError(ArithmeticError):
    """The density of the point so far is no longer a finite number."""


@contextmanager
def named_lost_density(subject: str, number: int, chain: int) -> Iterator[None]:
    """ModelError that names subject, sweep and chain, for a lost density or a matrix that has no Cholesky factor."""
    try:
        yield
    except (LostDensityError, np.linalg.LinAlgError) as lost:
        raise ModelError(
            f"{subject}: cannot be drawn at sweep {number} of chain {chain + 1}: expected finite values, got others "
            f"({lost}); give a start nearer the data, or a proper prior ({subject}.prior)"
        ) from None


def draw_each(log_density: LogDensity, x: np.ndarray, rng: np.random.Generator, which: Iterable[int]) -> np.ndarray:
    """Draw these components in turn, by stepping out and shrinking."""
    for i in which:
        height = finite_height(log_density(x)) - rng.exponential()
        low, high = _step_out(log_density, x, i, height, rng)
        x = shrink_component(log_density, x, i, height, low, high, rng.uniform)
    return x


def _step_out(
    log_density: LogDensity, x: np.ndarray, i: int, height: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Step out to an interval about x_i whose ends are outside the slice, or MAX_STEPS_OUT widths apart."""
    moved = x.copy()

    def is_outside(value: float) -> bool:
        moved[i] = value
        return not log_density(moved) > height

    low = x[i] - WIDTH * rng.random()
    high = low + WIDTH
    steps_down = rng.integers(MAX_STEPS_OUT + 1)
    for _ in range(steps_down):
        if is_outside(low):
            break
        low -= WIDTH
    for _ in range(MAX_STEPS_OUT - steps_down):
        if is_outside(high):
            break
        high += WIDTH
    return low, high


def finite_height(log_density: float) -> float:
    """Return the log density of the point so far; LostDensityError unless it is finite."""
    if not np.isfinite(log_density):
        raise LostDensityError(f"log density {log_density}")
    return log_density


def shrink(
    log_density: Callable[[float], float],
    now: float,
    height: float,
    low: float,
    high: float,
    propose: Callable[[float, float], float],
) -> float:
    """Draw a value from the part of an interval about `now` where the density is high enough; `propose` is uniform
    between two ends.

    Each proposal that is too low becomes the end of the interval on its side of `now`.
    """
    for _ in range(MAX_TRIES):
        value = propose(low, high)
        if log_density(value) >= height:
            return value
        low, high = (value, high) if value < now else (low, value)
    return now


def shrink_component(
    log_density: LogDensity,
    x: np.ndarray,
    i: int,
    height: float,
    low: float,
    high: float,
    propose: Callable[[float, float], float],
) -> np.ndarray:
    """x with x_i drawn by `shrink`."""
    moved = x.copy()

    def conditional_log_density(value: float) -> float:
        moved[i] = value
        return log_density(moved)

    moved[i] = shrink(conditional_log_density, x[i], height, low, high, propose)
    return moved
