"""The restricted likelihood against dense formulas, its gradient against differences, for every kind of model."""

import numpy as np
import pytest
from helpers.likelihoods import CLASSES, elsewhere, example_of, likelihood_of
from helpers.mutants import mutant
from reference import dense, models

import mmgibbs.likelihood.sparse as sparse
from mmgibbs.reml.information import average_information, gradient


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
    model = lambda at: dense.linear_model(example.design, at.G, at.R if len(at.R) > 1 else at.R[0])
    y, X, V = model(start)
    slopes = []
    for n, unit in enumerate(elements.scale):
        step = np.zeros(len(elements))
        step[n] = 1e-3 * unit
        up, down = (model(elements.variances(elements.vector(start) + s * step, start))[2] for s in (1, -1))
        slopes.append((up - down) / (2e-3 * unit))
    expected = dense.information(dense.projection(X, V), y, slopes)
    found = average_information(likelihood.evaluate(start), elements)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


MUTANTS = {
    "without log|G| and log|R|": ("self.log_determinants + self.factor", "0.0 * self.log_determinants + self.factor"),
    "without log|C|": ("self.log_determinants + self.factor.log_determinant + self", "self.log_determinants + self"),
}


@pytest.mark.parametrize("right, wrong", MUTANTS.values(), ids=MUTANTS)
def test_a_likelihood_without_a_term_is_found_wrong(right, wrong, monkeypatch):
    example = models.example("direct_maternal")
    monkeypatch.setattr(sparse.SparsePoint, "log_likelihood", mutant(sparse, right, wrong).SparsePoint.log_likelihood)
    likelihood, elements, start = likelihood_of(example)
    values = [likelihood.evaluate(v).log_likelihood - dense_value(example, v) for v in (start, elsewhere(start))]
    assert abs(values[0] - values[1]) > 0.1
    found = gradient(likelihood.evaluate(start), elements) * elements.scale
    assert np.abs(found - differences(likelihood, elements, start)).max() > 0.1
