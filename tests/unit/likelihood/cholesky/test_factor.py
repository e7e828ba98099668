"""The sparse Cholesky factor against dense NumPy: order, log-determinant, solutions, selected inverse."""

import numpy as np
import pytest
from helpers.mutants import mutant
from scipy.sparse import csr_array

import mmgibbs.likelihood.cholesky.columns as columns_module
from mmgibbs.likelihood.cholesky.columns import analyse_columns
from mmgibbs.likelihood.cholesky.elimination import column_counts, eliminate, elimination_tree, invert_order, permute
from mmgibbs.likelihood.cholesky.factor import (
    MAX_FLOPS_PER_ELEMENT,
    NotPositiveDefiniteError,
    analyse,
    factorise,
    factorise_matrix,
)
from mmgibbs.likelihood.cholesky.ordering import minimum_degree
from mmgibbs.likelihood.cholesky.supernodes import analyse_supernodes

FORMS = {"columns": analyse_columns, "supernodes": analyse_supernodes}


@pytest.fixture(params=FORMS)
def form(request):
    """The symbolic factor of a matrix in each form, whatever it costs."""
    return lambda matrix: FORMS[request.param](eliminate(matrix))


def random_matrix(rng, n, density):
    """Sparse, symmetric, positive definite, with a few dense rows."""
    A = np.where(rng.random((n, n)) < density, rng.standard_normal((n, n)), 0.0)
    A[:, : max(1, n // 40)] += rng.standard_normal((n, max(1, n // 40)))
    return csr_array(A @ A.T + np.diag(np.full(n, 1.0 + n * density)))


def values_of(matrix, known):
    values = np.zeros(known.elements)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    values[known.locate(rows, matrix.indices)] = matrix.data
    return values


def pattern_of_factor(matrix, order):
    """Where L of the matrix in this order may have elements: (row, column) equations, by elimination of a pattern."""
    full = matrix.toarray()[np.ix_(order, order)] != 0
    for j in range(len(full)):
        below = j + 1 + np.flatnonzero(full[j + 1 :, j])
        full[np.ix_(below, below)] = True
    rows, columns = np.nonzero(np.tril(full))
    return order[rows], order[columns]


@pytest.mark.parametrize(("n", "density"), [(1, 0.0), (2, 1.0), (40, 0.02), (150, 0.004), (150, 0.05), (900, 0.5)])
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
    found = factor.selected_inverse()[known.locate(rows, columns)]
    np.testing.assert_allclose(found, inverse[rows, columns], rtol=1e-7, atol=1e-10)
    assert known.nonzeros >= rows.size and known.flops >= n


@pytest.mark.parametrize(("groups", "columns", "starts"), [(1, 520, [0, 256, 512, 520]), (3, 20, [0, 20, 40, 60])])
def test_supernodes_are_columns_of_one_pattern_256_at_most(groups, columns, starts):
    """A dense matrix in panels of 256 columns; groups that share nothing are panels of their own."""
    matrix = csr_array(np.kron(np.eye(groups), np.ones((columns, columns)) + np.eye(columns)))
    assert analyse_supernodes(eliminate(matrix)).first.tolist() == starts


def test_long_columns_are_factorised_by_supernodes():
    rng = np.random.default_rng(1)
    short, long = random_matrix(rng, 100, 0.0), random_matrix(rng, 2 * MAX_FLOPS_PER_ELEMENT, 0.5)
    assert [type(analyse(m)).__name__ for m in (short, long)] == ["Columns", "Supernodes"]


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
    known = module.analyse_columns(eliminate(matrix))
    assert set(known.run_length.tolist()) >= {1, 2, 4}
    values = values_of(matrix, known)
    known.factorise(values)
    C = matrix.toarray()
    inverse = np.linalg.inv(C)
    of_diagonal = known.selected_inverse(values)[known.diagonal]
    right_value = np.isclose(known.log_determinant(values), np.linalg.slogdet(C)[1])
    assert not (right_value and np.allclose(of_diagonal, np.diag(inverse)))


def test_the_tree_is_that_of_the_order():
    """The tree is made before the postorder and renumbered with it."""
    pattern = random_matrix(np.random.default_rng(7), 150, 0.01)
    eliminated = eliminate(pattern)
    np.testing.assert_array_equal(eliminated.parent, elimination_tree(*permute(pattern, eliminated.order)))
    np.testing.assert_array_equal(eliminated.order[invert_order(eliminated.order)], np.arange(150))
    is_root = eliminated.parent < 0
    assert is_root.any() and (is_root | (eliminated.parent > np.arange(150))).all()


@pytest.mark.parametrize("least", [1e-3, 0.0, -1.0])
def test_a_matrix_that_is_not_positive_definite_names_its_equation(form, least):
    C = random_matrix(np.random.default_rng(5), 40, 0.05).toarray()
    C[17, :] = C[:, 17] = 0.0
    C[17, 17] = least
    matrix = csr_array(C + np.diag(np.full(40, 1e-300)))  # the diagonal is stored
    known = form(matrix)
    values = values_of(matrix, known)
    if least > 0:
        assert np.isfinite(factorise(known, values).log_determinant)
        return
    values[known.diagonal[17]] = least
    with pytest.raises(NotPositiveDefiniteError, match="equation 17") as refused:
        factorise(known, values)
    assert refused.value.equation == 17


def test_one_matrix_without_a_pattern_of_its_own():
    matrix = random_matrix(np.random.default_rng(6), 60, 0.05)
    b = np.arange(60.0)
    np.testing.assert_allclose(matrix @ factorise_matrix(matrix).solve(b), b, rtol=1e-9, atol=1e-9)


def test_the_densest_equations_come_last():
    rng, n = np.random.default_rng(1), 400
    A = np.eye(n) + (rng.random((n, n)) < 0.002)
    A[:, [7, 300]] = 1.0
    order = minimum_degree(csr_array((A + A.T) != 0))
    assert set(order[-2:].tolist()) == {7, 300} and np.array_equal(np.sort(order), np.arange(n))


def exact_minimum_degree(A):
    """The same order by elimination of a dense pattern: of equations with fewest neighbours, the last one."""
    A, left, order = A.copy(), np.ones(len(A), bool), []
    np.fill_diagonal(A, False)
    for _ in range(len(A)):
        degree = np.where(left, A.sum(axis=1), len(A) + 1)
        p = len(A) - 1 - int(np.argmin(degree[::-1]))
        order.append(p)
        A |= np.outer(A[p], A[p])
        np.fill_diagonal(A, False)
        A[p], A[:, p], left[p] = False, False, False
    return np.array(order)


def fill(pattern, order):
    lists = permute(pattern, order)
    return int(column_counts(*lists, elimination_tree(*lists)).sum())


@pytest.mark.parametrize("density", [0.0, 0.01, 0.05, 0.3])
def test_minimum_degree_fills_as_little_as_exact_degrees(density):
    """Degrees are bounds, and ties fall otherwise: within a twentieth, of ten graphs together."""
    rng, found, exact = np.random.default_rng(2), 0, 0
    for n in [1, 2, 3, *rng.integers(40, 90, 7)]:
        A = rng.random((n, n)) < density
        A = A | A.T | np.eye(n, dtype=bool)
        A[:, : n // 9] |= A[:, n // 9 : 2 * (n // 9)]  # equations that are alike
        A |= A.T
        order = minimum_degree(csr_array(A))
        np.testing.assert_array_equal(np.sort(order), np.arange(n))
        found, exact = found + fill(csr_array(A), order), exact + fill(csr_array(A), exact_minimum_degree(A))
    assert found <= 1.05 * exact


def test_an_order_without_equations_is_empty():
    assert minimum_degree(csr_array((0, 0))).size == 0


def test_a_pattern_may_repeat_elements_but_must_be_symmetric():
    rows, columns = np.array([[0, 1, 1, 2, 0, 1], [1, 0, 2, 1, 1, 0]])
    repeated = csr_array((np.ones(6), columns[np.argsort(rows, kind="stable")], [0, 2, 5, 6]), shape=(3, 3))
    assert not repeated.has_canonical_format
    assert sorted(minimum_degree(repeated)) == [0, 1, 2]
    with pytest.raises(ValueError, match="expected a symmetric pattern"):
        minimum_degree(csr_array(np.triu(np.ones((3, 3)))))
