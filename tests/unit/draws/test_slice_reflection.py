"""Reflection within a slice leaves truncated normals as they are; the heights are seen to matter."""

import numpy as np
import pytest
from helpers.mutants import mutant
from scipy import stats

import mmgibbs.draws.slice_reflection as reflection


def reflected_draws(module, low, high, n=20_000):
    """(n,) x after one reflection of exact draws."""
    rng = np.random.default_rng(4)
    x = stats.truncnorm.rvs(low, high, size=n, random_state=rng)
    u = rng.uniform(size=n)
    reflect = getattr(module.reflect_in_slice, "py_func", module.reflect_in_slice)
    return np.array([reflect(*values) for values in zip(x, [low] * n, [high] * n, u, strict=True)])


INTERVALS = [(0.5, np.inf), (-np.inf, -3.0), (-0.4, 1.5), (-np.inf, np.inf), (6.0, 6.5)]


@pytest.mark.parametrize(("low", "high"), INTERVALS)
def test_reflection_leaves_truncated_normals_alone(low, high):
    x = reflected_draws(reflection, low, high)
    assert low <= x.min() and x.max() <= high
    assert stats.kstest(x, stats.truncnorm(low, high).cdf).pvalue > 1e-3


def test_a_wrong_height_is_seen():
    spoilt = mutant(reflection, "- 2.0 * log(u)", "- log(u)", compiled=False)
    assert stats.kstest(reflected_draws(spoilt, 0.5, np.inf), stats.truncnorm(0.5, np.inf).cdf).pvalue < 1e-6
