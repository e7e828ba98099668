"""The horseshoe's chains on a real device: the host's up to rounding."""

import numpy as np
import pytest
from helpers.device_chains import KEYS, assert_draws_of_host

from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.device_chains import ChainsOnDevice
from mmgibbs.regressions.horseshoe.probit import HorseshoeProbitModel, HorseshoeProbitOptions
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import RegressionData

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("slab", [None, 2.0])
@pytest.mark.parametrize("shape", [(50, 4), (3000, 300)])
def test_the_chain_of_the_host_up_to_rounding(device, shape, slab):
    rng = np.random.default_rng(1)
    X = rng.normal(2, 1, shape)
    y = (X[:, 0] + rng.normal(0, 2, shape[0]) > 2).astype(int)
    options = HorseshoeProbitOptions(collapsed=False, slab_scale=slab)
    model = HorseshoeProbitModel.prepare(RegressionData(read_predictors(X, standardise=True), y), options, Host(2))
    chains = ChainsOnDevice(model, device, KEYS, 0)
    assert_draws_of_host(chains, model, 3, 1e-6)
