"""Geweke's (2004) joint-distribution test of the sampler: locations, G, R and augmented residuals at once, everything
sampled.

If the sampler is right, alternating one full Gibbs sweep given y with new records y given everything leaves the joint
distribution of parameters and data as it is, so the chain must reproduce the moments of independent draws from prior
and likelihood. Two traits, all three missing patterns, weights, an inbred pedigree, proper priors.
"""

from functools import cache

import numpy as np
import pytest
from helpers.joint_distribution import Joint
from helpers.monte_carlo import batches, compare
from helpers.selection import first
from helpers.support import chain, mixed_model
from reference import models
from scipy import special

DF_G, DF_R = 12.0, 12.0  # k + 4 = 6 would do; elements of IW with more degrees of freedom have lighter tails
SCALE_G, SCALE_R = np.array([[30.0, 9.0], [9.0, 24.0]]), np.array([[108.0, -27.0], [-27.0, 81.0]])
N_ANIMALS, N_RECORDS = 11, 18
FORWARD = 100_000


@cache
def joint() -> Joint:
    rng = np.random.default_rng(71)
    sire, dam = models.looped_pedigree(rng, N_ANIMALS, 3)
    animal = np.concatenate([np.arange(2, N_ANIMALS), rng.integers(2, N_ANIMALS, N_RECORDS - N_ANIMALS + 2)]).astype(
        np.int32
    )
    terms = [
        models.class_term(
            "herd", np.arange(N_RECORDS) % 2, 2, [0, 1], prior_precision=np.array([[0.5, 0.1], [0.1, 0.3]])
        ),
        models.random_term(
            "genetic", [models.Effect("", animal, (0, 1))], models.pedigree_relationship(sire, dam), N_ANIMALS
        ),
    ]
    observed, weight = models.some_observed(rng, N_RECORDS, 2), rng.uniform(0.3, 3.0, N_RECORDS)
    design = models.with_records(rng, N_RECORDS, terms, [None, np.eye(2)], np.eye(2), observed, weight)
    return Joint(design, (None, (DF_G, SCALE_G)), (DF_R, SCALE_R))


def functions(b, u, G, R, y):
    """(N, m) functions of parameters and data: b (N, 2, 2), u (N, q, 2), G, R (N, 2, 2), y (N, n, 2)."""
    lower = np.tril_indices(2)
    observed = ~np.isnan(joint().design.y)
    own = joint().design.terms[1].effects[0].level
    y, of_record = np.where(observed, y, 0.0), u[:, own]
    columns = [M[:, *lower] for M in (G, R, np.linalg.inv(G), np.linalg.inv(R))]
    columns += [np.linalg.slogdet(M)[1][:, None] for M in (G, R)]
    columns += [b.reshape(len(b), -1), (b**2).sum(axis=1), u[:, [0, 5, -1]].reshape(len(u), -1)]
    columns += [np.einsum("nia,nib->nab", u, u)[:, *lower], np.einsum("nia,nib->nab", y, y)[:, *lower]]
    columns += [np.einsum("nra,nrb->nab", y, of_record).reshape(len(y), -1)]
    columns += [np.einsum("nia,nab,nib->ni", u[:, [0, -1]], np.linalg.inv(G), u[:, [0, -1]])]
    columns += [u[:, [-1], 0] * u[:, [-2], 1], G[:, 0, [1]] * R[:, 0, [1]], G[:, 0, [0]] * u[:, [-1], 0] ** 2]
    return np.concatenate(columns, axis=1)


def covariance_moments(df, S):
    """E[X], E[X^-1] (elements on and below the diagonal) and E[log|X|] of IW(df, S), two traits."""
    lower = np.tril_indices(2)
    log_det = np.linalg.slogdet(S)[1] - 2 * np.log(2) - special.digamma(df / 2) - special.digamma((df - 1) / 2)
    return (S / (df - 3))[lower], (df * np.linalg.inv(S))[lower], [log_det]


@cache
def forward():
    """Means of the functions under independent draws from the joint distribution, and their standard errors.

    The first 14, of G and R alone, are exact: theory, no error."""
    (b, u), (_, G), R, y = joint().draw(np.random.default_rng(72), FORWARD)
    f = functions(b, u, G, R, y)
    mean, error = f.mean(axis=0), f.std(axis=0) / np.sqrt(FORWARD)
    exact = np.concatenate(
        [
            m
            for pair in zip(covariance_moments(DF_G, SCALE_G), covariance_moments(DF_R, SCALE_R), strict=True)
            for m in pair
        ]
    )
    assert np.abs((mean[:14] - exact) / error[:14]).max() < 4.5
    return np.concatenate([exact, mean[14:]]), np.concatenate([np.zeros(14), error[14:]])


def successive(n, mutate=None, lost_levels=0, seed=73, **options):
    """n draws of the functions from the chain that alternates a sweep given y with y given all else.

    `lost_levels`: levels that the degrees of freedom of G forget; `options` of support.chain: `update`,
    `interweave`.
    """
    rng = np.random.default_rng(seed)
    _, _, _, y = joint().draw(rng, 1)
    design = joint().with_records(y[0])
    priors = {1: (DF_G - lost_levels, SCALE_G), "residual": (DF_R, SCALE_R)}
    model = mixed_model(design, [None, SCALE_G / 9], SCALE_R / 9, priors)
    kept = {"b": [], "u": [], "G": [], "R": [], "y": []}

    def new_records(engine, matrices):
        records = engine.equations.records
        observed = design.patterns[records.pattern]
        weight = np.ones(len(records.y)) if records.weight.size == 0 else records.weight
        e = rng.standard_normal(engine.e.shape) @ np.linalg.cholesky(matrices["R"]).T / np.sqrt(weight)[:, None]
        records.y[observed] += (e - engine.e)[observed]
        engine.e[observed] = e[observed]
        b, u = engine.fetch()
        y = np.empty_like(records.y)
        y[records.record] = records.y
        for name, value in (("b", b), ("u", u), ("G", matrices["G.1"].copy()), ("R", matrices["R"].copy()), ("y", y)):
            kept[name].append(value)

    chain(model, n + 200, burn_in=0, key=(seed, 0), mutate=mutate, each=new_records, record=False, **options)
    return functions(*(np.array(kept[name][200:]) for name in kept))


def held_to_forward(n, **options):
    mean, error = forward()
    return compare(batches(successive(n, **options)), mean, error)


# ------------------------------------------------------------ spoiled samplers


def parent_average_of_a_quarter(engine):
    """One wrong factor in Theta'A^-1Theta: u - (u_sire + u_dam)/4."""
    kind = joint().design.terms[1].relationship.relatives

    def quadratic_form(i):
        u = np.append(engine.fetch()[i], [[0.0, 0.0]], axis=0)  # -1, an unknown parent, is the last
        m = u[:-1] - 0.25 * (u[kind.sire] + u[kind.dam])
        return m.T @ (kind.dinv[:, None] * m)

    engine.quadratic_form = quadratic_form


def augmentation(weighted):
    """sum w e e' with missing residuals drawn here, in plain NumPy;
    `weighted` False forgets the weight in their variance.
    """

    def mutate(engine):
        rng = np.random.default_rng(75)

        def residual_products(number, key, blocks):
            records, R = engine.equations.records, engine.R
            e = engine.e.copy()
            for r, (observed, w) in enumerate(
                zip(joint().design.patterns[records.pattern], records.weight, strict=True)
            ):
                for m in np.flatnonzero(~observed):
                    o = 1 - m
                    variance = R[m, m] - R[m, o] ** 2 / R[o, o]
                    e[r, m] = (
                        R[m, o] / R[o, o] * e[r, o]
                        + np.sqrt(variance / (w if weighted else 1.0)) * rng.standard_normal()
                    )
            return (records.weight[:, None] * e).T @ e, np.array([len(e)])

        engine.residual_products = residual_products

    return mutate


def noise_too_small(engine):
    """Noise of the locations with 82 percent of its variance:
    0.9 and 0.1 of two sweeps from the same state have the right mean.
    """
    sweep = engine.sweep

    def spoiled(number, key):
        start = engine.fetch()
        ends = []
        for of_two in (number, number + 10**6):
            engine.start(start)
            sweep(of_two, key)
            ends.append(engine.fetch())
        engine.start([0.9 * a + 0.1 * b for a, b in zip(*ends, strict=True)])

    engine.sweep = spoiled


SPOILED = {
    "one level short": {"lost_levels": 1},
    "parent average": {"mutate": parent_average_of_a_quarter},
    "weight in augmentation": {"mutate": augmentation(weighted=False)},
    "noise": {"mutate": noise_too_small},
}


# ------------------------------------------------------------ the tests


@pytest.mark.parametrize("update, interweave", first(1, [("level", (1,)), ("site", ())]))
def test_the_joint_distribution_is_left_as_it_is(update, interweave):
    comparison = held_to_forward(10_000, update=update, interweave=interweave)
    assert comparison.agrees, comparison


@pytest.mark.slow
@pytest.mark.parametrize("name", SPOILED)
def test_spoiled_samplers_are_seen(name):
    comparison = held_to_forward(3000, **SPOILED[name])
    assert not comparison.agrees, comparison


@pytest.mark.slow
def test_the_plain_augmentation_is_right():
    """The twin of the forgotten weight: without the mistake, the same NumPy code passes."""
    comparison = held_to_forward(5000, mutate=augmentation(weighted=True))
    assert comparison.agrees, comparison
