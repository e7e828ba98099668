"""Slice sampling (Neal 2003) of one component of a vector after the other, given a log density of the vector."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

WIDTH = 1.0  # of a first interval, for parameters of which 1 is about one step: logarithms, maps of correlations
MAX_STEPS_OUT = 20

LogDensity = Callable[[np.ndarray], float]


def draw_each(log_density: LogDensity, x: np.ndarray, rng: np.random.Generator, which: Iterable[int]) -> np.ndarray:
    """Draw these components in turn, by stepping out and shrinking."""
    for i in which:
        height = log_density(x) - rng.exponential()
        low, high = _step_out(log_density, x, i, height, rng)
        x = shrink(log_density, x, i, height, low, high, rng.uniform)
    return x


def _step_out(
    log_density: LogDensity, x: np.ndarray, i: int, height: float, rng: np.random.Generator
) -> tuple[float, float]:
    """An interval about x_i whose ends are outside the slice, or MAX_STEPS_OUT widths apart."""
    moved = x.copy()

    def is_outside(value: float) -> bool:
        moved[i] = value
        return log_density(moved) <= height

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


def shrink(
    log_density: LogDensity,
    x: np.ndarray,
    i: int,
    height: float,
    low: float,
    high: float,
    propose: Callable[[float, float], float],
) -> np.ndarray:
    """Draw x_i from the part of an interval where the density is high enough; `propose` is uniform between two ends.

    Each proposal that is too low becomes the end of the interval on its side of x_i.
    """
    moved = x.copy()
    while True:
        moved[i] = propose(low, high)
        if log_density(moved) >= height:
            return moved
        low, high = (moved[i], high) if moved[i] < x[i] else (low, moved[i])
