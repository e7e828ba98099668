"""An analysis and its prepared data -> the model that is sampled:
covariance matrices with their starts and priors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mmgibbs.build.connectivity import count_common_levels, warn_of_separate_traits
from mmgibbs.build.curves import curves_of_terms, trends_of_surfaces
from mmgibbs.build.estimable.variances import check_variances
from mmgibbs.build.means import adjusted_means
from mmgibbs.build.observed_scale import observed_scales, predicted_classes, residual_diagonals, trait_moments
from mmgibbs.build.priors import covariance_model, make_prior, refuse_flat, warn_of_few_levels
from mmgibbs.build.residual import residual_model
from mmgibbs.build.separation import refuse_separation
from mmgibbs.build.structures import make_structure, variances_alone
from mmgibbs.config import Analysis
from mmgibbs.config.sampling import SavedFile
from mmgibbs.config.variances import Variance
from mmgibbs.data.ids_file import read_ids_file
from mmgibbs.data.prepared import Prepared
from mmgibbs.errors import ModelError
from mmgibbs.models.covariance import (
    CovarianceModel,
    check_posterior_exists,
    diagonal_blocks,
    full_block,
)
from mmgibbs.models.design import Design
from mmgibbs.models.labels import component_labels, correlation_label, state_labels
from mmgibbs.models.markers import Markers
from mmgibbs.models.priors import FLAT
from mmgibbs.models.priors.base import CovariancePrior
from mmgibbs.models.terms import Term
from mmgibbs.posterior.draw_names import residual_correlation_name, threshold_name
from mmgibbs.posterior.functions import ParameterFunction
from mmgibbs.posterior.model_parts import (
    CorrelationInfo,
    JointMarkerInfo,
    MarkerInfo,
    ObservedInfo,
    ResidualInfo,
    TermInfo,
    ThresholdInfo,
    term_info,
)
from mmgibbs.results.field import SurfaceTrend
from mmgibbs.sampler.mixed_model import MixedModel


@dataclass(frozen=True)
class Assembled:
    model: MixedModel
    terms: tuple[TermInfo, ...]  # of the random terms, for names
    residual: ResidualInfo
    notes: tuple[str, ...]  # warnings about the data and the posterior
    undetermined: tuple[str, ...] = ()  # of these, those on variances that the records do not determine
    markers: tuple[MarkerInfo | JointMarkerInfo, ...] = ()  # of the terms of SNP effects, for names
    trends: tuple[SurfaceTrend, ...] = ()  # of fields whose surfaces have several parts


def assemble(analysis: Analysis, prepared: Prepared) -> Assembled:
    """Covariance matrices for every random term and the residual; ModelError where a posterior cannot exist."""
    design = prepared.design
    sampled = analysis.sampler.method != "reml"  # there is a posterior to be looked after
    all_fixed = analysis.variances.mode == "fixed" or analysis.sampler.method == "blup"
    default, of_records = default_starts(design, prepared.phenotypic_variance)
    covariances: list[CovarianceModel | None] = []
    infos, notes = [], list(prepared.warnings)
    implied = {m.left.term: m for m in design.markers if m.left is not None}
    for i, (term, start) in enumerate(zip(design.terms, default, strict=True)):
        if start is None:  # a fixed term
            covariances.append(None)
            continue
        spec, random = analysis.variances.terms[term.name], analysis.model.random[term.name]
        spec = _implied(spec, implied[term.name], term) if term.name in implied else spec
        k = term.n_components
        blocks = full_block(k) if spec.structure.kind_class.has_covariances else diagonal_blocks(k)
        labels = component_labels(term, design.traits)
        traits = [int(t) for t in term.component_trait]
        structure = make_structure(spec, term, labels, design, prepared.phenotypic_variance)
        prior: CovariancePrior = FLAT
        if structure is None:
            prior = make_prior(spec, term.name, labels, traits, design, prepared.phenotypic_variance)
        held = all_fixed and term.name not in implied
        covariance = covariance_model(spec, start, blocks, held, term.name, labels, prior, structure)
        if covariance.flat and not covariance.fixed:
            notes += refuse_flat(term, labels, design)
        if sampled:
            notes_of_term = check_posterior_exists(term.name, covariance, term.n_prior_levels)
            notes += notes_of_term or (
                warn_of_few_levels(term, covariance) if covariance.flat and not covariance.fixed else []
            )
        covariances.append(covariance)
        columns = [random.effects[e.name].level for e in term.effects]
        infos.append(term_info(term, design.traits, columns, blocks, covariance.fixed, i, structure))
    residual, of_residual = residual_model(
        analysis.variances.residual, design, of_records, all_fixed, prepared.phenotypic_variance, sampled
    )
    notes += of_residual
    notes += refuse_separation(prepared)
    for t in np.flatnonzero(prepared.phenotypic_variance == 0):
        if any(not m.fixed and m.flat for m in residual.matrices):
            raise ModelError(
                f"trait '{design.traits[t]}' does not vary, so that its residual variance has no posterior; "
                "needed a proper prior (variances.residual.prior) or fixed variances"
            )
    undetermined = check_variances(design, [variances_alone(c) for c in covariances], residual, sampled)
    notes += undetermined
    of_terms = {t.name: c for t, c in zip(design.terms, covariances, strict=True)}
    notes += warn_of_separate_traits(count_common_levels(design), of_terms)
    saved = saved_levels(analysis.output.save_levels, prepared)
    joined, fixed = tuple(m.blocks for m in residual.matrices), tuple(m.fixed for m in residual.matrices)
    thresholds = tuple(
        ThresholdInfo(design.traits[r.trait], r.labels, threshold_name(r.trait))
        for r in design.responses
        if r.n_free_thresholds
    )
    unit = tuple(m.unit for m in residual.matrices)
    levels = [labels.section.level for labels in prepared.markers]
    scales = observed_scales(design, infos, levels, residual_diagonals(prepared))
    observed = tuple(ObservedInfo(scale.names, scale.draws) for scale in scales)
    moments = trait_moments(analysis.output.moments, prepared, infos)
    correlations = _correlation_infos(design)
    info = ResidualInfo(
        design.traits,
        joined,
        fixed,
        residual.classes,
        unit,
        thresholds,
        observed,
        moments,
        correlations,
        tuple(ParameterFunction(name, text) for name, text in analysis.functions.items()),
    )
    means, of_means = adjusted_means(analysis, prepared)
    curves, of_curves = curves_of_terms(analysis, prepared)
    notes += [*of_means, *of_curves]
    trends = trends_of_surfaces(analysis, prepared)
    of_plots = [means for trend in trends if trend.has_errors for means in trend.trials]
    model = MixedModel(
        design,
        tuple(covariances),
        residual,
        saved,
        marker_draws=analysis.output.save_marker_draws or 0,
        observed=scales,
        moments=moments,
        means=(*means, *curves, *of_plots),
        predicted=predicted_classes(prepared),
    )
    return Assembled(model, tuple(infos), info, tuple(notes), tuple(undetermined), marker_infos(design), trends)


def _implied(spec: Variance, markers: Markers, term: Term) -> Variance:
    """Set the start of a term whose variance SNP effects imply: its factor times theirs, held where theirs is."""
    assert markers.left is not None, "it implies one"
    if markers.joint is None:
        start = ((markers.left.factor * markers.prior.start,),)
        return spec.model_copy(update={"start": start, "fixed": markers.prior.fixed})
    order = [markers.joint.traits.index(int(t)) for t in term.component_trait]
    G = markers.left.factor * markers.joint.start[np.ix_(order, order)]
    return spec.model_copy(update={"start": tuple(map(tuple, G.tolist())), "fixed": markers.joint.fixed})


def _correlation_infos(design: Design) -> tuple[CorrelationInfo, ...]:
    """List the residual correlations of each group of records that has correlations as parameters."""
    return tuple(
        CorrelationInfo(
            tuple(correlation_label(design, g, name) for name in group.relationship.parameters),
            tuple(group.relationship.parameter_values.tolist()),
            group.relationship.parameters_fixed,
            residual_correlation_name(g),
        )
        for g, group in enumerate(design.correlated)
        if group.relationship.parameters
    )


def marker_infos(design: Design) -> tuple[MarkerInfo | JointMarkerInfo, ...]:
    """List each term of SNP effects and trait, then each term whose effects on several traits have one prior."""
    joint = [
        JointMarkerInfo(
            m.name,
            tuple(design.traits[t] for t in m.joint.traits),
            tuple(state_labels(m.joint, design.traits)),
            m.joint_key,
        )
        for m in design.markers
        if m.joint is not None and m.first
    ]
    return (*(MarkerInfo(m.name, design.traits[m.trait], m.trait, m.key, m.epsilon) for m in design.markers), *joint)


def default_starts(design: Design, phenotypic_variance: np.ndarray) -> tuple[list[np.ndarray | None], np.ndarray]:
    """Split the phenotypic variance of each trait equally over its effects and the residual.

    The result has the starts per term (None for fixed), and that of the residual.
    """
    effects_on = np.zeros(design.n_traits)
    for term in design.terms:
        if term.kind == "random":
            for e in term.effects:
                effects_on[list(e.traits)] += 1
    share = phenotypic_variance / (effects_on + 1)
    starts = [
        np.diag(share[t.component_trait] / _mean_squares(t)) if t.kind == "random" else None for t in design.terms
    ]
    return starts, np.diag(share)


def _mean_squares(term: Term) -> np.ndarray:
    """(k,) what a unit variance of each component adds to the variance of a record:
    m times the mean square of its covariate.
    """
    out = []
    for e in term.effects:
        squares = (
            [max(e.mean_power(2), 1e-12)]
            if e.has_several_levels
            else [1.0]
            if e.covariates is None
            else [max(float(np.mean(z**2)) * len(e.covariates.T), 1e-12) for z in e.covariates.T]
        )
        out += [s for _ in e.traits for s in squares]
    return np.array(out)


def saved_levels(
    wanted: Sequence[str] | Mapping[str, Sequence[str] | SavedFile | None], prepared: Prepared
) -> dict[str, np.ndarray]:
    """term -> level codes whose draws are kept, from `output.save_levels`: names of terms, or term -> ids or a file."""
    wanted = wanted if isinstance(wanted, dict) else dict.fromkeys(wanted)
    sizes = {t.name: t.n_levels for t in prepared.design.terms}
    # codes() refuses an unknown term
    return {
        name: _saved_codes(name, ids or [], prepared)
        if ids is not None or name not in sizes
        else np.arange(sizes[name])
        for name, ids in wanted.items()
    }


def _saved_codes(term: str, ids: Sequence[str] | SavedFile, prepared: Prepared) -> np.ndarray:
    where = f"output.save_levels.{term}"
    if not isinstance(ids, SavedFile):
        return prepared.codes(term, ids, where)
    where += f".file: '{ids.file}'"
    read = read_ids_file(ids.file, where, "level")
    return prepared.codes(term, [id_ for _, id_ in read], where, [row for row, _ in read])
