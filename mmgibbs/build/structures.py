"""The structure of a covariance matrix, from its section of the analysis and the size of its traits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mmgibbs.build.priors import half_t_prior
from mmgibbs.config.structures import Structure as Section
from mmgibbs.config.variances import HalfT, HalfTScale, Variance
from mmgibbs.errors import ModelError
from mmgibbs.models.covariance import CovarianceModel, diagonal_blocks
from mmgibbs.models.design import Design
from mmgibbs.models.priors import HalfT as HalfTPrior
from mmgibbs.models.structures.antedependence import Antedependence
from mmgibbs.models.structures.base import Structure
from mmgibbs.models.structures.correlated import Autoregressive, CompoundSymmetry
from mmgibbs.models.structures.factor_analytic import FactorAnalytic
from mmgibbs.models.structures.reduced_rank import MAX_SHARE_BESIDE_FACTORS, ReducedRank, share_beside_factors
from mmgibbs.models.structures.shrunken_factors import ShrunkenFactors, max_active_factors
from mmgibbs.models.terms import Term


def make_structure(
    spec: Variance, term: Term, labels: Sequence[str], design: Design, phenotypic: np.ndarray
) -> Structure | None:
    """None for a full or diagonal matrix. phenotypic (T,): variance of each trait."""
    section = spec.structure
    if not section.is_structured:
        return None
    sd = np.sqrt(phenotypic[term.component_trait])
    if section.kind == "reduced_rank":
        return _make_reduced_rank(spec, term, sd, design)
    given = spec.prior if isinstance(spec.prior, HalfT) else HalfT(half_t=HalfTScale())
    prior = half_t_prior(given, term.name, labels, list(term.component_trait), design, phenotypic)
    structure = _construct_structure(section, len(labels), prior.A, prior.nu, sd)
    if isinstance(structure, FactorAnalytic) and term.n_prior_levels < structure.k + structure.factors:
        raise ModelError(
            f"variances.{term.name}.structure: expected at least {structure.k + structure.factors} levels of "
            f"{term.name} for {structure.factors} factors of {structure.k} components, got {term.n_prior_levels}; "
            "take fewer components, or structure: compound_symmetry"
        )
    return structure


def _make_reduced_rank(spec: Variance, term: Term, sd: np.ndarray, design: Design) -> ReducedRank:
    """ModelError for what a matrix without an inverse cannot be combined with."""
    section, place = spec.structure, f"variances.{term.name}.structure"
    needed = "needed structure: factor_analytic or full, or a model without it"
    if design.responses:
        names = ", ".join(design.traits[r.trait] for r in design.responses)
        raise ModelError(
            f"{place}: reduced_rank cannot be combined with traits that are not normal ({names}); {needed}"
        )
    if design.correlated:
        raise ModelError(f"{place}: reduced_rank cannot be combined with correlated residuals; {needed}")
    parameters = [t.name for t in design.terms if t.relationship.has_free_parameters]
    if parameters:
        raise ModelError(
            f"{place}: reduced_rank cannot be combined with correlations that are estimated (model.random."
            f"{parameters[0]}); {needed}, or known correlations (rho, and fixed: true)"
        )
    if term.has_several_levels:
        raise ModelError(f"{place}: reduced_rank cannot be combined with several levels in one effect; {needed}")
    if term.active is not None or term.groups_fixed:
        raise ModelError(
            f"{place}: reduced_rank cannot be combined with levels that are set to 0, or with fixed unknown-parent "
            f"groups; {needed}"
        )
    structure = ReducedRank(
        term.n_components, section.rank or 1, sd if section.loading_sd is None else section.loading_sd * sd
    )
    if spec.fixed and spec.start is not None:
        share = share_beside_factors(np.array(spec.start, float), structure.factors)
        if share > MAX_SHARE_BESIDE_FACTORS:
            raise ModelError(
                f"variances.{term.name}.start: expected a matrix of rank {structure.factors} for structure: "
                f"reduced_rank, got one that has {share:.2g} of its variances beside the factors, as a mean of draws "
                "has; needed structure: full for this matrix, or the estimate of method: reml"
            )
    return structure


def _construct_structure(section: Section, k: int, A: np.ndarray, nu: float, sd: np.ndarray) -> Structure:
    equal = section.variances == "equal"
    if section.kind == "factor_analytic":
        size = sd if section.loading_sd is None else section.loading_sd * sd
        if section.factors == "auto":
            return ShrunkenFactors(k, max_active_factors(k) + 1, equal, A, size, nu)
        return FactorAnalytic(k, section.factors or 1, equal, A, size, nu)
    if section.kind == "antedependence":
        return Antedependence(k, equal, A, sd, nu)
    if section.kind == "ar1":
        return Autoregressive(k, equal, A, nu, section.positions)
    return CompoundSymmetry(k, equal, A, nu)


def variances_alone(covariance: CovarianceModel | None) -> CovarianceModel | None:
    """A matrix with a structure as its variances: what the records must tell of it, as two components without a level
    in common are related through the parameters that they share with others."""
    if covariance is None or covariance.structure is None:
        return covariance
    structure = covariance.structure
    prior = HalfTPrior(structure.nu, structure.sd_scale)
    return replace(
        covariance, blocks=diagonal_blocks(len(covariance.start)), structure=None, df=None, scale_prior=prior
    )
