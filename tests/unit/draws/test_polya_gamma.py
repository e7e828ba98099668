"""PG(1, z) against the series of its distribution function, sums against moments and inverted transforms."""

import numpy as np
import pytest
from helpers.draw_batches import numba_draws, twin_draws
from helpers.goodness import agree, moment_z, transform_z

from mmgibbs.draws.polya_gamma import polya_gamma_mean, polya_gamma_variance

N = 40_000


def moments(h, z):
    """Mean h tanh(z/2)/(2z) and variance h (sinh z - z)/(4 z^3 cosh(z/2)^2)."""
    if z == 0:
        return h / 4, h / 24
    z = np.longdouble(z)
    return float(h * np.tanh(z / 2) / (2 * z)), float(h * (np.sinh(z) - z) / (4 * z**3 * np.cosh(z / 2) ** 2))


def share_above_1(x, z):
    """P(4 PG(1, z) > y) = cosh(c) sum_n (-1)^n pi (n + 1/2) exp(-r_n y)/r_n, r_n = ((pi (n + 1/2))^2 + c^2)/2."""
    c = z / 2
    half = np.arange(60)[:, None] + 0.5
    rate = 0.5 * (np.pi * half) ** 2 + 0.5 * c**2
    sign = (-1.0) ** np.arange(60)[:, None]
    return np.clip(
        np.sum(sign * np.pi * half / rate * np.exp(np.logaddexp(c, -c) - np.log(2) - 4 * rate * x), axis=0), 0, 1
    )


def distribution_function(h, z):
    """F of PG(h, z) on a grid, by Gil-Pelaez inversion of cosh(z/2)^h / cosh(sqrt(z^2/4 - i t/2))^h."""
    mean, variance = moments(h, z)
    sd = np.sqrt(variance)
    x = np.maximum(np.linspace(mean - 8 * sd, mean + 12 * sd, 801), 0)
    t = (np.arange(600) + 0.5) * (2 * np.pi / (40 * sd))  # alias-free over 40 standard deviations
    root = np.sqrt(z * z / 4 - 0.5j * t)
    log_cosh = root + np.log1p(np.exp(-2 * root))
    log_phi = h * (z / 2 + np.log1p(np.exp(-z)) - log_cosh)
    integrand = np.exp(log_phi)[None, :] * np.exp(-1j * np.outer(x, t))
    f = 0.5 - np.sum(integrand.imag / t, axis=1) * (t[1] - t[0]) / np.pi
    return lambda values: np.clip(np.interp(values, x, f), 0, 1)


TILTS = [0.0, 0.1, 1.0, -2.0, 2.79, 2.81, 4.0, 10.0, 50.0]
SUMS = [
    (1, 0.0),
    (2, 1.0),
    (7, 50.0),
    (16, 3.0),
    (17, 0.0),
    (17, 10.0),
    (50, 20.0),
    (170, 1.0),
    (171, 5.0),
    (500, 0.0),
    (500, 50.0),
]


def one(draws, tilts):
    results = []
    for i, z in enumerate(tilts):
        x = draws("polya_gamma_1", N, z, sweep=100 + i)
        results += [transform_z(share_above_1(x, abs(z))), moment_z(x, *moments(1, abs(z)))]
    z = np.random.default_rng(4).uniform(0, 12, N)
    return [*results, transform_z(share_above_1(draws("polya_gamma_1", N, z, sweep=120), z))]


def sums(draws, pairs):
    results = []
    for i, (h, z) in enumerate(pairs):
        x = draws("polya_gamma", 20_000, float(h), z, sweep=130 + i)
        results += [transform_z(distribution_function(h, z)(x)), moment_z(x, *moments(h, z))]
    return results


def test_polya_gamma_1():
    assert agree(one(numba_draws, TILTS))


def test_polya_gamma():
    assert agree(sums(numba_draws, SUMS))


def test_wrong_twin_is_noticed(mutants):
    assert not agree(one(lambda *a, **k: twin_draws(mutants, *a, **k), [0.1, 1.0]))
    assert not agree(sums(lambda *a, **k: twin_draws(mutants, *a, **k), [(50, 20.0), (170, 1.0)]))


@pytest.mark.parametrize("z", [1e-8, 0.01, 0.3, 0.4999, 0.5001, 2.0, -30.0, 300.0])
def test_moment_functions(z):
    size = np.longdouble(abs(z))
    mean, variance = moments(3, abs(z))
    if abs(z) < 0.4:  # sinh z - z cancels: its series instead
        series = sum(size ** (2 * k) / np.prod(np.arange(1, 2 * k + 4, dtype=np.longdouble)) for k in range(12))
        variance = float(3 * series / (4 * np.cosh(size / 2) ** 2))
    np.testing.assert_allclose(polya_gamma_mean(3.0, z), mean, rtol=1e-14)
    np.testing.assert_allclose(polya_gamma_variance(3.0, z), variance, rtol=1e-11)


def test_ends():
    np.testing.assert_array_equal(numba_draws("polya_gamma_1", 3, [np.inf, -np.inf, np.nan]), [0.0, 0.0, np.nan])
    h, z = np.array([3.0, 30.0, 3.0, 30.0, -1.0, 0.0]), np.array([np.nan, np.nan, np.inf, -np.inf, 1.0, 1.0])
    np.testing.assert_array_equal(numba_draws("polya_gamma", 6, h, z), [np.nan, np.nan, 0.0, 0.0, np.nan, 0.0])
    one = numba_draws("polya_gamma_1", 9, 2.0)
    np.testing.assert_array_equal(numba_draws("polya_gamma_1", 9, -2.0), one)
    np.testing.assert_array_equal(numba_draws("polya_gamma", 9, 1.0, 2.0), one)
    h, z = np.repeat([3.0, 30.0], 4), np.tile([1e20, 1e39, 1e60, 1e300], 2)
    np.testing.assert_allclose(numba_draws("polya_gamma", 8, h, z), h / (2 * z), rtol=1e-7)
