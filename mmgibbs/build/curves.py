"""Curves of terms over a covariate (`relationship: random_walk`): which linear functions of the solutions they are.

A curve is the mean of a trait along the covariate: the levels of the term, the covariate itself where it is a fixed
effect, and other fixed effects averaged as in adjusted means.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mmgibbs.build.means import average, class_columns, component_of_trait, find_not_estimable, raw_covariates
from mmgibbs.config import Analysis
from mmgibbs.data.prepared import Curve, Prepared
from mmgibbs.data.random_walks import MAX_POINTS, has_means
from mmgibbs.posterior.adjusted_means import AdjustedMeans, Part


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
    """None where the records do not determine the curve."""
    design = prepared.design
    term = design.terms[index]
    rows = np.flatnonzero(design.patterns[:, t][design.pattern] & (curve.number >= 0))
    records = np.bincount(curve.number[rows], minlength=len(curve.values))
    met = np.flatnonzero(curve.levels >= 0)
    selected = np.zeros((len(curve.values), met.size))
    selected[met, np.arange(met.size)] = 1.0
    parts = [Part(index, component_of_trait(term, t), curve.levels[met], selected)]
    for i, other in enumerate(design.terms):
        if i != index and other.kind == "fixed" and t in other.effects[0].traits:
            parts += _fixed_parts(i, t, rows, curve, analysis, prepared)
    means = AdjustedMeans(
        term.name, design.traits[t], _names(curve), records, tuple(parts), (index, parts[0].component), is_curve=True
    )
    return None if find_not_estimable(means, design, t, rows).size else means


def _names(curve: Curve) -> tuple[str, ...]:
    return tuple(f"{name}:{value}" for name, value in zip(curve.classes, curve.values, strict=True))


def _fixed_parts(
    i: int, t: int, rows: np.ndarray, curve: Curve, analysis: Analysis, prepared: Prepared
) -> Iterator[Part]:
    """Of a fixed term: at the value of the covariate, in the class of the curve; averaged where it has neither."""
    design = prepared.design
    term = design.terms[i]
    of_class = curve.within is not None and curve.within in class_columns(analysis, term)
    section = analysis.model.fixed.get(term.name)
    classes = curve.class_of_value
    of_record = classes[curve.number[rows]]
    if section is None or curve.column not in section.number_columns:
        within = (of_record, np.arange(classes.max() + 1)) if of_class else None
        for part in average(design, i, t, rows, within):
            weights = part.weights[classes] if of_class else part.weights
            yield Part(part.term, part.component, part.codes, weights)
        return
    level = term.effects[0].level
    components = np.flatnonzero(term.component_trait == t)
    first = np.full(len(curve.values), -1, np.int64)  # a record of each value
    known = np.flatnonzero((curve.number >= 0) & (level >= 0))
    first[curve.number[known[::-1]]] = known[::-1]
    values = np.zeros((len(curve.values), components.size))
    values[first >= 0] = raw_covariates(design, i, components, first[first >= 0])
    if of_class or term.n_levels == 1:
        codes, place = np.unique(level[first[first >= 0]], return_inverse=True)
        chosen = np.zeros((len(curve.values), codes.size))
        chosen[np.flatnonzero(first >= 0), place] = 1.0
    else:
        codes = np.unique(level[rows][level[rows] >= 0])
        chosen = np.full((len(curve.values), codes.size), 1.0 / codes.size)
    for c, x in zip(components, values.T, strict=True):
        yield Part(i, int(c), codes, x[:, None] * chosen)
