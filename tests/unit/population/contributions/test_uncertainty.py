"""Plans of draws and the robust plan against SciPy; whole matings and pairs against all permutations."""

from itertools import permutations

import numpy as np
import polars as pl
import pytest
from helpers.mutants import mutant
from scipy.optimize import minimize

from mmgibbs.population.contributions import uncertainty as uncertainty_module
from mmgibbs.population.contributions.coancestry import DenseCoancestry
from mmgibbs.population.contributions.matings import assign_matings, round_matings
from mmgibbs.population.contributions.optimum import ContributionOptimiser, Limits
from mmgibbs.population.contributions.uncertainty import find_robust_plan, mean_of_worst, optimise_draws, selected_share

SHARE = 0.25


@pytest.fixture
def problem():
    rng = np.random.default_rng(7)
    m = 10
    half = rng.standard_normal((m, 30))
    K = 0.5 * half @ half.T / 30 + 0.5 * np.eye(m)
    limits = Limits(np.arange(m) < 4, np.zeros(m), np.full(m, 0.3))
    mean = rng.standard_normal(m)
    draws = mean + rng.standard_normal((40, m)) * np.where(mean > 0.5, 3.0, 0.5)  # the best are the least certain
    return ContributionOptimiser(DenseCoancestry(K), limits), K, limits, draws, 0.11


def best_by_scipy(K, limits, draws, limit):
    """The epigraph form: maximise v - sum of slack / (share S) over c, v and the slack of each draw."""
    S, m = draws.shape
    objective = lambda x: -(x[m] - x[m + 1 :].sum() / (SHARE * S))
    gradient = np.concatenate([np.zeros(m), [-1.0], np.full(S, 1 / (SHARE * S))])
    constraints = [{"type": "eq", "fun": lambda x, sex=sex: x[sex].sum() - 0.5} for sex in limits.sexes()]
    constraints += [
        {"type": "ineq", "fun": lambda x: limit - 0.5 * x[:m] @ K @ x[:m]},
        {"type": "ineq", "fun": lambda x: x[m + 1 :] + draws @ x[:m] - x[m]},
    ]
    bounds = [*zip(limits.lowest, limits.highest, strict=True), (None, None), *[(0, None)] * S]
    start = np.concatenate([np.where(limits.is_male, 0.125, 0.5 / 6), [0.0], np.zeros(S)])
    found = minimize(
        objective, start, jac=lambda x: gradient, method="SLSQP", bounds=bounds, constraints=constraints,
        options={"maxiter": 1000, "ftol": 1e-12},
    )  # fmt: skip
    return -found.fun


def test_the_robust_plan_has_the_best_mean_of_the_worst_draws(problem):
    optimiser, K, limits, draws, limit = problem
    robust = find_robust_plan(optimiser, draws, limit, SHARE)
    best = best_by_scipy(K, limits, draws, limit)
    gains = draws @ robust.plan.contributions
    assert robust.worst == mean_of_worst(gains, SHARE)
    assert robust.worst <= best + 1e-6 <= robust.worst + robust.gap + 2e-6
    assert robust.gap < 2e-3 * gains.std()
    plain = optimiser.limit_coancestry(draws.mean(axis=0), limit)
    assert robust.worst > mean_of_worst(draws @ plain.contributions, SHARE) + 0.01
    assert robust.plan.coancestry <= limit * (1 + 1e-8)


def test_a_search_that_does_not_move_leaves_a_gap(problem):
    optimiser, _, _, draws, limit = problem
    spoilt = mutant(uncertainty_module, "project(w - length * gains", "project(w - 0 * length * gains")
    robust = spoilt.find_robust_plan(optimiser, draws, limit, SHARE)
    assert robust.gap > 2e-3 * (draws @ robust.plan.contributions).std()


def test_each_draw_has_its_own_optimum(problem):
    optimiser, _, limits, draws, limit = problem
    done = []
    drawn = optimise_draws(optimiser, draws[:5], limit, done.append)
    assert done == [1, 2, 3, 4, 5]
    for s in range(5):
        expected = ContributionOptimiser(optimiser.K, limits).limit_coancestry(draws[s], limit)
        np.testing.assert_allclose(drawn.contributions[s], expected.contributions, atol=1e-7)
        np.testing.assert_allclose(drawn.gains[s], draws[s] @ drawn.contributions[s])
        assert drawn.coancestry[s] <= limit * (1 + 1e-8)
    np.testing.assert_allclose(selected_share(drawn.contributions), (drawn.contributions > 1e-9).mean(axis=0))


def test_the_mean_of_the_worst_counts_the_last_draw_in_part():
    gains = np.array([4.0, 1.0, 3.0, 2.0])
    assert mean_of_worst(gains, 0.5) == 1.5
    assert mean_of_worst(gains, 0.625) == (1 + 2 + 0.5 * 3) / 2.5
    assert mean_of_worst(gains, 1.0) == 2.5


def test_whole_matings_keep_the_sums_and_the_limits():
    rng = np.random.default_rng(2)
    for _ in range(20):
        is_male = np.arange(12) < 5
        highest = np.where(rng.random(12) < 0.5, 4, 11)
        lowest = np.where(rng.random(12) < 0.3, 1, 0)
        limits = Limits(is_male, lowest / 22, highest / 22)
        c = np.where(is_male, rng.dirichlet(np.ones(12)), rng.dirichlet(np.ones(12)))
        for sex in limits.sexes():
            c[sex] *= 0.5 / c[sex].sum()
        c = np.clip(c, limits.lowest, limits.highest)
        counts = round_matings(c, limits, 11)
        assert counts[is_male].sum() == counts[~is_male].sum() == 11
        assert (counts >= lowest).all() and (counts <= highest).all()
    thirds = np.array([1 / 6, 1 / 6, 1 / 6, 0.3, 0.2])
    limits = Limits(np.array([True, True, True, False, False]), np.zeros(5), np.full(5, 0.5))
    assert round_matings(thirds, limits, 10).tolist() == [4, 3, 3, 6, 4]


def test_pairs_have_the_least_inbreeding():
    rng = np.random.default_rng(3)
    half = rng.standard_normal((7, 9))
    K = half @ half.T / 9 + np.eye(7)
    is_male, counts = np.arange(7) < 3, np.array([2, 1, 2, 1, 1, 1, 2])
    pairs = assign_matings(DenseCoancestry(K), is_male, counts)
    row, column = np.repeat(np.arange(3), counts[:3]), np.repeat(np.arange(3, 7), counts[3:])
    best = min(sum(K[s, d] / 2 for s, d in zip(row, order, strict=True)) for order in set(permutations(column)))
    np.testing.assert_allclose((pairs["matings"] * pairs["inbreeding"]).sum(), best)
    for role, number in (("sire", counts[:3]), ("dam", counts[3:])):
        assert pairs.group_by(role).agg(pl.col("matings").sum()).sort(role)["matings"].to_list() == number.tolist()
