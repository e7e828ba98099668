"""Monte Carlo errors of probabilities of what no draw has, or every draw."""

import numpy as np
import pytest
from scipy.stats import beta

from mmgibbs.posterior.moments import PooledMoments
from mmgibbs.posterior.zero_counts import effective_draws, raise_errors_of_unseen, zero_count_error
from mmgibbs.results.markers import _errors_of_chances


@pytest.mark.parametrize("n", [1, 10, 1000])
def test_error_is_the_sd_of_the_posterior_under_the_prior_of_jeffreys(n):
    assert zero_count_error(n) == pytest.approx(beta(0.5, n + 0.5).std())


def test_only_what_no_draw_has_gets_a_larger_error():
    mean, mcse = np.array([0.0, 1e-5, 0.01, 0.5, 0.99999, 1.0, np.nan]), np.array([0, 1e-6, 1e-4, 0.02, 0, 0, np.nan])
    raised = raise_errors_of_unseen(mean, mcse, 1000, 200.0)
    floor = beta(0.5, 200.5).std()
    np.testing.assert_allclose(raised, [floor, floor, 1e-4, 0.02, floor, floor, np.nan])
    assert raise_errors_of_unseen(np.zeros(1), np.full(1, 0.3), 1000, 200.0) == 0.3  # the larger one counts


def test_draws_count_as_those_of_probabilities_that_move():
    sd, ess = np.array([0.4, 0.3, 0.001]), np.array([20.0, 40.0, 900.0])
    assert effective_draws(sd, ess, 1000, 100) == 30.0
    assert effective_draws(sd[2:], ess[2:], 1000, 100) == 100.0  # none moves: the batches
    assert effective_draws(sd, 100 * ess, 1000, 100) == 1000.0


def test_a_snp_that_never_enters_has_an_error():
    """Two SNPs that exchange the effect every 100 draws or so, and one that is in the model in no draw."""
    mean, sd, mcse, ess = ([np.zeros((3, 2))] for _ in range(4))
    mean[0][:] = [[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]]
    sd[0][:2], mcse[0][:2], ess[0][:2], ess[0][2] = 0.5, 0.1, 25.0, np.nan
    errors = _errors_of_chances(PooledMoments(mean, sd, mcse, ess, 2000, 100), 0)
    np.testing.assert_allclose(errors[:2], 0.1)
    np.testing.assert_allclose(errors[2], beta(0.5, 25.5).std())
