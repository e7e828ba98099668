"""Bases of covariates against their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Legendre

from mmgibbs.data.covariates import Basis, legendre, orthonormalise, powers, powers_to_raw


def test_legendre_polynomials_are_normalised():
    """The integral of the square of each is 1 over (-1, 1), and of two different ones 0 (Gauss quadrature, exact)."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    x = 300 + 150 * nodes
    P = legendre(x, 4, 150, 450)
    np.testing.assert_allclose(P.T @ (weights[:, None] * P), np.eye(5), atol=1e-13)
    np.testing.assert_allclose(P[:, 2], np.sqrt(2.5) * Legendre.basis(2)(nodes), atol=1e-13)
    np.testing.assert_array_equal(legendre(x, 4, 150, 450, first=1), P[:, 1:])


@given(st.floats(-5, 5), st.floats(0.5, 3), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_coefficients_of_shifted_powers_become_those_of_raw_powers(shift, scale, degree, seed):
    rng = np.random.default_rng(seed)
    x, b = rng.normal(size=9), rng.normal(size=degree)
    difference = powers(x, degree, shift, scale) @ b - powers(x, degree) @ (powers_to_raw(degree, shift, scale) @ b)
    np.testing.assert_allclose(difference, difference[0], atol=1e-9 * 10**degree)  # they differ by a constant


@settings(max_examples=50)
@given(st.integers(1, 5), st.integers(0, 2**32 - 1), st.booleans())
def test_orthonormal_columns(m, seed, repeat):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(30, m)), rng.uniform(0.1, 3, 30)
    if repeat and m > 1:
        X[:, 1] = -2 * X[:, 0]
    Z, T = orthonormalise(X, w)
    np.testing.assert_allclose(X @ T, Z, atol=1e-10)
    assert np.array_equal(T, np.triu(T)) and np.all(np.diag(T) != 0)
    kept = [j for j in range(m) if not (repeat and j == 1)]
    np.testing.assert_allclose((Z.T @ (w[:, None] * Z) / w.sum())[np.ix_(kept, kept)], np.eye(len(kept)), atol=1e-10)


@pytest.mark.parametrize("span, first", [(None, 1), ((0.0, 10.0), 1), ((0.0, 10.0), 0)])
@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("orthonormal", [True, False])
def test_working_columns_are_the_raw_ones_moved_and_mixed(span, first, centre, orthonormal):
    """Z = (X - means) T wherever the record meets the effect, 0 elsewhere."""
    rng = np.random.default_rng(8)
    level = rng.integers(-1, 3, 40).astype(np.int32)
    basis = Basis(rng.uniform(1, 9, 40), level, 3, 2, span)
    weight = rng.uniform(0.5, 2, 40)
    Z, T, means = basis.working(first, centre, orthonormal, weight)
    met = level >= 0
    assert len(basis.labels(first)) == Z.shape[1]
    np.testing.assert_allclose(Z[met], (basis.raw(first)[met] - means[level[met]]) @ T, atol=1e-10)
    assert np.all(Z[~met] == 0)
    if centre:
        for q in range(3):
            np.testing.assert_allclose(weight[level == q] @ Z[level == q], 0, atol=1e-10)
    else:
        assert np.all(means == 0)
    if not orthonormal:
        assert np.array_equal(T, np.diag(np.diag(T)))


@pytest.mark.parametrize("value", [0.1, 3.0, 1e9 + 0.1, 0.0])
@pytest.mark.parametrize("orthonormal", [True, False])
def test_a_covariate_that_does_not_vary_is_exactly_0(value, orthonormal):
    """Three times 0.1 does not have the mean 0.1: what is left is rounding, not a slope."""
    x = np.concatenate([np.full(3, value), value + np.arange(4.0)])
    level = np.repeat([0, 1], [3, 4]).astype(np.int32)
    Z, T, _means = Basis(x, level, 2, 2, None).working(1, True, orthonormal, np.array([1, 0.3, 0.7, 1, 1, 1, 1]))
    assert np.all(Z[:3] == 0) and np.all(np.abs(Z[3:]).max(axis=0) > 0.1) and np.isfinite(T).all()
    Z, T, _means = Basis(x[:3], level[:3], 1, 2, None).working(1, True, orthonormal, np.array([1, 0.3, 0.7]))
    assert np.all(Z == 0) and np.isfinite(T).all()
    Z, T, _means = Basis(x[:3], level[:3], 1, 2, None).working(1, False, orthonormal, np.ones(3))
    assert np.isfinite(Z).all() and np.isfinite(T).all()
