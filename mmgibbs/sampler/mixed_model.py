"""What is sampled, and what of it is followed draw by draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.models.design import Design
from mmgibbs.models.residual import ResidualModel
from mmgibbs.posterior.adjusted_means import AdjustedMeans
from mmgibbs.posterior.averages import LevelAverages
from mmgibbs.posterior.decisions import Decisions
from mmgibbs.posterior.draw_names import RESIDUAL, class_matrix_name, matrix_name
from mmgibbs.posterior.observed_scale import ObservedScale
from mmgibbs.posterior.predictive import PredictedClasses
from mmgibbs.posterior.probabilities import Probabilities
from mmgibbs.posterior.totals import TotalValues
from mmgibbs.posterior.trait_moments import TraitMoments


class MatrixUnderScalePrior(NamedTuple):
    """A covariance matrix whose prior has auxiliary variables."""

    name: str
    term: int  # its number among the terms, beyond them for the residuals
    covariance: CovarianceModel
    residual_class: int | None = None  # number of the class whose residuals it is of


@dataclass(frozen=True)
class MixedModel:
    """Design and covariance matrices: what is sampled."""

    design: Design
    covariances: tuple[CovarianceModel | None, ...]  # one per term; None for fixed terms
    residual: ResidualModel  # a CovarianceModel represents that of all records
    saved: dict[str, np.ndarray] = field(default_factory=dict)  # term name -> level codes whose draws are kept
    averaged: dict[str, LevelAverages] = field(
        default_factory=dict
    )  # term name -> groups of levels whose mean is kept in every draw
    decisions: Decisions | None = None  # candidates whose ranks are counted in every draw
    totals: tuple[TotalValues, ...] = ()  # breeding values from SNPs and pedigree together
    marker_draws: int = 0  # draws of SNP effects that are kept at most, over all chains
    observed: tuple[ObservedScale, ...] = ()  # incidences and heritabilities that are computed in every draw
    means: tuple[AdjustedMeans, ...] = ()  # of the levels of chosen effects
    moments: tuple[TraitMoments, ...] = ()  # traits whose mean and fixed effects are followed
    predicted: tuple[PredictedClasses, ...] = ()  # classes whose records are drawn anew in every draw
    probabilities: tuple[Probabilities, ...] = ()  # of categories, for every level of a term

    def __post_init__(self) -> None:
        if isinstance(self.residual, CovarianceModel):
            object.__setattr__(self, "residual", ResidualModel((self.residual,)))

    @property
    def followed_bytes(self) -> int:
        """Bytes that one chain keeps of candidates, probabilities and means."""
        decided = 0 if self.decisions is None else self.decisions.nbytes
        means = sum(8 * len(m.levels) ** 2 for m in self.means)
        return decided + means + sum(asked.nbytes for asked in self.probabilities)

    @property
    def bytes_of_marker_draws(self) -> int:
        """Bytes of the draws of SNP effects of all chains."""
        return 4 * self.marker_draws * sum(m.n_snps for m in self.design.markers)

    @property
    def random_terms(self) -> list[int]:
        return [i for i, c in enumerate(self.covariances) if c is not None]

    def covariance(self, i: int) -> CovarianceModel:
        """Return the covariance model of a random term."""
        covariance = self.covariances[i]
        assert covariance is not None, "a fixed term has none"
        return covariance

    @property
    def all_fixed(self) -> bool:
        """True if no variance and no parameter of a relationship is sampled."""
        free = any(term.relationship.has_free_parameters for term in self.design.terms)
        return self.residual.fixed and all(c is None or c.fixed for c in self.covariances) and not free

    @property
    def scale_priors(self) -> list[MatrixUnderScalePrior]:
        """Matrices that are sampled under a scale prior."""
        every = [MatrixUnderScalePrior(matrix_name(i), i, c) for i, c in enumerate(self.covariances) if c is not None]
        for i, c in enumerate(self.residual.matrices):
            name, number = (class_matrix_name(i), i) if self.residual.classes else (RESIDUAL, None)
            every.append(MatrixUnderScalePrior(name, len(self.covariances), c, number))
        return [m for m in every if m.covariance.prior.mixture is not None and not m.covariance.fixed]

    def term_index(self, name: str) -> int:
        return next(i for i, t in enumerate(self.design.terms) if t.name == name)
