"""Records drawn anew from given liabilities have the shares that the normal distribution gives them."""

import numpy as np
import pytest
from helpers.mutants import mutant
from scipy import stats

from mmgibbs.models.families import Categories, Count
from mmgibbs.posterior import predictive

ETA = np.array([-1.0, -0.2, 0.4, 1.5, 0.0])
V = np.array([1.0, 1.0, 2.0, 1.0, 0.5])
CUTS = np.array([-np.inf, 0.0, 0.9, np.inf])
CLASS = np.array([0, 0, 1, 1, 1])


def classes(labels=("low", "middle", "high"), of=predictive):
    observed = np.array([0, 2, 1, 1, 0])
    exposure = np.array([1.0, 2.0, 0.5, 1.0, 1.0])
    response = Categories(0, labels, observed) if labels else Count(0, observed.astype(float), exposure)
    return of.PredictedClasses(0, "predicted.0", "herd", ("a", "b"), np.arange(5), CLASS, response)


def z_of(of, exact, n=4000):
    """Deviations of the means over n draws from what is exact, in their standard errors."""
    rng = np.random.default_rng(5)
    draws = np.array([of.predicted(ETA, V, CUTS, rng) for _ in range(n)])
    return (draws.mean(0) - exact) / (draws.std(0, ddof=1) / np.sqrt(n))


def exact_shares():
    below = stats.norm.cdf((CUTS - ETA[:, None]) / np.sqrt(V)[:, None])
    p = np.diff(below, axis=1)
    return np.stack([p[c == CLASS].mean(0) for c in (0, 1)])


def test_shares():
    assert np.abs(z_of(classes(), exact_shares())).max() < 4


def test_a_forgotten_residual_is_noticed():
    spoilt = mutant(predictive, "np.sqrt(V) * rng", "0.5 * np.sqrt(V) * rng")
    assert np.abs(z_of(classes(of=spoilt), exact_shares())).max() > 8


def test_counts():
    rate = classes(labels=()).response.exposure * np.exp(ETA + V / 2)
    exact = np.array([rate[c == CLASS].mean() for c in (0, 1)])[:, None]
    assert np.abs(z_of(classes(labels=()), exact)).max() < 4


def test_observed():
    of = classes()
    np.testing.assert_allclose(of.shares(of.observed), [[0.5, 0, 0.5], [1 / 3, 2 / 3, 0]])
    assert classes(labels=()).shares(of.observed.astype(float)).ravel() == pytest.approx([1.0, 2 / 3])
