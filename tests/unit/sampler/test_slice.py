"""Slice sampling leaves a known density as it is: starts drawn from it, one draw of each component, and again."""

from functools import cache

import numpy as np
import pytest
from helpers.goodness import agree, transform_z
from helpers.mutants import mutant
from scipy import stats

from mmgibbs.sampler import slice as module

SD, SLOPE, REPLICATES = 3.0, 0.8, 3_000


def log_density(x):
    """x_0 ~ N(0, SD^2), x_1 = SLOPE x_0 + e, e a t variate of 3 degrees of freedom."""
    return -0.5 * (x[0] / SD) ** 2 - 2.0 * np.log1p((x[1] - SLOPE * x[0]) ** 2 / 3)


@cache
def starts():
    rng = np.random.default_rng(4)
    first = SD * rng.standard_normal(REPLICATES)
    return np.column_stack([first, SLOPE * first + rng.standard_t(3, REPLICATES)])


def z_of_draws(source=module):
    """z of x_0 and of x_1 given x_0 after a draw of each from exact draws."""
    rng = np.random.default_rng(5)
    x = np.array([source.draw_each(log_density, start, rng, range(2)) for start in starts()])
    return [transform_z(stats.norm.cdf(x[:, 0] / SD)), transform_z(stats.t.cdf(x[:, 1] - SLOPE * x[:, 0], 3))]


def test_draws_leave_the_density_as_it_is():
    assert agree(z_of_draws())


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("log_density(x)) - rng.exponential()", "log_density(x)) - 2 * rng.exponential()"),
        ("for _ in range(MAX_STEPS_OUT - steps_down):", "for _ in range(0):"),
        ("if log_density(value) >= height:", "if True:"),
    ],
)
def test_a_spoiled_step_is_noticed(right, wrong):
    assert not agree(z_of_draws(mutant(module, right, wrong, compiled=False)))
