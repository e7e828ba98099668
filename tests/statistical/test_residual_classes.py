"""Residual classes: Geweke's joint-distribution test of everything at once, and the posterior at fixed variances.

Two traits of two classes of records, all missing patterns, weights, proper priors that differ by class. A sampler that
mixes classes up must fail.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from helpers.monte_carlo import batches, compare
from helpers.support import chain
from reference import models
from scipy import special

from mmgibbs.engines import augment
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.priors.inverse_wishart import InverseWishart
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.residual import ResidualModel, fold_classes
from mmgibbs.sampler.mixed_model import MixedModel

DF = 12.0
SCALE_G = np.array([[30.0, 9.0], [9.0, 24.0]])
SCALE_R = np.array([[[108.0, -27.0], [-27.0, 81.0]], [[24.0, 12.0], [12.0, 48.0]]])
N_LINES, N_RECORDS = 6, 20
LOWER = np.tril_indices(2)


@cache
def design():
    rng = np.random.default_rng(81)
    line = rng.integers(0, N_LINES, N_RECORDS).astype(np.int32)
    prior = np.array([[0.5, 0.1], [0.1, 0.3]])
    terms = [
        models.class_term("herd", np.arange(N_RECORDS) % 2, 2, [0, 1], prior_precision=prior),
        models.random_term("line", [models.Effect("", line, (0, 1))], Identity(N_LINES), N_LINES),
    ]
    observed, weight = models.some_observed(rng, N_RECORDS, 2), rng.uniform(0.3, 3.0, N_RECORDS)
    plain = models.with_records(rng, N_RECORDS, terms, [None, np.eye(2)], np.eye(2), observed, weight)
    of_record = rng.integers(0, 2, N_RECORDS)
    pattern, patterns, of_pattern = fold_classes(plain.pattern, plain.patterns, of_record, 2)
    names = ("indoor", "outdoor")
    return replace(plain, pattern=pattern, patterns=patterns, pattern_class=of_pattern, residual_classes=names)


def exact():
    """E[X], E[X^-1] (elements on and below the diagonal) and E[log|X|] of G, R_1, R_2 under their priors."""
    out = []
    for S in (SCALE_G, *SCALE_R):
        log_det = np.linalg.slogdet(S)[1] - 2 * np.log(2) - special.digamma(DF / 2) - special.digamma((DF - 1) / 2)
        out += [(S / (DF - 3))[LOWER], (DF * np.linalg.inv(S))[LOWER], [log_det]]
    return np.concatenate(out)


def functions(G, R):
    columns = []
    for X in (G, R[:, 0], R[:, 1]):
        columns += [X[:, *LOWER], np.linalg.inv(X)[:, *LOWER], np.linalg.slogdet(X)[1][:, None]]
    return np.concatenate(columns, axis=1)


def successive(n, mutate=None, seed=83):
    """Draws of (G, R) from the chain that alternates a sweep given y with y given everything else."""
    rng, of = np.random.default_rng(seed), design()
    residual = tuple(CovarianceModel(S / 9, False, full_block(2), InverseWishart(DF, S)) for S in SCALE_R)
    genetic = CovarianceModel(SCALE_G / 9, False, full_block(2), InverseWishart(DF, SCALE_G))
    model = MixedModel(of, (None, genetic), ResidualModel(residual, of.residual_classes))
    kept_G, kept_R = [], []

    def new_records(engine, matrices):
        records = engine.equations.records
        observed = of.patterns[records.pattern]
        root = np.linalg.cholesky(matrices["R"])[of.pattern_class[records.pattern]]
        z = rng.standard_normal(engine.e.shape)
        e = np.einsum("rtu,ru->rt", root, z) / np.sqrt(records.weight)[:, None]
        records.y[observed] += (e - engine.e)[observed]
        engine.e[observed] = e[observed]
        kept_G.append(matrices["G.1"].copy())
        kept_R.append(matrices["R"].copy())

    chain(model, n + 200, burn_in=0, key=(seed, 0), mutate=mutate, each=new_records, record=False, interweave=(1,))
    return functions(np.array(kept_G[200:]), np.array(kept_R[200:]))


def all_products_to_one_class(engine):
    products = engine.residual_products

    def spoiled(number, key, blocks):
        total, counts = products(number, key, blocks)
        return np.stack([total.sum(axis=0), np.zeros_like(total[0])]), [counts[0] + counts[1], 0 * counts[1]]

    engine.residual_products = spoiled


def missing_residuals_of_the_other_class(engine):
    def spoiled(number, key, blocks):
        eq = engine.equations
        sums = augment.ResidualSums(eq.records, eq.design.patterns, blocks)
        return sums(engine.e, engine.R[::-1], number, key)

    engine.residual_products = spoiled


def test_the_joint_distribution_is_left_as_it_is():
    comparison = compare(batches(successive(10_000)), exact())
    assert comparison.agrees, comparison


@pytest.mark.slow
@pytest.mark.parametrize("mutate", [all_products_to_one_class, missing_residuals_of_the_other_class])
def test_classes_mixed_up_are_seen(mutate):
    comparison = compare(batches(successive(4000, mutate)), exact())
    assert not comparison.agrees, comparison
