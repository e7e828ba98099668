"""The Polya-Gamma multinomial logit against Dirichlet posteriors and quadrature, with spoilt samplers that must
fail.
"""

import numpy as np
import pytest
from helpers.monte_carlo import chain_batches, compare, mean_and_variance, with_squares
from helpers.mutants import mutant
from scipy.special import digamma, polygamma

from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.multinomial import polya_gamma as multinomial_pg
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData

CHAINS = 100


def draws(X, y, samples, burn_in=30, seed=21, module=multinomial_pg, **options):
    """(chains, samples, m): beta, then the intercepts, of X as given."""
    data = RegressionData(read_predictors(np.asarray(X, float)), np.asarray(y))
    model = module.MultinomialPGModel.prepare(data, module.MultinomialPGOptions(**options), Host(1))
    keys = Keys(seed, tuple(range(CHAINS)))
    state, kept = model.start(keys), []
    for sweep in range(1, burn_in + samples + 1):
        state = model.step(state, sweep, keys)
        if sweep > burn_in:
            kept.append(np.concatenate([v.reshape(CHAINS, -1) for v in model.log(state).values()], axis=1))
    return np.stack(kept, axis=1)


def dirichlet(counts):
    """Exact means and standard deviations of log p_j / p_K, p ~ Dirichlet(counts), rows of counts one after another."""
    counts = np.asarray(counts, float)
    mean = digamma(counts[:, :-1]) - digamma(counts[:, -1:])
    return mean.ravel(), np.sqrt(polygamma(1, counts[:, :-1]) + polygamma(1, counts[:, -1:])).ravel()


def judged(sampled, mean, sd):
    return compare(chain_batches(with_squares(sampled, mean)), mean_and_variance(mean, sd))


FLAT = {"prior_precision": 0.0, "intercept": False}


def groups_of_any_size(**other):
    """One-hot rows: 6, 15 and 100 trials, sums of Polya-Gammas and the series beyond 16."""
    counts = [[2, 2, 2], [3, 5, 7], [40, 25, 35]]
    sampled = draws(np.eye(3), counts, 900, prior_precision=0.0, intercept=False, **other)
    return judged(sampled, *dirichlet(counts))


def test_groups_of_any_size_are_dirichlet_each():
    comparison = groups_of_any_size()
    assert comparison.agrees, comparison


def without_offset(logits, j, *rest):
    """c = 0 for every row: as if there were only category j and the reference."""
    alone = np.full_like(logits, -1e9)
    alone[:, j] = logits[:, j]
    multinomial_pg.category_weights(alone, j, *rest)


MUTANTS = {
    "all omegas before all betas": ("else slice(j - 1, j)", "else slice(0, 0)"),
    "noise by L instead of its transposed inverse": (
        "beta[:, j] = a.solve_lower(L, half, transposed=True)",
        "beta[:, j] = a.solve_lower(L, a.solve_lower(L, right), transposed=True) + (L @ a.normals(keys, sweep, "
        "stream(16, j), d)[..., None])[..., 0]",
    ),
    "no offset": ("                category_weights(\n", "                spoilt_weights(\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_samplers_are_found(name):
    module = mutant(multinomial_pg, *MUTANTS[name])
    module.spoilt_weights = without_offset
    comparison = groups_of_any_size(module=module)
    assert not comparison.agrees, comparison


RNG = np.random.default_rng(30)
X = RNG.normal(0, 1.5, (14, 1))
CASES = {
    "labels": np.arange(14) % 3 == 0,
    "counts": np.column_stack([RNG.integers(0, 4, 14), RNG.integers(0, 30, 14)]),
}
PRIOR = {"prior_mean": 0.4, "prior_precision": 0.8, "intercept_mean": [-0.3], "intercept_precision": 0.25}


def binary_posterior(y):
    """Exact mean and standard deviation of slope and intercept of the first class, on a grid."""
    first, n = (~y, np.ones(14)) if y.ndim == 1 else (y[:, 0], y.sum(1))  # of the labels, False is the first class
    slope, intercept = np.meshgrid(np.linspace(-6, 6, 601), np.linspace(-9, 8, 601), indexing="ij")
    density = -0.4 * (slope - 0.4) ** 2 - 0.125 * (intercept + 0.3) ** 2
    for x, k, trials in zip(X[:, 0], first, n, strict=True):
        eta = intercept + slope * x
        density += k * eta - trials * np.logaddexp(0, eta)
    p = np.exp(density - density.max())
    assert max(p[0].max(), p[-1].max(), p[:, 0].max(), p[:, -1].max()) < 1e-6
    mean = np.array([(p * v).sum() for v in (slope, intercept)]) / p.sum()
    square = np.array([(p * v**2).sum() for v in (slope, intercept)]) / p.sum()
    return mean, np.sqrt(square - mean**2)


@pytest.mark.parametrize("case, precision", [("labels", "double"), ("counts", "single")])
def test_two_classes_against_quadrature(case, precision):
    y = CASES[case]
    comparison = judged(draws(X, y, 600, precision=precision, **PRIOR), *binary_posterior(y))
    assert comparison.agrees, comparison


@pytest.mark.slow
def test_a_forgotten_prior_mean_is_found():
    module = mutant(multinomial_pg, 'np.einsum("jab,jb->ja", P, mean)', "0 * mean")
    comparison = judged(draws(X, CASES["labels"], 600, module=module, **PRIOR), *binary_posterior(CASES["labels"]))
    assert not comparison.agrees, comparison
