"""Records whose residuals are correlated: plots of a field, successive times, adjusted means of a first analysis.

Keys `relationship` and `known` of `variances.residual`. Each trait and class of residuals has a matrix K of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from mmgibbs.config import Analysis
from mmgibbs.config.smooth_relationships import Autoregression
from mmgibbs.data.autoregression import build_autoregression
from mmgibbs.data.known_residuals import read_known_residuals
from mmgibbs.data.phenotypes import SHOWN, Phenotypes, refuse_repeated, refuse_rows
from mmgibbs.data.series import code_classes
from mmgibbs.data.steps import Distances, FoundSteps, Placed, choose_steps, describe_steps, find_distances
from mmgibbs.data.traits import Records
from mmgibbs.models.relationships.base import Relationship
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.residual import CorrelatedRecords

PATH = "variances.residual"


class CorrelatedResiduals(NamedTuple):
    """Residuals that are correlated between records."""

    records: tuple[CorrelatedRecords, ...] = ()  # of each trait and class
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    steps: dict[str, float] = {}  # column -> distance of neighbours


class _Series(NamedTuple):
    """The records of one trait and class, and how they are correlated."""

    place: str  # YAML path
    kind: object
    is_met: np.ndarray
    trait: int
    residual_class: int
    label: str  # of the class, or the trait


def correlated_residuals(
    analysis: Analysis, records: Records, classes: tuple[tuple[str, ...], np.ndarray] | None
) -> CorrelatedResiduals:
    """Return the records of each trait and class, none where residuals are independent.

    classes: names of the classes of residuals, and the class of each record. DataError for a record with several
    traits, and for two records of one cell.
    """
    residual = analysis.variances.residual
    if residual.known is None and not residual.relationships:
        return CorrelatedResiduals()
    key = "known" if residual.known is not None else "relationship"
    _refuse_several_traits(records, f"{PATH}.{key}")
    if residual.known is not None:
        correlated, of_means = read_known_residuals(residual.known, records)
        return CorrelatedResiduals(correlated, warnings=of_means)
    names, class_of_record = classes or (("",), np.zeros(len(records.phenotypes), np.int32))
    several = []
    for c, name in enumerate(names):
        section, kind, place = residual.classes.get(name), residual.relationship, PATH
        if section is not None and "relationship" in section.model_fields_set:
            kind, place = section.relationship, f"{PATH}.classes.{name}"
        for t in range(len(analysis.traits)):
            is_met = records.observed[:, t] & (class_of_record == c)
            if is_met.any():
                several.append(_Series(place, kind, is_met, t, c, name or analysis.traits[t].name))
    steps = _find_common_steps(records.phenotypes, several)
    built = tuple(_correlate(records, series, steps[series.place]) for series in several)
    notes = [text for found in steps.values() for text in found.notes]
    warnings = [text for found in steps.values() for text in found.warnings]
    lengths = {
        f"{column}|{series.label}" if len(steps) > 1 else column: length
        for series in several
        for column, length in steps[series.place].lengths.items()
    }
    return CorrelatedResiduals(built, notes, warnings, lengths)


def _find_common_steps(phenotypes: Phenotypes, several: Sequence[_Series]) -> dict[str, FoundSteps]:
    """Path of a relationship -> its steps: one for all classes and traits that have a column in common, unless a
    relationship states its own."""
    distances: list[tuple[Autoregression, dict[str, Distances]]] = []
    for series in several:
        if isinstance(series.kind, Autoregression):
            path, rows = f"{series.place}.relationship", np.flatnonzero(series.is_met)
            group, names = code_classes(phenotypes, series.kind.within, f"{path}.within", series.is_met)
            shown = names if series.kind.within is not None else pl.Series("id", [series.label])
            found = find_distances(Placed(phenotypes, path, series.kind, rows, group, shown))
            distances.append((series.kind, found))
    steps = {}
    for series in several:
        kind, path = series.kind, f"{series.place}.relationship"
        if not isinstance(kind, Autoregression):
            steps[series.place] = FoundSteps({})
        elif series.place not in steps:
            pool = [
                {key: values for key, values in found.items() if _have_common_step(kind, other, key)}
                for other, found in distances
            ]
            steps[series.place] = describe_steps(kind, choose_steps(kind, path, phenotypes.name, pool), path, pool)
    return steps


def _have_common_step(kind: Autoregression, other: Autoregression, key: str) -> bool:
    if key in kind.stated_steps or key in other.stated_steps:
        return kind == other
    return getattr(kind, key) == getattr(other, key)


def _correlate(records: Records, series: _Series, steps: FoundSteps) -> CorrelatedRecords:
    """The records of one trait and class, their cells and K."""
    rows = np.flatnonzero(series.is_met)
    relationship: Relationship = Identity(rows.size)
    cells = np.arange(rows.size)
    if isinstance(series.kind, Autoregression):
        built = build_autoregression(records.phenotypes, series.place, series.kind, [series.is_met], steps)
        relationship, cells = built.relationship, built.levels[0][rows].astype(np.int64)
        ids, what = built.ids.to_list(), "time" if built.plots is None else "plot"
        refuse_repeated(
            records.phenotypes,
            rows.tolist(),
            cells.tolist(),
            lambda cell: f"{what} '{ids[cell]}'",
            f"{series.place}.relationship",
            f"one record for each {what}, where the residuals have no nugget; name the column of the trials in within, "
            "or write the relationship below a random effect",
        )
    return CorrelatedRecords(series.trait, series.residual_class, relationship, rows, cells)


def _refuse_several_traits(records: Records, path: str) -> None:
    several = np.flatnonzero(records.observed.sum(axis=1) > 1)
    if several.size:
        raise refuse_rows(
            records.phenotypes.name,
            records.phenotypes.rows[several],
            [f"found values of several traits ({path})"] * SHOWN,
            "one trait in each row, such as {TRAIT: {by: COLUMN}} has, where residuals of records are correlated",
        )
