"""Records whose residuals are correlated: plots of a field, successive times, adjusted means of a first analysis.

Keys `relationship` and `known` of `variances.residual`. Each trait and class of residuals has a matrix K of its own.
"""

from __future__ import annotations

import numpy as np

from mmgibbs.config import Analysis
from mmgibbs.config.smooth_relationships import Autoregression
from mmgibbs.data.autoregression import build_autoregression
from mmgibbs.data.known_residuals import read_known_residuals
from mmgibbs.data.phenotypes import SHOWN, refuse_repeated, refuse_rows
from mmgibbs.data.traits import Records
from mmgibbs.models.relationships.base import Relationship
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.residual import CorrelatedRecords

PATH = "variances.residual"


def correlated_residuals(
    analysis: Analysis, records: Records, classes: tuple[tuple[str, ...], np.ndarray] | None
) -> tuple[tuple[CorrelatedRecords, ...], tuple[str, ...]]:
    """Return the records of each trait and class, () where residuals are independent, and warnings.

    classes: names of the classes of residuals, and the class of each record. DataError for a record with several
    traits, and for two records of one cell.
    """
    residual = analysis.variances.residual
    if residual.known is None and not residual.relationships:
        return (), ()
    key = "known" if residual.known is not None else "relationship"
    _refuse_several_traits(records, f"{PATH}.{key}")
    if residual.known is not None:
        return read_known_residuals(residual.known, records)
    names, class_of_record = classes or (("",), np.zeros(len(records.phenotypes), np.int32))
    built = []
    for c, name in enumerate(names):
        section, kind, place = residual.classes.get(name), residual.relationship, PATH
        if section is not None and "relationship" in section.model_fields_set:
            kind, place = section.relationship, f"{PATH}.classes.{name}"
        for t in range(len(analysis.traits)):
            is_met = records.observed[:, t] & (class_of_record == c)
            if is_met.any():
                built.append(_correlate(records, place, kind, is_met, t, c))
    return tuple(built), ()


def _correlate(
    records: Records, place: str, kind: object, is_met: np.ndarray, trait: int, residual_class: int
) -> CorrelatedRecords:
    """The records of one trait and class, their cells and K."""
    rows = np.flatnonzero(is_met)
    relationship: Relationship = Identity(rows.size)
    cells = np.arange(rows.size)
    if isinstance(kind, Autoregression):
        built = build_autoregression(records.phenotypes, place, kind, [is_met])
        relationship, cells = built.relationship, built.levels[0][rows].astype(np.int64)
        ids, what = built.ids.to_list(), "time" if built.plots is None else "plot"
        refuse_repeated(
            records.phenotypes,
            rows.tolist(),
            cells.tolist(),
            lambda cell: f"{what} '{ids[cell]}'",
            f"{place}.relationship",
            f"one record for each {what}, where the residuals have no nugget; name the column of the trials in within, "
            "or write the relationship below a random effect",
        )
    return CorrelatedRecords(trait, residual_class, relationship, rows, cells)


def _refuse_several_traits(records: Records, path: str) -> None:
    several = np.flatnonzero(records.observed.sum(axis=1) > 1)
    if several.size:
        raise refuse_rows(
            records.phenotypes.name,
            records.phenotypes.rows[several],
            [f"found values of several traits ({path})"] * SHOWN,
            "one trait in each row, such as {TRAIT: {by: COLUMN}} has, where residuals of records are correlated",
        )
