"""The joint draw of the variances of two competing terms leaves the posterior alone: against integration over a grid,
where it alone draws these variances, and against the chain without it. Each has a mutated twin that must fail.
"""

from functools import cache

import numpy as np
import pytest
from helpers.monte_carlo import batches, compare
from reference import dense, models

from mmgibbs.engines import competing as levels
from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.model.covariance import CovarianceModel, diagonal_blocks, full_block
from mmgibbs.model.relationships.identity import Identity
from mmgibbs.model.terms import Effect
from mmgibbs.sampler import competing
from mmgibbs.sampler.competing import CompetingVariances, competing_terms
from mmgibbs.sampler.covariances import TermCovariance, starting_matrices
from mmgibbs.sampler.interweave import Interweaving, terms_to_interweave
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import gibbs_steps

SEED, BURN_IN = 5, 200


def chain(model, sweeps, kind, seed=SEED, engine=SerialEngine):
    """(sweeps, parameters): lower triangles of every sampled matrix. kind: 'without' the joint draw, 'with' it, or it
    'alone'."""
    engine = engine(structured_equations(model.design, partition(model.design, engine.partitions[0])))
    matrices = starting_matrices(model, 0)
    joint = () if kind == "without" else competing_terms(model)
    schedule = Schedule(BURN_IN, sweeps, interweave=terms_to_interweave(model), competing=joint)
    steps = gibbs_steps(model, engine, schedule, (seed, 0), matrices)
    assert kind == "without" or any(isinstance(step, CompetingVariances) for step in steps)
    if kind == "alone":
        steps = [step for step in steps if not isinstance(step, TermCovariance | Interweaving)]
    sampled = [i for i in model.random_terms if not model.covariances[i].fixed]
    draws = []
    for number in range(1, BURN_IN + sweeps + 1):
        for step in steps:
            step(number)
        now = [matrices.G[i] for i in sampled] + ([] if model.residual.fixed else [matrices.R])
        draws.append(np.concatenate([m[np.tril_indices(len(m))] for m in now]))
    return np.array(draws[BURN_IN:])


def repeated(rng, n_animals, n, related_p=False):
    """Animals of an inbred line with several records each, some with none, and their permanent environment."""
    sire, dam = models.looped_pedigree(rng, n_animals, n_animals // 3)
    animal = rng.integers(n_animals // 4, n_animals, n).astype(np.int32)
    K = models.pedigree_relationship(sire, dam)
    other = Identity(n_animals)
    if related_p:  # a sparse inverse that joins some of the levels that A^-1 does not
        joins = np.eye(n_animals) * 1.6
        for i in range(0, n_animals - 3, 2):
            joins[i, i + 3] = joins[i + 3, i] = -0.4
        other = models.user_inverse(joins)
    return K, other, animal


def one_trait(related_p):
    rng = np.random.default_rng(31 + related_p)
    K, other, animal = repeated(rng, 24, 70, related_p)
    terms = [
        models.class_term("herd", np.arange(70) % 2, 2, [0]),
        models.random_term("genetic", [Effect("", animal, (0,))], K, 24),
        models.random_term("permanent", [Effect("", animal, (0,))], other, 24),
    ]
    return terms, [None, [[2.0]], [[1.5]]], [[1.0]], rng, 70


@cache
def two_variances(related_p):
    """The model with R known, and the exact posterior means of both variances and of their logarithms."""
    terms, G, R, rng, n = one_trait(related_p)
    design = models.with_records(rng, n, terms, [None if g is None else np.array(g) for g in G], R)
    prior = lambda g: CovarianceModel(np.array(g), False, full_block(1), 4.0, 2.0 * np.array(g))
    covariances = (None, prior(G[1]), prior(G[2]))
    model = MixedModel(design, covariances, CovarianceModel(np.array(R), True, full_block(1)))

    def log_density(s, t):
        found = dense.log_marginal_likelihood(design, [None, [[np.exp(s)]], [[np.exp(t)]]], R) + s + t
        for covariance, x in zip(covariances[1:], (s, t), strict=True):
            found += dense.log_inverse_wishart(np.exp(x), *covariance.prior((0,)))
        return found

    axes = [np.linspace(-2.5, 4.0, 45)] * 2
    weights, *_ = dense.grid_posterior(log_density, axes)
    assert max(weights[0].max(), weights[-1].max(), weights[:, 0].max(), weights[:, -1].max()) < 1e-4 * weights.max()
    marginal = [weights.sum(axis=1), weights.sum(axis=0)]
    return model, np.array([m @ np.exp(axes[0]) for m in marginal] + [m @ axes[0] for m in marginal])


def judge(draws, exact):
    return compare(batches(np.concatenate([draws, np.log(draws)], axis=1)), exact)


@pytest.mark.parametrize("related_p", [False, True])
@pytest.mark.parametrize("engine", [SerialEngine, pytest.param(StructuredEngine, marks=pytest.mark.slow)])
def test_two_variances_against_integration(related_p, engine):
    model, exact = two_variances(related_p)
    comparison = judge(chain(model, 4000, "alone", engine=engine), exact)
    assert comparison.agrees, comparison


def test_levels_of_unequal_diagonals_in_one_bin(monkeypatch):
    """The walk on bins is corrected by what each level says."""
    model, exact = two_variances(False)
    monkeypatch.setattr(levels, "BINS", 2)
    comparison = judge(chain(model, 4000, "alone"), exact)
    assert comparison.agrees, comparison


def test_bins_that_are_not_corrected_are_seen(monkeypatch):
    model, exact = two_variances(False)
    monkeypatch.setattr(levels, "BINS", 1)
    monkeypatch.setattr(
        levels, "in_bins", lambda kappa, right=levels.in_bins: (*right(kappa)[:2], 3.0 * right(kappa)[2], True)
    )
    assert not judge(chain(model, 4000, "alone"), exact).agrees


def test_a_chain_without_the_jacobian_is_seen(monkeypatch):
    model, exact = two_variances(False)
    right = CompetingVariances._prior

    def wrong(self):
        S_a, S_p, linear = right(self)
        linear[competing.EFFECTS] = 0.0
        return S_a, S_p, linear

    monkeypatch.setattr(CompetingVariances, "_prior", wrong)
    assert not judge(chain(model, 4000, "alone"), exact).agrees


# Several components: against the chain without it


def two_traits():
    rng = np.random.default_rng(33)
    K, other, animal = repeated(rng, 40, 120)
    effect = Effect("", animal, (0, 1))
    terms = [
        models.class_term("herd", np.arange(120) % 3, 3, [0, 1]),
        models.random_term("genetic", [effect], K, 40),
        models.random_term("permanent", [effect], other, 40),
    ]
    G = [None, np.array([[2.0, 0.6], [0.6, 1.5]]), np.array([[1.0, -0.3], [-0.3, 1.2]])]
    R = np.array([[1.0, 0.2], [0.2, 1.0]])
    return models.with_records(rng, 120, terms, G, R, models.some_observed(rng, 120, 2)), G, R


def maternal():
    """Direct and maternal effects and a maternal environment: one component of a goes with that of p."""
    rng = np.random.default_rng(34)
    sire, dam = models.looped_pedigree(rng, 60, 20)
    animal = rng.integers(10, 60, 150).astype(np.int32)
    effects = [Effect("direct", animal, (0,)), Effect("maternal", dam[animal], (0,))]
    terms = [
        models.class_term("herd", np.arange(150) % 3, 3, [0]),
        models.random_term("genetic", effects, models.pedigree_relationship(sire, dam), 60),
        models.random_term("environment", [Effect("", dam[animal], (0,))], Identity(60), 60),
    ]
    G, R = [None, np.array([[4.0, -0.5], [-0.5, 3.0]]), np.array([[1.5]])], np.array([[4.0]])
    return models.with_records(rng, 150, terms, G, R), G, R


def whole_model(make, blocks=full_block):
    design, G, R = make()
    if blocks is diagonal_blocks:
        G = [None if g is None else np.diag(np.diag(g)) for g in G]
    prior = lambda start, b=full_block: CovarianceModel(start, False, b(len(start)), len(start) + 4.0, 2.0 * start)
    return MixedModel(design, tuple(None if g is None else prior(g, blocks) for g in G), prior(R))


def against_without(model, sweeps):
    without = batches(chain(model, 2 * sweeps, "without", seed=SEED + 1))
    error = without.std(axis=0, ddof=1) / np.sqrt(len(without))
    draws = chain(model, sweeps, "with")
    moving = draws.std(axis=0) > 0  # not what is 0 in a diagonal matrix
    return compare(batches(draws)[:, moving], without.mean(axis=0)[moving], error[moving])


CASES = [
    pytest.param(two_traits, full_block, id="two traits"),
    pytest.param(two_traits, diagonal_blocks, id="two traits, diagonal", marks=pytest.mark.slow),
    pytest.param(maternal, full_block, id="maternal"),
]


@pytest.mark.parametrize("make, blocks", CASES)
def test_the_posterior_is_that_of_the_chain_without(make, blocks):
    comparison = against_without(whole_model(make, blocks), 3000)
    assert comparison.agrees, comparison


@pytest.mark.parametrize("make", [two_traits, maternal])
def test_a_wrong_joint_draw_of_several_components_is_seen(monkeypatch, make):
    right = CompetingVariances._prior

    def wrong(self):
        S_a, S_p, linear = right(self)
        linear[competing.SD_A] *= 0.8
        return S_a, S_p, linear

    monkeypatch.setattr(CompetingVariances, "_prior", wrong)
    comparison = against_without(whole_model(make), 3000)
    assert not comparison.agrees, comparison
