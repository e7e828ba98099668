"""Which adjusted means a model has (`output.means`): the linear functions of its solutions, and what is estimable."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr

from mmgibbs.config import Analysis
from mmgibbs.data.natural_order import natural_order
from mmgibbs.data.prepared import Prepared
from mmgibbs.errors import ConfigError
from mmgibbs.models.design import Design
from mmgibbs.models.terms import Term
from mmgibbs.posterior.adjusted_means import AdjustedMeans, Part

MAX_LEVELS = 3_000  # of an effect: each pair has a covariance
NOT_ESTIMABLE = 1e-6  # share of a random direction of which the records say nothing


def adjusted_means(analysis: Analysis, prepared: Prepared) -> tuple[AdjustedMeans, ...]:
    """Of each effect in `output.means`, trait by trait. ConfigError for an effect that has no means."""
    return tuple(means for name in analysis.output.means for means in _means_of_effect(name, analysis, prepared))


def _means_of_effect(name: str, analysis: Analysis, prepared: Prepared) -> list[AdjustedMeans]:
    design, path = prepared.design, f"output.means: {name}"
    index = next(i for i, term in enumerate(design.terms) if term.name == name)
    term, labels = design.terms[index], prepared.levels[index]
    if len(term.effects) > 1 or term.effects[0].covariates is not None:
        raise ConfigError(f"{path}: expected an effect of classes, got one with covariates or several effects")
    if labels.curve is not None:
        raise ConfigError(f"{path}: expected an effect of classes, got a curve; smooths.csv has its means")
    if labels.n_groups:
        raise ConfigError(f"{path}: expected levels without unknown-parent groups, which solutions.csv has as they are")
    if term.n_levels > MAX_LEVELS:
        raise ConfigError(
            f"{path}: expected at most {MAX_LEVELS:,} levels, of which every pair has a covariance; got "
            f"{term.n_levels:,}. Their effects are in solutions.csv"
        )
    for response in design.responses:
        if response.trait in term.effects[0].traits:
            raise ConfigError(
                f"{path}: expected normal traits, got {design.traits[response.trait]} with a liability; "
                "output.probabilities has its categories"
            )
    return [_make(index, t, analysis, prepared) for t in term.effects[0].traits]


def _make(index: int, t: int, analysis: Analysis, prepared: Prepared) -> AdjustedMeans:
    design, labels = prepared.design, prepared.levels[index]
    term = design.terms[index]
    rows = np.flatnonzero(design.patterns[:, t][design.pattern])
    ids = labels.ids.to_list()
    order = np.array(natural_order(ids), np.int64)
    level = term.effects[0].level[rows]
    records = np.bincount(level[level >= 0], minlength=term.n_levels)
    if term.kind == "fixed":
        order = order[records[order] > 0]
    columns = class_columns(analysis, term)
    parts = [Part(index, component_of_trait(term, t), order, np.eye(order.size))]
    for i, other in enumerate(design.terms):
        if i == index or other.kind != "fixed" or t not in other.effects[0].traits:
            continue
        shared = bool(set(columns) & set(class_columns(analysis, other)))
        within = (level, order) if shared else None
        parts += average(design, i, t, rows, within)
    random = None if term.kind == "fixed" else (index, component_of_trait(term, t))
    means = AdjustedMeans(
        term.name, design.traits[t], tuple(ids[i] for i in order), records[order], tuple(parts), random
    )
    _refuse_not_estimable(means, design, t, rows)
    return means


def component_of_trait(term: Term, t: int) -> int:
    """The first component of the trait."""
    return int(np.flatnonzero(term.component_trait == t)[0])


def class_columns(analysis: Analysis, term: Term) -> tuple[str, ...]:
    """Columns whose classes the levels of the term are."""
    if term.name in analysis.model.fixed:
        return analysis.model.fixed[term.name].class_columns
    if term.name in analysis.model.random:
        return next(iter(analysis.model.random[term.name].effects.values())).level_columns
    return ()


def average(
    design: Design, i: int, t: int, rows: np.ndarray, within: tuple[np.ndarray, np.ndarray] | None
) -> list[Part]:
    """A fixed term averaged over its levels, and its covariates over the records of the trait.

    within: level of the effect in each record, and the levels that have a mean, where the term is an interaction with
    it: each mean then has the levels of the term that its records have.
    """
    term = design.terms[i]
    level = term.effects[0].level[rows]
    known = level >= 0
    if within is None:
        weights = (np.bincount(level[known], minlength=term.n_levels) > 0)[None].astype(float)
    else:
        of_effect, order = within
        occurs = sp.coo_array(
            (np.ones(known.sum()), (of_effect[known], level[known])), (order.max() + 1, term.n_levels)
        )
        weights = (occurs.tocsr()[order].toarray() > 0).astype(float)
    total = weights.sum(axis=1, keepdims=True)
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    codes = np.flatnonzero(weights.any(axis=0))
    weights = weights[:, codes]
    components = np.flatnonzero(term.component_trait == t)
    if term.effects[0].covariates is None:
        return [Part(i, int(components[0]), codes, weights)]
    values = raw_covariates(design, i, components, rows[known]).mean(axis=0)
    return [Part(i, int(c), codes, x * weights) for c, x in zip(components, values, strict=True)]


def raw_covariates(design: Design, i: int, components: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(rows, m) covariates of a term on the user's scale: not orthonormal, not centred."""
    effect = design.terms[i].effects[0]
    assert effect.covariates is not None
    values = effect.covariates[rows].astype(np.float64)
    for r in design.rescale:
        if r.term == i and set(r.components) == set(components.tolist()):
            values = np.linalg.solve(r.matrix.T, values.T).T
    for s in design.shifts:
        if s.source == i and set(s.source_components) == set(components.tolist()):
            return values + s.means[effect.level[rows]]
    return values


def _refuse_not_estimable(means: AdjustedMeans, design: Design, t: int, rows: np.ndarray) -> None:
    """ConfigError where the records do not determine a mean: an interaction without records of some combinations."""
    lost = find_not_estimable(means, design, t, rows)
    if lost.size:
        names = ", ".join(means.levels[i] for i in lost[:5]) + (", ..." if lost.size > 5 else "")
        raise ConfigError(
            f"output.means: {means.effect}: expected means that the records determine, got {lost.size:,} of "
            f"{means.trait} that they do not ({names}): some combinations of classes have no records. Leave out an "
            "interaction, or take the solutions as they are"
        )


def find_not_estimable(means: AdjustedMeans, design: Design, t: int, rows: np.ndarray) -> np.ndarray:
    """Numbers of the means that these records do not determine.

    A direction of the fixed effects of which the records say nothing is z less its projection on the rows of X; a mean
    is estimable if it is 0 in a random one of these.
    """
    fixed = [i for i, term in enumerate(design.terms) if term.kind == "fixed" and t in term.effects[0].traits]
    parts = [part for part in means.parts if part.term in fixed]
    X, first = [], {}
    places = 0
    for i in fixed:
        term, level = design.terms[i], design.terms[i].effects[0].level[rows]
        components = np.flatnonzero(term.component_trait == t)
        known = np.flatnonzero(level >= 0)
        ones = np.ones((len(rows), 1))
        values = ones if term.effects[0].covariates is None else raw_covariates(design, i, components, rows)
        for c, x in zip(components, values.T, strict=True):
            first[i, int(c)] = places
            X.append(sp.csr_array((x[known], (known, level[known])), shape=(len(rows), term.n_levels)))
            places += term.n_levels
    if not parts:
        return np.zeros(0, np.int64)
    matrix = sp.csr_array(sp.hstack(X))
    scale = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=0)).ravel())
    scale[scale == 0] = 1.0
    matrix = sp.csr_array(matrix @ sp.diags_array(1 / scale))
    z = np.random.default_rng(1).standard_normal(places)
    unknown = z - lsqr(matrix, matrix @ z, atol=1e-14, btol=1e-14, iter_lim=20 * places)[0]
    unknown /= scale
    found, size = np.zeros(len(means.levels)), np.zeros(len(means.levels))
    for part in parts:
        at = first[part.term, part.component] + part.codes
        found = found + part.weights @ unknown[at]
        size = size + np.abs(part.weights) @ np.abs(z[at] / scale[at])
    return np.flatnonzero(np.abs(found) > NOT_ESTIMABLE * size)


def form_matrix(parts: Sequence[Part], n: int, first: np.ndarray, components: Sequence[int]) -> sp.csr_array:
    """(n, places): the means as functions of the flat vector of all solutions, in model order.

    first: (terms + 1,) place of each term; components: their number in each term.
    """
    K = sp.csr_array((n, int(first[-1])))
    for part in parts:
        at = first[part.term] + part.codes * components[part.term] + part.component
        weights = np.broadcast_to(part.weights, (n, part.codes.size))
        rows, columns = np.nonzero(weights)
        K = K + sp.csr_array((weights[rows, columns], (rows, at[columns])), shape=K.shape)
    return sp.csr_array(K)
