"""Solutions of the mixed-model equations at given variances by one factor, in place of iterations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.engines.direct.standard_errors import MOST_EQUATIONS, MOST_OPERATIONS
from mmgibbs.likelihood.correlated import CorrelatedLikelihood
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.restricted import RestrictedLikelihood
from mmgibbs.likelihood.scores import ScoresLikelihood
from mmgibbs.models.covariance import full_block, join_all
from mmgibbs.models.design import Design
from mmgibbs.models.residual import stack_classes


def needs_factor(design: Design) -> bool:
    """Iterations would not converge, or not for correlated residuals, and the equations are few enough for a factor."""
    related = [t.relationship.dense.levels.size for t in design.terms if t.relationship.dense is not None]
    is_affordable = design.n_equations <= MOST_EQUATIONS and sum(m**3 for m in related) / 3 <= MOST_OPERATIONS
    is_slow = any(term.relationship.stiff_part for term in design.terms)
    return bool(design.correlated or design.n_scores) or (is_slow and is_affordable)


def direct_likelihood(
    design: Design, G: Sequence[np.ndarray | None]
) -> CorrelatedLikelihood | ScoresLikelihood | RestrictedLikelihood:
    """Return the likelihood that has the solutions at given variances.

    All components of a term, and all traits of the residuals, may covary.
    """
    if design.correlated:
        return CorrelatedLikelihood(design, join_all(G))
    if design.n_scores:
        return ScoresLikelihood(design, join_all(G))
    of_residuals = [full_block(design.n_traits)] * max(1, len(design.residual_classes))
    return RestrictedLikelihood(design, join_all(G), of_residuals)


def solve_by_factor(design: Design, G: Sequence[np.ndarray | None], R: np.ndarray) -> list[np.ndarray]:
    """Solve for (q, k) per term on the scale of the equations, in model order; G: None for fixed terms."""
    return direct_likelihood(design, G).evaluate(Variances(list(G), stack_classes(R))).solutions
