"""Triangular systems of several chains, against a library's one at a time."""

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from mmgibbs.regressions.arrays.base import Host


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", [(1,), (3, 1), (4, 7), (2, 3, 20)])
def test_solutions(shape, transposed):
    rng = np.random.default_rng(4)
    L = np.tril(rng.normal(size=(*shape, shape[-1]))) + 3 * np.eye(shape[-1])
    for b in (rng.normal(size=shape), rng.normal(size=shape[-1])):
        kept = b.copy()
        x = Host(1).solve_lower(L, b, transposed)
        for index in np.ndindex(*shape[:-1]):
            expected = solve_triangular(L[index], np.broadcast_to(b, shape)[index], lower=True, trans=int(transposed))
            np.testing.assert_allclose(x[index], expected, rtol=1e-12)
        assert np.array_equal(b, kept)  # not written
