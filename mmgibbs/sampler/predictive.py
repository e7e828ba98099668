"""Records of a trait that is not normal, drawn anew for the sweeps that are kept (posterior/predictive.py)."""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.generator import make_generator
from mmgibbs.draws.purpose import PREDICTED, stream
from mmgibbs.engines.base import LiabilityEngine
from mmgibbs.models.residual import stack_classes
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.posterior.predictive import PredictedClasses
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.liabilities import LiabilityStep


class PredictedRecords:
    """A step on which no other depends; its draws have a generator of their own, keyed by sweep and (seed, chain)."""

    def __init__(
        self,
        classes: PredictedClasses,
        liabilities: LiabilityStep,
        engine: LiabilityEngine,
        matrices: CovarianceMatrices,
        key: tuple[int, int],
    ):
        self.classes, self.liabilities, self.engine, self.matrices = classes, liabilities, engine, matrices
        self.key, self.number = key, 0
        self._drawn: dict[str, np.ndarray] | None = None  # of this sweep, once they are asked for
        equations = engine.equations
        self.rows = np.argsort(equations.records.record)[classes.records]  # in sweep order
        design = equations.design
        self.residual_class = design.class_of_pattern[design.pattern[classes.records]]
        self.parameters = {classes.draws: Parameter((f"{classes.draws}_cell",), "shares of categories, class by class")}

    def __call__(self, number: int) -> None:
        self.number, self._drawn = number, None

    def draws(self) -> dict[str, np.ndarray]:
        if self._drawn is None:
            self._drawn = self._draw()
        return self._drawn

    def _draw(self) -> dict[str, np.ndarray]:
        """The shares of categories of the records of this sweep."""
        t, rows = self.classes.trait, self.rows
        eta = self.engine.y[rows, t].astype(np.float64) - self.engine.e[rows, t]
        V = stack_classes(self.matrices.R)[:, t, t][self.residual_class]
        rng = make_generator(self.number, 0, stream(PREDICTED, t), self.key)
        return {self.classes.draws: self.classes.predicted(eta, V, self.liabilities.cuts, rng).ravel()}

    def state(self) -> dict[str, np.ndarray]:
        return {}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self._drawn = None
