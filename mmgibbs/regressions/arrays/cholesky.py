"""Cholesky factors over threads, the same bits whatever their number.

LAPACK's and BLAS's routines for a panel and the blocks to the right of it, A = U'U (U = L' in C order):

    U_kk = chol A_kk,    U_kj = U_kk'^-1 A_kj,    A_ij -= U_ki' U_kj        k < i <= j

each block by one thread. They are called by address, since SciPy's wrappers hold Python's lock; BLAS's own threads,
which cut sums where their number says, are kept out.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from ctypes import byref, c_char_p, c_double, c_int, c_void_p
from functools import cache, partial

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


def cholesky_in_place(A: np.ndarray, at_once: Callable[[Iterable[Callable[[], None]]], None]) -> None:
    """A (m, m) float64 symmetric in C order becomes its lower factor, 0 above the diagonal; BLAS must be set to one
    thread.

    at_once(calls) runs calls over threads. numpy.linalg.LinAlgError where A is not positive definite.
    """
    m = len(A)
    potrf, trsm, gemm, syrk = map(routine, ("dpotrf", "dtrsm", "dgemm", "dsyrk"))
    blocks = [(c_int(min(PANEL, m - first)), first) for first in range(0, m, PANEL)]
    lead, at = c_int(m), lambda row, column: c_void_p(A.ctypes.data + 8 * (row + column * m))  # of U, in Fortran order

    for number, (width, k) in enumerate(blocks):
        right = blocks[number + 1 :]
        failed = c_int()
        potrf(b"U", byref(width), at(k, k), byref(lead), byref(failed))
        if failed.value:
            raise np.linalg.LinAlgError(f"the matrix is not positive definite: column {k + failed.value} of {m}")

        def divide(n: c_int, j: int, width: c_int = width, k: int = k) -> None:
            trsm(
                b"L", b"U", b"T", b"N", byref(width), byref(n), byref(ONE), at(k, k), byref(lead), at(k, j), byref(lead)
            )

        def subtract(n: c_int, j: int, width: c_int = width, k: int = k) -> None:
            above = c_int(j - k - width.value)
            if above.value:
                first = k + width.value
                gemm(
                    b"T", b"N", byref(above), byref(n), byref(width), byref(MINUS_ONE), at(k, first), byref(lead),
                    at(k, j), byref(lead), byref(ONE), at(first, j), byref(lead),
                )  # fmt: skip
            syrk(
                b"U",
                b"T",
                byref(n),
                byref(width),
                byref(MINUS_ONE),
                at(k, j),
                byref(lead),
                byref(ONE),
                at(j, j),
                byref(lead),
            )

        at_once([partial(divide, *block) for block in right])
        at_once([partial(subtract, *block) for block in reversed(right)])  # the largest first
    for width, k in blocks:
        A[k : k + width.value, k : k + width.value] *= _lower(width.value)
        A[k : k + width.value, k + width.value :] = 0.0


@cache
def _lower(m: int) -> np.ndarray:
    return np.tri(m)
