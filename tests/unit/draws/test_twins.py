"""The CUDA C++ twins: compiled by g++ they equal Numba bit for bit; NVRTC compiles them for three GPU generations."""

import numpy as np
import pytest
from helpers.draw_batches import FAMILIES, numba_draws, twin_draws
from helpers.host_device import HostDevice, build
from helpers.nvrtc import ARCHITECTURES, compiled
from helpers.selection import first

from mmgibbs.draws.inverse_wishart import NOTHING, inverse_wishart
from mmgibbs.draws.source import NAMES, cuda_source
from mmgibbs.machine.gpu_queue import GpuQueue

N = 100_003


def parameters(family):
    rng = np.random.default_rng(6)
    low = rng.uniform(-35, 35, N)
    z = np.where(rng.random(N) < 0.7, rng.normal(0, 3, N), 10.0 ** rng.uniform(-8, 5, N))
    shape = 10.0 ** rng.uniform(-3.5, 7, N)
    shape[:4] = 0.0, -1.0, np.nan, np.inf
    means = np.where(rng.random(N) < 0.5, rng.uniform(-30, 30, N), rng.normal(0, 1, N))
    return {
        "normal": (),
        "exponential": (),
        "gamma": (shape,),
        "log_gamma_draw": (shape,),
        "chi_square": (shape,),
        "truncated_normal_positive": (means,),
        "truncated_normal_negative": (means,),
        "truncated_normal": (
            rng.normal(0, 1, N),
            low,
            np.where(rng.random(N) < 0.2, np.inf, low + 10.0 ** rng.uniform(-3, 2, N)),
        ),
        "inverse_gaussian": (10.0 ** rng.uniform(-4, 18, N), 10.0 ** rng.uniform(-4, 4, N)),
        "polya_gamma_1": (z,),
        "polya_gamma": (np.minimum(10.0 ** rng.uniform(0, 3, N), 600).astype(int), z),
        "over_relaxed_chi_square": (shape, shape * rng.uniform(0.1, 3, N)),
        "poisson_log_normal": (rng.poisson(10.0 ** rng.uniform(-1, 3, N)), low / 3, 10.0 ** rng.uniform(-3, 2, N)),
    }[family]


@pytest.mark.parametrize("family", FAMILIES)
def test_twin_equals_numba_bit_for_bit(twins, family):
    p = parameters(family)
    found, expected = (
        draws.view(np.uint64) for draws in (twin_draws(twins, family, N, *p), numba_draws(family, N, *p))
    )
    assert np.count_nonzero(found != expected) == 0


WISHART = """
namespace mmgibbs {
__global__ void draw(double nu, const double *S, const double *now, double *work, double *G, int k, word32 number,
                     const int *members) {
    PHASE { for (int at = (int)threadIdx.x; at < k * k; at += (int)blockDim.x) work[at] = S[at]; }
    BARRIER
    block_inverse_wishart(nu, work, now, work + k * k, G, k, number, 2, members, 7, 11, 3);
}
}
"""


@pytest.fixture(scope="module")
def draw_wisharts(tmp_path_factory):
    """A function that draws G on a device: nu, S, the G of before or None, sweep, order of the threads."""
    text = cuda_source("phases", "inverse_wishart") + WISHART
    library = build(tmp_path_factory.mktemp("wishart"), "wishart", text, ["mmgibbs::draw"])

    def draw(nu, S, now, number, backwards, members=None):
        queue, k = GpuQueue(HostDevice(library, backwards)), len(S)
        before, work, G = (
            (None if now is None else queue.upload(now)),
            queue.empty((4, k, k), float),
            queue.empty(S.shape, float),
        )
        kernel = queue.kernels("", ["mmgibbs::draw"])["mmgibbs::draw"]
        sizes = np.int32(k), np.uint32(number), None if members is None else queue.upload(members)
        kernel(1, 8, np.float64(nu), queue.upload(S), before, work, G, *sizes)
        return queue.read(G)

    return draw


@pytest.mark.parametrize("k", [1, 2, 4, 9])
def test_inverse_wisharts_of_a_block_equal_numba_bit_for_bit(draw_wisharts, k):
    """Independent of the draw of before, and over-relaxed from it; then from one that rounding hides, and without S."""
    rng = np.random.default_rng(k)
    S = np.cov(rng.normal(size=(k, k + 5))).reshape(k, k) * 40
    now = inverse_wishart(k + 9.0, S, NOTHING, 1, np.arange(k), 5, 1, 1)
    hidden = np.ones((k, k)) * 1e-3
    for nu, before, number in ((k + 3.0, None, 1), (k + 3.0, now, 2), (k + 0.5, now, 3), (k + 3.0, hidden, 4)):
        expected = inverse_wishart(nu, S, NOTHING if before is None else before, number, 2 + np.arange(k), 7, 11, 3)
        for backwards in (False, True):
            np.testing.assert_array_equal(draw_wisharts(nu, S, before, number, backwards), expected)
    members = np.sort(rng.permutation(2 * k)[:k]).astype(np.int32)
    expected = inverse_wishart(k + 3.0, S, now, 2, 2 + members.astype(np.int64), 7, 11, 3)
    np.testing.assert_array_equal(draw_wisharts(k + 3.0, S, now, 2, False, members), expected)
    assert np.isnan(draw_wisharts(k + 3.0, -S, now, 5, False)).all()


NAN, INF = np.nan, np.inf
SHAPES, MEANS = [(0.0,), (-1.0,), (NAN,), (INF,)], [(NAN,), (INF,), (-INF,)]
NONE = {  # parameters that no distribution has
    "gamma": SHAPES,
    "log_gamma_draw": SHAPES,
    "chi_square": SHAPES,
    "inverse_gaussian": [(0.0, 1.0), (-1.0, 1.0), (1.0, 0.0), (1.0, INF), (NAN, 1.0), (1.0, NAN)],
    "truncated_normal_positive": MEANS,
    "truncated_normal_negative": MEANS,
    "truncated_normal": [(NAN, 0.0, 1.0), (INF, 0.0, 1.0), (-INF, 0.0, 1.0)],
    "poisson_log_normal": [(-1.0, 0.0, 1.0), (NAN, 0.0, 1.0), (1.0, INF, 1.0), (1.0, 0.0, 0.0)],
}


@pytest.mark.parametrize("family", NONE)
def test_parameters_of_no_distribution_have_no_draw(family):
    assert all(np.isnan(numba_draws(family, 1, *parameters)[0]) for parameters in NONE[family])


def test_a_wrong_twin_is_noticed(mutants):
    p = parameters("gamma")
    assert np.count_nonzero(twin_draws(mutants, "gamma", N, *p) != numba_draws("gamma", N, *p)) > N // 2


KERNEL = """
extern "C" __global__ void every_family(const double *p0, const double *p1, const double *p2, unsigned sweep,
                                        double *out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0.0;
%s    out[i] = sum;
}
"""


@pytest.mark.parametrize("architecture", first(1, ARCHITECTURES))
def test_nvrtc_compiles_every_draw(architecture):
    text = cuda_source(*NAMES) + KERNEL % "".join(
        f"    sum += mmgibbs::{expression};\n" for _, expression in FAMILIES.values()
    )
    assert len(compiled(text, architecture)[0]) > 1000


def test_the_compiler_writes_nothing_into_characters_of_python():
    """An empty message of one byte once became the space of every string of the process."""
    compiled('extern "C" __global__ void nothing() {}', ARCHITECTURES[0])
    assert ord(bytes([32]).decode()) == 32
