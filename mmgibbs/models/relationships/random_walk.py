"""Random walks over a covariate: smooth curves through its observed values, which need not be evenly spaced.

The levels are the distinct values t_1 < t_2 < ... of the covariate but the first, at which the curve begins. With h the
gap to the value before,

    order 1: f(t) = f(t - h) + noise,                      noise ~ N(0, h)
    order 2: (f, f')(t) = [1 h; 0 1] (f, f')(t - h) + noise,     noise ~ N(0, W_h),   W_h = [h^3/3 h^2/2; h^2/2 h]

that is a Wiener process, and the integral of one: the cubic smoothing spline (Wahba 1978). What K leaves free is a
polynomial, the constant or the line. It is fixed: the walk begins with f = 0, and f' = 0, and an intercept, and a
covariate, of the model are the polynomial. With flat fixed effects any other way to separate the two gives the same
restricted likelihood and the same fitted curve. So K is proper, and K^-1 = sum over values of A' W^-1 A, with
A = [-(transition) I] between a value and the one before; for order 2 each value has two levels, f and f'.

K is divided by `scale`, the mean over all values of the variance of f about its least-squares polynomial, so that the
variance of the term is about that of the curve in the data, whatever the unit of the covariate is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from mmgibbs.models.relationships.user_inverse import SparseInverse


@dataclass(frozen=True)
class RandomWalk(SparseInverse):
    """K of a random walk, within each level of a class."""

    gap: np.ndarray = field(kw_only=True)  # (points,) distance to the value before of the same class, in units
    is_first: np.ndarray = field(kw_only=True)  # (points,) bool: that value is where the walk begins
    order: int = field(kw_only=True)
    scale: float = field(kw_only=True)
    column: str = field(kw_only=True)  # of the covariate
    unit: float = field(kw_only=True)  # of gaps, in that of the column: f and f' are of about the same size

    words = "random walk"
    symbol = "C"
    related = False  # levels are no relatives
    known_diagonal = True
    can_draw = True
    stiff_part = "curves"

    @classmethod
    def build(cls, gap: np.ndarray, is_first: np.ndarray, order: int, column: str) -> Self:
        """Build K of values these gaps apart; levels: the points, of order 2 f and f' of each in turn."""
        unit = float(gap.mean())
        gap = gap / unit
        scale = mean_variance(gap, is_first, order)
        indptr, indices, values = _inverse(gap, is_first, order)
        return cls(
            indptr,
            indices,
            values * scale,
            "",
            gap=gap,
            is_first=is_first,
            order=order,
            scale=scale,
            column=column,
            unit=unit,
        )

    @property
    def variance_of_unit_step(self) -> float:
        """Variance of the change of f, of order 2 of f', over 1 of the column, where the variance of the term is 1."""
        return float(self.unit ** -(2 * self.order - 1) / self.scale)

    @property
    def sentence(self) -> str:
        what = "curve" if self.order == 1 else "slope"
        return (
            f"values of a curve over {self.column} (random walk of order {self.order}); its {what} changes over 1 of "
            f"{self.column} with {self.variance_of_unit_step:.3g} times the variance"
        )

    @property
    def facts(self) -> dict[str, Any]:
        return {"order": self.order, "column": self.column, "variance_of_unit_step": self.variance_of_unit_step}

    @cached_property
    def _elapsed(self) -> np.ndarray:
        """Distance of each point from the beginning of the walk, (points,)."""
        return _cumulate_walks(self.gap, self.is_first)

    @property
    def diagonal(self) -> np.ndarray:
        t = self._elapsed
        return (t if self.order == 1 else np.column_stack([t**3 / 3, t]).ravel()) / self.scale

    def draw(self, z: np.ndarray) -> np.ndarray:
        x = np.empty((self.gap.size, self.order, z.shape[1]))
        noise = z.reshape(x.shape)
        for i, h in enumerate(self.gap):
            before = np.zeros(x.shape[1:]) if self.is_first[i] else x[i - 1]
            A, W = _transition(h, self.order)
            x[i] = A @ before + np.linalg.cholesky(W) @ noise[i]
        return x.reshape(z.shape) / np.sqrt(self.scale)


def _transition(h: float, order: int) -> tuple[np.ndarray, np.ndarray]:
    if order == 1:
        return np.ones((1, 1)), np.array([[h]])
    return np.array([[1.0, h], [0.0, 1.0]]), np.array([[h**3 / 3, h**2 / 2], [h**2 / 2, h]])


def _inverse(gap: np.ndarray, is_first: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """K^-1 in CSR, as (indptr, indices, values): both triangles, sorted."""
    from scipy.sparse import csr_array

    n, h = gap.size, gap
    at = np.arange(n)
    one, zero = np.ones(n), np.zeros(n)
    if order == 1:
        steps, precision = [[-one]], [[1 / h]]
    else:
        steps = [[-one, -h], [zero, -one]]
        precision = [[12 / h**3, -6 / h**2], [-6 / h**2, 4 / h]]
    blocks = lambda elements, rows, columns: csr_array(
        (
            np.concatenate([values[rows] for row in elements for values in row]),
            (
                np.concatenate([order * rows + i for i in range(order) for _ in range(order)]),
                np.concatenate([order * columns + j for _ in range(order) for j in range(order)]),
            ),
        ),
        shape=(order * n, order * n),
    )
    following = np.flatnonzero(~is_first)
    A = csr_array(blocks(_identity(order, n), at, at) + blocks(steps, following, following - 1))
    inverse = csr_array(A.T @ blocks(precision, at, at) @ A)
    inverse = csr_array((inverse + inverse.T) / 2)
    inverse.eliminate_zeros()
    inverse.sort_indices()
    return inverse.indptr.astype(np.int64), inverse.indices.astype(np.int32), inverse.data


def _identity(order: int, n: int) -> list[list[np.ndarray]]:
    return [[np.full(n, float(i == j)) for j in range(order)] for i in range(order)]


def mean_variance(gap: np.ndarray, is_first: np.ndarray, order: int) -> float:
    """Mean over all values, those at which walks begin too, of the variance of f about its least-squares polynomial.

    Of the n values of one class it is tr(M K) / n with M = I - X (X'X)^-1 X', X = [1] or [1 t]; 0 where n is at most
    the order, as each polynomial fits.
    """
    t, walk = _cumulate_walks(gap, is_first), np.cumsum(is_first) - 1
    walks = int(walk[-1]) + 1
    total = lambda values: np.bincount(walk, weights=values, minlength=walks)
    n = total(np.ones(t.size)) + 1.0  # with the first value
    # sums over the values from each one on: K x is an integral of these
    count, sums, squares = (_sum_following(values, walk, walks) for values in (np.ones(t.size), t, t**2))
    if order == 1:
        explained = total(gap * count**2) / n
        variance = total(t) - explained
    else:
        low, high = t - gap, t
        ones = lambda s: sums - count * s
        line = lambda s: squares - sums * s
        integral = lambda f, g: total(
            gap / 6 * (f(low) * g(low) + 4 * f((low + high) / 2) * g((low + high) / 2) + f(high) * g(high))
        )
        a, b, c = integral(ones, ones), integral(ones, line), integral(line, line)
        s1, s2 = total(t), total(t**2)
        determinant = n * s2 - s1**2
        explained = (s2 * a - 2 * s1 * b + n * c) / np.where(determinant > 0, determinant, 1.0)
        variance = total(t**3) / 3 - explained
    return float(np.sum(np.where(n > order, variance, 0.0)) / np.sum(n))


def _cumulate_walks(values: np.ndarray, is_first: np.ndarray) -> np.ndarray:
    """Cumulative sums that begin anew at each first."""
    sums = np.cumsum(values)
    before = (sums - values)[is_first]
    return sums - np.repeat(before, np.diff(np.append(np.flatnonzero(is_first), values.size)))


def _sum_following(values: np.ndarray, walk: np.ndarray, walks: int) -> np.ndarray:
    """Sum the values of the same walk from each point on, (points,)."""
    is_first = np.diff(walk, prepend=-1) > 0
    return np.bincount(walk, weights=values, minlength=walks)[walk] - _cumulate_walks(values, is_first) + values
