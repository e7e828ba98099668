"""The hierarchical model's kernels without a GPU: run by g++ they draw the host's chain, bit for bit with slice steps;
a sweep is three kernels of one graph, and the host neither allocates nor copies nor waits in it.
"""

import json
import warnings

import numpy as np
import polars as pl
import pytest
import xarray
from helpers.device_chains import make_device_chains
from helpers.hierarchical_tables import KEYS, sampler, table
from helpers.host_device import HostDevice, build
from helpers.selection import first

from benchmarks.regressions import seconds_on_device
from mmgibbs.cli import main
from mmgibbs.errors import DeviceError, ModelError
from mmgibbs.regressions import graph_chains
from mmgibbs.regressions.arrays import gpu
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.device_chains import ChainsOnDevice
from mmgibbs.regressions.estimators import HierarchicalSlice
from mmgibbs.regressions.hierarchical.device import POLYA_GAMMA_GROUPS, SLICE_GROUPS, list_kernels, make_source
from mmgibbs.regressions.loop import SideBySideChains

OF_POPULATION = list_kernels("logit", "slice")[1:]
NAMES = {
    "slice": [*SLICE_GROUPS.values(), *OF_POPULATION],
    "polya_gamma": [POLYA_GAMMA_GROUPS, *OF_POPULATION],
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Kernels of a model's method and type of predictors, each compiled once."""
    folder, built = tmp_path_factory.mktemp("hierarchical"), {}

    def of_model(model):
        method, dtype = model.options.method, model.groups.columns.dtype
        name = f"{method}_{dtype.name}"
        if name not in built:
            built[name] = build(folder, name, make_source(dtype, method), NAMES[method])
        return built[name]

    return of_model


def assert_same_result(result, expected):
    for kept, wanted in ((result.draws, expected.draws), (result.statistics, expected.statistics)):
        assert kept.keys() == wanted.keys()
        for name, values in wanted.items():
            np.testing.assert_array_equal(kept[name], values, err_msg=name)


CASES = {
    "labels": {},
    "labels of three classes": {"response": "three"},
    "counts of three classes": {"response": "counts"},
    "Poisson counts": {"response": "poisson", "family": "poisson"},
    "a long group, many groups": {"sizes": (700, *[3, 1, 5] * 45)},
    "many coefficients": {"p": 17, "response": "three", "sizes": (4, 9)},
    "whole numbers": {"dtype": np.uint8},
}


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", first(6, CASES))
def test_slice_steps_draw_the_chain_of_the_host(library, name, backwards):
    """Bit for bit, with group predictors, whatever the order of blocks and threads."""
    case = dict(CASES[name])
    family = case.pop("family", "logit")
    if backwards and name.startswith(("many", "a long")):
        pytest.skip("the order of threads is tried on the short cases")
    rng = np.random.default_rng(21)
    X, y, groups = table(rng, **case)
    z = rng.standard_normal((groups.max() + 1, 1))
    host, device = (sampler(X, y, groups, z, family=family) for _ in range(2))
    expected = SideBySideChains(host, Host(1), KEYS, 1)
    chains, _ = make_device_chains(library(device), device, KEYS, burn_in=1, backwards=backwards)
    for run in (expected, chains):
        run.advance(4)
    assert_same_result(chains.result(), expected.result())
    for what, values in expected.state().items():
        if what.startswith("state."):
            np.testing.assert_array_equal(chains.state()[what], values, err_msg=what)


@pytest.mark.parametrize("response", ["binary", "three", "counts"])
def test_polya_gamma_steps_draw_the_chain_of_the_host_up_to_rounding(library, response):
    X, y, groups = table(np.random.default_rng(22), response=response)
    host, device = (sampler(X, y, groups, method="polya_gamma") for _ in range(2))
    expected, chains = SideBySideChains(host, Host(1), KEYS, 0), make_device_chains(library(device), device, KEYS)[0]
    for run in (expected, chains):
        run.advance(6)
    for name, values in expected.result().draws.items():
        np.testing.assert_allclose(chains.result().draws[name], values, rtol=1e-7, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("save_groups", [True, False])
def test_a_run_goes_on_from_host_to_device_and_back(library, save_groups):
    """Checkpoints are the same; so are the draws, thinned."""
    X, y, groups = table(np.random.default_rng(24))
    model = sampler(X, y, groups, save_groups=save_groups)
    whole = SideBySideChains(model, Host(1), KEYS, 3, 2)
    whole.advance(16)
    first = SideBySideChains(model, Host(1), KEYS, 3, 2)
    first.advance(6)
    second, _ = make_device_chains(library(model), model, KEYS, burn_in=3, thin=2, state=first.state())
    second.advance(11)
    assert second.state().keys() == first.state().keys()
    third = SideBySideChains(model, Host(1), KEYS, 3, 2, second.state())
    third.advance(16)
    assert_same_result(third.result(), whole.result())


def test_a_sweep_is_a_graph_of_three_kernels_and_the_host_waits_only_for_full_rings(library, monkeypatch):
    monkeypatch.setattr(graph_chains, "count_slots", lambda slot_bytes: 8)
    X, y, groups = table(np.random.default_rng(25))
    model = sampler(X, y, groups)
    chains, device = make_device_chains(library(model), model, KEYS, burn_in=5)
    chains.advance(1)  # kernels are loaded
    device.asked.clear()
    for _ in range(4):
        chains._sweep(0)
    assert device.asked == [] and device.nodes == [3] * 4 and device.graphs == 1
    for _ in range(12):  # three halves of a ring: sent, and looked at when the next half is full
        chains._sweep(0)
        chains._keep({})
    assert device.asked == ["download", "download", "wait", "download", "wait"]
    chains.number = 17
    draws, expected = chains.result().draws, SideBySideChains(model, Host(1), KEYS, 5)
    expected.advance(17)
    for name, values in expected.result().draws.items():
        np.testing.assert_array_equal(draws[name], values)


def test_the_benchmark_times_sweeps_that_keep_nothing(library):
    X, y, groups = table(np.random.default_rng(28))
    model = sampler(X, y, groups)
    device = HostDevice(library(model))
    assert seconds_on_device(model, device, 2, n_sweeps=3) > 0
    assert device.nodes == [3] * 5


class HostGpuDevice(HostDevice):
    """What `arrays.gpu.Gpu` asks of a device besides, for models that are no array operations."""

    cupy = np

    def kernels(self, text):
        return None


@pytest.fixture
def device_of_this_host(library, monkeypatch):
    """A function: `device: gpu` finds a device whose kernels of that method g++ compiled."""

    def with_kernels_of(method):
        compiled = library(sampler(*table(np.random.default_rng(0)), method=method))
        monkeypatch.setattr(gpu, "Device", lambda: HostGpuDevice(compiled))

    return with_kernels_of


@pytest.mark.parametrize(("asked", "used", "tolerance"), [("slice", "slice", 0.0), ("auto", "polya_gamma", 1e-7)])
def test_an_estimator_draws_the_same_on_either_device(device_of_this_host, asked, used, tolerance):
    """By default with Polya-Gamma variables on both."""
    device_of_this_host(used)
    X, y, groups = table(np.random.default_rng(29), (30, 30, 30))
    settings = {"method": asked, "chains": 2, "burn_in": 3, "samples": 40 if tolerance else 80, "seed": 3}
    with warnings.catch_warnings(action="ignore"):  # of few effective draws
        host, device = (HierarchicalSlice(device=name, **settings).fit(X, y, groups) for name in ("cpu", "gpu"))
    assert host.options_ == device.options_ and host.options_["method"] == used
    for name in host.posterior:
        values = device.posterior[name], host.posterior[name]
        np.testing.assert_allclose(*values, rtol=tolerance, atol=tolerance, err_msg=name)


ANALYSIS = """\
name: groups
data: {phenotypes: table.csv}
model: {plugin: hierarchical_slice, response: y, predictors: [x0, x1], groups: g, options: {method: slice}}
sampler: {chains: 2, burn_in: 3, samples: 9, thin: 1, seed: 3, threads: 1}
output: {directory: run}
"""


def test_a_run_says_its_device_and_continues_on_the_other(device_of_this_host, tmp_path, monkeypatch):
    device_of_this_host("slice")
    X, y, groups = table(np.random.default_rng(30), (30, 30, 30))
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"y": np.where(y, "yes", "no"), "g": groups, "x0": X[:, 0], "x1": X[:, 1]}).write_csv("table.csv")
    (tmp_path / "a.yaml").write_text(ANALYSIS)
    arguments = ["run", "a.yaml", "--quiet", "--no-report"]
    assert main([*arguments, "--set=sampler.device=gpu"]) == 0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["device"] == "gpu"
    assert main([*arguments, "--extend=6"]) == 0 and main([*arguments, "--output=cpu", "--set=sampler.samples=15"]) == 0
    draws = [
        xarray.open_datatree(f"{run}/draws.nc", engine="h5netcdf")["posterior"].to_dataset() for run in ("run", "cpu")
    ]
    for name in draws[1]:
        np.testing.assert_array_equal(draws[0][name], draws[1][name], err_msg=name)


def test_too_little_memory_is_said_with_the_number_of_bytes(library):
    X, y, groups = table(np.random.default_rng(26))
    model = sampler(X, y, groups)
    device = HostDevice(library(model))
    device.free = 10_000
    with pytest.raises(DeviceError, match=r"found 10,000 bytes free on the device, needed \d+,\d+ for the sampler"):
        ChainsOnDevice(model, device, KEYS, 0)
    assert device.asked == []


def test_a_chain_whose_covariance_is_lost_stands_still_and_ends_with_the_reason(library):
    X, y, groups = table(np.random.default_rng(27))
    model = sampler(X, y, groups)
    state = SideBySideChains(model, Host(1), KEYS, 0).state()
    state["state.covariance"][1] = -np.eye(model.d)
    chains, _ = make_device_chains(library(model), model, KEYS, state=state)
    with pytest.raises(ModelError, match="no longer finite"):
        chains.advance(2)
    np.testing.assert_array_equal(chains.current["beta"][1], state["state.beta"][1])
    with pytest.raises(ModelError, match="no Cholesky factor"):
        SideBySideChains(model, Host(1), KEYS, 0, 1, state).advance(2)
