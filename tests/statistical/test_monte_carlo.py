"""The ruler itself: how often it is wrong when all is well, and whether it sees a small error."""

import numpy as np
import pytest
from helpers.monte_carlo import batches, compare, mean_and_variance, with_squares


def autocorrelated(rng, n, m, rho=0.8, shared=0.0):
    """(n, m) AR(1) draws, mean 0, variance 1; each pair of columns has the correlation `shared`."""
    z = np.sqrt(1 - shared) * rng.standard_normal((n, m)) + np.sqrt(shared) * rng.standard_normal((n, 1))
    x = np.empty((n, m))
    x[0] = z[0]
    for t in range(1, n):
        x[t] = rho * x[t - 1] + np.sqrt(1 - rho**2) * z[t]
    return x


@pytest.mark.parametrize("shared", [0.0, 0.7])
def test_exact_draws_agree_and_a_shift_does_not(shared):
    rng = np.random.default_rng(31)
    alarms = 0
    for _ in range(20):
        draws = autocorrelated(rng, 10_000, 6, shared=shared)
        alarms += not compare(batches(with_squares(draws, 0.0)), mean_and_variance(np.zeros(6), np.ones(6))).agrees
    assert alarms == 0
    # Nine draws are worth one: the standard error of a mean is 0.03.
    assert not compare(batches(draws), [0.0] * 5 + [0.25]).agrees  # one wrong number
    assert not compare(batches(with_squares(draws, 0.0)), mean_and_variance(np.zeros(6), np.full(6, 1.25))).agrees


def test_many_small_errors_are_seen_by_the_mean_square_alone():
    draws = np.random.default_rng(32).standard_normal((10_000, 300))
    comparison = compare(batches(draws), np.full(300, 0.008))  # 0.8 standard errors each
    assert comparison.largest < comparison.limit and not comparison.agrees
