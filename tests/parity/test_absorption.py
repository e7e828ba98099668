"""Levels absorbed: S and its preconditioner are as of dense equations, and so is the solution."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.mixed_models import equations_of, matrices, with_classes
from reference import dense, models
from scipy.linalg import block_diag

from mmgibbs.engines.pcg import absorption
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.errors import ModelError
from mmgibbs.machine.threads import Threads
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.terms import Effect

NOT_ABSORBED = (  # by models, as none of their terms can be
    "three_traits_maternal",  # five components
    "user_relationship",
    "random_regression",  # covariates, as the next two
    "same_effect_twice",
    "fixed_covariates",
    *models.SEVERAL_LEVELS,
    *models.DENSE,
)
UNRELATED, BY_CLASS = "unrelated_terms", "two_residual_classes"
NAMES = (*[name for name in models.NAMES if name not in NOT_ABSORBED], UNRELATED, BY_CLASS)


def example_of(name):
    if name == UNRELATED:
        return unrelated_terms()
    if name == BY_CLASS:
        return two_residual_classes()
    return models.example(name)


def unrelated_terms():
    """Independent levels alone: two traits, missing ones, weights; every cow is absorbed."""
    rng = np.random.default_rng(141)
    cows, n = 12, 30
    cow = Effect("", rng.permutation(np.arange(n) % cows).astype(np.int32), (0, 1))
    season = Effect("", rng.integers(0, 4, n).astype(np.int32), (1,))
    terms = [
        models.class_term("herd", np.arange(n) % 3, 3, [0, 1]),
        models.random_term("season", [season], Identity(4), 4),
        models.random_term("cow", [cow], Identity(cows), cows),
    ]
    G, R = [None, np.array([[1.5]]), np.array([[4.0, 1.5], [1.5, 3.0]])], np.array([[6.0, 2.0], [2.0, 5.0]])
    observed, weight = models.some_observed(rng, n, 2), rng.uniform(0.5, 2.0, n)
    return models.Example(UNRELATED, models.with_records(rng, n, terms, G, R, observed, weight), G, R)


def two_residual_classes():
    example = models.example("direct_maternal")
    design = with_classes(example.design, ("a", "b"))
    return replace(example, name=BY_CLASS, design=design, R=matrices(example.R, 2))


def nothing_left():
    """One term, all levels of which are absorbed."""
    rng = np.random.default_rng(142)
    cow = Effect("", np.arange(20, dtype=np.int32) % 8, (0,))
    terms, G, R = [models.random_term("cow", [cow], Identity(8), 8)], [np.array([[2.0]])], np.array([[3.0]])
    return models.Example("nothing_left", models.with_records(rng, 20, terms, G, R), G, R)


@pytest.fixture(autouse=True)
def rows_for_small_models(monkeypatch):
    monkeypatch.setattr("mmgibbs.engines.coloured.unrolled.UNROLL_FROM", 0)
    monkeypatch.setattr("mmgibbs.machine.threads.PIECE", 7)


def solver_of(name, threads=1, preconditioner="auto"):
    return solver_for(example_of(name), threads, preconditioner)


def solver_for(example, threads=1, preconditioner="auto"):
    equations = equations_of(example)
    solver = PcgSolver(equations, Threads(threads), preconditioner)
    solver.set_variances(example.G, example.R)
    return solver


def absorbed(name, threads=1):
    solver = solver_of(name, threads)
    blocks = solver.bounds, solver.threads, solver.inverse_blocks
    found = absorption.absorbed_equations(solver.equations, *blocks, solver.Ginv, solver.Rinv)
    assert found is not None
    return solver, found


def matrix_of(times, n):
    return np.stack([times(unit) for unit in np.eye(n)], axis=1)


def dense_S(solver, found):
    """S of the kept levels in sweep order."""
    C = matrix_of(solver.times, solver.bounds[-1])
    C[solver._held, solver._held] = 1.0
    kept = np.zeros(len(C), bool)
    for part, own in zip(solver.split(kept), found.positions, strict=True):
        part[own] = True
    A, AI, II = C[np.ix_(kept, kept)], C[np.ix_(kept, ~kept)], C[np.ix_(~kept, ~kept)]
    return A - AI @ np.linalg.solve(II, AI.T)


def error_of_preconditioner(name):
    solver, found = absorbed(name)
    S = dense_S(solver, found)
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
def test_the_preconditioner_is_the_inverse_of_its_blocks(name):
    assert error_of_preconditioner(name) < 1e-9


def test_blocks_of_C_in_place_of_those_of_S_are_noticed(monkeypatch):
    monkeypatch.setattr(absorption, "absorb_into_blocks", lambda *arguments: None)
    assert error_of_preconditioner("direct_maternal") > 1e-2


def test_components_set_to_0_that_have_a_share_in_blocks_are_noticed(monkeypatch):
    """`absorb_into_blocks` as Python runs it, its parts as they are in the module."""
    monkeypatch.setattr(absorption, "absorb_into_blocks", absorption.absorb_into_blocks.py_func)
    assert error_of_preconditioner("fixed_groups") < 1e-9
    monkeypatch.setattr(absorption, "_zero_inactive", lambda *arguments: None)
    assert error_of_preconditioner("fixed_groups") > 1e-2


def assert_exact(found, example):
    exact = dense.build(example.design, example.G, example.R)
    for ours, theta in zip(found.theta, exact.theta(exact.solution), strict=True):
        np.testing.assert_allclose(ours, theta, rtol=1e-8, atol=1e-8 * np.abs(theta).max())


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_is_exact_with_any_threads_and_sooner(name):
    found = [solver_of(name, threads).solve(1e-12) for threads in (1, 2, 3)]
    assert found[0].preconditioner == "absorption"
    assert found[0].iterations < solver_of(name, preconditioner="blocks").solve(1e-12).iterations
    assert_exact(found[0], example_of(name))
    for other in found[1:]:
        for a, b in zip(found[0].theta, other.theta, strict=True):
            np.testing.assert_array_equal(a, b)


def without_moved_records(*arguments):
    *head, theta, u, positions, first, last = arguments
    SOLVE_ABSORBED(*head, theta, u.copy(), positions, first, last)


SOLVE_ABSORBED, ABSORBED = absorption.solve_absorbed, absorption.AbsorbedEquations
SOLUTION = ABSORBED.solution
MUTANTS = {
    "absorbed levels do not move their records": (absorption, "solve_absorbed", without_moved_records),
    "theta_I without D^-1 b_I": (ABSORBED, "solution", lambda own, x, b: SOLUTION(own, x, np.zeros_like(b))),
    "a right-hand side that lacks the absorbed": (ABSORBED, "right_hand_side", ABSORBED.keep),
}


@pytest.mark.parametrize("place, part, wrong", MUTANTS.values(), ids=MUTANTS)
def test_a_wrong_solution_is_noticed(place, part, wrong, monkeypatch):
    monkeypatch.setattr(place, part, wrong)
    with pytest.raises((AssertionError, ModelError)):
        assert_exact(solver_of("direct_maternal").solve(1e-12), example_of("direct_maternal"))


def test_nothing_is_left():
    example = nothing_left()
    for threads in (1, 3):
        found = solver_for(example, threads).solve(1e-12)
        assert (found.preconditioner, found.iterations) == ("absorption", 0)
        assert_exact(found, example)


@pytest.mark.parametrize("name", NOT_ABSORBED)
def test_models_that_have_the_blocks_of_C(name):
    solver = solver_of(name)
    blocks = solver.bounds, solver.threads, solver.inverse_blocks
    assert absorption.absorbed_equations(solver.equations, *blocks, solver.Ginv, solver.Rinv) is None


def test_levels_with_many_records_are_kept(monkeypatch):
    solver, found = absorbed("direct_maternal")
    visits = np.diff(solver.equations.terms[found.term].visit_ptr.astype(int))[found.absorbed]
    monkeypatch.setattr(absorption, "MOST_VISITS", int(visits.max()) - 1)
    levels = found.levels
    term, fewer = absorption.absorbable(solver.equations, levels)
    assert term != found.term or fewer.size < found.absorbed.size


def test_asked_for_where_it_cannot_be():
    said = r"^sampler.preconditioner: found absorption, needed auto or blocks: .* at least 2,000 levels or visits"
    with pytest.raises(ModelError, match=said):
        solver_of("user_relationship", preconditioner="absorption").solve(1e-12)
    assert solver_of("user_relationship").solve(1e-12).preconditioner == "blocks"
