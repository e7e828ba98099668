"""Products with the dense block of K^-1 (equations/dense.py), its rows shared over threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from mmgibbs.equations.dense import DenseLevels, rows_times, upper_products
from mmgibbs.machine.threads import ALONE, Threads, equal_ranges

PIECE = 64  # rows whose products are added before the others': fixed, whatever the number of threads


def shared_rows(
    values: np.ndarray, first: int, last: int, columns: np.ndarray, out: np.ndarray, threads: int
) -> list[Callable[[], None]]:
    """Calls that together are rows_times(values, first, last, columns, out)."""
    ranges = equal_ranges(np.ones(last - first), threads, first)
    return [partial(rows_times, values, a, b, columns, out[a - first : b - first]) for a, b in ranges]


def dense_times(dense: DenseLevels, theta: np.ndarray, threads: Threads = ALONE) -> np.ndarray:
    """S Theta, (m, ...) float64, of theta (q, ...) in sweep order."""
    out = np.empty((len(dense.values), *theta.shape[1:]))
    flat = out.reshape(len(out), -1)
    threads(shared_rows(dense.values, 0, len(out), dense.columns(theta), flat, threads.count))
    return out


def dense_quadratic_form(dense: DenseLevels, theta: np.ndarray, threads: Threads = ALONE) -> np.ndarray:
    """Theta' S Theta (k, k), float64, of theta (q, k) in sweep order."""
    columns, m = dense.columns(theta), len(dense.values)
    bounds = [*range(0, m, PIECE), m]
    sums = np.zeros((len(bounds) - 1, len(columns), len(columns)))
    threads(
        partial(upper_products, dense.values, a, b, columns, out)
        for a, b, out in zip(bounds[:-1], bounds[1:], sums, strict=True)
    )
    half = sums.sum(axis=0)
    return half + half.T
