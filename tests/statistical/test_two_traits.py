"""Two traits, half of the second missing at random, animals from a looped pedigree, weights, fixed variances: the whole
posterior.

The dense equations give mean and covariance exactly. The case stands COPIES times in one design (support.copies), so
every sweep draws that many independent chains at once; every mean and every element of the covariance matrix is
compared.
"""

import numpy as np
import pytest
from helpers.monte_carlo import compare
from helpers.support import chain, copies, mixed_model
from reference import dense, models

from mmgibbs.config.sampling import TOLERANCES
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations

COPIES = 150
G, R = [None, None, np.array([[6.0, 3.0], [3.0, 5.0]])], np.array([[8.0, 3.0], [3.0, 10.0]])


def make_design():
    rng = np.random.default_rng(2041)
    n_animals, n = 30, 40
    sire, dam = models.looped_pedigree(rng, n_animals, 5)
    animal = np.concatenate([np.arange(5, n_animals), rng.integers(5, n_animals, n - n_animals + 5)]).astype(np.int32)
    observed = np.ones((n, 2), bool)
    observed[rng.permutation(n)[: n // 2], 1] = False
    terms = [
        models.class_term("herd", np.arange(n) % 3, 3, [0, 1]),
        models.class_term("season", np.arange(n) // 3 % 2, 2, [1], active=models.without_first_level(2, 1)),
        models.random_term(
            "genetic", [models.Effect("", animal, (0, 1))], models.pedigree_relationship(sire, dam), n_animals
        ),
    ]
    return models.with_records(rng, n, terms, G, R, observed, rng.uniform(0.5, 2.0, n))


DESIGN = make_design()
EXACT = dense.build(DESIGN, G, R)


def test_the_case_is_the_one_meant():
    assert 60 <= EXACT.size <= 100
    assert np.isnan(DESIGN.y[:, 1]).mean() == 0.5 and not np.isnan(DESIGN.y[:, 0]).any()
    assert DESIGN.terms[2].relationship.relatives.inbreeding.max() > 0.1


def test_blup_is_the_dense_solution():
    engine = PcgSolver(structured_equations(DESIGN, partition(DESIGN)))
    engine.set_variances(G, R)
    solution = EXACT.vector(engine.solve(TOLERANCES["blup"]).theta)
    np.testing.assert_allclose(solution, EXACT.solution, rtol=1e-8, atol=1e-8 * np.abs(EXACT.solution).max())


def posterior_against_exact(sweeps, **options):
    """Every mean, and every element on and below the diagonal of the covariance matrix, about the exact mean."""
    size = EXACT.size
    total, products, count = np.zeros((COPIES, size)), np.zeros((COPIES, size, size)), [0]
    active = np.concatenate(
        [np.ones(t.n_levels * t.n_components, bool) if t.active is None else t.active.ravel() for t in DESIGN.terms]
    )

    def add(engine, _):
        theta = np.concatenate([t.reshape(COPIES, -1) for t in engine.fetch()], axis=1)[:, active]
        deviation = theta - EXACT.solution
        total[:] += deviation
        products[:] += deviation[:, :, None] * deviation[:, None, :]
        count[0] += 1

    chain(mixed_model(copies(DESIGN, COPIES), G, R), sweeps, burn_in=600, thin=4, each=add, **options)
    lower = np.tril_indices(size)
    means, covariances = total / count[0], products[:, *lower] / count[0]
    return compare(means, np.zeros(size)), compare(covariances, EXACT.covariance[lower])


@pytest.mark.slow
@pytest.mark.parametrize("update", ["level", pytest.param("site", marks=pytest.mark.slow)])
def test_gibbs_mean_and_covariance_matrix(update):
    means, covariances = posterior_against_exact(1800, update=update)
    assert means.agrees, means
    assert covariances.agrees, covariances


def part_of_the_inverse(engine):
    """R_r^-1 as a part of R^-1 where a trait is missing, not the inverse of a part of R."""
    set_variances = engine.set_variances

    def wrong(G, R):
        set_variances(G, R)
        observed = engine.equations.design.patterns
        engine.Rinv = np.where(observed[:, :, None] & observed[:, None, :], np.linalg.inv(R), 0.0)

    engine.set_variances = wrong


def genetic_covariance_halved(engine):
    set_variances = engine.set_variances
    engine.set_variances = lambda G, R: set_variances([g if g is None else g * [[1, 0.5], [0.5, 1]] for g in G], R)


@pytest.mark.slow
@pytest.mark.parametrize("mutate", [part_of_the_inverse, genetic_covariance_halved])
def test_a_spoiled_sampler_is_seen(mutate):
    means, covariances = posterior_against_exact(1200, mutate=mutate)
    assert not means.agrees or not covariances.agrees
