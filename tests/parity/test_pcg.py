"""PCG on the structured equations against the dense solution."""

import numpy as np
import pytest
from reference import dense, models

from mmgibbs.config.sampling import TOLERANCES
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.errors import ModelError


def pcg(example, kind="term"):
    engine = PcgSolver(structured_equations(example.design, partition(example.design, kind)))
    engine.set_variances(example.G, example.R)
    return engine


@pytest.mark.parametrize("name", models.NAMES)
@pytest.mark.parametrize("kind", ["term", "colour"])
def test_solution_to_eight_digits(name, kind):
    example = models.example(name)
    equations = dense.build(example.design, example.G, example.R)
    solution = pcg(example, kind).solve(TOLERANCES["blup"])
    assert solution.relative_residual < 1e-10
    for ours, expected in zip(solution.theta, equations.theta(equations.solution), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("name", models.NAMES)
def test_structured_times_is_the_dense_matrix(name):
    example = models.example(name)
    equations = dense.build(example.design, example.G, example.R)
    engine = pcg(example, "colour")
    x = np.random.default_rng(2).normal(size=engine.bounds[-1])
    theta = engine.in_model_order(x * engine.active)
    product = engine.in_model_order(engine.times(x))
    expected = equations.C @ equations.vector(theta)
    np.testing.assert_allclose(equations.vector(product), expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def test_the_preconditioner_matters_and_the_limit_is_an_error():
    example = models.example("three_traits_maternal")
    engine = pcg(example)
    iterations = engine.solve(TOLERANCES["blup"]).iterations
    assert iterations < engine.bounds[-1]
    with pytest.raises(ModelError, match="PCG stopped after 2 iterations at a relative residual"):
        engine.solve(TOLERANCES["blup"], max_iterations=2)
