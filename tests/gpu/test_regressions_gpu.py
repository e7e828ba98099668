"""Chains of regressions on a real device: those of the host up to rounding."""

from itertools import product

import numpy as np
import pytest
from helpers.device_chains import KEYS, assert_draws_of_host

from mmgibbs.regressions import spd
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.device_chains import ChainsOnDevice
from mmgibbs.regressions.horseshoe.probit import HorseshoeProbitModel, HorseshoeProbitOptions
from mmgibbs.regressions.lasso import Lasso, LassoOptions
from mmgibbs.regressions.multinomial.hmc import MultinomialHMCModel, MultinomialHMCOptions
from mmgibbs.regressions.multinomial.polya_gamma import MultinomialPGModel, MultinomialPGOptions
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import RegressionData

pytestmark = pytest.mark.gpu
BINARY = [(50, 4), (3000, 300)]
CONTINUOUS = [(30, 5), (2000, 300), (425, 1000), (40, 75)]
CLASSES = [((300, 4), 3), ((20_000, 56), 9), ((400, 100), 3)]
CLASSES_BY_HMC = [((300, 4), 3), ((5000, 100), 10)]
CASES = [  # model, options, shape of X, classes of y, burn-in, sweeps, tolerance
    *(
        (HorseshoeProbitModel, HorseshoeProbitOptions(collapsed=False, slab_scale=slab), shape, 2, 0, 3, 1e-6)
        for shape, slab in product(BINARY, (None, 2.0))
    ),
    *((Lasso, LassoOptions(), shape, 0, 1, 3, 1e-8) for shape in CONTINUOUS),
    *((MultinomialPGModel, MultinomialPGOptions(), *of, 1, 3, 1e-7) for of in CLASSES),
    *(
        (MultinomialHMCModel, MultinomialHMCOptions(mass=mass, leapfrog_steps=30), *of, 4, 6, 1e-6)
        for of, mass in product(CLASSES_BY_HMC, ("hessian", "diagonal", "identity"))
    ),
]


@pytest.mark.parametrize(("kind", "options", "shape", "classes", "burn_in", "sweeps", "tolerance"), CASES)
@pytest.mark.parametrize("n_nodes", [50, 0], ids=["nodes", "one launch"])
def test_the_chain_of_the_host(device, monkeypatch, kind, options, shape, classes, burn_in, sweeps, tolerance, n_nodes):
    """Rounds of factors of the lasso are nodes of a graph or one launch."""
    if n_nodes == 0 and kind is not Lasso:
        pytest.skip("has no rounds")
    monkeypatch.setattr(spd, "MAX_ROUND_NODES", n_nodes)
    rng = np.random.default_rng(1)
    X = rng.normal(2, 1, shape)
    y = np.arange(shape[0]) % classes if classes else X[:, 0] - 0.5 * X[:, -1] + rng.normal(size=shape[0])
    model = kind.prepare(RegressionData(read_predictors(X, standardise=True), y), options, Host(2))
    assert_draws_of_host(ChainsOnDevice(model, device, KEYS, burn_in), model, sweeps, tolerance, burn_in=burn_in)
