"""The auxiliary variables of a scale prior (model/priors.py) given its covariance matrix."""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.gamma import gamma
from mmgibbs.draws.purpose import AUXILIARY, stream
from mmgibbs.model.covariance import CovarianceModel
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.covariances import CovarianceMatrices


class Auxiliaries:
    """a | G, after which the prior of G is the inverse Wishart that a makes of it."""

    parameters: dict[str, Parameter] = {}

    def __init__(
        self, name: str, term: int, covariance: CovarianceModel, matrices: CovarianceMatrices, key: tuple[int, int]
    ):
        """name: of the matrix; term: its number among the terms, beyond them for the residuals."""
        assert covariance.scale_prior is not None
        self.name, self.term, self.covariance, self.matrices, self.key = name, term, covariance, matrices, key
        self.prior = covariance.scale_prior
        self._take(self.prior.start())

    def _take(self, a: np.ndarray) -> None:
        self.a = a
        self.matrices.priors[self.name] = self.covariance.given(a)

    def __call__(self, number: int) -> None:
        c = self.prior.conditional(self.matrices[self.name])
        site = stream(AUXILIARY, self.term)
        draws = np.array([gamma(c.shape, number, i, site, 0, *self.key) for i in range(len(c.rate))]) / c.rate
        self._take(1 / draws if c.inverse else draws)

    def draws(self) -> dict[str, np.ndarray]:
        return {}

    def state(self) -> dict[str, np.ndarray]:
        return {f"auxiliary.{self.name}": self.a}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self._take(state[f"auxiliary.{self.name}"].copy())
