"""log p(y | psi) by one compiled pass, its derivatives, and theta given psi, against REML's and dense formulas."""

import numpy as np
import pytest
import scipy.linalg
from helpers.likelihoods import CLASSES, elsewhere, example_of, likelihood_of, parts
from helpers.mutants import mutant
from helpers.support import ROOT
from reference import dense, models

import mmgibbs.likelihood.integrated as module
import mmgibbs.likelihood.matrices as matrices
from mmgibbs.build.assemble import assemble
from mmgibbs.build.engine import joined_components
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.likelihood.coefficients import coefficients


def integrated(example, source=module):
    covariances, residual = parts(example)
    of_terms = [None if c is None else c.blocks for c in covariances]
    known = coefficients(example.design, of_terms, [m.blocks for m in residual.matrices], columns_alone=True)
    return source.IntegratedLikelihood(known)


def psi_of(variances):
    return np.concatenate([*[g.ravel() for g in variances.G if g is not None], variances.R.ravel()])


@pytest.mark.parametrize("name", [*models.NAMES, CLASSES])
def test_value_and_derivatives(name):
    example = example_of(name)
    own = integrated(example)
    likelihood, _, start = likelihood_of(example)
    differences = []
    for variances in (start, elsewhere(start)):
        point = likelihood.evaluate(variances)
        differences.append(own.evaluate(psi_of(variances)) - point.log_likelihood)
        G, R = own.gradient()
        for found, i in zip(G, own.matrices.random, strict=True):
            np.testing.assert_allclose(found, point.derivatives.G[i], rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(R, point.derivatives.R, rtol=1e-8, atol=1e-9)
    assert abs(differences[0] - differences[1]) < 1e-10


@pytest.mark.parametrize("name", ["bivariate_missing", "direct_maternal", "fixed_groups", "fixed_covariates"])
def test_draws_have_mean_and_covariance_of_theta(name):
    """theta is linear in its normals z: their images give the covariance matrix exactly."""
    example = models.example(name)
    own, truth = integrated(example), dense.build(example.design, example.G, example.R)
    own.evaluate(psi_of(likelihood_of(example)[2]))
    own.keep()
    n = example.design.n_equations
    mean = own.draw(np.zeros(n))
    np.testing.assert_allclose(mean, truth.solution, rtol=1e-8, atol=1e-9)
    root = np.array([own.draw(z) - mean for z in np.eye(n)]).T
    np.testing.assert_allclose(root @ root.T, truth.covariance, rtol=1e-8, atol=1e-9)


def test_no_likelihood_where_a_matrix_is_not_positive_definite():
    example = models.example("direct_maternal")
    own, start = integrated(example), psi_of(likelihood_of(example)[2])
    for broken in (0, -1):
        psi = start.copy()
        psi[broken] = -1.0
        assert own.evaluate(psi) == -np.inf
    assert np.isfinite(own.evaluate(start))


def furthest(source=module):
    """Residual variances down to 1e-40: the largest error of a finite log p, and the smallest R with a finite one.

    Exact: contrasts without fixed effects in the eigenvectors of their two covariance matrices, where every variance
    is d VA + R.
    """
    example = models.example("univariate_animal")
    own, design = integrated(example, source), example.design
    X, Z = (dense.incidence(term, 1)[:, 0] for term in design.terms)
    K = np.linalg.inv(dense.relationship_inverse(design.terms[1]))
    A = np.linalg.svd(X)[0][:, X.shape[1] :]
    d, U = scipy.linalg.eigh(A.T @ Z @ K @ Z.T @ A, A.T @ np.diag(1 / design.weight) @ A)
    d, contrasts = np.where(d > 1e-9 * d.max(), d, 0.0), U.T @ A.T @ design.y[:, 0]
    VA, errors, smallest, base = example.G[1][0, 0], [], np.inf, None
    for R in example.R[0, 0] * 10.0 ** -np.arange(0, 40, 0.25):
        variance = d * VA + R
        exact = -0.5 * (np.log(variance) + contrasts**2 / variance).sum()
        found = own.evaluate(np.array([VA, R]))
        if base is None:
            base = found - exact
        if np.isfinite(found):
            errors.append(abs(found - exact - base))
            smallest = R
    return max(errors), smallest / example.R[0, 0]


def test_no_likelihood_where_digits_are_lost():
    """A chain that came to such a place took rounding for a likelihood, and never left."""
    error, smallest = furthest()
    assert error < 0.05 and smallest < 1e-6


def jump(source):
    """Of configs/first.yaml, one record an animal: the largest change of a finite log p below a residual variance of
    4e-5, where it has come to its limit.
    """
    config = load_config(ROOT / "configs" / "first.yaml")
    model = assemble(config, prepare(config)).model
    own = source.IntegratedLikelihood(coefficients(model.design, *joined_components(model), columns_alone=True))
    values = np.array([own.evaluate(np.array([400.0, 400.0 * 10.0**-k])) for k in np.arange(7, 40, 0.05)])
    return np.abs(values[np.isfinite(values)] - values[0]).max()


@pytest.mark.slow
def test_rounding_taken_for_a_likelihood_is_seen():
    assert jump(module) < 0.5
    assert jump(mutant(module, "EPSILON * lost <= MAX_ROUNDING_ERROR", "EPSILON * lost <= np.inf")) > 1


MUTANTS = {
    "cross product with the wrong sign": (module, "values[below + i]) - square", "values[below + i]) + square"),
    "without log|C|": (module, "total += np.log(values[below + i]) -", "total += 0.0 -"),
    "without log|G|": (matrices, "total += matrices.levels[j] * _invert(", "total += 0.0 * _invert("),
    "without log|R|": (matrices, "total += matrices.records[p] * _invert(", "total += 0.0 * _invert("),
}


@pytest.mark.parametrize("where, right, wrong", MUTANTS.values(), ids=MUTANTS)
def test_a_likelihood_without_a_term_is_found_wrong(where, right, wrong):
    spoilt = mutant(where, right, wrong, compiled=False)
    if where is matrices:
        plain = mutant(module, "EPSILON * lost", "EPSILON * lost", compiled=False)
        plain.invert_matrices, spoilt = spoilt.invert_matrices, plain
    example = models.example("direct_maternal")
    own, (likelihood, _, start) = integrated(example, spoilt), likelihood_of(example)
    values = [own.evaluate(psi_of(v)) - likelihood.evaluate(v).log_likelihood for v in (start, elsewhere(start))]
    assert abs(values[0] - values[1]) > 0.1
