"""Simulation-based calibration: three traits, direct and maternal effects, maternal environment, missing traits,
weights.

Truth drawn from the proper priors, records drawn from the truth: then the rank of the truth among (nearly independent)
draws of its own posterior is uniform, for every parameter (Cook, Gelman & Rubin 2006; Talts et al. 2018). Variances and
locations are ranked, over many data sets; a chi-square test per parameter, corrected for their number.
"""

from functools import cache

import numpy as np
import pytest
from helpers.joint_distribution import Joint
from helpers.support import chain, mixed_model
from joblib import Parallel, delayed
from reference import models
from scipy import stats

ALPHA = 1e-3
DRAWS = 15  # ranks 0 to 15


def prior(k, df, variances, correlation=0.3):
    """(df, scale) with the given prior means."""
    sd = np.sqrt(np.asarray(variances, float))
    mean = np.outer(sd, sd) * (correlation + (1 - correlation) * np.eye(k))
    return float(df), mean * (df - k - 1)


def random_mating(rng, n, founders):
    """Parents are any earlier animals, even ones sires, odd ones dams; a few dams are unknown."""
    sire, dam = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    for i in range(founders, n):
        sire[i], dam[i] = 2 * rng.integers(0, i // 2), 2 * rng.integers(0, i // 2) + 1
    dam[[founders, founders + 5]] = -1
    return sire, dam


@cache
def beef(n_animals=40, n=50) -> Joint:
    """Direct effects on three traits and a maternal one on the second (k = 4), maternal environment, all seven missing
    patterns, weights.
    """
    rng = np.random.default_rng(81)
    sire, dam = random_mating(rng, n_animals, 12)
    animal = np.concatenate([np.arange(12, n_animals), rng.integers(12, n_animals, n - n_animals + 12)]).astype(
        np.int32
    )
    mother = dam[animal]
    dams, environment = np.unique(mother, return_inverse=True)
    assert dams[0] == -1  # some dams are unknown: those records meet no maternal level
    genetic = [models.Effect("direct", animal, (0, 1, 2)), models.Effect("maternal", mother, (1,))]
    terms = [
        models.class_term("group", np.arange(n) % 4, 4, [0, 1, 2], prior_precision=np.eye(3)),
        models.random_term("genetic", genetic, models.pedigree_relationship(sire, dam), n_animals),
        models.random_term(
            "environment",
            [models.Effect("", (environment - 1).astype(np.int32), (1,))],
            models.Identity(len(dams) - 1),
            len(dams) - 1,
        ),
    ]
    observed, weight = models.some_observed(rng, n, 3), rng.uniform(0.4, 2.5, n)
    design = models.with_records(rng, n, terms, [None, np.eye(4), np.eye(1)], np.eye(3), observed, weight)
    return Joint(design, (None, prior(4, 12, [4, 6, 5, 3]), prior(1, 8, [2])), prior(3, 12, [8, 12, 10]))


@cache
def tiny() -> Joint:
    """One trait, one herd, five animals with two records each."""
    rng = np.random.default_rng(82)
    sire, dam = models.looped_pedigree(rng, 8, 3)
    animal = np.repeat(np.arange(3, 8), 2).astype(np.int32)
    terms = [
        models.class_term("herd", np.zeros(10), 1, [0], prior_precision=np.array([[0.2]])),
        models.random_term("genetic", [models.Effect("", animal, (0,))], models.pedigree_relationship(sire, dam), 8),
    ]
    design = models.with_records(rng, 10, terms, [None, np.eye(1)], np.eye(1), weight=rng.uniform(0.4, 2.5, 10))
    return Joint(design, (None, prior(1, 10, [4])), prior(1, 10, [6]))


def parameters(theta, G, R):
    """One vector: elements of the covariance matrices, each trait's share of the direct variance, and a few
    locations.
    """
    matrices = [*(g for g in G if g is not None), R]
    out = [M[np.tril_indices(len(M))] for M in matrices]
    T = len(R)
    out.append(np.diag(matrices[0])[:T] / (np.diag(matrices[0])[:T] + np.diag(R)))
    out += [t[sorted({0, len(t) // 2, len(t) - 1})].ravel() for t in theta]
    return np.concatenate(out)


def ranks(joint, replicate, thin, burn_in, mutate=None, seed=83, interweave=()):
    """Ranks of the true parameters among DRAWS draws of their posterior, for one data set."""
    rng = np.random.default_rng([seed, replicate])
    theta, G, R, y = joint.draw(rng, 1)
    truth = parameters([t[0] for t in theta], [None if g is None else g[0] for g in G], R[0])
    means = [None if p is None else np.asarray(p[1]) / p[0] for p in (*joint.priors, joint.residual_prior)]
    priors = {i: p for i, p in enumerate(joint.priors) if p is not None} | {"residual": joint.residual_prior}
    model = mixed_model(joint.with_records(y[0]), means[:-1], means[-1], priors)
    draws = []

    def add(engine, now):
        G = [now.get(f"G.{i}") for i in range(len(model.covariances))]
        draws.append(parameters(engine.fetch(), G, now["R"]))

    chain(
        model,
        DRAWS * thin,
        burn_in,
        thin,
        key=(seed, replicate),
        mutate=mutate,
        each=add,
        record=False,
        interweave=interweave,
    )
    assert len(draws) == DRAWS
    return np.sum(np.array(draws) < truth, axis=0)


def all_ranks(joint, replicates, jobs=1, **options):
    """(replicates, parameters)."""
    return np.array(Parallel(n_jobs=jobs)(delayed(ranks)(joint, r, **options) for r in range(replicates)))


def p_values(found, bins):
    """Chi-square test of uniform ranks, one p value per parameter."""
    width = (DRAWS + 1) // bins
    counts = np.stack([np.bincount(column // width, minlength=bins) for column in found.T])
    return stats.chisquare(counts, axis=1).pvalue


def uniform(found, bins=8):
    return bool(p_values(found, bins).min() * found.shape[1] > ALPHA)


def missing_residuals_at_their_mean(engine):
    """sum w e e' with e_miss = E[e_miss | e_obs]: the noise of the augmentation forgotten."""
    design = engine.equations.design

    def residual_products(number, key, blocks):
        records, R = engine.equations.records, engine.R
        e = engine.e.copy()
        for p, o in enumerate(design.patterns):
            of = records.pattern == p
            e[np.ix_(of, ~o)] = e[np.ix_(of, o)] @ np.linalg.solve(R[np.ix_(o, o)], R[np.ix_(o, ~o)])
        return (records.weight[:, None] * e).T @ e, np.array([len(e)])

    engine.residual_products = residual_products


def half_the_genetic_squares(engine):
    quadratic_form = engine.quadratic_form
    engine.quadratic_form = lambda term: quadratic_form(term) / 2


@pytest.mark.slow
def test_tiny_model():
    found = all_ranks(tiny(), 40, thin=12, burn_in=60)
    assert uniform(found, bins=4), p_values(found, 4)


@pytest.mark.slow
def test_tiny_model_spoiled():
    found = all_ranks(tiny(), 40, thin=12, burn_in=60, mutate=half_the_genetic_squares)
    assert not uniform(found, bins=4), p_values(found, 4)


def test_one_replicate_of_the_beef_model():
    found = ranks(beef(), 0, thin=2, burn_in=0)
    assert found.shape == (44,) and found.min() >= 0 and found.max() <= DRAWS


@pytest.mark.slow
def test_beef_model():
    found = all_ranks(beef(), 200, jobs=2, thin=25, burn_in=200, interweave=(1, 2))
    assert uniform(found), p_values(found, 8)


@pytest.mark.slow
def test_beef_model_spoiled():
    found = all_ranks(beef(), 200, jobs=2, thin=25, burn_in=200, mutate=missing_residuals_at_their_mean)
    assert not uniform(found), p_values(found, 8)
