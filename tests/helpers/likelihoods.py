"""Restricted likelihoods of the examples, everything of which is estimated."""

from dataclasses import replace

import numpy as np
from reference import models

from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.restricted import RestrictedLikelihood
from mmgibbs.models.covariance import CovarianceModel, blocks_recorded_together, full_block
from mmgibbs.models.residual import ResidualModel, fold_classes
from mmgibbs.reml.elements import free_elements, starting_variances
from mmgibbs.reml.units import model_units

CLASSES = "two_residual_classes"


def with_classes():
    """Two traits with missing records, a residual covariance matrix for every second record."""
    example = models.example("bivariate_missing")
    design = example.design
    of_record = np.arange(design.n_records) % 2
    pattern, patterns, classes = fold_classes(design.pattern, design.patterns, of_record, 2)
    design = replace(
        design, pattern=pattern, patterns=patterns, pattern_class=classes, residual_classes=("indoor", "outdoor")
    )
    return replace(example, name=CLASSES, design=design, R=np.stack([example.R, 2.0 * np.diag(np.diag(example.R))]))


def example_of(name):
    return with_classes() if name == CLASSES else models.example(name)


def parts(example):
    """(covariance models, residual model) in which everything is estimated."""
    design = example.design
    covariances = [None if g is None else CovarianceModel(g, False, full_block(len(g))) for g in example.G]
    R = np.asarray(example.R) if np.ndim(example.R) == 3 else np.asarray(example.R)[None]
    matrices = tuple(
        CovarianceModel(own, False, blocks_recorded_together(design.patterns[design.class_of_pattern == c]))
        for c, own in enumerate(R)
    )
    return covariances, ResidualModel(matrices, design.residual_classes)


def likelihood_of(example):
    covariances, residual = parts(example)
    of_terms = [None if c is None else c.blocks for c in covariances]
    likelihood = RestrictedLikelihood(example.design, of_terms, [m.blocks for m in residual.matrices])
    elements = free_elements(example.design, covariances, residual, model_units(likelihood))
    return likelihood, elements, starting_variances(covariances, residual)


def elsewhere(variances):
    """Other variances, whose covariances are those of other correlations."""
    G = [None if g is None else 1.3 * g + 0.5 * np.diag(np.diag(g)) for g in variances.G]
    return Variances(G, 0.8 * variances.R)
