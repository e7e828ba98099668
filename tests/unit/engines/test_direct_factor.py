"""The sparse Cholesky factor of C against dense NumPy: log|C|, solutions, selected elements of C^-1, traces."""

import numpy as np
import pytest
from helpers.mutants import mutant
from reference import dense, models

import mmgibbs.engines.direct.columns as columns_module
from mmgibbs.engines.direct.coefficients import coefficients
from mmgibbs.engines.direct.columns import columns_of
from mmgibbs.engines.direct.elimination import elimination
from mmgibbs.engines.direct.factor import LONG, factor_pattern, factorise
from mmgibbs.engines.direct.symbolic import symbolic
from mmgibbs.errors import ModelError


def blocks_of(example):
    of_terms = [None if g is None else (tuple(range(len(g))),) for g in example.G]
    R = np.asarray(example.R)
    T = example.design.n_traits
    joined = (R if R.ndim == 2 else R.sum(axis=0)) != 0
    of_residual = (tuple(range(T)),) if joined.all() else tuple((t,) for t in range(T))
    return of_terms, [of_residual] * max(1, len(example.design.residual_classes))


FORMS = {"columns": columns_of, "supernodes": symbolic}


@pytest.fixture(params=FORMS)
def form(request, monkeypatch):
    """The pattern of a factor in each form, whatever it costs."""
    monkeypatch.setattr("mmgibbs.engines.direct.factor.LONG", np.inf if request.param == "columns" else 0)
    return lambda matrix: FORMS[request.param](elimination(matrix))


def coefficients_of(example):
    return coefficients(example.design, *blocks_of(example))


def random_matrix(rng, n, density):
    """Sparse, symmetric, positive definite, with a few dense rows."""
    from scipy.sparse import csr_array

    A = np.where(rng.random((n, n)) < density, rng.standard_normal((n, n)), 0.0)
    A[:, : max(1, n // 40)] += rng.standard_normal((n, max(1, n // 40)))
    return csr_array(A @ A.T + np.diag(np.full(n, 1.0 + n * density)))


def values_of(matrix, known):
    values = np.zeros(known.elements)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    values[known.places(rows, matrix.indices)] = matrix.data
    return values


def pattern_of_factor(matrix, order):
    """Where L of the matrix in this order may have elements: (row, column) equations, by elimination of a pattern."""
    full = matrix.toarray()[np.ix_(order, order)] != 0
    for j in range(len(full)):
        below = j + 1 + np.flatnonzero(full[j + 1 :, j])
        full[np.ix_(below, below)] = True
    rows, columns = np.nonzero(np.tril(full))
    return order[rows], order[columns]


@pytest.mark.parametrize(("n", "density"), [(1, 0.0), (2, 1.0), (40, 0.02), (150, 0.004), (150, 0.05), (200, 0.5)])
def test_random_matrices(form, n, density):
    rng = np.random.default_rng(n)
    matrix = random_matrix(rng, n, density)
    known = form(matrix)
    factor = factorise(known, values_of(matrix, known))
    C = matrix.toarray()
    inverse = np.linalg.inv(C)
    np.testing.assert_allclose(factor.log_determinant, np.linalg.slogdet(C)[1], rtol=1e-12)
    b = rng.standard_normal((n, 3))
    np.testing.assert_allclose(factor.solve(b), inverse @ b, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(factor.solve(b[:, 0]), inverse @ b[:, 0], rtol=1e-8, atol=1e-10)
    rows, columns = pattern_of_factor(matrix, known.order)
    found = factor.selected_inverse()[known.places(rows, columns)]
    np.testing.assert_allclose(found, inverse[rows, columns], rtol=1e-7, atol=1e-10)
    assert known.nonzeros >= rows.size and known.flops >= n


def test_long_columns_are_factorised_by_supernodes():
    rng = np.random.default_rng(1)
    short, long = random_matrix(rng, 100, 0.0), random_matrix(rng, 2 * LONG, 0.5)
    assert [type(factor_pattern(m)).__name__ for m in (short, long)] == ["Columns", "Symbolic"]


MUTANTS = {
    "a column that is filled too late": ("filled[k] += one", "filled[k] += one - one"),
    "two columns at once, one of them shifted": ("p0 += one", "p0 += two"),
    "four columns at once, one of them forgotten": (" - values[p2 + s] * y2", ""),
    "C^-1 with the wrong sign": ("total -= values[p] * b", "total += values[p] * b"),
    "pivots that forget": ("d -= ratio * y[k]", "d -= 0.0 * ratio * y[k]"),
}


@pytest.mark.parametrize("right, wrong", MUTANTS.values(), ids=MUTANTS)
def test_wrong_columns_are_seen(right, wrong):
    module = mutant(columns_module, right, wrong, compiled=False)
    matrix = random_matrix(np.random.default_rng(3), 40, 0.05)
    known = module.columns_of(elimination(matrix))
    assert set(known.alike.tolist()) >= {1, 2, 4}
    values = values_of(matrix, known)
    known.factorise(values)
    C = matrix.toarray()
    inverse = np.linalg.inv(C)
    of_diagonal = known.selected_inverse(values)[known.diagonal_places]
    right_value = np.isclose(known.log_determinant(values), np.linalg.slogdet(C)[1])
    assert not (right_value and np.allclose(of_diagonal, np.diag(inverse)))


@pytest.mark.parametrize("name", models.NAMES)
def test_every_model(form, name):
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


def test_new_variances_on_the_same_pattern(form):
    example = models.example("three_traits_maternal")
    c = coefficients_of(example)
    for scale in (1.0, 0.3, 4.0):
        G = [None if g is None else np.diag(np.diag(g)) * scale for g in example.G]
        truth = dense.build(example.design, G, example.R / scale)
        factor = c.factor(G, example.R / scale)
        np.testing.assert_allclose(factor.solve(truth.rhs), truth.solution, rtol=1e-8, atol=1e-10)


def test_a_singular_matrix_is_refused_by_name(form):
    from dataclasses import replace

    example = models.example("univariate_inbreeding_ignored")  # its second class effect has a level set to 0
    herd, sex, genetic = example.design.terms
    design = replace(example.design, terms=(herd, replace(sex, active=None), genetic))
    with pytest.raises(ModelError, match=r"not positive definite, first at effect (herd|sex) \(trait1\), level number"):
        coefficients(design, [None, None, ((0,),)], [((0,),)]).factor(example.G, example.R)


def test_the_same_bits_again(form):
    example = models.example("direct_maternal")
    one, other = (coefficients_of(example).factor(example.G, example.R) for _ in range(2))
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.selected_inverse(), other.selected_inverse())
