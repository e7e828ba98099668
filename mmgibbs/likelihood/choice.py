"""Which form of the restricted likelihood takes less time: estimated by operations, before anything large is made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.likelihood.base import Likelihood
from mmgibbs.likelihood.coefficients import Blocks
from mmgibbs.likelihood.correlated import CorrelatedLikelihood
from mmgibbs.likelihood.memory import SOLUTION
from mmgibbs.likelihood.reduced_rank import ReducedRankLikelihood
from mmgibbs.likelihood.restricted import RestrictedLikelihood
from mmgibbs.likelihood.sparse import OPERATIONS_OF_POINT, SparseLikelihood
from mmgibbs.likelihood.spectral import OneRelationship, SpectralLikelihood, one_relationship
from mmgibbs.machine.memory import fits_into_free, refuse_beyond_free
from mmgibbs.models.design import Design

POINTS = 8.0  # at which an iteration evaluates a likelihood


def restricted_likelihood(
    design: Design, of_terms: Sequence[Blocks | None], of_residuals: Sequence[Blocks]
) -> Likelihood:
    """Choose the faster form; of_terms, of_residuals: components that may covary (see coefficients).

    DeviceError where it does not fit into memory.
    """
    form = _choose(design, of_terms, of_residuals)
    if isinstance(form, OneRelationship):
        spectral = _make_spectral(form)
        if spectral is not None:
            return spectral
        form = RestrictedLikelihood(design, of_terms, of_residuals)
    _refuse_too_large(form)
    return form


def count_likelihood(design: Design, of_terms: Sequence[Blocks | None], of_residuals: Sequence[Blocks]) -> int:
    """Bytes of that form, for which nothing is factorised."""
    return _choose(design, of_terms, of_residuals).bytes


def _choose(
    design: Design, of_terms: Sequence[Blocks | None], of_residuals: Sequence[Blocks]
) -> OneRelationship | SparseLikelihood:
    """The sparse form, with its pattern, or what a diagonalisation begins with."""
    if design.correlated:
        return CorrelatedLikelihood(design, of_terms)
    if design.n_scores:
        return ReducedRankLikelihood(design)
    has_parameters = any(term.relationship.has_free_parameters for term in design.terms)  # K changes
    known = None if has_parameters else _drop_too_large(one_relationship(design))
    if known is not None and known.operations < POINTS * OPERATIONS_OF_POINT * _least_operations(design):
        return known  # without the pattern of a dense factor, which takes long
    sparse = RestrictedLikelihood(design, of_terms, of_residuals)
    return known if known is not None and known.operations < POINTS * sparse.operations else sparse


def _refuse_too_large(likelihood: SparseLikelihood) -> None:
    equations, elements = likelihood.design.n_equations, likelihood.symbolic.nonzeros
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
