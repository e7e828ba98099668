"""PCG on the structured equations against the dense solution."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from reference import dense, models

from mmgibbs.config.sampling import TOLERANCES
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.errors import ModelError
from mmgibbs.machine.threads import Threads
from mmgibbs.models.relationships.base import UNKNOWN


def pcg(example, kind="term"):
    engine = PcgSolver(equations_of(example, kind))
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
    theta = engine.to_model_order(x * engine.active)
    product = engine.to_model_order(engine.times(x))
    expected = equations.C @ equations.vector(theta)
    np.testing.assert_allclose(equations.vector(product), expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


ROWS = [
    ("direct_maternal", True),  # missing traits, a maternal effect, some dams unknown
    ("fixed_groups", True),  # components set to 0, groups that stand for both parents, weights
    ("user_relationship", False),
]


@pytest.mark.parametrize("name, fits", ROWS)
def test_rows_over_threads_give_the_same_products_and_solution(name, fits, monkeypatch):
    monkeypatch.setattr("mmgibbs.engines.coloured.unrolled.UNROLL_FROM", 0)
    monkeypatch.setattr("mmgibbs.machine.threads.PIECE", 7)
    example = models.example(name)
    equations = equations_of(example)
    solvers = [PcgSolver(equations, Threads(t)) for t in (1, 2, 3)]
    x = np.random.default_rng(4).normal(size=solvers[0].bounds[-1])
    found = []
    for solver in solvers:
        solver.set_variances(example.G, example.R)
        times, precondition = solver._operators()
        assert (precondition != solver.precondition) == fits
        found.append([times(x), precondition(x), *solver.solve(1e-12).theta])
    expected = [solvers[0].times(x), solvers[0].precondition(x)]
    for product, truth in zip(found[0], expected, strict=False):
        np.testing.assert_allclose(product, truth, rtol=0, atol=1e-12 * np.abs(truth).max())
    exact = dense.build(example.design, example.G, example.R)
    for ours, theta in zip(found[0][2:], exact.theta(exact.solution), strict=True):
        np.testing.assert_allclose(ours, theta, rtol=1e-8, atol=1e-8 * np.abs(theta).max())
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_product_that_forgets_the_mates_is_noticed(monkeypatch):
    monkeypatch.setattr("mmgibbs.engines.coloured.unrolled.UNROLL_FROM", 0)
    solver = pcg(models.example("direct_maternal"))
    times, _ = solver._operators()
    x = np.random.default_rng(4).normal(size=solver.bounds[-1])
    i = next(i for i, K in enumerate(solver.equations.relationships) if hasattr(K, "mate"))
    K = solver.equations.relationships[i]
    spoiled = K._replace(mate=np.full_like(K.mate, UNKNOWN))
    every = tuple(spoiled if j == i else other for j, other in enumerate(solver.equations.relationships))
    solver.equations = replace(solver.equations, relationships=every)
    assert np.abs(solver._operators()[0](x) - times(x)).max() > 1e-3 * np.abs(x).max()


def test_the_preconditioner_matters_and_the_limit_is_an_error():
    example = models.example("three_traits_maternal")
    engine = pcg(example)
    iterations = engine.solve(TOLERANCES["blup"]).iterations
    assert iterations < engine.bounds[-1]
    with pytest.raises(ModelError, match="PCG stopped after 2 iterations at a relative residual"):
        engine.solve(TOLERANCES["blup"], max_iterations=2)
