"""Inverse Gaussian draws with means from 1e-3 to infinity."""

import numpy as np
import pytest
from helpers.draw_batches import numba_draws, twin_draws
from helpers.goodness import agree, moment_z, transform_z
from scipy import stats

N = 40_000
PARAMETERS = [
    (1e-3, 1.0),
    (0.1, 20.0),
    (1.0, 100.0),
    (1.0, 1.0),
    (100.0, 1.0),
    (1e5, 3.0),
    (1e8, 1.0),
    (1e8, 1e8),
    (1.0, 1e-6),
]


def comparisons(draws, parameters):
    """Moments of X where mean <= shape; of 1/X everywhere: 1/mean + 1/shape, variance 1/(mean shape) + 2/shape^2."""
    results = []
    for i, (mean, shape) in enumerate(parameters):
        x = draws("inverse_gaussian", N, mean, shape, sweep=80 + i)
        results.append(transform_z(stats.invgauss(mean / shape, scale=shape).cdf(x)))
        results.append(moment_z(1 / x, 1 / mean + 1 / shape, 1 / (mean * shape) + 2 / shape**2))
        if mean <= shape:
            results.append(moment_z(x, mean, mean**3 / shape))
    rng = np.random.default_rng(3)
    mean, shape = 10.0 ** rng.uniform(-3, 8, N), 10.0 ** rng.uniform(-2, 2, N)
    x = draws("inverse_gaussian", N, mean, shape, sweep=95)
    return [*results, transform_z(stats.invgauss(mean / shape, scale=shape).cdf(x))]


def test_inverse_gaussian():
    assert agree(comparisons(numba_draws, PARAMETERS))


def test_wrong_twin_is_noticed(mutants):
    assert not agree(comparisons(lambda *a, **k: twin_draws(mutants, *a, **k), [(1.0, 1.0), (1.0, 100.0)]))


@pytest.mark.parametrize("mean", [np.inf, 1e300])
def test_infinite_mean_is_shape_over_chi_square(mean):
    x = numba_draws("inverse_gaussian", N, mean, 2.0, sweep=96)
    assert agree([transform_z(stats.chi2(1).sf(2.0 / x))])
