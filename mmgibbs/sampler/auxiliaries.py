"""The auxiliary variables of a prior (models/priors/mixture.py) given its covariance matrix."""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.gamma import gamma
from mmgibbs.draws.purpose import AUXILIARY, stream
from mmgibbs.engines.device_sweep import AuxiliaryVariables, DeviceVariances, VariancePlan, auxiliary_name
from mmgibbs.posterior.parameters import Parameter
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.mixed_model import MatrixUnderScalePrior


class Auxiliaries:
    """a | G, after which the prior of G is the inverse Wishart that a makes of it."""

    parameters: dict[str, Parameter] = {}

    def __init__(self, of: MatrixUnderScalePrior, matrices: CovarianceMatrices, key: tuple[int, int]):
        assert of.covariance.prior.mixture is not None, "others have none"
        self.of, self.matrices, self.key = of, matrices, key
        self.mixture = of.covariance.prior.mixture
        self.site = stream(AUXILIARY, of.term)
        matrices.take_auxiliaries(of.name, self.mixture.start())

    def __call__(self, number: int) -> None:
        of_class = self.of.residual_class
        matrix = self.matrices[self.of.name] if of_class is None else self.matrices.R[of_class]
        c = self.mixture.conditional(matrix, self.of.covariance.size_of_block)
        k = len(c.rate)
        first = 0 if of_class is None else of_class * k
        draws = np.array([gamma(shape, number, first + i, self.site, 0, *self.key) for i, shape in enumerate(c.shape)])
        draws /= c.rate
        self.matrices.take_auxiliaries(self.of.name, 1 / draws if c.inverse else draws)

    can_launch = True

    def add_to_plan(self, plan: VariancePlan) -> None:
        """See resident.DeviceStep."""
        of = self.of
        plan.auxiliaries.append(AuxiliaryVariables(of.name, of.covariance, of.term, of.residual_class))
        plan.values[auxiliary_name(of.name)] = (len(of.covariance.start),)

    def launch(self, variances: DeviceVariances) -> None:
        """See resident.DeviceStep: all are drawn together at the end of a sweep."""

    def draws(self) -> dict[str, np.ndarray]:
        return {}

    def state(self) -> dict[str, np.ndarray]:
        return {auxiliary_name(self.of.name): self.matrices.auxiliaries[self.of.name]}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.matrices.take_auxiliaries(self.of.name, state[auxiliary_name(self.of.name)].copy())
