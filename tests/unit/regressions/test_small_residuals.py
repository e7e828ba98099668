"""The residual variance of the Bayesian lasso where predictors leave next to nothing of the response.

Expected values are y'y - y'Z A^-1 Z'y of the very numbers, in rational arithmetic.
"""

from fractions import Fraction

import numpy as np
import pytest

from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.lasso import GramSolver, LassoOptions, LassoSampler, WoodburySolver, unit_columns
from mmgibbs.regressions.loop import SideBySideChains
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys

NOISES = [1e-2, 1e-5, 1e-9]


def rationals(array):
    return np.vectorize(Fraction, otypes=[object])(array)


def exact_misfit(X, y, tau, scale):
    """y'y - y'Z A^-1 Z'y, A = Z'Z + diag(tau)^-2, Z = (X - mean) / scale, by elimination."""
    X, y, tau, scale = map(rationals, (X, y, tau, scale))
    Z, y = (X - X.sum(axis=0) / len(X)) / scale, y - y.sum() / len(y)
    A = np.column_stack([Z.T @ Z + np.diag(1 / (tau * tau)), Z.T @ y])
    misfit = y @ y
    for i in range(len(A)):  # the pivots and the last column of L D^-1 of a symmetric A are those of the quadratic form
        misfit -= A[i, -1] * A[i, -1] / A[i, i]
        A[i + 1 :] -= np.outer(A[i + 1 :, i] / A[i, i], A[i])
    return float(misfit)


def problem(n, p, noise):
    """Records about 1000, three predictors that matter, and tau as it is given their coefficients."""
    rng = np.random.default_rng(3)
    X, beta = rng.normal(size=(n, p)), np.zeros(p)
    beta[:3] = 3, -2, 1
    y = 1000 + X @ beta + noise * rng.normal(size=n)
    return X, y, np.abs(beta) * np.sqrt(n) / noise + 1.0


def misfits(form, n, p, noise, *more):
    X, y, tau = problem(n, p, noise)
    table = unit_columns(read_predictors(X, standardise=True))
    found = form(table, y - y.mean(), Host(1), *more).given(tau[None]).misfit[0, 0]
    return found, exact_misfit(X, y, tau, table.scale)


@pytest.mark.parametrize("noise", NOISES)
def test_it_is_exact_with_more_records_than_predictors(noise):
    found, expected = misfits(GramSolver, 60, 5, noise)
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("noise", [1e-2, 1e-5])
def test_it_is_exact_with_fewer(noise):
    found, expected = misfits(WoodburySolver, 12, 20, noise, np.float64)
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("noise", [1e-7, 1e-9])
def test_with_fewer_records_it_is_refused_where_digits_are_lost(noise):
    with pytest.raises(np.linalg.LinAlgError):
        misfits(WoodburySolver, 12, 20, noise, np.float64)


def test_weighted_rows():
    X, y, tau = problem(60, 5, 1e-8)
    weights = np.resize([1.0, 2.0, 3.0], 60)
    table = unit_columns(read_predictors(X, standardise=True, weights=weights), weights)
    mean = weights @ y / weights.sum()
    found = GramSolver(table, y - mean, Host(1), weights).given(tau[None]).misfit[0, 0]
    repeated = np.repeat(np.arange(60), weights.astype(int))
    assert found == pytest.approx(exact_misfit(X[repeated], y[repeated], tau, table.scale), rel=1e-6)


def test_predictors_that_depend_on_each_other():
    X, y, tau = problem(60, 5, 1e-6)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    tau = np.append(tau, 2.0)
    table = unit_columns(read_predictors(X, standardise=True))
    found = GramSolver(table, y - y.mean(), Host(1)).given(tau[None]).misfit[0, 0]
    assert found == pytest.approx(exact_misfit(X, y, tau, table.scale), rel=1e-5)


@pytest.mark.parametrize("noise", [1e-2, 1e-9])
def test_chains_find_the_residual_variance(noise):
    """sigma^2 around its least-squares estimate, of 54 degrees of freedom: 5 sd of its posterior mean are far."""
    X, y, _ = problem(60, 5, noise)
    sampler = LassoSampler(read_predictors(X, standardise=True), y, LassoOptions(), Host(1))
    chains = SideBySideChains(sampler, Host(1), Keys(1, (0, 1)), 200)
    chains.advance(600)
    residuals = y - y.mean() - (X - X.mean(axis=0)) @ np.linalg.lstsq(X - X.mean(axis=0), y - y.mean())[0]
    estimate = residuals @ residuals / 54
    sigma2 = chains.result().draws["sigma2"]
    assert abs(sigma2.mean() / estimate - 54 / 52) < 0.06
