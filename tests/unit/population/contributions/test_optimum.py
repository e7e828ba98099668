"""Optimum contributions against SciPy's SLSQP, a grid, the closed form, and the conditions of Karush, Kuhn, Tucker."""

import numpy as np
import pytest
from helpers.mutants import mutant
from scipy.optimize import minimize

from mmgibbs.pedigree import relatives
from mmgibbs.pedigree.inbreeding import inbreeding
from mmgibbs.pedigree.relationship_products import relationship_block
from mmgibbs.population.contributions import coancestry as coancestry_module
from mmgibbs.population.contributions import optimum as optimum_module
from mmgibbs.population.contributions.coancestry import DenseCoancestry, PedigreeCoancestry
from mmgibbs.population.contributions.optimum import ActiveSet, ContributionOptimiser, Limits, project, select_best


def simulated(seed, n=40, m=14, tied=False):
    """K of a small inbred pedigree, breeding values and limits of which some bind."""
    rng = np.random.default_rng(seed)
    sire, dam = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    for i in range(n // 5, n):
        sire[i], dam[i] = rng.integers(0, i // 2), rng.integers(i // 2, i)
    candidates = np.sort(rng.choice(n, m, replace=False))
    K = PedigreeCoancestry(relatives(sire, dam, inbreeding(sire, dam)), candidates)
    b = rng.standard_normal(m)
    lowest = np.where(rng.random(m) < 0.2, 0.03, 0.0)
    highest = np.where(rng.random(m) < 0.7, 0.2, 0.5)
    A = relationship_block(sire, dam, inbreeding(sire, dam), candidates)
    return K, A, np.round(b) if tied else b, Limits(np.arange(m) % 2 == 0, lowest, highest)


def solved_by_scipy(objective, gradient, limits, start, *more):
    sums = [{"type": "eq", "fun": lambda x, sex=sex: x[sex].sum() - 0.5} for sex in limits.sexes()]
    return minimize(
        objective, start, jac=gradient, method="SLSQP", bounds=list(zip(limits.lowest, limits.highest, strict=True)),
        constraints=[*sums, *more], options={"ftol": 1e-15, "maxiter": 2000},
    )  # fmt: skip


def largest_violation(c, multipliers, K, b, t, limits):
    """Of the conditions at the optimum of t b'c - c'Kc / 2, with the multipliers of the two sexes."""
    g = t * b - K @ c - np.where(limits.is_male, *multipliers)
    at_lowest, at_highest = c <= limits.lowest, c >= limits.highest
    wrong = np.where(at_lowest, g, np.where(at_highest, -g, np.abs(g)))
    wrong = wrong[limits.highest > limits.lowest].max()
    sums = max(abs(c[sex].sum() - 0.5) for sex in limits.sexes())
    beyond = max((limits.lowest - c).max(), (c - limits.highest).max())
    return max(wrong, sums, beyond)


def test_products_and_blocks_of_a():
    K, A, b, _ = simulated(1)
    np.testing.assert_allclose(K.times(b), A @ b, atol=1e-12)
    np.testing.assert_allclose(K.block(np.array([5, 2, 9])), A[np.ix_([5, 2, 9], [5, 2, 9])], atol=1e-12)
    np.testing.assert_allclose(K.block(np.array([2, 0, 5])), A[np.ix_([2, 0, 5], [2, 0, 5])], atol=1e-12)  # kept ones
    np.testing.assert_allclose(K.pairs(np.array([1, 3]), np.array([0, 4, 6])), A[np.ix_([1, 3], [0, 4, 6])], atol=1e-12)


@pytest.mark.parametrize("t", [0.0, 0.05, 0.3, 2.0])
@pytest.mark.parametrize("tied", [False, True])
def test_the_optimum_meets_the_conditions_and_slsqp_finds_no_better(t, tied):
    for seed in range(6):
        K, A, b, limits = simulated(seed, tied=tied)
        plan = ActiveSet(K, limits, select_best(b, limits)).solve(b, t)
        c = plan.contributions
        assert largest_violation(c, plan.multipliers, A, b, t, limits) < 1e-8
        loss = lambda x, A=A, b=b: 0.5 * x @ A @ x - t * b @ x
        found = solved_by_scipy(loss, lambda x, A=A, b=b: A @ x - t * b, limits, select_best(b, limits))
        assert loss(c) <= found.fun + 1e-9
        np.testing.assert_allclose((plan.gain, plan.coancestry), (b @ c, 0.5 * c @ A @ c), rtol=1e-12)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("if violation.max() <= tolerance:", "if violation.max() <= 1.0:"),  # candidates stay at their limits
        ("-self.status * (g - multipliers[self.sex])", "self.status * (g - multipliers[self.sex])"),
        ("solved[:, 1:] @ multipliers[sexes]", "solved[:, 1:] @ (0.9 * multipliers[sexes])"),
    ],
)  # fmt: skip
def test_the_conditions_find_a_wrong_method(right, wrong):
    spoilt = mutant(optimum_module, right, wrong)
    spoilt.MAX_STEPS = 200
    worst = 0.0
    for seed in range(6):
        K, A, b, limits = simulated(seed)
        try:
            plan = spoilt.ActiveSet(K, limits, select_best(b, limits)).solve(b, 0.3)
        except ValueError:
            return  # no optimum after all steps
        worst = max(worst, largest_violation(plan.contributions, plan.multipliers, A, b, 0.3, limits))
    assert worst > 1e-4


def test_the_highest_gain_at_a_limit_of_coancestry():
    for seed in range(12):
        K, A, b, limits = simulated(seed, tied=seed % 4 == 3)
        optimiser = ContributionOptimiser(K, limits)
        lowest, highest = optimiser.solve(b, 0.0), optimiser.find_highest_gain(b)
        limit = lowest.coancestry + (0.1 + 0.07 * seed) * (highest.coancestry - lowest.coancestry)
        plan = optimiser.limit_coancestry(b, limit)
        of_limit = {"type": "ineq", "fun": lambda x, A=A, limit=limit: limit - 0.5 * x @ A @ x}
        start = 0.9 * plan.contributions + 0.1 * lowest.contributions
        found = solved_by_scipy(lambda x, b=b: -b @ x, lambda x, b=b: -b, limits, start, of_limit)
        assert plan.coancestry <= limit * (1 + 1e-8)
        assert plan.gain >= -found.fun - 1e-7
        assert optimiser.limit_coancestry(b, 0.9 * lowest.coancestry) is None
        low, high = (end / lowest.coancestry for end in optimiser.lowest_range)
        assert 0.9 < low <= 1 + 1e-9 and high >= 1 - 1e-9
        assert optimiser.limit_coancestry(b, highest.coancestry).gain == highest.gain


def test_two_males_and_two_females_against_a_grid():
    K = np.array([[1.0, 0.25, 0.5, 0.0], [0.25, 1.0, 0.0, 0.25], [0.5, 0.0, 1.1, 0.0], [0.0, 0.25, 0.0, 1.0]])
    b = np.array([2.0, 1.0, 1.5, 0.5])
    limits = Limits(np.array([True, True, False, False]), np.zeros(4), np.full(4, 0.5))
    x = np.linspace(0, 0.5, 1001)
    first, second = (axis.ravel() for axis in np.meshgrid(x, x))
    grid = np.stack([first, 0.5 - first, second, 0.5 - second])
    coancestry, gain = 0.5 * np.einsum("ij,ik,kj->j", grid, K, grid), b @ grid
    for limit in (0.27, 0.3, 0.35):
        plan = ContributionOptimiser(DenseCoancestry(K), limits).limit_coancestry(b, limit)
        best = gain[coancestry <= limit].max()
        assert best <= plan.gain + 1e-9 and plan.gain < best + 1e-3


def test_closed_form_without_limits_that_bind():
    """c = K^-1 (t b - E m), m from the sums (Meuwissen 1997)."""
    K, A, b, limits = simulated(3)
    loose = Limits(limits.is_male, np.full(b.size, -10.0), np.full(b.size, 10.0))
    E = np.stack([limits.is_male, ~limits.is_male], axis=1).astype(float)
    inverse = np.linalg.inv(A)
    m = np.linalg.solve(E.T @ inverse @ E, 0.7 * E.T @ inverse @ b - 0.5)
    plan = ActiveSet(K, loose, np.where(limits.is_male, 1.0, 1.0) / b.size).solve(b, 0.7)
    np.testing.assert_allclose(plan.contributions, inverse @ (0.7 * b - E @ m), atol=1e-9)
    np.testing.assert_allclose(plan.multipliers, m, atol=1e-9)


def test_many_free_candidates_are_solved_by_the_sparse_inverse(monkeypatch):
    K, _, b, limits = simulated(5)
    expected = ActiveSet(K, limits, select_best(b, limits)).solve(b, 0.1).contributions
    monkeypatch.setattr(coancestry_module, "DENSE_UP_TO", 0)
    K, _, b, limits = simulated(5)
    monkeypatch.setattr(PedigreeCoancestry, "block", None)
    found = ActiveSet(K, limits, select_best(b, limits)).solve(b, 0.1).contributions
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_limits_that_leave_no_choice_and_parts_of_the_search():
    K, _, b, _ = simulated(2, m=4)
    limits = Limits(np.array([True, False, True, False]), np.zeros(4), np.full(4, 0.25))
    plan = ActiveSet(K, limits, select_best(b, limits)).solve(b, 1.0)
    assert plan.contributions.tolist() == [0.25] * 4
    fixed = Limits(limits.is_male, np.full(4, 0.25), np.full(4, 0.25))
    assert ActiveSet(K, fixed, select_best(b, fixed)).solve(b, 1.0).contributions.tolist() == [0.25] * 4
    limits = Limits(np.array([True] * 3 + [False]), np.array([0, 0.1, 0, 0]), np.array([0.3, 0.3, 0.3, 0.5]))
    np.testing.assert_allclose(select_best(np.array([3.0, 1.0, 2.0, 0.0]), limits), [0.3, 0.1, 0.1, 0.5])
    rng = np.random.default_rng(4)
    c, lowest, highest = rng.standard_normal(5), np.full(5, 0.05), np.full(5, 0.4)
    found = minimize(
        lambda x: np.sum((x - c) ** 2), np.full(5, 0.2), method="SLSQP", bounds=[(0.05, 0.4)] * 5,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1}, options={"ftol": 1e-15},
    )  # fmt: skip
    np.testing.assert_allclose(project(c, lowest, highest, 1.0), found.x, atol=1e-6)


def test_a_search_after_one_of_nearly_equal_values_starts_anew():
    """Equal values end at a huge trade-off, from which the next search must come down."""
    K, _, b, limits = simulated(6)
    optimiser = ContributionOptimiser(K, limits)
    lowest, highest = optimiser.solve(b, 0.0), optimiser.find_highest_gain(b)
    limit = 0.5 * (lowest.coancestry + highest.coancestry)
    expected = optimiser.limit_coancestry(b, limit)
    nearly_equal = np.where(b > np.median(b), 1.0, 0.0) + 1e-9 * b
    assert optimiser.limit_coancestry(nearly_equal, limit).coancestry <= limit * (1 + 1e-8)
    optimiser._t = 1e9
    np.testing.assert_allclose(optimiser.limit_coancestry(b, limit).contributions, expected.contributions, atol=1e-6)
