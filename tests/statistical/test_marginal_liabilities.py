"""Engine marginal for traits in categories against quadrature; a spoiled copy of each of its formulas must fail.

Full sibs of unrelated parents with one record each. Given the variance G of an animal model the families share f ~ N(0,
G/2) and a record has G/2 + 1 beside it, so that with s = sqrt(1 + G/2) the posterior is an integral over h2, the
intercept / s, the thresholds / s and one normal for each family.
"""

from functools import cache

import numpy as np
import polars as pl
import pytest
from helpers.monte_carlo import batches, compare
from helpers.mutants import mutant
from helpers.selection import first
from scipy import stats

import mmgibbs.engines.direct.engine as engine_module
import mmgibbs.sampler.marginal.liabilities as step_module
import mmgibbs.sampler.steps as steps_module
from mmgibbs.build.assemble import assemble
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.sampler.schedule import Schedule
from mmgibbs.sampler.steps import OfKeptSweeps, gibbs_steps

FAMILIES, SIZE, BURN_IN, DRAWS = 20, 10, 400, 8_000
DF, SCALE = 6.0, 3.0
TYPES = {2: "binary", 3: "ordinal"}
# of G: the default of binary traits; flat thresholds beside it have no posterior where each animal has one record
PRIORS = {2: {"h2": "uniform"}, 3: {"df": DF, "scale": [[SCALE]]}}


@cache
def categories(K):
    """(families, size) of each record, h2 near 0.35."""
    rng = np.random.default_rng(21)
    liability = 0.4 + 0.5 * rng.standard_normal((FAMILIES, 1)) + 1.2 * rng.standard_normal((FAMILIES, SIZE))
    return np.searchsorted([0.0, 1.2][: K - 1], liability)


@cache
def model_of(K):
    category = categories(K)
    animals = [f"a{i}" for i in range(category.size)]
    family = np.repeat(np.arange(FAMILIES), SIZE)
    pedigree = {"id": animals, "sire": [f"s{f}" for f in family], "dam": [f"d{f}" for f in family]}
    parents = [f"{sex}{f}" for f in range(FAMILIES) for sex in "sd"]
    founders = pl.DataFrame({"id": parents, "sire": [None] * len(parents), "dam": [None] * len(parents)})
    analysis = load_config(
        {
            "name": "families",
            "data": {
                "phenotypes": pl.DataFrame({"animal": animals, "y": category.ravel()}),
                "pedigree": pl.concat([pl.DataFrame(pedigree), founders.cast(pl.String)]),
            },
            "traits": {"y": {"type": TYPES[K]}},
            "variances": {"animal": {"prior": PRIORS[K]}},
            "model": {"random": {"animal": {"relationship": "pedigree"}}},
        }
    )
    return assemble(analysis, prepare(analysis)).model


@cache
def by_quadrature(K):
    """E of h2, h2^2, intercept / s and, of three categories, t_2 / s."""
    counts = np.stack([(categories(K) == c).sum(axis=1) for c in range(K)])
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    h2 = (np.arange(50) + 0.5) / 50
    a = np.linspace(-0.6, 1.3, 50)
    t = np.linspace(0.35, 1.7, 45) if K == 3 else np.array([np.inf])
    moments, total = np.zeros(4), 0.0
    for h in h2:
        G = h / (1 - h)
        s = np.sqrt(1 + G / 2)
        z = a[:, None] + np.sqrt(G / 2) / s * nodes
        below = stats.norm.cdf(-z)[:, None]
        above = stats.norm.sf(t[:, None] - z[:, None])
        p = [below, 1 - below - above, above] if K == 3 else [below, 1 - below]
        log_p = np.log(np.maximum(p, 1e-300) if K == 2 else np.maximum(np.broadcast_arrays(*p), 1e-300))
        log_L = np.log(np.exp(np.tensordot(counts.T, log_p, 1)) @ (weights / weights.sum())).sum(axis=0)
        density = np.exp(log_L + 200.0) * s ** (K - 1)  # the Jacobian of intercept and t_2, which are flat
        if K == 3:  # the inverse Wishart, and dG/dh2
            density *= G ** (-0.5 * DF - 1) * np.exp(-0.5 * SCALE / G) * (1 + G) ** 2
        total += density.sum()
        moments[:2] += density.sum() * h, density.sum() * h * h
        moments[2] += a @ density.sum(axis=1)
        moments[3] += density.sum(axis=0) @ t if K == 3 else 0.0
    return (moments / total)[: K + 1]


def draws(K, n=DRAWS, seed=4):
    """(n, quantities) of each sweep after burn-in."""
    model = model_of(K)
    engine = engine_module.MarginalEngine(structured_equations(model.design, partition(model.design)))
    steps = gibbs_steps(model, engine, Schedule(BURN_IN, n), (seed, 0))
    steps = [step for step in steps if not isinstance(step, OfKeptSweeps)]
    genetic = model.random_terms[0]
    intercept = next(i for i, term in enumerate(model.design.terms) if term.kind == "fixed")
    out = np.empty((n, K + 1))
    for number in range(1, BURN_IN + n + 1):
        for step in steps:
            step(number)
        if number > BURN_IN:
            G = steps[0].draws()[f"G.{genetic}"].item()
            h2, s = G / (1 + G), np.sqrt(1 + G / 2)
            quantities = h2, h2 * h2, engine.theta[intercept].item() / s, steps[2].cuts[2] / s
            out[number - BURN_IN - 1] = quantities[: K + 1]
    return out


def agreement(K, n=DRAWS):
    return compare(batches(draws(K, n)), by_quadrature(K))


def test_the_intercept_is_flat():
    intercept = next(term for term in model_of(2).design.terms if term.kind == "fixed")
    assert intercept.prior_precision is None


@pytest.mark.parametrize("K", first(1, TYPES))
def test_moments_agree_with_quadrature(K):
    comparison = agreement(K)
    assert comparison.agrees, comparison


MUTANTS = {  # module, its line, what that becomes; who uses what of it; categories
    "half the square of the scale": (
        step_module,
        "np.sqrt(2.0 * drawn",
        "np.sqrt(drawn",
        (steps_module, "LiabilityVariances"),
        2,
    ),
    "a scale that stays": (
        step_module,
        "g = float(np.sqrt(2.0 * drawn / likelihood.kept_squares()))",
        "g = 1.0",
        (steps_module, "LiabilityVariances"),
        2,
    ),
    "thresholds forgotten where the scale is counted": (
        engine_module,
        "+ response.n_free_thresholds)",
        "- 12)",
        (engine_module, "power_of_scale"),
        3,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(MUTANTS))
def test_mutants_are_rejected(name, monkeypatch):
    module, right, wrong, (user, used), K = MUTANTS[name]
    spoilt = mutant(module, right, wrong, compiled=False)
    for kernel in [n for n, value in vars(module).items() if hasattr(value, "py_func")]:
        monkeypatch.setattr(spoilt, kernel, getattr(module, kernel))  # compiled already
    monkeypatch.setattr(user, used, getattr(spoilt, used))
    comparison = agreement(K, 4000)
    assert not comparison.agrees, comparison
