"""The lasso's chains on a real device: the host's up to rounding, rounds as nodes and as one launch."""

import numpy as np
import pytest

from mmgibbs.regressions import spd
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.device_chains import ChainsOnDevice
from mmgibbs.regressions.lasso import Lasso, LassoOptions
from mmgibbs.regressions.loop import SideBySideChains
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData

pytestmark = pytest.mark.gpu
KEYS = Keys(3, (0, 4))


@pytest.mark.parametrize("n_nodes", [50, 0], ids=["nodes", "one launch"])
@pytest.mark.parametrize("shape", [(30, 5), (2000, 300), (425, 1000), (40, 75)])
def test_the_chain_of_the_host_up_to_rounding(device, monkeypatch, shape, n_nodes):
    monkeypatch.setattr(spd, "MAX_ROUND_NODES", n_nodes)
    rng = np.random.default_rng(1)
    X = rng.normal(2, 1, shape)
    y = X[:, 0] - 0.5 * X[:, -1] + rng.normal(size=shape[0])
    data = RegressionData(read_predictors(X, standardise=True), y)
    model = Lasso.prepare(data, LassoOptions(), Host(2))
    expected, chains = SideBySideChains(model, Host(2), KEYS, 1), ChainsOnDevice(model, device, KEYS, 1)
    for run in (expected, chains):
        run.advance(3)
    for what, values in expected.result().draws.items():
        np.testing.assert_allclose(chains.result().draws[what], values, rtol=1e-8, atol=1e-8, err_msg=what)
