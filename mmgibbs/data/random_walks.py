"""Values of a covariate in the records as the levels of a random walk (models/relationships/random_walk.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from mmgibbs.config import Analysis
from mmgibbs.config.effects import RandomEffect
from mmgibbs.config.smooth_relationships import RandomWalk as Section
from mmgibbs.config.smooth_relationships import Spline
from mmgibbs.data.phenotypes import Phenotypes
from mmgibbs.data.prepared import Curve, LevelLabels
from mmgibbs.data.series import Series, code_classes, find_series
from mmgibbs.errors import DataError
from mmgibbs.models.relationships.random_walk import RandomWalk
from mmgibbs.pedigree.tables import format_number, quoted

MAX_POINTS = 1_000  # of the curves of a term whose means are written: each pair has a covariance
# by the order: smallest distance of neighbouring values, as a share of the mean of it; K^-1, with elements 12 / h^3 of
# order 2, has at least four digits then
MIN_GAPS = {1: 1e-9, 2: 3e-4}


@dataclass(frozen=True)
class WalkLevels:
    """The levels of a curve."""

    relationship: RandomWalk
    labels: LevelLabels
    levels: list[np.ndarray]  # per effect (n,) int32, -1: none


def build_random_walk(phenotypes: Phenotypes, term: str, spec: Section, is_met: Sequence[np.ndarray]) -> WalkLevels:
    """Find the levels of each effect; is_met: (n,) per effect, whether a record has one."""
    path, needed = f"model.random.{term}.relationship", np.logical_or.reduce(list(is_met))
    if not needed.any():
        raise DataError(f"{phenotypes.name}: found no record with a level of model.random.{term}; needed some")
    group, names = code_classes(phenotypes, spec.within, f"{path}.within", needed)
    series = find_series(phenotypes, spec.of, f"{path}.of", np.flatnonzero(needed), group)
    refuse_few_values(phenotypes, f"{path}.of", spec.of, spec.within, spec.order, series)
    _refuse_close(phenotypes, path, spec, series)
    follows = series.gap > 0
    point = np.cumsum(follows) - 1  # of each value; where a curve begins there is none
    is_first = np.append(False, ~follows)[:-1][follows]
    relationship = RandomWalk.build(series.gap[follows], is_first, spec.order, spec.of)
    level = np.where(follows, point * spec.order, -1)
    levels = [np.where(met & (series.number >= 0), level[series.number], -1).astype(np.int32) for met in is_met]
    return WalkLevels(relationship, _label(spec, series, names, level), levels)


def _label(spec: Section, series: Series, names: pl.Series, level: np.ndarray) -> LevelLabels:
    """Ids such as 'A:12', of slopes 'A:12:slope', which are not reported."""
    classes = names.gather(series.within)
    ids = join_ids(spec.within, classes, series.shown)
    points = ids.filter(pl.Series(level >= 0))
    if spec.order == 2:
        both = pl.DataFrame({"id": points, "slope": points + ":slope"})
        points = both.select(pl.concat_list(pl.all()).alias("id")).explode("id")["id"]
    curve = Curve(spec.of, spec.within, classes, series.values, level, series.number)
    return LevelLabels(points.rename("id"), level[level >= 0], curve=curve)


def join_ids(within: str | None, classes: pl.Series, shown: pl.Series) -> pl.Series:
    """'12', or 'A:12' of curves of several classes."""
    joined = pl.concat_str(classes, shown, separator=":").alias("id")
    return shown if within is None else pl.select(joined).to_series()


def refuse_few_values(
    phenotypes: Phenotypes, path: str, column: str, within: str | None, order: int, series: Series
) -> None:
    """DataError where every curve is a polynomial, of a degree less than the order."""
    most = int(np.bincount(series.within).max())
    if most > order:
        return
    of_class = "" if within is None else f" in any level of {quoted(within)}"
    constant = "a constant, which the intercept is"
    polynomial = constant if order == 1 else "a line, which a covariate is" if order == 2 else "a polynomial"
    raise DataError(
        f"{phenotypes.name}: found at most {most} distinct value{'s' if most > 1 else ''} in column {quoted(column)}"
        f"{of_class} ({path}); needed at least {order + 1} for a curve that is not {polynomial}: leave the "
        "effect out"
    )


def _refuse_close(phenotypes: Phenotypes, path: str, spec: Section, series: Series) -> None:
    """DataError for values that differ by next to nothing, as by rounding."""
    mean = float(series.gap[series.gap > 0].mean())
    at = np.flatnonzero((series.gap > 0) & (series.gap < MIN_GAPS[spec.order] * mean))
    if at.size:
        i = int(at[0])
        low, high = (format_number(series.values[j]) for j in (i - 1, i))
        digits = 2 - int(np.floor(np.log10(mean)))
        raise DataError(
            f"{phenotypes.name}: found {low} and {high} in column {quoted(spec.of)} ({path}.of), which are too close "
            f"for a curve through values {mean:.2g} apart on average; needed values rounded to multiples of "
            f"{10.0**-digits:g}, say, which changes no curve that can be seen"
        )


def missing_polynomial(analysis: Analysis, term: str, spec: Section | Spline) -> list[str]:
    """A warning where a curve of order 2 for all records has no slope in the model."""
    if spec.order == 1 or spec.within is not None or spec.of is None or getattr(spec, "by", None) is not None:
        return []
    traits = {trait for effect in analysis.model.random[term].effects.values() for trait in effect.traits}
    with_slope = {
        trait for fixed in analysis.model.fixed.values() if fixed.number_columns == (spec.of,) for trait in fixed.traits
    }
    lacking = [trait.name for trait in analysis.traits if trait.name in traits - with_slope]
    if not lacking:
        return []
    what = "begins with slope 0" if isinstance(spec, Section) else "has no line of its own"
    return [
        f"model.random.{term}: the curve over {spec.of} {what} for {', '.join(lacking)}, since "
        f"model.fixed has no covariate {spec.of}; needed model.fixed: {{{spec.of}: {{kind: covariate}}}} for a curve "
        "with any slope"
    ]


def unwritten_curves(analysis: Analysis, term: str, labels: LevelLabels) -> list[str]:
    """A note where the means along the curves of a term are not written."""
    if labels.curve is None:
        return []
    effects = list(analysis.model.random[term].effects.values())
    n, rest = len(labels.curve.values), "; deviations from the fixed effects are in the solutions"
    if n > MAX_POINTS:
        return [
            f"model.random.{term}: smooths.csv has no curves of {n:,} points, of which each pair has a covariance (at "
            f"most {MAX_POINTS:,}){rest}"
        ]
    if not has_means(effects):
        return [f"model.random.{term}: smooths.csv has no curves of an effect with covariates, or of several{rest}"]
    return []


def has_means(effects: Sequence[RandomEffect]) -> bool:
    """A curve is added to the records as it is, once."""
    return len(effects) == 1 and effects[0].covariates is None and effects[0].legendre is None
