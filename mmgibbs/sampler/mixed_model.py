"""What is sampled, and what of it is followed draw by draw."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mmgibbs.model.covariance import CovarianceModel
from mmgibbs.model.design import Design
from mmgibbs.model.residual import ResidualModel
from mmgibbs.posterior.averages import LevelAverages
from mmgibbs.posterior.decisions import Decisions
from mmgibbs.posterior.parameters import RESIDUAL, matrix_name


@dataclass(frozen=True)
class MixedModel:
    """Design and covariance matrices: what is sampled."""

    design: Design
    covariances: tuple[CovarianceModel | None, ...]  # one per term; None for fixed terms
    residual: ResidualModel  # a CovarianceModel stands for that of all records
    saved: dict[str, np.ndarray] = field(default_factory=dict)  # term name -> level codes whose draws are kept
    averaged: dict[str, LevelAverages] = field(
        default_factory=dict
    )  # term name -> groups of levels whose mean is kept in every draw
    decisions: Decisions | None = None  # candidates whose ranks are counted in every draw

    def __post_init__(self) -> None:
        if isinstance(self.residual, CovarianceModel):
            object.__setattr__(self, "residual", ResidualModel((self.residual,)))

    @property
    def random_terms(self) -> list[int]:
        return [i for i, c in enumerate(self.covariances) if c is not None]

    def covariance(self, i: int) -> CovarianceModel:
        """Of a random term."""
        covariance = self.covariances[i]
        assert covariance is not None, "a fixed term has none"
        return covariance

    @property
    def scale_priors(self) -> list[tuple[str, int, CovarianceModel]]:
        """(name of the matrix, number of its term, model) of each matrix that is sampled under a scale prior."""
        every = [(matrix_name(i), i, c) for i, c in enumerate(self.covariances) if c is not None]
        if not self.residual.classes:
            every.append((RESIDUAL, len(self.covariances), self.residual.matrices[0]))
        return [(name, i, c) for name, i, c in every if c.scale_prior is not None and not c.fixed]

    def term_index(self, name: str) -> int:
        return next(i for i, t in enumerate(self.design.terms) if t.name == name)
