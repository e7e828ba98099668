"""Curves of terms over a covariate (`relationship: random_walk`): which linear functions of the solutions they are.

A curve is the mean of a trait along the covariate: the levels of the term, the covariate itself where it is a fixed
effect, and other fixed effects averaged as in adjusted means.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from mmgibbs.build.estimable_functions import find_not_estimable, list_fixed, raw_covariates
from mmgibbs.build.marginal_weights import Classes, Weights, weigh_classes
from mmgibbs.build.means import average, class_columns, classes_of_terms, component_of_trait
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
    """Of a fixed term: at the value of the covariate where it has that, else averaged."""
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
