"""The Bayesian lasso: its conditionals against dense algebra, its contract, its input."""

import numpy as np
import pytest
from helpers.regression_contract import KnownNormals, assert_chains_are_their_own, states

from mmgibbs import BayesianLasso
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.regressions import lasso
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.lasso import GramSolver, Lasso, LassoOptions, WoodburySolver
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData

RNG = np.random.default_rng(8)
TALL, WIDE = RNG.normal(3, 2, (12, 5)), RNG.normal(3, 2, (6, 9))
KEYS = Keys(3, (0, 4))


def sampler(X, threads=1, standardise=True, **options):
    y = X[:, 0] + np.arange(len(X)) % 3
    return Lasso.prepare(
        RegressionData(read_predictors(X, standardise=standardise), y), LassoOptions(**options), Host(threads)
    )


@pytest.mark.parametrize("X", [TALL, WIDE], ids=["n > p", "n < p"])
@pytest.mark.parametrize("form", [GramSolver, WoodburySolver])
@pytest.mark.parametrize("standardise", [False, True])
def test_both_forms_draw_from_the_dense_conditional(form, X, standardise, monkeypatch):
    """beta is linear in the normals: mean A^-1 Z'y, and the images of unit normals give sigma^2 A^-1."""
    monkeypatch.setattr(lasso, "COLUMN_BLOCK", 4)
    n, p = X.shape
    y = np.cos(np.arange(n))
    y -= y.mean()
    Z = X - X.mean(0)
    if standardise:
        Z /= np.sqrt((Z**2).sum(0))
    tau, sigma = np.array([np.linspace(0.1, 3, p), np.linspace(2, 1e-3, p)]), np.array([[0.7], [1.9]])
    table = lasso.unit_columns(read_predictors(X, standardise=standardise))

    def draw(one):
        extra = (np.float64,) if form is WoodburySolver else ()
        posterior = form(table, y, KnownNormals(one), *extra).given(tau)
        return posterior.misfit, posterior.draw(sigma, KEYS, 1)

    misfit, mean = draw(-1)
    root = np.stack([draw(i)[1] - mean for i in range(p + n)], axis=2)
    for c in range(2):
        A_inverse = np.linalg.inv(Z.T @ Z + np.diag(tau[c] ** -2))
        np.testing.assert_allclose(mean[c], A_inverse @ Z.T @ y, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(root[c] @ root[c].T, sigma[c] ** 2 * A_inverse, rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(misfit[c, 0], y @ y - y @ Z @ A_inverse @ Z.T @ y, rtol=1e-9)


@pytest.mark.parametrize("X", [TALL, WIDE], ids=["n > p", "n < p"])
def test_contract(X):
    assert_chains_are_their_own(lambda threads: sampler(X, threads))


@pytest.mark.parametrize("type_", [np.float32, np.uint8])
def test_single_precision_and_narrow_types(type_):
    X = np.round(WIDE * 4).astype(type_)
    a, b = (states(sampler(X, precision=p), KEYS, 1)[-1]["beta"] for p in ("double", "single"))
    np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-4)
    np.testing.assert_array_equal(a, states(sampler(X.astype(float)), KEYS, 1)[-1]["beta"])


def test_fixed_penalty_stays():
    found = states(sampler(TALL, penalty=1.7), KEYS, 3)
    assert all(np.all(s["lambda2"] == 1.7**2) for s in found)


@pytest.mark.parametrize("standardise", [False, True])
def test_estimator_reports_the_columns_as_given(standardise):
    """Strong data, weak prior: least squares of the columns as they are, intercept and prediction too."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2)) * [1, 50] + [10, -300]
    y = 5 + X @ [2.0, 0.1] + rng.normal(0, 0.01, 200)
    model = BayesianLasso(chains=2, burn_in=20, samples=100, threads=1, standardise=standardise).fit(X, y)
    exact = np.linalg.lstsq(np.column_stack([np.ones(200), X]), y, rcond=None)[0]
    np.testing.assert_allclose(model.coef_, exact[1:], rtol=1e-3)
    np.testing.assert_allclose(model.intercept_, exact[0], rtol=1e-2)
    np.testing.assert_allclose(model.predict(X[:5]), np.column_stack([np.ones(5), X[:5]]) @ exact, atol=1e-3)
    assert list(model.summary()["parameter"]) == ["beta[x0]", "beta[x1]", "intercept", "sigma2", "lambda"]


GOOD = np.arange(12.0) ** 2


@pytest.mark.parametrize(
    "y, options, error, message",
    [
        (GOOD[:-1], {}, DataError, "y: found an array of shape (11,), needed one number for each of the 12 rows"),
        (np.ones(12), {}, DataError, "y: found 1 in all 12 rows, needed a response that varies"),
        (GOOD, {"penalty": 0.0}, ConfigError, "penalty: found 0.0, needed a number above 0"),
        (GOOD, {"residual_shape": -1.0}, ConfigError, "residual_shape"),
        (GOOD, {"precision": "half"}, ConfigError, "precision"),
    ],
)
def test_refused(y, options, error, message):
    with pytest.raises(error) as found:
        BayesianLasso(threads=1, **options).fit(TALL, y)
    assert message in str(found.value)
