"""The residual covariance matrix of all records, or of each class of them.

A trait in categories has a residual variance of 1 by convention: in all records, or in one class, its *reference*: the
class with most records of it. In the others its variance is in units of that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mmgibbs.build.priors import covariance_model, make_prior, unit_traits
from mmgibbs.config.variances import ResidualVariance, Variance
from mmgibbs.errors import ConfigError, ModelError
from mmgibbs.models.covariance import (
    CovarianceModel,
    blocks_recorded_together,
    check_posterior_exists,
    diagonal_blocks,
)
from mmgibbs.models.design import Design
from mmgibbs.models.residual import ResidualModel


def residual_model(
    spec: ResidualVariance,
    design: Design,
    default: np.ndarray,
    all_fixed: bool,
    phenotypic: np.ndarray,
    sampled: bool = True,
) -> tuple[ResidualModel, list[str]]:
    """The residual covariance matrix of all records, or of each class of them, and what there is to say of it.

    sampled: False where no posterior is asked for (REML).
    """
    if spec.known is not None:
        return _known_residual_model(design), []
    classes, matrices, notes = design.residual_classes, [], []
    observed = design.patterns[design.pattern]
    for c, name in enumerate(classes or ("",)):
        class_spec, of_class = spec.of_class(name), design.class_of_pattern == c
        unit = {t for t in unit_traits(design) if reference_class(design, t) == c}
        has_covariances = spec.structure.kind_class.has_covariances
        recorded = design.patterns[of_class]
        blocks = blocks_recorded_together(recorded) if has_covariances else diagonal_blocks(design.n_traits)
        called = f"residual.classes.{name}" if classes else "residual"
        prior = make_prior(class_spec, called, design.traits, range(design.n_traits), design, phenotypic)
        matrix = covariance_model(class_spec, default, blocks, all_fixed, called, design.traits, prior)
        if classes:
            _check_classes_of_categories(class_spec, matrix, unit, design, c)
        matrix = _with_unit_variances(matrix, unit_traits(design), unit, given=class_spec.start is not None)
        notes += _note_unused_covariances(class_spec, matrix, design.traits, called)
        in_class = observed[of_class[design.pattern]]
        records = {b: int(in_class[:, list(b)].any(axis=1).sum()) for b in blocks}
        notes += check_posterior_exists(called, matrix, records, "records") if sampled else []
        for t in np.flatnonzero(~in_class.any(axis=0)) if classes and not matrix.fixed else ():
            notes.append(
                f"variances.{called}: no record of class '{name}' has trait {design.traits[t]}: its residual variance "
                f"there {'is drawn from the prior' if sampled else 'stays at its start'}"
            )
        matrices.append(matrix)
    return ResidualModel(tuple(matrices), classes), notes


def _known_residual_model(design: Design) -> ResidualModel:
    """Variances that are the mean ones of the given covariance matrices; all are fixed."""
    start = np.eye(design.n_traits)
    for group in design.correlated:
        assert group.variance is not None, "it is known"
        start[group.trait, group.trait] = group.variance
    blocks = diagonal_blocks(design.n_traits)
    return ResidualModel((CovarianceModel(start, True, blocks, name="residual"),))


def reference_class(design: Design, trait: int) -> int:
    """The class with most records of the trait, the first of several."""
    observed = design.patterns[:, trait][design.pattern]
    return int(np.bincount(design.class_of_pattern[design.pattern[observed]]).argmax())


def _check_classes_of_categories(
    spec: Variance, matrix: CovarianceModel, unit: set[int], design: Design, c: int
) -> None:
    """ConfigError for a start other than 1 in the reference class; ModelError for a flat prior that the likelihood of
    another class leaves improper: as its residual variance grows, a record at either end keeps a probability of 1/2.
    """
    for t in sorted(unit if spec.start is not None else ()):
        variance = float(matrix.start[t, t])
        if variance != 1.0:
            raise ConfigError(
                f"variances.{matrix.name}.start: found {variance:g} for {design.traits[t]}, needed 1: this class has "
                f"most records of {design.traits[t]}, and its residual variance sets the scale of the liability"
            )
    if matrix.fixed or not matrix.flat:
        return
    of_class = design.class_of_pattern[design.pattern] == c
    for response in design.responses:
        if not response.has_unit_residual or response.trait in unit:
            continue
        seen, down, up = response.one_sided_masks()
        between = int(np.count_nonzero(of_class & seen & ~down & ~up))
        if between <= 2:
            raise ModelError(
                f"variances.{matrix.name}.prior: found flat for {design.traits[response.trait]}, of which {between} "
                "records of this class lie in a middle category: the posterior does not exist, since nothing holds its "
                "residual variance back; needed prior: {half_t: {}} (the default) or {df: ..., scale: ...}"
            )


def _with_unit_variances(
    residual: CovarianceModel, in_categories: set[int], unit: set[int], given: bool
) -> CovarianceModel:
    """Traits in categories start at a residual variance of 1 unless a start is given; those in `unit` stay there, and
    a matrix of nothing else is fixed.
    """
    if not in_categories:
        return residual
    start = residual.start.copy()
    for t in in_categories if not given else unit:
        if start[t, t] != 1.0:  # a default
            start[t, :] = start[:, t] = 0.0
            start[t, t] = 1.0
    held = all(set(block) <= unit and len(block) == 1 for block in residual.blocks)
    return replace(residual, start=start, unit=tuple(sorted(unit)), fixed=residual.fixed or held)


def _note_unused_covariances(
    spec: Variance, residual: CovarianceModel, traits: Sequence[str], called: str
) -> list[str]:
    """A note for each residual covariance that was given, of traits that no record has together."""
    if spec.start is None:
        return []
    given, used = np.array(spec.start, float), residual.start
    return [
        f"variances.{called}: the covariance {given[i, j]:g} of {traits[i]} and {traits[j]} is not used: no "
        "record has both traits, so it is 0"
        for i, j in zip(*np.nonzero(np.triu(given != used)), strict=True)
    ]
