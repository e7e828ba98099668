"""The lasso's chains on a real device: the host's up to rounding, rounds as nodes and as one launch."""

import numpy as np
import pytest
from helpers.device_chains import KEYS, assert_draws_of_host

from mmgibbs.regressions import spd
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.device_chains import ChainsOnDevice
from mmgibbs.regressions.lasso import Lasso, LassoOptions
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import RegressionData

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("n_nodes", [50, 0], ids=["nodes", "one launch"])
@pytest.mark.parametrize("shape", [(30, 5), (2000, 300), (425, 1000), (40, 75)])
def test_the_chain_of_the_host_up_to_rounding(device, monkeypatch, shape, n_nodes):
    monkeypatch.setattr(spd, "MAX_ROUND_NODES", n_nodes)
    rng = np.random.default_rng(1)
    X = rng.normal(2, 1, shape)
    y = X[:, 0] - 0.5 * X[:, -1] + rng.normal(size=shape[0])
    data = RegressionData(read_predictors(X, standardise=True), y)
    model = Lasso.prepare(data, LassoOptions(), Host(2))
    chains = ChainsOnDevice(model, device, KEYS, 1)
    assert_draws_of_host(chains, model, 3, 1e-8, burn_in=1)
