"""Draws of a correlation of neighbours together with its variance, against the exact posterior on a grid; a mutant."""

from functools import cache

import numpy as np
import polars as pl
import pytest
from helpers.monte_carlo import batches, compare
from helpers.mutants import mutant

from mmgibbs.build.assemble import assemble
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.sampler import correlations, steps
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.schedule import Schedule

DF, SCALE = 5.0, {"field": 6.0, "residual": 3.0}
DRAWS, BURN_IN = 6_000, 200


@cache
def records():
    """Two rows of plots, 9 and 7 of them, one without a record."""
    rng, rows = np.random.default_rng(11), []
    for trial, n in (("A", 9), ("B", 7)):
        K = 0.6 ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        y = 5 + np.linalg.cholesky(2 * K) @ rng.normal(size=n) + 0.7 * rng.normal(size=n)
        rows += [(trial, i + 1, v) for i, v in enumerate(y) if i != 3]
    return pl.DataFrame(rows, schema=["trial", "row", "y"], orient="row")


@cache
def exact():
    """E and Var of (rho, log field variance, log residual variance): a grid, the mean integrated out."""
    frame = records()
    row, trial, y = (frame[c].to_numpy() for c in ("row", "trial", "y"))
    lag = np.abs(np.subtract.outer(row, row)).astype(float)
    same, X = trial[:, None] == trial, np.ones((len(y), 1))
    rho = (np.arange(100) + 0.5) / 100 * 1.99 - 0.995
    log_v = np.linspace(np.log(0.03), np.log(80.0), 70)
    powers = np.where((rho[:, None, None] < 0) & (lag % 2 == 1), -1.0, 1.0) * np.abs(rho[:, None, None]) ** lag * same
    log_p = np.empty((rho.size, log_v.size, log_v.size))
    prior = {name: -0.5 * DF * log_v - 0.5 * S / np.exp(log_v) for name, S in SCALE.items()}  # of log v
    for i, K in enumerate(powers):
        values, vectors = np.linalg.eigh(K)
        d = np.exp(log_v)[:, None, None] * values + np.exp(log_v)[None, :, None]  # of V
        a, b = vectors.T @ X[:, 0], vectors.T @ y
        xx, xy, yy = (np.sum(p / d, axis=2) for p in (a * a, a * b, b * b))
        log_p[i] = -0.5 * (np.log(d).sum(axis=2) + np.log(xx) + yy - xy**2 / xx)
    log_p += prior["field"][:, None] + prior["residual"]
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    axes = (rho[:, None, None], log_v[:, None], log_v)
    means = np.array([np.sum(p * x) for x in axes])
    return means, np.array([np.sum(p * (x - m) ** 2) for x, m in zip(axes, means, strict=True)])


@cache
def problem():
    config = load_config(
        {
            "data": {"phenotypes": records()},
            "traits": ["y"],
            "model": {"random": {"field": {"relationship": {"kind": "ar1", "row": "row", "within": "trial"}}}},
            "variances": {name: {"prior": {"df": DF, "scale": S}} for name, S in SCALE.items()},
            "output": {"directory": "run"},
        }
    )
    prepared = prepare(config)
    model = assemble(config, prepared).model
    return model, structured_equations(model.design, partition(model.design))


def start_chain(state=None):
    """Start one chain on equations that all chains of this file share, or continue it."""
    model, equations = problem()
    return Chain(model, EngineChoice("serial").build(equations), Schedule(BURN_IN, DRAWS), (17, 0), state)


def draws(monkeypatch=None, spoilt=None):
    """(DRAWS, 3) of one chain."""
    if spoilt is not None:
        monkeypatch.setattr(steps, "CorrelationsAndCovariance", spoilt.CorrelationsAndCovariance)
    chain = start_chain()
    chain.advance(BURN_IN + DRAWS, lambda _: False)
    kept = chain.result().draws
    G, R = np.asarray(kept["G.1"]).reshape(-1), np.asarray(kept["R"]).reshape(-1)
    return np.column_stack([np.asarray(kept["rho.1"]).reshape(-1), np.log(G), np.log(R)])


def judge(found):
    means, variances = exact()
    values = np.concatenate([found, (found - means) ** 2], axis=1)
    return compare(batches(values), np.concatenate([means, variances]))


def test_correlation_and_variances_have_their_exact_posterior():
    result = judge(draws())
    assert result.agrees, result


@pytest.mark.slow
def test_a_wrong_conditional_is_found(monkeypatch):
    right = "products = density.products(correlations.rho)"
    spoilt = mutant(correlations, right, right.replace("= ", "= 0.7 * "), compiled=False)
    result = judge(draws(monkeypatch, spoilt))
    assert not result.agrees, result


def test_a_chain_that_is_continued_draws_the_same_bits():
    whole, first = start_chain(), start_chain()
    whole.advance(60, lambda _: False)
    first.advance(30, lambda _: False)
    state = {name: np.array(array) for name, array in first.state().items()}
    first.advance(60, lambda _: False)  # its lists are its own: what it does next is nothing to the other
    rest = start_chain(state)
    rest.advance(60, lambda _: False)
    for name, array in whole.draws().items():
        np.testing.assert_array_equal(rest.draws()[name], array)
