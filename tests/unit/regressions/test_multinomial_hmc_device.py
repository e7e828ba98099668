"""The kernels of Hamiltonian Monte Carlo without a GPU: the chain of the host up to rounding."""

import numpy as np
import pytest
from helpers.device_chains import (
    KEYS,
    assert_draws_of_host,
    assert_sweep_of_host,
    compile_once,
    fill,
    make_device_chains,
)
from helpers.nvrtc import ARCHITECTURES, assert_kernels_fit
from helpers.races import assert_barrier_is_needed, run_without_race
from helpers.selection import first

from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.device_chains import ChainsOnDevice
from mmgibbs.regressions.loop import SideBySideChains
from mmgibbs.regressions.multinomial.hmc import MultinomialHMCModel, MultinomialHMCOptions
from mmgibbs.regressions.multinomial.hmc_device import NAMES, make_source
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData

KERNELS = [f"mmgibbs::{name}" for name in NAMES]
FIXED = {"adaptation": "none", "step_size": 0.02, "leapfrog_steps": 23}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The kernels of a model, compiled once for each type of predictors and products."""
    compile_types = compile_once(tmp_path_factory.mktemp("hmc"), make_source, KERNELS)
    return lambda model: compile_types(model.X.values.dtype, model.real)


def sampler(n=40, p=3, n_classes=3, dtype=np.float64, are_counts=False, standardise=True, **options):
    rng = np.random.default_rng(n)
    X = rng.integers(0, 3, (n, p)).astype(dtype) if dtype == np.uint8 else rng.normal(2, 1, (n, p)).astype(dtype)
    y = rng.integers(0, 4, (n, n_classes)) if are_counts else np.arange(n) % n_classes
    data = RegressionData(read_predictors(X, standardise=standardise), y)
    return MultinomialHMCModel.prepare(data, MultinomialHMCOptions(**options), Host(1))


# The case, the tolerance, and the sweeps of burn-in and in all: Hessians are renewed after a tenth sweep of burn-in.
CASES = {
    "Hessian, pooled": (dict(n=300, leapfrog_steps=30), 1e-7, 21, 24),
    "Hessian, separate": (dict(adaptation="separate", leapfrog_steps=20), 1e-7, 20, 23),
    "Hessian, fixed": (dict(**FIXED), 1e-9, 2, 4),
    "fixed, cooled down": (dict(**FIXED, temperature=1.2), 1e-9, 4, 5),
    "steps that diverge while they are learnt": (
        dict(mass="diagonal", prior="normal", step_size=1e200, leapfrog_steps=3), 1e-7, 8, 9,
    ),
    "learnt masses": (dict(mass="diagonal", leapfrog_steps=20), 1e-7, 8, 11),
    "learnt masses, separate": (dict(mass="diagonal", adaptation="separate", leapfrog_steps=9), 1e-7, 8, 11),
    "identity, counts, five classes": (
        dict(n_classes=5, are_counts=True, mass="identity", prior="normal", intercept_scale=3.0, leapfrog_steps=9),
        1e-8, 3, 5,
    ),
    "diagonal, fixed, no intercept": (
        dict(intercept=False, standardise=False, n_classes=2, mass="diagonal", **FIXED), 1e-9, 2, 4,
    ),
    "columns of two tiles": (dict(p=70, n_classes=4, leapfrog_steps=5), 1e-8, 3, 4),
    "whole numbers, single precision": (dict(dtype=np.uint8, precision="single", leapfrog_steps=9), 2e-3, 3, 4),
}  # fmt: skip


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_the_chain_of_the_host_up_to_rounding(library, name, backwards):
    case, tolerance, burn_in, n_sweeps = CASES[name]
    model = sampler(**case)
    chains, _ = make_device_chains(library(model), model, burn_in=burn_in, backwards=backwards)
    expected = assert_draws_of_host(chains, sampler(**case), n_sweeps, tolerance, burn_in=burn_in)
    found = chains.state()
    assert expected.state().keys() == found.keys()
    for what, values in expected.state().items():
        if what.startswith(("state.", "statistics.")):
            np.testing.assert_allclose(found[what], values, rtol=100 * tolerance, atol=100 * tolerance, err_msg=what)


def test_logits_whose_exponential_is_beyond_all_numbers(library):
    """Two steps of a trajectory that begins far out."""
    model = sampler(adaptation="none", mass="identity", prior="normal", step_size=1e-6, leapfrog_steps=2)

    def enlarge(position):
        position *= 5e3 / np.abs(position).max()

    accepted = {"log_density": fill(..., -1e12)}  # wherever the trajectory ends
    assert_sweep_of_host(library(model), model, {"position": enlarge} | accepted, 1e-6)


@pytest.mark.parametrize("options", [{"adaptation": "separate"}, {"mass": "diagonal", **FIXED}])
def test_a_chain_goes_on_alone_bit_for_bit(library, options):
    model = sampler(**options)
    together, _ = make_device_chains(library(model), model, burn_in=3)
    together.advance(2)
    state = {name: values[-1:] if name.startswith("state.") else values for name, values in together.state().items()}
    alone, _ = make_device_chains(library(model), model, Keys(KEYS.seed, KEYS.chains[-1:]), burn_in=3, state=state)
    for run in (together, alone):
        run.advance(6)
    for name, values in alone.result().draws.items():
        np.testing.assert_array_equal(together.result().draws[name][-1:], values, err_msg=name)


@pytest.mark.parametrize("mass", ["hessian", "diagonal"])
def test_a_burn_in_continues_bit_for_bit_and_on_the_host(library, mass):
    """Stopped between the sweep that renews a Hessian and the next, and before the end of the burn-in."""
    options = dict(mass=mass, leapfrog_steps=20)
    whole, _ = make_device_chains(library(sampler(**options)), sampler(**options), burn_in=20)
    whole.advance(23)
    for stop in (10, 15):
        first, _ = make_device_chains(library(sampler(**options)), sampler(**options), burn_in=20)
        first.advance(stop)
        state = first.state()
        second, _ = make_device_chains(library(sampler(**options)), sampler(**options), burn_in=20, state=state)
        host = SideBySideChains(sampler(**options), Host(1), KEYS, 20, state=state)
        for run in (second, host):
            run.advance(23)
        for name, values in whole.result().draws.items():
            np.testing.assert_array_equal(second.result().draws[name], values, err_msg=name)
            np.testing.assert_allclose(host.result().draws[name], values, rtol=1e-7, err_msg=name)


@pytest.mark.parametrize(
    "options, per_step, beside",
    [({}, 3, 6), ({"mass": "diagonal"}, 2, 3), ({"mass": "identity"}, 2, 3), (FIXED | {"mass": "diagonal"}, 2, 2)],
)
def test_nodes_and_waits_of_a_trajectory(library, options, per_step, beside):
    """2 L nodes, or 3 L, and at most 6 more; one wait each while lengths are learnt, then one for all."""
    model = sampler(**options)
    chains, device = make_device_chains(library(model), model, burn_in=20)
    assert isinstance(chains, ChainsOnDevice)
    chains.advance(13)  # kernels are loaded
    n_learns = 2 if model.adaptive and model.options.mass == "hessian" else model.adaptive
    for _ in range(3):
        assert _count_nodes(chains, device, per_step) == beside
        assert device.asked == ["download", "wait"] * model.adaptive
    chains.advance(23)
    assert _count_nodes(chains, device, per_step) == beside - n_learns
    assert device.asked == []


def _count_nodes(chains, device, per_step):
    """Kernels of a trajectory beside those of its steps; `asked` of the device has what the host did."""
    device.asked.clear()
    device.launched.clear()
    chains._sweep(0)
    n_steps = device.launched.count("mmgibbs::softmax_rows")
    assert n_steps >= 1 and device.launched.count("mmgibbs::kick") == n_steps
    return len(device.launched) - per_step * n_steps


def test_steps_are_queued_as_graphs(library):
    """23 steps: one graph of 16, one of 4, three of one."""
    model = sampler(mass="diagonal", **FIXED)
    chains, device = make_device_chains(library(model), model, burn_in=50)
    chains.advance(3)
    device.nodes.clear()
    chains._sweep(0)
    assert device.nodes == [1, 32, 8, 2, 2, 2, 1]


# Few threads, rows and columns at a time: a thread for each takes long.
SMALL = {
    "HMC_THREADS = 256, HMC_ROWS = 64": "HMC_THREADS = 32, HMC_ROWS = 8",
    "WIDTH = 64, GROUP = 16": "WIDTH = 8, GROUP = 2",
    "COLUMNS = 32": "COLUMNS = 8",
}
MAIN = """
using namespace mmgibbs;

int main() {
    const int n = 14, p = 9, d = 10, K1 = 2, C = 2, size = C * K1 * d, pieces = 2;
    static double values[n * p], centre[p], scale[p], totals[K1 * d], prior[d], S[K1 * K1], A[d * d];
    static double z[size], momentum[size], velocity[size], tried[size], tried_gradient[size], slopes[size];
    static double work[2 * size], weighed[2 * size], logits[pieces * C * K1 * HMC_ROWS];
    static double row_partitions[pieces * C * HMC_ROWS], sums[pieces * size], partitions[pieces * C];
    static double position[size], gradient[size], mean[size], slots[2 * (size + 5 * C)], state[9][C];
    static double inverse[size], step_size[C], ratio[C], planned[C], slope[C];
    static word32 turns[2], sweep[C] = {1, 1}, chain[C] = {1, 2};
    for (int i = 0; i < n * p; ++i) values[i] = (i * 7 % 13) / 6.0 - 1;
    for (int j = 0; j < p; ++j) scale[j] = 1;
    for (int j = 0; j < d; ++j) prior[j] = 2, A[j * d + j] = 1, A[j * d + (j + 1) % d] = 0.01;
    for (int k = 0; k < K1; ++k) S[k * K1 + k] = 1, S[k * K1 + (k + 1) % K1] = 0.1;
    for (int k = 0; k < size; ++k) position[k] = k % 5 * 0.01, totals[k % (K1 * d)] = k % 3, inverse[k] = 1;
    for (int c = 0; c < C; ++c) state[3][c] = state[4][c] = -4;
    Trajectory s = {values, 0, centre, scale, totals, prior, IS_DIAGONAL ? inverse : 0, S, A, S, A, S, A, z, momentum,
                    velocity, tried, tried_gradient, slopes, work, weighed, logits, row_partitions, sums, partitions,
                    position, gradient, state[0], state[1], state[2], 0, state[3], state[4], state[5], state[6],
                    state[7], state[8], mean, IS_DIAGONAL ? inverse : 0, step_size, ratio, planned, slope, turns, sweep,
                    chain, 0.02, {0, size, size + C, size + 2 * C, size + 3 * C, size + 4 * C}, 1, 2, 7, 1, n, p, d, K1,
                    C, 1, 8, pieces, 5, 1, 1};
    Ring ring = {slots, size + 5 * C, 2, 1, 1};
    run([=] { plan(s); }, 1, 4);
    for (int t = 0; t < 2; ++t) {
        const bool learns = t < 1;
        run([=] { draw_momentum(s); }, size / 8, 8);
        if (!IS_DIAGONAL) run([=] { start_momentum(s); }, 2 * C, HMC_THREADS);
        if (!IS_DIAGONAL) run([=] { drift(s); }, 2 * C, HMC_THREADS);
        run([=] { softmax_rows(s); }, pieces, HMC_THREADS);
        run([=] { kick(s); }, size / 8, HMC_THREADS);
        if (!IS_DIAGONAL) run([=] { drift(s); }, 2 * C, HMC_THREADS);
        if (learns && !IS_DIAGONAL) run([=] { weigh(s); }, 4 * C, HMC_THREADS);
        run([=] { accept(s, ring); }, C, 8);
        if (learns) run([=] { learn(s); }, size / 8, 8);
    }
    for (double value : slots) printf("%.17g ", value);
    for (double value : mean) printf("%.17g ", value);
}
"""
NEEDED = {  # what stands before a barrier
    "true": "parts[part][lane] = total;",
    "false": "for (int u = 0; u < CLASSES; ++u) parts[part][u][lane] = totals[u];",
}


@pytest.mark.slow
@pytest.mark.parametrize("is_diagonal", NEEDED)
def test_threads_of_a_block_do_not_race_and_a_barrier_that_is_taken_out_is_noticed(tmp_path, is_diagonal):
    text, main = make_source(np.float64, np.float64), MAIN.replace("IS_DIAGONAL", is_diagonal)
    for constants, few in SMALL.items():
        assert constants in text
        text = text.replace(constants, few)
    complete = run_without_race(tmp_path, text, main)
    values = np.array(complete.printed.split(), float)
    assert np.isfinite(values).all() and np.count_nonzero(values) > 60
    assert_barrier_is_needed(tmp_path, text, main, NEEDED[is_diagonal], complete)


@pytest.mark.parametrize("architecture", first(1, ARCHITECTURES))
def test_kernels_fit_on_a_device(architecture):
    text = make_source(np.float64, np.float64)
    assert_kernels_fit(text, architecture, [], NAMES, {})
