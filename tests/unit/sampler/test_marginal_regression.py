"""The regression by which x is proposed given liabilities, against least squares; its move, against the t."""

import numpy as np
import pytest
from helpers.goodness import agree, transform_z
from helpers.mutants import mutant
from scipy import stats

from mmgibbs.sampler.marginal import moves
from mmgibbs.sampler.marginal.moves import DF, Shape
from mmgibbs.sampler.marginal.regression import RIDGE, add_products, learn_regression

N, KEY = 500, (5, 1)


def simulate():
    """(N, 3) summaries, of which the last does not vary, and (N, 2) x."""
    rng = np.random.default_rng(8)
    f = np.column_stack([rng.normal(3.0, 100.0, N), rng.normal(-1.0, 0.01, N), np.full(N, 7.0)])
    x = np.array([1.0, 2.0]) + f[:, :2] @ [[0.01, 0.0], [20.0, -50.0]]
    return f, x + rng.normal(size=(N, 2)) @ [[0.5, 0.2], [0.0, 0.3]]


def learn(f, x):
    sums = np.zeros((1 + f.shape[1] + x.shape[1],) * 2)
    for row, values in zip(f, x, strict=True):
        add_products(sums, row, values)
    return learn_regression(sums, x.shape[1])


def test_regression_is_that_of_least_squares():
    f, x = simulate()
    regression = learn(f, x)
    Z = np.column_stack([np.ones(N), f[:, :2]])
    B, *_ = np.linalg.lstsq(Z, x, rcond=None)
    residuals = x - Z @ B
    new = np.array([120.0, -0.99, 7.0])
    predicted = regression.predict(new)
    np.testing.assert_allclose(predicted.center, np.array([1.0, *new[:2]]) @ B, rtol=5 * RIDGE)
    np.testing.assert_allclose(predicted.root @ predicted.root.T, residuals.T @ residuals / (N - 3), rtol=0.01)


def test_few_draws_have_no_regression():
    f, x = simulate()
    assert learn(f[:49], x[:49]) is None and learn(f[:50], x[:50]) is not None


def test_a_summary_twice_is_one():
    """A singular correlation matrix: both share the slope."""
    f, x = simulate()
    new = np.array([120.0, -0.99])
    once, twice = learn(f[:, :2], x), learn(f[:, [0, 1, 0]], x)
    np.testing.assert_allclose(twice.predict(new[[0, 1, 0]]).center, once.predict(new).center, rtol=2 * RIDGE)


def over_relaxed_u(module):
    """(2000, 2): u before, of the multivariate t, and after a move that is always accepted."""
    rng = np.random.default_rng(9)
    shape = Shape(np.array([1.0, -2.0]), np.array([[2.0, 0.0], [0.5, 1.5]]))
    pairs = []
    for number in range(1, 2001):
        u = rng.normal(size=2) / np.sqrt(rng.chisquare(DF) / DF)
        proposed, log_ratio = module.over_relaxed(shape.x(u), shape, number, KEY)
        after = shape.u(proposed)
        assert log_ratio == pytest.approx(moves.log_t(u) - moves.log_t(after))
        pairs.append((u[0], after[0]))
    return np.array(pairs)


def test_over_relaxation_leaves_the_t_alone_and_turns_u():
    before, after = over_relaxed_u(moves).T
    assert agree([transform_z(stats.t.cdf(after, DF))])
    assert np.corrcoef(before, after)[0, 1] == pytest.approx(moves.OVER_RELAXATION_FACTOR, abs=0.1)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("np.sqrt(1.0 - OVER_RELAXATION_FACTOR**2)", "1.0"), ("(0.5 * (DF + now @ now))", "(0.5 * DF)")],
)
def test_a_spoiled_move_is_noticed(right, wrong):
    spoilt = mutant(moves, right, wrong, compiled=False)
    assert not agree([transform_z(stats.t.cdf(over_relaxed_u(spoilt)[:, 1], DF))])
