"""Products with K^-1 in compiled kernels, one function per operation, chosen by the type of the lists.

    weight(K, l)                       kappa_ll
    times_row(K, l, Theta, out)        out = sum_m kappa_lm theta_m           (m = l included)
    quadratic(K, Theta, out)           out = Theta' K^-1 Theta

`K` are the lists of a relationship (models/relationships), levels in sweep order; their class brings the bodies. A
kernel that takes `K` is compiled once for each such class, so it holds no `if pedigree`.
"""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from mmgibbs.models.relationships.base import Lists
from mmgibbs.pedigree.kernels import kernel

# The bodies below are compiled by Numba; the plain names exist to be overloaded.


def weight(K: Lists, level: int) -> float:
    """Return kappa_ll."""
    raise NotImplementedError("only compiled code can call this: Numba takes its body from the overload below")


def times_row(K: Lists, level: int, theta: np.ndarray, out: np.ndarray) -> None:
    """out[c] = sum_m kappa_lm theta[m, c], m = l included; out (k,) float64 is overwritten."""
    raise NotImplementedError("only compiled code can call this: Numba takes its body from the overload below")


def quadratic(K: Lists, theta: np.ndarray, out: np.ndarray) -> None:
    """out = Theta' K^-1 Theta; (k, k) float64, overwritten."""
    raise NotImplementedError("only compiled code can call this: Numba takes its body from the overload below")


# strict=False: Numba would hold annotations against those of the names above
@overload(weight, inline="always", strict=False)
def _weight(K, level):
    return K.instance_class.weight


@overload(times_row, jit_options={"forceinline": True, "no_cfunc_wrapper": True}, strict=False)
def _times_row(K, level, theta, out):
    return K.instance_class.times_row


@overload(quadratic, jit_options={"no_cfunc_wrapper": True}, strict=False)
def _quadratic(K, theta, out):
    return getattr(K.instance_class, "quadratic", _row_by_row)


def _row_by_row(K: Lists, theta: np.ndarray, out: np.ndarray) -> None:
    q, k = theta.shape
    row = np.empty(k)
    out[:] = 0.0
    for level in range(np.uint64(q)):
        times_row(K, level, theta, row)
        for a in range(k):
            for b in range(a + 1):
                out[a, b] += row[a] * theta[level, b]
    for a in range(k):
        for b in range(a):
            out[b, a] = out[a, b]


@kernel
def quadratic_form(K, theta):
    """Theta' K^-1 Theta, (k, k) float64, of theta (q, k) in sweep order; K: relationship lists."""
    out = np.empty((theta.shape[1], theta.shape[1]))
    quadratic(K, theta, out)
    return out
