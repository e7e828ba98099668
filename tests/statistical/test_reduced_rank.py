"""Sweeps and loadings of a covariance matrix without an inverse: at known variances against the exact posterior, with
loadings by the joint distribution of parameters, effects and records; serial and structured sweeps are one chain.
"""

from dataclasses import replace

import numpy as np
import pytest
from helpers.goodness import agree, transform_z
from helpers.monte_carlo import batches, compare, with_squares
from helpers.mutants import mutant
from helpers.selection import first
from reference import dense, models
from scipy import stats

from mmgibbs.engines import scores as sweeps
from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.scores import ScoresLikelihood
from mmgibbs.models.covariance import CovarianceModel, blocks_recorded_together, full_block, join_all
from mmgibbs.models.priors.inverse_wishart import InverseWishart
from mmgibbs.models.residual import stack_classes
from mmgibbs.models.structures.reduced_rank import ReducedRank, factor_of_rank
from mmgibbs.models.terms import Effect, Related
from mmgibbs.sampler import reduced_rank
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule

KEY = (7, 0)


def with_rank(name, rank):
    example = models.example(name)
    i = int(np.argmax([0 if g is None else len(g) for g in example.G]))
    terms, G = list(example.design.terms), list(example.G)
    terms[i] = replace(terms[i], prior=Related(terms[i].relationship, rank))
    L = factor_of_rank(G[i], rank)
    G[i] = L @ L.T
    return replace(example, design=replace(example.design, terms=tuple(terms)), G=G), i


def sampled_model(example, term, rank):
    """All variances move; loadings as ReducedRank says."""
    covariances = []
    for i, g in enumerate(example.G):
        if g is None:
            covariances.append(None)
        elif i == term:
            structure = ReducedRank(len(g), rank, np.sqrt(np.diag(g)))
            covariances.append(CovarianceModel(g, False, full_block(len(g)), structure=structure))
        else:
            covariances.append(
                CovarianceModel(g, False, full_block(len(g)), prior=InverseWishart(len(g) + 4.0, 3.0 * g))
            )
    blocks = blocks_recorded_together(example.design.patterns)
    T = example.design.n_traits
    residual = CovarianceModel(example.R, False, blocks, prior=InverseWishart(T + 4.0, 3.0 * np.asarray(example.R)))
    return MixedModel(example.design, tuple(covariances), residual)


@pytest.mark.parametrize("name, rank", first(1, [("three_traits_maternal", 2), ("genomic_relationships", 1)]))
def test_effects_at_known_variances(name, rank):
    example, i = with_rank(name, rank)
    likelihood = ScoresLikelihood(example.design, join_all(example.G))
    point = likelihood.evaluate(Variances(list(example.G), stack_classes(example.R)))
    variance = np.zeros(likelihood.layout.size)
    variance[likelihood.layout.active] = point.inverse_diagonal
    engine = SerialEngine(structured_equations(example.design, partition(example.design)))
    engine.set_variances(example.G, example.R)
    draws = []
    for number in range(1, 12_001):
        engine.sweep(number, KEY)
        draws.append(engine.theta[i].ravel().copy())
    order = engine.equations.terms[i].code
    mean = point.solutions[i][order].ravel()
    exact = np.concatenate([mean, likelihood.layout.split(variance)[i][order].ravel()])
    found = compare(batches(with_squares(np.array(draws), mean)), exact)
    assert found.agrees, found


K, F, Q, RECORDS = 3, 2, 9, 2
SD = np.array([0.7, 1.0, 1.6])


def small_design():
    """Each of Q related levels has RECORDS records of each of K traits, every record of one of them."""
    rng = np.random.default_rng(5)
    sire, dam = models.looped_pedigree(rng, Q, 4)
    level = np.repeat(np.arange(Q, dtype=np.int32), K * RECORDS)
    trait = np.tile(np.repeat(np.arange(K), RECORDS), Q)
    observed = np.eye(K, dtype=bool)[trait]
    effect = Effect("", level, tuple(range(K)))
    term = models.random_term("line", [effect], models.pedigree_relationship(sire, dam), Q)
    term = replace(term, prior=Related(term.relationship, F))
    return models.with_records(rng, len(level), [term], [np.eye(K)], np.eye(K), observed)


def after_sweeps(module=reduced_rank, sweep_module=sweeps, replicates=500, seed=3):
    """z of loadings, effects and residuals after two sweeps from the joint distribution."""
    design, rng = small_design(), np.random.default_rng(seed)
    structure = ReducedRank(K, F, SD)
    covariance = CovarianceModel(np.eye(K), False, full_block(K), structure=structure)
    R = np.diag([0.5, 1.0, 2.0])
    residual = CovarianceModel(R, True, blocks_recorded_together(design.patterns))
    model = MixedModel(design, (covariance,), residual)
    engine = SerialEngine(structured_equations(design, partition(design)))
    engine.sweeps = [sweep_module.ScoreSweep(engine.equations, engine.equations.partition.blocks[0])]
    K_inverse = dense.relationship_inverse(design.terms[0])
    root = np.linalg.cholesky(np.linalg.inv(K_inverse))
    W = dense.incidence(design.terms[0], K)
    seen = ~np.isnan(design.y)
    loadings, norms, sizes, residuals = [], [], [], []
    for replicate in range(replicates):
        L = rng.standard_normal((K, F)) * SD[:, None]
        theta = root @ rng.standard_normal((Q, F)) @ L.T
        y = W @ theta.ravel() + rng.standard_normal((len(seen), K)) * np.sqrt(np.diag(R))
        engine.start([theta])
        for t in range(K):
            engine.replace_y(t, y[:, t])
        matrices = {"G.0": np.eye(K)}
        step = module.ReducedRankCovariance(model, 0, engine, matrices, (replicate, 0))
        step.phi, matrices["G.0"] = L.ravel(), L @ L.T
        for number in (1, 2):
            engine.set_variances([matrices["G.0"]], R)
            engine.sweep(number, (replicate, 0))
            step(number)
        L = step.phi.reshape(K, F)
        loadings.append(stats.norm.cdf(L / SD[:, None]).ravel())
        norms.append(stats.chi2(F).cdf(np.sum((L / SD[:, None]) ** 2, axis=1)))
        s = engine.fetch()[0] @ np.linalg.pinv(L).T
        sizes.append(stats.chi2(Q * F).cdf(np.trace(s.T @ K_inverse @ s)))
        e = np.where(seen, y - W @ (s @ L.T).ravel(), 0.0) / np.sqrt(np.diag(R))
        residuals.append(stats.chi2(seen.sum()).cdf(np.sum(e**2)))
    columns = np.concatenate([np.array(loadings).T, np.array(norms).T, [sizes], [residuals]])
    return [transform_z(column) for column in columns]


def test_loadings_effects_and_records_keep_their_distribution():
    assert agree(after_sweeps())


MUTANTS = {
    "the prior of loadings is left out": (
        reduced_rank,
        "P = H + np.diag(precision)",
        "P = H + 1e-9 * np.diag(precision)",
    ),
    "a basis without its Jacobian": (reduced_rank, "chisquare(q - k - np.arange(f))", "chisquare(q - np.arange(f))"),
    "scores of twice the precision": (sweeps, "kappa if i == j else 0.0", "2.0 * kappa if i == j else 0.0"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_steps_are_noticed(name):
    module, right, wrong = MUTANTS[name]
    spoilt = mutant(module, right, wrong)
    spoilt = {"module": spoilt} if module is reduced_rank else {"sweep_module": spoilt}
    assert not agree(after_sweeps(**spoilt))


SCHEDULE = Schedule(burn_in=5, samples=14, thin=2, refresh_every=4, chains=1)


def chain_of(engine, state=None):
    example, i = with_rank("three_traits_maternal", 2)
    equations = structured_equations(example.design, partition(example.design, "colour"))
    return Chain(sampled_model(example, i, 2), engine(equations), SCHEDULE, KEY, state)


def test_serial_and_structured_sweeps_are_one_chain():
    results = []
    for engine in (
        SerialEngine,
        lambda eq: StructuredEngine(eq, threads=1),
        lambda eq: StructuredEngine(eq, threads=2),
    ):
        chain = chain_of(engine)
        chain.advance(SCHEDULE.n_sweeps)
        results.append(chain.result().draws)
    for name in results[0]:
        np.testing.assert_allclose(results[1][name], results[0][name], rtol=1e-8, atol=1e-10)
        np.testing.assert_array_equal(results[2][name], results[1][name])


def test_a_chain_that_goes_on_is_the_same():
    whole, paused = chain_of(SerialEngine), chain_of(SerialEngine)
    whole.advance(SCHEDULE.n_sweeps)
    paused.advance(8)
    second = chain_of(SerialEngine, {name: np.array(array) for name, array in paused.state().items()})
    second.advance(SCHEDULE.n_sweeps)
    for name, values in whole.result().draws.items():
        np.testing.assert_array_equal(second.result().draws[name], values)
