"""Products with the dense block of K^-1 (equations/dense.py, equations/core.py), its rows shared over threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from mmgibbs.equations.core import CoreLevels, core_rows
from mmgibbs.equations.dense import DenseLevels, rows_times, upper_products
from mmgibbs.machine.threads import ALONE, Threads, equal_ranges

PIECE = 64  # rows whose products are added before the others': fixed, whatever the number of threads
CORE_PIECE = 1024  # of those with a core, which add as many numbers as it has animals


def shared_rows(
    values: np.ndarray, first: int, last: int, columns: np.ndarray, out: np.ndarray, threads: int
) -> list[Callable[[], None]]:
    """Calls that together are rows_times(values, first, last, columns, out)."""
    ranges = equal_ranges(np.ones(last - first), threads, first)
    return [partial(rows_times, values, a, b, columns, out[a - first : b - first]) for a, b in ranges]


def dense_times(dense: DenseLevels | CoreLevels, theta: np.ndarray, threads: Threads = ALONE) -> np.ndarray:
    """S Theta, (m, ...) float64, of theta (q, ...) in sweep order."""
    if isinstance(dense, CoreLevels):
        return _core_times(dense, theta, threads)
    out = np.empty((len(dense.values), *theta.shape[1:]))
    flat = out.reshape(len(out), -1)
    threads(shared_rows(dense.values, 0, len(out), dense.columns(theta), flat, threads.count))
    return out


def _core_times(dense: CoreLevels, theta: np.ndarray, threads: Threads) -> np.ndarray:
    """K^-1 theta (m, k) of the products of a core: the others given the core, then the core itself."""
    own = np.asarray(theta[dense.positions], np.float64).reshape(dense.positions.size, -1)
    of_core, of_others = (np.ascontiguousarray(own[rows].T) for rows in (dense.core, dense.others))
    c, n, k = dense.core.size, dense.others.size, own.shape[1]
    bounds = [*range(0, n, CORE_PIECE), n]
    sums, moved, straight = np.zeros((len(bounds) - 1, k, c)), np.empty((k, n)), np.empty((c, k))
    threads(
        partial(core_rows, dense.products, dense.left, of_core, of_others, a, b, moved, part)
        for a, b, part in zip(bounds[:-1], bounds[1:], sums, strict=True)
    )
    threads(shared_rows(dense.of_core, 0, c, of_core, straight, threads.count))
    out = np.empty(own.shape)
    out[dense.core], out[dense.others] = straight - sums.sum(axis=0).T, moved.T
    out *= dense.weight
    if dense.pedigree is not None and dense.less:
        out -= dense.less * dense.pedigree.times(own)
    return out.reshape(len(out), *theta.shape[1:])


def dense_quadratic_form(dense: DenseLevels | CoreLevels, theta: np.ndarray, threads: Threads = ALONE) -> np.ndarray:
    """Theta' S Theta (k, k), float64, of theta (q, k) in sweep order."""
    if isinstance(dense, CoreLevels):
        own = theta[dense.positions].astype(np.float64)
        form = np.einsum("ia,ib->ab", own, dense_times(dense, theta, threads))  # no BLAS, whose threads change bits
        return (form + form.T) / 2
    columns, m = dense.columns(theta), len(dense.values)
    bounds = [*range(0, m, PIECE), m]
    sums = np.zeros((len(bounds) - 1, len(columns), len(columns)))
    threads(
        partial(upper_products, dense.values, a, b, columns, out)
        for a, b, out in zip(bounds[:-1], bounds[1:], sums, strict=True)
    )
    half = sums.sum(axis=0)
    return half + half.T
