"""The restricted likelihood against dense formulas, its gradient against differences, for every kind of model."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.mutants import mutant
from reference import dense, models

import mmgibbs.likelihood.restricted as module
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.models.covariance import CovarianceModel, blocks_recorded_together, full_block
from mmgibbs.models.residual import ResidualModel, fold_classes
from mmgibbs.reml.elements import free_elements, starting_variances
from mmgibbs.reml.information import average_information, gradient
from mmgibbs.reml.units import model_units

CLASSES = "two_residual_classes"


def with_classes():
    """Two traits with missing records, a residual covariance matrix for every second record."""
    example = models.example("bivariate_missing")
    design = example.design
    of_record = np.arange(design.n_records) % 2
    pattern, patterns, classes = fold_classes(design.pattern, design.patterns, of_record, 2)
    design = replace(
        design, pattern=pattern, patterns=patterns, pattern_class=classes, residual_classes=("indoor", "outdoor")
    )
    return replace(example, name=CLASSES, design=design, R=np.stack([example.R, 2.0 * np.diag(np.diag(example.R))]))


def example_of(name):
    return with_classes() if name == CLASSES else models.example(name)


def parts(example):
    """(covariance models, residual model) in which everything is estimated."""
    design = example.design
    covariances = [None if g is None else CovarianceModel(g, False, full_block(len(g))) for g in example.G]
    R = np.asarray(example.R) if np.ndim(example.R) == 3 else np.asarray(example.R)[None]
    matrices = tuple(
        CovarianceModel(own, False, blocks_recorded_together(design.patterns[design.class_of_pattern == c]))
        for c, own in enumerate(R)
    )
    return covariances, ResidualModel(matrices, design.residual_classes)


def likelihood_of(example, source=module):
    covariances, residual = parts(example)
    of_terms = [None if c is None else c.blocks for c in covariances]
    likelihood = source.RestrictedLikelihood(example.design, of_terms, [m.blocks for m in residual.matrices])
    elements = free_elements(example.design, covariances, residual, model_units(likelihood))
    return likelihood, elements, starting_variances(covariances, residual)


def elsewhere(variances):
    """Other variances, whose covariances are those of other correlations."""
    G = [None if g is None else 1.3 * g + 0.5 * np.diag(np.diag(g)) for g in variances.G]
    return Variances(G, 0.8 * variances.R)


def dense_value(example, variances):
    R = variances.R if example.design.residual_classes else variances.R[0]
    return dense.log_marginal_likelihood(example.design, variances.G, R)


@pytest.mark.parametrize("name", [*models.NAMES, CLASSES])
def test_against_dense_formulas(name):
    example = example_of(name)
    likelihood, _, start = likelihood_of(example)
    without = likelihood.freedom * np.log(2 * np.pi) / 2
    for variances in (start, elsewhere(start)):
        found = likelihood.evaluate(variances).log_likelihood + without
        np.testing.assert_allclose(found, dense_value(example, variances), rtol=1e-11)


def test_against_the_density_of_error_contrasts():
    """log N(A'y; 0, A'VA) with A orthonormal and A'X = 0, and log|X'X|, which REML leaves out or not."""
    example = models.example("univariate_animal")
    likelihood, _, start = likelihood_of(example)
    design = example.design
    X, Z = (dense.incidence(term, 1)[:, 0] for term in design.terms)
    K = np.linalg.inv(dense.relationship_inverse(design.terms[1]))
    V = Z @ K @ Z.T * example.G[1][0, 0] + np.diag(example.R[0, 0] / design.weight)
    A = np.linalg.svd(X)[0][:, X.shape[1] :]
    contrasts, covariance = A.T @ design.y[:, 0], A.T @ V @ A
    density = -0.5 * (np.linalg.slogdet(2 * np.pi * covariance)[1] + contrasts @ np.linalg.solve(covariance, contrasts))
    expected = density - 0.5 * np.linalg.slogdet(X.T @ X)[1]
    np.testing.assert_allclose(likelihood.evaluate(start).log_likelihood, expected, rtol=1e-12)


def differences(likelihood, elements, start):
    """The gradient by central differences."""
    at, out = elements.vector(start), []
    for n, unit in enumerate(elements.scale):
        step = np.zeros(len(elements))
        step[n] = 2e-5 * unit
        up, down = (likelihood.evaluate(elements.variances(at + s * step, start)).log_likelihood for s in (1, -1))
        out.append((up - down) / 4e-5)
    return np.array(out)


@pytest.mark.parametrize("name", [*models.NAMES, CLASSES])
def test_gradient_against_differences(name):
    likelihood, elements, start = likelihood_of(example_of(name))
    found = gradient(likelihood.evaluate(start), elements) * elements.scale
    np.testing.assert_allclose(found, differences(likelihood, elements, start), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", ["univariate_animal", "direct_maternal", "random_regression", CLASSES])
def test_average_information_against_dense_formulas(name):
    """1/2 y'P V_i P V_j P y with V_i by differences of V, which is linear in its elements."""
    example = example_of(name)
    likelihood, elements, start = likelihood_of(example)
    y, observed = example.design.y, ~np.isnan(example.design.y)
    y = y[observed]

    def covariance(variances):
        truth = dense.build(example.design, variances.G, variances.R if example.R.ndim == 3 else variances.R[0])
        V = np.zeros((y.size, y.size))
        random = [i for i, (t, _, _) in enumerate(truth.labels) if example.design.terms[t].kind == "random"]
        W = truth.W[observed]
        V += W[:, random] @ np.linalg.inv(truth.prior[np.ix_(random, random)]) @ W[:, random].T
        first = 0
        for precision, seen in zip(truth.record_precision, observed, strict=True):
            m = seen.sum()
            V[first : first + m, first : first + m] += np.linalg.inv(precision[np.ix_(seen, seen)])
            first += m
        fixed = np.setdiff1d(np.arange(len(truth.labels)), random)
        return V, W[:, fixed]

    V, X = covariance(start)
    Vinv = np.linalg.inv(V)
    P = Vinv - Vinv @ X @ np.linalg.solve(X.T @ Vinv @ X, X.T @ Vinv)
    F = []
    for n, unit in enumerate(elements.scale):
        step = np.zeros(len(elements))
        step[n] = 1e-3 * unit
        up, down = (covariance(elements.variances(elements.vector(start) + s * step, start))[0] for s in (1, -1))
        F.append((up - down) @ P @ y / (2e-3 * unit))
    expected = 0.5 * np.array(F) @ P @ np.array(F).T
    found = average_information(likelihood.evaluate(start), elements)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


MUTANTS = {
    "without log|G| and log|R|": ("self.log_determinants + self.factor", "0.0 * self.log_determinants + self.factor"),
    "without log|C|": ("self.log_determinants + self.factor.log_determinant + self", "self.log_determinants + self"),
}


@pytest.mark.parametrize("right, wrong", MUTANTS.values(), ids=MUTANTS)
def test_a_likelihood_without_a_term_is_found_wrong(right, wrong):
    example = models.example("direct_maternal")
    likelihood, elements, start = likelihood_of(example, mutant(module, right, wrong))
    values = [likelihood.evaluate(v).log_likelihood - dense_value(example, v) for v in (start, elsewhere(start))]
    assert abs(values[0] - values[1]) > 0.1
    found = gradient(likelihood.evaluate(start), elements) * elements.scale
    assert np.abs(found - differences(likelihood, elements, start)).max() > 0.1
