"""Thresholds of traits in categories against quadrature; everything at once is in test_residual_scales.py.

Spoiled copies must fail: the unconditional variance in the threshold step, the Jacobian of its walk left out.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from helpers.monte_carlo import batches, compare
from helpers.mutants import mutant
from reference import models
from scipy import stats

from mmgibbs.engines import liabilities as passes
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.families import Categories
from mmgibbs.sampler import liabilities
from mmgibbs.sampler.covariances import starting_matrices
from mmgibbs.sampler.mixed_model import MixedModel

R = np.array([[1.0, 0.8], [0.8, 1.6]])


def held(start):
    return CovarianceModel(np.array(start), True, full_block(len(start)))


# ------------------------------------------------------------------------------------------------ by quadrature


@cache
def two_traits():
    """24 records of an ordinal trait (four categories) beside a normal one, correlated; no effect but an intercept."""
    rng = np.random.default_rng(8)
    n = 24
    e = rng.standard_normal((n, 2)) @ np.linalg.cholesky(R).T
    y = np.array([0.6, 0.2]) + e
    category = np.searchsorted([0.0, 0.7, 1.5], y[:, 0]).astype(np.int16)
    response = Categories(0, ("a", "b", "c", "d"), category)
    intercept = models.class_term("intercept", np.zeros(n, int), 1, [0, 1], prior_precision=np.eye(2))
    design = models.with_records(rng, n, [intercept], [None], R)
    start = np.column_stack([response.start(), y[:, 1]])
    return MixedModel(replace(design, y=start, responses=(response,)), (None,), held(R))


def thresholds(samples, module=liabilities):
    """(samples, 2) draws of t_2 and t_3 with the location at 0, by the first step alone."""
    model = two_traits()
    engine = SerialEngine(structured_equations(model.design, partition(model.design)))
    matrices = starting_matrices(model, 0)
    step = module.LiabilityStep(model, 0, engine, matrices, (5, 0), 300)
    step._draw_scale = lambda *_: None
    out = np.empty((samples + 300, 2))
    for number in range(1, samples + 301):
        step(number)
        out[number - 1] = step.draws()["threshold.0"]
    return out[300:]


@cache
def by_quadrature():
    """E[t_2], E[t_3], E[t_2^2], E[t_3^2] on a grid: flat in t, each record's category given its normal trait."""
    design = two_traits().design
    category, other = design.responses[0].category, design.y[:, 1]
    mean, sd = R[0, 1] / R[1, 1] * other, np.sqrt(R[0, 0] - R[0, 1] ** 2 / R[1, 1])
    t2 = np.linspace(1e-4, 4, 500)
    t3 = np.linspace(1e-4, 7, 700)
    phi2 = stats.norm.cdf((t2[:, None] - mean) / sd)
    phi3 = stats.norm.cdf((t3[:, None] - mean) / sd)
    phi1 = stats.norm.cdf(-mean / sd)
    b, c, d = (category == k for k in (1, 2, 3))
    log_p = np.log(np.maximum(phi2[:, b] - phi1[b], 1e-300)).sum(1)[:, None]
    log_p = log_p + np.log(np.maximum(1 - phi3[:, d], 1e-300)).sum(1)
    gap = phi3[None, :, c] - phi2[:, None, c]
    log_p += np.where(gap > 0, np.log(np.maximum(gap, 1e-300)), -np.inf).sum(2)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    m2, m3 = p.sum(1), p.sum(0)
    return [m2 @ t2, m3 @ t3, m2 @ t2**2, m3 @ t3**2]


def agrees_with_quadrature(samples, module=liabilities):
    t = thresholds(samples, module)
    return compare(batches(np.column_stack([t, t**2])), by_quadrature(), 0.002)


def test_thresholds():
    comparison = agrees_with_quadrature(20_000)
    assert comparison.agrees, comparison


@pytest.mark.slow
def test_the_jacobian_is_missed():
    assert not agrees_with_quadrature(40_000, mutant(liabilities, "proposed) + moved.sum()", "proposed)")).agrees


@pytest.mark.slow
def test_the_unconditional_variance_is_noticed(monkeypatch):
    """The fault of other programs: categories judged by eta and R_tt where the record has other traits too."""

    def unconditional(given, category, cuts, proposed, first, last):
        eta = given.y[:, given.trait] - given.e[:, given.trait]
        p = [stats.norm.cdf(t[category + 1] - eta) - stats.norm.cdf(t[category] - eta) for t in (proposed, cuts)]
        return float(np.log(np.maximum(p[0], 1e-300) / np.maximum(p[1], 1e-300)).sum())

    monkeypatch.setattr(passes, "log_ratio_of_cuts", unconditional)
    assert not agrees_with_quadrature(40_000).agrees
