"""Trends of field trials: the solutions of the plots of `relationship: ar1` by row and column, and their variogram.

The residual of a plot is the mean of its records less all effects but the trend itself, that is trend plus error.

The sample variogram of the plots of a trial (Gilmour, Cullis & Verbyla 1997).

Of values z at the plots of a grid, the semivariance at displacements of d rows and c columns is the mean over pairs

    v(d, c) = sum (z_i - z_j)^2 / (2 m)      over the m pairs with |row_i - row_j| = d and |column_i - column_j| = c
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.data.prepared import Prepared
from mmgibbs.models.labels import numbered
from mmgibbs.models.terms import Effect, Term
from mmgibbs.posterior.adjusted_means import AdjustedMeans, MeansMoments
from mmgibbs.posterior.fitted import residuals
from mmgibbs.posterior.moments import PooledMoments

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


NAME, VARIOGRAM = "field", "variogram"
OF_TREND = ("term", "effect", "trait", "trial")
MAX_PLOTS = 5_000  # of all trials of a surface, whose trend has errors: each pair in a trial has a covariance


@dataclass(frozen=True)
class SurfaceTrend:
    """The trend of a field on one trait."""

    name: str  # of the surface
    trait: int
    terms: tuple[int, ...]  # of the design that make it: parts, and fixed covariates of rows and columns
    plots: pl.DataFrame  # trial, row, column
    plot: np.ndarray  # (n,) int64 plot of each record; -1: none
    trials: tuple[AdjustedMeans, ...]  # the trend of each, in the order of the plots

    @property
    def has_errors(self) -> bool:
        """The trials are few enough for the errors of their trends."""
        return self.plots.height <= MAX_PLOTS


@dataclass(frozen=True)
class _Component:
    """The trend that one effect of a term has on one trait."""

    term: Term
    effect: Effect
    label: str
    trait: int
    number: int  # of the component of the term


def field_frame(
    prepared: Prepared,
    moments: PooledMoments,
    trends: Sequence[SurfaceTrend] = (),
    means: Mapping[str, MeansMoments] | None = None,
) -> pl.DataFrame | None:
    """A row for each plot, trait and effect; None without such a term.

    Plots without a record are levels too, and have rows. Trials without a record of the trait have none. means: of the
    trends of surfaces, as far as their errors are computed.
    """
    if not trends and all(labels.plots is None for labels in prepared.levels):
        return None
    frames, unexplained = [], residuals(prepared.design, moments.mean, lambda _term, _effect: True)
    for i, (term, labels) in enumerate(zip(prepared.design.terms, prepared.levels, strict=True)):
        if labels.plots is None:
            continue
        for component in _components(term):
            mean, sd = (values[i][:, component.number] for values in (moments.mean, moments.sd))
            frames.append(_frame(prepared, unexplained, component, labels.plots, mean, sd))
    frames += [_trend_frame(prepared, moments, unexplained, trend, means or {}) for trend in trends]
    return pl.concat(frames) if frames else None


def _components(term: Term) -> list[_Component]:
    out, number = [], 0
    for effect in term.effects:
        for trait in effect.traits:
            for label in numbered(effect):
                out.append(_Component(term, effect, label, trait, number))
                number += 1
    return out


def _frame(
    prepared: Prepared, unexplained: np.ndarray, of: _Component, plots: pl.DataFrame, mean: np.ndarray, sd: np.ndarray
) -> pl.DataFrame:
    """unexplained: (n, T) records less all effects."""
    design, level = prepared.design, of.effect.level
    met = np.flatnonzero((level >= 0) & np.isfinite(design.y[:, of.trait]))
    records = np.bincount(level[met], minlength=plots.height)
    residual = np.full(plots.height, np.nan)
    if has_residuals(prepared, of.trait) and of.effect.covariates is None:
        values = unexplained[met, of.trait] + mean[level[met]]
        residual = _weighted_means(level[met], values, design.weight[met], plots.height)
    names = of.term.name, of.label, design.traits[of.trait]
    return _as_frame(names, plots, records, mean, sd, residual)


def _trend_frame(
    prepared: Prepared,
    moments: PooledMoments,
    unexplained: np.ndarray,
    trend: SurfaceTrend,
    means: Mapping[str, MeansMoments],
) -> pl.DataFrame:
    """Make the frame of a surface with several parts.

    Its values are their sum, and that sum plus error; unexplained: (n, T) that error.
    """
    design = prepared.design
    mean = np.concatenate([_values(of_trial, moments.mean) for of_trial in trend.trials])
    errors = [
        np.sqrt(np.maximum(np.diag(means[of_trial.name].covariance), 0.0))
        if of_trial.name in means
        else np.full(len(of_trial.levels), np.nan)
        for of_trial in trend.trials
    ]
    met = np.flatnonzero((trend.plot >= 0) & np.isfinite(design.y[:, trend.trait]))
    records, residual = np.bincount(trend.plot[met], minlength=mean.size), np.full(mean.size, np.nan)
    if has_residuals(prepared, trend.trait):
        e = unexplained[met, trend.trait]
        residual = mean + _weighted_means(trend.plot[met], e, design.weight[met], mean.size)
    names = trend.name, "", design.traits[trend.trait]
    return _as_frame(names, trend.plots, records, mean, np.concatenate(errors), residual)


def _values(means: AdjustedMeans, solutions: Sequence[np.ndarray]) -> np.ndarray:
    return np.sum([part.weights @ solutions[part.term][part.codes, part.component] for part in means.parts], axis=0)


def _weighted_means(plot: np.ndarray, values: np.ndarray, weight: np.ndarray, n: int) -> np.ndarray:
    """(n,) of each plot; NaN without records."""
    sums = np.bincount(plot, weights=weight * values, minlength=n)
    weights = np.bincount(plot, weights=weight, minlength=n)
    return np.divide(sums, weights, out=np.full(n, np.nan), where=weights > 0)


def _as_frame(
    names: tuple[str, str, str],
    plots: pl.DataFrame,
    records: np.ndarray,
    mean: np.ndarray,
    sd: np.ndarray,
    residual: np.ndarray,
) -> pl.DataFrame:
    """names: of the term, its effect and the trait."""
    text = lambda word: pl.repeat(word, plots.height, dtype=pl.String, eager=True)
    numbers = {"mean": mean, "sd": sd, "residual": residual}
    return pl.DataFrame(
        {
            **{name: text(word) for name, word in zip(OF_TREND[:3], names, strict=True)},
            **{name: plots[name] for name in ("trial", "row", "column")},
            "records": records,
            **{name: pl.Series(np.ascontiguousarray(v, np.float64), nan_to_null=True) for name, v in numbers.items()},
        }
    ).filter(pl.col("records").sum().over("trial") > 0)


def has_residuals(prepared: Prepared, trait: int) -> bool:
    """Records of the trait are normal, and no SNP effects add to them."""
    design = prepared.design
    return trait not in {r.trait for r in design.responses} | {m.trait for m in design.markers}


def variogram_frame(field: pl.DataFrame) -> pl.DataFrame:
    """The sample variogram of the residuals of each trial; no rows where there are none."""
    frames = []
    for key, plots in field.partition_by(*OF_TREND, as_dict=True, maintain_order=True).items():
        row, column = (plots[name].fill_null(1).to_numpy() for name in ("row", "column"))
        variogram = sample_variogram(row, column, plots["residual"].fill_null(np.nan).to_numpy())
        trend = [pl.lit(value, pl.String).alias(name) for name, value in zip(OF_TREND, key, strict=True)]
        frames.append(variogram.select(*trend, pl.all()))
    return pl.concat(frames)
