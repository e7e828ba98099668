"""The sampled score against the exact one in Monte Carlo errors, and the information against the exact one."""

import numpy as np
import pytest
from helpers.likelihoods import CLASSES, example_of, likelihood_of
from helpers.mixed_models import equations_of
from helpers.monte_carlo import compare
from helpers.mutants import mutant
from helpers.selection import first
from reference import models

from mmgibbs.machine.threads import Threads
from mmgibbs.reml.information import average_information, differentiate_elements, gradient
from mmgibbs.reml.monte_carlo import score

SAMPLES = 400


def can_draw(name):
    """Whether effects can be simulated; a user's matrix is known by its inverse alone."""
    example = example_of(name)
    return all(example.design.terms[i].relationship.can_draw for i, g in enumerate(example.G) if g is not None)


DRAWN = [CLASSES, "fixed_covariates", *(name for name in models.NAMES if can_draw(name) and name != "fixed_covariates")]


@pytest.fixture(autouse=True)
def exact_information(monkeypatch):
    monkeypatch.setattr(score, "TOLERANCE_OF_INFORMATION", 1e-5)


def sampled(example, n_elements, source=score, threads=1, samples=SAMPLES):
    equations = equations_of(example, "term")
    return source.SampledLikelihood(equations, samples, n_elements, 7, 1e-6, Threads(threads))


def scores_and_exact(name, source=score):
    """(samples, p) score of each sample, (p,) the exact one; the information by both."""
    example = example_of(name)
    likelihood, elements, start = likelihood_of(example)
    exact = likelihood.evaluate(start)
    point = sampled(example, len(elements), source).evaluate(start)
    observed = differentiate_elements(point.quadratic_forms(point.theta, point.e), elements)
    scores = observed - np.array([differentiate_elements(sample, elements) for sample in point.simulated_forms])
    np.testing.assert_allclose(gradient(point, elements), scores.mean(axis=0), rtol=1e-6, atol=1e-8)
    return scores, gradient(exact, elements), average_information(point, elements), average_information(exact, elements)


@pytest.mark.parametrize("name", first(4, DRAWN))
def test_the_mean_score_is_the_exact_one_and_so_is_the_information(name):
    scores, exact, information, exact_information = scores_and_exact(name)
    comparison = compare(scores, exact)
    assert comparison.agrees, comparison
    scale = np.abs(exact_information).max()
    np.testing.assert_allclose(information, exact_information, rtol=1e-6, atol=1e-7 * scale)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("G[i] = 0.5 * self.Ginv[i] @ S @ self.Ginv[i]", "G[i] = 0.6 * self.Ginv[i] @ S @ self.Ginv[i]"),
        ("R[c] += 0.5 * inverse @ E @ inverse", "R[c] += 0.6 * inverse @ E @ inverse"),
    ],
)
def test_a_wrong_score_is_seen(right, wrong):
    spoilt = mutant(score, right, wrong, compiled=False)
    scores, exact, _, _ = scores_and_exact(CLASSES, spoilt)
    assert not compare(scores, exact).agrees


def test_values_do_not_depend_on_threads_or_on_how_many_columns_are_solved_at_once(monkeypatch):
    example = example_of(CLASSES)
    _, elements, start = likelihood_of(example)
    found = []
    for threads, columns in ((1, 8), (2, 8), (1, 3)):
        monkeypatch.setattr(score, "COLUMNS_PER_THREAD", columns)
        point = sampled(example, len(elements), threads=threads, samples=20).evaluate(start)
        found.append((gradient(point, elements), average_information(point, elements)))
    for slopes, information in found[1:]:
        np.testing.assert_array_equal(slopes, found[0][0])
        np.testing.assert_array_equal(information, found[0][1])
