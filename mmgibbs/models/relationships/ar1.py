"""First-order autoregression: of the plots of a field in rows and columns, or in time within the levels of a class.

Of one direction with n places K^-1 is, with E diagonal (neighbours - 1) and O off-diagonal (1 between neighbours),

    (1 - rho^2) K^-1 = I + rho^2 E - rho O                    log|K^-1| = -(n - 1) log(1 - rho^2)

and of a field K^-1 = K_row^-1 (x) K_column^-1, nine such products. In time, x_i = rho^d x_(i-1) + noise over the
observed times of a level, d steps apart: with phi = rho^d each pair of successive times adds to K^-1

    1 / (1 - phi^2) [ phi^2  -phi; -phi  1 ]                  log|K^-1| = -sum log(1 - phi^2)

and each first time 1. So K^-1(rho) = sum_m f_m(rho) M_m, with matrices M_m that do not change: the pattern stays, and
sums such as Theta' M_m Theta cost one pass for all rho.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import numpy as np

from mmgibbs.models.relationships.base import Weights
from mmgibbs.models.relationships.user_inverse import SparseInverse

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_CORRELATION = 0.995  # of places that are next to each other: beyond it they are hardly two

MIN_SHARE = 1e-6  # of the median distance that a step is: below it 1 - rho^2 has too few digits at the bound


class Lattice(NamedTuple):
    """The plots of one trial, row by row: all of a rectangle, with or without a record."""

    rows: int
    columns: int


class Structure(Protocol):
    """Places, and what their correlations depend on."""

    @property
    def bounds(self) -> np.ndarray:
        """Smallest and largest value of each correlation, (P, 2)."""

    def convert_to_steps(self, rho: np.ndarray) -> np.ndarray:
        """Correlations over the usual distance as those over a step, within the bounds."""

    @property
    def n_independent(self) -> int:
        """Sets of places that are independent of each other: trials, or levels of a class over time."""

    def build(self) -> tuple[np.ndarray, np.ndarray, csr_array]:
        """indptr (q + 1,), indices (nnz,) of the pattern of K^-1, and (nnz, M) the elements of the M_m there."""

    def weigh(self, rho: np.ndarray) -> Weights: ...

    def draw(self, rho: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Draw values of covariance K, (q, m), from independent normals z (q, m)."""

    def describe(self, rho: Sequence[str]) -> str:
        """Describe the correlation between positions; rho: the correlations as they are written."""


@dataclass(frozen=True)
class Field:
    """Plots of trials in rows and columns; one correlation for each direction that has one.

    Of a direction without correlation there is one place a trial.
    """

    lattices: tuple[Lattice, ...]
    directions: tuple[str, ...]  # 'row', 'column': those with a correlation

    @property
    def bounds(self) -> np.ndarray:
        return np.tile([-MAX_CORRELATION, MAX_CORRELATION], (len(self.directions), 1))

    def convert_to_steps(self, rho: np.ndarray) -> np.ndarray:
        return np.clip(rho, *self.bounds.T)

    @property
    def n_independent(self) -> int:
        return len(self.lattices)

    @cached_property
    def places(self) -> dict[str, np.ndarray]:
        """Direction -> places of each trial in it."""
        return {
            "row": np.array([lattice.rows for lattice in self.lattices]),
            "column": np.array([lattice.columns for lattice in self.lattices]),
        }

    def build(self) -> tuple[np.ndarray, np.ndarray, csr_array]:
        from scipy.sparse import csr_array

        rows, columns, values, first = [], [], [], 0
        for lattice in self.lattices:
            a, b = _build_line(lattice.rows), _build_line(lattice.columns)
            i = first + a.row[:, None] * lattice.columns + b.row
            j = first + a.column[:, None] * lattice.columns + b.column
            products = a.values[:, None, :, None] * b.values[None, :, None, :]
            rows.append(i.ravel())
            columns.append(j.ravel())
            values.append(products.reshape(i.size, -1))
            first += lattice.rows * lattice.columns
        row, column, channels = np.concatenate(rows), np.concatenate(columns), np.concatenate(values)
        order = np.lexsort((column, row))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=first))])
        return indptr, column[order].astype(np.int32), csr_array(channels[order])

    def weigh(self, rho: np.ndarray) -> Weights:
        # a direction without correlation has one place, whose matrix is 1 for any rho
        given = dict(zip(self.directions, rho, strict=True))
        f, df = zip(*(_line_weights(float(given.get(d, 0.0))) for d in ("row", "column")), strict=True)
        products = {"row": np.outer(df[0], f[1]), "column": np.outer(f[0], df[1])}
        log_determinant, slopes = 0.0, []
        size = self.places
        for direction in self.directions:
            r = given[direction]
            other = size["column" if direction == "row" else "row"]
            pairs = float(np.sum((size[direction] - 1) * other))
            log_determinant -= pairs * np.log1p(-(r**2))
            slopes.append(pairs * 2.0 * r / (1.0 - r**2))
        derivatives = np.array([products[d].ravel() for d in self.directions])
        return Weights(np.outer(*f).ravel(), derivatives, float(log_determinant), np.array(slopes))

    def draw(self, rho: np.ndarray, z: np.ndarray) -> np.ndarray:
        given, out, first = dict(zip(self.directions, rho, strict=True)), [], 0
        for rows, columns in self.lattices:
            x = z[first : first + rows * columns].reshape(rows, columns, -1)
            x = _draw_line(float(given.get("row", 0.0)), x)
            x = _draw_line(float(given.get("column", 0.0)), x.swapaxes(0, 1)).swapaxes(0, 1)
            out.append(x.reshape(rows * columns, -1))
            first += rows * columns
        return np.concatenate(out)

    def describe(self, rho: Sequence[str]) -> str:
        of = [
            f"{value} between neighbouring {direction}s" for value, direction in zip(rho, self.directions, strict=True)
        ]
        return f"plots correlated by {' and '.join(of)} (AR1)"


@dataclass(frozen=True)
class TimeSeries:
    """The observed times of each level of a class, in order."""

    gap: np.ndarray  # (q,) steps since the time before of the same level; 0: the first
    column: str  # of the times
    step: float  # length of a step, in units of the column

    @cached_property
    def _share(self) -> float:
        """The share of the median distance that a step is, at most 1."""
        following = self.gap[self.gap > 0]
        return max(1 / max(1.0, float(np.median(following))), MIN_SHARE) if following.size else 1.0

    @property
    def bounds(self) -> np.ndarray:
        """Bounds of the correlation over the median distance, where that is longer than a step.

        One slip of two near times does not bound the correlation of all others.
        """
        high = MAX_CORRELATION**self._share
        is_whole = np.allclose(self.gap, np.round(self.gap))
        return np.array([[-high if is_whole else (1 - MAX_CORRELATION) ** self._share, high]])

    def convert_to_steps(self, rho: np.ndarray) -> np.ndarray:
        """Correlations over the median distance as those over a step, where that is shorter; within the bounds."""
        return np.clip(np.sign(rho) * np.abs(rho) ** self._share, *self.bounds.T)

    @property
    def n_independent(self) -> int:
        return int(np.count_nonzero(self.gap == 0))

    @cached_property
    def _groups(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions that follow another, number of the gap of each, and the gaps (g,)."""
        following = np.flatnonzero(self.gap > 0)
        gaps, group = np.unique(np.round(self.gap[following], 9), return_inverse=True)
        return following, group, gaps

    def build(self) -> tuple[np.ndarray, np.ndarray, csr_array]:
        from scipy.sparse import coo_array, csr_array

        q = self.gap.size
        following, group, gaps = self._groups
        before, first = following - 1, np.flatnonzero(self.gap == 0)
        indptr = np.zeros(q + 1, np.int64)
        sizes = np.ones(q, np.int64)
        sizes[following] += 1
        sizes[before] += 1
        indptr[1:] = np.cumsum(sizes)
        at = indptr[:-1] + (self.gap > 0)  # of the diagonal
        indices = np.empty(indptr[-1], np.int32)
        indices[at] = np.arange(q)
        indices[at[following] - 1], indices[at[before] + 1] = before, following
        channel = 1 + 3 * group
        elements = [at[first], at[following], at[following] - 1, at[before] + 1, at[before]]
        channels = [np.zeros(first.size, np.int64), channel, channel + 1, channel + 1, channel + 2]
        where = np.concatenate(elements), np.concatenate(channels)
        ones = np.ones(where[0].size)
        return indptr, indices, csr_array(coo_array((ones, where), shape=(indices.size, 1 + 3 * gaps.size)))

    def weigh(self, rho: np.ndarray) -> Weights:
        _, group, gaps = self._groups
        r = float(rho[0])
        phi = np.power(r, gaps) if r >= 0 else np.sign(r) ** np.round(gaps) * np.power(-r, gaps)
        slope = gaps * (phi / r if r != 0 else np.where(gaps == 1, 1.0, 0.0))
        w = 1.0 / (1.0 - phi**2)
        values, derivatives = np.ones(1 + 3 * gaps.size), np.zeros((1, 1 + 3 * gaps.size))
        of_w = 2.0 * phi * w**2 * slope
        for channel, (f, df) in enumerate(
            ((w, of_w), (-phi * w, -slope * w - phi * of_w), (phi**2 * w, 2 * phi * slope * w + phi**2 * of_w))
        ):
            values[1 + channel :: 3], derivatives[0, 1 + channel :: 3] = f, df
        pairs = np.bincount(group, minlength=gaps.size)
        return Weights(
            values, derivatives, float(-pairs @ np.log1p(-(phi**2))), np.array([pairs @ (2.0 * phi * slope * w)])
        )

    def draw(self, rho: np.ndarray, z: np.ndarray) -> np.ndarray:
        x, r = z.copy(), float(rho[0])
        for i in np.flatnonzero(self.gap > 0):
            phi = np.sign(r) ** round(self.gap[i]) * abs(r) ** self.gap[i] if r < 0 else r ** self.gap[i]
            x[i] = phi * x[i - 1] + np.sqrt(1.0 - phi**2) * z[i]
        return x

    def describe(self, rho: Sequence[str]) -> str:
        return f"records correlated by {rho[0]} over {self.step:g} of {self.column} (AR1)"


class _Line(NamedTuple):
    """The elements of I, E and O of n places in a line."""

    row: np.ndarray  # (e,)
    column: np.ndarray
    values: np.ndarray  # (e, 3)


def _build_line(n: int) -> _Line:
    i = np.arange(n)
    neighbours = (i > 0).astype(float) + (i < n - 1)
    diagonal = np.column_stack([np.ones(n), neighbours - 1.0, np.zeros(n)])
    beside = np.tile([0.0, 0.0, 1.0], (n - 1, 1))
    rows, columns = np.concatenate([i, i[1:], i[:-1]]), np.concatenate([i, i[:-1], i[1:]])
    return _Line(rows, columns, np.concatenate([diagonal, beside, beside]))


def _line_weights(rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Return (1, rho^2, -rho) / (1 - rho^2), of I, E and O, and its derivative."""
    w = 1.0 / (1.0 - rho**2)
    return w * np.array([1.0, rho**2, -rho]), w**2 * np.array([2 * rho, 2 * rho, -1 - rho**2])


def _draw_line(rho: float, z: np.ndarray) -> np.ndarray:
    x = z.copy()
    for i in range(1, len(x)):
        x[i] = rho * x[i - 1] + np.sqrt(1.0 - rho**2) * z[i]
    return x


@dataclass(frozen=True)
class FirstOrder(SparseInverse):
    """K of a structure at the correlations `rho`, which are parameters unless `held`."""

    structure: Field | TimeSeries = field(kw_only=True)
    basis: csr_array = field(kw_only=True)  # (nnz, M) the elements of the fixed matrices
    names: tuple[str, ...] = field(kw_only=True)  # of the correlations
    rho: tuple[float, ...] = field(kw_only=True)
    held: bool = field(kw_only=True)

    words = "autoregressive"
    symbol = "C"
    related = False  # levels are no relatives
    known_diagonal = True
    can_draw = True

    @classmethod
    def build(cls, structure: Field | TimeSeries, names: tuple[str, ...], rho: Sequence[float], held: bool) -> Self:
        """Build K of places at these correlations."""
        indptr, indices, basis = structure.build()
        values = basis @ structure.weigh(np.array(rho)).values
        rho = tuple(map(float, rho))
        return cls(indptr, indices, values, "", structure=structure, basis=basis, names=names, rho=rho, held=held)

    @property
    def sentence(self) -> str:
        shown = [f"{value:.3g}" if self.held else "an estimated correlation" for value in self.rho]
        return self.structure.describe(shown)

    @property
    def diagonal(self) -> np.ndarray:
        return np.ones(self.n_levels)

    @property
    def parameters(self) -> tuple[str, ...]:
        return self.names

    @property
    def parameter_values(self) -> np.ndarray:
        return np.array(self.rho)

    @property
    def parameter_bounds(self) -> np.ndarray:
        return self.structure.bounds

    def place_usual(self, usual: np.ndarray) -> np.ndarray:
        return self.structure.convert_to_steps(usual)

    @property
    def parameters_fixed(self) -> bool:
        return self.held

    @property
    def n_independent(self) -> int:
        return self.structure.n_independent

    def weigh(self, parameters: np.ndarray) -> Weights:
        return self.structure.weigh(parameters)

    @property
    def fixed_matrices(self) -> csr_array:
        return self.basis

    def renewed(self, parameters: np.ndarray) -> Self:
        values = self.fixed_matrices @ self.weigh(parameters).values
        return replace(self, values=values, rho=tuple(map(float, parameters)))

    def draw(self, z: np.ndarray) -> np.ndarray:
        return self.structure.draw(self.parameter_values, z)
