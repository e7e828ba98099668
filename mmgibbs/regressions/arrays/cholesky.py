"""Cholesky factors over threads, the same bits whatever their number.

LAPACK's and BLAS's routines for tiles of A = U'U (U = L' in C order):

    A_ij -= U_ki' U_kj, k = 0 ... i - 1;    U_ii = chol A_ii,    U_ij = U_ii'^-1 A_ij,    i < j

The steps of a tile follow one another, each by one thread, as soon as those are done that it needs; columns to the left
go first, so that the next diagonal tile, for which all others wait, is early. The routines are called by address, since
SciPy's wrappers hold Python's lock; BLAS's own threads, which cut sums where their number says, are kept out.
"""

from __future__ import annotations

import ctypes
import heapq
from collections.abc import Callable, Iterable
from ctypes import byref, c_char_p, c_double, c_int, c_void_p
from functools import cache
from threading import Condition
from typing import NamedTuple

import numpy as np
from numba.extending import get_cython_function_address

PANEL = 192
ONE, MINUS_ONE = c_double(1.0), c_double(-1.0)


@cache
def routine(name: str) -> Callable[..., None]:
    """A routine of the LAPACK or BLAS that SciPy brings; characters as bytes, all else by address."""
    import scipy.linalg.cython_blas
    import scipy.linalg.cython_lapack  # noqa: F401

    library, letters, rest = {
        "dpotrf": ("lapack", 1, 4),
        "dtrsm": ("blas", 4, 7),
        "dgemm": ("blas", 2, 11),
        "dsyrk": ("blas", 2, 8),
    }[name]
    address = get_cython_function_address(f"scipy.linalg.cython_{library}", name)
    return ctypes.CFUNCTYPE(None, *[c_char_p] * letters, *[c_void_p] * rest)(address)


def cholesky_in_place(A: np.ndarray, at_once: Callable[[Iterable[Callable[[], None]]], None], threads: int = 1) -> None:
    """A (m, m) float64 symmetric in C order becomes its lower factor, 0 above the diagonal; BLAS must be set to one
    thread.

    at_once(calls) runs calls over `threads` threads. numpy.linalg.LinAlgError where A is not positive definite.
    """
    factor = _Factor(A)
    if threads == 1 or factor.order.steps[-1].column == 0:
        for step in factor.order.steps:
            factor.take(step)
        return
    at_once([factor.share] * threads)


class _Step(NamedTuple):
    """Tile (row, column), row <= column: less the product of tiles k, or, for k = row, made the factor's."""

    column: int
    k: int
    row: int


class _Order(NamedTuple):
    steps: tuple[_Step, ...]  # each after those it needs
    needs: tuple[int, ...]  # how many these are
    after: tuple[tuple[int, ...], ...]  # the steps that need each


@cache
def _order(tiles: int) -> _Order:
    """List the steps for a matrix of so many tiles in a row, in their order."""
    steps = sorted(_Step(j, k, i) for j in range(tiles) for i in range(j + 1) for k in range(i + 1))
    number = {step: n for n, step in enumerate(steps)}
    after: list[list[int]] = [[] for _ in steps]
    for n, (j, k, i) in enumerate(steps):
        needed = {_Step(i, k, k), _Step(j, k, k)} | ({_Step(j, k - 1, i)} if k else set())
        for dependency in needed - {steps[n]}:
            after[number[dependency]].append(n)
    needs = np.bincount([n for successors in after for n in successors], minlength=len(steps))
    return _Order(tuple(steps), tuple(needs.tolist()), tuple(map(tuple, after)))


class _Factor:
    """A factorisation in progress: the steps that are left, and those that may be taken."""

    def __init__(self, A: np.ndarray):
        self.A, self.m = A, len(A)
        self.widths = [c_int(min(PANEL, self.m - first)) for first in range(0, self.m, PANEL)]
        self.lead, self.order = c_int(self.m), _order(len(self.widths))
        self.needs, self.left = list(self.order.needs), len(self.order.steps)
        self.free = [n for n, needs in enumerate(self.needs) if needs == 0]  # a heap: the leftmost first
        self.changed = Condition()
        self.failed = False

    def share(self) -> None:
        """Take steps until none is left, beside other threads that do so."""
        while (n := self._next()) is not None:
            failed = True
            try:
                self.take(self.order.steps[n])
                failed = False
            finally:  # or the others wait for ever
                self._done(n, failed)

    def _next(self) -> int | None:
        with self.changed:
            while not self.free and self.left and not self.failed:
                self.changed.wait()
            return heapq.heappop(self.free) if self.free and not self.failed else None

    def _done(self, n: int, failed: bool) -> None:
        with self.changed:
            self.left -= 1
            self.failed = self.failed or failed
            for successor in self.order.after[n]:
                self.needs[successor] -= 1
                if self.needs[successor] == 0:
                    heapq.heappush(self.free, successor)
            self.changed.notify_all()

    def _at(self, row: int, column: int) -> c_void_p:
        """Return the address of a tile of U, in Fortran order."""
        return c_void_p(self.A.ctypes.data + 8 * PANEL * (row + column * self.m))

    def take(self, step: _Step) -> None:
        j, k, i = step
        lead, of_i, of_j, tile = byref(self.lead), byref(self.widths[i]), byref(self.widths[j]), self._at(i, j)
        if i == j == k:
            self._factor_tile(i)
        elif k == i:
            routine("dtrsm")(b"L", b"U", b"T", b"N", of_i, of_j, byref(ONE), self._at(i, i), lead, tile, lead)
        elif i == j:
            of_syrk = self._at(k, j), lead, byref(ONE), tile, lead
            routine("dsyrk")(b"U", b"T", of_j, byref(self.widths[k]), byref(MINUS_ONE), *of_syrk)
        else:
            of_gemm = self._at(k, i), lead, self._at(k, j), lead, byref(ONE), tile, lead
            routine("dgemm")(b"T", b"N", of_i, of_j, byref(self.widths[k]), byref(MINUS_ONE), *of_gemm)

    def _factor_tile(self, i: int) -> None:
        failed, width, first = c_int(), self.widths[i].value, i * PANEL
        routine("dpotrf")(b"U", byref(self.widths[i]), self._at(i, i), byref(self.lead), byref(failed))
        if failed.value:
            raise np.linalg.LinAlgError(
                f"the matrix is not positive definite: column {first + failed.value} of {self.m}"
            )
        rows = self.A[first : first + width]
        rows[:, first : first + width] *= _lower(width)
        rows[:, first + width :] = 0.0


@cache
def _lower(m: int) -> np.ndarray:
    return np.tri(m)
