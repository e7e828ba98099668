"""Figures of draws: densities end where a parameter does, and equal draws are no broken chain."""

import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from mmgibbs.report import plots
from mmgibbs.report.parameters import bounds
from mmgibbs.report.plots import bandwidth, density, paint_density, rank_shares

ABOVE, BOTH, CLOSE = np.array([0.2, 0.4]), np.array([-0.2, 0.4]), np.array([0.9, 1.2])


@pytest.mark.parametrize(
    ("name", "draws", "expected"),
    [
        ("genetic.var[birth]", ABOVE, (0.0, None)),
        ("SNPS.effect_var[birth]", ABOVE, (0.0, None)),
        ("sigma2", ABOVE, (0.0, None)),
        ("h2[birth]", ABOVE, (0.0, 1.0)),
        ("ratio[genetic.maternal:birth]", CLOSE, (0.0, None)),  # a negative covariance takes it above 1
        ("SNPS.pi[birth:none]", ABOVE, (0.0, 1.0)),
        ("genetic.corr[a,b]", BOTH, (-1.0, 1.0)),
        ("field.rho[row]", ABOVE, (-1.0, 1.0)),
        ("SNPS.effect_corr[a,b]", ABOVE, (-1.0, 1.0)),
        ("genetic.cov[a,b]", ABOVE, (None, None)),
        ("beta[snp_1]", ABOVE, (None, None)),
        ("intercept", ABOVE, (None, None)),
        ("covariance[a,b]", ABOVE, (None, None)),
        ("covariance[x,yes,x,yes]", ABOVE, (0.0, None)),
        ("anything", BOTH, (None, None)),
    ],
)
def test_bounds_of_parameters(name, draws, expected):
    assert bounds(name, draws) == expected


def test_a_density_ends_at_its_bounds_and_keeps_its_area():
    values = np.random.default_rng(5).gamma(0.8, 1.0, 1000)
    x, f = density(values)
    assert x[0] < 0
    for limits in ((0.0, None), (0.0, values.max() + 0.01)):
        x, f = density(values, 400, bounds=limits)
        assert x[0] == 0 and (limits[1] is None or x[-1] == limits[1])
        assert np.trapezoid(f, x) == pytest.approx(1, abs=0.01)
    far, g = density(values + 50, bounds=(0.0, None))
    assert far[0] > 40 and np.array_equal(g, density(values + 50)[1])
    x, _ = density(ABOVE, 10, ends=(-1.0, 2.0), bounds=(0.0, 1.0))
    assert (x[0], x[-1]) == (0.0, 1.0)


@pytest.mark.parametrize("apart", [0.0, 5.0])
def test_the_density_of_all_chains_is_the_mean_of_theirs(apart):
    """Chains have one bandwidth: with one for each, they would be smoother than all of them together."""
    draws = np.random.default_rng(6).normal(size=(4, 300)) + apart * np.arange(4)[:, None]
    axes = Figure().add_subplot()
    paint_density(draws, draws.mean(), None, None)(axes)
    *each, (x, f) = (line.get_data() for line in axes.lines[:5])
    assert np.mean([np.interp(x, *chain) for chain in each], axis=0) == pytest.approx(f, abs=0.01 * f.max())
    assert np.array_equal(density(draws[0], width=bandwidth(draws[0]))[1], density(draws[0])[1])


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


def test_ranks_of_different_draws():
    draws = RANDOM.poisson(2.0, (4, 2000)).astype(float)
    draws[2] += 3
    assert rank_shares(draws)[2, :5].max() < 0.01 < 0.1 < rank_shares(draws)[2, -3:].min()
    from scipy.stats import rankdata

    draws = RANDOM.normal(size=(3, 400))
    ranks = (rankdata(draws).reshape(draws.shape) - 0.5) / draws.size
    expected = np.stack([np.histogram(r, 20, (0, 1))[0] / 400 for r in ranks])
    np.testing.assert_array_equal(rank_shares(draws), expected)


def test_labels_of_ticks_stay_inside_their_drawing():
    """Wide labels at both ends: half of the last one would stick out, and all of those on the left."""

    def paint(axes):
        axes.plot([0, 1_000_000], [0, 123456.789])
        axes.set_xlim(0, 1_000_000)
        axes.set_xticks([0, 1_000_000], ["0", "1,000,000"])
        axes.set_yticks([0, 123456.789], ["0", "123456.789"])
        axes.set_ylim(0, 123456.789)

    svg = plots.Figures().draw(paint, "title", "description", size=plots.SMALL)
    at = lambda label: float(re.search(rf'<text [^>]*?x="([0-9.]+)"[^>]*>{label}</text>', svg)[1])
    middle, end = at("1,000,000"), at("123456.789")
    width = plots.SMALL[0] * 72
    assert middle + 4.5 * plots.DIGIT <= width + 0.1 and end - 10 * plots.DIGIT >= 0
