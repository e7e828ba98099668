"""The inverse from a core: against its own definition, and the whole one where the core is everybody."""

import numpy as np
import pytest
from reference import models

from mmgibbs.models.relationships.core import CoreBlock, core_size, inverse_by_core, parts_of_core


def by_definition(K, core):
    """Covariance of core values, and of others that are independent given those."""
    others = np.delete(np.arange(len(K)), core)
    P = K[np.ix_(others, core)] @ np.linalg.inv(K[np.ix_(core, core)])
    V = K.copy()
    V[np.ix_(others, others)] = P @ K[np.ix_(core, others)]
    V[others, others] = K[others, others]
    return np.linalg.inv(V)


def test_the_definition():
    K = models.covariance_of(np.random.default_rng(2), 40)
    core = np.array([1, 5, 6, 20, 33])
    found = inverse_by_core(K, core)
    np.testing.assert_allclose(found.values, by_definition(K, core), atol=1e-8)
    np.testing.assert_array_equal(found.values, found.values.T)
    assert found.least > 0
    assert np.abs(found.values - np.linalg.inv(K)).max() > 0.01  # with 5 of 40 it is another matrix


def test_an_animal_of_which_the_core_leaves_nothing():
    K = models.covariance_of(np.random.default_rng(4), 6)
    K[5], K[:, 5] = K[0], K[:, 0]
    K[5, 5] = K[0, 0]
    with pytest.raises(np.linalg.LinAlgError, match="nothing of animal 6"):
        inverse_by_core(K, np.array([0, 1, 2]))


def test_the_size_that_explains_a_share():
    K = np.diag([5.0, 3.0, 1.0, 1.0])
    assert [core_size(K, share) for share in (0.4, 0.6, 0.85, 0.95)] == [1, 2, 3, 4]


@pytest.mark.parametrize("weight", [1.0, 0.7])
def test_noise_and_draws_by_a_core(weight):
    """Of unit vectors: noise of covariance weight K^-1, values of covariance K / weight."""
    K, core = models.covariance_of(np.random.default_rng(6), 30), np.array([2, 3, 11, 25])
    block = CoreBlock(np.arange(30, dtype=np.int32), parts_of_core(K[:, core], K.diagonal(), core), weight)
    inverse, unit = weight * by_definition(K, core), np.eye(30)
    noise, draws = block.noise(unit), block.draw(unit)
    np.testing.assert_allclose(noise @ noise.T, inverse, atol=1e-8)
    np.testing.assert_allclose(draws @ draws.T, np.linalg.inv(inverse), atol=1e-8)
