"""The predictors X (n x p) as they lie in memory or on disk: float64, float32, uint8, int8, or a memory map of these.

X is never copied to a wider type as a whole: products run over blocks of rows. Standardised columns are never formed
either; with centres m and scales s,

    (X - 1 m') S^-1 b = X (S^-1 b) - 1 (m' S^-1 b),      S^-1 (X - 1 m')' v = S^-1 (X' v - m 1'v).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mmgibbs.errors import DataError
from mmgibbs.regressions.containers import (
    Frame,
    is_frame,
    narrow_integers,
    refuse_columns_without_numbers,
    refuse_masked,
    shown,
    to_floats,
    with_masks,
)

ROW_BLOCK_BYTES = 1 << 20  # a block of rows, widened to the working type, that stays in the cache
GRAM_ROWS = 2048
MAX_MAGNITUDE = 1e70  # of a value: its fourth power is still a number
ROUNDING = 1e-12  # of a mean: a standard deviation below this part of it is what rounding leaves of a constant
MAX_SDS_FROM_0 = 1e5  # standard deviations of a column from 0: its square then loses ten digits of sixteen
TYPES = ("float64", "float32", "uint8", "int8")


@dataclass(frozen=True)
class Predictors:
    """X with the names of its columns, and what is subtracted from and divided out of each column.

    values: (n, p), C order. centre, scale: (p,) float64, zeros and ones where nothing is standardised. The intercept is
    no column of X. moved: (p,) what was subtracted from the columns as given to make `values`, where they lie so far
    from 0 that products of them would lose the digits that count; None elsewhere.
    """

    values: np.ndarray
    names: tuple[str, ...]
    centre: np.ndarray
    scale: np.ndarray
    notes: tuple[str, ...] = field(default=())
    moved: np.ndarray | None = None

    @property
    def n(self) -> int:
        return self.values.shape[0]

    @property
    def p(self) -> int:
        return self.values.shape[1]

    @property
    def origin(self) -> np.ndarray:
        """(p,): where the standardised columns are 0, in units of the columns as given."""
        return self.centre if self.moved is None else self.centre + self.moved

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
        return beta, intercept - beta @ self.origin

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
    weights: np.ndarray | None = None,
    what: str = "predictors",
) -> Predictors:
    """Predictors from an array (n, p), a memory map, or a frame with named columns (its dtype must then be one for
    all).

    standardise: columns are centred and divided by their standard deviation (stated in every output and undone in it),
    with `weights` (n,) those of the weighted rows; constant columns are refused then. `like`: new data for a fitted
    model: the same columns, its centres and scales. DataError for no rows or columns, a wrong type, values that are
    missing, masked or infinite (row and column named), and columns that lie so far from 0 that they lose the digits
    that count; what: the argument that it names.
    """
    if like is None:
        return _checked(*read_table(X, names, what), standardise, weights, what)
    if is_frame(X):
        X, names = _extract_columns(X, names, like, what)
    values = _as_table(X, names, what)
    names = like.names if names is None else tuple(names)
    if names != like.names:
        missing = [name for name in like.names if name not in names]
        raise DataError(
            f"{what}: found the columns {_few(names)}, needed those of the fitted model; missing: {_few(missing)}"
        )
    if values.shape[1] != like.p:
        raise DataError(
            f"{what}: X has {values.shape[1]} features, but prediction is expecting {like.p} features as input, "
            f"the columns of the fitted model: {_few(like.names)}"
        )
    return Predictors(_finite(values, names, what), names, like.centre, like.scale)


def read_table(
    X: npt.ArrayLike | Frame, names: Sequence[str] | None = None, what: str = "predictors"
) -> tuple[np.ndarray, tuple[str, ...]]:
    """((n, p) finite values in one of TYPES, names of the columns). DataError names row and column."""
    if is_frame(X):
        X, names = _extract_columns(X, names, None, what)
    values = _as_table(X, names, what)
    names = tuple(names) if names is not None else default_names(values.shape[1])
    if len(names) != values.shape[1]:
        raise DataError(f"{what}: found {values.shape[1]} columns, needed {len(names)}, one for each name")
    return _finite(values, names, what), names


def _extract_columns(
    X: Frame, names: Sequence[str] | None, like: Predictors | None, what: str
) -> tuple[np.ndarray, Sequence[str] | None]:
    """The values of a frame and the names of their columns; of new data the fitted columns, in their order."""
    labels = list(X.columns)
    labels_of_columns = [str(label) for label in labels] if names is None else list(names)
    twice = (
        [name for name in labels_of_columns if labels_of_columns.count(name) > 1]
        if len(set(labels_of_columns)) < len(labels_of_columns)
        else []
    )
    if twice:
        raise DataError(f"{what}: found the column '{twice[0]}' twice, needed columns of different names")
    if like is not None and set(like.names) <= set(labels_of_columns):
        X, labels_of_columns = X[[labels[labels_of_columns.index(name)] for name in like.names]], list(like.names)
    refuse_columns_without_numbers(X, what)
    narrow = narrow_integers(X)
    return (narrow.to_numpy() if narrow is X else narrow), labels_of_columns


def _as_table(X: npt.ArrayLike | Frame, names: Sequence[str] | None = None, what: str = "predictors") -> np.ndarray:
    """(n, p) in one of TYPES. DataError for what is no table of numbers; `names`: of the columns, None without."""
    if hasattr(X, "toarray"):
        raise DataError(f"{what}: found a sparse matrix, needed a dense one: X.toarray()")
    X = with_masks(X)
    if isinstance(X, np.ma.MaskedArray):
        refuse_masked(X, what, "a finite number", names or default_names(X.shape[-1] if X.ndim else 0))
    try:
        values = X if isinstance(X, np.memmap) else np.asarray(X)
    except (TypeError, ValueError):
        raise DataError(f"{what}: found rows of different lengths, needed a table of n rows and p columns") from None
    if values.ndim != 2:
        raise DataError(
            f"{what}: found an array of {values.ndim} dimensions, needed a table of n rows and p columns. "
            "Reshape your data: X.reshape(-1, 1) of one column, X.reshape(1, -1) of one row"
        )
    n, p = values.shape
    if p == 0:
        raise DataError(f"{what}: found 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required.")
    if n == 0:
        raise DataError(f"{what}: found 0 rows and {p} columns, needed at least one of each")
    if values.dtype.name in TYPES:
        return values
    if values.dtype.kind == "c":
        raise DataError(f"{what}: found values of type {values.dtype}, needed numbers. Complex data not supported")
    if values.dtype.kind not in "fiubO":
        raise DataError(f"{what}: found values of type {values.dtype}, needed numbers ({', '.join(TYPES)})")
    numbers, place = to_floats(values)
    if place is None:
        return numbers
    i, j = place
    column = j + 1 if names is None or len(names) != p else f"'{names[j]}'"
    hint = " (of classes, a column of 0 and 1 for each, as OneHotEncoder makes them)"
    hint = hint if isinstance(values[i, j], str) else ""
    raise DataError(f"{what} row {i + 1}, column {column}: found {shown(values[i, j])}, needed a number{hint}")


def default_names(p: int) -> tuple[str, ...]:
    """Name the columns of a table without names."""
    return tuple(f"x{j}" for j in range(p))


def _checked(
    values: np.ndarray, names: tuple[str, ...], standardise: bool, weights: np.ndarray | None, what: str
) -> Predictors:
    p = values.shape[1]
    plain = Predictors(values, names, np.zeros(p), np.ones(p))
    if not standardise:
        if values.dtype.kind == "f":
            _refuse_offsets(plain, *_moments(plain, weights), what)
        return plain
    mean, sd = _moments(plain, weights)
    _refuse_constants(plain, mean, sd)
    far = np.abs(mean) > MAX_SDS_FROM_0 * sd
    note = "coefficients are reported for the columns as given"
    notes = [f"{p} predictor{'' if p == 1 else 's'} standardised; {note}"]  # to which scale, the plugin says
    moved = None
    if far.any():
        moved = np.where(far, mean, 0.0)
        plain = Predictors(values.astype(np.float64) - moved, names, np.zeros(p), np.ones(p))
        mean, sd = _moments(plain, weights)
        _refuse_constants(plain, mean + moved, sd)
        at = np.flatnonzero(far)
        notes.append(
            "centred before anything else, in a copy, as their means are above "
            f"{MAX_SDS_FROM_0:,.0f} standard deviations: {_few([names[j] for j in at])}"
        )
    return Predictors(plain.values, names, mean, sd, tuple(notes), moved)


def _moments(plain: Predictors, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """(mean, standard deviation) of each column, of rows that count as often as their weights say."""
    if weights is None:
        mean = sum(X.sum(0, dtype=np.float64) for _, _, X in plain.blocks()) / plain.n
        square = sum(((X - mean) ** 2).sum(0, dtype=np.float64) for _, _, X in plain.blocks())
        return mean, np.sqrt(square / plain.n)
    total = weights.sum()
    mean = sum(weights[a:b] @ X for a, b, X in plain.blocks()) / total
    return mean, np.sqrt(sum(weights[a:b] @ (X - mean) ** 2 for a, b, X in plain.blocks()) / total)


def _refuse_constants(plain: Predictors, mean: np.ndarray, sd: np.ndarray) -> None:
    """DataError for columns that cannot be divided by their standard deviation, whatever their unit.

    mean: (p,) of the columns as given.
    """
    if plain.n == 1:
        raise DataError("predictors: found one sample, a table of 1 row, needed at least two to standardise columns")
    for j in np.flatnonzero((sd <= ROUNDING * np.abs(mean)) | (sd < 1 / MAX_MAGNITUDE)):
        column, name = plain.values[:, j], plain.names[j]
        low, high = column.min(), column.max()
        if low == high:
            raise DataError(
                f"predictors: column '{name}' has one value in every row, needed columns that vary to standardise them"
            )
        if sd[j] < 1 / MAX_MAGNITUDE:
            raise DataError(
                f"predictors: column '{name}' lies from {low:g} to {high:g}, needed a unit in which its standard "
                f"deviation is at least {1 / MAX_MAGNITUDE:g}"
            )
        raise DataError(
            f"predictors: column '{name}' has mean {mean[j]:g} and standard deviation {sd[j]:.3g}, too little for its "
            "digits; needed the column less its mean, made with more digits"
        )


def _refuse_offsets(plain: Predictors, mean: np.ndarray, sd: np.ndarray, what: str) -> None:
    """DataError for columns that do not vary to speak of beside their own mean."""
    needed = "standardise=True, or the column less its mean" if what == "predictors" else "the column less its mean"
    for j in np.flatnonzero(np.abs(mean) > MAX_SDS_FROM_0 * sd):
        column = plain.values[:, j]
        if column.min() == column.max() and abs(mean[j]) <= MAX_SDS_FROM_0:
            continue  # an intercept of the user's own
        raise DataError(
            f"{what}: column '{plain.names[j]}' has mean {mean[j]:g} and standard deviation {sd[j]:.3g}, so that "
            f"products of it lose the digits that count; needed {needed}"
        )


def _few(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(f"'{n}'" for n in list(names)[:most]) + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )


def _finite(values: np.ndarray, names: Sequence[str], what: str) -> np.ndarray:
    if values.dtype.kind == "f":
        step = max(1, ROW_BLOCK_BYTES // (values.itemsize * values.shape[1]))
        most = min(MAX_MAGNITUDE, float(np.finfo(values.dtype).max))
        for first in range(0, len(values), step):
            bad = ~(np.abs(values[first : first + step]) <= most)  # NaN is
            if bad.any():
                i, j = np.argwhere(bad)[0]
                bad_value = values[first + i, j]
                value = "a missing value (NaN)" if np.isnan(bad_value) else str(bad_value)
                needed = f"a number below {MAX_MAGNITUDE:g} in size" if np.isfinite(bad_value) else "a finite number"
                raise DataError(f"{what} row {first + i + 1}, column '{names[j]}': found {value}, needed {needed}")
    return values
