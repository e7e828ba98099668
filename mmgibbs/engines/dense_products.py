"""Products with the dense block of K^-1 (equations/dense.py, equations/core.py), its rows shared over threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from mmgibbs.equations.core import CoreLevels, core_rows
from mmgibbs.equations.dense import STRETCH, DenseLevels, add_of_later_tiles, rows_times
from mmgibbs.machine.threads import ALONE, Threads, equal_ranges

TILE = 32  # levels that a sweep draws one after another, by one thread, from sums that all threads have made
CORE_PIECE = 1024  # of those with a core, which add as many numbers as it has animals


def shared_rows(values: np.ndarray, columns: np.ndarray, out: np.ndarray, threads: int) -> list[Callable[[], None]]:
    """Calls that together are rows_times(values, 0, rows, columns, out)."""
    ranges = equal_ranges(np.ones(len(values)), threads)
    return [partial(rows_times, values, a, b, columns, out[a:b]) for a, b in ranges]


def tiles(m: int) -> list[tuple[int, int]]:
    """List (first, last) of the tiles of m levels."""
    return [(first, min(m, first + TILE)) for first in range(0, m, TILE)]


class LaterTiles:
    """Cache of products of each tile of a dense block with the levels after it, kept between sweeps:

        later_l = sum_j S_lj theta_j,     j in the tiles after that of l

    S is symmetric: the rows of a tile hold what its own levels need of all before them and, transposed, what those
    before need of the tile. A sweep that adds the second to `sums` as it goes needs one half of S, and what it leaves
    gives a quadratic form without the other.
    Where Theta has been changed since, the sums are made anew, in the same order: to the same bits. Where all levels
    have been multiplied by a matrix, so are the sums, and then they belong to the state of an engine.
    """

    def __init__(self, dense: DenseLevels, threads: Threads = ALONE):
        self.dense, self.threads = dense, threads
        self.tile, self.stretch = TILE, STRETCH
        self._of: np.ndarray | None = None  # (k, m) Theta that `sums` (k, m) are of
        self.sums = np.empty((0, 0))

    def name(self, term: int) -> str:
        """Name the sums of a term in the state of an engine; the size of the tiles is part of the name."""
        return f"later.{term}.tiles.{self.tile}"

    def known(self, columns: np.ndarray) -> bool:
        """Check whether the sums are those of Theta, `columns` (k, m)."""
        return self._of is not None and np.array_equal(self._of, columns)

    def at(self, columns: np.ndarray) -> np.ndarray:
        """The sums (k, m) for Theta, `columns` (k, m)."""
        if not self.known(columns):
            self.sums = np.zeros(columns.shape)
            of = self.dense.values, columns, self.sums
            self.threads.together(add_of_later_tiles, self.tile, self.stretch, *of)
            self._of = columns.copy()
        return self.sums

    def take(self, sums: np.ndarray, columns: np.ndarray) -> None:
        """Sums (k, m) that are known to be those of Theta, `columns`."""
        self.sums, self._of = sums, columns

    def begin(self, columns: np.ndarray) -> np.ndarray:
        """The sums (k, m) for Theta, `columns` (k, m), for a sweep that will change them."""
        sums, self._of = self.at(columns), None
        return sums


def dense_times(dense: DenseLevels | CoreLevels, theta: np.ndarray, threads: Threads = ALONE) -> np.ndarray:
    """S Theta, (m, ...) float64, of theta (q, ...) in sweep order."""
    if isinstance(dense, CoreLevels):
        return _core_times(dense, theta, threads)
    out = np.empty((len(dense.values), *theta.shape[1:]))
    flat = out.reshape(len(out), -1)
    threads(shared_rows(dense.values, dense.columns(theta), flat, threads.count))
    return out


def _core_times(dense: CoreLevels, theta: np.ndarray, threads: Threads) -> np.ndarray:
    """K^-1 theta (m, k) of the products of a core: the other animals given the core, then the core itself."""
    x = np.asarray(theta[dense.positions], np.float64).reshape(dense.positions.size, -1)
    of_core, of_non_core = (np.ascontiguousarray(x[rows].T) for rows in (dense.core, dense.non_core))
    c, n, k = dense.core.size, dense.non_core.size, x.shape[1]
    bounds = [*range(0, n, CORE_PIECE), n]
    sums, moved, straight = np.zeros((len(bounds) - 1, k, c)), np.empty((k, n)), np.empty((c, k))
    threads(
        partial(core_rows, dense.products, dense.conditional_variance, of_core, of_non_core, a, b, moved, partial_sums)
        for a, b, partial_sums in zip(bounds[:-1], bounds[1:], sums, strict=True)
    )
    threads(shared_rows(dense.of_core, of_core, straight, threads.count))
    out = np.empty(x.shape)
    out[dense.core], out[dense.non_core] = straight - sums.sum(axis=0).T, moved.T
    out *= dense.weight
    if dense.pedigree is not None and dense.less:
        out -= dense.less * dense.pedigree.times(x)
    return out.reshape(len(out), *theta.shape[1:])


def dense_quadratic_form(
    dense: DenseLevels | CoreLevels, theta: np.ndarray, threads: Threads = ALONE, later: LaterTiles | None = None
) -> np.ndarray:
    """Theta' S Theta (k, k), float64, of theta (q, k) in sweep order; later: of this block, from a sweep."""
    if isinstance(dense, CoreLevels):
        rows = theta[dense.positions].astype(np.float64)
        form = np.einsum("ia,ib->ab", rows, dense_times(dense, theta, threads))  # no BLAS, whose threads change bits
        return (form + form.T) / 2
    columns = dense.columns(theta)
    sums = (later or LaterTiles(dense, threads)).at(columns)
    form = np.einsum("ai,bi->ab", columns, sums)
    form += form.T
    for first, last in tiles(len(dense.values)):
        rows = columns[:, first:last]
        products = np.einsum("ij,bj->bi", dense.values[first:last, first:last], rows)
        form += np.einsum("ai,bi->ab", rows, products)
    return (form + form.T) / 2
