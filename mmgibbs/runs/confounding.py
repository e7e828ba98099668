"""Random effects that the records cannot tell from the residual."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.model.covariance import CovarianceModel
from mmgibbs.model.design import Design
from mmgibbs.model.relationships.identity import Identity
from mmgibbs.model.residual import ResidualModel
from mmgibbs.model.terms import Term


def warn_of_levels_of_one_record(
    design: Design, covariances: Sequence[CovarianceModel | None], residual: ResidualModel
) -> list[str]:
    """Warnings of independent levels with one record each: y = X b + u + e with u ~ N(0, I s_u), e ~ N(0, I s_e) has
    a likelihood of s_u + s_e alone, so that the start (REML) or the prior (Gibbs) divides the sum.

    Weights or residual classes tell the two apart, and so does a residual variance that is held.
    """
    if residual.classes or residual.fixed or np.ptp(design.weight) > 0:
        return []
    not_normal = {r.trait for r in design.responses}
    return [
        f"variances.{term.name}: each of the {n:,} records of {design.traits[trait]} has a level of its own, and "
        f"levels are independent: the records tell the sum of this variance and the residual variance, not the "
        f"two. Leave {term.name} out, or say how its levels are related (model.random.{term.name}.relationship: "
        "pedigree)"
        for term, covariance in zip(design.terms, covariances, strict=True)
        if covariance is not None and not covariance.fixed
        for trait, n in _traits_alone(design, term)
        if trait not in not_normal
    ]


def _traits_alone(design: Design, term: Term) -> list[tuple[int, int]]:
    """(trait, records) where every record of the trait has its own level of the one effect of the term, itself 1."""
    if type(term.relationship) is not Identity or len(term.effects) != 1 or term.effects[0].covariates is not None:
        return []
    observed = design.patterns[design.pattern]
    alone = []
    for trait in term.effects[0].traits:
        level = term.effects[0].level[observed[:, trait]]
        if len(level) > 1 and level.min() >= 0 and np.unique(level).size == level.size:
            alone.append((int(trait), level.size))
    return alone
