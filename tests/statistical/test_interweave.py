"""Interweaving leaves the posterior alone: against integration over a grid; whole models are in test_geweke.py.

A chain that redraws G given the standardised effects only, never given the effects, has the same posterior; nothing
hides a wrong Jacobian there. Every such chain has a mutated twin that must fail.
"""

from functools import cache

import numpy as np
import pytest
from helpers.monte_carlo import batches, compare
from helpers.selection import first
from reference import dense, models

from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.scaling import Scaling
from mmgibbs.equations.structured import structured_equations
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.priors import FLAT, InverseWishart
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.terms import Effect
from mmgibbs.sampler import interweave
from mmgibbs.sampler.covariances import TermCovariance, starting_matrices
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import gibbs_steps

SEED = 3
BURN_IN = 200
SWEEPS = 6000


def chain(model):
    """(SWEEPS, parameters) lower triangles of every sampled matrix, drawn given standardised effects alone."""
    engine = SerialEngine(structured_equations(model.design, partition(model.design)))
    matrices = starting_matrices(model, 0)
    schedule = Schedule(BURN_IN, SWEEPS, interweave=terms_to_interweave(model))
    steps = gibbs_steps(model, engine, schedule, (SEED, 0), matrices)
    steps = [step for step in steps if not isinstance(step, TermCovariance)]
    draws = []
    for number in range(1, BURN_IN + SWEEPS + 1):
        for step in steps:
            step(number)
        G = matrices.G[0]
        draws.append(G[np.tril_indices(len(G))])
    return np.array(draws[BURN_IN:])


def without_jacobian(monkeypatch):
    monkeypatch.setattr(interweave, "jacobian_exponents", lambda blocks: np.zeros(sum(map(len, blocks))))


# One effect: integration over its variance


def one_way(seed=11, q=12, n=4):
    rng = np.random.default_rng(seed)
    line = Effect("", np.repeat(np.arange(q, dtype=np.int32), n), (0,))
    return [models.random_term("line", [line], Identity(q), q)], [[[1.0]]], [[2.0]], rng, q * n


def grouped(random_groups, seed=12, n_animals=14, n_groups=4, n=40):
    """A pedigree whose unknown parents are groups: a third of what is drawn, so that a wrong treatment of them
    shows."""
    rng = np.random.default_rng(seed)
    sire, dam = models._grouped_pedigree(rng, n_animals, n_groups)
    animal = Effect("", rng.integers(0, n_animals, n).astype(np.int32), (0,))
    kind = models.pedigree_relationship(sire, dam, n_groups=n_groups, random_groups=random_groups)
    term = models.random_term("genetic", [animal], kind, n_animals + n_groups)
    return [term], [[[2.0]]], [[2.0]], rng, n


CASES = {"one way": one_way, "random groups": lambda: grouped(True), "fixed groups": lambda: grouped(False)}
DF, SCALE = 5.0, np.array([[4.0]])


@cache
def one_variance(case):
    """The model with R known, and the exact posterior mean of its one variance."""
    terms, G, R, rng, n = CASES[case]()
    design = models.with_records(rng, n, terms, [np.array(g) for g in G], R)
    covariance = CovarianceModel(np.array(G[0]), False, full_block(1), InverseWishart(DF, SCALE))
    model = MixedModel(design, (covariance,), CovarianceModel(np.array(R), True, full_block(1)))
    nu, S = covariance.inverse_wishart((0,))
    log_density = lambda t: (
        dense.log_marginal_likelihood(design, [[[np.exp(t)]]], R) + dense.log_inverse_wishart(np.exp(t), nu, S) + t
    )
    axis = np.linspace(-12.0, 9.0, 120)
    weights, *_ = dense.grid_posterior(log_density, [axis])
    # Nothing is cut off, of the mean neither.
    assert max(weights[0], weights[-1] * np.exp(axis[-1])) < 1e-4 * weights.max()
    return model, weights @ np.exp(axis), weights @ axis


def judge(draws, mean, mean_of_log):
    return compare(batches(np.concatenate([draws, np.log(draws)], axis=1)), [mean, mean_of_log])


@pytest.mark.parametrize("case", first(2, ["one way", "fixed groups", "random groups"]))
def test_one_variance_against_integration(case):
    model, *exact = one_variance(case)
    comparison = judge(chain(model), *exact)
    assert comparison.agrees, comparison


@pytest.mark.slow
def test_a_chain_without_the_jacobian_is_seen(monkeypatch):
    model, mean, mean_of_log = one_variance("one way")
    right = chain(model).mean()
    without_jacobian(monkeypatch)
    wrong = chain(model)
    assert not judge(wrong, mean, mean_of_log).agrees
    assert abs(right / mean - 1) < 0.03 and wrong.mean() / mean < 0.92


@pytest.mark.slow
def test_rescaled_fixed_groups_are_seen(monkeypatch):
    model, *exact = one_variance("fixed groups")
    monkeypatch.setattr(Scaling, "_deviations", lambda self, term, theta: theta)
    comparison = judge(chain(model), *exact)
    assert not comparison.agrees, comparison


# Two effects: balanced one-way data, so the level means carry the likelihood and a grid of three axes is cheap


def two_effects(flat=False, q=16, n=4):
    rng = np.random.default_rng(13)
    line = Effect("", np.repeat(np.arange(q, dtype=np.int32), n), (0, 1))
    G, R = np.array([[1.0, 0.4], [0.4, 0.8]]), np.eye(2)
    design = models.with_records(rng, q * n, [models.random_term("line", [line], Identity(q), q)], [G], R)
    prior = FLAT if flat else InverseWishart(6.0, np.array([[3.0, 0.5], [0.5, 2.0]]))
    covariance = CovarianceModel(G, False, full_block(2), prior)
    return (
        MixedModel(design, (covariance,), CovarianceModel(R, True, full_block(2))),
        design.y.reshape(q, n, 2).mean(axis=1),
        n,
    )


def integrated(model, means, n, points=81):
    """Posterior mean of (g11, g12, g22) over log variances and the correlation."""
    nu, S = model.covariances[0].inverse_wishart((0, 1))
    axis, correlation = np.linspace(-3.5, 4.0, points), np.linspace(-0.999, 0.999, points)
    a, b, rho = np.meshgrid(np.exp(axis), np.exp(axis), correlation, indexing="ij")
    c = rho * np.sqrt(a * b)
    products, q = means.T @ means, len(means)

    def log_normal(v11, v12, v22, power, P):
        determinant = v11 * v22 - v12**2
        return -0.5 * (power * np.log(determinant) + (v22 * P[0, 0] + v11 * P[1, 1] - 2 * v12 * P[0, 1]) / determinant)

    log_density = (
        log_normal(a + 1 / n, c, b + 1 / n, q, products) + log_normal(a, c, b, nu + 3, S) + 1.5 * np.log(a * b)
    )
    weights = np.exp(log_density - log_density.max())
    return [float(np.sum(weights * x) / weights.sum()) for x in (a, c, b)]


@pytest.mark.parametrize("flat", [False, True])
def test_two_effects_against_integration(flat):
    model, means, n = two_effects(flat)
    exact = integrated(model, means, n)
    assert integrated(model, means, n, points=61) == pytest.approx(exact, rel=1e-3)
    comparison = compare(batches(chain(model)), exact)
    assert comparison.agrees, comparison


@pytest.mark.slow
def test_two_effects_without_the_jacobian_are_seen(monkeypatch):
    model, means, n = two_effects()
    without_jacobian(monkeypatch)
    comparison = compare(batches(chain(model)), integrated(model, means, n))
    assert not comparison.agrees, comparison
