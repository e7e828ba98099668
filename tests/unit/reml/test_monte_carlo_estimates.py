"""REML by Monte Carlo against exact REML, in its own Monte Carlo errors, and whether those are the right ones."""

from functools import cache

import numpy as np
import pytest
from helpers.likelihoods import parts
from helpers.mixed_models import equations_of
from helpers.mutants import mutant
from reference import models
from reference.models import Example
from scipy import stats

from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.residual import ResidualModel
from mmgibbs.models.terms import Effect
from mmgibbs.reml.estimate import estimate
from mmgibbs.reml.monte_carlo import estimate as estimate_module
from mmgibbs.reml.monte_carlo import maximise, score
from mmgibbs.reml.monte_carlo.estimate import SampledSettings, estimate_sampled
from mmgibbs.simulation.simulate import beef_design, simulate_beef

FALSE_ALARM = 1e-3
SAMPLES = 60


@cache
def beef():
    """Three traits of 1,000 animals, direct and maternal effects, and exact REML."""
    simulated = simulate_beef(1000, 5)
    design = beef_design(simulated)
    covariances = [
        None if g is None else CovarianceModel(np.asarray(g, float), False, full_block(len(g))) for g in simulated.G
    ]
    residual = ResidualModel((CovarianceModel(np.asarray(simulated.R, float), False, full_block(3)),))
    exact = estimate(design, covariances, residual, 1e-6, 100)
    assert exact.facts["converged"] and not exact.on_boundary
    return design, covariances, residual, exact


def sampled(model, samples, seed=5, tolerance=1e-2):
    design, covariances, residual = model
    equations = equations_of(design, "term")
    found = estimate_sampled(equations, covariances, residual, SampledSettings(samples, seed, 1, tolerance, 60))
    assert found.facts["converged"], found.facts
    return found


def squared_distance(found, exact):
    """In Monte Carlo errors: chi-square with p degrees of freedom."""
    d = (found.vector - exact.vector) / found.elements.scale
    covariance = found.monte_carlo / found.elements.scale[:, None] / found.elements.scale
    return float(d @ np.linalg.solve(covariance, d))


def largest_distance(exact):
    """Of Hotelling's T^2, as the covariance is an estimate from the samples."""
    p = len(exact.vector)
    return stats.f.isf(FALSE_ALARM, p, SAMPLES - p) * p * (SAMPLES - 1) / (SAMPLES - p)


def test_the_estimates_of_a_maternal_model_are_those_of_exact_reml():
    *model, exact = beef()
    found = sampled(model, SAMPLES)
    assert squared_distance(found, exact) < largest_distance(exact)
    errors = np.sqrt(np.diag(found.covariance))
    # one sample has the expected information as its variance: a Monte Carlo error is a standard error / sqrt(samples)
    shares = np.sqrt(np.diag(found.monte_carlo)) / errors
    np.testing.assert_allclose(shares * np.sqrt(SAMPLES), 1.0, atol=0.4)


@pytest.mark.slow
def test_a_trace_that_is_four_percent_too_large_is_seen(monkeypatch):
    wrong = mutant(score, "else a - b / m for", "else a - 1.04 * b / m for")
    monkeypatch.setattr(estimate_module, "SampledLikelihood", wrong.SampledLikelihood)
    *model, exact = beef()
    found = sampled(model, SAMPLES)
    assert squared_distance(found, exact) > largest_distance(exact)


def sires():
    """120 unrelated sires with five records each, of one trait, and exact REML."""
    rng = np.random.default_rng(8)
    sire = np.repeat(np.arange(120, dtype=np.int32), 5)
    terms = [
        models.class_term("herd", np.arange(600) % 6, 6, [0]),
        models.random_term("sire", [Effect("", sire, (0,))], Identity(120), 120),
    ]
    G, R = [None, np.array([[2.0]])], np.array([[6.0]])
    example = Example("sires", models.with_records(rng, 600, terms, G, R), G, R)
    model = (example.design, *parts(example))
    return (*model, estimate(*model, 1e-8, 100))


def scaled_distances(model, exact, seeds=range(20)):
    """(seeds, p) uncorrelated differences from exact REML, each in its Monte Carlo error."""
    out = []
    for seed in seeds:
        found = sampled(model, 60, seed)
        root = np.linalg.cholesky(found.monte_carlo)
        out.append(np.linalg.solve(root, found.vector - exact.vector))
    return np.array(out)


def agrees(z, samples=60):
    """Whether mean z^2 is in its central band: z has t distributions, as Monte Carlo errors are estimates."""
    low, high = (stats.chi2.ppf(p, z.size) / z.size for p in (FALSE_ALARM / 2, 1 - FALSE_ALARM / 2))
    return low < np.mean(z**2) * (samples - 3) / (samples - 1) < high


@pytest.mark.slow
def test_monte_carlo_errors_are_as_large_as_the_errors_over_twenty_seeds(monkeypatch):
    *model, exact = sires()
    z = scaled_distances(model, exact)
    assert agrees(z), np.mean(z**2)
    assert np.all(np.abs(z.mean(axis=0)) < stats.norm.isf(FALSE_ALARM / 4) / np.sqrt(len(z)))
    wrong = mutant(maximise, "@ inverse / len(scores)", "@ inverse / (2 * len(scores))", compiled=False)
    monkeypatch.setattr(estimate_module, "maximise_sampled", wrong.maximise_sampled)
    assert not agrees(scaled_distances(model, exact))
