"""The Cholesky factors that compiled loops share, against LAPACK."""

import numpy as np
import pytest

from mmgibbs.draws import small_matrices
from mmgibbs.draws.small_matrices import SINGULAR

cholesky, cholesky_reciprocal = small_matrices.cholesky, small_matrices.cholesky_reciprocal


def positive_definite(k, seed=1):
    X = np.random.default_rng(seed).normal(size=(k + 3, k))
    return X.T @ X


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 20])
def test_a_factor_is_that_of_lapack(k):
    A = positive_definite(k)
    L, reciprocal = np.full((k, k), np.nan), np.full((k, k), np.nan)
    lower = np.tril_indices(k)
    A[np.triu_indices(k, 1)] = np.nan  # not read
    assert cholesky(A, L, SINGULAR) and cholesky_reciprocal(A, reciprocal, SINGULAR)
    expected = np.linalg.cholesky(positive_definite(k))
    np.testing.assert_allclose(L[lower], expected[lower], rtol=1e-12)
    np.testing.assert_allclose(1.0 / np.diag(reciprocal), np.diag(expected), rtol=1e-12)
    below = np.tril_indices(k, -1)
    np.testing.assert_allclose(reciprocal[below], expected[below], rtol=1e-12)
    assert np.isnan(L[np.triu_indices(k, 1)]).all()  # nor written


NEARLY_SINGULAR = [[4.0, 6.0], [6.0, 9.0 + 1e-13]]


@pytest.mark.parametrize("factor", [cholesky, cholesky_reciprocal])
@pytest.mark.parametrize(
    "A", [[[0.0]], [[-1.0]], [[np.nan]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]], NEARLY_SINGULAR]
)
def test_what_is_not_positive_definite_has_none(factor, A):
    assert not factor(np.array(A), np.zeros(np.shape(A)), SINGULAR)


def test_how_near_to_singular_is_the_callers_choice():
    assert cholesky(np.array(NEARLY_SINGULAR), np.zeros((2, 2)), 0.0)
