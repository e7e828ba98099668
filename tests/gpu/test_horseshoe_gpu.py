"""The horseshoe's chains on a real device: the host's up to rounding."""

import numpy as np
import pytest

from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.device_chains import ChainsOnDevice
from mmgibbs.regressions.horseshoe.probit import HorseshoeProbitModel, HorseshoeProbitOptions
from mmgibbs.regressions.loop import SideBySideChains
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData

pytestmark = pytest.mark.gpu
KEYS = Keys(3, (0, 4))


@pytest.mark.parametrize("slab", [None, 2.0])
@pytest.mark.parametrize("shape", [(50, 4), (3000, 300)])
def test_the_chain_of_the_host_up_to_rounding(device, shape, slab):
    rng = np.random.default_rng(1)
    X = rng.normal(2, 1, shape)
    y = (X[:, 0] + rng.normal(0, 2, shape[0]) > 2).astype(int)
    options = HorseshoeProbitOptions(collapsed=False, slab_scale=slab)
    model = HorseshoeProbitModel.prepare(RegressionData(read_predictors(X, standardise=True), y), options, Host(2))
    expected, chains = SideBySideChains(model, Host(2), KEYS, 0), ChainsOnDevice(model, device, KEYS, 0)
    for run in (expected, chains):
        run.advance(3)
    for what, values in expected.result().draws.items():
        np.testing.assert_allclose(chains.result().draws[what], values, rtol=1e-6, atol=1e-6, err_msg=what)
