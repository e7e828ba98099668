"""Inverses of the observed parts of R, one per missing pattern."""

import numpy as np
import pytest

from mmgibbs.models.design import inverse_by_pattern


@pytest.mark.parametrize("T", [1, 2, 3, 7])
def test_observed_parts_are_inverted_and_the_rest_is_0(T):
    rng = np.random.default_rng(T)
    R = np.stack([X.T @ X for X in rng.normal(size=(2, T + 2, T))])
    patterns = np.array([[bool(number >> t & 1) for t in range(T)] for number in range(2**T)])
    class_of_pattern = np.arange(len(patterns)) % 2
    found = inverse_by_pattern(R, patterns, class_of_pattern)
    for inverse, observed, c in zip(found, patterns, class_of_pattern, strict=True):
        expected, part = np.zeros((T, T)), np.ix_(observed, observed)
        expected[part] = np.linalg.inv(R[c][part])
        np.testing.assert_allclose(inverse, expected, rtol=1e-9, atol=1e-12)
        assert not inverse[~np.outer(observed, observed)].any()


def test_one_trait_has_its_reciprocal():
    """To the last bit, as 1 / x has it."""
    assert inverse_by_pattern(np.full((1, 1, 1), 7.3), np.array([[True]]), np.zeros(1, np.int64)).item() == 1 / 7.3


@pytest.mark.parametrize("R", [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]], [[np.nan, 0.0], [0.0, 1.0]]])
def test_a_matrix_that_is_not_positive_definite_has_none(R):
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        inverse_by_pattern(np.array([R]), np.array([[False, True], [True, True]]), np.zeros(2, np.int64))
