"""The multinomial logit's chains on a real device: the host's up to rounding."""

import numpy as np
import pytest

from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.device_chains import ChainsOnDevice
from mmgibbs.regressions.loop import SideBySideChains
from mmgibbs.regressions.multinomial.polya_gamma import MultinomialPGModel, MultinomialPGOptions
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData

pytestmark = pytest.mark.gpu
KEYS = Keys(3, (0, 4))


@pytest.mark.parametrize("shape, n_classes", [((300, 4), 3), ((20_000, 56), 9), ((400, 100), 3)])
def test_the_chain_of_the_host_up_to_rounding(device, shape, n_classes):
    rng = np.random.default_rng(1)
    X = rng.normal(2, 1, shape)
    data = RegressionData(read_predictors(X, standardise=True), rng.integers(0, n_classes, shape[0]))
    model = MultinomialPGModel.prepare(data, MultinomialPGOptions(), Host(2))
    expected, chains = SideBySideChains(model, Host(2), KEYS, 1), ChainsOnDevice(model, device, KEYS, 1)
    for run in (expected, chains):
        run.advance(3)
    for what, values in expected.result().draws.items():
        np.testing.assert_allclose(chains.result().draws[what], values, rtol=1e-7, atol=1e-7, err_msg=what)
