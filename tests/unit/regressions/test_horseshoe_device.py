"""The horseshoe's kernels without a GPU: the chain of the host up to rounding, its latent variables bit for bit."""

import numpy as np
import pytest
from helpers.device_chains import (
    KEYS,
    assert_contract,
    assert_draws_of_host,
    assert_failed_factor_ends_the_chain,
    assert_sweep_of_host,
    compile_once,
    fill,
    make_device_chains,
)
from helpers.host_device import HostDevice
from helpers.nvrtc import ARCHITECTURES, assert_kernels_fit
from helpers.races import assert_barrier_is_needed, run_without_race
from helpers.selection import first

from mmgibbs.errors import ModelError
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.arrays.gpu import Gpu
from mmgibbs.regressions.device_chains import ChainsOnDevice, make_chains
from mmgibbs.regressions.horseshoe.device import NAMES, make_source
from mmgibbs.regressions.horseshoe.probit import HorseshoeProbitModel, HorseshoeProbitOptions
from mmgibbs.regressions.loop import SideBySideChains
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import RegressionData
from mmgibbs.regressions.spd import ONE_ROUND

KERNELS = [*(f"mmgibbs::{name}" for name in NAMES), ONE_ROUND]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The kernels of a model, compiled once for each type of predictors and products."""
    compile_types = compile_once(tmp_path_factory.mktemp("horseshoe"), make_source, KERNELS)
    return lambda model: compile_types(model.X.values.dtype, model.rows.real)


def sampler(n, p, dtype=np.float64, **options):
    rng = np.random.default_rng(n)
    X = rng.integers(0, 3, (n, p)).astype(dtype) if dtype == np.uint8 else rng.normal(2, 1, (n, p)).astype(dtype)
    y = (X[:, 0] + rng.normal(0, 2, n) > 2).astype(int)
    options = {"collapsed": False} | options
    data = RegressionData(read_predictors(X, standardise=True), y)
    return HorseshoeProbitModel.prepare(data, HorseshoeProbitOptions(**options), Host(1))


CASES = {
    "plain": (dict(n=50, p=4), 1e-8),
    "two panels, several pieces": (dict(n=300, p=70), 1e-6),
    "a slab": (dict(n=60, p=5, slab_scale=2.0), 1e-8),
    "no expansion, a flat intercept, a small global scale": (
        dict(n=60, p=5, slab_scale=1.0, expansion=False, intercept_prior_sd=None, global_scale=0.1),
        1e-8,
    ),
    "whole numbers, single precision": (dict(n=150, p=66, dtype=np.uint8, precision="single"), 2e-3),
}


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_the_chain_of_the_host_up_to_rounding(library, name, backwards):
    case, tolerance = CASES[name]
    model = sampler(**case)
    chains, _ = make_device_chains(library(model), model, backwards=backwards)
    expected = assert_draws_of_host(chains, model, 3, tolerance)
    state = chains.state()
    for what, values in expected.state().items():
        if what.startswith("state."):
            np.testing.assert_allclose(state[what], values, rtol=100 * tolerance, atol=tolerance, err_msg=what)


@pytest.mark.parametrize("slab_scale", [None, 2.0])
def test_contract(library, slab_scale):
    """Four kernels, and one round of the factor."""
    model = sampler(50, 4, slab_scale=slab_scale)
    assert_contract(library(model), model, 5, 5)


def test_models_without_kernels_run_as_array_operations(library):
    """n < p, and a collapsed draw."""
    for model in (sampler(20, 30), sampler(50, 4, collapsed=True)):
        assert not model.has_kernels
    model = sampler(50, 4)
    gpu = Gpu.__new__(Gpu)
    gpu._device = HostDevice(library(model))
    assert type(make_chains(model, gpu, KEYS, 0)) is ChainsOnDevice
    assert type(make_chains(model, Host(1), KEYS, 0)) is SideBySideChains
    model.has_kernels = False
    assert type(make_chains(model, gpu, KEYS, 0)) is SideBySideChains


@pytest.mark.parametrize("slab_scale", [None, 2.0])
def test_a_precision_beyond_all_numbers_is_bounded(library, slab_scale):
    """lambda^-2 tau^-2 of a coefficient that is 0."""
    model = sampler(50, 4, slab_scale=slab_scale)
    assert_sweep_of_host(
        library(model), model, {"local": fill((slice(None), 0), 1e200), "global": fill(..., 1e90)}, 1e-7
    )


def test_slice_steps_end_where_densities_are_lost(library):
    """No candidate is above NaN; the chain then ends with the reason."""
    model = sampler(50, 4, slab_scale=2.0)
    start, _ = make_device_chains(library(model), model)
    state = start.state()
    state["state.beta"][:, 0] = np.nan
    chains, _ = make_device_chains(library(model), model, state=state)
    with pytest.raises(ModelError, match="no longer finite"):
        chains.advance(1)


def test_a_factor_that_fails_ends_the_chain(library, monkeypatch):
    model = sampler(50, 4)
    monkeypatch.setattr(model, "gram", -1e3 * model.gram)
    assert_failed_factor_ends_the_chain(library(model), model, "beta")


MAIN = """
using namespace mmgibbs;

int main() {
    const int n = 70, p = 5, m = p + 1, pieces = 2;
    static double values[n * p], gram[m * m], centre[p], scale[p], sums[pieces * (p + 2)], square[1], both[m], beta[p];
    static double intercept[1], local[p], local_auxiliary[p], global[1] = {1}, global_auxiliary[1] = {1}, slab[1] = {1};
    static double A[(m + 1) * m], diagonals[PANEL * PANEL], slots[2 * (p + 3)];
    static unsigned char positive[n];
    static word32 sweep[1] = {3}, chain[1] = {1};
    static unsigned arrived[1];
    for (int i = 0; i < n * p; ++i) values[i] = (i * 7 % 13) / 6.0 - 1;
    for (int i = 0; i < n; ++i) positive[i] = i * 5 % 3 == 0;
    for (int j = 0; j < p; ++j) scale[j] = 1, local[j] = 1 + j, local_auxiliary[j] = 1, beta[j] = .1 * j;
    for (int j = 0; j < m; ++j) gram[j * m + j] = n;
    Horseshoe s = {values, positive, gram, centre, scale, sums, square, both, beta, intercept, local, local_auxiliary,
                   global, global_auxiliary, slab, sweep, chain, arrived, 1e-6, 1, 4, 4,
                   {0, p, p + 1, p + 2}, 7, n, p, 1, 64, pieces, 1, 1};
    Spd spd = {A, diagonals, m, m + 1, 1};
    Ring ring = {slots, p + 3, 2, 0, 1};
    Streams streams = {1, 2, 3, 4, 7, 8, 9, 10};
    run([=] { draw_latent(s, streams); }, pieces, HORSESHOE_THREADS);
    run([=] { fill_precision(s, spd); }, 1, 8);
    run([=] { one_round(spd, 0); }, 1, 8);
    run([=] { draw_coefficients(s, spd, streams); }, 1, 8);
    run([=] { draw_shrinkage(s, ring, streams); }, 1, 8);
    for (double value : slots) printf("%.17g ", value);
}
"""
NEEDED = "parts[part][i] += (double)total;"  # what stands before a barrier


@pytest.mark.slow
def test_threads_of_a_block_do_not_race_and_a_barrier_that_is_taken_out_is_noticed(tmp_path):
    text = make_source(np.float64, np.float64)
    complete = run_without_race(tmp_path, text, MAIN)
    values = np.array(complete.printed.split(), float)
    assert np.isfinite(values).all() and np.count_nonzero(values) == len(values) / 2  # one of two slots
    assert_barrier_is_needed(tmp_path, text, MAIN, NEEDED, complete)


# Bytes that may be spilled: around calls of draws, which the compiler keeps as functions.
SPILLED_BYTES = {"draw_latent": 80, "draw_coefficients": 80, "draw_shrinkage": 80}


@pytest.mark.parametrize("architecture", first(1, ARCHITECTURES))
def test_kernels_fit_on_a_device(architecture):
    text = make_source(np.uint8, np.float32)
    assert_kernels_fit(text, architecture, [ONE_ROUND], {*NAMES, "one_round"}, SPILLED_BYTES)
