"""Values of a covariate, or plots of a field, as the levels of a P-spline (models/relationships/spline.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl

from mmgibbs.config import Analysis
from mmgibbs.config.relationships import Spline as Section
from mmgibbs.data.autoregression import build_field, name_plots
from mmgibbs.data.phenotypes import Phenotypes
from mmgibbs.data.prepared import Curve, LevelLabels
from mmgibbs.data.random_walks import join_ids, refuse_few_values
from mmgibbs.data.series import code_classes, find_series
from mmgibbs.errors import DataError
from mmgibbs.models.relationships.spline import Spline, curve_covariance, mean_variance, surface_covariance
from pedigree.tables import counted, quoted

MAX_ELEMENTS = 20_000_000  # of K^-1, in which all points of a class have an element for each other


@dataclass(frozen=True)
class SplineLevels:
    """The points of a spline."""

    relationship: Spline
    labels: LevelLabels
    levels: list[np.ndarray]  # per effect (n,) int32, -1: none
    factor: np.ndarray | None  # (n,) what the curve is multiplied by in each record


def build_spline(phenotypes: Phenotypes, term: str, spec: Section, is_met: Sequence[np.ndarray]) -> SplineLevels:
    """Find the levels of each effect; is_met: (n,) per effect, whether a record has one."""
    path, needed = f"model.random.{term}.relationship", np.logical_or.reduce(list(is_met))
    if not needed.any():
        raise DataError(f"{phenotypes.name}: found no record with a level of model.random.{term}; needed some")
    rows = np.flatnonzero(needed)
    group, names = code_classes(phenotypes, spec.within, f"{path}.within", needed)
    build = _build_curve if spec.keys_of_curve[0] is not None else _build_surface
    relationship, labels, level = build(phenotypes, path, spec, rows, group, names)
    levels = [np.where(met, level, -1).astype(np.int32) for met in is_met]
    return SplineLevels(relationship, labels, levels, _find_factor(phenotypes, path, spec, rows))


def _build_curve(
    phenotypes: Phenotypes, path: str, spec: Section, rows: np.ndarray, group: np.ndarray, names: pl.Series
) -> tuple[Spline, LevelLabels, np.ndarray]:
    key, factor = spec.keys_of_curve
    assert key is not None, "it is a curve"
    column, place = getattr(spec, key), f"{path}.{key}"
    series = find_series(phenotypes, column, place, rows, group)
    refuse_few_values(phenotypes, place, column, spec.within, spec.order, series)
    sizes = np.bincount(series.within)
    _refuse_many(phenotypes, path, sizes)
    blocks = [_curve_block(spec, x, series.values) for x in np.split(series.values, np.cumsum(sizes)[:-1])]
    times = "" if factor is None else f", times {getattr(spec, factor)}"
    description = f"values of a P-spline over {column}{times} ({_basis_words(spec)})"
    classes = names.gather(series.within)
    ids = join_ids(spec.within, classes, series.values)
    every = np.arange(len(ids))
    curve = Curve(column, spec.within, classes, series.values, every, series.number)
    labels = LevelLabels(ids, every, curve=curve if spec.of is not None and factor is None else None)
    return Spline.build(blocks, description), labels, series.number


def _curve_block(spec: Section, x: np.ndarray, every: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the values of one class: curves have the range of all classes, fields that of each trial."""
    if spec.of is not None:
        return curve_covariance(x, float(every.min()), float(every.max()), spec.segments, spec.degree, spec.order)
    low, high = float(x.min()), float(x.max())
    if len(x) <= spec.order:
        return np.zeros((len(x),) * 2), np.eye(len(x))
    return curve_covariance(x, low, high, min(spec.segments, max(1, round(high - low))), spec.degree, spec.order)


def _build_surface(
    phenotypes: Phenotypes, path: str, spec: Section, rows: np.ndarray, group: np.ndarray, names: pl.Series
) -> tuple[Spline, LevelLabels, np.ndarray]:
    field, level, within, positions = build_field(phenotypes, path, spec, rows, group, names)
    _refuse_many(phenotypes, path, np.array([lattice.rows * lattice.columns for lattice in field.lattices]))
    covariance = cache(surface_covariance)
    blocks = [covariance(*lattice, spec.segments, spec.degree, spec.order) for lattice in field.lattices]
    if not mean_variance(blocks) > 0:
        raise DataError(
            f"{phenotypes.name}: found no trial with at least {spec.order + 1} rows and {spec.order + 1} columns "
            f"({path}), of which a surface could be smooth; needed relationship: {{kind: spline, of: COLUMN}}"
        )
    trial = names.gather(within)
    parts = [trial] if spec.within is not None else []
    parts += [positions[key].cast(pl.String) for key in spec.directions]
    ids = pl.select(pl.concat_str(parts, separator=":").alias("id")).to_series()
    plots = name_plots(trial, positions)
    description = f"plots of a surface that is smooth over rows and columns ({_basis_words(spec)})"
    return Spline.build(blocks, description), LevelLabels(ids, np.arange(len(ids)), plots=plots), level


def _basis_words(spec: Section) -> str:
    return (
        f"B-splines of degree {spec.degree} in {counted(spec.segments, 'segment')}, differences of order {spec.order}"
    )


def _find_factor(phenotypes: Phenotypes, path: str, spec: Section, rows: np.ndarray) -> np.ndarray | None:
    """(n,) the column `by`, less its mean and in its standard deviations; 0 where it is not needed."""
    key = spec.keys_of_curve[1]
    if key is None:
        return None
    column, place = getattr(spec, key), f"{path}.{key}"
    values = phenotypes.numbers(column, place)
    absent = rows[np.isnan(values[rows])]
    if absent.size:
        raise DataError(
            f"{phenotypes.name} row {phenotypes.rows[absent[0]]}: found no value in column {quoted(column)} "
            f"({place}); needed one in every record with a level of the effect"
        )
    mean, sd = float(values[rows].mean()), float(values[rows].std())
    if not sd > 0:
        raise DataError(f"{phenotypes.name}: found one value in column {quoted(column)} ({place}); needed several")
    factor = np.zeros(len(phenotypes))
    factor[rows] = (values[rows] - mean) / sd
    return factor


def _refuse_many(phenotypes: Phenotypes, path: str, sizes: np.ndarray) -> None:
    elements = int(np.sum(sizes.astype(float) ** 2))
    if elements > MAX_ELEMENTS:
        raise DataError(
            f"{phenotypes.name}: found {counted(int(sizes.max()), 'point')} in the largest of "
            f"{counted(len(sizes), 'spline')} ({path}), which would take {elements:,} elements of an inverse; expected "
            f"at most {MAX_ELEMENTS:,}: take rounded values, or relationship random_walk or ar1, which have sparse "
            "inverses"
        )


def missing_planes(analysis: Analysis, term: str, spec: Section) -> list[str]:
    """A warning where a surface has no plane and no product of rows and columns in the fixed effects of a trait."""
    if spec.directions == () or spec.order == 1 or spec.row is None or spec.column is None:
        return []
    wanted: dict[frozenset[str], str] = {}
    for columns in ((spec.row,), (spec.column,), (spec.row, spec.column)):
        name = ":".join((*(() if spec.within is None else (spec.within,)), *columns))
        listed = f"{{covariates: [{', '.join(columns)}]}}" if ":" in name else "{kind: covariate}"
        wanted[frozenset(columns)] = f'"{name}": {listed}'
    traits = {trait for effect in analysis.model.random[term].effects.values() for trait in effect.traits}
    known = {
        trait: {frozenset(f.number_columns) for f in analysis.model.fixed.values() if trait in f.traits}
        for trait in traits
    }
    lacking = [text for columns, text in wanted.items() if any(columns not in known[trait] for trait in traits)]
    if not lacking:
        return []
    return [
        f"model.random.{term}: the surface over {spec.row} and {spec.column} has no plane of its own, and model.fixed "
        f"lacks parts of it; needed model.fixed: {{{', '.join(lacking)}}} for a surface with any plane"
    ]
