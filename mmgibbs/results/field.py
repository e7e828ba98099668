"""Trends of field trials: the solutions of the plots of `relationship: ar1` by row and column, and their variogram.

The residual of a plot is the mean of its records less all effects but the trend itself, that is trend plus error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.data.prepared import Prepared
from mmgibbs.models.labels import numbered
from mmgibbs.models.terms import Effect, Term
from mmgibbs.posterior.fitted import residuals
from mmgibbs.posterior.moments import PooledMoments
from mmgibbs.results.csv_files import csv_writer
from mmgibbs.results.folder import is_csv_wanted
from mmgibbs.results.variogram import sample_variogram

NAME, VARIOGRAM = "field", "variogram"
OF_TREND = ("term", "effect", "trait", "trial")


@dataclass(frozen=True)
class _Component:
    """The trend that one effect of a term has on one trait."""

    term: Term
    effect: Effect
    label: str
    trait: int
    number: int  # of the component of the term


def field_frame(prepared: Prepared, moments: PooledMoments) -> pl.DataFrame | None:
    """A row for each plot, trait and effect; None without such a term.

    Plots without a record are levels too, and have rows. Trials without a record of the trait have none.
    """
    frames = []
    for i, (term, labels) in enumerate(zip(prepared.design.terms, prepared.levels, strict=True)):
        if labels.plots is None:
            continue
        for component in _components(term):
            mean, sd = (values[i][:, component.number] for values in (moments.mean, moments.sd))
            frames.append(_frame(prepared, moments, component, labels.plots, mean, sd))
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
    prepared: Prepared, moments: PooledMoments, of: _Component, plots: pl.DataFrame, mean: np.ndarray, sd: np.ndarray
) -> pl.DataFrame:
    design, level = prepared.design, of.effect.level
    met = np.flatnonzero((level >= 0) & np.isfinite(design.y[:, of.trait]))
    records = np.bincount(level[met], minlength=plots.height)
    residual = np.full(plots.height, np.nan)
    if has_residuals(prepared, of.trait) and of.effect.covariates is None:
        others = lambda term, effect: term is not of.term or effect is not of.effect
        values, weight = residuals(design, moments.mean, others)[met, of.trait], design.weight[met]
        sums = np.bincount(level[met], weights=weight * values, minlength=plots.height)
        weights = np.bincount(level[met], weights=weight, minlength=plots.height)
        residual[records > 0] = (sums / np.where(weights > 0, weights, 1.0))[records > 0]
    text = lambda word: pl.repeat(word, plots.height, dtype=pl.String, eager=True)
    columns = {"term": text(of.term.name), "effect": text(of.label), "trait": text(design.traits[of.trait])}
    numbers = {"mean": mean, "sd": sd, "residual": residual}
    return pl.DataFrame(
        {
            **columns,
            **{name: plots[name] for name in ("trial", "row", "column")},
            "records": records,
            **{name: pl.Series(np.ascontiguousarray(v, np.float64), nan_to_null=True) for name, v in numbers.items()},
        }
    ).filter(pl.col("records").sum().over("trial") > 0)


def has_residuals(prepared: Prepared, trait: int) -> bool:
    """Records of the trait are normal, and no SNP effects add to them."""
    design = prepared.design
    return all(of.trait != trait for of in (*design.responses, *design.markers))


def variogram_frame(field: pl.DataFrame) -> pl.DataFrame:
    """The sample variogram of the residuals of each trial; no rows where there are none."""
    frames = []
    for key, plots in field.partition_by(*OF_TREND, as_dict=True, maintain_order=True).items():
        row, column = (plots[name].fill_null(1).to_numpy() for name in ("row", "column"))
        variogram = sample_variogram(row, column, plots["residual"].fill_null(np.nan).to_numpy())
        trend = [pl.lit(value, pl.String).alias(name) for name, value in zip(OF_TREND, key, strict=True)]
        frames.append(variogram.select(*trend, pl.all()))
    return pl.concat(frames)


def field_files(frame: pl.DataFrame | None, csv: str, escaped: bool = False) -> dict[str, Callable[[Path], None]]:
    """File name -> its writer, for `folder.write_run_folder`; csv: `output.csv`."""
    if frame is None:
        return {}
    files: dict[str, Callable[[Path], None]] = {}
    for name, table in ((NAME, frame), (VARIOGRAM, variogram_frame(frame))):
        if table.height:
            files[f"{name}.parquet"] = table.write_parquet
            if is_csv_wanted(csv, table.height):
                files[f"{name}.csv"] = csv_writer(table, escaped)
    return files
