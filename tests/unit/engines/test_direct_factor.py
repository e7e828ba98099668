"""The sparse Cholesky factor of C against dense NumPy: log|C|, solutions, selected elements of C^-1, traces."""

import numpy as np
import pytest
from reference import dense, models

from mmgibbs.engines.direct.coefficients import coefficients
from mmgibbs.engines.direct.factor import factorise
from mmgibbs.engines.direct.symbolic import symbolic
from mmgibbs.errors import ModelError


def blocks_of(example):
    of_terms = [None if g is None else (tuple(range(len(g))),) for g in example.G]
    R = np.asarray(example.R)
    T = example.design.n_traits
    joined = (R if R.ndim == 2 else R.sum(axis=0)) != 0
    of_residual = (tuple(range(T)),) if joined.all() else tuple((t,) for t in range(T))
    return of_terms, [of_residual] * max(1, len(example.design.residual_classes))


def coefficients_of(example):
    return coefficients(example.design, *blocks_of(example))


def random_matrix(rng, n, density):
    """Sparse, symmetric, positive definite, with a few dense rows."""
    from scipy.sparse import csr_array

    A = np.where(rng.random((n, n)) < density, rng.standard_normal((n, n)), 0.0)
    A[:, : max(1, n // 40)] += rng.standard_normal((n, max(1, n // 40)))
    return csr_array(A @ A.T + np.diag(np.full(n, 1.0 + n * density)))


def panels_of(matrix, s):
    panels = np.zeros(s.elements)
    full = matrix.toarray()[np.ix_(s.order, s.order)]
    for k in range(s.first.size - 1):
        own, rows = np.arange(s.first[k], s.first[k + 1]), s.rows[s.row_ptr[k] : s.row_ptr[k + 1]]
        panels[s.panel_ptr[k] : s.panel_ptr[k + 1]] = full[np.ix_(rows, own)].ravel()
    return panels


@pytest.mark.parametrize(("n", "density"), [(1, 0.0), (2, 1.0), (40, 0.02), (150, 0.004), (150, 0.05), (200, 0.5)])
def test_random_matrices(n, density):
    rng = np.random.default_rng(n)
    matrix = random_matrix(rng, n, density)
    s = symbolic(matrix)
    factor = factorise(s, panels_of(matrix, s))
    C = matrix.toarray()
    inverse = np.linalg.inv(C)
    np.testing.assert_allclose(factor.log_determinant, np.linalg.slogdet(C)[1], rtol=1e-12)
    b = rng.standard_normal((n, 3))
    np.testing.assert_allclose(factor.solve(b), inverse @ b, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(factor.solve(b[:, 0]), inverse @ b[:, 0], rtol=1e-8, atol=1e-10)
    Z, expected = factor.selected_inverse(), inverse[np.ix_(s.order, s.order)]
    for k in range(s.first.size - 1):
        own, rows = np.arange(s.first[k], s.first[k + 1]), s.rows[s.row_ptr[k] : s.row_ptr[k + 1]]
        found = Z[s.panel_ptr[k] : s.panel_ptr[k + 1]].reshape(rows.size, own.size)
        np.testing.assert_allclose(found, expected[np.ix_(rows, own)], rtol=1e-7, atol=1e-10)
    lower = np.linalg.cholesky(C[np.ix_(s.order, s.order)])
    assert s.nonzeros >= np.count_nonzero(np.abs(lower) > 1e-14)
    assert s.flops >= n


@pytest.mark.parametrize("name", models.NAMES)
def test_every_model(name):
    example = models.example(name)
    truth = dense.build(example.design, example.G, example.R)
    c = coefficients_of(example)
    factor = c.factor(example.G, example.R)
    np.testing.assert_allclose(factor.log_determinant, np.linalg.slogdet(truth.C)[1], rtol=1e-11)
    np.testing.assert_allclose(factor.solve(truth.rhs), truth.solution, rtol=1e-8, atol=1e-10)
    Z = factor.selected_inverse()
    np.testing.assert_allclose(c.diagonal(Z), np.diag(truth.covariance), rtol=1e-9)
    traces = c.traces(Z)
    for i in example.random_terms():
        np.testing.assert_allclose(traces.of_terms[i], trace_of_term(truth, i), rtol=1e-8, atol=1e-10)
    design = example.design
    for p, observed in enumerate(design.patterns):
        W, w = truth.W[design.pattern == p], design.weight[design.pattern == p]
        expected = np.einsum("r,rti,ij,ruj->tu", w, W, truth.covariance, W)
        joined = np.outer(observed, observed) & (np.asarray(example.R) != 0)
        np.testing.assert_allclose(traces.of_records[p][joined], expected[joined], rtol=1e-8, atol=1e-10)


def trace_of_term(truth, i):
    term = truth.design.terms[i]
    kappa, k = dense.relationship_inverse(term), term.n_components
    out = np.zeros((k, k))
    numbers = [(number, level, c) for number, (t, level, c) in enumerate(truth.labels) if t == i]
    for x, level, a in numbers:
        for y, other, b in numbers:
            out[a, b] += kappa[level, other] * truth.covariance[x, y]
    return out


def test_new_variances_on_the_same_pattern():
    example = models.example("three_traits_maternal")
    c = coefficients_of(example)
    for scale in (1.0, 0.3, 4.0):
        G = [None if g is None else np.diag(np.diag(g)) * scale for g in example.G]
        truth = dense.build(example.design, G, example.R / scale)
        factor = c.factor(G, example.R / scale)
        np.testing.assert_allclose(factor.solve(truth.rhs), truth.solution, rtol=1e-8, atol=1e-10)


def test_a_singular_matrix_is_refused_by_name():
    from dataclasses import replace

    example = models.example("univariate_inbreeding_ignored")  # its second class effect has a level held at 0
    herd, sex, genetic = example.design.terms
    design = replace(example.design, terms=(herd, replace(sex, active=None), genetic))
    with pytest.raises(ModelError, match=r"not positive definite, first at effect (herd|sex) \(trait1\), level number"):
        coefficients(design, [None, None, ((0,),)], [((0,),)]).factor(example.G, example.R)


def test_the_same_bits_again():
    example = models.example("direct_maternal")
    one, other = (coefficients_of(example).factor(example.G, example.R) for _ in range(2))
    np.testing.assert_array_equal(one.panels, other.panels)
    np.testing.assert_array_equal(one.selected_inverse(), other.selected_inverse())
