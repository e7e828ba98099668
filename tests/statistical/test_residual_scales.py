"""A trait in categories with residual classes: everything at once by Geweke's (2004) test.

A normal and a binary trait, correlated, whose residual matrix is unrestricted in one of two classes of records and has
R_22 = 1 in the other. Spoiled copies of the move of its residual variance must fail.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from helpers.monte_carlo import batches, compare
from reference import models
from scipy import stats
from scipy.stats import invwishart

from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.families import Categories
from mmgibbs.models.priors.inverse_wishart import InverseWishart
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.residual import ResidualModel, fold_classes
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.residual_scales import log_prior_ratio, scaled
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import gibbs_steps

DF = 10.0
SCALE_G = np.array([[7.0, 2.0], [2.0, 6.0]])
SCALE_R = np.array([[[12.0, 3.0], [3.0, 7.0]], [[10.0, 9.0], [9.0, 14.0]]])  # the first restricted to R_22 = 1
HERD = np.array([[0.8, 0.0], [0.0, 1.2]])  # prior precision
N_LINES, N_RECORDS, FORWARD = 5, 50, 40_000


@cache
def design():
    rng = np.random.default_rng(71)
    line = rng.integers(0, N_LINES, N_RECORDS).astype(np.int32)
    terms = [
        models.class_term("herd", np.arange(N_RECORDS) % 2, 2, [0, 1], prior_precision=HERD),
        models.random_term("line", [models.Effect("", line, (0, 1))], Identity(N_LINES), N_LINES),
    ]
    plain = models.with_records(rng, N_RECORDS, terms, [None, np.eye(2)], np.eye(2))
    of_record = (np.arange(N_RECORDS) % 5 < 3).astype(np.int64)  # 20 records in the reference, 30 beside it
    pattern, patterns, of_pattern = fold_classes(plain.pattern, plain.patterns, of_record, 2)
    response = Categories(1, ("0", "1"), (plain.y[:, 1] > 0).astype(np.int16))
    folded = replace(plain, pattern=pattern, patterns=patterns, pattern_class=of_pattern)
    return replace(folded, residual_classes=("tied", "loose"), responses=(response,))


def class_of_record():
    return design().class_of_pattern[design().pattern]


def functions(G, R, b, y1, ill):
    """(N, m) functions of parameters and data; ill (N, n) bool: the binary trait."""
    lower, of = np.tril_indices(2), class_of_record()
    columns = [G[:, *lower], np.linalg.inv(R[:, 1])[:, *lower], R[:, 1][:, *lower], np.log(R[:, [1], 1, 1])]
    columns += [R[:, [0], 0, 1], R[:, [0], 0, 0], b.reshape(len(b), -1) ** 2]
    columns += [ill[:, of == c].mean(axis=1, keepdims=True) for c in (0, 1)]
    columns += [(ill * y1)[:, of == c].mean(axis=1, keepdims=True) for c in (0, 1)]
    columns += [ill[:, of == 1].mean(axis=1, keepdims=True) * R[:, [1], 1, 1]]
    return np.concatenate(columns, axis=1)


@cache
def forward():
    """Means of the functions under independent draws, in NumPy and SciPy alone, and their standard errors."""
    rng, n = np.random.default_rng(72), FORWARD
    G = invwishart.rvs(DF, SCALE_G, size=n, random_state=rng)
    S = SCALE_R[0]
    D = (S[0, 0] - S[0, 1] ** 2 / S[1, 1]) / rng.chisquare(DF, n)
    B = S[0, 1] / S[1, 1] + np.sqrt(D / S[1, 1]) * rng.standard_normal(n)
    R = np.empty((n, 2, 2, 2))
    R[:, 0, 1, 1], R[:, 0, 0, 1], R[:, 0, 1, 0], R[:, 0, 0, 0] = 1.0, B, B, D + B**2
    R[:, 1] = invwishart.rvs(DF, SCALE_R[1], size=n, random_state=rng)
    b = rng.standard_normal((n, 2, 2)) @ np.linalg.cholesky(np.linalg.inv(HERD)).T
    u = rng.standard_normal((n, N_LINES, 2)) @ np.swapaxes(np.linalg.cholesky(G), 1, 2)
    root = np.linalg.cholesky(R)[:, class_of_record()]
    e = np.einsum("nrtu,nru->nrt", root, rng.standard_normal((n, N_RECORDS, 2)))
    herd, line = (t.effects[0].level for t in design().terms)
    y = b[:, herd] + u[:, line] + e
    f = functions(G, R, b, y[:, :, 0], y[:, :, 1] > 0)
    return f.mean(axis=0), f.std(axis=0) / np.sqrt(n)


def successive(n, spoil=lambda steps: None, seed=73, burn=200):
    """n draws of the functions from the chain that alternates a sweep given the data with new data given the rest."""
    rng, of = np.random.default_rng(seed), design()
    genetic = CovarianceModel(SCALE_G / 10, False, full_block(2), InverseWishart(DF, SCALE_G))
    residual = (
        CovarianceModel(np.eye(2), False, full_block(2), InverseWishart(DF, SCALE_R[0]), unit=(1,)),
        CovarianceModel(np.eye(2), False, full_block(2), InverseWishart(DF, SCALE_R[1])),
    )
    model = MixedModel(of, (None, genetic), ResidualModel(residual, of.residual_classes))
    engine = SerialEngine(structured_equations(of, partition(of)))
    steps = gibbs_steps(model, engine, Schedule(0, n + burn, interweave=(1,)), (seed, 0))
    spoil(steps)
    records, kept = engine.equations.records, []
    in_class = of.class_of_pattern[records.pattern]
    for number in range(1, n + burn + 1):
        for step in steps:
            step(number)
        draws = {name: values for step in steps for name, values in step.draws().items()}
        e = np.einsum("rtu,ru->rt", np.linalg.cholesky(draws["R"])[in_class], rng.standard_normal((N_RECORDS, 2)))
        y = engine.y - engine.e + e  # sweep order
        engine.take_y(y)
        engine.moved(e.copy())
        engine.responses.liabilities.responses[0].category[:] = y[:, 1] > 0
        in_order = np.empty_like(y)
        in_order[records.record] = y
        kept.append((draws["G.1"].copy(), draws["R"].copy(), engine.fetch()[0], in_order[:, 0], in_order[:, 1] > 0))
    return functions(*(np.array(values) for values in zip(*kept[burn:], strict=True)))


def held_to_forward(n, **options):
    mean, error = forward()
    return compare(batches(successive(n, **options)), mean, error)


@pytest.mark.slow
def test_everything_at_once():
    comparison = held_to_forward(6000)
    assert comparison.agrees, comparison


def prior_forgotten(steps):
    steps[0].residual_scales[0]._log_prior_ratio = lambda log_s: 0.0


def miscounted_scale(steps):
    density = steps[0].scale_density
    steps[0].scale_density = lambda *sums: (density(*sums)[0] - 8, *density(*sums)[1:])


def other_trait_forgotten(steps):
    """Liabilities drawn as if R were diagonal."""
    of = steps[0].engine.responses.liabilities
    draw = of.draw
    of.draw = lambda response, cuts, y, e, Rinv, *rest: draw(response, cuts, y, e, np.eye(2)[None] * Rinv, *rest)


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [prior_forgotten, miscounted_scale, other_trait_forgotten])
def test_spoiled_samplers_are_seen(spoil):
    comparison = held_to_forward(8000, spoil=spoil)
    assert not comparison.agrees, comparison


def expected_ratio(engine, s, s_of_mean):
    """log p(ill | s) - log p(ill | 1) over the records of the second class, by SciPy."""
    records, of = engine.equations.records, design()
    in_class = of.class_of_pattern[records.pattern] == 1
    R, e, eta = engine.R[1], engine.e[in_class], (engine.y - engine.e)[in_class, 1]
    ill = engine.responses.liabilities.responses[0].category[in_class] == 1
    mean, sd = R[0, 1] / R[0, 0] * e[:, 0], np.sqrt(R[1, 1] - R[0, 1] ** 2 / R[0, 0])
    log_p = [
        stats.norm.logcdf(np.where(ill, 1, -1) * (eta + m * mean) / (x * sd)).sum() for x, m in ((s, s_of_mean), (1, 1))
    ]
    return log_p[0] - log_p[1]


def test_the_ratio_of_the_likelihood_by_the_normal_distribution():
    rng, of = np.random.default_rng(74), design()
    engine = SerialEngine(structured_equations(of, partition(of)))
    engine.set_variances([None, np.eye(2)], SCALE_R / 9)
    engine.start([rng.standard_normal(t.shape) for t in engine.fetch()])
    cuts = np.array([-np.inf, 0.0, np.inf])
    for s in (0.6, 1.4):
        found = engine.responses.compare_residual_scales(0, cuts, 1, s)
        assert found == pytest.approx(expected_ratio(engine, s, s), rel=1e-9)
        assert found != pytest.approx(expected_ratio(engine, s, 1.0), rel=0.01)  # the conditional mean moves too


def test_the_ratio_of_the_prior_against_its_density():
    """IW(nu, S) at D R D times the Jacobian s^(k+1), against the same at R."""
    R, s = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.4], [0.1, -0.4, 0.9]]), 1.3
    S = np.diag([5.0, 6.0, 7.0]) + 0.5
    prior = CovarianceModel(R, False, full_block(3), InverseWishart(9.0, S))
    moved = scaled(R, 1, s)
    expected = invwishart.logpdf(moved, 9, S) - invwishart.logpdf(R, 9, S) + 4 * np.log(s)
    assert log_prior_ratio(prior, R, 1, np.log(s)) == pytest.approx(expected, abs=1e-10)
