"""Draws of covariance matrices against theory: the inverse Wishart, and the residual products that go into one."""

import numpy as np
import pytest
from helpers.monte_carlo import compare
from helpers.mutants import mutant
from helpers.selection import first
from helpers.support import copies
from reference import models
from scipy import special

from mmgibbs.draws import inverse_wishart as inverse_wishart_module
from mmgibbs.draws.inverse_wishart import NOTHING, inverse_wishart
from mmgibbs.draws.over_relaxation import OVER_RELAXED
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.priors.inverse_wishart import InverseWishart
from mmgibbs.sampler import covariances
from mmgibbs.sampler.covariances import APART, draw_covariance

N = 10_000
BATCHES = 200  # draws are independent, so any batch will do

# ------------------------------------------------------------------------------------------------------ inverse Wishart


def scale_matrix(k):
    rng = np.random.default_rng(60 + k)
    B = rng.standard_normal((k, k + 3))
    return B @ B.T


def inverse_wishart_draws(k, nu, S):
    """(N, k, k) through draw_covariance, prior df nu - 5 and 5 levels, so that prior and data meet as in a sweep."""
    model = CovarianceModel(np.eye(k), False, full_block(k), InverseWishart(nu - 5, 0.25 * S))
    return np.array([draw_covariance(model, 0.75 * S, 5, number, 3, (9, 1)) for number in range(1, N + 1)])


def element_moments(k, nu, S):
    """Mean and variance of the elements on and below the diagonal of IW(nu, S):

    S_ij / (nu-k-1)        ((nu-k+1) S_ij^2 + (nu-k-1) S_ii S_jj) / ((nu-k) (nu-k-1)^2 (nu-k-3))
    """
    i, j = np.tril_indices(k)
    a = nu - k
    mean = S[i, j] / (a - 1)
    variance = ((a + 1) * S[i, j] ** 2 + (a - 1) * S[i, i] * S[j, j]) / (a * (a - 1) ** 2 * (a - 3))
    return mean, variance


def against_theory(draws, nu, S):
    """Means and variances of elements, mean and variance of log|G|, mean of G^-1."""
    k = len(S)
    i, j = np.tril_indices(k)
    elements, log_det = draws[:, i, j], np.linalg.slogdet(draws)[1]
    mean, variance = element_moments(k, nu, S)
    half = (nu - np.arange(k)) / 2
    log_mean = np.linalg.slogdet(S)[1] - np.sum(special.digamma(half)) - k * np.log(2)
    log_variance = np.sum(special.polygamma(1, half))
    values = [
        elements,
        (elements - mean) ** 2,
        log_det[:, None],
        (log_det[:, None] - log_mean) ** 2,
        np.linalg.inv(draws)[:, i, j],
    ]
    truth = [mean, variance, [log_mean], [log_variance], nu * np.linalg.inv(S)[i, j]]
    means = np.concatenate(values, axis=1).reshape(BATCHES, -1, sum(map(len, truth))).mean(axis=1)
    return compare(means, np.concatenate(truth))


@pytest.mark.parametrize("k", first(2, [1, 3, 2, 4]))
def test_inverse_wishart(k):
    nu, S = k + 11.5, scale_matrix(k)
    draws = inverse_wishart_draws(k, nu, S)
    np.testing.assert_allclose(draws, np.swapaxes(draws, 1, 2), rtol=1e-12)
    comparison = against_theory(draws, nu, S)
    assert comparison.agrees, comparison


@pytest.mark.slow
def test_degrees_of_freedom_off_by_one_are_seen():
    nu, S = 14.5, scale_matrix(3)
    draws = inverse_wishart_draws(3, nu - 1, S)
    assert not against_theory(draws, nu, S).agrees


def over_relaxed_draws(k, nu, S, draw=inverse_wishart):
    """(N, k, k): of each of N independent draws the one that follows it."""
    before = inverse_wishart_draws(k, nu, S)
    after = [draw(nu, S, G, number, np.arange(k), 5, 9, 1) for number, G in enumerate(before)]
    return before, np.array(after)


@pytest.mark.parametrize("k", first(2, [1, 3, 2, 4]))
def test_over_relaxed_inverse_wishart(k):
    """What follows a draw has the same law, and lies on the other side of the mean."""
    nu, S = k + 11.5, scale_matrix(k)
    before, after = over_relaxed_draws(k, nu, S)
    np.testing.assert_allclose(after, np.swapaxes(after, 1, 2), rtol=1e-12)
    comparison = against_theory(after, nu, S)
    assert comparison.agrees, comparison
    of_determinants = np.corrcoef(np.linalg.slogdet(before)[1], np.linalg.slogdet(after)[1])[0, 1]
    assert abs(of_determinants - OVER_RELAXED) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    "right, wrong",
    [
        ("OVER_RELAXED * T[i, j] + NOISE * z", "OVER_RELAXED * T[i, j] + z"),
        ("OVER_RELAXED * T[i, j] + NOISE * z", "NOISE * z"),
        ("over_relaxed_chi_square(nu - i, T", "over_relaxed_chi_square(nu, T"),
        ("s -= T[i, m] * X[m, j]", "s += T[i, m] * X[m, j]"),
    ],
)
def test_wrong_over_relaxation_is_seen(right, wrong):
    spoilt = mutant(inverse_wishart_module, right, wrong, compiled=False)
    nu, S = 14.5, scale_matrix(3)
    after = over_relaxed_draws(3, nu, S, spoilt.inverse_wishart)[1]
    assert not against_theory(after, nu, S).agrees


def test_a_draw_of_before_that_rounding_hides_is_not_used():
    """Nearly singular, its Bartlett factor is not known: the draw is that without it."""
    S, before = scale_matrix(2), np.array([[1.0, 1.0], [1.0, 1.0 + 1e-15]])
    independent = inverse_wishart(9.0, S, NOTHING, 4, np.arange(2), 5, 9, 1)
    np.testing.assert_array_equal(inverse_wishart(9.0, S, before, 4, np.arange(2), 5, 9, 1), independent)
    assert not np.array_equal(inverse_wishart(9.0, S, np.eye(2), 4, np.arange(2), 5, 9, 1), independent)


@pytest.mark.parametrize("sweep", [1, APART + 3])
def test_no_value_holds_a_chain(sweep, monkeypatch):
    """A hundred times too small: over-relaxed draws alone would never leave it."""
    n, S = 1000, scale_matrix(2)
    model = CovarianceModel(np.eye(2), False, full_block(2), InverseWishart(4.0, S / n))

    def moved():
        matrix = far = S / (100 * n)
        for number in range(sweep, sweep + APART):
            matrix = draw_covariance(model, S, n, number, 3, (9, 1), current=matrix)
        return not np.array_equal(matrix, far) and np.linalg.norm(n * matrix - S) < 0.2 * np.linalg.norm(S)

    assert moved()
    monkeypatch.setattr(covariances, "is_independent", lambda number: False)
    assert not moved()


# ------------------------------------------------------------ residual augmentation

R = np.array([[6.0, 2.5, -1.0], [2.5, 5.0, 1.5], [-1.0, 1.5, 4.0]])
COPIES = 250  # of the same records: one call is that many draws


def design_of_residuals(R, observed, weight):
    """Records of one term that is left at 0, so that e = y."""
    T = len(R)
    term = models.random_term(
        "line", [models.Effect("", np.zeros(len(weight), np.int32), tuple(range(T)))], models.Identity(1), 1
    )
    return models.with_records(np.random.default_rng(65), len(weight), [term], [np.eye(T)], R, observed, weight)


def product_draws(design, R, calls=200):
    """(calls, elements) draws of sum_r w_r e_r e_r' over COPIES of the records, per copy."""
    T = len(R)
    repeated = copies(design, COPIES)
    engine = SerialEngine(structured_equations(repeated, partition(repeated)))
    engine.set_variances([np.eye(T)], R)
    i, j = np.tril_indices(T)
    return np.array(
        [
            engine.residual_products(number, (4, 2), [tuple(range(T))])[0][i, j] / COPIES
            for number in range(1, calls + 1)
        ]
    )


def expected_products(design, R, noise_forgets_weight=False):
    """sum_r E[w e e' | e_observed]: w e^ e^' with e^ filled in, plus the conditional covariance, which the weight
    leaves alone.
    """
    total = np.zeros_like(R)
    for y, w in zip(design.y, design.weight, strict=True):
        o = ~np.isnan(y)
        m = ~o
        B = R[np.ix_(m, o)] @ np.linalg.inv(R[np.ix_(o, o)])
        e = np.zeros(len(R))
        e[o], e[m] = y[o], B @ y[o]
        total += w * np.outer(e, e)
        total[np.ix_(m, m)] += (R[np.ix_(m, m)] - B @ R[np.ix_(o, m)]) * (w if noise_forgets_weight else 1.0)
    return total[np.tril_indices(len(R))]


def test_residual_products_given_the_observed_residuals():
    """All seven missing patterns of three traits, weights from 0.3 to 3."""
    rng = np.random.default_rng(63)
    design = design_of_residuals(R, models.some_observed(rng, 40, 3), rng.uniform(0.3, 3.0, 40))
    assert len(design.patterns) == 7
    draws = product_draws(design, R)
    comparison = compare(draws, expected_products(design, R))
    assert comparison.agrees, comparison
    assert not compare(draws, expected_products(design, R, noise_forgets_weight=True)).agrees
