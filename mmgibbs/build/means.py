"""Adjusted means (`output.means`) as linear functions of the solutions, and whether the records determine them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr

from mmgibbs.build.marginal_weights import Classes, MarginalWeights, Weights, weigh_classes
from mmgibbs.config import Analysis
from mmgibbs.data.levels import natural_order
from mmgibbs.data.prepared import Prepared
from mmgibbs.errors import ConfigError
from mmgibbs.models.design import Design
from mmgibbs.models.terms import Term
from mmgibbs.pedigree.tables import agreeing, counted, quoted
from mmgibbs.posterior.adjusted_means import AdjustedMeans, EmptyMean, Part

NOT_ESTIMABLE = 1e-6  # share of a random direction of which the records say nothing


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


def find_not_estimable(
    parts: Sequence[Part], n: int, design: Design, t: int, rows: np.ndarray
) -> dict[int, np.ndarray]:
    """Fixed term -> (n,) bool: it makes that function of the solutions one that these records do not determine.

    A direction of the fixed effects of which the records say nothing is z less its projection on the rows of X; a
    function is estimable if it is 0 in a random one of these. Effects with a normal prior have no such direction.
    """
    matrix, first = _flat_columns(design, t, rows)
    scale = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=0)).ravel())
    scale[scale == 0] = 1.0
    matrix = sp.csr_array(matrix @ sp.diags_array(1 / scale))
    z = np.random.default_rng(1).standard_normal(scale.size)
    unknown = z - lsqr(matrix, matrix @ z, atol=1e-14, btol=1e-14, iter_lim=20 * scale.size)[0] if z.size else z
    unknown /= scale
    found: dict[int, np.ndarray] = {}
    size = np.zeros(n)
    for part in parts:
        if (part.term, part.component) in first:
            at = first[part.term, part.component] + part.codes
            found[part.term] = found.get(part.term, np.zeros(n)) + part.weights @ unknown[at]
            size = size + abs(part.weights) @ np.abs(z[at] / scale[at])
    limit = NOT_ESTIMABLE * size
    is_lost = np.abs(sum(found.values(), start=np.zeros(n))) > limit
    return {term: is_lost & (np.abs(values) > limit) for term, values in found.items()}


def _flat_columns(design: Design, t: int, rows: np.ndarray) -> tuple[sp.csr_array, dict[tuple[int, int], int]]:
    """X of the fixed effects without a prior, on the user's scale; (term, component) -> its first column."""
    columns, first, places = [sp.csr_array((len(rows), 0))], {}, 0
    for i in list_fixed(design, t):
        term, level = design.terms[i], design.terms[i].effects[0].level[rows]
        components = np.flatnonzero(term.component_trait == t)
        known = np.flatnonzero(level >= 0)
        ones = np.ones((len(rows), 1))
        values = ones if term.effects[0].covariates is None else raw_covariates(design, i, components, rows)
        for c, x in zip(components, values.T, strict=True):
            if (precision := term.prior.precision) is not None and precision[c, c] > 0:
                continue
            first[i, int(c)] = places
            columns.append(sp.csr_array((x[known], (known, level[known])), shape=(len(rows), term.n_levels)))
            places += term.n_levels
    return sp.csr_array(sp.hstack(columns)), first


def list_fixed(design: Design, t: int) -> list[int]:
    """Numbers of the fixed terms of a trait."""
    return [i for i, term in enumerate(design.terms) if term.kind == "fixed" and t in term.effects[0].traits]


def name_confounded(names: Sequence[str]) -> str:
    """Say which effects the records do not separate."""
    shown = [name for name in names if name != "intercept"] or list(names)
    listed = ", ".join(shown[:-1]) + (" and " if len(shown) > 1 else "") + shown[-1]
    return f"the records do not separate {listed}" if len(shown) > 1 else f"the records do not determine {listed}"


MAX_LEVELS = 3_000  # of an effect: each pair has a covariance
SHOWN = 3  # levels in a message


def adjusted_means(analysis: Analysis, prepared: Prepared) -> tuple[tuple[AdjustedMeans, ...], list[str]]:
    """List the means of each effect in `output.means`, trait by trait, and notes on them.

    ConfigError for an effect that has no means.
    """
    made, notes = [], []
    for name in analysis.output.means:
        index = _find_effect(name, prepared)
        for t in prepared.design.terms[index].effects[0].traits:
            means, of_means = _make(index, int(t), analysis, prepared)
            made.append(means)
            notes += of_means
    return tuple(made), list(dict.fromkeys(notes))


def _find_effect(name: str, prepared: Prepared) -> int:
    """Return the number of its term. ConfigError where its levels have no means."""
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
    return index


def _make(index: int, t: int, analysis: Analysis, prepared: Prepared) -> tuple[AdjustedMeans, list[str]]:
    """Return the means that the records determine, with the reason of each other one; and notes."""
    design, ids = prepared.design, prepared.levels[index].ids.to_list()
    term = design.terms[index]
    rows = np.flatnonzero(design.patterns[:, t][design.pattern])
    target = Classes(term.effects[0].level[rows], term.n_levels)
    records = np.bincount(target.level[target.level >= 0], minlength=term.n_levels)
    every = np.array(natural_order(ids), np.int64)
    is_fixed = term.kind == "fixed"
    order = every[records[every] > 0] if is_fixed else every
    without = np.setdiff1d(every, order)
    columns = class_columns(analysis, term)
    effects = {i: design.terms[i] for i in list_fixed(design, t) if i != index}
    sharing = [i for i, other in effects.items() if set(columns) & set(class_columns(analysis, other))]
    weights = weigh_classes(target, order, classes_of_terms(effects, rows), sharing)
    parts = [Part(index, component_of_trait(term, t), order, np.eye(order.size))]
    for i in effects:
        parts += average(design, i, t, rows, weights.weights[i])
    reasons = {int(code): f"no records of {design.traits[t]}" for code in without}
    reasons |= _explain_empty(parts, order, records, weights, prepared, t, rows)
    kept = np.array([n for n, code in enumerate(order) if int(code) not in reasons], np.int64)
    means = AdjustedMeans(
        term.name,
        design.traits[t],
        tuple(ids[i] for i in order[kept]),
        records[order[kept]],
        tuple(_select(part, kept, order.size) for part in parts),
        None if is_fixed else (index, component_of_trait(term, t)),
        empty=tuple(EmptyMean(ids[code], int(records[code]), reasons[code]) for code in every if code in reasons),
    )
    return means, [*_note_weights(means, weights, sharing, design), *_note_empty(means)]


def _select(part: Part, kept: np.ndarray, n: int) -> Part:
    return part if part.weights.shape[0] != n else Part(part.term, part.component, part.codes, part.weights[kept])


def classes_of_terms(terms: dict[int, Term], rows: np.ndarray) -> dict[int, Classes]:
    """The classes that fixed terms make of these records."""
    return {i: Classes(term.effects[0].level[rows], term.n_levels) for i, term in terms.items()}


def _explain_empty(
    parts: Sequence[Part],
    order: np.ndarray,
    records: np.ndarray,
    weights: MarginalWeights,
    prepared: Prepared,
    t: int,
    rows: np.ndarray,
) -> dict[int, str]:
    """Level -> why the records do not determine its mean."""
    design = prepared.design
    reasons: dict[int, str] = {}
    for i, lacks in weights.lacks.items():
        for n in np.flatnonzero(np.broadcast_to(lacks, order.size)):
            code, name = int(order[n]), design.terms[i].name
            gap = (
                _name_gap(i, int(n), weights, prepared) if records[code] else f"no records, which would tell its {name}"
            )
            reasons.setdefault(code, gap)
    confounded = find_not_estimable(parts, order.size, design, t, rows)
    for n in np.flatnonzero(sum(confounded.values(), start=np.zeros(order.size))):
        names = [design.terms[i].name for i, is_part in confounded.items() if is_part[n]]
        reasons.setdefault(int(order[n]), name_confounded(names))
    return reasons


def _name_gap(i: int, n: int, weights: MarginalWeights, prepared: Prepared) -> str:
    """Say which classes mean n needs that have no records."""
    name, parents = prepared.design.terms[i].name, weights.parents[i]
    if len(parents) != 1:
        return f"no records of some combinations in {name}"
    (u,) = parents
    ids = prepared.levels[u].ids.to_list()
    needed = np.flatnonzero(weights.row(u, n))
    reached = weights.levels[i, u][np.flatnonzero(weights.row(i, n))]
    lacking = [quoted(ids[code]) for code in np.setdiff1d(needed, reached)]
    shown = ", ".join(lacking[:SHOWN]) + (", ..." if len(lacking) > SHOWN else "")
    return f"no records of {name} with {prepared.design.terms[u].name} {shown}"


def _note_weights(means: AdjustedMeans, weights: MarginalWeights, sharing: Sequence[int], design: Design) -> list[str]:
    """Say whose classes the means are of, and where classes have other weights than equal ones."""
    where, names = f"output.means: {means.effect}", [term.name for term in design.terms]
    parents = ", ".join(names[i] for i in weights.nesting if i not in sharing)
    notes = []
    if parents:
        notes.append(f"{where}: each level has records in one class of {parents} alone: its mean is that of its class")
    for group in weights.equalised:
        listed = " and ".join(names[i] for i in group)
        notes.append(
            f"{where}: {listed} are averaged over the combinations that have records, each with the same weight, as "
            "others that equal weights of the classes need have none"
        )
    return notes


def _note_empty(means: AdjustedMeans) -> list[str]:
    if not means.empty:
        return []
    shown = "; ".join(f"{quoted(mean.level)}: {mean.reason}" for mean in means.empty[:SHOWN])
    more = "; ..." if len(means.empty) > SHOWN else ""
    n = len(means.empty)
    empty = f"{counted(n, 'mean')} of {means.trait} {agreeing(n, 'is')} empty"
    them = "it" if n == 1 else "them"
    return [f"output.means: {means.effect}: {empty}, as the records do not determine {them} ({shown}{more})"]


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


def average(design: Design, i: int, t: int, rows: np.ndarray, weights: Weights) -> list[Part]:
    """A fixed term with these weights of its levels, and its covariates averaged over the records of the trait."""
    term = design.terms[i]
    codes: np.ndarray = np.unique(weights.nonzero()[1]).astype(np.int64)
    weights = weights[:, codes]
    components = np.flatnonzero(term.component_trait == t)
    if term.effects[0].covariates is None:
        return [Part(i, int(components[0]), codes, weights)]
    known = term.effects[0].level[rows] >= 0
    values = raw_covariates(design, i, components, rows[known]).mean(axis=0)
    return [Part(i, int(c), codes, x * weights) for c, x in zip(components, values, strict=True)]


def form_matrix(parts: Sequence[Part], n: int, first: np.ndarray, components: Sequence[int]) -> sp.csr_array:
    """(n, places): the means as functions of the flat vector of all solutions, in model order.

    first: (terms + 1,) place of each term; components: their number in each term.
    """
    K = sp.csr_array((n, int(first[-1])))
    for part in parts:
        at = first[part.term] + part.codes * components[part.term] + part.component
        weights = part.weights if sp.issparse(part.weights) else np.broadcast_to(part.weights, (n, part.codes.size))
        rows, columns, values = sp.find(sp.csr_array(weights))
        K = K + sp.csr_array((values, (rows, at[columns])), shape=K.shape)
    return sp.csr_array(K)
