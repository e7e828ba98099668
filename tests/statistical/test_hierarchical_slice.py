"""Slice sampling and hierarchical regressions against known densities, quadrature and Geweke's test."""

from functools import cache
from math import log

import numpy as np
import pytest
from helpers.monte_carlo import batches, compare
from helpers.mutants import mutant
from helpers.selection import first
from numba import njit
from reference.hierarchical import grid_moments
from scipy import stats

from mmgibbs.draws.purpose import REGRESSION_COEFFICIENT, REGRESSION_LATENT, REGRESSION_SLICE, stream
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.hierarchical import kernels as slice_kernels
from mmgibbs.regressions.hierarchical import polya_gamma as group_polya_gamma
from mmgibbs.regressions.hierarchical.grouped import pack
from mmgibbs.regressions.hierarchical.slice import (
    HierarchicalSliceOptions,
    HierarchicalSliceSampler,
    compute_information,
)
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData

N = 20_000
DENSITIES = {  # kind, law, width of the bracket
    "normal": (0, stats.norm(1.0, 2.0), 3.0),
    "gamma": (1, stats.gamma(2.5, scale=0.4), 0.7),
}


@njit
def log_density(kind, x):
    if kind == 0:
        return -0.125 * (x - 1.0) ** 2
    return 1.5 * log(x) - 2.5 * x if x > 0.0 else -np.inf


@njit
def above(d, level, target, data):
    kind, x = target
    return log_density(kind, x + d) - log_density(kind, x) > level


def after_slice_steps(name, most_steps, module=slice_kernels):
    """p of draws of a density after three slice steps."""
    kind, law, width = DENSITIES[name]
    x, step = law.rvs(N, random_state=np.random.default_rng(1)), module.compile_slice_step(above)

    @njit
    def move(x):
        for i in range(x.size):
            for sweep in range(3):
                x[i] += step((kind, x[i]), None, width, most_steps, sweep, i, 7, 1, 0)

    move(x)
    return stats.kstest(x, law.cdf).pvalue


@pytest.mark.parametrize("most_steps", [1, 10])
@pytest.mark.parametrize("name", DENSITIES)
def test_a_slice_step_keeps_a_density(name, most_steps):
    assert after_slice_steps(name, most_steps) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("log_u = log(u)", "log_u = 2.0 * log(u)"),
        ("lower = -width * place", "lower = -0.1 * width * place"),
        ("d = lower + w * (right - lower)", "d = lower + w**1.2 * (right - lower)"),
    ],
)
def test_spoiled_slice_steps_are_seen(right, wrong):
    assert after_slice_steps("gamma", 3, mutant(slice_kernels, right, wrong)) < 1e-3


# ---------------------------------------- one group with a fixed prior, in many copies, against a grid

COPIES = 200


def one_group(response):
    """x (n, 2) or (n, 1), successes (n, M), trials (n,), and the log likelihood of (..., 2) coefficients."""
    rng = np.random.default_rng(4)
    slope, ones = rng.standard_normal(6), np.ones(6)
    if response == "poisson":
        y = np.array([0, 3, 1, 0, 7, 2.0])
        eta = lambda b: b[..., 0, None] * slope + b[..., 1, None]
        return slope, y[:, None], ones, lambda b: (y * eta(b) - np.exp(eta(b))).sum(-1)
    if response == "logit":
        y, t = np.array([0, 1, 2, 1, 4, 3.0]), np.array([1, 1, 3, 2, 4, 3.0])
        eta = lambda b: b[..., 0, None] * slope + b[..., 1, None]
        return slope, y[:, None], t, lambda b: (y * eta(b) - t * np.logaddexp(0, eta(b))).sum(-1)
    counts = np.array([[1, 0, 3], [0, 2, 1], [2, 0, 0.0]])
    t = counts.sum(1)
    likelihood = lambda b: b @ counts[:, :2].sum(0) - t.sum() * np.log1p(np.exp(b).sum(-1))
    return None, counts[:, :2], t, likelihood


def copies(response, method, sweeps, spoil=lambda groups: groups, precision=1.0):
    """Means over the sweeps of each copy: beta, its squares and product, (COPIES, 5); and what a grid says of them."""
    slope, successes, trials, likelihood = one_group(response)
    n = len(trials)
    Q, m = np.array([[0.8, 0.3], [0.3, 1.1]]), np.array([0.4, -0.2])
    prior = lambda b: -0.5 * np.einsum("...i,ij,...j->...", b - m, Q, b - m)
    mean, covariance = grid_moments(lambda b: likelihood(b) + prior(b), [np.linspace(-9, 9, 601)] * 2)
    codes = np.repeat(np.arange(COPIES), n)
    tiled = lambda a: np.concatenate([a] * COPIES)
    X = np.empty((n * COPIES, 0)) if slope is None else tiled(slope)[:, None]
    predictors = read_predictors(X) if slope is not None else _no_columns(n * COPIES)
    groups = spoil(pack(predictors, codes, tiled(successes), tiled(trials)))
    family = "poisson" if response == "poisson" else "logit"
    width = 2.5 / np.sqrt(compute_information(groups, family).reshape(COPIES, 2) + np.diag(Q))
    beta, means, kept = np.tile(mean, (COPIES, 1)), np.tile(m, (COPIES, 1)), []
    for sweep in range(sweeps + 30):
        if method == "slice":
            at = 0, COPIES, sweep, stream(REGRESSION_SLICE, 0), 1, 0
            slice_kernels.sweep_groups(groups, response == "poisson", precision * Q, means, width, 8, True, beta, *at)
        else:
            at = 0, COPIES, sweep, stream(REGRESSION_LATENT, 0), stream(REGRESSION_COEFFICIENT, 0), 1, 0
            group_polya_gamma.sweep_groups(groups, precision * Q, means, beta, *at)
        if sweep >= 30:
            away = beta - mean
            kept.append(np.column_stack([beta, away**2, away.prod(1)]))
    return compare(np.mean(kept, axis=0), np.concatenate([mean, np.diag(covariance), covariance[:1, 1]]))


def _no_columns(n):
    from mmgibbs.regressions.predictors import Predictors

    return Predictors(np.empty((n, 0)), (), np.zeros(0), np.ones(0))


WAYS = [
    ("poisson", "slice"),
    ("logit", "slice"),
    ("logit", "polya_gamma"),
    ("multinomial", "slice"),
    ("multinomial", "polya_gamma"),
]


@pytest.mark.parametrize(("response", "method"), WAYS)
def test_one_group_against_a_grid(response, method):
    comparison = copies(response, method, 300)
    assert comparison.agrees, comparison


@pytest.mark.slow
@pytest.mark.parametrize("method", ["slice", "polya_gamma"])
def test_a_wrong_prior_of_one_group_is_seen(method):
    assert not copies("logit", method, 300, precision=0.85).agrees


@pytest.mark.slow
def test_taylors_sum_without_its_bound_is_seen():
    assert not copies("logit", "slice", 300, lambda groups: groups._replace(fifth=0 * groups.fifth)).agrees


# ------------------------------------------------------------ Geweke's test

GEWEKE = {"population_sd": 0.8, "covariance_df": 10.0, "covariance_mean": 0.5}
FORWARD = 60_000


@cache
def design():
    rng = np.random.default_rng(10)
    groups = np.repeat(np.arange(6), [2, 5, 3, 6, 2, 4])
    return rng.standard_normal((len(groups), 1)), groups, rng.standard_normal((6, 1))


def functions(population, V, beta, y):
    """(N, m) of population (N, 2, 2), V (N, 2, 2), beta (N, 6, 2), y (N, n).

    Counts of a Poisson enter up to 4: with V inverse Wishart E exp(x beta) is infinite.
    """
    y = np.minimum(y, 4)
    lower, (x, groups, _) = np.tril_indices(2), design()
    sums = y @ np.eye(6)[groups]
    flat = lambda part: part.reshape(len(y), -1)
    columns = [flat(population), flat(population) ** 2, V[:, *lower], np.linalg.inv(V)[:, *lower]]
    columns += [np.linalg.slogdet(V)[1][:, None], flat(beta[:, [0, 3, 5]])]
    columns += [np.einsum("nia,nib->nab", beta, beta)[:, *lower], sums[:, [0, 3]], y @ x]
    columns += [sums[:, [1, 3]] * beta[:, [1, 3], 1], (y @ x) * beta.sum(1)[:, :1], population[:, 1] * beta[:, 3]]
    return np.concatenate(columns, axis=1)


@cache
def forward(family):
    rng = np.random.default_rng(11)
    _, _, z = design()
    Z = np.column_stack([np.ones(6), z])
    population = GEWEKE["population_sd"] * rng.standard_normal((FORWARD, 2, 2))
    V = stats.invwishart.rvs(10, 7 * 0.5 * np.eye(2), size=FORWARD, random_state=rng)
    beta = Z @ population + rng.standard_normal((FORWARD, 6, 2)) @ np.swapaxes(np.linalg.cholesky(V), 1, 2)
    y = responses(rng, family, beta)
    f = functions(population, V, beta, y)
    return f.mean(0), f.std(0) / np.sqrt(FORWARD)


def responses(rng, family, beta):
    x, groups, _ = design()
    eta = beta[..., groups, 0] * x[:, 0] + beta[..., groups, 1]
    if family == "poisson":
        return np.minimum(rng.poisson(np.exp(np.minimum(eta, 15))), 1e6).astype(float)
    return (rng.random(eta.shape) < 1 / (1 + np.exp(-eta))).astype(float)


def successive(n, method="slice", family="logit", mutate=lambda sampler: None, seed=12):
    """n draws of the functions from the chain that alternates a sweep given y with y given all else."""
    rng = np.random.default_rng(seed)
    x, groups, z = design()
    options = HierarchicalSliceOptions(method=method, family=family, **GEWEKE)
    sampler = HierarchicalSliceSampler(
        RegressionData(read_predictors(x), np.arange(len(groups)) % 2, "y", groups, z), options, Host(1)
    )
    mutate(sampler)
    keys, member, X = Keys(seed, (0,)), np.eye(6)[groups], np.column_stack([x, np.ones(len(x))])
    state, kept = sampler.start(keys), []
    for sweep in range(1, n + 201):
        y = responses(rng, family, state["beta"][0])
        sampler.groups.cross[:, 0] = member.T @ (X * y[:, None])
        sampler.information[:] = compute_information(sampler.groups, family).reshape(6, 2)
        if sweep > 200:
            kept.append((state["population"][0], state["covariance"][0], state["beta"][0], y))
        state = sampler.step(state, sweep, keys)
    return functions(*(np.array(part) for part in zip(*kept, strict=True)))


def held_to_forward(n, family="logit", **options):
    return compare(batches(successive(n, family=family, **options)), *forward(family))


def spoiled_visit(change):
    def mutate(sampler):
        visit = sampler.update_groups
        sampler.update_groups = lambda beta, Q, mean, *rest: visit(beta, *change(Q, mean), *rest)

    return mutate


SPOILED = {
    "precision of the groups": spoiled_visit(lambda Q, mean: (0.8 * Q, mean)),
    "expectation of the groups": spoiled_visit(lambda Q, mean: (Q, 0.8 * mean)),
    "one group short": lambda sampler: setattr(sampler, "nu", sampler.nu - 2),
    "prior of the population": lambda sampler: setattr(sampler, "eigenvalues", 1.3 * sampler.eigenvalues),
}


@pytest.mark.parametrize(
    ("method", "family"), first(2, [("slice", "logit"), ("polya_gamma", "logit"), ("slice", "poisson")])
)
def test_the_joint_distribution_is_left_as_it_is(method, family):
    comparison = held_to_forward(4000, method=method, family=family)
    assert comparison.agrees, comparison


@pytest.mark.slow
@pytest.mark.parametrize("name", SPOILED)
def test_spoiled_samplers_are_seen(name):
    comparison = held_to_forward(3000, mutate=SPOILED[name])
    assert not comparison.agrees, comparison
