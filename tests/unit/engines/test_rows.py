"""Multiples of rows as vector instructions are what NumPy makes of them."""

import numpy as np
import pytest
from numba import njit

from mmgibbs.machine.intrinsics import add_multiple, set_multiple


@njit
def both(k_, out, a, source):
    set_multiple(k_, out, 2, a, source, 1)
    add_multiple(k_, out, np.uint8(2), a, source, np.uint32(3))


@pytest.mark.parametrize("k", [1, 3, 4])
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_multiples_of_rows(k, real):
    rng = np.random.default_rng(k)
    source, out = rng.standard_normal((5, k)).astype(real), rng.standard_normal((4, k))
    expected = out.copy()
    expected[2] = 1.7 * source[1].astype(float) + 1.7 * source[3].astype(float)
    both((0,) * k, out, 1.7, source)
    np.testing.assert_allclose(out, expected, rtol=1e-14)
