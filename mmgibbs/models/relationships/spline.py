"""P-splines: curves over a covariate, and surfaces over rows and columns, from B-splines at equally spaced knots.

A curve is f = B a with penalised coefficients (Eilers & Marx 1996), a ~ N(0, sigma2 P^+), P = D'D with D differences of
some order. What P leaves free, polynomials of a lower degree, is in the fixed effects. At the points of the data

    K = B P^+ B'

and of a surface, with P_r = U_r S_r U_r' of rows and P_c of columns (Lee, Durban & Eilers 2013; Rodriguez-Alvarez et
al. 2018), of the part that is smooth in both directions

    K = Z [S_r (x) I + I (x) S_c]^-1 Z',      Z = B_r U_r (x) B_c U_c      (eigenvalues of 0 left out)

K is scaled as that of a random walk: the variance of the term is about that of the curve among the points. It has the
rank of the basis, so a millionth is added to its diagonal (NUGGET): K has an inverse, and what this adds to the curve
is too small to be seen. Single levels hardly move then, so effects must be drawn or solved all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from mmgibbs.models.relationships.base import JointLevels
from mmgibbs.models.relationships.user_inverse import SparseInverse

NUGGET = 1e-6  # of the mean variance
MIN_EIGENVALUE = 1e-10  # of a penalty, as a share of the largest: below it is 0


@dataclass(frozen=True)
class Spline(SparseInverse):
    """K of points in classes, each with a curve or surface of its own."""

    sizes: np.ndarray = field(kw_only=True)  # (classes,) points of each
    variances: np.ndarray = field(kw_only=True)  # (q,) diagonal of K
    description: str = field(kw_only=True)  # of what the curve is over

    words = "spline"
    symbol = "C"
    related = False  # levels are no relatives
    known_diagonal = True
    can_draw = True
    joint_levels = JointLevels("splines", "their points have to be drawn all at once", "relationship: random_walk")
    stiff_part = "curves"

    @classmethod
    def build(cls, blocks: Sequence[tuple[np.ndarray, np.ndarray]], description: str) -> Self:
        """Build K of (covariance of the points, polynomial at the points) of each class."""
        scale = mean_variance(blocks)
        sizes = np.array([len(K) for K, _ in blocks])
        scaled = [K / scale + NUGGET * np.eye(len(K)) for K, _ in blocks]
        indices, starts = [], np.concatenate([[0], np.cumsum(sizes)])
        for first, n in zip(starts[:-1], sizes, strict=True):
            indices.append(np.tile(np.arange(first, first + n), n))
        indptr = np.concatenate([[0], np.cumsum(np.repeat(sizes, sizes))]).astype(np.int64)
        values = np.concatenate([_invert(K).ravel() for K in scaled])
        variances = np.concatenate([np.diag(K) for K in scaled])
        columns = np.concatenate(indices).astype(np.int32)
        return cls(indptr, columns, values, "", sizes=sizes, variances=variances, description=description)

    @property
    def sentence(self) -> str:
        return self.description

    @property
    def facts(self) -> dict[str, Any]:
        return {"nugget": NUGGET}

    @property
    def diagonal(self) -> np.ndarray:
        return self.variances

    @cached_property
    def _roots(self) -> list[np.ndarray]:
        """For each class, L with L L' = K^-1."""
        parts = np.split(self.values, np.cumsum(self.sizes**2)[:-1])
        return [np.linalg.cholesky(part.reshape(n, n)) for part, n in zip(parts, self.sizes, strict=True)]

    def draw(self, z: np.ndarray) -> np.ndarray:
        from scipy.linalg import solve_triangular

        parts = np.split(z, np.cumsum(self.sizes)[:-1])
        return np.concatenate(
            [solve_triangular(L, part, lower=True, trans="T") for L, part in zip(self._roots, parts, strict=True)]
        )


def _invert(K: np.ndarray) -> np.ndarray:
    from scipy.linalg import cho_factor, cho_solve

    inverse = cho_solve(cho_factor(K, lower=True), np.eye(len(K)))
    return (inverse + inverse.T) / 2


def mean_variance(blocks: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Mean over all points of the variance about the least-squares polynomial of their class; 0 where all vanish."""
    total = 0.0
    for K, X in blocks:
        Q, R = np.linalg.qr(X)
        Q = Q[:, np.abs(np.diag(R)) > MIN_EIGENVALUE * np.abs(R).max(initial=1.0)]
        total += float(np.trace(K) - np.sum(Q * (K @ Q)))
    return max(total, 0.0) / sum(len(K) for K, _ in blocks)


def basis(x: np.ndarray, low: float, high: float, segments: int, degree: int) -> np.ndarray:
    """(n, segments + degree) B-splines at knots that divide low to high in equal segments, and go on beyond."""
    from scipy.interpolate import BSpline

    width = (high - low) / segments
    knots = low + width * np.arange(-degree, segments + degree + 1)
    # its own end belongs to the last segment
    inside = np.clip(x, knots[degree], np.nextafter(knots[-degree - 1], -np.inf))
    return BSpline.design_matrix(inside, knots, degree).toarray()


def penalty(n: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """(eigenvalues above 0, their vectors) of D'D, D the differences of n coefficients."""
    D = np.diff(np.eye(n), n=order, axis=0)
    values, vectors = np.linalg.eigh(D.T @ D)
    known = values > MIN_EIGENVALUE * values[-1]
    return values[known], vectors[:, known]


def curve_covariance(
    x: np.ndarray, low: float, high: float, segments: int, degree: int, order: int
) -> tuple[np.ndarray, np.ndarray]:
    """(K, polynomial) of a curve at points x (n,)."""
    values, vectors = penalty(segments + degree, order)
    Z = basis(x, low, high, segments, degree) @ (vectors / np.sqrt(values))
    middle = (low + high) / 2
    return Z @ Z.T, np.vander((x - middle) / (high - low), order)


def line_covariance(n: int, segments: int, degree: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """(K, polynomial) of a curve over n rows or columns, at most as many segments as there are distances."""
    Z, values, polynomial = _direction(n, min(segments, n - 1), degree, order)
    Z = Z / np.sqrt(values)
    return Z @ Z.T, polynomial


def surface_covariance(
    rows: int, columns: int, segments: int, degree: int, order: int
) -> tuple[np.ndarray, np.ndarray]:
    """(K, polynomial) of the part of a surface that is smooth in both directions, at the plots row by row.

    There are at most as many segments as distances of neighbouring rows or columns.
    """
    (Zr, sr, Xr), (Zc, sc, Xc) = (_direction(n, min(segments, n - 1), degree, order) for n in (rows, columns))
    Z = np.kron(Zr, Zc) / np.sqrt(np.add.outer(sr, sc).ravel())
    return Z @ Z.T, np.kron(Xr, Xc)


def _direction(n: int, segments: int, degree: int, order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(B U, eigenvalues, polynomial) of n rows or columns; without vectors where there are too few for a curve."""
    if n <= order:
        return np.zeros((n, 0)), np.zeros(0), np.eye(n)
    values, vectors = penalty(segments + degree, order)
    x = np.arange(n, dtype=float)
    polynomial = np.vander((x - x.mean()) / (n - 1), order)
    return basis(x, 0.0, n - 1.0, segments, degree) @ vectors, values, polynomial
