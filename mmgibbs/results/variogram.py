"""The sample variogram of the plots of a trial (Gilmour, Cullis & Verbyla 1997).

Of values z at the plots of a grid, the semivariance at displacements of d rows and c columns is the mean over pairs

    v(d, c) = sum (z_i - z_j)^2 / (2 m)      over the m pairs with |row_i - row_j| = d and |column_i - column_j| = c
"""

from __future__ import annotations

import numpy as np
import polars as pl

COLUMNS = {
    "row_displacement": pl.Int64,
    "column_displacement": pl.Int64,
    "pairs": pl.Int64,
    "semivariance": pl.Float64,
}
ROUNDED_PAIRS = 0.5  # sums by Fourier transforms are whole numbers but for rounding


def sample_variogram(row: np.ndarray, column: np.ndarray, z: np.ndarray) -> pl.DataFrame:
    """row_displacement, column_displacement, pairs, semivariance of every displacement that has pairs.

    Plots are those of one trial; several values of a plot are taken for their mean, and NaN for none.
    """
    known = np.isfinite(z)
    row, column, z = (values[known] for values in (row, column, z))
    if z.size == 0:
        return pl.DataFrame(schema=COLUMNS)
    rows, columns = np.ptp(row) + 1, np.ptp(column) + 1
    place = (row - row.min()) * columns + column - column.min()
    count = np.bincount(place, minlength=rows * columns).reshape(rows, columns)
    total = np.bincount(place, weights=z, minlength=rows * columns).reshape(rows, columns)
    has_value = (count > 0).astype(float)
    # about the mean, so that sums of squares do not cancel
    grid = np.where(count > 0, total / np.maximum(count, 1) - z.mean(), 0.0)
    pairs = _fold(_correlate(has_value, has_value))
    squares = _fold(_correlate(grid**2, has_value) + _correlate(has_value, grid**2) - 2 * _correlate(grid, grid))
    d, c = np.nonzero(pairs > ROUNDED_PAIRS)
    apart = (d > 0) | (c > 0)
    d, c = d[apart], c[apart]
    m = np.round(pairs[d, c]).astype(np.int64)
    semivariance = np.maximum(squares[d, c], 0.0) / (2 * m)
    return pl.DataFrame(dict(zip(COLUMNS, (d, c, m, semivariance), strict=True)), schema=COLUMNS)


def _correlate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(2 R - 1, 2 C - 1) sum of a[i] b[i + d] for each displacement d, that of 0 in the middle."""
    from scipy.signal import correlate

    return correlate(b, a, mode="full", method="auto")


def _fold(sums: np.ndarray) -> np.ndarray:
    """(R, C) of sizes of displacements, each pair once."""
    rows, columns = (size // 2 for size in sums.shape)
    half = sums[rows:, columns:] + sums[rows:, columns::-1]  # displacements (d, c) and (d, -c)
    half[:, 0] /= 2.0
    half[0, :] /= 2.0  # (0, c) and (0, -c) are the same pairs
    return half
