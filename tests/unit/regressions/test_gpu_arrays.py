"""Draws for arrays on a GPU: the kernels, run by g++ as plain loops, equal the host's draws bit for bit;
NVRTC compiles them.
"""

import ctypes
import sys
import types
from contextlib import contextmanager

import numpy as np
import pytest
from helpers.host_device import build
from helpers.nvrtc import ARCHITECTURES, compiled
from helpers.selection import first

from mmgibbs.draws.purpose import REGRESSION_LATENT, stream
from mmgibbs.machine.device import Device
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.arrays.gpu import Gpu, source
from mmgibbs.regressions.protocol import Keys

NAMES = ["uniforms", "normals", "exponentials", "gammas", "inverse_gaussians", "truncated_normals", "polya_gammas"]
KEYS, SWEEP, STREAM, N = Keys(20240, (0, 3)), 17, stream(REGRESSION_LATENT, 5), 101


class HostGpu:
    """A device whose arrays are NumPy's and whose kernels were compiled by g++; a block for each thread."""

    cupy = np

    def __init__(self, library):
        self.compiled, self.fetched, self.factored, self.solved = library, 0, [], []

    def kernels(self, text):
        return self

    def current_stream(self):
        return None

    def fetch(self, array):
        self.fetched += 1
        return array

    def cholesky(self, A):
        self.factored.append(A.ndim)
        return np.linalg.cholesky(A)

    def solve_triangular(self, L, b, transposed):
        self.solved.append(L.ndim)
        A = np.swapaxes(L, -1, -2) if transposed else L
        return np.linalg.solve(A, b[..., None])[..., 0]

    def launch(self, name, n, *arguments, stream):
        values = [np.array([a.ctypes.data if isinstance(a, np.ndarray) else a], np.uint64) for a in (n, *arguments)]
        addresses = np.array([v.ctypes.data for v in values], np.uintp)
        run = getattr(self.compiled, f"kernel_{self.compiled.kernels.index(name)}")
        run(n, 1, addresses.ctypes.data_as(ctypes.c_void_p))


@pytest.fixture(scope="module")
def gpu(tmp_path_factory):
    return Gpu(HostGpu(build(tmp_path_factory.mktemp("array_draws"), "array_draws", source(), NAMES)))


def calls():
    rng = np.random.default_rng(3)
    positive = rng.random((2, N)) * 10 + 1e-3
    return {
        "uniforms": [(N, 3), (N,)],
        "normals": [(N, 5), (N,)],
        "exponentials": [(N,)],
        "gammas": [(positive,)],
        "inverse_gaussians": [(positive, 2.5), (positive, positive[::-1])],
        "truncated_normals": [(rng.normal(0, 5, (2, N)), rng.random(N) < 0.5)],
        "polya_gammas": [(rng.integers(0, 30, N), rng.normal(0, 3, (2, N)))],
    }


@pytest.mark.parametrize("name", NAMES)
def test_draws_equal_those_of_the_host(gpu, name):
    for parameters in calls()[name]:
        here, there = (getattr(a, name)(KEYS, SWEEP, STREAM, *parameters) for a in (Host(1), gpu))
        assert here.shape == there.shape and here.dtype == there.dtype
        assert np.array_equal(here.view(np.uint64), there.view(np.uint64))


@pytest.mark.parametrize("shape", [(6, 6), (1, 6, 6), (3, 6, 6), (1, 1, 6, 6), (2, 2, 6, 6)])
def test_matrices_are_solved_at_once_and_a_single_one_by_itself(gpu, shape):
    """What CuPy is given: two dimensions for one matrix, else all of them."""
    A = np.random.default_rng(4).normal(size=(*shape[:-1], 9))
    A = A @ np.swapaxes(A, -1, -2)
    gpu._device.factored.clear()
    gpu._device.solved.clear()
    host, dimensions = Host(1), [2] if np.prod(shape[:-2], dtype=int) == 1 else [len(shape)]
    L = gpu.cholesky(A)
    assert gpu._device.factored == dimensions and L.shape == A.shape
    for transposed in (False, True):
        for b in (A[..., 0], np.arange(6.0)):
            x = gpu.solve_lower(L, b, transposed)
            np.testing.assert_allclose(x, host.solve_lower(L, b, transposed), rtol=1e-8, atol=1e-12)
    assert gpu._device.solved == dimensions * 4


class SilentCupy(types.ModuleType):
    """CuPy's Cholesky factors: NaN where there is none, or LinAlgError where `errstate` asks for it."""

    raises = False

    @staticmethod
    @contextmanager
    def errstate(linalg):
        assert linalg == "raise"
        SilentCupy.raises = True
        try:
            yield
        finally:
            SilentCupy.raises = False

    class linalg:  # noqa: N801  a module
        @staticmethod
        def cholesky(A):
            try:
                return np.linalg.cholesky(A)
            except np.linalg.LinAlgError:
                if SilentCupy.raises:
                    raise
                return np.full(A.shape, np.nan)


@pytest.mark.parametrize("n_matrices", [1, 2])
def test_a_factor_that_fails_is_no_nan(n_matrices, monkeypatch):
    """One chain, whose matrix goes to CuPy by itself, or one of two."""
    cupy = SilentCupy("cupy")
    monkeypatch.setitem(sys.modules, "cupyx", cupy)
    arrays, device = Gpu.__new__(Gpu), Device.__new__(Device)
    device.cupy = arrays.xp = cupy
    arrays._device = device
    A = np.stack([np.eye(3)] * (n_matrices - 1) + [-np.eye(3)])
    np.testing.assert_array_equal(arrays.cholesky(np.abs(A)), np.abs(A))
    with pytest.raises(np.linalg.LinAlgError):
        arrays.cholesky(A)


def test_a_kept_draw_is_fetched_as_one_array(gpu):
    values = {"a": np.arange(6.0).reshape(2, 3), "b": np.arange(2.0), "c": np.arange(8.0).reshape(2, 2, 2)}
    gpu._device.fetched = 0
    for name, array in gpu.fetch_all(values | {"n": np.arange(2)}).items():
        np.testing.assert_array_equal(array, (values | {"n": np.arange(2)})[name])
    assert gpu._device.fetched == 2  # one for each type
    assert list(gpu.fetch_all(values)) == list(values) and gpu.fetch_all({}) == {}


def test_chains_sweeps_and_streams_differ(gpu):
    z = [gpu.normals(Keys(1, (0, 1)), s, t, 50) for s, t in ((1, STREAM), (2, STREAM), (1, STREAM + 1))]
    values = np.concatenate([a.ravel() for a in z])
    assert np.unique(values).size == values.size


def test_threads_and_batches_change_nothing():
    many = Host(3).normals(Keys(1, (0, 1, 2)), 4, STREAM, 20_000, 3)
    for c in range(3):
        assert np.array_equal(many[c], Host(1).normals(Keys(1, (c,)), 4, STREAM, 20_000, 3)[0])


@pytest.mark.parametrize("architecture", first(1, ARCHITECTURES))
def test_nvrtc_compiles_the_kernels(architecture):
    assert len(compiled(source(), architecture)[0]) > 1000
