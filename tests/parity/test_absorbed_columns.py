"""Several right-hand sides by absorbed equations: as of dense equations, whatever their company and the threads."""

import numpy as np
import pytest
from helpers.selection import first
from parity.test_absorption import NAMES, example_of, rows_for_small_models, solver_of  # noqa: F401
from reference import dense

from mmgibbs.engines.pcg.absorbed_columns import absorbed_columns
from mmgibbs.errors import ModelError


def columns_of(solver, m=5):
    rng = np.random.default_rng(3)
    y = rng.standard_normal((*solver.equations.records.y.shape, m))
    return solver.weighted_sums(y), solver.zero_held(rng.standard_normal((int(solver.bounds[-1]), m)))


@pytest.mark.parametrize("name", first(3, NAMES))
@pytest.mark.parametrize("relative", [False, True])
def test_solutions_are_those_of_dense_equations(name, relative):
    solver, example = solver_of(name), example_of(name)
    b, start = columns_of(solver)
    found = absorbed_columns(solver).solve(b, start, 1e-11, relative)
    C = dense.build(example.design, example.G, example.R)
    expected = [np.linalg.solve(C.C, C.vector(solver.to_model_order(column))) for column in b.T]
    solutions = [C.vector(solver.to_model_order(column)) for column in found.x.T]
    np.testing.assert_allclose(solutions, expected, atol=1e-9)
    assert np.all(found.error <= 1e-11) and np.all(found.iterations > 0)


def test_values_do_not_depend_on_company_threads_or_what_was_solved_before():
    solver = solver_of(NAMES[2])
    b, start = columns_of(solver)
    whole = absorbed_columns(solver).solve(b, start, 1e-6)
    alone = absorbed_columns(solver).solve(b[:, 3:4], start[:, 3:4], 1e-6)
    np.testing.assert_array_equal(alone.x[:, 0], whole.x[:, 3])
    solver = solver_of(NAMES[2], threads=3)
    columns = absorbed_columns(solver)
    for _ in range(2):
        np.testing.assert_array_equal(columns.solve(b, start, 1e-6).x, whole.x)


def test_a_start_at_the_solution_takes_no_iteration():
    solver = solver_of(NAMES[2])
    b, start = columns_of(solver)
    columns = absorbed_columns(solver)
    found = columns.solve(b, columns.solve(b, start, 1e-10).x, 1e-8)
    assert not found.iterations.any()


def test_what_does_not_converge_is_refused(monkeypatch):
    solver = solver_of(NAMES[2])
    monkeypatch.setattr(type(solver), "iteration_limit", 1)
    with pytest.raises(ModelError, match="PCG stopped after 1 iterations"):
        absorbed_columns(solver).solve(*columns_of(solver), 1e-8)


def test_none_where_nothing_can_be_absorbed():
    assert absorbed_columns(solver_of("random_regression")) is None
