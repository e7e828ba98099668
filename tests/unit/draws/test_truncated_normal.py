"""Truncated normals: half-lines with means from -1e8 to 30, and intervals of every kind."""

import numpy as np
import pytest
from helpers.draw_batches import numba_draws, twin_draws
from helpers.goodness import agree, moment_z, transform_z
from scipy import special, stats

from mmgibbs.draws.truncated_normal import fill_truncated, truncated_normal, truncated_work_arrays

N = 40_000
MEANS = [-30.0, -5.0, -1.0, -0.4, 0.0, 0.46, 0.48, 2.0, 8.0, 30.0]
INTERVALS = [
    (-np.inf, np.inf),
    (-1.0, 2.0),
    (-0.3, 0.2),
    (0.0, 2.5),
    (0.0, 2.6),
    (-2.5, 0.0),
    (0.2, 0.9),
    (0.2, 4.0),
    (0.0, np.inf),
]
INTERVALS += [
    (-4.0, -0.2),
    (6.0, 6.1),
    (30.0, 31.0),
    (-31.0, -30.0),
    (3.0, np.inf),
    (-np.inf, -3.0),
    (-np.inf, 1.0),
    (1.0, 1.42),
]


def share_above(x, mean):
    """P(X > x) of TN(mean, 1; > 0), from logarithms of tail probabilities."""
    return np.exp(special.log_ndtr(mean - x) - special.log_ndtr(mean))


def above(draws, means):
    results = []
    for i, mean in enumerate(means):
        x = draws("truncated_normal_positive", N, mean, sweep=i)
        results += [transform_z(share_above(x, mean)), moment_z(x, *stats.truncnorm(-mean, np.inf, loc=mean).stats())]
    mean = np.random.default_rng(2).uniform(-30, 30, N)
    return [*results, transform_z(share_above(draws("truncated_normal_positive", N, mean, sweep=40), mean))]


def intervals(draws, ends):
    results = []
    for i, (low, high) in enumerate(ends):
        x = draws("truncated_normal", N, 1.25, low + 1.25, high + 1.25, sweep=50 + i)
        assert np.all((x >= low + 1.25) & (x <= high + 1.25))
        results += [transform_z(stats.truncnorm(low, high, loc=1.25).cdf(x))]
    return results


def test_above():
    assert agree(above(numba_draws, MEANS))


def test_intervals():
    assert agree(intervals(numba_draws, INTERVALS))


def test_wrong_twin_is_noticed(mutants):
    assert not agree(above(lambda *a, **k: twin_draws(mutants, *a, **k), [-1.0, 0.0]))
    assert not agree(intervals(lambda *a, **k: twin_draws(mutants, *a, **k), [(0.2, 4.0), (3.0, np.inf)]))


@pytest.mark.parametrize("mean", [-1e3, -1e8])
def test_far_out_the_excess_is_exponential(mean):
    x = numba_draws("truncated_normal_positive", N, mean, sweep=70)
    assert agree([transform_z(-np.expm1(x * mean)), moment_z(-x * mean, 1.0, 1.0)])
    assert x.min() > 0


def test_below_is_the_mirror_image():
    mean = np.linspace(-30, 30, 1001)
    np.testing.assert_array_equal(
        numba_draws("truncated_normal_negative", 1001, mean), -numba_draws("truncated_normal_positive", 1001, -mean)
    )
    assert numba_draws("truncated_normal_negative", 1001, mean).max() < 0


def test_ends_of_intervals():
    lower, upper = np.array([1.0, np.nan, 0.0, 7.0]), np.array([0.5, 0.5, np.nan, 7.0])
    np.testing.assert_array_equal(numba_draws("truncated_normal", 4, 0.0, lower, upper), [np.nan, np.nan, np.nan, 7.0])


def side_by_side(mean, sd, lower, upper, draw=3):
    """The draws of many levels at once, and each by itself."""
    n = len(mean)
    level, together = np.arange(n, dtype=np.uint64)[::-1].copy(), np.empty(n)
    fill_truncated(together, mean, sd, lower, upper, level, n, truncated_work_arrays(n), 5, 77, draw, 20240, 1)
    scaled = [a / np.where(sd > 0, sd, 1.0) for a in (mean, lower, upper)]
    alone = [truncated_normal(m, a, b, 5, i, 77, draw, 20240, 1) for m, a, b, i in zip(*scaled, level, strict=True)]
    return together, sd * np.array(alone)


def test_many_side_by_side():
    ends = np.repeat(np.array(INTERVALS), 400, axis=0)
    rng = np.random.default_rng(3)
    mean, sd = rng.normal(size=len(ends)), rng.uniform(0.3, 3, len(ends))
    together, alone = side_by_side(mean, sd, mean + sd * ends[:, 0], mean + sd * ends[:, 1])
    np.testing.assert_allclose(together, alone, rtol=1e-11, atol=1e-13)
    _, another = side_by_side(mean, sd, mean + sd * ends[:, 0], mean + sd * ends[:, 1], draw=4)
    assert np.mean(np.isclose(together, another)) < 0.01  # the draw number matters
