"""Draws for arrays on a GPU: the kernels, run by g++ as plain loops, equal the host's draws bit for bit;
NVRTC compiles them.
"""

import ctypes

import numpy as np
import pytest
from helpers.host_device import build
from helpers.nvrtc import ARCHITECTURES, compiled

from mmgibbs.draws.purpose import REGRESSION_LATENT, stream
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.arrays.gpu import Gpu, source
from mmgibbs.regressions.protocol import Keys

NAMES = ["uniforms", "normals", "exponentials", "gammas", "inverse_gaussians", "truncated_normals", "polya_gammas"]
KEYS, SWEEP, STREAM, N = Keys(20240, (0, 3)), 17, stream(REGRESSION_LATENT, 5), 101


class HostGpu:
    """A device whose arrays are NumPy's and whose kernels were compiled by g++; a block for each thread."""

    cupy = np

    def __init__(self, library):
        self.compiled = library

    def kernels(self, text):
        return self

    def current_stream(self):
        return None

    def fetch(self, array):
        return array

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


def test_chains_sweeps_and_streams_differ(gpu):
    z = [gpu.normals(Keys(1, (0, 1)), s, t, 50) for s, t in ((1, STREAM), (2, STREAM), (1, STREAM + 1))]
    values = np.concatenate([a.ravel() for a in z])
    assert np.unique(values).size == values.size


def test_threads_and_batches_change_nothing():
    many = Host(3).normals(Keys(1, (0, 1, 2)), 4, STREAM, 20_000, 3)
    for c in range(3):
        assert np.array_equal(many[c], Host(1).normals(Keys(1, (c,)), 4, STREAM, 20_000, 3)[0])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nvrtc_compiles_the_kernels(architecture):
    assert len(compiled(source(), architecture)[0]) > 1000
