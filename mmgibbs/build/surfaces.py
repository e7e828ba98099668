"""Trends of fields whose surfaces have several parts: which linear functions of the solutions they are.

The trend at a plot is the sum of the parts and of fixed covariates of rows and columns, less its mean over the plots of
the trial:

    trend = M [sum over parts of factor u_level + sum over fixed covariates of their value times b],   M = I - 1 1'/n
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mmgibbs.config import Analysis
from mmgibbs.config.effects import Fixed
from mmgibbs.data.prepared import Prepared, SurfacePart
from mmgibbs.posterior.adjusted_means import AdjustedMeans, Part
from mmgibbs.results.field import SurfaceTrend

ENDING = "_surface"


def trends_of_surfaces(analysis: Analysis, prepared: Prepared) -> tuple[SurfaceTrend, ...]:
    """Of each surface and trait."""
    surfaces: dict[tuple, list[int]] = {}
    for i, labels in enumerate(prepared.levels):
        if labels.surface is not None:
            surfaces.setdefault(labels.surface.columns, []).append(i)
    return tuple(
        _make(analysis, prepared, of_trait, int(t))
        for terms in surfaces.values()
        for t in sorted({t for i in terms for t in prepared.design.terms[i].effects[0].traits})
        if (of_trait := [i for i in terms if t in prepared.design.terms[i].effects[0].traits])
    )


def _make(analysis: Analysis, prepared: Prepared, parts: Sequence[int], t: int) -> SurfaceTrend:
    design = prepared.design
    surfaces = {i: surface for i in parts if (surface := prepared.levels[i].surface) is not None}
    last = max(surfaces, key=lambda i: surfaces[i].name == ENDING[1:])
    of = surfaces[last]
    planes = {
        i: section
        for i, term in enumerate(design.terms)
        if term.kind == "fixed" and t in term.effects[0].traits and (section := _find_plane(analysis, term.name, of))
    }
    name = design.terms[last].name.removesuffix(ENDING)
    number = of.plots["trial"].rle_id().to_numpy()
    trials = []
    for n, rows in enumerate(np.split(np.arange(len(number)), np.flatnonzero(np.diff(number)) + 1)):
        combined = [
            *(_random_part(prepared, i, surfaces[i], rows, t) for i in surfaces),
            *(part for i in planes for part in _fixed_parts(prepared, i, planes, of, rows, t)),
        ]
        centred = tuple(
            Part(part.term, part.component, part.codes, part.weights - part.weights.mean(axis=0)) for part in combined
        )
        known = of.plot[(of.plot >= 0) & np.isfinite(design.y[:, t])]
        records = np.bincount(known, minlength=len(number))[rows]
        levels = tuple(map(str, rows.tolist()))
        trials.append(AdjustedMeans(name, design.traits[t], levels, records, centred, None, trial=n))
    return SurfaceTrend(name, t, (*surfaces, *planes), of.plots, of.plot, tuple(trials))


def _random_part(prepared: Prepared, i: int, surface: SurfacePart, rows: np.ndarray, t: int) -> Part:
    codes, place = np.unique(surface.levels[rows], return_inverse=True)
    weights = np.zeros((rows.size, codes.size))
    weights[np.arange(rows.size), place] = surface.factors[rows]
    return Part(i, int(np.flatnonzero(prepared.design.terms[i].component_trait == t)[0]), codes, weights)


def _find_plane(analysis: Analysis, name: str, of: SurfacePart) -> Fixed | None:
    """The section of a fixed effect that is a polynomial of rows and columns, of all records or in each trial."""
    section = analysis.model.fixed.get(name)
    row, column, trial = of.columns
    if section is None or section.legendre is not None or not section.number_columns:
        return None
    is_inside = set(section.number_columns) <= {row, column} and set(section.class_columns) <= {trial}
    return section if is_inside else None


def _fixed_parts(
    prepared: Prepared, i: int, planes: Mapping[int, Fixed], of: SurfacePart, rows: np.ndarray, t: int
) -> Iterator[Part]:
    """Powers of rows, of columns, or their product, times the coefficients of the trial."""
    term = prepared.design.terms[i]
    met = np.flatnonzero(np.isin(of.plot, rows) & (term.effects[0].level >= 0))
    if not met.size:
        return
    code = term.effects[0].level[met[:1]].astype(np.int64)
    columns = dict(zip(of.columns[:2], ("row", "column"), strict=True))
    value = np.prod([of.plots[columns[c]].to_numpy()[rows] for c in planes[i].number_columns], axis=0).astype(float)
    for power, component in enumerate(np.flatnonzero(term.component_trait == t), 1):
        yield Part(i, int(component), code, (value**power)[:, None])
