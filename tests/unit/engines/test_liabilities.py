"""Passes over the records for liabilities, against each record worked out by itself in NumPy and SciPy."""

import numpy as np
import pytest
from scipy import stats

from mmgibbs.draws.normal_interval import log_normal_interval, normal_interval
from mmgibbs.draws.philox import draw_word, uniform_pair
from mmgibbs.draws.poisson_log_normal import poisson_log_normal
from mmgibbs.draws.purpose import LIABILITY, Site, stream
from mmgibbs.draws.truncated_normal import truncated_normal
from mmgibbs.engines import liabilities
from mmgibbs.engines.liabilities import Given, conditional_residuals
from mmgibbs.equations.structured import Records
from mmgibbs.models.design import inverse_by_pattern
from mmgibbs.models.families import Categories, Interval

R = np.array([[1.0, 0.4, -0.3], [0.4, 2.0, 0.5], [-0.3, 0.5, 3.0]])
PATTERNS = np.array([[True, True, True], [True, False, True], [False, True, True], [True, False, False]])
CUTS = np.array([-np.inf, 0.0, 0.8, np.inf])
STREAM, SEED, CHAIN, SWEEP, TRAIT = stream(LIABILITY, 0), 7, 2, 31, 0
SITE = Site(SWEEP, STREAM, SEED, CHAIN)


@pytest.fixture
def small():
    """60 records in 4 patterns, with weights, in an order of their own."""
    rng = np.random.default_rng(4)
    n = 60
    pattern = rng.integers(0, 4, n)
    y = np.where(PATTERNS[pattern], rng.normal(size=(n, 3)), 0.0)
    e = np.where(PATTERNS[pattern], rng.normal(size=(n, 3)), 0.0)
    records = Records(y, pattern.astype(np.uint8), rng.uniform(0.5, 2, n), rng.permutation(n).astype(np.uint32))
    category = np.where(PATTERNS[pattern, TRAIT], rng.integers(0, 3, n), -1).astype(np.int16)
    return records, y.copy(), e.copy(), inverse_by_pattern(R[None], PATTERNS, np.zeros(4, np.int64)), category


def conditional(records, e, r):
    """Mean and variance of the residual by the textbook: R_to R_oo^-1 e_o and its Schur complement over the weight."""
    others = [o for o in range(3) if o != TRAIT and PATTERNS[records.pattern[r], o]]
    slope = R[TRAIT, others] @ np.linalg.inv(R[np.ix_(others, others)]) if others else np.zeros(0)
    return slope @ e[r, others], (R[TRAIT, TRAIT] - slope @ R[others, TRAIT]) / records.weight[r]


def observed(records):
    return [r for r in range(len(records.pattern)) if PATTERNS[records.pattern[r], TRAIT]]


def given(records, y, e, Rinv):
    return Given(records, TRAIT, y, e, *conditional_residuals(Rinv, TRAIT))


def check(records, y, e, before_y, before_e, draw):
    for r in range(len(y)):
        if r not in observed(records):
            assert y[r, TRAIT] == before_y[r, TRAIT] and e[r, TRAIT] == before_e[r, TRAIT]
            continue
        mean, variance = conditional(records, before_e, r)
        eta = before_y[r, TRAIT] - before_e[r, TRAIT]
        np.testing.assert_allclose(y[r, TRAIT], draw(r, eta, mean, variance), rtol=1e-9, atol=1e-11)
        assert abs(y[r, TRAIT] - eta - e[r, TRAIT]) < 1e-12
    np.testing.assert_array_equal(y[:, 1:], before_y[:, 1:])


def test_categories(small):
    records, y, e, Rinv, category = small
    before = y.copy(), e.copy()
    a, b = liabilities.draw_categories(given(records, y, e, Rinv), category, CUTS, 0, len(y), SITE)

    def draw(r, eta, mean, variance):
        sd = np.sqrt(variance)
        low, high = (CUTS[category[r] + i] - eta for i in (0, 1))
        return eta + sd * truncated_normal(
            mean / sd, low / sd, high / sd, SWEEP, records.record[r], STREAM, 0, SEED, CHAIN
        )

    check(records, y, e, *before, draw)
    for r in observed(records):
        assert CUTS[category[r]] - 1e-9 <= y[r, TRAIT] <= CUTS[category[r] + 1] + 1e-9
    Q = Rinv[records.pattern]  # the sums of the scale
    whole = np.einsum("r,rt,rt->", records.weight * e[:, TRAIT], Q[:, TRAIT], e)
    assert a == pytest.approx((records.weight * Q[:, TRAIT, TRAIT] * e[:, TRAIT] ** 2).sum(), rel=1e-12)
    assert a + b == pytest.approx(whole, rel=1e-12)


def test_intervals(small):
    records, y, e, Rinv, category = small
    exact = category == 1
    lower = np.where(exact, y[:, TRAIT], np.where(category == 0, -np.inf, 0.5))
    upper = np.where(exact, y[:, TRAIT], np.where(category == 0, -0.2, np.inf))
    before = y.copy(), e.copy()
    liabilities.draw_intervals(given(records, y, e, Rinv), lower, upper, 0, len(y), SITE)

    def draw(r, eta, mean, variance):
        sd = np.sqrt(variance)
        if exact[r]:
            return before[0][r, TRAIT]
        return eta + sd * truncated_normal(
            mean / sd, (lower[r] - eta) / sd, (upper[r] - eta) / sd, SWEEP, records.record[r], STREAM, 0, SEED, CHAIN
        )

    check(records, y, e, *before, draw)


def reflect_all(records, response, y, e, Rinv):
    """Reflect y and e, in place; what they were before. response: in the order of y."""
    before, response = (y.copy(), e.copy()), response.keep(np.argsort(records.record))
    liabilities.Liabilities((response,), records).reflect(0, CUTS, y, e, Rinv, SWEEP, (SEED, CHAIN))
    return before


def reflect_record(records, before, r, low, high):
    """The other end of the slice (max(low, -h), min(high, h)) of a residual, in standard deviations about its mean."""
    y, e = before
    mean, variance = conditional(records, e, r)
    sd, eta = np.sqrt(variance), y[r, TRAIT] - e[r, TRAIT]
    u, _ = uniform_pair(SWEEP, records.record[r], STREAM, draw_word(0, 0), SEED, CHAIN)
    z = (e[r, TRAIT] - mean) / sd
    h = np.sqrt(z**2 - 2 * np.log(u))
    first, last = max((low - eta - mean) / sd, -h), min((high - eta - mean) / sd, h)
    return eta + mean + sd * (first + last - z)


def test_reflected_categories(small):
    records, y, e, Rinv, category = small
    y[:, TRAIT] = np.select([category == c for c in range(3)], [-0.6, 0.3, 1.4], y[:, TRAIT])
    before = reflect_all(records, Categories(TRAIT, ("low", "middle", "high"), category), y, e, Rinv)
    check(
        records, y, e, *before,
        lambda r, *_: reflect_record(records, before, r, CUTS[category[r]], CUTS[category[r] + 1]),
    )  # fmt: skip


def test_reflected_intervals(small):
    records, y, e, Rinv, category = small
    exact = category == 1
    lower = np.where(exact, y[:, TRAIT], np.where(category == 0, -np.inf, y[:, TRAIT] - 0.5))
    upper = np.where(exact, y[:, TRAIT], np.where(category == 0, y[:, TRAIT] + 0.2, np.inf))
    before = reflect_all(records, Interval(TRAIT, lower, upper), y, e, Rinv)

    def reflect(r, *_):
        return before[0][r, TRAIT] if exact[r] else reflect_record(records, before, r, lower[r], upper[r])

    check(records, y, e, *before, reflect)


def test_log_rates(small):
    records, y, e, Rinv, category = small
    count, exposure = np.maximum(category, 0).astype(float), np.linspace(0.5, 3, len(y))
    before = y.copy(), e.copy()
    liabilities.draw_log_rates(given(records, y, e, Rinv), count, exposure, 0, len(y), SITE)

    def draw(r, eta, mean, variance):
        return poisson_log_normal(
            count[r], exposure[r], eta + mean, variance, SWEEP, records.record[r], STREAM, 0, SEED, CHAIN
        )

    check(records, y, e, *before, draw)


def test_ratio_of_cuts(small):
    records, y, e, Rinv, category = small
    proposed = np.array([-np.inf, 0.0, 1.1, np.inf])
    expected = 0.0
    for r in observed(records):
        mean, variance = conditional(records, e, r)
        mu, sd = y[r, TRAIT] - e[r, TRAIT] + mean, np.sqrt(variance)
        p = [np.diff(stats.norm.cdf((cuts[category[r] : category[r] + 2] - mu) / sd))[0] for cuts in (proposed, CUTS)]
        expected += np.log(p[0] / p[1])

    def ratio(cuts, proposed):
        return liabilities.log_ratio_of_cuts(given(records, y, e, Rinv), category, cuts, proposed, 0, len(y))

    found = ratio(CUTS, proposed)
    assert found == pytest.approx(expected, rel=1e-9)
    far = np.array([-np.inf, 0.0, 200.0, np.inf])  # where the highest category has a probability below any double
    assert ratio(far, CUTS) == pytest.approx(-ratio(CUTS, far), rel=1e-9)
    assert ratio(CUTS, far) == pytest.approx(ratio(CUTS, proposed) + ratio(proposed, far), rel=1e-9)
    halves = [
        liabilities.log_ratio_of_cuts(given(records, y, e, Rinv), category, CUTS, proposed, *ends)
        for ends in ((0, 20), (20, 60))
    ]
    assert sum(halves) == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("ends", [(-1.0, 2.0), (0.3, 0.4), (8.0, 9.0), (-40.0, -39.0), (-np.inf, -35.0), (3.0, np.inf)])
def test_log_probability_of_an_interval(ends):
    low, high = ends if ends[0] <= 0 else (-ends[1], -ends[0])  # the same by symmetry, where SciPy has digits
    above, below = stats.norm.logcdf(high), stats.norm.logcdf(low)
    expected = above + np.log1p(-np.exp(below - above))
    assert log_normal_interval(*ends) == pytest.approx(expected, rel=1e-9)
    assert normal_interval(*ends) == pytest.approx(np.exp(expected), rel=1e-9, abs=1e-310)
