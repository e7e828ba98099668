"""Gamma, chi-square and exponential draws over shapes from 1e-3 to 1e14."""

import numpy as np
import pytest
from helpers.draw_batches import numba_draws, twin_draws
from helpers.goodness import agree, moment_z, transform_z
from helpers.mutants import mutant
from scipy import special, stats

from mmgibbs.draws import gamma as ga
from mmgibbs.draws.over_relaxation import OVER_RELAXED

N = 40_000
SHAPES = [0.01, 0.1, 0.5, 0.999, 1.0, 1.5, 4.0, 30.0, 1e3, 1e6]


def comparisons(draws, shapes):
    results = []
    for i, shape in enumerate(shapes):
        x = draws("gamma", N, shape, sweep=i)
        results += [transform_z(special.gammainc(shape, x)), moment_z(x, shape, shape)]
    shape = 10.0 ** np.random.default_rng(1).uniform(-2, 6, N)
    return [*results, transform_z(special.gammainc(shape, draws("gamma", N, shape, sweep=20)))]


def test_gamma():
    assert agree(comparisons(numba_draws, SHAPES))


def test_wrong_twin_is_noticed(mutants):
    assert not agree(comparisons(lambda *a, **k: twin_draws(mutants, *a, **k), [1.0, 1.5]))


@pytest.mark.parametrize("shape", [1e-3, 3e-3, 0.05])
def test_logarithms_of_small_shapes(shape):
    """Half of the Gamma(0.001) draws lie below 1e-301, so their logarithms are what can be compared."""
    x = numba_draws("log_gamma_draw", N, shape, sweep=30)
    assert agree(
        [transform_z(stats.loggamma(shape).cdf(x)), moment_z(x, special.digamma(shape), special.polygamma(1, shape))]
    )
    g = numba_draws("gamma", N, shape, sweep=30)
    with np.errstate(under="ignore"):
        expected = np.maximum(np.exp(x), 2.2250738585072014e-308)
    np.testing.assert_allclose(g, expected, rtol=1e-12)
    assert g.min() > 0


@pytest.mark.parametrize("shape", [1e9, 1e14])
def test_huge_shapes_are_normal(shape):
    x = (numba_draws("gamma", N, shape, sweep=31) - shape) / np.sqrt(shape)
    assert agree([transform_z(special.ndtr(x)), moment_z(x, 0.0, 1.0)])


def test_chi_square():
    df = np.repeat([0.2, 1.0, 2.0, 7.0, 1e5], N // 5)
    x = numba_draws("chi_square", df.size, df, sweep=32)
    assert agree([transform_z(stats.chi2(df).cdf(x)), moment_z((x - df) / np.sqrt(2 * df), 0.0, 1.0)])


def followed(df, module=ga):
    """(N,) chi-squares, and of each the one that follows it."""
    before, draw = numba_draws("chi_square", N, df, sweep=33), module.over_relaxed_chi_square
    return before, np.array([draw(df, now, 34, i, 5, 0, 9, 1) for i, now in enumerate(before)])


@pytest.mark.parametrize("df", [0.5, 1.0, 2.0, 3.0, 7.0, 40.0, 1e6])
def test_over_relaxed_chi_square(df):
    """The same law, and from 2 degrees of freedom on the other side of the middle."""
    before, after = followed(df)
    assert agree([transform_z(stats.chi2(df).cdf(after)), moment_z((after - df) / np.sqrt(2 * df), 0.0, 1.0)])
    correlation = np.corrcoef(np.cbrt(before), np.cbrt(after))[0, 1]
    assert abs(correlation) < 0.02 if df < 2 else abs(correlation - OVER_RELAXED) < (0.2 if df < 10 else 0.03)


@pytest.mark.parametrize(
    "right, wrong",
    [
        ("log_acceptance(w, d) - log_acceptance(w_now, d)", "log_acceptance(w_now, d) - log_acceptance(w, d)"),
        ("OVER_RELAXED * w_now + NOISE * z * scale", "OVER_RELAXED * w_now + z * scale"),
    ],
)
def test_wrong_over_relaxation_is_noticed(right, wrong):
    spoilt = mutant(ga, right, wrong)
    after = [(df, followed(df, spoilt)[1]) for df in (2.0, 3.0)]
    with np.errstate(invalid="ignore"):
        assert not agree([transform_z(stats.chi2(df).cdf(x)) for df, x in after])


def test_exponential(mutants):
    x = numba_draws("exponential", 100_000)
    assert agree([transform_z(-np.expm1(-x)), moment_z(x, 1.0, 1.0)])
    wrong = twin_draws(mutants, "exponential", 100_000)
    assert not agree([transform_z(-np.expm1(-wrong)), moment_z(wrong, 1.0, 1.0)])
