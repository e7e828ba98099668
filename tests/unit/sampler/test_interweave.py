"""Interweaving: what the records say about a scale, the change of a term, the Jacobian, and when L stays."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.mixed_models import equations_of, sampled, starting_point
from helpers.support import exact_draws, random_draws
from reference import dense, models, tabular
from scipy import stats

from mmgibbs.draws.normal import MAX_NORMALS
from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.models.covariance import CovarianceModel, diagonal_blocks, full_block
from mmgibbs.models.markers import JointPriorSpec
from mmgibbs.models.priors import FLAT, InverseWishart
from mmgibbs.models.residual import ResidualModel
from mmgibbs.sampler import interweave
from mmgibbs.sampler.chain import sample_chain
from mmgibbs.sampler.covariances import CovarianceMatrices
from mmgibbs.sampler.interweave import (
    Interweaving,
    cholesky_prior,
    draw_scaling,
    jacobian_exponents,
    reason_not_interweaved,
    terms_to_interweave,
)
from mmgibbs.sampler.markers.priors.base import Site
from mmgibbs.sampler.markers.priors.joint import JointPrior
from mmgibbs.sampler.schedule import Schedule

KEY = (5, 1)
log_factors = interweave._log_factors


def engine_for(example, kind="colour", make=SerialEngine, precision="double"):
    engine = make(equations_of(example, kind, precision))
    engine.start(starting_point(example, 8))
    engine.set_variances(example.G, example.R)
    return engine


def model_of(example):
    return sampled(example.design, example.G, example.R)


def with_diagonal_matrices(model):
    diagonal = lambda c: c and replace(c, start=np.diag(np.diag(c.start)), blocks=diagonal_blocks(len(c.start)))
    residual = ResidualModel(tuple(map(diagonal, model.residual.matrices)), model.residual.classes)
    return replace(model, covariances=tuple(map(diagonal, model.covariances)), residual=residual)


def moving_part(term, theta):
    """What M multiplies: theta, or with fixed groups theta - Q g, 0 for the groups."""
    if not (term.n_groups and term.groups_fixed):
        return theta
    kind, n = term.relationship.relatives, term.n_levels - term.n_groups
    Q = tabular.group_shares(kind.sire, kind.dam, term.n_groups)
    return np.concatenate([theta[:n] - Q @ theta[n:], np.zeros((term.n_groups, theta.shape[1]))])


def lower_elements(k):
    return tuple((c, j) for c in range(k) for j in range(c + 1))


SCALED = [(name, i) for name in models.NAMES for i in models.example(name).random_terms()]


@pytest.mark.parametrize("name, i", SCALED)
@pytest.mark.parametrize("make", [SerialEngine, exact_draws])
def test_normal_equations_of_a_scale(name, i, make):
    """H = sum X_r' R_r^-1 X_r, s = sum X_r' R_r^-1 e_r; column (c, j) of X is W times theta_.j moved to component c."""
    example = models.example(name)
    term, theta = example.design.terms[i], starting_point(example, 8)
    equations = dense.build(example.design, example.G, example.R)
    moved, k = moving_part(term, theta[i]), term.n_components
    places = lower_elements(k)
    X = []
    for c, j in places:
        column = np.zeros((term.n_levels, k))
        column[:, c] = moved[:, j]
        X.append(dense.incidence(term, example.design.n_traits) @ column.ravel())
    e = np.nan_to_num(equations.residuals(equations.vector(theta)))
    H = np.einsum("art,rtu,bru->ab", X, equations.record_precision, X)
    s = np.einsum("art,rtu,ru->a", X, equations.record_precision, e)
    ours = engine_for(example, make=make).scaling_products(i, places)
    np.testing.assert_allclose(ours[0], H, rtol=1e-9, atol=1e-9 * np.abs(H).max())
    np.testing.assert_allclose(ours[1], s, rtol=1e-9, atol=1e-9 * np.abs(s).max())
    some = places[::2]
    few = engine_for(example, make=make).scaling_products(i, some)
    np.testing.assert_allclose(few[0], H[::2, ::2], rtol=1e-9, atol=1e-9 * np.abs(H).max())
    np.testing.assert_allclose(few[1], s[::2], rtol=1e-9, atol=1e-9 * np.abs(s).max())


@pytest.mark.parametrize("name, i", SCALED)
@pytest.mark.parametrize("make", [SerialEngine, exact_draws])
def test_change_of_a_term_and_its_residuals(name, i, make):
    example = models.example(name)
    term, theta = example.design.terms[i], starting_point(example, 8)
    M = np.eye(term.n_components) + np.tril(np.random.default_rng(3).normal(size=(term.n_components,) * 2)) / 3
    engine = engine_for(example, make=make)
    engine.transform_term(i, M)
    moved = moving_part(term, theta[i])
    expected = theta[i] + moved @ (M - np.eye(len(M))).T
    np.testing.assert_allclose(engine.fetch()[i], expected, atol=1e-12)
    kept = engine.e.copy()
    engine.refresh()
    np.testing.assert_allclose(kept, engine.e, atol=1e-12 * np.abs(kept).max())
    for j, other in enumerate(engine.fetch()):
        if j != i:
            np.testing.assert_array_equal(other, theta[j])


@pytest.mark.parametrize("blocks", [((0,),), ((0, 1, 2),), ((0, 2), (1,)), ((0,), (1, 2, 3))])
def test_jacobian_of_G_in_the_elements_of_L(blocks):
    """|d G / d L| by differences is prod |l_ii|^(k - i + 1) but for a factor 2 per component."""
    k = sum(map(len, blocks))
    covariance = CovarianceModel(np.eye(k), False, blocks)
    places = cholesky_prior(covariance).elements
    rng = np.random.default_rng(6)

    def lower(x):
        L = np.zeros((k, k))
        L[tuple(np.array(places).T)] = x
        return L

    x = np.array([rng.uniform(0.5, 2.0) * (1 if c == j else rng.choice([-1, 1])) for c, j in places])
    step = 1e-6
    J = []
    for i in range(len(places)):
        d = np.zeros(len(places))
        d[i] = step
        up, down = lower(x + d), lower(x - d)
        J.append(((up @ up.T - down @ down.T) / (2 * step))[tuple(np.array(places).T)])
    logs = np.log(np.abs(np.diag(lower(x))))
    assert np.linalg.slogdet(np.array(J))[1] == pytest.approx(
        k * np.log(2) + jacobian_exponents(blocks) @ logs, abs=1e-7
    )


@pytest.mark.parametrize("blocks", [((0, 1, 2),), ((0, 2), (1,))])
@pytest.mark.parametrize("flat", [True, False])
def test_prior_of_L(blocks, flat):
    """exponents . log|l_ii| - tr(S G^-1)/2 is the log density of the inverse Wishart of each block, Jacobian added."""
    rng = np.random.default_rng(9)
    scale = np.eye(3) + 0.2
    covariance = CovarianceModel(np.eye(3), False, blocks, FLAT if flat else InverseWishart(7.0, scale))
    prior = cholesky_prior(covariance)
    differences = []
    for _ in range(2):
        L = np.zeros((3, 3))
        for c, j in prior.elements:
            L[c, j] = rng.uniform(0.5, 1.5)
        expected = jacobian_exponents(blocks) @ np.log(np.diag(L))
        for block in blocks:
            index = np.ix_(block, block)
            nu, S = covariance.inverse_wishart(block)
            expected += dense.log_inverse_wishart((L @ L.T)[index], nu, S)
        differences.append(log_factors(L, prior.exponents, prior.S, np.zeros((3, 3))) - expected)
    assert differences[0] == pytest.approx(differences[1], abs=1e-10)


def test_prior_of_standard_deviations_of_joint_snp_effects():
    """The same for SNP effects with states of some traits, G = S C S: its Jacobian |d G / d (S, C)| by differences."""
    T, nu, scale = 3, 7.0, np.eye(3) + 0.2
    states = np.array([[True, False, True], [True, True, True]])
    spec = JointPriorSpec((0, 1, 2), states, np.ones(2), np.full(2, 0.5), None, np.eye(T), False, nu, scale)
    prior = JointPrior(spec, Site(0, np.zeros(1, np.uint64), KEY)).scaling
    assert prior.elements == tuple((t, t) for t in range(T))
    lower, C = np.tril_indices(T), np.array([[1.0, 0.3, -0.2], [0.3, 1.0, 0.4], [-0.2, 0.4, 1.0]])

    def G_of(x):
        out = np.eye(T)
        out[lower[0][lower[0] != lower[1]], lower[1][lower[0] != lower[1]]] = x[T:]
        out = np.tril(out) + np.tril(out, -1).T
        return (x[:T, None] * x[:T]) * out

    differences = []
    for s in ([1.0, 0.7, 1.8], [0.6, 1.5, 1.1]):
        x, J = np.array([*s, 0.3, -0.2, 0.4]), []
        np.testing.assert_allclose(G_of(x), np.array(s)[:, None] * s * C)
        for d in 1e-6 * np.eye(len(x)):
            J.append(((G_of(x + d) - G_of(x - d)) / 2e-6)[lower])
        G = G_of(x)
        expected = dense.log_inverse_wishart(G, nu, scale) + np.linalg.slogdet(np.array(J))[1]
        differences.append(log_factors(np.linalg.cholesky(G), prior.exponents, prior.S, np.zeros((T, T))) - expected)
    assert differences[0] == pytest.approx(differences[1], abs=1e-7)


def test_draws_of_a_scale_follow_their_density():
    """One component: the draws of l over many sweeps, H, s, G held, against the density by integration."""
    covariance = CovarianceModel(np.array([[2.0]]), False, full_block(1), InverseWishart(6.0, np.array([[9.0]])))
    prior, G, H, s = cholesky_prior(covariance), np.array([[2.0]]), np.array([[40.0]]), np.array([5.0])
    l = np.linspace(1e-3, 6, 200_001)  # noqa: E741  as in the text
    m = l / np.sqrt(2.0)
    log_density = 5.0 * (m - 1) - 20.0 * (m - 1) ** 2 - (6 + 2) * np.log(l) - 9.0 / (2 * l**2) + np.log(l)
    cumulative = np.cumsum(np.exp(log_density - log_density.max()))
    cumulative /= cumulative[-1]
    draws = []
    for number in range(6000):
        # From the same L each time, so the steps must have forgotten it: H and s are those at the L of each.
        at = 1.0
        for step in range(40):
            M, _ = draw_scaling(prior, H * at**2, (s + H[0] * (1 - at)) * at, G * at**2, 40 * number + step, 3, KEY)
            at *= M[0, 0]
        draws.append(abs(at) * np.sqrt(2.0))
    assert stats.kstest(draws, lambda x: np.interp(x, l, cumulative)).pvalue > 1e-3
    wrong = np.cumsum(np.exp(log_density - np.log(l) - (log_density - np.log(l)).max()))  # without the Jacobian
    assert stats.kstest(draws, lambda x: np.interp(x, l, wrong / wrong[-1])).pvalue < 1e-6


def test_L_stays_where_the_records_do_not_determine_it():
    covariance = CovarianceModel(np.eye(2), False, full_block(2))
    x = np.array([[1.0, 2.0, 3.0]])
    M, accepted = draw_scaling(cholesky_prior(covariance), x.T @ x, np.zeros(3), np.eye(2), 1, 0, KEY)
    assert not accepted and np.array_equal(M, np.eye(2))


def test_diagonal_matrices_stay_diagonal():
    example = models.example("bivariate_missing")
    model = with_diagonal_matrices(model_of(example))
    example = models.Example(
        example.name, example.design, [None if c is None else c.start for c in model.covariances], model.residual.start
    )
    engine = engine_for(example)
    matrices = CovarianceMatrices([None if g is None else g.copy() for g in example.G], example.R.copy())
    Interweaving(model, 2, engine, matrices, KEY)(1)
    assert matrices.G[2][0, 1] == matrices.G[2][1, 0] == 0.0
    assert np.all(np.diag(matrices.G[2]) != np.diag(example.G[2]))


def test_which_terms_are_interwoven():
    example = models.example("fixed_groups")
    model = model_of(example)
    assert terms_to_interweave(model) == terms_to_interweave(model, True) == (1,)  # only groups are set to 0
    assert terms_to_interweave(model, False) == ()
    held = example.design.terms[1].active.copy()
    held[3, 1] = False  # an animal
    terms = (example.design.terms[0], replace(example.design.terms[1], active=held))
    with_held = replace(model, design=replace(example.design, terms=terms))
    known = replace(model, covariances=(None, replace(model.covariances[1], fixed=True)))
    k = int(np.ceil((2 * MAX_NORMALS) ** 0.5))
    large = replace(model, covariances=(None, CovarianceModel(np.eye(k), False, full_block(k))))
    for other, reason in ((with_held, "set to 0"), (known, "fixed"), (large, f"{k * (k + 1) // 2} elements")):
        assert terms_to_interweave(other) == terms_to_interweave(
            other, True
        ) == () and reason in reason_not_interweaved(other, 1)
    assert reason_not_interweaved(model, 1) is None


def last_state(engine, model, sweeps=40):
    schedule = Schedule(0, sweeps, refresh_every=25, interweave=terms_to_interweave(model))
    result = sample_chain(model, engine, schedule, KEY)
    return [*engine.fetch(), *(v[-1] for v in random_draws(result)), result.draws["R"][-1]]


@pytest.mark.parametrize("name", ["direct_maternal", "fixed_groups", "random_regression"])
def test_serial_and_structured_engines_give_the_same_interwoven_chain(name):
    example = models.example(name)
    model, equations = model_of(example), equations_of(example)
    serial = last_state(SerialEngine(equations), model)
    for threads in (1, 2):
        for a, b in zip(last_state(StructuredEngine(equations, threads=threads), model), serial, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9 * np.abs(b).max())
