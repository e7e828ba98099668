"""Which factors are active (`factors: auto`): draws leave the joint distribution of parameters and effects as it is,
and the number of active factors is calibrated.
"""

import numpy as np
import pytest
from helpers.goodness import agree, transform_z
from helpers.mutants import mutant
from scipy import stats

from mmgibbs.models.structures import shrunken_factors
from mmgibbs.models.structures.factor_analytic import FactorAnalytic
from mmgibbs.models.structures.shrunken_factors import (
    SLAB_RATE,
    SLAB_SHAPE,
    SPIKE,
    ShrunkenFactors,
    max_active_factors,
)

K, H, Q, NU = 4, 3, 9, 5.0
SIZE = np.array([0.7, 1.0, 1.6, 1.0])
STRUCTURE = ShrunkenFactors(K, H, False, 0.5 * SIZE, SIZE, NU)
# v_l is uniform: P(0) = E v_1 - E v_1 (1 - v_1) E(1 - v_2), P(2) = E (1 - v_1)^2 E(1 - v_2)
PRIOR = np.array([5 / 12, 5 / 12, 1 / 6])


def draw_prior(rng):
    v = np.append(rng.random(H - 1), 1.0)
    pi = np.cumsum(v * np.append(1.0, np.cumprod(1.0 - v[:-1])))
    slab = SLAB_RATE / rng.standard_gamma(SLAB_SHAPE, H)
    theta = np.where(rng.random(H) < pi, SPIKE, slab)
    L = rng.standard_normal((K, H)) * SIZE[:, None] * np.sqrt(theta)
    log_sd = np.log(np.abs(rng.standard_t(NU, K)) * 0.5 * SIZE)
    return STRUCTURE.join(np.append(L.ravel(), log_sd), theta, v)


def effects(phi, rng):
    return rng.standard_normal((Q, K)) @ np.linalg.cholesky(STRUCTURE.matrix(phi)).T


def draw(phi, S, rng, module):
    """Loadings and specific variances, then which factors are active."""
    drawn = FactorAnalytic.draw_round(STRUCTURE, S, Q, phi, rng)
    return module.ShrunkenFactors.draw_number(STRUCTURE, S, Q, drawn, rng)


def after_draws(module=shrunken_factors, replicates=600, seed=2):
    """z of loadings, sticks and the number of active factors after two draws given the effects."""
    rng = np.random.default_rng(seed)
    phis = []
    for _ in range(replicates):
        phi = draw_prior(rng)
        theta = effects(phi, rng)
        for _ in range(2):
            phi = draw(phi, theta.T @ theta, rng, module)
        phis.append(phi)
    phis = np.array(phis)
    x = STRUCTURE.loadings(phis) / np.array([STRUCTURE.prior_sd(phi) for phi in phis])
    columns = [stats.norm.cdf(x[:, i, j]) for i in range(K) for j in range(H)]
    columns += [stats.chi2(K).cdf(np.sum(x[:, :, j] ** 2, axis=1)) for j in range(H)]
    columns += list(np.array([STRUCTURE.sticks(phi)[:-1] for phi in phis]).T)
    n = np.sum(STRUCTURE.is_active(phis), axis=1)
    shares = [(np.mean(n == j) - p) / np.sqrt(p * (1 - p) / replicates) for j, p in enumerate(PRIOR)]
    slabs = STRUCTURE.theta(phis)[STRUCTURE.is_active(phis)]
    return [
        *map(transform_z, columns),
        *shares[:-1],
        transform_z(stats.invgamma(SLAB_SHAPE, scale=SLAB_RATE).cdf(slabs)),
    ]


def test_draws_given_effects():
    assert agree(after_draws())


MUTANTS = {
    "every proposal is accepted": ("if log_u < then - now:", "if True:"),
    "the density of a spike lacks its scale": ("-0.5 * (k * np.log(2 * np.pi * SPIKE) +", "-0.5 * ("),
    "sticks without their counts": ("rng.beta(1.0 + counts[:-1],", "rng.beta(1.0 + 0 * counts[:-1],"),
    "theta as if it had no loadings": ("rng.standard_gamma(SLAB_SHAPE + k / 2)", "rng.standard_gamma(SLAB_SHAPE)"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_draws_are_noticed(name):
    assert not agree(after_draws(mutant(shrunken_factors, *MUTANTS[name])))


def calibration(module=shrunken_factors, replicates=80, draws=40, seed=4):
    """(replicates,) rank of the true number among its draws, ties broken at random, as a share."""
    rng = np.random.default_rng(seed)
    ranks = []
    for _ in range(replicates):
        true = draw_prior(rng)
        theta = effects(true, rng)
        S, phi, numbers = theta.T @ theta, draw_prior(rng), []
        for number in range(2 * draws):
            phi = draw(phi, S, rng, module)
            if number >= draws:
                numbers.append(np.sum(STRUCTURE.is_active(phi)))
        n, numbers = np.sum(STRUCTURE.is_active(true)), np.array(numbers)
        ranks.append((np.sum(numbers < n) + rng.random() * (1 + np.sum(numbers == n))) / (len(numbers) + 1))
    return np.array(ranks)


def test_the_number_is_calibrated():
    assert stats.kstest(calibration(), "uniform").pvalue > 1e-3


@pytest.mark.slow
def test_a_number_that_is_not_calibrated_is_noticed():
    spoilt = mutant(
        shrunken_factors,
        "log_omega + np.where(",
        "0.0 * log_omega + np.where(np.arange(H) == 0, -3.0, 3.0) + np.where(",
    )
    assert stats.kstest(calibration(spoilt), "uniform").pvalue < 1e-3


def test_how_many_factors_components_determine():
    assert [max_active_factors(k) for k in (2, 3, 4, 5, 6, 10, 40)] == [0, 1, 1, 2, 3, 6, 10]
    assert shrunken_factors.EXPECTED_FACTORS == 1.0  # the probabilities above are those of this value
