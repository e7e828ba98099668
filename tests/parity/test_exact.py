"""Exact draws by perturbation and PCG: their noise, number by number, and the draws against the dense equations."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.mixed_models import equations_of
from reference import dense, models

from mmgibbs.config.sampling import TOLERANCES
from mmgibbs.engines.pcg import engine as exact
from mmgibbs.engines.pcg.engine import PcgEngine
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.errors import ModelError
from mmgibbs.models.relationships import pedigree, user_inverse
from mmgibbs.models.terms import Related

KEY = (11, 2)


def engine_for(example, kind="term", precision="double", tolerance=TOLERANCES["gibbs"], **options):
    equations = equations_of(example, kind, precision)
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
    """The covariance of the perturbed right-hand side, which is linear in its normals: unit vectors in their place."""
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


def error_of_noise(name, kind, monkeypatch):
    """Of its covariance from C, of the size of C."""
    example = models.example(name)
    equations = dense.build(example.design, example.G, example.R)
    found = noise_covariance(engine_for(example, kind), equations, monkeypatch)
    return np.abs(found - equations.C).max() / np.abs(equations.C).max()


@pytest.mark.parametrize("name", models.NAMES)
@pytest.mark.parametrize("kind", ["term", "colour"])
def test_the_noise_of_the_right_hand_side_has_covariance_C(name, kind, monkeypatch):
    assert error_of_noise(name, kind, monkeypatch) < 1e-10


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_sparse_and_dense_factors_of_a_users_matrix(share, monkeypatch):
    """The share of elements from which the factor is a dense one decides nothing but the way."""
    monkeypatch.setattr(user_inverse, "DENSE_FROM", share)
    assert error_of_noise("user_relationship", "colour", monkeypatch) < 1e-10


def without_progeny(K, z):
    return np.sqrt(K.own)[:, None] * z


def unweighted(records, roots, z, column, e):
    e[:, :, column] += np.einsum("rtu,ru->rt", roots[records.pattern], z)


@pytest.mark.parametrize(
    "name, module, part, wrong",
    [
        ("univariate_animal", exact, "add_residual_noise", unweighted),
        ("direct_maternal", pedigree, "mendelian_noise", without_progeny),
    ],
)
def test_wrong_noise_is_seen(name, module, part, wrong, monkeypatch):
    monkeypatch.setattr(module, part, wrong)
    assert error_of_noise(name, "term", monkeypatch) > 1e-2


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


def test_an_iteration_that_does_not_converge_is_an_error(monkeypatch):
    monkeypatch.setattr(PcgSolver, "iteration_limit", 3)
    with pytest.raises(
        ModelError,
        match="PCG stopped after 3 iterations at an error of .* posterior standard deviations, needed 1.0e-08",
    ):
        engine_for(models.example("direct_maternal")).sweep(1, KEY)


def with_relationship(example, K_inverse):
    """The same model with another K^-1 in its last term."""
    prior = Related(models.user_inverse(K_inverse))
    terms = (*example.design.terms[:-1], replace(example.design.terms[-1], prior=prior))
    return models.Example(example.name, replace(example.design, terms=terms), example.G, example.R)


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
