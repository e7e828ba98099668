"""Columns of covariates: powers, Legendre polynomials, and their orthonormal form.

A basis X (n x m) on the user's scale becomes Z = (X - mean) T with T upper triangular, so that

    X beta = Z gamma + mean' beta,      beta = T gamma,

and the first j columns of Z (with the constant) span what the first j of X span: a column that is dependent in the one
is so in the other. Z is orthonormal over the records, sum_r w_r z_r z_r' = (sum_r w_r) I: raw x and x^2 beside an
intercept would mix hundreds of times slower.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre as _legendre

# A column is dependent where at most this share of its sum of squares is left by the columns before it.
DEPENDENT = 1e-10


def powers(x: np.ndarray, degree: int, shift: float = 0.0, scale: float = 1.0) -> np.ndarray:
    """(n, degree) float64: u, u^2, ..., u^degree with u = (x - shift) / scale."""
    return ((x - shift) / scale)[:, None] ** np.arange(1, degree + 1)


def powers_to_raw(degree: int, shift: float, scale: float) -> np.ndarray:
    """(degree, degree) upper triangular B: coefficients b of u^j become those of x^i, beta = B b.

    u^j = sum_i (j over i) (-shift)^(j-i) x^i / scale^j; the constant, i = 0, is left aside.
    """
    B = np.zeros((degree, degree))
    for j in range(1, degree + 1):
        for i in range(1, j + 1):
            B[i - 1, j - 1] = math.comb(j, i) * (-shift) ** (j - i) / scale**j
    return B


def legendre(x: np.ndarray, degree: int, low: float, high: float, first: int = 0) -> np.ndarray:
    """(n, degree + 1 - first) float64: normalised Legendre polynomials sqrt((2j+1)/2) P_j(u), j = first..degree.

    u = 2 (x - low)/(high - low) - 1. Kirkpatrick, Lofsvold & Bulmer (1990).
    """
    u = 2.0 * (x - low) / (high - low) - 1.0
    j = np.arange(degree + 1)
    return (_legendre.legvander(u, degree) * np.sqrt((2 * j + 1) / 2))[:, first:]


def level_means(X: np.ndarray, level: np.ndarray, n_levels: int, weight: np.ndarray) -> np.ndarray:
    """(n_levels, m) float64 weighted means of the columns of X (n x m) in each level; 0 in a level without records."""
    met = level >= 0
    total = np.bincount(level[met], weights=weight[met], minlength=n_levels)
    sums = np.stack(
        [np.bincount(level[met], weights=(weight * column)[met], minlength=n_levels) for column in X.T], axis=1
    )
    return sums / np.where(total > 0, total, 1.0)[:, None]


def orthonormalise(X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(Z, T): Z = X T with sum_r w_r z_r z_r' = (sum_r w_r) I and T (m x m) upper triangular.

    Gram-Schmidt, each projection done twice. A dependent column is scaled only, so that T stays regular; the rank check
    drops it later.
    """
    n, m = X.shape
    share = weight / weight.sum() if n else weight
    Z, T = X.astype(np.float64), np.eye(m)
    independent: list[int] = []
    for j in range(m):
        z, t = Z[:, j].copy(), T[:, j].copy()
        before = float(share @ (z * z))
        for _ in range(2):
            for i in independent:
                c = float(share @ (Z[:, i] * z))
                z -= c * Z[:, i]
                t -= c * T[:, i]
        after = float(share @ (z * z))
        if after > DEPENDENT * before:
            independent.append(j)
            Z[:, j], T[:, j] = z / math.sqrt(after), t / math.sqrt(after)
        elif before > 0:
            Z[:, j], T[:, j] = Z[:, j] / math.sqrt(before), T[:, j] / math.sqrt(before)
    return Z, T


def scale_only(X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(Z, T) as `orthonormalise`, with T diagonal: every column of Z belongs to one column of X."""
    square = (weight / weight.sum()) @ (X * X) if len(X) else np.zeros(X.shape[1])
    scale = np.where(square > 0, 1.0 / np.sqrt(np.where(square > 0, square, 1.0)), 1.0)
    return X * scale, np.diag(scale)


@dataclass(frozen=True)
class Basis:
    """A covariate on the records that meet it, ready to be put on a working scale."""

    x: np.ndarray  # (n,) float64; any number where level is -1
    level: np.ndarray  # (n,) int32; -1: the record does not meet the effect
    n_levels: int
    degree: int
    legendre_range: tuple[float, float] | None  # None: powers

    def labels(self, first: int) -> tuple[str, ...]:
        """'slope'; of a curve 'x^1', 'x^2', ... or 'legendre.0', 'legendre.1', ..."""
        if self.legendre_range is not None:
            return tuple(f"legendre.{j}" for j in range(first, self.degree + 1))
        return ("slope",) if self.degree == 1 else tuple(f"x^{j}" for j in range(first, self.degree + 1))

    def raw(self, first: int) -> np.ndarray:
        """(n, m) columns on the user's scale; 0 where the record does not meet the effect."""
        if self.legendre_range is None:
            X = powers(self.x, self.degree)
        else:
            X = legendre(self.x, self.degree, *self.legendre_range, first)
        return np.where(self.level[:, None] >= 0, X, 0.0)

    def working(
        self, first: int, centre: bool, orthonormal: bool, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(Z (n, m), T (m, m), means (n_levels, m)): Z = (X - means of the level) T.

        Columns run from x^1 or legendre.`first`. Without `centre` the means are 0, without `orthonormal` T is diagonal.
        """
        met = self.level >= 0
        weight = np.where(met, weight, 0.0)
        X = self.raw(first)
        means = level_means(X, self.level, self.n_levels, weight) if centre else np.zeros((self.n_levels, X.shape[1]))
        U, to_raw = X, np.eye(X.shape[1])
        if self.legendre_range is None:
            # Powers about the centre, where the constant is free to move: x^3 of a year would be lost in rounding.
            shift, scale = self._centre_and_spread(weight) if centre else (0.0, self._sd_around(0.0, weight))
            U = np.where(met[:, None], powers(self.x, self.degree, shift, scale), 0.0)
            to_raw = powers_to_raw(self.degree, shift, scale)
        if centre:
            U = self._centred(U, weight)
        if not orthonormal:
            return *scale_only(U @ np.linalg.inv(to_raw), weight), means
        Z, T = orthonormalise(U, weight)
        return Z, to_raw @ T, means

    def _centred(self, X: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """X less the means of its levels; exactly 0 where a column does not vary in a level: rounding is no slope."""
        met = self.level >= 0
        Z = np.where(met[:, None], X - level_means(X, self.level, self.n_levels, weight)[self.level], 0.0)
        within = level_means(Z * Z, self.level, self.n_levels, weight)
        about = (
            level_means(X * X, self.level, self.n_levels, weight) + np.average(X * X, axis=0, weights=weight)
            if weight.any()
            else 0.0
        )
        return np.where((within <= DEPENDENT * about)[self.level], 0.0, Z)

    def _centre_and_spread(self, weight: np.ndarray) -> tuple[float, float]:
        if not weight.any():
            return 0.0, 1.0
        shift = float(np.average(self.x, weights=weight))
        spread = self._sd_around(shift, weight)
        # A constant: its distance from its mean is rounding alone.
        return (shift, spread) if spread > 1e-12 * abs(shift) else (shift, max(abs(shift), 1.0))

    def _sd_around(self, point: float, weight: np.ndarray) -> float:
        spread = float(np.sqrt(np.average((self.x - point) ** 2, weights=weight))) if weight.any() else 0.0
        return spread if spread > 0 else 1.0
