"""Values of a covariate, or plots of a field, as the levels of a P-spline (models/relationships/spline.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl

from mmgibbs.config import Analysis
from mmgibbs.config.smooth_relationships import Spline as Section
from mmgibbs.data.autoregression import build_field, name_plots
from mmgibbs.data.phenotypes import Phenotypes
from mmgibbs.data.prepared import Curve, LevelLabels, SurfacePart
from mmgibbs.data.random_walks import join_ids, refuse_few_values
from mmgibbs.data.series import FoundSteps, Placed, code_classes, find_series, find_steps
from mmgibbs.errors import DataError
from mmgibbs.models.relationships.spline import (
    Spline,
    curve_covariance,
    line_covariance,
    mean_variance,
    surface_covariance,
)
from mmgibbs.pedigree.tables import counted, quoted

MAX_ELEMENTS = 20_000_000  # of K^-1, in which all points of a class have an element for each other


@dataclass(frozen=True)
class SplineLevels:
    """The points of a spline."""

    relationship: Spline
    labels: LevelLabels
    levels: list[np.ndarray]  # per effect (n,) int32, -1: none
    factor: np.ndarray | None  # (n,) what the curve is multiplied by in each record
    steps: FoundSteps


def build_spline(phenotypes: Phenotypes, term: str, spec: Section, is_met: Sequence[np.ndarray]) -> SplineLevels:
    """Find the levels of each effect; is_met: (n,) per effect, whether a record has one."""
    path, needed = f"model.random.{term}.relationship", np.logical_or.reduce(list(is_met))
    if not needed.any():
        raise DataError(f"{phenotypes.name}: found no record with a level of model.random.{term}; needed some")
    rows = np.flatnonzero(needed)
    group, names = code_classes(phenotypes, spec.within, f"{path}.within", needed)
    factor = _find_factor(phenotypes, path, spec, rows)
    placed = Placed(phenotypes, path, spec, rows, group, names)
    steps = find_steps(placed)
    if spec.of is not None:
        relationship, labels, level = _build_curve(placed, spec)
    else:
        relationship, labels, level = _build_part(placed, spec, steps, factor)
    levels = [np.where(met, level, -1).astype(np.int32) for met in is_met]
    return SplineLevels(relationship, labels, levels, None if factor is None else factor.in_records, steps)


def _build_curve(placed: Placed, spec: Section) -> tuple[Spline, LevelLabels, np.ndarray]:
    assert spec.of is not None, "it is a curve"
    phenotypes, path, _, rows, group, names = placed
    series = find_series(phenotypes, spec.of, f"{path}.of", rows, group)
    refuse_few_values(phenotypes, f"{path}.of", spec.of, spec.within, spec.order, series)
    sizes = np.bincount(series.within)
    _refuse_many(phenotypes, path, spec, sizes)
    low, high = float(series.values.min()), float(series.values.max())
    blocks = [
        curve_covariance(x, low, high, spec.segments, spec.degree, spec.order)
        for x in np.split(series.values, np.cumsum(sizes)[:-1])
    ]
    times = "" if spec.by is None else f", times {spec.by}"
    description = f"values of a P-spline over {spec.of}{times} ({_basis_words(spec)})"
    classes = names.gather(series.within)
    ids = join_ids(spec.within, classes, series.shown)
    every = np.arange(len(ids))
    curve = Curve(spec.of, spec.within, classes, series.values, every, series.number)
    labels = LevelLabels(ids, every, curve=curve if spec.by is None else None)
    return Spline.build(blocks, description), labels, series.number


def _build_part(
    placed: Placed, spec: Section, steps: FoundSteps, factor: Factor | None
) -> tuple[Spline, LevelLabels, np.ndarray]:
    """A part of a surface: its levels are the rows, the columns or the plots of each trial, with or without records."""
    phenotypes, path, names = placed.phenotypes, placed.path, placed.names
    field, plot, within, positions = build_field(placed, steps.of)
    key, of_factor = spec.keys_of_curve
    shapes = np.array(field.lattices)
    sizes = shapes.prod(axis=1) if key is None else shapes[:, 0 if key == "row" else 1]
    _refuse_many(phenotypes, path, spec, sizes)
    covariance = cache(surface_covariance if key is None else line_covariance)
    arguments = field.lattices if key is None else [(int(n),) for n in sizes]
    blocks = [covariance(*shape, spec.segments, spec.degree, spec.order) for shape in arguments]
    if not mean_variance(blocks) > 0:
        what = "rows and columns" if key is None else f"{key}s"
        raise DataError(
            f"{phenotypes.name}: found no trial with at least {spec.order + 1} {what} ({path}), over which a trend "
            "could be smooth; leave the effect out, or take parts that the trials have (part)"
        )
    place = np.arange(len(within)) - np.concatenate([[0], np.cumsum(shapes.prod(axis=1))])[within]
    line = {"row": place // shapes[within, 1], "column": place % shapes[within, 1], None: place}[key]
    level = np.concatenate([[0], np.cumsum(sizes)])[within] + line
    first = np.unique(level, return_index=True)[1]  # a plot of each level
    trial = names.gather(within)
    parts = [trial] if spec.within is not None else []
    parts += [positions[name].cast(pl.String) for name in (spec.directions if key is None else (key,))]
    ids = pl.select(pl.concat_str(parts, separator=":").alias("id")).to_series().gather(first)
    factors = np.ones(len(within)) if factor is None else factor.scale(positions[str(of_factor)].to_numpy())
    columns = (str(spec.row), str(spec.column), spec.within)
    surface = SurfacePart(spec.part or "surface", columns, name_plots(trial, positions), level, factors, plot)
    times = "" if of_factor is None else f", times {getattr(spec, of_factor)}"
    over = "a surface that is smooth over rows and columns" if key is None else f"a P-spline over {key}s{times}"
    labels = LevelLabels(ids, np.arange(len(ids)), surface=surface)
    of_record = np.where(plot >= 0, level[plot], -1)
    return Spline.build(blocks, f"values of {over} ({_basis_words(spec)})"), labels, of_record


def _basis_words(spec: Section) -> str:
    return (
        f"B-splines of degree {spec.degree} in {counted(spec.segments, 'segment')}, differences of order {spec.order}"
    )


class Factor(NamedTuple):
    """Multiplier of a curve: a column, less its mean and in its standard deviations over the records."""

    in_records: np.ndarray  # (n,) 0 where it is not needed
    mean: float
    sd: float

    def scale(self, values: np.ndarray) -> np.ndarray:
        """The factor at other values of the column."""
        return (values - self.mean) / self.sd


def _find_factor(phenotypes: Phenotypes, path: str, spec: Section, rows: np.ndarray) -> Factor | None:
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
    factor = Factor(np.zeros(len(phenotypes)), mean, sd)
    factor.in_records[rows] = factor.scale(values[rows])
    return factor


def _refuse_many(phenotypes: Phenotypes, path: str, spec: Section, sizes: np.ndarray) -> None:
    elements = int(np.sum(sizes.astype(float) ** 2))
    if elements > MAX_ELEMENTS:
        rounded = "values that are rounded" if spec.of is not None else "fewer trials in one analysis"
        sparse = "random_walk" if spec.of is not None else "ar1"
        raise DataError(
            f"{phenotypes.name}: found {counted(int(sizes.max()), 'point')} in the largest of "
            f"{counted(len(sizes), 'spline')} ({path}), which would take {elements:,} elements of an inverse, expected "
            f"at most {MAX_ELEMENTS:,}; needed {rounded}, or relationship {sparse}, whose inverse is sparse"
        )


def missing_planes(analysis: Analysis, term: str, spec: Section) -> list[str]:
    """A warning where a surface has no plane and no product of rows and columns in the fixed effects of a trait."""
    if spec.keys_of_curve[0] is not None or spec.order == 1 or spec.row is None or spec.column is None:
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
