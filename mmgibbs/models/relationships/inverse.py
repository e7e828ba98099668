"""The inverse of a dense relationship matrix, in double, with figures of how well it is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from mmgibbs.genotypes.on_device import DeviceMatrices
from mmgibbs.genotypes.relationship import fill_upper

CHECKED = 64  # columns of K K^-1 that are checked against the identity; rows at once


class Inverted(NamedTuple):
    values: np.ndarray  # (n, n) K^-1, symmetric
    condition: float  # |K| |K^-1| in the 1-norm
    error: float  # largest element of |K K^-1 - I| in CHECKED columns, all of them up to so many


def invert(K: np.ndarray, on: DeviceMatrices | None = None) -> Inverted:
    """K^-1 by Cholesky's factor; LinAlgError where K (n, n) is not positive definite, or singular to working precision.

    on: a device, in place of the CPU. Memory: 8 n^2 bytes beside K.
    """
    values = _invert_by_lapack(K) if on is None else on.invert(K)
    fill_upper(values)
    condition = _norm(K) * _norm(values)
    if not condition * len(K) * np.finfo(float).eps < 1:
        raise np.linalg.LinAlgError(f"condition {condition:.1e}")
    columns = np.unique(np.linspace(0, len(K) - 1, min(CHECKED, len(K))).astype(np.int64))
    residual = K @ np.ascontiguousarray(values[:, columns])
    residual[columns, np.arange(columns.size)] -= 1.0
    return Inverted(values, condition, float(np.abs(residual).max()))


def _invert_by_lapack(K: np.ndarray) -> np.ndarray:
    """The lower triangle."""
    factor, failed = dpotrf(K.T)  # K' is K, in the order of LAPACK
    if failed:
        raise np.linalg.LinAlgError(f"pivot {failed}")
    inverse, _ = dpotri(factor, overwrite_c=1)
    return inverse.T  # its upper triangle, as the lower one in C order


def _norm(K: np.ndarray) -> float:
    return max(float(np.abs(K[first : first + CHECKED]).sum(axis=1).max()) for first in range(0, len(K), CHECKED))


def identical_pairs(K: np.ndarray, most: int, block: int = 512) -> list[tuple[int, int]]:
    """Up to `most` pairs i < j with K_ii + K_jj - 2 K_ij = 0 to rounding: levels that K cannot tell apart."""
    diagonal = K.diagonal()
    identical: list[tuple[int, int]] = []
    for first in range(0, len(K), block):
        rows = slice(first, min(len(K), first + block))
        apart = diagonal[rows, None] + diagonal - 2 * K[rows]
        i, j = np.nonzero(apart < 1e-6 * diagonal.mean())
        identical += [(int(a) + first, int(b)) for a, b in zip(i, j, strict=True) if a + first < b]
        if len(identical) >= most:
            break
    return identical[:most]
