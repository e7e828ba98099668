"""Random effects that the records cannot tell from the residual, or from each other."""

from __future__ import annotations

import itertools
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
    if not _is_of_groups(term):
        return []
    observed = design.patterns[design.pattern]
    alone = []
    for trait in term.effects[0].traits:
        level = term.effects[0].level[observed[:, trait]]
        if 1 < len(level) <= term.n_levels and level.min() >= 0 and np.bincount(level).max() <= 1:
            alone.append(int(trait))
    return alone


def warn_of_equal_groups(design: Design, covariances: Sequence[CovarianceModel | None]) -> list[str]:
    """Warnings of two effects of independent levels that group the records of a trait in the same way, as litters and
    their pens may: Z_1 = Z_2 P with a permutation P, so that the records tell the sum of the two variances alone.
    """
    observed = design.patterns[design.pattern]
    random = [
        term
        for term, covariance in zip(design.terms, covariances, strict=True)
        if covariance is not None and not covariance.fixed and _is_of_groups(term)
    ]
    out = []
    for first, second in itertools.combinations(random, 2):
        both = sorted({*first.effects[0].traits} & {*second.effects[0].traits})
        same = [t for t in both if _same_groups(*(e.level[observed[:, t]] for e in (*first.effects, *second.effects)))]
        if same:
            of = " and ".join(design.traits[t] for t in same)
            out.append(
                f"variances.{second.name}: model.random.{first.name} and model.random.{second.name} group the records "
                f"of {of} in the same way, and their levels are independent: the records tell the sum of their "
                f"variances, not the two. Leave one of them out for {of}"
            )
    return out


def _is_of_groups(term: Term) -> bool:
    return type(term.relationship) is Identity and len(term.effects) == 1 and term.effects[0].covariates is None


def _same_groups(one: np.ndarray, other: np.ndarray) -> bool:
    """Levels (n,), -1 where a record has none, are each other's under other names, and there are two or more."""
    n = len(np.unique(one))
    if n < 2 or n != len(np.unique(other)) or np.any((one < 0) != (other < 0)):
        return False
    pair = one.astype(np.int64) * (int(other.max()) + 2) + other  # -1 where both have none
    return n == len(np.unique(pair))
