"""The hierarchical model's chains on a real device: the host's, bit for bit with slice steps."""

import numpy as np
import pytest
from helpers.hierarchical_tables import KEYS, sampler, table

from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.device_chains import ChainsOnDevice
from mmgibbs.regressions.loop import SideBySideChains

pytestmark = pytest.mark.gpu
CASES = {
    "labels": ({}, {}),
    "counts of three classes": ({"response": "counts"}, {}),
    "Poisson counts": ({"response": "poisson"}, {"family": "poisson"}),
    "whole numbers": ({"dtype": np.uint8}, {}),
    "500 groups of 500": ({"sizes": (500,) * 500, "p": 10}, {"precision": "single"}),
    "many coefficients": ({"p": 17, "response": "three", "sizes": (4, 900)}, {}),
}


def both(device, case, options, sweeps):
    X, y, groups = table(np.random.default_rng(21), **case)
    model = sampler(X, y, groups, threads=2, **options)
    chains = SideBySideChains(model, Host(2), KEYS, 1), ChainsOnDevice(model, device, KEYS, 1)
    for run in chains:
        run.advance(sweeps)
    return [run.result().draws for run in chains]


@pytest.mark.parametrize("name", CASES)
def test_slice_steps_draw_the_chain_of_the_host(device, name):
    expected, found = both(device, *CASES[name], 80)  # more draws than a ring has slots
    for what, values in expected.items():
        np.testing.assert_array_equal(found[what], values, err_msg=what)


@pytest.mark.parametrize("response", ["binary", "three", "counts"])
def test_polya_gamma_steps_draw_it_up_to_rounding(device, response):
    expected, found = both(device, {"response": response}, {"method": "polya_gamma"}, 6)
    for what, values in expected.items():
        np.testing.assert_allclose(found[what], values, rtol=1e-7, atol=1e-9, err_msg=what)
