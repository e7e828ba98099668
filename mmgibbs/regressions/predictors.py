"""The predictors X (n x p) as they lie in memory or on disk: float64, float32, uint8, int8, or a memory map of these.

X is never copied to a wider type as a whole: products run over blocks of rows. Standardised columns are never formed
either; with centres m and scales s,

    (X - 1 m') S^-1 b = X (S^-1 b) - 1 (m' S^-1 b),      S^-1 (X - 1 m')' v = S^-1 (X' v - m 1'v).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeGuard

import numpy as np
import numpy.typing as npt

from mmgibbs.errors import DataError

ROW_BLOCK_BYTES = 1 << 20  # a block of rows, widened to the working type, that stays in the cache
GRAM_ROWS = 2048
TYPES = ("float64", "float32", "uint8", "int8")


class Frame(Protocol):
    """A table with named columns, of Polars, pandas or another library."""

    @property
    def columns(self) -> Any: ...

    def to_numpy(self) -> np.ndarray: ...

    def __getitem__(self, names: list[str], /) -> Frame: ...


def is_frame(X: object) -> TypeGuard[Frame]:
    return hasattr(X, "columns") and hasattr(X, "to_numpy")


@dataclass(frozen=True)
class Predictors:
    """X with the names of its columns, and what is subtracted from and divided out of each column.

    values: (n, p), C order. centre, scale: (p,) float64, zeros and ones where nothing is standardised. The intercept is
    no column of X.
    """

    values: np.ndarray
    names: tuple[str, ...]
    centre: np.ndarray
    scale: np.ndarray
    notes: tuple[str, ...] = field(default=())

    @property
    def n(self) -> int:
        return self.values.shape[0]

    @property
    def p(self) -> int:
        return self.values.shape[1]

    @property
    def plain(self) -> bool:
        """Nothing is subtracted or divided."""
        return not self.centre.any() and bool((self.scale == 1).all())

    def blocks(self, real: npt.DTypeLike = np.float64, least: int = 1) -> Iterator[tuple[int, int, np.ndarray]]:
        """(first, last, rows first ... last - 1 of X as they are, in the working type), a cache-sized block of at least
        so many rows at a time.
        """
        step = max(least, ROW_BLOCK_BYTES // (np.dtype(real).itemsize * max(1, self.p)))
        for first in range(0, self.n, step):
            last = min(self.n, first + step)
            yield first, last, np.asarray(self.values[first:last], dtype=real)

    def to_original_scale(self, beta: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (..., p) and intercept (...) of the user's own columns from those of the standardised ones."""
        beta = beta / self.scale
        return beta, intercept - beta @ self.centre

    def gram(self, weights: np.ndarray | None = None, real: npt.DTypeLike = np.float64) -> np.ndarray:
        """(p, p) float64: Z' diag(w) Z of the standardised columns Z, summed over blocks of rows."""
        total, sums, mass = np.zeros((self.p, self.p)), np.zeros(self.p), 0.0
        for first, last, X in self.blocks(
            real, least=min(self.p, GRAM_ROWS)
        ):  # fewer rows cost less than adding up p^2 sums
            w = None if weights is None else weights[first:last, None].astype(real)
            total += X.T @ (X if w is None else X * w)
            sums += X.sum(0, dtype=np.float64) if w is None else (X * w).sum(0, dtype=np.float64)
            mass += last - first if w is None else float(w.sum(dtype=np.float64))
        m = self.centre
        total += -np.outer(m, sums) - np.outer(sums, m) + mass * np.outer(m, m)
        return total / np.outer(self.scale, self.scale)

    def times(self, columns: np.ndarray, real: npt.DTypeLike = np.float64) -> np.ndarray:
        """Z columns, (n, c) in the working type; columns (p, c) on the standardised scale."""
        scaled = (columns / self.scale[:, None]).astype(real)
        offset = (self.centre @ (columns / self.scale[:, None])).astype(real)
        out = np.empty((self.n, columns.shape[1]), real)
        for first, last, X in self.blocks(real):
            np.matmul(X, scaled, out=out[first:last])
            out[first:last] -= offset
        return out

    def transposed_times(self, rows: np.ndarray, real: npt.DTypeLike = np.float64) -> np.ndarray:
        """Z' rows, (p, c) float64; rows (n, c)."""
        total, sums = np.zeros((self.p, rows.shape[1])), rows.sum(0, dtype=np.float64)
        for first, last, X in self.blocks(real):
            total += X.T @ rows[first:last].astype(real, copy=False)
        return (total - np.outer(self.centre, sums)) / self.scale[:, None]


def read_predictors(
    X: npt.ArrayLike | Frame,
    names: Sequence[str] | None = None,
    standardise: bool = False,
    like: Predictors | None = None,
) -> Predictors:
    """Predictors from an array (n, p), a memory map, or a frame with named columns (its dtype must then be one for
    all).

    standardise: columns are centred and divided by their standard deviation (stated in every output and undone in it);
    constant columns are refused then. `like`: new data for a fitted model: the same columns, its centres and scales.
    DataError for no rows or columns, a wrong type, values that are missing or infinite (row and column named).
    """
    if is_frame(X):
        names = [str(c) for c in X.columns] if names is None else names
        if like is not None and set(like.names) <= set(names):
            X, names = X[list(like.names)], like.names
        X = X.to_numpy()
    values = X if isinstance(X, np.ndarray) else np.asarray(X)
    if values.ndim != 2:
        raise DataError(
            f"predictors: found an array of {values.ndim} dimensions, needed a table of n rows and p columns"
        )
    if 0 in values.shape:
        raise DataError(
            f"predictors: found {values.shape[0]} rows and {values.shape[1]} columns, needed at least one of each"
        )
    if values.dtype.name not in TYPES:
        if values.dtype.kind not in "fiub":
            raise DataError(f"predictors: found values of type {values.dtype}, needed numbers ({', '.join(TYPES)})")
        values = values.astype(np.float64)
    names = (
        tuple(names)
        if names is not None
        else like.names
        if like is not None
        else tuple(f"x{j}" for j in range(values.shape[1]))
    )
    if len(names) != values.shape[1]:
        raise DataError(f"predictors: found {values.shape[1]} columns, needed {len(names)}, one for each name")
    if like is not None:
        if names != like.names:
            missing = [name for name in like.names if name not in names]
            raise DataError(
                f"predictors: found the columns {_few(names)}, needed those of the fitted model; missing: "
                f"{_few(missing)}"
            )
        return Predictors(_finite(values, names), names, like.centre, like.scale)
    _finite(values, names)
    p = values.shape[1]
    if not standardise:
        return Predictors(values, names, np.zeros(p), np.ones(p))
    plain = Predictors(values, names, np.zeros(p), np.ones(p))
    mean = sum(X.sum(0, dtype=np.float64) for _, _, X in plain.blocks()) / plain.n
    square = sum(((X - mean) ** 2).sum(0, dtype=np.float64) for _, _, X in plain.blocks())
    sd = np.sqrt(square / plain.n)
    constant = np.flatnonzero(sd <= 1e-12 * np.maximum(1.0, np.abs(mean)))
    if constant.size:
        raise DataError(
            f"predictors: column '{names[constant[0]]}' has one value in every row, needed columns that vary to "
            "standardise them"
        )
    return Predictors(
        values,
        names,
        mean,
        sd,
        (
            f"{p} predictors centred and divided by their standard deviation; coefficients are reported for the "
            "columns as given",
        ),
    )


def _few(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(f"'{n}'" for n in list(names)[:most]) + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )


def _finite(values: np.ndarray, names: Sequence[str]) -> np.ndarray:
    if values.dtype.kind == "f":
        step = max(1, ROW_BLOCK_BYTES // (values.itemsize * values.shape[1]))
        for first in range(0, len(values), step):
            bad = ~np.isfinite(values[first : first + step])
            if bad.any():
                i, j = np.argwhere(bad)[0]
                found = values[first + i, j]
                what = "a missing value (nan)" if np.isnan(found) else str(found)
                raise DataError(
                    f"predictors row {first + i + 1}, column '{names[j]}': found {what}, needed a finite number"
                )
    return values
