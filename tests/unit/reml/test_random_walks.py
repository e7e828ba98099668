"""REML of curves: the mixed model of smoothing splines in dense form, by penalties that leave the polynomial free."""

import numpy as np
import polars as pl
import pytest
from reference import dense
from scipy import interpolate, optimize

import mmgibbs
from mmgibbs.errors import ConfigError


@pytest.fixture(scope="module")
def records():
    """Unequal steps, repeated values, two classes with a level each."""
    rng = np.random.default_rng(12)
    day = rng.choice(np.round(np.cumsum(rng.uniform(0.2, 3.0, 24)), 2), 90)
    sex = rng.integers(0, 2, 90)
    y = 20 + 0.4 * day + 4 * np.sin(day / 6) + 2 * sex + rng.normal(size=90)
    return pl.DataFrame({"day": day, "sex": [f"s{i}" for i in sex], "y": y})


def analysis(records, order, directory, method="reml", within=None, **variances):
    relationship = {"kind": "random_walk", "of": "day", "order": order} | ({"within": within} if within else {})
    fixed = {"sex": {}} | ({"day": {"kind": "covariate"}} if order == 2 and within is None else {})
    if order == 2 and within is not None:
        fixed["slope"] = {"column": "day", "kind": "covariate", "by": within}
    return {
        "data": {"phenotypes": records},
        "traits": ["y"],
        "model": {"fixed": fixed, "random": {"curve": {"relationship": relationship}}},
        "variances": variances,
        "sampler": {"method": method},
        "output": {"directory": str(directory)},
    }


def penalty(t, order):
    """f' P f: sum of squared differences over gaps; or the integral of f''^2 of the natural cubic spline through f."""
    h = np.diff(t)
    if order == 1:
        D = np.diff(np.eye(len(t)), axis=0)
        return D.T @ np.diag(1 / h) @ D
    n = len(t)  # Green & Silverman (1994), section 2.1
    Q, R = np.zeros((n, n - 2)), np.zeros((n - 2, n - 2))
    for j in range(n - 2):
        Q[j : j + 3, j] = 1 / h[j], -1 / h[j] - 1 / h[j + 1], 1 / h[j + 1]
        R[j, j] = (h[j] + h[j + 1]) / 3
        if j:
            R[j, j - 1] = R[j - 1, j] = h[j] / 6
    return Q @ np.linalg.solve(R, Q.T)


def covariance(records, order, within):
    """(n, n) of the curve in the records, its polynomial free, its mean variance over the values 1."""
    day, sex = records["day"].to_numpy(), records["sex"].to_numpy()
    group = sex if within else np.zeros(len(day))
    out, total, values = np.zeros((len(day),) * 2), 0.0, 0
    for level in np.unique(group):
        rows = np.flatnonzero(group == level)
        t, place = np.unique(day[rows], return_inverse=True)
        K = np.linalg.pinv(penalty(t, order), rcond=1e-13, hermitian=True)
        out[np.ix_(rows, rows)] = K[np.ix_(place, place)]
        total, values = total + np.trace(K), values + len(t)
    return out / (total / values)


def log_likelihood(records, K, X, psi):
    return dense.restricted_log_likelihood(records["y"].to_numpy(), X, psi[0] * K + psi[1] * np.eye(len(K)))


def fixed_effects(records, order, within):
    """sex, and the line or lines."""
    day, sex = records["day"].to_numpy(), records["sex"].to_numpy()
    classes = (sex[:, None] == np.unique(sex)).astype(float)
    if order == 1:
        return classes
    return np.column_stack([classes, classes * day[:, None] if within else day])


@pytest.fixture(scope="module", params=[(1, None), (1, "sex"), (2, None), (2, "sex")])
def fitted(request, records, tmp_path_factory):
    """(run, variances, order, within) of one model."""
    order, within = request.param
    directory = tmp_path_factory.mktemp("curve") / "run"
    run = mmgibbs.run(analysis(records, order, directory, within=within), progress=False, report=True)
    found = dict(run.summary.select("parameter", "mean").iter_rows())
    return run, np.array([found["curve.var[y]"], found["residual.var[y]"]]), order, within


def test_estimates_are_the_maximum_of_the_dense_likelihood_with_a_free_polynomial(records, fitted, tmp_path):
    run, psi, order, within = fitted
    K, X = covariance(records, order, within), fixed_effects(records, order, within)
    best = optimize.minimize(
        lambda v: -log_likelihood(records, K, X, np.exp(v)), np.log(psi), method="Nelder-Mead", options={"fatol": 1e-10}
    )
    np.testing.assert_allclose(psi, np.exp(best.x), rtol=2e-3)
    # the scale of covariates is in neither difference
    held = {"curve": {"start": 2 * psi[0], "fixed": True}}
    other = mmgibbs.run(analysis(records, order, tmp_path / "run", within=within, **held), progress=False)
    residual = dict(other.summary.select("parameter", "mean").iter_rows())["residual.var[y]"]
    change = log_likelihood(records, K, X, [2 * psi[0], residual]) - log_likelihood(records, K, X, psi)
    assert other.info["log_likelihood"] - run.info["log_likelihood"] == pytest.approx(change, abs=1e-8)


def dense_curve(records, psi, order, within):
    """(mean, standard error) of the curve at each record, and its effective dimension."""
    K, X, y = covariance(records, order, within), fixed_effects(records, order, within), records["y"].to_numpy()
    G, at = psi[0] * K, X.copy()
    if within is None:
        at[:, :2] = 0.5  # averaged over the sexes
    V = G + psi[1] * np.eye(len(K))
    mean, errors = dense.predicted(y, X, G, V, at)
    return mean, np.sqrt(np.diag(errors)), np.trace(G @ dense.projection(X, V))


def test_the_curve_and_its_errors_are_those_of_the_mixed_model(records, fitted):
    run, psi, order, within = fitted
    mean, error, dimension = dense_curve(records, psi, order, within)
    by = ["day", "sex"] if within else ["day"]
    smooths = run.smooths.rename({"at": "day", "class": "sex"})
    both = records.with_columns(known=pl.Series(mean), error=pl.Series(error)).join(smooths, on=by)
    assert both.height == records.height and smooths.height == records.select(by).n_unique()
    np.testing.assert_allclose(both["mean"], both["known"], atol=1e-8)
    np.testing.assert_allclose(both["sd"], both["error"], atol=1e-8)
    assert smooths["records"].sum() == records.height
    assert run.info["effective_dimensions"]["curve"]["y"]["effective"] == pytest.approx(dimension, abs=1e-6)
    page = (run.directory / "report.html").read_text(encoding="utf-8")
    assert f"<td>{dimension:.1f}" in page or f">{dimension:.1f}<" in page
    assert '<a href="#smooth-curves">' in page and page.count("Curve of curve, y") == (2 if within else 1)


def test_means_of_a_curve_are_refused(records, tmp_path):
    source = analysis(records, 1, tmp_path / "run")
    source["output"]["means"] = ["curve"]
    with pytest.raises(ConfigError, match=r"output\.means: curve: expected an effect of classes, got a curve; smooths"):
        mmgibbs.run(source, progress=False)


def test_a_long_curve_by_blup_is_the_smoothing_spline_of_scipy(tmp_path):
    """Hundreds of values at unequal distances, which iterations do not solve: a factor does."""
    rng = np.random.default_rng(2)
    day = np.round(np.cumsum(rng.uniform(0.2, 2.0, 600)), 2)
    frame = pl.DataFrame({"day": day, "sex": ["s"] * 600, "y": 3 * np.sin(day / 40) + rng.normal(size=600)})
    run = mmgibbs.run(analysis(frame, 2, tmp_path / "run", "blup", curve=8.0, residual=1.2), progress=False)
    assert run.info["engine"] == "direct"
    step = run.info["relationships"]["curve"]["variance_of_unit_step"]
    spline = interpolate.make_smoothing_spline(day, frame["y"].to_numpy(), lam=1.2 / (8.0 * step))
    np.testing.assert_allclose(run.smooths["mean"], spline(day), atol=1e-5)
    source = analysis(frame, 2, tmp_path / "run", curve=8.0, residual=1.2)
    folds = mmgibbs.validate(
        source, plan=mmgibbs.ValidationPlan("kfold", folds=3), progress=False, report=False, output=tmp_path / "folds"
    )
    assert folds.table.height > 0
