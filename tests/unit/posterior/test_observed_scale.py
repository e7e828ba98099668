"""Incidences and heritabilities on the observed scale against integration over the breeding value, written apart."""

import numpy as np
import pytest
from helpers.mutants import mutant
from scipy import integrate, stats

from mmgibbs.models.families import Categories, Count
from mmgibbs.posterior import observed_scale as module

ETA = np.array([-0.7, 0.1, 0.1, 1.3])  # of four records
V = np.array([2.2, 2.2, 2.2, 3.1])  # the last one meets an effect more
DIRECT = 0.6
CUTS = np.array([-np.inf, 0.0, 0.8, 1.9, np.inf])
SCORES = np.array([1.0, 2.0, 3.0, 5.0])


def by_integration(of_record, variance_of_record, eta, v, direct):
    """(mean, h2) of records whose mean given breeding value a is of_record(a, eta, v); a ~ N(0, direct).

    h2 = cov(y, a)^2 / (direct var(y)): what a linear prediction from breeding values explains.
    """
    sd = np.sqrt(direct)
    mean, cov, squares = 0.0, 0.0, 0.0
    for e, variance in zip(eta, v, strict=True):
        over = lambda f: integrate.quad(lambda a: f(a) * stats.norm.pdf(a, 0, sd), -9 * sd, 9 * sd, epsabs=1e-12)[0]
        mean += over(lambda a, e=e, v=variance: of_record(a, e, v)) / len(eta)
        cov += over(lambda a, e=e, v=variance: a * of_record(a, e, v)) / len(eta)
        squares += over(lambda a, e=e, v=variance: variance_of_record(a, e, v)) / len(eta)  # E[y^2 | a]
    return mean, cov**2 / direct / (squares - mean**2)


def in_category(k):
    def p(a, eta, v):
        sd = np.sqrt(v - DIRECT)
        return stats.norm.cdf((CUTS[k + 1] - eta - a) / sd) - stats.norm.cdf((CUTS[k] - eta - a) / sd)

    return p


def test_categories():
    p, psi = module.category_moments(ETA, V, CUTS, np.full(4, 0.25))
    h2 = module.heritability_of_categories(p, psi, DIRECT)
    for k in range(4):
        exact = by_integration(in_category(k), in_category(k), ETA, V, DIRECT)
        np.testing.assert_allclose((p[k], h2[k]), exact, rtol=1e-9)
    assert p.sum() == pytest.approx(1.0)


def test_scores():
    p, psi = module.category_moments(ETA, V, CUTS, np.full(4, 0.25))
    mean = lambda a, e, v: sum(s * in_category(k)(a, e, v) for k, s in enumerate(SCORES))
    squares = lambda a, e, v: sum(s**2 * in_category(k)(a, e, v) for k, s in enumerate(SCORES))
    exact = by_integration(mean, squares, ETA, V, DIRECT)
    np.testing.assert_allclose((SCORES @ p, module.heritability_of_scores(p, psi, SCORES, DIRECT)), exact, rtol=1e-9)


def test_counts():
    """y | l ~ Poisson(exp(l)): E[y^2 | a] = E[exp(l) + exp(2 l) | a]."""
    eta, v = ETA * 0.3, V * 0.2
    direct = 0.1
    mean = lambda a, e, v: np.exp(e + a + (v - direct) / 2)
    squares = lambda a, e, v: mean(a, e, v) + np.exp(2 * (e + a) + 2 * (v - direct))
    exact = by_integration(mean, squares, eta, v, direct)
    found, variance = Count.find_moments(eta, v, np.full(4, 0.25))
    np.testing.assert_allclose((found, found**2 * direct / variance), exact, rtol=1e-9)


def population(of=module, residual=1.0):
    """One kind of record with eta 1.5 and a genetic variance of .5 beside the residual."""
    fixed = of.FixedContribution(0, np.array([0]), np.array([0]), np.ones((1, 1)))
    one = np.zeros(1, np.int64)
    return of.Population(0, np.ones(1), (fixed,), np.zeros(1), 0.0, one, (("G.1", np.ones((1, 1, 1))),), one)


def vignette(of=module):
    """QGglmm's ordinal example: mu 1.5, va .5, thresholds 0 and 2; its variance of 1 less is our V of 2."""
    people = population(of)
    scale = of.ObservedScale("o", "l", ("",) * 6, people, Categories, 3, (), ("G.1", 0))
    eta = people.fixed_predictor([np.array([[1.5]])])
    V = people.variance({"G.1": np.array([[0.5]])}, np.array([1.5]))
    return of.observed_values(scale, eta, V, np.array([-np.inf, 0, 2, np.inf]), 0.5)


QGGLMM = [0.1444222, 0.4937410, 0.3618368, 0.10454071, 0.02174819, 0.15206485]


def test_the_vignette_of_qgglmm_ordinal():
    """de Villemereuil et al. (2016), printed by the vignette of their program."""
    np.testing.assert_allclose(vignette(), QGGLMM, atol=1e-7)


def test_a_forgotten_residual_variance_is_noticed():
    spoilt = mutant(module, "V = residual[self.residual_class].astype(float)", "V = 0 * residual[self.residual_class]")
    assert np.abs(vignette(spoilt) - QGGLMM).max() > 0.01


def test_names():
    name = module.observed_names
    assert name("alive", "", ("no", "yes"), True, False) == ("incidence[alive]", "h2_observed[alive]")
    assert name("cases", "|indoor", (), True, False) == ("h2_observed[cases|indoor]",)
    assert name("cases", "", (), False, False) == ()
    assert name("ease", "", ("1", "2", "3"), True, True)[3:] == (
        "h2_observed[ease:1]",
        "h2_observed[ease:2]",
        "h2_observed[ease:3]",
        "h2_observed[ease]",
    )
