"""The explicit equations of every example model against the dense build, and new variances against a fresh build."""

import numpy as np
import pytest
from helpers.explicit_matrix import right_hand_side, sparse_matrix
from reference import dense, models

from mmgibbs.equations.explicit.csr import explicit_equations
from mmgibbs.models.design import Design
from mmgibbs.models.terms import Effect, Levels, Term

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


def test_sums_of_many_records_are_formed_in_double_precision():
    """0.1 a million times: float32 running sums would be off in the third digit."""
    n = 1_000_000
    level = np.zeros(n, np.int32)
    sex = Term("sex", Levels((Effect("", level, (0,)),), 1))
    design = Design(("gain",), np.ones((n, 1)), level, np.ones((1, 1), bool), np.full(n, 0.1), (sex,))
    equations = explicit_equations(design, "single")
    equations.set_variances([None], [[1.0]])
    assert sparse_matrix(equations).toarray()[0, 0] == pytest.approx(n * 0.1, rel=1e-6)
