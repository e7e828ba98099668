"""The multinomial logit's chains on a real device: the host's up to rounding."""

import numpy as np
import pytest
from helpers.device_chains import KEYS, assert_draws_of_host

from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.device_chains import ChainsOnDevice
from mmgibbs.regressions.multinomial.polya_gamma import MultinomialPGModel, MultinomialPGOptions
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import RegressionData

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("shape, n_classes", [((300, 4), 3), ((20_000, 56), 9), ((400, 100), 3)])
def test_the_chain_of_the_host_up_to_rounding(device, shape, n_classes):
    rng = np.random.default_rng(1)
    X = rng.normal(2, 1, shape)
    data = RegressionData(read_predictors(X, standardise=True), rng.integers(0, n_classes, shape[0]))
    model = MultinomialPGModel.prepare(data, MultinomialPGOptions(), Host(2))
    chains = ChainsOnDevice(model, device, KEYS, 1)
    assert_draws_of_host(chains, model, 3, 1e-7, burn_in=1)
