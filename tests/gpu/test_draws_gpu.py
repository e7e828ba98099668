"""The CUDA twins on a GPU equal Numba bit for bit: the comparison of tests/unit/draws/test_twins.py on the device."""

import numpy as np
import pytest
from helpers.draw_batches import FAMILIES, numba_draws

from mmgibbs.draws.source import NAMES, cuda_source

pytestmark = pytest.mark.gpu

KERNEL = """
extern "C" __global__ void %s_kernel(unsigned n, const double *p0, const double *p1, const double *p2,
                                     unsigned sweep, double *out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = mmgibbs::%s;
}
"""


@pytest.fixture(scope="module")
def module(device):
    code = cuda_source(*NAMES) + "".join(KERNEL % (family, expression) for family, (_, expression) in FAMILIES.items())
    return device.cupy.RawModule(code=code, options=("--fmad=false",))


@pytest.mark.parametrize("family", FAMILIES)
def test_gpu_equals_numba_bit_for_bit(device, module, family):
    cupy = device.cupy
    n = 100_003
    rng = np.random.default_rng(6)
    first = {
        "polya_gamma": np.minimum(10.0 ** rng.uniform(0, 3, n), 600).astype(int),
        "truncated_normal": rng.normal(0, 1, n),
    }
    second = {"polya_gamma": rng.normal(0, 3, n), "truncated_normal": rng.uniform(-10, 10, n)}
    one = first.get(
        family, 10.0 ** rng.uniform(-3, 6, n) if family != "truncated_normal_positive" else rng.uniform(-30, 30, n)
    )
    two = second.get(family, 10.0 ** rng.uniform(-3, 3, n))
    p = [np.asarray(a, np.float64) for a in (one, two, two + 1.5)]
    out = cupy.empty(n)
    kernel = module.get_function(f"{family}_kernel")
    kernel(((n + 255) // 256,), (256,), (np.uint32(n), *[cupy.asarray(a) for a in p], np.uint32(0), out))
    expected = numba_draws(family, n, *p[: FAMILIES[family][0]])
    np.testing.assert_array_equal(out.get().view(np.uint64), expected.view(np.uint64))
