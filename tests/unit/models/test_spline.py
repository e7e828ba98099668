"""K of P-splines against B-splines by truncated powers, penalties in plain form, and draws."""

from math import factorial

import numpy as np
import pytest
from scipy.sparse import csr_array

from mmgibbs.models.relationships import spline
from mmgibbs.models.relationships.spline import NUGGET, Spline, curve_covariance, surface_covariance

X = np.array([0.0, 0.7, 1.0, 2.5, 4.0, 4.1, 6.0])


def plain_basis(x, low, high, segments, degree):
    """Differences of truncated powers (Eilers & Marx 2010)."""
    width = (high - low) / segments
    knots = low + width * np.arange(-degree, segments + degree + 1)
    powers = np.where(x[:, None] >= knots, (x[:, None] - knots) ** degree, 0.0)
    D = np.diff(np.eye(len(knots)), n=degree + 1, axis=0) / (factorial(degree) * width**degree)
    return (-1) ** (degree + 1) * powers @ D.T


def plain_penalty(n, order):
    D = np.diff(np.eye(n), n=order, axis=0)
    return D.T @ D


@pytest.mark.parametrize(("segments", "degree", "order"), [(4, 3, 2), (3, 2, 1), (6, 3, 3), (1, 3, 2)])
def test_a_curve_has_the_covariance_of_penalised_coefficients(segments, degree, order):
    K, polynomial = curve_covariance(X, 0.0, 6.0, segments, degree, order)
    B = plain_basis(X, 0.0, 6.0, segments, degree)
    known = B @ np.linalg.pinv(plain_penalty(segments + degree, order), rcond=1e-12, hermitian=True) @ B.T
    np.testing.assert_allclose(K, known, atol=1e-10 * np.abs(known).max())
    powers = np.vander(X, order)
    assert np.linalg.matrix_rank(np.column_stack([polynomial, powers])) == order
    # what the penalty leaves free are polynomials
    free = np.linalg.svd(plain_penalty(segments + degree, order))[2][-order:].T
    assert np.linalg.matrix_rank(np.column_stack([B @ free, powers]), tol=1e-8) == order


def test_a_surface_adds_the_penalties_of_rows_and_columns():
    K, polynomial = surface_covariance(5, 4, 3, 3, 2)
    parts = []
    for n in (5, 4):
        values, vectors = np.linalg.eigh(plain_penalty(6, 2))
        parts.append((plain_basis(np.arange(float(n)), 0.0, n - 1.0, 3, 3) @ vectors[:, 2:], values[2:]))
    (Zr, sr), (Zc, sc) = parts
    Z = np.stack([np.outer(Zr[i // 4], Zc[i % 4]).ravel() for i in range(20)])
    np.testing.assert_allclose(K, Z @ np.diag(1 / np.add.outer(sr, sc).ravel()) @ Z.T, atol=1e-10)
    assert polynomial.shape == (20, 4)


def test_few_rows_have_no_surface_and_few_distances_as_many_segments():
    assert not surface_covariance(2, 6, 4, 3, 2)[0].any()
    np.testing.assert_array_equal(surface_covariance(4, 4, 9, 3, 2)[0], surface_covariance(4, 4, 3, 3, 2)[0])


def test_the_inverse_the_scale_and_draws():
    blocks = [curve_covariance(x, 0.0, 6.0, 4, 3, 2) for x in (X, X[:4], X[:1])]
    kind = Spline.build(blocks, "a curve")
    total = 0.0
    for K, polynomial in blocks:
        M = np.eye(len(K)) - polynomial @ np.linalg.pinv(polynomial)
        total += np.trace(M @ K @ M)
    scale = total / 12
    indptr, indices, values = kind.inverse_csr()
    inverse = csr_array((values, indices, indptr), shape=(12, 12)).toarray()
    K = np.zeros((12, 12))
    for first, (block, _) in zip((0, 7, 11), blocks, strict=True):
        K[first : first + len(block), first : first + len(block)] = block / scale
    K += NUGGET * np.eye(12)
    np.testing.assert_allclose(inverse @ K, np.eye(12), atol=1e-7)
    np.testing.assert_allclose(kind.diagonal, np.diag(K), rtol=1e-10)
    root = kind.draw(np.eye(12))
    np.testing.assert_allclose(root @ root.T, K, rtol=1e-6, atol=1e-8)
    assert spline.mean_variance(blocks) == pytest.approx(scale)
