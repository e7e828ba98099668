"""Scores of probabilities against values by hand and against sums over pairs; expectations by simulation."""

import numpy as np
import pytest
from scipy import stats

from mmgibbs.models.families.categories import compute_probabilities
from mmgibbs.models.families.count import compute_probability
from mmgibbs.validation import kfold

P2 = np.array([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]])
P3 = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])


def test_scores_by_hand():
    category = np.array([0, 1, 0])
    assert kfold.brier(P2, category) == pytest.approx(((0.09 + 0.04 + 0.25) / 3, (0.21 + 0.16 + 0.25) / 3))
    estimate, expected = kfold.log_score(P2, category)
    assert estimate == pytest.approx(-np.log([0.7, 0.8, 0.5]).mean())
    assert expected == pytest.approx(np.mean([stats.entropy(p) for p in P2]))
    category = np.array([0, 2, 2])
    found, _ = kfold.ranked_probability(P3, category)
    # sums from below: (.6, .9) against (1, 1), (.2, .7) and (.1, .3) against (0, 0)
    assert found == pytest.approx((0.16 + 0.01 + 0.04 + 0.49 + 0.01 + 0.09) / 3)
    squares = 0.16 + 0.09 + 0.01 + 0.04 + 0.25 + 0.49 + 0.01 + 0.04 + 0.09
    assert kfold.brier(P3, category)[0] == pytest.approx(squares / 3)


@pytest.mark.parametrize("score", [kfold.brier, kfold.log_score, kfold.ranked_probability])
def test_what_is_expected_is_the_mean_over_such_records(score):
    rng = np.random.default_rng(1)
    drawn = np.array([score(P3, np.array([rng.choice(3, p=p) for p in P3]))[0] for _ in range(4000)])
    assert abs(drawn.mean() - score(P3, np.zeros(3, int))[1]) < 4 * drawn.std() / np.sqrt(4000)


def test_ranks_and_regressions():
    rng = np.random.default_rng(2)
    y, p = rng.integers(0, 2, 60).astype(float), np.round(rng.uniform(size=60), 1)  # with ties
    u = stats.mannwhitneyu(p[y == 1], p[y == 0]).statistic
    assert kfold.concordance(p, y, y) == pytest.approx(u / ((y == 1).sum() * (y == 0).sum()))
    lower, upper = np.array([1.0, 2.0, 3.0]), np.array([1.0, np.inf, 3.0])
    assert kfold.concordance(np.array([0.0, 0.5, 1.0]), lower, upper) == 1.0
    assert kfold.concordance(np.array([0.7, 0.5, 1.0]), lower, upper) == 0.5
    assert kfold.concordance(np.array([1.0, 0.5, 0.0]), lower, upper) == 0.0
    assert np.isnan(kfold.concordance(np.zeros(2), np.zeros(2), np.zeros(2)))
    rng = np.random.default_rng(3)
    p, y = rng.uniform(size=40), rng.uniform(size=40)
    assert kfold.dispersion(p, y) == pytest.approx(stats.linregress(p, y).slope)


def test_probabilities_of_categories():
    p = compute_probabilities(np.array([0.4]), np.array([2.0]), np.array([0.0, 1.1]))
    below = stats.norm.cdf(np.array([0.0, 1.1]), 0.4, np.sqrt(2.0))
    np.testing.assert_allclose(p[0], np.diff([0, *below, 1]))


@pytest.mark.parametrize("y", [0, 1, 7, 300])
@pytest.mark.parametrize(("eta", "v"), [(-2.0, 0.05), (0.3, 1.0), (3.0, 4.0)])
def test_probability_of_a_count(y, eta, v):
    """Against a fine grid."""
    e = np.linspace(-14, 14, 400_001) * np.sqrt(v)
    exact = np.trapezoid(stats.poisson.pmf(y, np.exp(eta + e)) * stats.norm.pdf(e, 0, np.sqrt(v)), e)
    found = compute_probability(np.array([float(y)]), np.array([eta]), np.array([v]))[0]
    assert found == pytest.approx(exact, rel=1e-3, abs=1e-30)
