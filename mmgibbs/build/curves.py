"""Curves over a covariate (`relationship: random_walk`) and trends of fields, as linear functions of the solutions.

A curve is the mean of a trait along the covariate: the levels of the term, the covariate itself where it is a fixed
effect, and other fixed effects averaged as in adjusted means.

The trend of a field at a plot is the sum of the parts and of fixed covariates of rows and columns, less its mean
over the plots of the trial:

    trend = M [sum over parts of factor u_level + sum over fixed covariates of their value times b],   M = I - 1 1'/n
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import scipy.sparse as sp

from mmgibbs.build.marginal_weights import Classes, Weights, weigh_classes
from mmgibbs.build.means import (
    average,
    class_columns,
    classes_of_terms,
    component_of_trait,
    find_not_estimable,
    list_fixed,
    raw_covariates,
)
from mmgibbs.config import Analysis
from mmgibbs.config.effects import Fixed
from mmgibbs.data.prepared import Curve, Prepared, SurfacePart
from mmgibbs.data.random_walks import MAX_POINTS, has_means
from mmgibbs.posterior.adjusted_means import AdjustedMeans, Part
from mmgibbs.results.field import SurfaceTrend


def curves_of_terms(analysis: Analysis, prepared: Prepared) -> tuple[tuple[AdjustedMeans, ...], list[str]]:
    """The curves of every such term, trait by trait, and notes on those that there are none of."""
    curves, notes = [], []
    for index, labels in enumerate(prepared.levels):
        if labels.curve is None:
            continue
        term = prepared.design.terms[index]
        effects = list(analysis.model.random[term.name].effects.values())
        if len(labels.curve.values) > MAX_POINTS or not has_means(effects):
            continue  # a note of the data says so
        for trait in term.effects[0].traits:
            curve = _make(index, int(trait), labels.curve, analysis, prepared)
            if curve is None:
                notes.append(
                    f"model.random.{term.name}: no curve of {prepared.design.traits[trait]} is written, as the records "
                    "do not determine the mean at each point: some combinations of classes have no records"
                )
            else:
                curves.append(curve)
    return tuple(curves), notes


def _make(index: int, t: int, curve: Curve, analysis: Analysis, prepared: Prepared) -> AdjustedMeans | None:
    """Build the means of a curve; None where the records do not determine it."""
    design = prepared.design
    term = design.terms[index]
    rows = np.flatnonzero(design.patterns[:, t][design.pattern] & (curve.number >= 0))
    records = np.bincount(curve.number[rows], minlength=len(curve.values))
    met = np.flatnonzero(curve.levels >= 0)
    selected = np.zeros((len(curve.values), met.size))
    selected[met, np.arange(met.size)] = 1.0
    parts = [Part(index, component_of_trait(term, t), curve.levels[met], selected)]
    effects = {i: design.terms[i] for i in list_fixed(design, t)}
    columns = {i: class_columns(analysis, other) for i, other in effects.items()}
    sharing = [i for i in effects if curve.within is not None and curve.within in columns[i]]
    classes = Classes(curve.class_of_value[curve.number[rows]], int(curve.class_of_value.max()) + 1)
    weights = weigh_classes(classes, curve.class_of_value, classes_of_terms(effects, rows), sharing)
    for i in effects:
        parts += _fixed_parts(i, t, rows, curve, weights.weights[i], analysis, prepared)
    means = AdjustedMeans(
        term.name, design.traits[t], _names(curve), records, tuple(parts), (index, parts[0].component), is_curve=True
    )
    is_lost = sum(find_not_estimable(parts, len(records), design, t, rows).values(), start=np.zeros(len(records)))
    return None if is_lost.any() or any(lacks.any() for lacks in weights.lacks.values()) else means


def _names(curve: Curve) -> tuple[str, ...]:
    return tuple(f"{name}:{value}" for name, value in zip(curve.classes, curve.values, strict=True))


def _fixed_parts(
    i: int, t: int, rows: np.ndarray, curve: Curve, weights: Weights, analysis: Analysis, prepared: Prepared
) -> Iterator[Part]:
    """Average a fixed term, or take the value of the covariate where it has that."""
    design = prepared.design
    term = design.terms[i]
    section = analysis.model.fixed.get(term.name)
    if section is None or curve.column not in section.number_columns:
        yield from average(design, i, t, rows, weights)
        return
    level = term.effects[0].level
    components = np.flatnonzero(term.component_trait == t)
    first = np.full(len(curve.values), -1, np.int64)  # a record of each value
    known = np.flatnonzero((curve.number >= 0) & (level >= 0))
    first[curve.number[known[::-1]]] = known[::-1]
    values = np.zeros((len(curve.values), components.size))
    values[first >= 0] = raw_covariates(design, i, components, first[first >= 0])
    weights = sp.csr_array(weights)
    for c, x in zip(components, values.T, strict=True):
        yield Part(i, int(c), np.arange(term.n_levels), sp.csr_array(weights.multiply(x[:, None])))


ENDING = "_surface"


def trends_of_surfaces(analysis: Analysis, prepared: Prepared) -> tuple[SurfaceTrend, ...]:
    """List the trend of each surface and trait."""
    surfaces: dict[tuple, list[int]] = {}
    for i, labels in enumerate(prepared.levels):
        if labels.surface is not None:
            surfaces.setdefault(labels.surface.columns, []).append(i)
    return tuple(
        _make_trends(analysis, prepared, of_trait, int(t))
        for terms in surfaces.values()
        for t in sorted({t for i in terms for t in prepared.design.terms[i].effects[0].traits})
        if (of_trait := [i for i in terms if t in prepared.design.terms[i].effects[0].traits])
    )


def _make_trends(analysis: Analysis, prepared: Prepared, parts: Sequence[int], t: int) -> SurfaceTrend:
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
            *(part for i in planes for part in _trend_parts(prepared, i, planes, of, rows, t)),
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


def _trend_parts(
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
