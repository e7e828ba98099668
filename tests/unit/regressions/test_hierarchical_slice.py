"""Hierarchical regressions: formulas against dense twins, packing, chains, bad input."""

import warnings

import numpy as np
import pytest
from helpers.hierarchical_tables import KEYS, run, sampler, table

from mmgibbs.draws.inverse_wishart import NOTHING, inverse_wishart
from mmgibbs.draws.purpose import REGRESSION_SLICE, stream
from mmgibbs.errors import ConfigError, DataError, ModelError
from mmgibbs.regressions.arrays.base import Host
from mmgibbs.regressions.estimators import HierarchicalSlice
from mmgibbs.regressions.hierarchical import kernels as slice_kernels
from mmgibbs.regressions.hierarchical import likelihood as group_likelihood
from mmgibbs.regressions.hierarchical import population
from mmgibbs.regressions.hierarchical.device import COVARIANCE, POPULATION
from mmgibbs.regressions.hierarchical.grouped import pack, read_group_predictors, read_groups
from mmgibbs.regressions.hierarchical.slice import HostGroupUpdate
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys


@pytest.mark.parametrize(("response", "size"), [("binary", 400), ("binary", 6), ("counts", 60), ("poisson", 60)])
def test_bounds_decide_as_evaluations_do(response, size):
    """With every decision evaluated the chain is the same, bit for bit; most decisions need no evaluation."""
    rng = np.random.default_rng(2)
    X, y, groups = table(rng, (size,) * 6, 3, response)
    model = sampler(X, y, groups)
    d, G = model.d, 6
    Q, mean = 2 * np.eye(d) + 0.3, 0.1 * rng.standard_normal((G, d))
    width = 2.5 / np.sqrt(model.information + 2)
    fast = 0.3 * rng.standard_normal((G, d))
    plain = fast.copy()
    for sweep in range(40):
        for squeeze, beta in ((True, fast), (False, plain)):
            at = 0, G, sweep, stream(REGRESSION_SLICE, 0), 3, 0
            slice_kernels.sweep_groups(model.groups, response == "poisson", Q, mean, width, 8, squeeze, beta, *at)
        assert np.array_equal(fast, plain)


def test_derivatives_stay_within_their_bounds():
    """Single-precision sums of Taylor's terms against float64 ones, psi up to 60 in size, and the remainder against h
    itself."""
    rng = np.random.default_rng(3)
    for spread in (0.1, 2.0, 20.0):
        n = 700
        psi, x, t = spread * rng.standard_normal(n), rng.standard_normal(n) + 0.5, rng.integers(1, 5, n).astype(float)
        z, short = np.empty(n, np.float32), np.empty(n, np.float32)
        group_likelihood.advance(psi, x[None], 0, 0.0, 0, np.zeros(1), np.ones(1), z, short)
        h = np.array(group_likelihood.logit_derivatives(z, short, t.astype(np.float32)))
        h[0] = 0.5 * t @ x - h[0]
        p = 1 / (1 + np.exp(-psi))
        w = p * (1 - p)
        exact = np.array([t * x @ p, t * x**2 @ w, t * x**3 @ (w * (1 - 2 * p)), t * x**4 @ (w * (1 - 6 * w))])
        size, reach = t @ np.abs(x), np.abs(x).max()
        factorial = np.array([1, 2, 6, 24])
        for d in (1e-3, 0.05, 0.3, 1.5):
            y = reach * d
            error = np.abs(h - exact) @ (d ** np.arange(1, 5) / factorial)
            assert error < group_likelihood.SINGLE * d * size * (1 + y / 2 + y**2 / 4 + y**3 / 6)
            change = t @ (np.logaddexp(0, psi + x * d) - np.logaddexp(0, psi))
            rest = change - exact @ (d ** np.arange(1, 5) / factorial)
            assert abs(rest) <= slice_kernels.FIFTH / 120 * (t @ np.abs(x) ** 5) * d**5 + 1e-9 * size


def test_vector_exponentials():
    x = np.linspace(-700, 700, 20_001)
    assert np.abs([group_likelihood.bounded_exp(v) for v in x] / np.exp(x) - 1).max() < 1e-13
    assert group_likelihood.bounded_exp(-1e300) == group_likelihood.bounded_exp(-700.0) > 0
    assert group_likelihood.bounded_exp(1e300) == group_likelihood.bounded_exp(700.0)


@pytest.mark.parametrize("trials", [None, 3.0])
def test_loss(trials):
    rng = np.random.default_rng(4)
    psi, x = 30 * rng.standard_normal(1500), rng.standard_normal(1500)
    t = np.empty(0) if trials is None else np.full(1500, trials)
    moved = psi + (x - 0.5) * 2.0 * 0.7
    found = group_likelihood.loss(psi, x[None], 0, 0.7, np.full(1, 0.5), np.full(1, 2.0), t, False)
    np.testing.assert_allclose(found, (trials or 1.0) * np.logaddexp(0, moved).sum(), rtol=1e-13)
    np.testing.assert_allclose(
        group_likelihood.loss(psi / 30, x[None], 0, 0.7, np.full(1, 0.5), np.full(1, 2.0), t, True),
        np.exp(psi / 30 + (x - 0.5) * 1.4).sum(),
        rtol=1e-12,
    )


# -------------------------------------------------------------------------------------------------- packing, chains


@pytest.mark.parametrize(("response", "method"), [("binary", "slice"), ("three", "polya_gamma")])
def test_order_and_packing_change_nothing(response, method):
    """Rows between groups in another order, more threads and finer ranges: the same bits."""
    rng = np.random.default_rng(6)
    X, y, groups = table(rng, (5, 90, 17, 2, 41, 33), response=response)
    first = run(sampler(X, y, groups, standardise=False, method=method))
    by_group = np.argsort(groups, kind="stable")
    within = np.empty(len(groups), int)
    within[by_group] = np.arange(len(groups)) - np.searchsorted(groups[by_group], groups[by_group])
    shuffled = np.lexsort((rng.permutation(6)[groups], within))  # the order within each group stays
    assert not np.array_equal(groups[shuffled], groups)
    again = sampler(X[shuffled], y[shuffled], groups[shuffled], standardise=False, method=method, threads=3)
    assert len(again.update_groups.ranges) > 1
    again = run(again)
    for name in first:
        assert np.array_equal(first[name], again[name]), name


def test_a_batch_of_chains_equals_single_chains_and_a_step_writes_nothing_old():
    X, y, groups = table(np.random.default_rng(7))
    model = sampler(X, y, groups, np.arange(5.0))
    both = run(model)
    for c in KEYS.chains:
        alone = run(model, keys=Keys(KEYS.seed, (c,)))
        for name in both:
            assert np.array_equal(both[name][c], alone[name][0]), name
    before = {name: value.copy() for name, value in both.items()}
    model.log(both), model.step(both, 9, KEYS)
    for name in both:
        assert np.array_equal(before[name], both[name]) and not np.shares_memory(before[name], both[name])


@pytest.mark.parametrize("n_groups", [3, 150])
def test_population_and_covariance_are_those_of_dense_formulas(n_groups):
    """Means and precisions by NumPy's linear algebra from the same normals, more groups than a piece."""
    rng = np.random.default_rng(19)
    X, y, groups = table(rng, (2,) * n_groups)
    model = sampler(X, y, groups, rng.standard_normal((n_groups, 2)))
    state, d, q = model.start(KEYS), model.d, model.Z.shape[1]
    A = rng.standard_normal((d, 9))
    V, beta = A @ A.T, state["beta"]
    Q = np.empty((d, d))
    assert population.invert_covariance(V, Q, np.empty((2, d, d)))
    np.testing.assert_allclose(Q, np.linalg.inv(V), rtol=1e-10)
    drawn = np.empty((q, d))
    given = model.W, model.eigenvalues, model.U, beta[0], Q, model.ridge, drawn
    assert population.draw_population(*given, 3, POPULATION, 5, 1)
    P = np.kron(model.Z.T @ model.Z, Q) + np.eye(q * d) * model.ridge
    z = Host(1).normals(Keys(5, (1,)), 3, POPULATION, q * d)[0].reshape(q, d)
    rows = [
        np.linalg.solve(np.linalg.cholesky(eigenvalue * Q + model.ridge * np.eye(d)).T, z[k])
        for k, eigenvalue in enumerate(model.eigenvalues)
    ]
    mean = np.linalg.solve(P, (model.Z.T @ beta[0] @ Q).ravel()).reshape(q, d)
    np.testing.assert_allclose(drawn, mean + model.U @ np.array(rows), rtol=1e-9, atol=1e-12)
    covariance = np.empty((d, d))
    nu = model.nu + n_groups
    population.draw_group_covariance(model.Z, drawn, beta[0], nu, 1.5, covariance, 3, COVARIANCE, 5, 1)
    away = beta[0] - model.Z @ drawn
    expected = inverse_wishart(nu, 1.5 * np.eye(d) + away.T @ away, NOTHING, 3, np.arange(d), COVARIANCE, 5, 1)
    np.testing.assert_allclose(covariance, expected, rtol=1e-10)
    assert not population.invert_covariance(-V, Q, np.empty((2, d, d)))
    assert not population.draw_population(*given[:4], -V, *given[5:], 3, POPULATION, 5, 1)


@pytest.mark.slow
def test_single_precision_gives_the_same_chain():
    X, y, groups = table(np.random.default_rng(9), dtype=np.uint8)
    wide, narrow = (sampler(X.astype(float), y, groups, precision=p) for p in ("double", "single"))
    assert narrow.groups.columns.dtype == np.float32
    a, b = run(wide), run(narrow)
    for name in a:
        np.testing.assert_allclose(a[name], b[name], rtol=1e-9, atol=1e-12)


def test_coefficients_are_those_of_the_columns_as_given():
    rng = np.random.default_rng(10)
    X, y, groups = table(rng, response="three")
    model = sampler(X, y, groups)
    state = run(model)
    log = model.log(state)
    standard = (X - X.mean(0)) / X.std(0)
    for c in range(2):
        beta = state["beta"][c].reshape(5, 2, 3)
        expected = np.einsum("nj,nmj->nm", np.column_stack([standard, np.ones(len(X))]), beta[groups])
        given = np.einsum("nj,njm->nm", X, log["beta"][c][groups]) + log["intercept"][c][groups]
        np.testing.assert_allclose(given, expected, atol=1e-12)
        both = np.concatenate([log["beta"][c], log["intercept"][c][:, None]], axis=1)  # (G, D, M)
        T = model.transform.T
        np.testing.assert_allclose(state["beta"][c] @ T, np.moveaxis(both, 2, 1).reshape(5, -1), atol=1e-12)
        np.testing.assert_allclose(log["covariance"][c], T.T @ state["covariance"][c] @ T, atol=1e-12)


# ---------------------------------------------------------------------------------------------------- the estimator


def test_fit_and_predict():
    rng = np.random.default_rng(11)
    X, _, groups = table(rng, (30, 30, 30), 1)
    labels = np.array(["south", "north", "west"])[groups]
    y = np.where(rng.random(90) < 1 / (1 + np.exp(-2 * X[:, 0])), "yes", "no")
    model = HierarchicalSlice(chains=2, burn_in=50, samples=50, seed=3).fit(X, y, labels)
    assert model.coef_.shape == (3, 1) and list(model.classes_) == ["no", "yes"]
    assert list(model.posterior.coords["group"].values) == ["north", "south", "west"]
    p = model.predict_proba(X, labels)
    np.testing.assert_allclose(p.sum(1), 1)
    flat = lambda values: np.asarray(values).reshape(100, *values.shape[2:])
    draws = {name: flat(model.posterior[name]) for name in model.posterior}
    own = np.searchsorted(["north", "south", "west"], labels)
    eta = draws["intercept"][:, own] + draws["beta"][:, own, 0] * X[:, 0]
    np.testing.assert_allclose(p[:, 1], (1 / (1 + np.exp(-eta))).mean(0))
    with pytest.warns(UserWarning, match=r"4 of 4 rows have a group that was not in the fit \('east'\), and are pred"):
        new = model.predict_proba(X[:4], ["east"] * 4)
    eta = draws["population"][:, 0, 1, None] + draws["population"][:, 0, 0, None] * X[:4, 0]
    np.testing.assert_allclose(new[:, 1], (1 / (1 + np.exp(-eta))).mean(0))
    np.testing.assert_allclose(model.predict_proba(X[:4]), new)
    assert set(model.predict(X, labels)) <= {"no", "yes"}
    assert "beta[north,x0]" in model.summary()["parameter"]


def test_groups_that_were_not_in_the_fit_are_named_once():
    rng = np.random.default_rng(12)
    X, y, groups = table(rng)
    model = HierarchicalSlice(chains=1, burn_in=5, samples=5).fit(X, y, groups)
    some = np.where(np.arange(len(X)) < 3, 1000 + np.arange(len(X)) // 2, groups)
    with pytest.warns(UserWarning, match="was not in the fit") as heard:
        model.predict(X, some)
    assert [str(w.message) for w in heard] == [
        f"HierarchicalSlice: groups: 3 of {len(X)} rows have a group that was not in the fit (1000, 1001), and are "
        "predicted with the population's coefficients"
    ]
    assert heard[0].filename == __file__
    with pytest.warns(UserWarning, match=r"\('\d'.* more\), and are .*; labels of the fit are 0, 1, 2 and 2 more$"):
        model.predict(X, groups.astype(str))  # texts are not the numbers of the fit
    with pytest.warns(UserWarning, match=r": 1 row has a group that was not in the fit \(7000\), and is predicted"):
        model.predict_proba(X[:2], [groups[0], 7000])
    with pytest.warns(UserWarning, match=r"not in the fit \(nan\), and are"):
        model.predict(X, np.where(np.arange(len(X)) < 3, np.nan, groups))
    with warnings.catch_warnings(action="error"):
        model.predict(X, groups)
        model.predict(X)


def test_predict_with_group_predictors_of_more_classes_and_of_counts():
    rng = np.random.default_rng(12)
    X, y, groups = table(rng, response="three")
    z = rng.standard_normal((5, 1))
    model = HierarchicalSlice(chains=1, burn_in=5, samples=5).fit(X, y, groups, z)
    p = model.predict_proba(X[:3], group_predictors=z[:3])
    np.testing.assert_allclose(p.sum(1), 1)
    with pytest.raises(ModelError, match="found 0 group predictors, needed the 1"):
        model.predict_proba(X[:3])
    X, y, groups = table(rng, response="poisson")
    model = HierarchicalSlice(family="poisson", chains=1, burn_in=5, samples=5, save_groups=False).fit(X, y, groups)
    assert model.predict(X[:3]).shape == (3,) and (model.predict(X) > 0).all()
    with pytest.raises(ModelError, match="save_groups=True"):
        model.predict(X, groups)


# -------------------------------------------------------------------------------------------------------- bad input


def test_groups_in_sorted_order_of_their_labels():
    codes, labels = read_groups(np.array(["b", "a", "b"]), 3)
    assert codes.tolist() == [1, 0, 1] and labels == ["a", "b"]
    Z, names = read_group_predictors({"b": [1.0, 2.0], "a": [3.0, 4.0]}, labels)
    assert Z.tolist() == [[1, 3, 4], [1, 1, 2]] and names == ["intercept", "z0", "z1"]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (None, "needed the label of a group for each row"),
        (np.zeros(3), "shape \\(3,\\), needed \\(4,\\)"),
        (np.array([0, 1, np.nan, 1]), "groups row 3: found nan"),
        (np.array(["a", None, "b", "b"], dtype=object), "groups row 2: found None"),
        (np.array(["a", 1, "b", "b"], dtype=object), "several types"),
    ],
)
def test_bad_groups(groups, message):
    with pytest.raises(DataError, match=message):
        read_groups(groups, 4)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((3, 1)), "found 3 rows, needed 2, .* 1 has none"),
        (np.zeros((1, 1)), "found 1 rows, needed 2"),
        ({"a": [1], "b": [2], "c": [3]}, "group 'c' has no observations"),
        ({"a": [1]}, "found no values for group 'b'"),
        (np.array([[1.0], [np.inf]]), "row 2, column 'z0': found inf"),
    ],
)
def test_bad_group_predictors(values, message):
    with pytest.raises(DataError, match=message):
        read_group_predictors(values, ["a", "b"])


@pytest.mark.parametrize(
    ("y", "options", "error", "message"),
    [
        ([0, 1, 2.5, 1], {"family": "poisson"}, DataError, "y row 3: found 2.5, needed a count"),
        (["a", "b", "a", "b"], {"family": "poisson"}, DataError, "needed counts"),
        ([0, 1, 0], {}, DataError, "y: found 3 rows, needed 4"),
        ([0, 1, 0, 1], {"covariance_df": 3.0}, ConfigError, "covariance_df: found 3, needed more than 3"),
        ([0, 1, 2, 1], {"family": "poisson", "method": "polya_gamma"}, ConfigError, "needed 'slice'"),
    ],
)
def test_bad_response_and_options(y, options, error, message):
    with pytest.raises(error, match=message):
        sampler(np.arange(4.0)[:, None], np.array(y), np.zeros(4), **{"family": "logit"} | options)


def test_a_wrong_packing_is_noticed():
    """The test of order and packing can fail: a group that loses a row draws other values."""
    X, y, groups = table(np.random.default_rng(13))
    model = sampler(X, y, groups)
    other = sampler(X, y, groups)
    ptr = other.groups.ptr.copy()
    ptr[1] += 1
    other.groups = other.groups._replace(ptr=ptr)
    other.update_groups = HostGroupUpdate(other.groups, other.options, other.arrays)
    assert not np.array_equal(run(model)["beta"], run(other)["beta"])


def test_packed_sums():
    rng = np.random.default_rng(14)
    X, y, groups = table(rng, response="counts")
    predictors = read_predictors(X, standardise=True)
    trials = y.sum(1).astype(float)
    packed = pack(predictors, groups, y[:, :2].astype(float), trials)
    Z = np.column_stack([(X - X.mean(0)) / X.std(0), np.ones(len(X))])
    for i in range(5):
        rows = groups == i
        np.testing.assert_allclose(packed.cross[i], (Z[rows].T @ y[rows, :2]).T, atol=1e-12)
        np.testing.assert_allclose(packed.squares[i], trials[rows] @ Z[rows] ** 2)
        np.testing.assert_allclose(packed.fifth[i], trials[rows] @ np.abs(Z[rows]) ** 5)
        np.testing.assert_allclose(packed.sizes[i], trials[rows] @ np.abs(Z[rows]))
        np.testing.assert_allclose(packed.sums[i], trials[rows] @ Z[rows])
        np.testing.assert_allclose(packed.reach[i], np.abs(Z[rows]).max(0))
