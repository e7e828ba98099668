"""The explicit equations of every example model against the dense build, and new variances against a fresh build."""

import dataclasses

import numpy as np
import pytest
from helpers.explicit_matrix import right_hand_side, scalar_block, sparse_matrix
from reference import dense, models

from mmgibbs.equations.explicit.csr import explicit_equations
from mmgibbs.models.design import Design
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.terms import Effect, Flat, Levels, Related, Term

EXACT = {"rtol": 1e-10, "atol": 1e-10}
SINGLE = {"rtol": 1e-5, "atol": 1e-5}


def built(example, precision="double"):
    equations = explicit_equations(example.design, precision)
    equations.set_variances(example.G, example.R)
    return equations, dense.build(example.design, example.G, example.R)


def other_variances(example, seed=1):
    """Full matrices, so that blocks that were zero at the first variances appear."""
    rng = np.random.default_rng(seed)

    def draw(k):
        L = rng.standard_normal((k, k)) / 2 + 2 * np.eye(k)
        return L @ L.T

    return [None if g is None else draw(len(g)) for g in example.G], draw(len(example.R))


def deviation(equations, truth):
    """Largest deviation of C and of the right-hand side from the dense build, over the largest element of C."""
    pairs = [(sparse_matrix(equations).toarray(), truth.C), (right_hand_side(equations), truth.rhs)]
    return max(np.abs(ours - theirs).max() for ours, theirs in pairs) / np.abs(truth.C).max()


@pytest.mark.parametrize("precision, tolerance", [("double", EXACT), ("single", SINGLE)])
@pytest.mark.parametrize("name", models.NAMES)
def test_matrix_and_right_hand_side_equal_the_dense_build(name, precision, tolerance):
    equations, truth = built(models.example(name), precision)
    assert equations.n_equations == truth.size == equations.layout.active.sum()
    np.testing.assert_allclose(sparse_matrix(equations).toarray(), truth.C, **tolerance)
    np.testing.assert_allclose(right_hand_side(equations), truth.rhs, **EXACT)


@pytest.mark.parametrize("name", models.NAMES)
def test_every_block_is_its_part_of_the_dense_build(name):
    equations, truth = built(models.example(name))
    for i, row in enumerate(equations.scalar_effects):
        for j, column in enumerate(equations.scalar_effects):
            block = scalar_block(equations, i, j)
            shape = tuple(equations.design.terms[s.term].n_levels for s in (row, column))
            expected = np.zeros(shape)
            for m, (term, level, component) in enumerate(truth.labels):
                for n, (other, column_level, other_component) in enumerate(truth.labels):
                    if (term, component, other, other_component) == (
                        row.term,
                        row.component,
                        column.term,
                        column.component,
                    ):
                        expected[level, column_level] = truth.C[m, n]
            found = np.zeros(shape)
            for level in range(shape[0]):
                elements = slice(block.indptr[level], block.indptr[level + 1])
                assert np.all(np.diff(block.indices[elements]) > 0)
                found[level, block.indices[elements]] = block.values[elements]
            np.testing.assert_allclose(found, expected, **EXACT)
            assert (block.indptr.dtype, block.indices.dtype, block.values.dtype) == (np.int64, np.int32, np.float64)


@pytest.mark.parametrize("name", models.NAMES)
def test_new_variances_equal_a_fresh_build(name):
    example = models.example(name)
    equations, _ = built(example)
    indices = {key: unit.indices for key, unit in equations.units.items()}
    for G, R in (other_variances(example), (example.G, example.R)):
        equations.set_variances(G, R)
        fresh = explicit_equations(example.design)
        fresh.set_variances(G, R)
        assert equations.values.keys() == fresh.values.keys()
        for key, values in fresh.values.items():
            np.testing.assert_array_equal(equations.values[key], values)
        assert equations.bytes == fresh.bytes
        assert deviation(equations, dense.build(example.design, G, R)) < 1e-10
    assert all(equations.units[key].indices is array for key, array in indices.items())


@pytest.mark.parametrize("name", models.NAMES)
def test_a_changed_coefficient_is_seen(name):
    """The comparison with the dense build has the power to see one wrong coefficient of any unit block or variance."""
    example = models.example(name)
    equations, truth = built(example)
    assert deviation(equations, truth) < 1e-12
    for i in range(len(example.G)):
        if example.G[i] is not None:
            G = [g if j != i else g * (1 + 1e-6) for j, g in enumerate(example.G)]
            equations.set_variances(G, example.R)
            assert deviation(equations, truth) > 1e-10
    equations.set_variances(example.G, example.R * (1 + 1e-6))
    assert deviation(equations, truth) > 1e-10
    for key, unit in list(equations.units.items()):
        equations.units[key] = unit._replace(sums=unit.sums * (1 + 1e-6), kappa=unit.kappa * (1 + 1e-6))
        equations.set_variances(example.G, example.R)
        if not any(
            key == (equations.scalar_effects[i].effect, equations.scalar_effects[j].effect) for i, j in equations.values
        ):
            continue  # these two effects have no trait in common
        assert deviation(equations, truth) > 1e-10
        equations.units[key] = unit


@pytest.mark.parametrize("name", models.NAMES)
def test_nonzeros_are_those_of_the_matrix(name):
    equations, truth = built(models.example(name))
    matrix = sparse_matrix(equations)
    assert matrix.nnz == np.count_nonzero(matrix.toarray())
    assert np.count_nonzero(np.abs(truth.C) > 1e-9) == matrix.nnz
    assert matrix.has_sorted_indices and matrix.indices.dtype == np.int32
    np.testing.assert_array_equal(matrix.toarray(), matrix.toarray().T)


def test_a_symmetric_block_is_stored_once():
    equations, _ = built(models.example("bivariate_missing"))
    genetic = [i for i, s in enumerate(equations.scalar_effects) if s.term == 2]
    assert (
        scalar_block(equations, genetic[0], genetic[1]).values is scalar_block(equations, genetic[1], genetic[0]).values
    )
    shared = {id(v): v.nbytes for v in equations.values.values()}
    assert len(shared) < len(equations.values)
    assert equations.bytes == sum(shared.values()) + sum(unit.bytes for unit in equations.units.values())


def test_single_precision_halves_the_values():
    example = models.example("direct_maternal")
    single, double = built(example, "single")[0], built(example)[0]
    assert all(v.dtype == np.float32 for v in single.values.values())
    assert single.bytes < double.bytes


def test_sums_of_many_records_are_formed_in_double_precision():
    """0.1 a million times: float32 running sums would be off in the third digit."""
    n = 1_000_000
    level = np.zeros(n, np.int32)
    sex = Term("sex", Levels((Effect("", level, (0,)),), 1))
    design = Design(("gain",), np.ones((n, 1)), level, np.ones((1, 1), bool), np.full(n, 0.1), (sex,))
    equations = explicit_equations(design, "single")
    equations.set_variances([None], [[1.0]])
    assert sparse_matrix(equations).toarray()[0, 0] == pytest.approx(n * 0.1, rel=1e-6)


def test_layout_splits_into_views_and_joins_again():
    example = models.example("direct_maternal")
    equations, truth = built(example)
    x = np.arange(equations.layout.size, dtype=float)
    theta = equations.layout.split(x)
    assert [t.shape for t in theta] == [(t.n_levels, t.n_components) for t in example.design.terms]
    theta[1][0, 2] = -1.0
    np.testing.assert_array_equal(equations.layout.join(theta), x)
    assert x[equations.layout.first[1] + 2] == -1.0
    for number, (term, level, component) in enumerate(truth.labels):
        place = equations.layout.first[term] + level * example.design.terms[term].n_components + component
        assert equations.layout.equation[place] == number


def test_random_incidence_with_levels_that_nobody_meets():
    """Two terms of two effects each, with covariates, records without a level, an effect that no record meets."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, T = 15, 2
        observed = models.some_observed(rng, n, T)
        patterns, pattern = np.unique(observed, axis=0, return_inverse=True)
        terms, G = [], []
        for kind in ("fixed", "random"):
            q = int(rng.integers(1, 6))
            first = Effect("first", rng.integers(-1, q, n).astype(np.int32), (0, 1))
            level = np.full(n, -1, np.int32) if seed % 4 == 0 else rng.integers(-1, q, n).astype(np.int32)
            second = Effect("second", level, (1,), rng.standard_normal((n, 2)), ("a", "b"))
            active = rng.random((q, 4)) < 0.8 if kind == "fixed" else None
            prior = Flat() if kind == "fixed" else Related(Identity(q))
            terms.append(Term(kind, Levels((first, second), q), prior, active))
            G.append(np.eye(4) + 0.3 if kind == "random" else None)
        y = np.where(observed, rng.standard_normal((n, T)), np.nan)
        design = Design(
            ("a", "b"), y, pattern.reshape(n).astype(np.int32), patterns, rng.uniform(0.5, 2, n), tuple(terms)
        )
        equations = explicit_equations(design)
        equations.set_variances(G, [[2.0, 0.5], [0.5, 1.0]])
        assert deviation(equations, dense.build(design, G, [[2.0, 0.5], [0.5, 1.0]])) < 1e-10


def test_groups_held_at_zero_leave_the_others_coupled_to_their_progeny():
    """Fixed groups: without the constraint C has one null direction per trait; with it, none."""
    example = models.example("fixed_groups")
    free = dataclasses.replace(example.design.terms[1], active=None)
    design = dataclasses.replace(example.design, terms=(example.design.terms[0], free))
    equations = explicit_equations(design)
    equations.set_variances(example.G, example.R)
    C = sparse_matrix(equations).toarray()
    assert np.linalg.matrix_rank(C, tol=1e-9) == len(C) - 2
    assert np.linalg.matrix_rank(sparse_matrix(built(example)[0]).toarray(), tol=1e-9) == len(C) - 2
