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
    related = any(term.relationship.related for term in design.terms)
    out = []
    for term, covariance in zip(design.terms, covariances, strict=True):
        alone = [] if covariance is None or covariance.fixed else _traits_alone(design, term)
        of = " and ".join(design.traits[trait] for trait in alone if trait not in not_normal)
        if of:
            pedigree = (
                ""
                if related
                else f", or, if its levels are animals, say how they are related (model.random.{term.name}."
                "relationship: pedigree)"
            )
            out.append(
                f"variances.{term.name}: each record of {of} has a level of its own, and levels are "
                "independent: the records tell the sum of this variance and the residual variance, not the two. Leave "
                f"the effect out for {of}{pedigree}"
            )
    return out


def _traits_alone(design: Design, term: Term) -> list[int]:
    """Traits of which every record has its own level of the one effect of the term, itself 1."""
    if type(term.relationship) is not Identity or len(term.effects) != 1 or term.effects[0].covariates is not None:
        return []
    observed = design.patterns[design.pattern]
    alone = []
    for trait in term.effects[0].traits:
        level = term.effects[0].level[observed[:, trait]]
        if 1 < len(level) <= term.n_levels and level.min() >= 0 and np.bincount(level).max() <= 1:
            alone.append(int(trait))
    return alone
