"""Exact draws by perturbation and PCG: their noise, number by number, and the draws against the dense equations."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.monte_carlo import batches, compare
from reference import dense, models
from scipy.sparse.linalg import LinearOperator, cg
from scipy.stats import norm

from mmgibbs.config.sampling import TOLERANCES
from mmgibbs.engines.pcg import engine as exact
from mmgibbs.engines.pcg.engine import PcgEngine
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.errors import ModelError
from mmgibbs.machine.threads import Threads
from mmgibbs.models.relationships import pedigree, user_inverse
from mmgibbs.models.relationships.user_inverse import SparseInverse
from mmgibbs.models.terms import Related

KEY = (11, 2)
# Missing traits, maternal effects, random regression, a user's relationship; weights in all but the third
FIVE = ("bivariate_missing", "direct_maternal", "random_regression", "univariate_animal", "user_relationship")


def engine_for(example, kind="term", precision="double", tolerance=TOLERANCES["gibbs"], **options):
    equations = structured_equations(example.design, partition(example.design, kind), precision)
    engine = PcgEngine(equations, tolerance, **options)
    engine.set_variances(example.G, example.R)
    return engine


def draws(engine, equations, n, first=1):
    """(n, equations) consecutive draws."""
    out = np.empty((n, equations.size))
    for i in range(n):
        engine.sweep(first + i, KEY)
        out[i] = equations.vector(engine.fetch())
    return out


def noise_covariance(engine, equations, monkeypatch):
    """The covariance of the perturbed right-hand side: the noise is linear in its normals, so draw unit vectors in
    place of normals."""
    places, total, at = 0, np.zeros((equations.size, equations.size)), [0]

    def unit(out, number, levels, stream, seed, chain):
        out[: len(levels)] = 0.0
        where = number - at[0]
        if 0 <= where < out[: len(levels)].size:
            out.reshape(-1)[where] = 1.0
        at[0] += out[: len(levels)].size

    monkeypatch.setattr(exact, "fill_normals", unit)
    while True:
        at[0] = 0
        right = engine._noise([places], KEY, np.zeros((*engine.equations.records.y.shape, 1)))
        if places >= at[0]:
            return total
        row = equations.vector(engine.solver.to_model_order(right[:, 0]))
        total += np.outer(row, row)
        places += 1


@pytest.mark.parametrize("name", models.NAMES)
@pytest.mark.parametrize("kind", ["term", "colour"])
def test_the_noise_of_the_right_hand_side_has_covariance_C(name, kind, monkeypatch):
    example = models.example(name)
    equations = dense.build(example.design, example.G, example.R)
    found = noise_covariance(engine_for(example, kind), equations, monkeypatch)
    np.testing.assert_allclose(found, equations.C, atol=1e-10 * np.abs(equations.C).max())


@pytest.mark.parametrize("name", models.NAMES)
@pytest.mark.parametrize("variances_fixed", [True, False])
def test_a_draw_solves_the_perturbed_equations_to_a_millionth_of_a_posterior_sd(name, variances_fixed):
    """At the default tolerance; the noise itself is the engine's."""
    example = models.example(name)
    equations = dense.build(example.design, example.G, example.R)
    engine = engine_for(example, "colour", variances_fixed=variances_fixed)
    sd = np.sqrt(np.diag(equations.covariance))
    for number in (1, 2, 12):
        noise = engine._noise([number], KEY, np.zeros((*engine.equations.records.y.shape, 1)))[:, 0]
        expected = np.linalg.solve(equations.C, equations.rhs + equations.vector(engine.solver.to_model_order(noise)))
        engine.sweep(number, KEY)
        assert np.abs((equations.vector(engine.fetch()) - expected) / sd).max() < 1e-6


def judge(x, equations):
    """Mean and covariance of independent draws x (n, N) against C^-1 b and C^-1: all means, variances and covariances
    at once."""
    centred = x - equations.solution
    a, b = np.tril_indices(equations.size)
    products = centred[:, a] * centred[:, b]
    exact_values = np.concatenate([equations.solution, equations.covariance[a, b]])
    return compare(batches(np.concatenate([x, products], axis=1), 200), exact_values)


@pytest.mark.parametrize("name", [*FIVE, "fixed_groups"])
def test_mean_and_covariance_of_the_draws(name):
    example = models.example(name)
    equations = dense.build(example.design, example.G, example.R)
    comparison = judge(draws(engine_for(example, variances_fixed=True, draws_at_once=200), equations, 4000), equations)
    assert comparison.agrees, comparison


def without_progeny(K, z):
    return np.sqrt(K.own)[:, None] * z


def unweighted(records, roots, z, column, e):
    e[:, :, column] += np.einsum("rtu,ru->rt", roots[records.pattern], z)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, module, part, wrong",
    [
        ("univariate_animal", exact, "add_residual_noise", unweighted),
        ("direct_maternal", pedigree, "mendelian_noise", without_progeny),
    ],
)
def test_a_mutated_draw_is_seen(name, module, part, wrong, monkeypatch):
    example = models.example(name)
    equations = dense.build(example.design, example.G, example.R)
    monkeypatch.setattr(module, part, wrong)
    comparison = judge(draws(engine_for(example, variances_fixed=True, draws_at_once=200), equations, 4000), equations)
    assert not comparison.agrees, comparison


@pytest.mark.parametrize("name, variances_fixed", [*((name, True) for name in FIVE), ("user_relationship", False)])
def test_draws_are_independent(name, variances_fixed):
    """Lag-1 autocorrelation of every equation times sqrt(n) is standard normal; so is their mean in units of its
    standard error."""
    example = models.example(name)
    equations = dense.build(example.design, example.G, example.R)
    engine = engine_for(example, variances_fixed=variances_fixed, draws_at_once=200)
    x = draws(engine, equations, 2000 if variances_fixed else 800) - equations.solution
    z = np.sum(x[1:] * x[:-1], axis=0) / np.sum(x**2, axis=0) * np.sqrt(len(x))
    assert np.abs(z).max() < norm.isf(1e-3 / len(z) / 2), np.abs(z).max()
    # Along independent directions of the posterior: the average over all of them, within three standard errors of 0.
    white = x @ np.linalg.cholesky(equations.C)
    z = np.sum(white[1:] * white[:-1], axis=0) / np.sum(white**2, axis=0) * np.sqrt(len(x))
    assert abs(z.mean()) * np.sqrt(len(z)) < 3


@pytest.mark.slow
def test_a_gibbs_chain_fails_the_test_of_independence():
    from mmgibbs.engines.serial import SerialEngine

    example = models.example("univariate_animal")
    equations = dense.build(example.design, example.G, example.R)
    engine = SerialEngine(structured_equations(example.design, partition(example.design)))
    engine.set_variances(example.G, example.R)
    x = draws(engine, equations, 2000) - equations.solution
    z = np.sum(x[1:] * x[:-1], axis=0) / np.sum(x**2, axis=0) * np.sqrt(len(x))
    assert np.abs(z).max() > norm.isf(1e-3 / len(z) / 2)


@pytest.mark.parametrize("name", ["three_traits_maternal", "user_relationship"])
def test_a_draw_is_the_same_to_the_last_bit_in_whatever_company(name):
    example = models.example(name)
    equations = dense.build(example.design, example.G, example.R)
    alone = draws(engine_for(example, variances_fixed=True, draws_at_once=1), equations, 7, first=5)
    for together in (2, 3, 8):
        np.testing.assert_array_equal(
            draws(engine_for(example, variances_fixed=True, draws_at_once=together), equations, 7, first=5), alone
        )


@pytest.mark.parametrize("name", ["direct_maternal", "user_relationship", "fixed_groups"])
def test_neither_the_partition_nor_the_start_changes_a_draw(name):
    example = models.example(name)
    equations = dense.build(example.design, example.G, example.R)
    sd = np.sqrt(np.diag(equations.covariance))
    reference = draws(engine_for(example, "term", variances_fixed=True), equations, 4)
    for other in (engine_for(example, "colour", variances_fixed=True), engine_for(example, "equal")):
        assert np.abs((draws(other, equations, 4) - reference) / sd).max() < 1e-6
    other.start(
        [
            np.full((t.n_levels, t.n_components), 3.0) * (1.0 if t.active is None else t.active)
            for t in example.design.terms
        ]
    )
    assert np.abs((draws(other, equations, 4) - reference) / sd).max() < 1e-6


def test_keys_are_followed():
    example = models.example("univariate_animal")
    engine = engine_for(example, variances_fixed=True)
    engine.sweep(3, (1, 0))
    first = engine.fetch()[1]
    engine.sweep(4, (1, 1))
    other_chain = engine.fetch()[1]
    engine.sweep(4, (1, 0))
    assert not np.array_equal(other_chain, engine.fetch()[1])
    engine.sweep(3, (1, 0))
    np.testing.assert_array_equal(engine.fetch()[1], first)


def test_residuals_and_products_follow_the_draw():
    example = models.example("univariate_animal")
    equations = dense.build(example.design, example.G, example.R)
    engine = engine_for(example)
    engine.sweep(1, KEY)
    theta = engine.fetch()
    K_inverse = dense.relationship_inverse(example.design.terms[1])
    np.testing.assert_allclose(engine.quadratic_form(1), theta[1].T @ K_inverse @ theta[1], rtol=1e-10)
    e = equations.residuals(equations.vector(theta))
    products, n = engine.residual_products(1, KEY, [(0,)])
    np.testing.assert_allclose(products, (e * example.design.weight[:, None]).T @ e, rtol=1e-10)
    assert n.tolist() == [len(e)]


@pytest.mark.slow  # compiles every kernel once more
def test_equations_in_single_precision_are_drawn_in_double():
    example = models.example("bivariate_missing")
    equations = dense.build(example.design, example.G, example.R)
    single, double = (draws(engine_for(example, precision=p), equations, 2) for p in ("single", "double"))
    assert 0 < np.abs((single - double) / np.sqrt(np.diag(equations.covariance))).max() < 1e-4


def test_columns_solved_together_are_those_of_scipy():
    example = models.example("three_traits_maternal")
    solver = PcgSolver(structured_equations(example.design, partition(example.design)))
    solver.set_variances(example.G, example.R)
    rng = np.random.default_rng(4)
    size = int(solver.bounds[-1])
    b, start = rng.standard_normal((size, 3)) * [1.0, 100.0, 0.0], rng.standard_normal((size, 3))
    start[:, 0] = 0.0
    x, iterations, error, relative = solver.solve_columns(b, start, 1e-12)
    C, M = (LinearOperator((size, size), f, dtype=np.float64) for f in (solver.times, solver.precondition))
    for j in range(3):
        expected, failed = cg(C, b[:, j], rtol=1e-14, atol=1e-13, M=M, maxiter=500)
        assert failed == 0
        np.testing.assert_allclose(x[:, j], expected, atol=1e-9 * max(1.0, np.abs(expected).max()))
    assert all(iterations > 0) and max(iterations) < size and max(error) <= 1e-12
    left = b - solver.times(x)
    np.testing.assert_allclose(solver.times(x), b, atol=1e-9 * np.abs(b).max())
    scale = np.where(np.linalg.norm(b, axis=0) > 0, np.linalg.norm(b, axis=0), 1.0)
    np.testing.assert_allclose(relative, np.linalg.norm(left, axis=0) / scale, atol=1e-13)


def test_threads_share_columns_out_to_the_same_bits():
    example = models.example("three_traits_maternal")
    equations, found = structured_equations(example.design, partition(example.design)), []
    for threads in (1, 2, 7):
        solver = PcgSolver(equations, Threads(threads))
        solver.set_variances(example.G, example.R)
        b = np.random.default_rng(4).standard_normal((int(solver.bounds[-1]), 5))
        found.append(solver.solve_columns(b, np.zeros(b.shape), 1e-8))
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, same)


def test_an_iteration_that_does_not_converge_is_an_error(monkeypatch):
    monkeypatch.setattr(PcgSolver, "iteration_limit", 3)
    with pytest.raises(
        ModelError,
        match="PCG stopped after 3 iterations at an error of .* posterior standard deviations, needed 1.0e-08",
    ):
        engine_for(models.example("direct_maternal")).sweep(1, KEY)


def with_relationship(example, K_inverse):
    """The same model with another K^-1 in its last term."""
    rows, columns = np.nonzero(K_inverse)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(K_inverse)))]).astype(np.int64)
    kind = SparseInverse(indptr, columns.astype(np.int32), K_inverse[rows, columns])
    terms = (*example.design.terms[:-1], replace(example.design.terms[-1], prior=Related(kind)))
    return models.Example(example.name, replace(example.design, terms=terms), example.G, example.R)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_sparse_and_dense_factors_of_a_users_matrix(share, monkeypatch):
    """The share of elements from which the factor is a dense one decides nothing but the way."""
    example = models.example("user_relationship")
    equations = dense.build(example.design, example.G, example.R)
    monkeypatch.setattr(user_inverse, "DENSE_FROM", share)
    found = noise_covariance(engine_for(example, "colour"), equations, monkeypatch)
    np.testing.assert_allclose(found, equations.C, atol=1e-10 * np.abs(equations.C).max())


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_users_matrix_without_a_factor_is_refused(share, monkeypatch):
    example = models.example("user_relationship")
    K_inverse = dense.relationship_inverse(example.design.terms[1])
    schur = -0.1
    K_inverse[0, 0] = K_inverse[0, 1:] @ np.linalg.solve(K_inverse[1:, 1:], K_inverse[1:, 0]) + schur
    monkeypatch.setattr(user_inverse, "DENSE_FROM", share)
    with pytest.raises(ModelError, match="term 'genomic': .* not positive definite; needed .* or engine: serial"):
        engine_for(with_relationship(example, K_inverse))


def test_a_factor_that_does_not_fit_is_refused(monkeypatch):
    import scipy.sparse.linalg

    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(scipy.sparse.linalg, "splu", full)
    monkeypatch.setattr(user_inverse, "DENSE_FROM", 1.0)
    with pytest.raises(
        ModelError,
        match="term 'genomic': .*15 levels, .* does not fit in memory; needed a sparser matrix, or engine: serial",
    ):
        engine_for(models.example("user_relationship"))
