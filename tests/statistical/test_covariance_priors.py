"""Chains under each prior of a variance against integration over it, and priors of matrices against their marginals."""

from functools import cache, partial

import numpy as np
import pytest
from helpers.monte_carlo import batches, compare
from helpers.selection import first
from reference import dense, models
from scipy import stats

from mmgibbs.draws.gamma import gamma
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.priors import HalfT, InverseWishart, UniformHeritability
from mmgibbs.models.priors.base import CovariancePrior
from mmgibbs.models.priors.mixture import Mixture
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.terms import Effect
from mmgibbs.sampler.covariances import draw_covariance, starting_matrices
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import gibbs_steps

BURN_IN, SWEEPS, KEY = 200, 6000, (7, 0)
LEVELS, RECORDS = 12, 4


class Gammas(CovariancePrior):
    """A prior that has its numbers alone."""

    def __init__(self, mixture):
        self._mixture = mixture

    @classmethod
    def describe(cls, keys):
        return ""

    @property
    def mixture(self):
        return self._mixture


PRIORS = {  # the prior, and its log density of a variance
    "half_t": (HalfT(3.0, np.array([0.8])), lambda s: stats.t.logpdf(np.sqrt(s) / 0.8, 3) - 0.5 * np.log(s)),
    "h2": (UniformHeritability(), partial(stats.betaprime.logpdf, a=1, b=1)),
    "df": (InverseWishart(4.0, np.array([[2.0]])), partial(stats.invgamma.logpdf, a=2, scale=1)),
    "gammas": (
        Gammas(Mixture(3.0, 2.0, 0.7, np.array([0.4]))),
        partial(stats.betaprime.logpdf, a=0.7, b=1.5, scale=0.8),
    ),
}


@cache
def design_of_one_variance():
    line = Effect("", np.repeat(np.arange(LEVELS, dtype=np.int32), RECORDS), (0,))
    terms = [models.random_term("line", [line], Identity(LEVELS), LEVELS)]
    return models.with_records(np.random.default_rng(11), LEVELS * RECORDS, terms, [np.eye(1)], np.eye(1))


def chain(prior):
    """(SWEEPS, 2): log s and s / (1 + s)."""
    covariance = CovarianceModel(np.eye(1), False, full_block(1), prior)
    model = MixedModel(design_of_one_variance(), (covariance,), CovarianceModel(np.eye(1), True, full_block(1)))
    engine = SerialEngine(structured_equations(model.design, partition(model.design)))
    matrices = starting_matrices(model, 0)
    schedule = Schedule(BURN_IN, SWEEPS, interweave=terms_to_interweave(model))
    steps, draws = gibbs_steps(model, engine, schedule, KEY, matrices), []
    for number in range(1, BURN_IN + SWEEPS + 1):
        for step in steps:
            step(number)
        draws.append(matrices.G[0].item())
    s = np.array(draws[BURN_IN:])
    return np.column_stack([np.log(s), s / (1 + s)])


def exact(log_prior):
    axis = np.linspace(-20.0, 9.0, 400)
    log_density = lambda t: (
        dense.log_marginal_likelihood(design_of_one_variance(), [[[np.exp(t)]]], np.eye(1)) + log_prior(np.exp(t)) + t
    )
    weights, *_ = dense.grid_posterior(log_density, [axis])
    assert max(weights[0], weights[-1]) < 1e-4 * weights.max()
    return weights @ axis, weights @ (1 / (1 + np.exp(-axis)))


@pytest.mark.parametrize("name", first(2, ["gammas", "h2", "half_t", "df"]))
def test_one_variance_against_integration(name):
    prior, log_prior = PRIORS[name]
    comparison = compare(batches(chain(prior)), exact(log_prior))
    assert comparison.agrees, comparison


@pytest.mark.slow
def test_a_wrong_shape_is_seen(monkeypatch):
    prior, log_prior = PRIORS["gammas"]
    monkeypatch.setattr(Mixture, "extra_shape", property(lambda self: self.shape + 0.5))
    assert not compare(batches(chain(prior)), exact(log_prior)).agrees


def draw_prior(mixture, sweeps=4000, levels=3):
    """(sweeps, k): shares G_ii / (factor unit_i + G_ii) of a chain of effects, G and auxiliaries without records."""
    k, rng, draws = len(mixture.unit), np.random.default_rng(2), []
    covariance = CovarianceModel(np.eye(k), False, full_block(k), Gammas(mixture))
    G, size = np.eye(k), np.full(k, k)
    for number in range(1, sweeps + 1):
        theta = rng.multivariate_normal(np.zeros(k), G, size=levels)
        of_a = mixture.conditional(G, size)
        w = np.array([gamma(shape, number, i, 5, 0, *KEY) for i, shape in enumerate(of_a.shape)]) / of_a.rate
        given = covariance.given(1 / w if of_a.inverse else w)
        G = draw_covariance(given, theta.T @ theta, levels, number, 0, KEY)
        draws.append(np.diag(G) / (mixture.factor * mixture.unit + np.diag(G)))
    return np.array(draws)


MATRICES = {
    "half_t": HalfT(3.0, np.array([0.8, 2.0])).mixture,
    "gammas": Mixture(3.0, 2.0, 0.7, np.array([0.4, 1.5])),
}


@pytest.mark.parametrize("name", MATRICES)
def test_variances_of_a_matrix_are_beta_prime(name):
    """The share of each is Beta(shape, nu / 2), whatever the other components."""
    mixture = MATRICES[name]
    mean, variance = stats.beta.stats(mixture.shape, mixture.nu / 2)
    shares = draw_prior(mixture)
    if name == "half_t":  # 1 / w ~ IG(1/2, 1/A^2): the same
        assert mixture.is_inverse
    means = batches(np.concatenate([shares, (shares - mean) ** 2], axis=1))
    comparison = compare(means, [mean, mean, variance, variance])
    assert comparison.agrees, comparison
