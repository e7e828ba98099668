"""The lasso's kernels without a GPU: the chain of the host up to rounding, by nodes and by one cooperative launch; the
factor of a large matrix by rounds, bit for bit that of a small one's loops.
"""

import numpy as np
import pytest
from helpers.host_device import Buffer, HostDevice, build
from helpers.nvrtc import ARCHITECTURES, resources
from helpers.races import run_with_threads, without_barrier

from mmgibbs.draws.small_matrices import cholesky
from mmgibbs.machine.gpu_queue import GpuQueue
from mmgibbs.regressions import spd
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.device_chains import ChainsOnDevice
from mmgibbs.regressions.lasso import Lasso, LassoOptions
from mmgibbs.regressions.lasso_device import BY_GRAM, BY_ROWS, source
from mmgibbs.regressions.loop import SideBySideChains
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData
from mmgibbs.regressions.spd import ALL_ROUNDS, ONE_ROUND, SpdFactors

KERNELS = [f"mmgibbs::{name}" for name in dict.fromkeys(BY_GRAM + BY_ROWS)] + [ONE_ROUND, ALL_ROUNDS]
KEYS = Keys(3, (0, 4))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The kernels for types of predictors and products, each compiled once."""
    folder, built = tmp_path_factory.mktemp("lasso"), {}

    def of_types(values, real):
        name = f"{np.dtype(values).name}_{np.dtype(real).name}"
        if name not in built:
            built[name] = build(folder, name, source(values, real), KERNELS)
        return built[name]

    return of_types


def sampler(n, p, dtype=np.float64, weights=None, **options):
    rng = np.random.default_rng(n)
    X = rng.integers(0, 3, (n, p)).astype(dtype) if dtype == np.uint8 else rng.normal(2, 1, (n, p)).astype(dtype)
    y = X[:, 0] - 0.5 * X[:, -1] + rng.normal(size=n)
    data = RegressionData(read_predictors(X, standardise=True, weights=weights), y, weights=weights)
    return Lasso.prepare(data, LassoOptions(**options), Host(1))


def on_device(library, model, keys=KEYS, burn_in=0, thin=1, state=None, backwards=False):
    device = HostDevice(library(model.X.values.dtype, model.real), backwards)
    return ChainsOnDevice(model, device, keys, burn_in, thin, state), device


CASES = {
    "few predictors": (dict(n=30, p=5), 1e-10),
    "two panels": (dict(n=80, p=70), 1e-9),
    "a fixed penalty": (dict(n=20, p=3, penalty=2.0, residual_shape=1.0, residual_scale=0.5), 1e-10),
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
    expected = SideBySideChains(model, Host(1), KEYS, 1)
    chains, _ = on_device(library, model, burn_in=1, backwards=backwards)
    for run in (expected, chains):
        run.advance(3)
    for what, values in expected.result().draws.items():
        np.testing.assert_allclose(chains.result().draws[what], values, rtol=tolerance, atol=tolerance, err_msg=what)
    for what in ("tau2", "sigma2", "lambda2"):
        np.testing.assert_allclose(
            chains.state()[f"state.{what}"], expected.state()[f"state.{what}"], rtol=100 * tolerance, err_msg=what
        )


@pytest.mark.parametrize("shape", [(30, 5), (12, 20)])
def test_chains_are_their_own_and_continue_from_the_host(library, shape):
    model = sampler(*shape)
    together, _ = on_device(library, model)
    together.advance(5)
    alone, _ = on_device(library, model, Keys(3, (4,)))
    alone.advance(2)
    again, _ = on_device(library, model, Keys(3, (4,)), state=alone.state())
    again.advance(5)
    for name, values in again.result().draws.items():
        np.testing.assert_array_equal(together.result().draws[name][1:], values, err_msg=name)


@pytest.mark.parametrize("shape, nodes", [((30, 5), 4), ((12, 20), 6), ((80, 70), 6)])
def test_a_sweep_is_one_graph_and_asks_for_nothing(library, shape, nodes):
    """Three kernels and the factor's rounds, or five; one round of a panel, three of two."""
    chains, device = on_device(library, sampler(*shape), burn_in=100)
    chains.advance(1)
    device.asked.clear()
    for _ in range(3):
        chains._sweep(0)
    assert device.asked == [] and device.nodes == [nodes] * 3


def test_many_rounds_are_one_launch_with_the_same_bits(library, monkeypatch):
    model = sampler(80, 70)
    expected, _ = on_device(library, model)
    monkeypatch.setattr(spd, "MAX_ROUND_NODES", 2)
    chains, device = on_device(library, model)
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
    device = HostDevice(library(np.float64, np.float64), backwards)
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


MAIN = """
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
NEEDED = [
    "columns[i * stride + k] = start + i < m ? of_matrix[(size_t)(start + i) * m + first + k] : 0.0;",
    "for (int i = (int)threadIdx.x; i < width; i += (int)blockDim.x) of_panel[i] = x[first + i];",
]


def test_threads_of_a_block_do_not_race_and_a_barrier_that_is_taken_out_is_noticed(tmp_path):
    text = source(np.float64, np.float64)
    complete = run_with_threads(tmp_path, "complete", text, MAIN)
    assert complete.has_ended and complete.races == 0 and len(complete.printed.split()) == 70
    for place in NEEDED:
        outcome = run_with_threads(tmp_path, "without", without_barrier(text, place), MAIN)
        assert not outcome.has_ended or outcome.races or outcome.printed != complete.printed, place


# Bytes that may be spilled: around the call of a gamma, which the compiler keeps as a function.
SPILLED_BYTES = {"draw_by_gram": 80, "draw_residuals": 80, "draw_scales": 80}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernels_fit_on_a_device(architecture):
    for name, taken in resources(source(np.uint8, np.float32), architecture, [ONE_ROUND, ALL_ROUNDS]).items():
        assert (
            taken.spilled_bytes <= SPILLED_BYTES.get(name, 0)
            and taken.shared_bytes <= 48 * 1024
            and taken.registers <= 128
        ), name
