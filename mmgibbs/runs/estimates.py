"""What a mixed model is solved to: posterior moments, or estimates, with the draws that there are.

Effective dimensions of curves and field trends: how many parameters the data give them.

Of a term with covariance G over its components, at known variances,

    effective dimension of component a = [q I - G^-1 T]_aa,      T_ab = sum kappa_lm C^-1[(l,a),(m,b)]

which is tr(Z K Z' P) sigma2 of a single variance (Rodriguez-Alvarez et al. 2018): 0 where the term is shrunken to
nothing, and near the number of its points where nothing is shrunken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from mmgibbs.build.assemble import Assembled
from mmgibbs.data.prepared import Prepared
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.restricted import RestrictedLikelihood
from mmgibbs.machine.memory import free_bytes
from mmgibbs.machine.speed import estimate_seconds
from mmgibbs.models.design import Design
from mmgibbs.models.labels import component_labels
from mmgibbs.models.relationships.random_walk import RandomWalk
from mmgibbs.models.relationships.spline import Spline
from mmgibbs.models.terms import Related
from mmgibbs.posterior.adjusted_means import MeansMoments
from mmgibbs.posterior.decisions import Decided
from mmgibbs.posterior.draw_names import RESIDUAL, relationship_name
from mmgibbs.posterior.moments import PooledMoments
from mmgibbs.posterior.result import posterior_mean
from mmgibbs.posterior.thinned import KeptDraws
from mmgibbs.reml.estimate import Estimates

if TYPE_CHECKING:
    from mmgibbs.engines.pcg.prediction_errors import MonteCarloPev


@dataclass(frozen=True)
class PosteriorEstimates:
    """Posterior moments of every level, and the draws of the covariance matrices."""

    moments: PooledMoments
    draws: dict[str, np.ndarray]  # covariance matrices by name, (chains, draws, ...)
    facts: dict  # for run.json
    levels: dict[str, np.ndarray] = field(default_factory=dict)  # (chains, draws, levels, k) of chosen levels
    averages: dict[str, np.ndarray] = field(default_factory=dict)  # (chains, draws, birth years, k)
    markers: dict[str, PooledMoments] = field(default_factory=dict)  # of effects, breeding values, chances of classes
    states: dict[str, PooledMoments] = field(default_factory=dict)  # of SNPs over several traits
    totals: dict[str, PooledMoments] = field(default_factory=dict)  # number of the trait -> of total breeding values
    effects: dict[str, KeptDraws] = field(default_factory=dict)  # some draws of SNP effects
    slopes: dict[str, KeptDraws] = field(default_factory=dict)  # number of the trait -> of J, of the same draws
    statistics: dict[str, np.ndarray] = field(default_factory=dict)  # name -> (chains, draws), for /sample_stats
    probabilities: dict[str, PooledMoments] = field(default_factory=dict)  # trait -> of every level
    means: dict[str, MeansMoments] = field(default_factory=dict)  # name of the means -> those of draws
    decided: Decided | None = None
    estimates: Estimates | None = None  # by REML
    pev: MonteCarloPev | None = None  # by Monte Carlo, of BLUP
    snp_effects: pl.DataFrame | None = None  # of genomic and single-step terms, where they are asked for
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


MAX_EQUATIONS, MAX_DENSE_LEVELS = 300_000, 5_000  # of a model for which a factor is looked at
MAX_SECONDS = 60.0  # of a factor of the equations and its selected inverse


def smooth_terms(prepared: Prepared) -> list[int]:
    """Terms that are curves or field trends."""
    levels = zip(prepared.design.terms, prepared.levels, strict=True)
    return [
        i
        for i, (term, labels) in enumerate(levels)
        if labels.plots is not None or isinstance(term.relationship, (RandomWalk, Spline))
    ]


def effective_dimensions(
    prepared: Prepared, assembled: Assembled, draws: Mapping[str, np.ndarray]
) -> tuple[dict[str, dict[str, dict[str, float]]], list[str]]:
    """({term: {component: {'effective': ED, 'points': of them}}}, notes), at the (posterior mean) variances.

    draws: (chains, draws, ...) of each covariance matrix and of parameters of relationships.
    """
    terms, design = smooth_terms(prepared), assembled.model.design
    if not terms:
        return {}, []
    if design.responses or design.markers or design.correlated or design.n_scores:
        return {}, [
            "effective dimensions are not computed: they need normal traits, independent residuals, no SNP effects and "
            "no covariance matrix of reduced rank"
        ]
    dense = sum(t.relationship.dense.levels.size for t in design.terms if t.relationship.dense is not None)
    if design.n_equations > MAX_EQUATIONS or dense > MAX_DENSE_LEVELS:
        return {}, [_too_long(design)]
    design = _renew(design, draws)
    matrices = {info.name: info.matrix for info in assembled.terms}
    G = [posterior_mean(draws[matrices[t.name]]) if t.name in matrices else None for t in design.terms]
    R = posterior_mean(draws[RESIDUAL])
    R = R if assembled.model.residual.classes else R[None]
    of_terms = [None if c is None else c.blocks for c in assembled.model.covariances]
    likelihood = RestrictedLikelihood(design, of_terms, [m.blocks for m in assembled.model.residual.matrices])
    free = free_bytes()
    if estimate_seconds(likelihood.operations) > MAX_SECONDS or (free is not None and likelihood.bytes > free):
        return {}, [_too_long(design)]
    point = likelihood.evaluate(Variances(G, R))
    traces = likelihood.coefficients.traces(point.selected).of_terms
    return {design.terms[i].name: _dimensions(design, prepared, i, point.Ginv[i], traces[i]) for i in terms}, []


def _too_long(design: Design) -> str:
    return f"effective dimensions are not computed: a factor of {design.n_equations:,} equations would take too long"


def _renew(design: Design, draws: Mapping[str, np.ndarray]) -> Design:
    """Set the relationships to their estimated parameters."""
    terms = list(design.terms)
    for i, term in enumerate(terms):
        if relationship_name(i) in draws and term.relationship.has_free_parameters:
            values = posterior_mean(draws[relationship_name(i)])
            terms[i] = replace(term, prior=Related(term.relationship.renewed(values), term.n_scores))
    return replace(design, terms=tuple(terms))


def _dimensions(
    design: Design, prepared: Prepared, i: int, Ginv: np.ndarray, traces: np.ndarray
) -> dict[str, dict[str, float]]:
    """Component of term i -> q - tr(G^-1 T), see above, and its points; traces (k, k): T of REML."""
    term, labels = design.terms[i], prepared.levels[i]
    dimensions = term.n_levels - np.einsum("ab,ba->a", Ginv, traces)
    return {
        label: {"effective": float(max(value, 0.0)), "points": len(labels.order)}
        for label, value in zip(component_labels(term, design.traits), dimensions, strict=True)
    }


def describe_dimensions(dimensions: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Sequence[str]:
    """'curve, weight: effective dimension 6.3 of 24 points' for each."""
    return [
        f"{term}, {component}: effective dimension {of['effective']:.1f} of {of['points']:,} points"
        for term, of_term in dimensions.items()
        for component, of in of_term.items()
    ]
