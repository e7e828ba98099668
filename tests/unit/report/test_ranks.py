"""Ranks by chain on the page: equal draws are no broken chain."""

import numpy as np
import pytest

from mmgibbs.report.plots import rank_shares

RANDOM = np.random.default_rng(8)


@pytest.mark.parametrize(
    "draws",
    [
        RANDOM.poisson(2.0, (4, 2000)).astype(float),  # SNPs in the model
        RANDOM.integers(0, 2, (4, 2000)).astype(float),
        np.full((4, 2000), 3.0),
        RANDOM.normal(size=(4, 2000)).round(1),
    ],
)
def test_equal_draws_leave_no_class_empty(draws):
    """Chains that agree have 5 % of their draws in each of 20 classes, give or take 5 standard errors."""
    shares = rank_shares(draws)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(shares.mean(axis=0), 0.05)
    assert np.abs(shares - 0.05).max() < 5 * np.sqrt(0.05 * 0.95 / 2000)


def test_a_chain_that_lies_apart_is_still_seen():
    draws = RANDOM.poisson(2.0, (4, 2000)).astype(float)
    draws[2] += 3
    assert rank_shares(draws)[2, :5].max() < 0.01 < 0.1 < rank_shares(draws)[2, -3:].min()


def test_different_draws_have_their_ranks():
    from scipy.stats import rankdata

    draws = RANDOM.normal(size=(3, 400))
    ranks = (rankdata(draws).reshape(draws.shape) - 0.5) / draws.size
    expected = np.stack([np.histogram(r, 20, (0, 1))[0] / 400 for r in ranks])
    np.testing.assert_array_equal(rank_shares(draws), expected)
