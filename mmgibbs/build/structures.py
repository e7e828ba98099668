"""The structure of a covariance matrix, from its section of the analysis and the size of its traits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mmgibbs.build.priors import build_prior
from mmgibbs.config.priors import read_prior
from mmgibbs.config.variances import Variance
from mmgibbs.models.covariance import CovarianceModel, diagonal_blocks
from mmgibbs.models.design import Design
from mmgibbs.models.priors import PROPER
from mmgibbs.models.priors.half_t import HalfT
from mmgibbs.models.structures.base import Structure, StructureContext
from mmgibbs.models.terms import Term


def make_structure(
    spec: Variance, term: Term, labels: Sequence[str], design: Design, phenotypic: np.ndarray
) -> Structure | None:
    """Make the structure; None for a full or diagonal matrix. phenotypic (T,): variance of each trait."""
    section = spec.structure
    if not section.is_structured:
        return None
    given = read_prior(PROPER) if spec.prior is None else spec.prior
    prior: Any = build_prior(given, term.name, labels, list(term.component_trait), design, phenotypic)
    matrix = np.array(spec.start, float) if spec.fixed and spec.start is not None else None
    sd = np.sqrt(phenotypic[term.component_trait])
    return section.kind_class.build(section, StructureContext(term, design, sd, prior.A, prior.nu, matrix))


def variances_alone(covariance: CovarianceModel | None) -> CovarianceModel | None:
    """A matrix with a structure as its variances: what the records must tell of it, as two components without a level
    in common are related through the parameters that they share with others."""
    if covariance is None or covariance.structure is None:
        return covariance
    structure = covariance.structure
    prior = HalfT(structure.nu, structure.sd_scale)
    return replace(covariance, blocks=diagonal_blocks(len(covariance.start)), structure=None, prior=prior)
