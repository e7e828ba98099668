"""The lasso's kernels without a GPU: the chain of the host up to rounding, by nodes and by one cooperative launch; the
factor of a large matrix by rounds, bit for bit that of a small one's loops.
"""

import numpy as np
import pytest
from helpers.device_chains import (
    assert_contract,
    assert_draws_of_host,
    assert_failed_factor_ends_the_chain,
    assert_sweep_of_host,
    compile_once,
    fill,
    make_device_chains,
)
from helpers.host_device import Buffer, HostDevice
from helpers.nvrtc import ARCHITECTURES, assert_kernels_fit
from helpers.races import assert_barrier_is_needed, run_without_race
from helpers.selection import first

from mmgibbs.draws.small_matrices import cholesky
from mmgibbs.machine.gpu_queue import GpuQueue
from mmgibbs.regressions import spd
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.lasso import Lasso, LassoOptions
from mmgibbs.regressions.lasso_device import BY_GRAM, BY_ROWS, make_source
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import RegressionData
from mmgibbs.regressions.spd import ALL_ROUNDS, ONE_ROUND, SpdFactors

KERNELS = [f"mmgibbs::{name}" for name in dict.fromkeys(BY_GRAM + BY_ROWS)] + [ONE_ROUND, ALL_ROUNDS]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The kernels of a model, compiled once for each type of predictors and products."""
    compile_types = compile_once(tmp_path_factory.mktemp("lasso"), make_source, KERNELS)
    return lambda model: compile_types(model.X.values.dtype, model.real)


def sampler(n, p, dtype=np.float64, weights=None, noise=1.0, **options):
    rng = np.random.default_rng(n)
    X = rng.integers(0, 3, (n, p)).astype(dtype) if dtype == np.uint8 else rng.normal(2, 1, (n, p)).astype(dtype)
    y = X[:, 0] - 0.5 * X[:, -1] + noise * rng.normal(size=n)
    data = RegressionData(read_predictors(X, standardise=True, weights=weights), y, weights=weights)
    return Lasso.prepare(data, LassoOptions(**options), Host(1))


CASES = {
    "few predictors": (dict(n=30, p=5), 1e-10),
    "two panels": (dict(n=80, p=70), 1e-9),
    "a fixed penalty": (dict(n=20, p=3, penalty=2.0, residual_shape=1.0, residual_scale=0.5), 1e-10),
    "next to no residuals": (dict(n=30, p=5, noise=1e-8), 1e-7),
    "fewer rows": (dict(n=40, p=75), 1e-9),
    "more rows than a panel": (dict(n=66, p=70), 1e-9),
    "weights": (dict(n=12, p=20, weights=np.arange(1.0, 13)), 1e-9),
    "whole numbers": (dict(n=20, p=33, dtype=np.uint8), 1e-9),
    "single precision": (dict(n=20, p=33, precision="single"), 1e-3),
}


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_the_chain_of_the_host_up_to_rounding(library, name, backwards):
    case, tolerance = CASES[name]
    model = sampler(**case)
    chains, _ = make_device_chains(library(model), model, burn_in=1, backwards=backwards)
    expected = assert_draws_of_host(chains, model, 3, tolerance, burn_in=1)
    for what in ("tau2", "sigma2", "lambda2"):
        np.testing.assert_allclose(
            chains.state()[f"state.{what}"], expected.state()[f"state.{what}"], rtol=100 * tolerance, err_msg=what
        )


@pytest.mark.parametrize("shape, n_nodes", [((30, 5), 4), ((12, 20), 6), ((80, 70), 6)])
def test_contract(library, shape, n_nodes):
    """Three kernels and the factor's rounds, or five; one round of a panel, three of two."""
    model = sampler(*shape)
    assert_contract(library(model), model, 5, n_nodes)


@pytest.mark.parametrize("shape", [(30, 5), (12, 20)])
def test_a_coefficient_of_0_has_a_scale(library, shape):
    model = sampler(*shape)
    assert_sweep_of_host(library(model), model, {"tau2": fill((slice(None), 0), 0.0)}, 1e-8)


def test_a_factor_that_fails_ends_the_chain(library, monkeypatch):
    model = sampler(30, 5)
    monkeypatch.setattr(model.fit, "gram", -1e3 * model.fit.gram)
    assert_failed_factor_ends_the_chain(library(model), model, "beta")


def test_many_rounds_are_one_launch_with_the_same_bits(library, monkeypatch):
    model = sampler(80, 70)
    expected, _ = make_device_chains(library(model), model)
    monkeypatch.setattr(spd, "MAX_ROUND_NODES", 2)
    chains, device = make_device_chains(library(model), model)
    for run in (expected, chains):
        run.advance(3)
    assert ALL_ROUNDS in device.launched and ONE_ROUND not in device.launched and device.nodes[-1] == 4
    for name, values in expected.result().draws.items():
        np.testing.assert_array_equal(chains.result().draws[name], values)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("m, n_below", [(1, 1), (64, 2), (65, 1), (150, 40), (130, 0)])
def test_factors_by_rounds_have_the_bits_of_the_loops(library, m, n_below, backwards):
    rng, n_matrices = np.random.default_rng(m), 2
    A = rng.normal(size=(n_matrices, m, m + 3))
    A = A @ np.swapaxes(A, 1, 2)
    b = rng.normal(size=(n_matrices, n_below, m))
    device = HostDevice(library(sampler(30, 5)), backwards)
    queue, factors = GpuQueue(device), SpdFactors(n_matrices, m, m + n_below)
    matrices = queue.upload(np.concatenate([A, b], axis=1))
    diagonals = queue.empty(factors.shapes["diagonals"], np.float64)
    factors.place(queue.address(matrices), queue.address(diagonals), 0)
    factors.launch(queue.kernels("", [ONE_ROUND]), 3)
    for c in range(n_matrices):
        L = np.zeros((m, m))
        assert cholesky(A[c], L, 0.0)
        found = np.tril(np.asarray(matrices[c, :m]))
        for panel in range(factors.panels):
            at = slice(64 * panel, min(64 * panel + 64, m))
            width = at.stop - at.start
            found[at, at] = np.tril(np.asarray(diagonals[c, panel, :width, :width]))
        np.testing.assert_array_equal(found, L)
        np.testing.assert_allclose(np.asarray(matrices[c, m:]), np.linalg.solve(L, b[c].T).T, rtol=1e-8, atol=1e-10)
    assert type(matrices) is Buffer


FACTOR_MAIN = """
using namespace mmgibbs;

int main() {
    const int m = 70, n_rows = 71;
    static double A[n_rows * m], diagonals[2 * PANEL * PANEL], x[m], shared[SOLVE_VALUES];
    for (int i = 0; i < n_rows; ++i)
        for (int j = 0; j < m; ++j) A[i * m + j] = i == j ? 99 : (i * 7 + j * 3) % 5 - 2;
    Spd spd = {A, diagonals, m, n_rows, 1};
    for (int r = 0; r < 3; ++r) run([=] { one_round(spd, r); }, r == 1 ? 1 : 2, 8);
    for (int i = 0; i < m; ++i) x[i] = A[m * m + i];
    run([=] { block_solve_panels(spd, 0, x, shared); }, 1, 8);
    for (double value : x) printf("%.17g ", value);
}
"""
FACTOR_NEEDED = "for (int i = (int)threadIdx.x; i < width; i += (int)blockDim.x) solution[i] = x[first + i];"


@pytest.mark.slow
def test_factors_do_not_race_and_a_barrier_that_is_taken_out_is_noticed(tmp_path):
    text = make_source(np.float64, np.float64)
    complete = run_without_race(tmp_path, text, FACTOR_MAIN)
    assert len(complete.printed.split()) == 70
    assert_barrier_is_needed(tmp_path, text, FACTOR_MAIN, FACTOR_NEEDED, complete)


# Five rows; three predictors, or more than a panel of them: matrices of predictors, or of rows.
MAIN = """
using namespace mmgibbs;

int main() {
    const int n = 5, p = IS_WIDE ? 70 : 3, m = IS_WIDE ? n : p, n_rows = IS_WIDE ? m + 2 : m + 1;
    static double gram[p * p], right[p], values[n * p], centre[p], scale[p], y[n], H[n * p], residuals[n + p], beta[p];
    static double tau2[p], sigma2[1] = {1}, lambda2[1] = {2}, alpha[1], A[n_rows * m], diagonals[PANEL * PANEL];
    static double slots[2 * (p + 3)], reference[p], residual_right[p];
    static word32 sweep[1] = {3}, chain[1] = {1};
    static unsigned arrived[1];
    for (int i = 0; i < n * p; ++i) values[i] = (i * 7 % 13) / 6.0 - 1;
    for (int i = 0; i < n; ++i) y[i] = i % 3 - 1;
    for (int j = 0; j < p; ++j) scale[j] = 1, tau2[j] = 1 + j, right[j] = j, gram[j * p + j] = n;
    Lasso s = {IS_WIDE ? 0 : gram, right, reference, residual_right, values, centre, scale, 0, y, H, residuals, beta,
               tau2, sigma2, lambda2, alpha, sweep, chain, arrived, 20, 1, n, 2, 1, 1 + p, 1, {0, p, p + 1, p + 2}, 7,
               IS_WIDE ? n : 0, p, 1};
    Spd spd = {A, diagonals, m, n_rows, 1};
    Ring ring = {slots, p + 3, 2, 0, 1};
    if (IS_WIDE) {
        run([=] { scale_rows(s, spd); }, 1, 8);
        run([=] { fill_row_gram(s, spd, 1, 2); }, 2, 8);
    } else run([=] { fill_gram(s, spd); }, 1, 8);
    run([=] { one_round(spd, 0); }, 1, 8);
    if (IS_WIDE) {
        run([=] { draw_residuals(s, spd, 3); }, 1, 8);
        run([=] { draw_by_rows(s, spd, 1); }, 1, 8);
    } else run([=] { draw_by_gram(s, spd, 3, 1); }, 1, 8);
    run([=] { draw_scales(s, ring, 4, 5, 6); }, 1, 8);
    for (double value : slots) printf("%.17g ", value);
}
"""
NEEDED = {
    "false": "u[j] = sqrt(",
    "true": "sums[at] = sum;",
}


@pytest.mark.slow
@pytest.mark.parametrize("is_wide", NEEDED)
def test_draws_do_not_race_and_a_barrier_that_is_taken_out_is_noticed(tmp_path, is_wide):
    text, main = make_source(np.float64, np.float64), MAIN.replace("IS_WIDE", is_wide)
    complete = run_without_race(tmp_path, text, main)
    values = np.array(complete.printed.split(), float)
    assert np.isfinite(values).all() and np.count_nonzero(values) == len(values) / 2  # one of two slots
    assert_barrier_is_needed(tmp_path, text, main, NEEDED[is_wide], complete)


# Bytes that may be spilled: around the call of a gamma, which the compiler keeps as a function.
SPILLED_BYTES = {"draw_by_gram": 80, "draw_residuals": 80, "draw_scales": 80}


@pytest.mark.parametrize("architecture", first(1, ARCHITECTURES))
def test_kernels_fit_on_a_device(architecture):
    text = make_source(np.uint8, np.float32)
    assert_kernels_fit(
        text, architecture, [ONE_ROUND, ALL_ROUNDS], {*BY_GRAM, *BY_ROWS, "one_round", "all_rounds"}, SPILLED_BYTES
    )
