"""Which form of the restricted likelihood takes less time: estimated by operations, before anything large is made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.likelihood.base import Likelihood
from mmgibbs.likelihood.coefficients import Blocks
from mmgibbs.likelihood.correlated import CorrelatedLikelihood
from mmgibbs.likelihood.memory import SOLUTION
from mmgibbs.likelihood.restricted import RestrictedLikelihood
from mmgibbs.likelihood.scores import ScoresLikelihood
from mmgibbs.likelihood.sparse import OPERATIONS_OF_POINT, SparseLikelihood
from mmgibbs.likelihood.spectral import OneRelationship, SpectralLikelihood, one_relationship
from mmgibbs.machine.memory import fits_into_free, refuse_beyond_free
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.design import Design
from mmgibbs.models.residual import ResidualModel

POINTS = 8.0  # at which an iteration evaluates a likelihood


def restricted_likelihood(
    design: Design, covariances: Sequence[CovarianceModel | None], residual: ResidualModel
) -> Likelihood:
    """Choose the faster form; covariances: per term, None for fixed ones.

    DeviceError where it does not fit into memory.
    """
    form = _choose(design, covariances, residual)
    if isinstance(form, OneRelationship):
        spectral = _make_spectral(form)
        if spectral is not None:
            return spectral
        form = RestrictedLikelihood(design, *_list_blocks(covariances, residual))
    _refuse_too_large(form)
    return form


def count_likelihood(design: Design, covariances: Sequence[CovarianceModel | None], residual: ResidualModel) -> int:
    """Bytes of that form, for which nothing is factorised."""
    return _choose(design, covariances, residual).bytes


def _choose(
    design: Design, covariances: Sequence[CovarianceModel | None], residual: ResidualModel
) -> OneRelationship | SparseLikelihood:
    """The sparse form, with its pattern, or what a diagonalisation begins with."""
    of_terms, of_residuals = _list_blocks(covariances, residual)
    if design.correlated:
        return CorrelatedLikelihood(design, of_terms)
    n_factors = count_factors(design, covariances)
    if design.n_scores or n_factors:
        return ScoresLikelihood(design, of_terms, n_factors)
    has_parameters = any(term.relationship.has_free_parameters for term in design.terms)  # K changes
    known = None if has_parameters else _drop_too_large(one_relationship(design))
    if known is not None and known.operations < POINTS * OPERATIONS_OF_POINT * _least_operations(design):
        return known  # without the pattern of a dense factor, which takes long
    sparse = RestrictedLikelihood(design, of_terms, of_residuals)
    return known if known is not None and known.operations < POINTS * sparse.operations else sparse


def _list_blocks(
    covariances: Sequence[CovarianceModel | None], residual: ResidualModel
) -> tuple[list[Blocks | None], list[Blocks]]:
    """Components of each term, and traits of each class of residuals, that may covary."""
    return [None if c is None else c.blocks for c in covariances], [m.blocks for m in residual.matrices]


def count_factors(design: Design, covariances: Sequence[CovarianceModel | None]) -> dict[int, int]:
    """Number of common factors of each term that is fitted by scores (scores.py); empty where G^-1 is cheaper.

    All levels of these terms are related, each record has one of their components, and no other term joins components.
    With k components, f factors and q levels, C then has k blocks of q equations beside f q scores, in place of one
    block of k q.
    """
    if np.any(design.patterns.sum(axis=1) > 1) or any(t.relationship.has_free_parameters for t in design.terms):
        return {}
    n_factors: dict[int, int] = {}
    for i, (term, c) in enumerate(zip(design.terms, covariances, strict=True)):
        if c is None:
            continue
        f, k = 0 if c.structure is None else c.structure.n_specific_factors, term.n_components
        if not f or c.fixed:
            if any(len(block) > 1 for block in c.blocks):
                return {}
            continue
        dense = term.relationship.dense
        is_plain = term.active is None and not term.has_several_levels and not term.groups_fixed
        is_of_traits = np.unique(term.component_trait).size == k
        is_related = dense is not None and dense.levels.size == term.n_levels
        if not (is_plain and is_of_traits and is_related) or k * (1 + 3 * f + 3 * f**2) + f**3 >= k**3:
            return {}
        n_factors[i] = f
    return n_factors


def _refuse_too_large(likelihood: SparseLikelihood) -> None:
    equations, elements = likelihood.n_equations, likelihood.symbolic.nonzeros
    refuse_beyond_free(
        likelihood.bytes, f"a sparse factor of {equations:,} equations ({elements:,} elements)", SOLUTION
    )


def _least_operations(design: Design) -> float:
    """Return a lower bound of the operations of a factor: those of its dense blocks."""
    of_blocks = (t.relationship.dense for t in design.terms)
    sizes = (design.n_traits * block.levels.size for block in of_blocks if block is not None)
    return sum(float(size) ** 3 / 3.0 for size in sizes)


def _drop_too_large(known: OneRelationship | None) -> OneRelationship | None:
    """Return `known`, or None where its matrices do not fit into memory."""
    return known if known is None or fits_into_free(known.bytes) else None


def _make_spectral(known: OneRelationship) -> SpectralLikelihood | None:
    """Build the spectral form; None where fixed effects depend on each other, which the sparse form names."""
    try:
        return SpectralLikelihood(known)
    except np.linalg.LinAlgError:
        return None
