"""Hamiltonian Monte Carlo of the multinomial logit on a real device: the host's chains up to rounding."""

import numpy as np
import pytest
from helpers.device_chains import KEYS, assert_draws_of_host

from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.device_chains import ChainsOnDevice
from mmgibbs.regressions.multinomial.hmc import MultinomialHMCModel, MultinomialHMCOptions
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import RegressionData

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("mass", ["hessian", "diagonal", "identity"])
@pytest.mark.parametrize("shape, n_classes", [((300, 4), 3), ((5000, 100), 10)])
def test_the_chain_of_the_host_up_to_rounding(device, shape, n_classes, mass):
    rng = np.random.default_rng(1)
    data = RegressionData(read_predictors(rng.normal(2, 1, shape), standardise=True), np.arange(shape[0]) % n_classes)
    model = MultinomialHMCModel.prepare(data, MultinomialHMCOptions(mass=mass, leapfrog_steps=30), Host(2))
    chains = ChainsOnDevice(model, device, KEYS, 4)
    assert_draws_of_host(chains, model, 6, 1e-6, burn_in=4)
