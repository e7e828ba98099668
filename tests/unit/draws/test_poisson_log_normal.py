"""The log rate of a Poisson count under a normal prior, against quadrature of its density."""

import numpy as np
import pytest
from helpers.draw_batches import numba_draws, twin_draws
from helpers.goodness import agree, transform_z
from scipy import special

from mmgibbs.draws.poisson_log_normal import lambert_of_exp

N = 20_000
EXPOSURE = 1.5  # that of the batches
CASES = [(y, m, v) for y in (0, 1, 50) for m in (-10.0, 0.0, 8.0) for v in (0.01, 1.0, 25.0)]


def probability_below(x, count, mean, variance):
    """P(l < x) by the trapezium rule on 200,001 points, (n,) for x (n,)."""
    a = mean + variance * count
    mode = a - special.lambertw(variance * EXPOSURE * np.exp(min(a, 700))).real if a < 500 else x.mean()
    sd = 1 / np.sqrt(1 / variance + EXPOSURE * np.exp(mode))
    grid = np.linspace(mode - 40 * np.sqrt(variance) - 10 * sd, mode + 40 * sd, 200_001)
    grid = np.unique(np.concatenate([grid, mode + np.linspace(-12, 12, 200_001) * sd]))
    log_density = count * grid - EXPOSURE * np.exp(np.minimum(grid, 700)) - (grid - mean) ** 2 / (2 * variance)
    density = np.exp(log_density - log_density.max())
    area = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(grid))])
    return np.clip(np.interp(x, grid, area / area[-1]), 0, 1)


def transforms(draws, cases):
    results = []
    for i, case in enumerate(cases):
        x = draws("poisson_log_normal", N, *case, sweep=i)
        results.append(transform_z(probability_below(x, *case)))
    return results


def test_draws_have_the_density():
    assert agree(transforms(numba_draws, CASES))


def test_wrong_twin_is_noticed(mutants):
    assert not agree(transforms(lambda *a, **k: twin_draws(mutants, *a, **k), CASES))


def test_lambert():
    c = np.linspace(-200, 600, 20_001)
    w = np.array([lambert_of_exp(x) for x in c])
    np.testing.assert_allclose(w, special.lambertw(np.exp(c)).real, rtol=1e-13)
    assert lambert_of_exp(1e6) + np.log(lambert_of_exp(1e6)) == pytest.approx(1e6, rel=1e-15)


def test_large_counts_and_rare_ones():
    x = numba_draws("poisson_log_normal", N, 1e6, 0.0, 1.0)
    assert np.isfinite(x).all() and abs(x.mean() - np.log(1e6 / EXPOSURE)) < 1e-3
    assert np.isfinite(numba_draws("poisson_log_normal", N, 0.0, 600.0, 1e-3)).all()
