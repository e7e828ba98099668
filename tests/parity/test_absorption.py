"""Animals without progeny absorbed: S and its preconditioner are as of dense equations, and so is the solution."""

import numpy as np
import pytest
from reference import dense, models
from scipy.linalg import block_diag

from mmgibbs.engines.pcg import absorption
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.errors import ModelError
from mmgibbs.machine.threads import Threads

NAMES = (
    "direct_maternal",  # missing traits, two effects of a term, some dams unknown
    "fixed_groups",  # components set to 0, groups that stand for both parents, weights
    "sire_and_grandsire",  # records that meet one level of a term twice, or two
    "selfed_lines",
)


@pytest.fixture(autouse=True)
def rows_for_small_models(monkeypatch):
    monkeypatch.setattr("mmgibbs.engines.visit.UNROLL_FROM", 0)
    monkeypatch.setattr("mmgibbs.machine.threads.PIECE", 7)


def solver_of(name, threads=1, preconditioner="auto"):
    example = models.example(name)
    equations = structured_equations(example.design, partition(example.design, "colour"))
    solver = PcgSolver(equations, Threads(threads), preconditioner)
    solver.set_variances(example.G, example.R)
    return solver


def absorbed(name, threads=1):
    solver = solver_of(name, threads)
    blocks = solver.bounds, solver.threads, solver._inverse_blocks
    found = absorption.absorbed_equations(solver.equations, *blocks, solver.Ginv, solver.Rinv)
    assert found is not None
    return solver, found


def matrix_of(times, n):
    return np.stack([times(unit) for unit in np.eye(n)], axis=1)


def dense_S(solver, found):
    """(S, 1 where a component is in force), kept levels in sweep order."""
    C = matrix_of(solver.times, solver.bounds[-1])
    C[solver._held, solver._held] = 1.0
    kept = np.zeros(len(C), bool)
    for part, own in zip(solver.split(kept), found.positions, strict=True):
        part[own] = True
    A, AI, II = C[np.ix_(kept, kept)], C[np.ix_(kept, ~kept)], C[np.ix_(~kept, ~kept)]
    return A - AI @ np.linalg.solve(II, AI.T), solver.active[kept] > 0


def error_of_S(name):
    solver, found = absorbed(name)
    S, active = dense_S(solver, found)
    ours = matrix_of(found.product, len(S))[np.ix_(active, active)]
    assert np.linalg.eigvalsh((ours + ours.T) / 2).min() > 0
    return np.abs(ours - S[np.ix_(active, active)]).max() / np.abs(S).max()


def error_of_preconditioner(name):
    solver, found = absorbed(name)
    S, _ = dense_S(solver, found)
    sizes = [(own.size, len(k_)) for own, (k_, _, _) in zip(found.positions, found.tuples, strict=True)]
    ends = np.cumsum([k for q, k in sizes for _ in range(q)])
    expected = block_diag(*[np.linalg.inv(own[:, last - len(own) : last]) for own, last in blocks_of(S, ends)])
    M = matrix_of(found.preconditioned, len(S))
    np.testing.assert_allclose(M, M.T, atol=1e-12 * np.abs(M).max())
    assert np.linalg.eigvalsh((M + M.T) / 2).min() > 0
    return np.abs(M - expected).max() / np.abs(expected).max()


def blocks_of(S, ends):
    return [(S[first:last], last) for first, last in zip([0, *ends[:-1]], ends, strict=True)]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_left_is_the_schur_complement(name):
    assert error_of_S(name) < 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_the_preconditioner_is_the_inverse_of_its_blocks(name):
    assert error_of_preconditioner(name) < 1e-9


def test_blocks_of_C_in_place_of_those_of_S_are_noticed(monkeypatch):
    monkeypatch.setattr(absorption, "absorb_into_blocks", lambda *arguments: None)
    assert error_of_preconditioner("direct_maternal") > 1e-2


def test_absorbed_levels_that_do_not_move_their_records_are_noticed(monkeypatch):
    solve = absorption.solve_absorbed

    def spoiled(*arguments):
        *head, theta, u, positions, first, last = arguments
        solve(*head, theta, u.copy(), positions, first, last)

    monkeypatch.setattr(absorption, "solve_absorbed", spoiled)
    solver, found = absorbed("direct_maternal")
    S, _ = dense_S(solver, found)
    assert np.abs(matrix_of(found.product, len(S)) - S).max() > 1e-3 * np.abs(S).max()


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_is_exact_with_any_threads_and_sooner(name):
    example = models.example(name)
    exact = dense.build(example.design, example.G, example.R)
    found = [solver_of(name, threads).solve(1e-12) for threads in (1, 2, 3)]
    assert found[0].preconditioner == "absorption"
    assert found[0].iterations < solver_of(name, preconditioner="blocks").solve(1e-12).iterations
    for ours, theta in zip(found[0].theta, exact.theta(exact.solution), strict=True):
        np.testing.assert_allclose(ours, theta, rtol=1e-8, atol=1e-8 * np.abs(theta).max())
    for other in found[1:]:
        for a, b in zip(found[0].theta, other.theta, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", NAMES)
def test_no_two_absorbed_levels_are_related_or_met_by_one_record(name):
    solver, found = absorbed(name)
    blocks = [k * np.ones((k, k)) for k in [len(found.tuples[found.term][0])] * found.absorbed.size]
    places = solver.split(np.arange(solver.bounds[-1]))[found.term][found.absorbed].ravel()
    C = matrix_of(solver.times, solver.bounds[-1])[np.ix_(places, places)]
    assert not C[block_diag(*blocks) == 0].any()


def test_levels_with_many_records_are_kept(monkeypatch):
    solver, found = absorbed("direct_maternal")
    visits = np.diff(solver.equations.terms[found.term].visit_ptr.astype(int))[found.absorbed]
    monkeypatch.setattr(absorption, "MOST_VISITS", int(visits.max()) - 1)
    levels = found.levels
    term, fewer = absorption.absorbable(solver.equations, levels)
    assert term != found.term or fewer.size < found.absorbed.size


def test_asked_for_where_it_cannot_be(monkeypatch):
    with pytest.raises(ModelError, match=r"sampler.preconditioner: found absorption, needed auto or blocks"):
        solver_of("user_relationship", preconditioner="absorption").solve(1e-12)
    assert solver_of("user_relationship").solve(1e-12).preconditioner == "blocks"
