"""Slice sampling and hierarchical regressions against known densities, quadrature, an independent sampler and Geweke's
test."""

from functools import cache
from math import log

import numpy as np
import pytest
from helpers.monte_carlo import batches, compare
from numba import njit
from reference.hierarchical import grid_moments, hierarchical_logit
from reference.hierarchical_lockstep import slice_steps
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

# ------------------------------------------------------------------------------------------- slice steps on known
# densities

N = 20_000
DENSITIES = {
    "normal": (0, stats.norm(1.0, 2.0), 3.0),
    "gamma": (1, stats.gamma(2.5, scale=0.4), 0.7),
    "bimodal": (2, None, 1.0),  # 0.3 N(-2, 0.5^2) + 0.7 N(2, 1)
}


def bimodal_cdf(x):
    return 0.3 * stats.norm.cdf(x, -2, 0.5) + 0.7 * stats.norm.cdf(x, 2, 1)


def draws_of(name, rng):
    kind, law, width = DENSITIES[name]
    if law is not None:
        return kind, law.cdf, law.rvs(N, random_state=rng), width
    low = rng.random(N) < 0.3
    return kind, bimodal_cdf, np.where(low, -2 + 0.5 * rng.standard_normal(N), 2 + rng.standard_normal(N)), width


@njit
def log_density(kind, x):
    if kind == 0:
        return -0.125 * (x - 1.0) ** 2
    if kind == 1:
        return 1.5 * log(x) - 2.5 * x if x > 0.0 else -np.inf
    return log(0.6 * np.exp(-2.0 * (x + 2.0) ** 2) + 0.7 * np.exp(-0.5 * (x - 2.0) ** 2) + 1e-300)


@njit
def above(d, level, target, data):
    kind, x = target
    return log_density(kind, x + d) - log_density(kind, x) > level


step = slice_kernels.compile_slice_step(above)


@njit
def steps(kind, x, width, most_steps, sweeps):
    for i in range(x.size):
        for sweep in range(sweeps):
            x[i] += step((kind, x[i]), None, width, most_steps, sweep, i, 7, 1, 0)


def fits(x, cdf):
    return stats.kstest(x, cdf).pvalue > 1e-3


@pytest.mark.parametrize("most_steps", [1, 3, 10])
@pytest.mark.parametrize("name", DENSITIES)
def test_a_slice_step_keeps_a_density(name, most_steps):
    kind, cdf, x, width = draws_of(name, np.random.default_rng(1))
    assert fits(x, cdf)
    steps(kind, x, width, most_steps, 3)
    assert fits(x, cdf)


@pytest.mark.parametrize("name", DENSITIES)
def test_slice_steps_find_a_density(name):
    """From one point, also across the gap between two modes."""
    kind, cdf, x, width = draws_of(name, np.random.default_rng(2))
    x[:] = 0.5
    steps(kind, x, width, 10, 60)
    assert fits(x, cdf)


def lockstep(name, spoil=lambda u: u, sweeps=3, most_steps=3):
    rng = np.random.default_rng(3)
    kind, cdf, x, width = draws_of(name, rng)
    density = np.vectorize(log_density, otypes=[float])
    for _ in range(sweeps):
        drawn = rng.random((1, N, 64))
        here = density(kind, x)
        rise = lambda d, x=x, here=here: density(kind, x + d) - here
        uniforms = lambda k, drawn=drawn: spoil(drawn[:, :, :k].copy())
        x = x + slice_steps(rise, np.full((1, N), width), most_steps, uniforms)[0]
    return fits(x, cdf)


SPOILED_STEPS = {
    "height": lambda u: np.concatenate([u[..., :1] ** 2, u[..., 1:]], axis=-1),
    "bracket to the right": lambda u: np.concatenate([u[..., :1], 0.1 * u[..., 1:2], u[..., 2:]], axis=-1),
    "candidates near the left": lambda u: np.concatenate([u[..., :3], u[..., 3:] ** 1.2], axis=-1),
}


def test_slice_steps_in_lockstep():
    assert lockstep("bimodal")


@pytest.mark.slow
@pytest.mark.parametrize("name", SPOILED_STEPS)
def test_spoiled_slice_steps_are_seen(name):
    assert not lockstep("bimodal", SPOILED_STEPS[name])


# ---------------------------------------------------------------- one group with a fixed prior, in many copies, against
# a grid

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
            call = (
                groups,
                response == "poisson",
                precision * Q,
                means,
                width,
                8,
                True,
                beta,
                0,
                COPIES,
                sweep,
                stream(REGRESSION_SLICE, 0),
                1,
                0,
            )
            slice_kernels.sweep_groups(*call)
        else:
            call = (
                groups,
                precision * Q,
                means,
                beta,
                0,
                COPIES,
                sweep,
                stream(REGRESSION_LATENT, 0),
                stream(REGRESSION_COEFFICIENT, 0),
                1,
                0,
            )
            group_polya_gamma.sweep_groups(*call)
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
@pytest.mark.parametrize(("response", "method"), WAYS)
def test_a_wrong_prior_of_one_group_is_seen(response, method):
    assert not copies(response, method, 300, precision=0.85).agrees


@pytest.mark.slow
def test_taylors_sum_without_its_bound_is_seen():
    assert not copies("logit", "slice", 300, lambda groups: groups._replace(fifth=0 * groups.fifth)).agrees


# --------------------------------------------------------------------------------- the whole model against random-walk
# Metropolis

PRIOR = {"population_sd": 2.0, "covariance_df": 6.0, "covariance_mean": 0.5}  # S = (6 - 2 - 1) 0.5 I


@cache
def data():
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(8), [3, 9, 14, 5, 20, 8, 11, 6])
    x, z = rng.standard_normal((len(groups), 1)), rng.standard_normal((8, 1))
    eta = 1.2 * x[:, 0] + (0.8 * z[:, 0] + 0.6 * rng.standard_normal(8))[groups]
    return x, (rng.random(len(groups)) < 1 / (1 + np.exp(-eta))).astype(int), groups, z


def summaries(beta, population, covariance):
    """(N, m): functions of states of one chain, or of (N, chains) states."""
    lower = np.tril_indices(2)
    flat = lambda a, k: a.reshape(*a.shape[:-k], -1)
    log_det = np.linalg.slogdet(covariance)[1][..., None]
    return np.concatenate(
        [
            flat(population, 2),
            flat(population, 2) ** 2,
            flat(beta[..., [0, 2, 4], :], 2),
            flat(beta[..., [0, 4], :], 2) ** 2,
            np.log(covariance[..., [0, 1], [0, 1]]),
            log_det,
            (covariance / (1 + np.abs(covariance)))[..., *lower],
        ],
        axis=-1,
    )


def reference_run(chains=200, samples=4000, seed=6):
    """Means of the summaries over the chains, and their standard errors."""
    x, y, groups, z = data()
    x, z = np.column_stack([x, np.ones(len(x))]), np.column_stack([np.ones(len(z)), z])
    draws = hierarchical_logit(x, y, groups, z, PRIOR["population_sd"], 6, 1.5 * np.eye(2), chains, 500, samples, seed)
    each = summaries(*draws).mean(axis=0)
    return each.mean(axis=0), each.std(axis=0, ddof=1) / np.sqrt(chains)


# Means and standard errors of reference_run(), 56 s.
REFERENCE = (
    np.array(
        [1.76272, -0.25902, 0.13606, 0.83508, 3.47124, 0.25084, 0.35524, 0.89326, 1.73853, -1.38792, 1.53272,
         0.66017, 1.54783, -1.01042, 4.04107, 2.51674, 2.81797, 1.24393, -0.75253, -1.16223, -2.15022, 0.33687,
         -0.06737, 0.25357]
    ),
    np.array(
        [0.003054, 0.001823, 0.002486, 0.002361, 0.011885, 0.001325, 0.001864, 0.004344, 0.005251, 0.004438,
         0.003928, 0.00292, 0.002804, 0.002022, 0.0262, 0.015638, 0.009674, 0.004564, 0.004015, 0.00228, 0.004446,
         0.000853, 0.000865, 0.000448]
    ),
)  # fmt: skip


def model(method="slice", **changes):
    x, y, groups, z = data()
    options = HierarchicalSliceOptions(method=method, **PRIOR | changes)
    return HierarchicalSliceSampler(RegressionData(read_predictors(x), y, "y", groups, z), options, Host(1))


def sampled(sampler, sweeps, chains=4, seed=8):
    keys = Keys(seed, tuple(range(chains)))
    state, kept = sampler.start(keys), []
    for sweep in range(1, sweeps + 201):
        state = sampler.step(state, sweep, keys)
        if sweep > 200:
            kept.append(summaries(state["beta"], state["population"], state["covariance"]))
    return np.swapaxes(kept, 0, 1)


def held_to_reference(sampler, sweeps):
    mean, error = REFERENCE
    draws = sampled(sampler, sweeps)
    return compare(np.concatenate([batches(chain, 40) for chain in draws]), mean, error)


@pytest.mark.parametrize("method", ["slice", "polya_gamma"])
def test_hierarchical_logit_against_random_walk_metropolis(method):
    comparison = held_to_reference(model(method), 3000)
    assert comparison.agrees, comparison


@pytest.mark.slow
def test_a_group_forgotten_by_the_covariance_is_seen():
    spoiled = model()
    spoiled.nu -= 1
    assert not held_to_reference(spoiled, 2000).agrees


@pytest.mark.slow
def test_the_reference_is_what_it_was():
    mean, error = reference_run(samples=2000, seed=9)
    z = (mean - REFERENCE[0]) / np.hypot(error, REFERENCE[1])
    assert np.abs(z).max() < 4.5


# ---------------------------------------------------------------------------------------------------------------
# Geweke's test

GEWEKE = {"population_sd": 0.8, "covariance_df": 10.0, "covariance_mean": 0.5}
FORWARD = 100_000


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
    columns = [
        population.reshape(len(y), -1),
        population.reshape(len(y), -1) ** 2,
        V[:, *lower],
        np.linalg.inv(V)[:, *lower],
    ]
    columns += [
        np.linalg.slogdet(V)[1][:, None],
        beta[:, [0, 3, 5]].reshape(len(y), -1),
        np.einsum("nia,nib->nab", beta, beta)[:, *lower],
    ]
    columns += [
        sums[:, [0, 3]],
        y @ x,
        sums[:, [1, 3]] * beta[:, [1, 3], 1],
        (y @ x) * beta.sum(1)[:, :1],
        population[:, 1] * beta[:, 3],
    ]
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
    first = np.arange(len(groups)) % 2
    options = HierarchicalSliceOptions(method=method, family=family, **GEWEKE)
    sampler = HierarchicalSliceSampler(RegressionData(read_predictors(x), first, "y", groups, z), options, Host(1))
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


@pytest.mark.parametrize("method", ["slice", "polya_gamma"])
def test_the_joint_distribution_is_left_as_it_is(method):
    comparison = held_to_forward(4000, method=method)
    assert comparison.agrees, comparison


@pytest.mark.slow
@pytest.mark.parametrize("name", SPOILED)
def test_spoiled_samplers_are_seen(name):
    comparison = held_to_forward(3000, mutate=SPOILED[name])
    assert not comparison.agrees, comparison


@pytest.mark.slow
@pytest.mark.parametrize(("method", "family"), [("slice", "logit"), ("polya_gamma", "logit"), ("slice", "poisson")])
def test_full_count(method, family):
    comparison = held_to_forward(100_000, method=method, family=family, seed=13)
    assert comparison.agrees, comparison
