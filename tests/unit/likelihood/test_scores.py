"""The restricted likelihood by scores on common factors, against V written out in full."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from helpers.mutants import mutant
from reference import dense, models

import mmgibbs.likelihood.scores as module
from mmgibbs.equations.base import invert_terms
from mmgibbs.errors import ModelError
from mmgibbs.likelihood.choice import count_factors, restricted_likelihood
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.restricted import RestrictedLikelihood
from mmgibbs.models.covariance import CovarianceModel, diagonal_blocks, full_block, join_all
from mmgibbs.models.design import Design
from mmgibbs.models.residual import ResidualModel
from mmgibbs.models.structures.factor_analytic import FactorAnalytic
from mmgibbs.models.structures.loadings import lower_triangle
from mmgibbs.models.structures.reduced_rank import ReducedRank, factor_of_rank
from mmgibbs.models.terms import Related, Term
from mmgibbs.reml.elements import free_elements, starting_variances
from mmgibbs.reml.information import average_information, gradient
from mmgibbs.reml.structured import maximise_structured
from mmgibbs.reml.structured_elements import structured_elements
from mmgibbs.reml.units import model_units

CASES = {
    "direct_maternal": 1,
    "bivariate_missing": 1,
    "three_traits_maternal": 2,
    "random_regression": 1,
    "user_relationship": 1,
    "genomic_relationships": 1,
}
CASES = {name: rank for name, rank in CASES.items() if name in models.NAMES}


def example_of(name):
    """An example whose widest random term has a matrix of reduced rank."""
    example, rank = models.example(name), CASES[name]
    sizes = [0 if g is None else len(g) for g in example.G]
    i = int(np.argmax(sizes))
    if sizes[i] < 2:
        pytest.skip("no random term with several components")
    terms, G = list(example.design.terms), list(example.G)
    terms[i] = replace(terms[i], prior=Related(terms[i].relationship, rank))
    L = factor_of_rank(G[i], rank)
    G[i] = L @ L.T
    return replace(example, design=replace(example.design, terms=tuple(terms)), G=G), i


def predictions(design, i, G, R):
    """BLUP of term i, (q, k), and its PEV."""
    y, X, V = dense.linear_model(design, G, R)
    term = design.terms[i]
    K = np.kron(np.linalg.inv(dense.relationship_inverse(term)), G[i])
    ZK, P = dense.incidence(term, design.n_traits)[~np.isnan(design.y)] @ K, dense.projection(X, V)
    shape = term.n_levels, term.n_components
    return (ZK.T @ P @ y).reshape(shape), np.diag(K - ZK.T @ P @ ZK).reshape(shape)


def trials():
    """Lines, all related, in trials at four places, in the order 2 0 3 1, with unequal replicates and weights.

    Each record has one trait; two lines have no records, and line 3 none at the last place. Blocks are nested in
    places.
    """
    rng = np.random.default_rng(41)
    q, n = 9, 60
    K = models.covariance_of(rng, q)
    place = np.sort(np.concatenate([np.arange(4), rng.choice(4, n - 4, p=[0.4, 0.1, 0.3, 0.2])]))[::-1]
    line = rng.integers(0, q - 2, n)
    line[(line == 3) & (place == 1)] = 4
    line, block = line.astype(np.int32), rng.integers(0, 3, n).astype(np.int32)
    places = (2, 0, 3, 1)  # of the traits in the effects of lines
    dense_block = models.DenseBlock(np.arange(q, dtype=np.int32), models.symmetric(np.linalg.inv(K)))
    terms = [
        models.class_term("place", np.zeros(n), 1, range(4)),
        models.random_term("block", [models.Effect("", block, (0, 1, 2, 3))], models.Identity(3), 3),
        models.random_term(
            "line", [models.Effect("", line, places)], models.Genomic(dense_block, K.diagonal().copy(), {}), q
        ),
    ]
    L = np.array([[1.5, 0.0], [1.0, 0.8], [-0.7, 1.1], [1.2, -0.5]])
    G = [None, np.diag([0.5, 0.2, 0.8, 0.3]), L @ L.T + np.diag([0.6, 1.1, 0.3, 0.9])]
    R = np.diag([2.0, 1.0, 3.0, 1.5])
    design = models.with_records(rng, n, terms, G, R, np.eye(4, dtype=bool)[place], rng.uniform(0.5, 2.0, n))
    return models.Example("trials", design, G, R)


def parameters_of(example, i, likelihood, structure):
    covariances = [None if g is None else CovarianceModel(g, False, full_block(len(g))) for g in example.G]
    if example.name == "trials":
        covariances[1] = replace(covariances[1], blocks=diagonal_blocks(4))
    covariances[i] = replace(covariances[i], structure=structure)
    T = example.design.n_traits
    blocks = diagonal_blocks(T) if example.name == "trials" else full_block(T)
    residual = ResidualModel((CovarianceModel(example.R, False, blocks),))
    elements = free_elements(example.design, covariances, residual, model_units(likelihood))
    start = starting_variances(covariances, residual)
    return structured_elements(elements, covariances, start), start


def analysis_of(name, of=module):
    """(example, term, likelihood, parameters, start) of a reduced rank, or with specific effects: 'NAME, specific'."""
    if ", " not in name:
        example, i = example_of(name)
        structure = ReducedRank(len(example.G[i]), example.design.terms[i].n_scores, np.sqrt(np.diag(example.G[i])))
        likelihood = of.ScoresLikelihood(example.design, join_all(example.G))
        return example, i, likelihood, *parameters_of(example, i, likelihood, structure)
    name, specific = name.split(", ")
    if name == "trials":
        example, i, f = trials(), 2, 2
        blocks = [None, diagonal_blocks(4), full_block(4)]
    else:
        example, f = models.example(name), 1
        i = int(np.argmax([0 if g is None else len(g) for g in example.G]))
        blocks = join_all(example.G)
    k, sd = len(example.G[i]), np.sqrt(np.diag(example.G[i]))
    structure = FactorAnalytic(k, f, specific == "equal", sd, sd)
    likelihood = of.ScoresLikelihood(example.design, blocks, {i: f})
    return example, i, likelihood, *parameters_of(example, i, likelihood, structure)


ANALYSES = [*CASES, "trials, specific", "trials, equal", "bivariate_missing, specific", "random_regression, specific"]


@pytest.mark.parametrize("name", ANALYSES)
def test_against_dense_formulas(name):
    example, i, likelihood, parameters, start = analysis_of(name)
    for change in (0.0, 0.3):
        at = parameters.variances(parameters.phi + change * parameters.scale * parameters.free, start)
        point = likelihood.evaluate(at)
        expected = dense.restricted_log_likelihood(*dense.linear_model(example.design, at.G, at.R[0]))
        np.testing.assert_allclose(point.log_likelihood, expected, rtol=1e-9, atol=1e-8)
        theta, pev = predictions(example.design, i, at.G, at.R[0])
        np.testing.assert_allclose(point.solutions[i], theta, atol=1e-8)
        layout = likelihood.layout
        variance = np.zeros(layout.size)
        variance[layout.active] = point.inverse_diagonal
        np.testing.assert_allclose(layout.split(variance)[i], pev, atol=1e-8)
        column = np.eye(int(layout.active.sum()))
        np.testing.assert_allclose(np.diag(point.solve_equations(column)), point.inverse_diagonal, atol=1e-8)


def differences(likelihood, parameters, start):
    out = []
    for n, unit in enumerate(parameters.scale):
        step = np.zeros(len(parameters))
        step[n] = 1e-5 * unit
        up, down = (
            likelihood.evaluate(parameters.variances(parameters.phi + s * step, start)).log_likelihood for s in (1, -1)
        )
        out.append((up - down) / (2e-5 * unit))
    return np.array(out)


@pytest.mark.parametrize("name", ANALYSES)
def test_score_and_information_of_parameters(name):
    """By differences of the likelihood, and 1/2 y'P V_i P V_j P y with V_i by differences of V."""
    example, _, likelihood, parameters, start = analysis_of(name)
    at = parameters.variances(parameters.phi, start)
    point = likelihood.evaluate(at)
    J = parameters.jacobian(parameters.phi)
    scale = parameters.scale
    score = J.T @ gradient(point, parameters.elements)
    np.testing.assert_allclose(score * scale, differences(likelihood, parameters, start) * scale, rtol=1e-5, atol=2e-5)
    slopes = []
    for n, unit in enumerate(scale):
        step = np.zeros(len(parameters))
        step[n] = 1e-4 * unit
        up, down = (parameters.variances(parameters.phi + s * step, start) for s in (1, -1))
        above, below = (dense.linear_model(example.design, moved.G, moved.R[0])[2] for moved in (up, down))
        slopes.append((above - below) / 2e-4)
    y, X, V = dense.linear_model(example.design, at.G, at.R[0])
    expected = dense.information(dense.projection(X, V), y, slopes)
    J = J * scale
    information = J.T @ average_information(point, parameters.elements) @ J
    np.testing.assert_allclose(information, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def test_factors_of_related_lines_in_trials_take_scores():
    """As large a likelihood as by G^-1, and its maximum; where scores fill C more, G^-1 stays."""
    example, i, _, parameters, start = analysis_of("trials, specific")
    structure = parameters.structures[[b.term for b in parameters.elements.blocks].index(i)]
    covariances = [None, CovarianceModel(example.G[1], False, diagonal_blocks(4)), None]
    covariances[2] = CovarianceModel(example.G[2], False, full_block(4), structure=replace(structure, factors=1))
    residual = ResidualModel((CovarianceModel(example.R, False, diagonal_blocks(4)),))
    chosen = restricted_likelihood(example.design, covariances, residual)
    assert isinstance(chosen, module.ScoresLikelihood) and chosen.sizes[i] == 5
    assert set(chosen.symbolic.order[-9:]) == set(chosen.equations[i][:, 0])  # scores are eliminated last
    general = RestrictedLikelihood(example.design, [None, diagonal_blocks(4), full_block(4)], [diagonal_blocks(4)])
    found = [
        maximise_structured(form, parameters_of(example, i, form, replace(structure, factors=1))[0], start, 1e-7, 200)
        for form in (chosen, general)
    ]
    assert all(f.converged for f in found)
    assert found[0].point.log_likelihood == pytest.approx(found[1].point.log_likelihood, abs=1e-9)
    covariances[2] = replace(covariances[2], structure=replace(structure, factors=3))
    assert isinstance(restricted_likelihood(example.design, covariances, residual), RestrictedLikelihood)


def test_a_small_factor_stays_where_the_likelihood_falls_as_it_grows():
    parameters = analysis_of("bivariate_missing")[3]
    ((_, _, places),) = parameters.list_factors()
    for size, slope, stays in ((1e-3, -1.0, True), (1e-3, 1.0, False), (0.1, -1.0, False)):
        phi, score = parameters.phi.copy(), np.zeros(len(parameters))
        phi[places], score[places] = size * parameters.scale[places], slope
        vanishing = np.flatnonzero(parameters.find_vanishing(phi, score))
        np.testing.assert_array_equal(vanishing, places if stays else [])


MUTANTS = {
    "a trace of C^-1 is left out": ("M[:, j] -= np.bincount", "M[:, j] -= 0 * np.bincount"),
    "L'M counts twice": ("- B @ ((middle + middle.T) / 2) @ B.T", "- 0 * B @ middle @ B.T"),
    "specific variances have no slope of their own": ("(D + (Q * c) @ Q)", "(D + 0 * (Q * c) @ Q)"),
    "a log-determinant is left out": ("self.log_determinants +=", "self.log_determinants += 0 *"),
}


@pytest.mark.parametrize("right, wrong", MUTANTS.values(), ids=MUTANTS)
def test_a_wrong_score_is_noticed(right, wrong):
    _, _, likelihood, parameters, start = analysis_of("trials, specific", mutant(module, right, wrong))
    point = likelihood.evaluate(parameters.variances(parameters.phi, start))
    score = parameters.jacobian(parameters.phi).T @ gradient(point, parameters.elements)
    assert np.abs((score - differences(likelihood, parameters, start)) * parameters.scale).max() > 0.01


def test_other_uses_of_an_inverse_refuse():
    example, _ = example_of("bivariate_missing")
    with pytest.raises(ModelError, match="reduced_rank, whose matrix has no inverse"):
        invert_terms(example.design, example.G)
    with pytest.raises(ModelError, match="reduced_rank, whose matrix has no inverse"):
        RestrictedLikelihood(example.design, [None] * len(example.G), [])


def test_the_nearest_matrix_of_the_rank():
    L = np.array([[1.0, 0.5], [0.3, -1.0], [0.7, 0.2], [0.1, 0.9]])
    G = L @ L.T
    found = factor_of_rank(G, 2)
    np.testing.assert_allclose(found @ found.T, G, atol=1e-12)
    turned = lower_triangle(L)
    assert turned[0, 1] == 0
    np.testing.assert_allclose(turned @ turned.T, G, atol=1e-12)
    structure = ReducedRank(4, 2, np.ones(4))
    start = structure.start(np.eye(4))
    np.testing.assert_allclose(np.diag(structure.matrix(start)), 1.0)
    assert np.linalg.matrix_rank(structure.matrix(start)) == 2


@pytest.mark.parametrize("is_spoilt", [False, True])
def test_covariates_that_cancel_keep_their_places(is_spoilt):
    """One day has the covariate -1 throughout, so that intercept and slope add to 0 in a score with loadings of 1."""
    rng = np.random.default_rng(8)
    n, q = 30, 7
    day, animal = np.arange(n) % 5, rng.integers(0, q, n).astype(np.int32)
    x = np.column_stack([np.ones(n), np.where(day == 2, -1.0, rng.normal(size=n))])
    L = np.array([[1.0], [0.6]])
    terms = [
        models.class_term("day", day, 5, [0]),
        Term(
            "animal",
            models.Levels((models.Effect("", animal, (0,), x),), q),
            Related(models.user_inverse(np.diag(rng.uniform(1.0, 2.0, q))), 1),
        ),
    ]
    G, R = [None, L @ L.T], np.array([[1.0]])
    y = (x * 0.5).sum(axis=1) + rng.normal(size=n)
    ones = np.ones((n, 1), bool)
    design = Design(("y",), y[:, None], np.zeros(n, np.int32), ones[:1], np.ones(n), tuple(terms))
    of = mutant(module, "fill_ones(self.W_of_theta) @", "self.W_of_theta @") if is_spoilt else module
    point = of.ScoresLikelihood(design, join_all(G)).evaluate(Variances(G, R[None]))
    expected = dense.restricted_log_likelihood(*dense.linear_model(design, G, R))
    assert (point.log_likelihood == pytest.approx(expected, abs=1e-9)) != is_spoilt


def test_estimates_can_be_sent_to_another_process():
    """Those of matrices with factors, and of others."""
    _, _, _, parameters, start = analysis_of("trials, specific")
    for variances in (start, parameters.variances(parameters.phi, start)):
        again = pickle.loads(pickle.dumps(variances, 5))
        np.testing.assert_array_equal(again.G[2], variances.G[2])
        assert (again.factors is None) == (variances.factors is None)


class PartlyDense(models.Genomic):
    dense = models.DenseBlock(np.arange(5, dtype=np.int32), np.eye(5))


class FreeCorrelation(models.Identity):
    has_free_parameters = True


@pytest.mark.parametrize("change", ["traits together", "single-step", "free correlation", "regressions", "fixed"])
def test_where_scores_would_fill_more_there_are_none(change):
    example = trials()
    design, line = example.design, example.design.terms[2]
    structure = FactorAnalytic(4, 1, False, np.ones(4), np.ones(4))
    blocks = [None, diagonal_blocks(4), full_block(4)]
    made = [
        None if b is None else CovarianceModel(example.G[i], False, b, structure=structure if i == 2 else None)
        for i, b in enumerate(blocks)
    ]
    assert count_factors(design, made) == {2: 1}
    if change == "traits together":
        design = replace(design, patterns=np.ones_like(design.patterns))
    elif change == "single-step":
        K = line.relationship
        part = replace(line, prior=Related(PartlyDense(K.block, K.diagonal_of_K, K.made)))
        design = replace(design, terms=(*design.terms[:2], part))
    elif change == "free correlation":
        free = replace(design.terms[1], prior=Related(FreeCorrelation(3)))
        design = replace(design, terms=(design.terms[0], free, line))
    elif change == "regressions":
        x = np.ones((design.n_records, 4))
        one = models.Effect("", line.effects[0].level, (0,), x)
        design = replace(
            design, terms=(*design.terms[:2], replace(line, incidence=models.Levels((one,), line.n_levels)))
        )
    else:
        made[2] = replace(made[2], fixed=True)
    assert count_factors(design, made) == {}
