"""K^-1, scale and draws of random walks against the covariance of the Wiener process and of its integral."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from mmgibbs.models.relationships.random_walk import RandomWalk

GAPS = np.array([0.3, 2.0, 0.7, 1.1, 0.05, 4.0, 1.0, 2.5])
FIRST = np.array([1, 0, 0, 0, 1, 0, 1, 0], bool)


def process(t, order):
    """E f(s) f(t) of a process that begins with f = 0 at 0, and with f' = 0 of order 2."""
    s, u = np.minimum.outer(t, t), np.maximum.outer(t, t)
    return s if order == 1 else s**2 * (3 * u - s) / 6


def plain(gaps, first, order):
    """(K of the points, mean variance about the polynomial)."""
    starts = [*np.flatnonzero(first), gaps.size]
    K, total, values = np.zeros((gaps.size,) * 2), 0.0, 0
    for a, b in zip(starts[:-1], starts[1:], strict=True):
        t = np.cumsum(gaps[a:b])
        K[a:b, a:b] = process(t, order)
        whole = np.append(0, t)
        X = np.vander(whole, order)
        M = np.eye(whole.size) - X @ np.linalg.pinv(X)
        total, values = total + np.trace(M @ process(whole, order)), values + whole.size
    return K, total / values


def dense(kind):
    indptr, indices, values = kind.inverse_csr()
    return csr_array((values, indices, indptr), shape=(kind.n_levels,) * 2).toarray()


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("first", [FIRST, np.arange(8) == 0])
def test_K_is_that_of_the_process(order, first):
    kind = RandomWalk.build(GAPS, first, order, "day")
    K, mean = plain(GAPS, first, order)
    full = np.linalg.inv(dense(kind))
    np.testing.assert_allclose(full[::order, ::order], K / mean, atol=1e-9)
    np.testing.assert_allclose(kind.diagonal, np.diag(full), rtol=1e-9)
    root = kind.draw(np.eye(kind.n_levels))
    np.testing.assert_allclose(root @ root.T, full, atol=1e-9)
    inverse = dense(kind)
    np.testing.assert_array_equal(inverse, inverse.T)


@pytest.mark.parametrize("order", [1, 2])
def test_the_variance_of_a_step_is_that_in_the_unit_of_the_column(order):
    """Another unit of the column leaves K of the values as it is, and says the same of a step in that unit."""
    short, long = (RandomWalk.build(GAPS * unit, FIRST, order, "day") for unit in (1.0, 1000.0))
    np.testing.assert_allclose(short.diagonal[::order], long.diagonal[::order], rtol=1e-9)
    _, mean = plain(GAPS, FIRST, order)
    assert short.variance_of_unit_step == pytest.approx(1 / mean, rel=1e-9)
    assert long.variance_of_unit_step == pytest.approx(1 / (mean * 1000.0 ** (2 * order - 1)), rel=1e-9)
    assert "random walk of order" in short.sentence and short.facts["order"] == order
