"""REML of traits that have nothing in common, such as trials with their own variances and effects: one after another.

The likelihood is then a product of those of groups of traits. Traits are joined by records that have both, by a
covariance matrix that has both, and by a relationship whose parameters are estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mmgibbs.likelihood.matrices import Variances
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.design import CentringShift, Design, Rescale
from mmgibbs.models.residual import ResidualModel
from mmgibbs.models.terms import Effect, Levels, Normal, Term


def group_traits(
    design: Design, covariances: Sequence[CovarianceModel | None], residual: ResidualModel
) -> list[tuple[int, ...]]:
    """Return groups of traits that have nothing in common; one group where a structure of a matrix is estimated."""
    T = design.n_traits
    if any(c is not None and c.structure is not None and not c.fixed for c in covariances):
        return [tuple(range(T))]
    seen = design.patterns.astype(float)
    joined = seen.T @ seen
    for term, covariance in zip(design.terms, covariances, strict=True):
        for components in _joined_components(term, covariance):
            traits = np.unique(term.component_trait[list(components)])
            joined[np.ix_(traits, traits)] = 1.0
    for matrix in residual.matrices:
        for block in matrix.blocks:
            joined[np.ix_(block, block)] = 1.0
    n, label = connected_components(csr_array(joined), directed=False)
    return [tuple(int(t) for t in np.flatnonzero(label == group)) for group in range(n)]


def _joined_components(term: Term, covariance: CovarianceModel | None) -> list[tuple[int, ...]]:
    every = tuple(range(term.n_components))
    if covariance is None:
        P = term.fixed_precision
        return [every] if np.any(P[~np.eye(len(P), dtype=bool)]) else []
    return [every] if term.relationship.has_free_parameters else list(covariance.blocks)


Places: TypeAlias = dict[tuple[int, int], tuple[int, int]]  # (term, component) of the whole -> those of a group


@dataclass(frozen=True)
class TraitGroup:
    """The part of a design that is of some of its traits, and where it stands in the whole."""

    traits: tuple[int, ...]
    design: Design
    covariances: list[CovarianceModel | None]
    residual: ResidualModel
    terms: tuple[int, ...]  # number of each term in the whole
    components: tuple[np.ndarray, ...]  # per term (k,) components there
    correlated: tuple[int, ...]  # number of each group of correlated records there

    def take(self, variances: Variances) -> Variances:
        """The matrices of the group, of those of the whole."""
        G = [_take_block(variances.G[i], at) for i, at in zip(self.terms, self.components, strict=True)]
        return Variances(G, variances.R[:, self.traits][:, :, self.traits].copy())

    def put(self, variances: Variances, into: Variances) -> None:
        """Write the matrices of the group into those of the whole."""
        for i, at, matrix in zip(self.terms, self.components, variances.G, strict=True):
            whole = into.G[i]
            if whole is not None:
                whole[np.ix_(at, at)] = matrix
        into.R[:, np.array(self.traits)[:, None], self.traits] = variances.R

    def put_levels(self, values: Sequence[np.ndarray], into: Sequence[np.ndarray]) -> None:
        """Write (q, k) per term into those of the whole."""
        for i, at, levels in zip(self.terms, self.components, values, strict=True):
            into[i][:, at] = levels


def _take_block(matrix: np.ndarray | None, at: np.ndarray) -> np.ndarray | None:
    return None if matrix is None else matrix[np.ix_(at, at)]


def take_traits(
    design: Design,
    covariances: Sequence[CovarianceModel | None],
    residual: ResidualModel,
    traits: tuple[int, ...],
) -> TraitGroup:
    """Take some traits of a design, with the records and the terms that they have."""
    has_some = np.asarray(design.patterns[:, traits].any(axis=1))
    rows = np.flatnonzero(has_some[design.pattern])
    used, pattern = np.unique(design.pattern[rows], return_inverse=True)
    number = {trait: i for i, trait in enumerate(traits)}
    terms, components, models, kept = [], [], [], []
    for i, term in enumerate(design.terms):
        at = np.flatnonzero(np.isin(term.component_trait, traits))
        if not at.size:
            continue
        terms.append(i)
        components.append(at)
        kept.append(_take_term(term, at, rows, number))
        models.append(_take_covariance(covariances[i], at))
    places = {(i, int(c)): (n, m) for n, i in enumerate(terms) for m, c in enumerate(components[n])}
    groups = [g for g, group in enumerate(design.correlated) if group.trait in number]
    position = np.full(design.n_records, -1)
    position[rows] = np.arange(rows.size)
    part = Design(
        tuple(design.traits[t] for t in traits),
        design.y[rows][:, traits],
        pattern.ravel().astype(np.int32),
        design.patterns[used][:, traits],
        design.weight[rows],
        tuple(kept),
        _take_rescale(design.rescale, places),
        _take_shifts(design.shifts, places),
        tuple((*places[i, c], value) for i, c, value in design.offsets if (i, c) in places),
        _take_shifts(design.base, places),
        residual_classes=design.residual_classes,
        pattern_class=design.class_of_pattern[used],
        correlated=tuple(
            replace(group, trait=number[group.trait], records=position[group.records])
            for group in (design.correlated[g] for g in groups)
        ),
    )
    matrices = tuple(_take_covariance(matrix, np.array(traits)) for matrix in residual.matrices)
    residuals = ResidualModel(matrices, residual.classes)  # type: ignore[arg-type]
    return TraitGroup(traits, part, models, residuals, tuple(terms), tuple(components), tuple(groups))


def _take_term(term: Term, at: np.ndarray, rows: np.ndarray, number: dict[int, int]) -> Term:
    effects = []
    for effect in term.effects:
        traits = tuple(number[t] for t in effect.traits if t in number)
        if traits:
            covariates = None if effect.covariates is None else effect.covariates[rows]
            effects.append(Effect(effect.name, effect.level[rows], traits, covariates, effect.coefficients))
    prior = term.prior
    if isinstance(prior, Normal):
        prior = Normal(np.asarray(prior.precision)[np.ix_(at, at)])
    active = None if term.active is None else np.ascontiguousarray(term.active[:, at])
    return Term(term.name, Levels(tuple(effects), term.n_levels), prior, active)


def _take_covariance(model: CovarianceModel | None, at: np.ndarray) -> CovarianceModel | None:
    """Select the covariance model of some components; priors do not matter here."""
    if model is None:
        return None
    number = {int(c): i for i, c in enumerate(at)}
    blocks = [tuple(number[c] for c in block if c in number) for block in model.blocks]
    unit = tuple(number[c] for c in model.unit if c in number)
    start = np.ascontiguousarray(model.start[np.ix_(at, at)])
    return CovarianceModel(start, model.fixed, tuple(filter(None, blocks)), name=model.name, unit=unit)


def _take_rescale(rescale: Sequence[Rescale], places: Places) -> tuple[Rescale, ...]:
    """Select the rescalings of these traits: the components of each are of one trait."""
    return tuple(
        Rescale(places[r.term, r.components[0]][0], tuple(places[r.term, c][1] for c in r.components), r.matrix)
        for r in rescale
        if (r.term, r.components[0]) in places
    )


def _take_shifts(shifts: Sequence[CentringShift], places: Places) -> tuple[CentringShift, ...]:
    """Select the shifts of these traits: target and source are of one trait."""
    taken = []
    for s in shifts:
        if (s.target, s.component) in places:
            target, component = places[s.target, s.component]
            sources = [places[s.source, c] for c in s.source_components]
            components = tuple(c for _, c in sources)
            taken.append(
                replace(s, target=target, component=component, source=sources[0][0], source_components=components)
            )
    return tuple(taken)
