"""Draws of curves (random walks over unequal steps, a P-spline) with their variance, against the exact posterior on a
grid; mutants."""

from functools import cache

import numpy as np
import polars as pl
import pytest
from helpers.monte_carlo import batches, compare
from helpers.mutants import mutant
from helpers.selection import first

import mmgibbs
from mmgibbs.build.assemble import assemble
from mmgibbs.config import load_config
from mmgibbs.data import random_walks as reader
from mmgibbs.data import splines as spline_reader
from mmgibbs.data.prepare import prepare
from mmgibbs.engines.choice import EngineChoice
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.models.relationships import random_walk, spline
from mmgibbs.report.finished import read_finished
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.schedule import Schedule

DF, SCALE = 5.0, {"curve": 6.0, "residual": 2.0}
DRAWS, BURN_IN = 15_000, 500
DAYS = np.array([0.0, 0.5, 3.0, 4.0, 9.0])
SEGMENTS = 3  # of the spline


@cache
def records():
    """Two records a day, a curve about a line."""
    rng, day = np.random.default_rng(3), np.repeat(DAYS, 2)
    return pl.DataFrame({"day": day, "y": 4 + 0.3 * day + np.sin(day) + 0.6 * rng.normal(size=day.size)})


def covariance(order):
    """K of the records up to a polynomial, from the distances alone: -|s - t|/2, and |s - t|^3/12 of order 2."""
    X = np.vander(DAYS, order)
    M = np.eye(DAYS.size) - X @ np.linalg.pinv(X)
    distance = np.abs(np.subtract.outer(DAYS, DAYS))
    K = M @ (-distance / 2 if order == 1 else distance**3 / 12) @ M
    return np.repeat(np.repeat(K / np.trace(K) * DAYS.size, 2, axis=0), 2, axis=1)


def spline_covariance():
    """K of the records by B-splines in truncated powers, its mean variance about the line 1."""
    width = np.ptp(DAYS) / SEGMENTS
    knots = DAYS[0] + width * np.arange(-3, SEGMENTS + 4)
    powers = np.where(DAYS[:, None] >= knots, (DAYS[:, None] - knots) ** 3, 0.0)
    B = powers @ np.diff(np.eye(len(knots)), n=4, axis=0).T / (6 * width**3)
    D = np.diff(np.eye(B.shape[1]), n=2, axis=0)
    K = B @ np.linalg.pinv(D.T @ D, rcond=1e-12, hermitian=True) @ B.T
    X = np.vander(DAYS, 2)
    M = np.eye(DAYS.size) - X @ np.linalg.pinv(X)
    return np.repeat(np.repeat(K / np.trace(M @ K) * DAYS.size, 2, axis=0), 2, axis=1)


@cache
def exact(order, kind="random_walk"):
    """E and Var of (log curve variance, log residual variance): a grid, the polynomial integrated out."""
    y, X = records()["y"].to_numpy(), np.vander(np.repeat(DAYS, 2), order)
    log_v = np.linspace(np.log(0.01), np.log(300.0), 160)
    K, log_p = covariance(order) if kind == "random_walk" else spline_covariance(), np.empty((160, 160))
    prior = {name: -0.5 * DF * log_v - 0.5 * S / np.exp(log_v) for name, S in SCALE.items()}  # of log v
    for i, v in enumerate(np.exp(log_v)):
        for j, e in enumerate(np.exp(log_v)):
            W = np.linalg.inv(v * K + e * np.eye(len(y)))
            C = X.T @ W @ X
            P = W - W @ X @ np.linalg.solve(C, X.T @ W)
            log_p[i, j] = 0.5 * (np.linalg.slogdet(W)[1] - np.linalg.slogdet(C)[1] - y @ P @ y)
    log_p += prior["curve"][:, None] + prior["residual"]
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    axes = (log_v[:, None], log_v)
    means = np.array([np.sum(p * x) for x in axes])
    return means, np.array([np.sum(p * (x - m) ** 2) for x, m in zip(axes, means, strict=True)])


def analysis(relationship, fixed, directory="run"):
    return {
        "data": {"phenotypes": records()},
        "traits": ["y"],
        "model": {"fixed": fixed, "random": {"curve": {"relationship": relationship}}},
        "variances": {name: {"prior": {"df": DF, "scale": S}} for name, S in SCALE.items()},
        "output": {"directory": str(directory)},
    }


LINE = {"day": {"kind": "covariate"}}


def draws(order):
    """(DRAWS, 2) of one chain."""
    relationship = {"kind": "random_walk", "of": "day", "order": order}
    config = load_config(analysis(relationship, LINE if order == 2 else {}))
    prepared = prepare(config)
    model = assemble(config, prepared).model
    equations = structured_equations(model.design, partition(model.design))
    chain = Chain(model, EngineChoice("serial").build(equations), Schedule(BURN_IN, DRAWS), (17, 0))
    chain.advance(BURN_IN + DRAWS, lambda _: False)
    kept = chain.result().draws
    G = np.asarray(kept[f"G.{order}"]).reshape(-1)
    return np.column_stack([np.log(G), np.log(np.asarray(kept["R"]).reshape(-1))])


def judge(found, order, kind="random_walk"):
    means, variances = exact(order, kind)
    values = np.concatenate([found, (found - means) ** 2], axis=1)
    return compare(batches(values), np.concatenate([means, variances]))


@pytest.mark.parametrize("order", first(1, [1, 2]))
def test_variances_have_their_exact_posterior(order):
    result = judge(draws(order), order)
    assert result.agrees, result


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "right", "wrong"),
    [
        (1, "[[-one]], [[1 / h]]", "[[-one]], [[one]]"),
        (2, "[12 / h**3, -6 / h**2], [-6 / h**2, 4 / h]", "[12 / h**3, 0 * h], [0 * h, 4 / h]"),
        (2, "(n > order, variance, 0.0)", "(n > order, 5 * variance, 0.0)"),
    ],
)
def test_a_wrong_relationship_is_found(monkeypatch, order, right, wrong):
    spoilt = mutant(random_walk, right, wrong, compiled=False)
    monkeypatch.setattr(reader, "RandomWalk", spoilt.RandomWalk)
    result = judge(draws(order), order)
    assert not result.agrees, result


def spline_draws(directory):
    """(draws, 2) of one chain of engine marginal."""
    source = analysis({"kind": "spline", "of": "day", "knots": SEGMENTS}, LINE, directory)
    source["sampler"] = {"chains": 1, "burn_in": 500, "samples": 6000, "thin": 1, "seed": 5}
    run = mmgibbs.run(source, progress=False)
    assert run.info["engine"] == "marginal"
    kept = read_finished(run.directory).draws
    return np.log(np.column_stack([kept[f"{name}.var[y]"].reshape(-1) for name in SCALE]))


def test_the_variance_of_a_spline_has_its_exact_posterior(tmp_path):
    result = judge(spline_draws(tmp_path / "run"), 2, "spline")
    assert result.agrees, result


@pytest.mark.slow
def test_a_wrong_spline_is_found(monkeypatch, tmp_path):
    right = "degree) @ (vectors / np.sqrt(values))"
    spoilt = mutant(spline, right, "degree) @ vectors", compiled=False)
    monkeypatch.setattr(spline_reader, "curve_covariance", spoilt.curve_covariance)
    result = judge(spline_draws(tmp_path / "run"), 2, "spline")
    assert not result.agrees, result
