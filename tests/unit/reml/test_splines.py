"""REML of P-splines: the mixed model of B-spline coefficients in dense form, without the millionth on its diagonal."""

import numpy as np
import polars as pl
import pytest
from reference import dense
from scipy import optimize

import mmgibbs
from mmgibbs.config import load_config
from mmgibbs.data import splines
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.models.relationships.spline import basis, penalty

CURVE = {"kind": "spline", "of": "day", "knots": 8}
SLOPE = {"day": {"kind": "covariate"}}
FIELD = {"kind": "spline", "row": "row", "column": "column", "knots": 4}


@pytest.fixture(scope="module")
def records():
    """More values than coefficients, at unequal distances."""
    rng = np.random.default_rng(4)
    day = rng.choice(np.round(np.cumsum(rng.uniform(0.2, 2.0, 40)), 2), 120)
    return pl.DataFrame({"day": day, "y": 10 + 0.2 * day + 3 * np.sin(day / 5) + rng.normal(size=120)})


@pytest.fixture(scope="module")
def plots():
    """A field of 8 rows and 7 columns with a surface, without some plots."""
    rng = np.random.default_rng(6)
    row, column = (values.ravel() + 1 for values in np.indices((8, 7)))
    y = 5 + np.sin(row / 2) * np.cos(column) * 3 + 0.5 * row + np.cos(column) + 0.7 * rng.normal(size=56)
    return pl.DataFrame({"row": row, "column": column, "y": y}).filter(~pl.Series(rng.permutation(56) < 4))


def analysis(records, random, fixed, directory, method="reml", variances=None, **sampler):
    return {
        "data": {"phenotypes": records},
        "traits": ["y"],
        "model": {"fixed": fixed, "random": {name: {"relationship": of} for name, of in random.items()}},
        "variances": variances or {},
        "sampler": {"method": method} | sampler,
        "output": {"directory": str(directory)},
    }


def log_likelihood(y, X, covariances, psi):
    """Of variances psi, the last of the residuals; (value, effective dimensions, W, P)."""
    V = sum(v * K for v, K in zip(psi, [*covariances, np.eye(len(y))], strict=True))
    P = dense.projection(X, V)
    dimensions = [v * np.trace(K @ P) for v, K in zip(psi, covariances, strict=False)]
    return dense.restricted_log_likelihood(y, X, V), dimensions, P


def scaled(K, X, points):
    """K of the points by its mean variance about the polynomial, in the records."""
    M = np.eye(len(K)) - X @ np.linalg.pinv(X)
    return (K / (np.trace(M @ K) / len(K)))[np.ix_(points, points)]


def of_curve(values, knots=8):
    """Covariance of a curve at these records."""
    x, points = np.unique(values, return_inverse=True)
    s, U = penalty(knots + 3, 2)
    Z = basis(x, x[0], x[-1], knots, 3) @ U / np.sqrt(s)
    return scaled(Z @ Z.T, np.vander(x.astype(float), 2), points)


def test_a_curve_is_that_of_the_dense_mixed_model(records, tmp_path):
    run = mmgibbs.run(analysis(records, {"curve": CURVE}, SLOPE, tmp_path / "run"), progress=False, report=True)
    found = dict(run.summary.select("parameter", "mean").iter_rows())
    psi = np.array([found["curve.var[y]"], found["residual.var[y]"]])
    day, y = (records[c].to_numpy() for c in ("day", "y"))
    X, K = np.vander(day, 2), of_curve(day)
    best = optimize.minimize(
        lambda v: -log_likelihood(y, X, [K], np.exp(v))[0], np.log(psi), method="Nelder-Mead", options={"fatol": 1e-10}
    )
    np.testing.assert_allclose(psi, np.exp(best.x), rtol=2e-3)
    _, (dimension,), P = log_likelihood(y, X, [K], psi)
    assert run.info["effective_dimensions"]["curve"]["y"]["effective"] == pytest.approx(dimension, rel=1e-3)
    fitted = y - psi[1] * P @ y  # of the line and the curve
    both = records.with_columns(known=pl.Series(fitted)).join(run.smooths.rename({"at": "day"}), on="day")
    np.testing.assert_allclose(both["mean"], both["known"], atol=1e-4)
    assert both.height == 120 and '<a href="#smooth-curves">' in (run.directory / "report.html").read_text()
    known = {"curve": psi[0], "residual": psi[1]}
    source = analysis(records, {"curve": CURVE}, SLOPE, tmp_path / "blup", "blup", known)
    blup = mmgibbs.run(source, progress=False)
    np.testing.assert_allclose(blup.smooths["mean"], run.smooths["mean"], atol=1e-6)


def test_the_five_parts_of_a_surface_are_those_of_the_dense_mixed_model(plots, tmp_path):
    """PS-ANOVA: rows, columns, rows by column, columns by row, and what is smooth in both."""
    random = [f"field_{part}" for part in ("rows", "columns", "rows_by_column", "columns_by_row", "surface")]
    fixed = {name: {"kind": "covariate"} for name in ("row", "column")}
    fixed |= {"row:column": {"covariates": ["row", "column"]}}
    psi = np.array([1.2, 0.8, 0.5, 0.9, 2.0, 0.6])
    row, column, y = (plots[c].to_numpy().astype(float) for c in ("row", "column", "y"))
    z = [(v - v.mean()) / v.std() for v in (row, column)]
    Kr, Kc = of_curve(row, 4), of_curve(column, 4)
    (sr, Ur), (sc, Uc) = penalty(7, 2), penalty(7, 2)
    Z = np.kron(basis(np.arange(8.0), 0, 7, 4, 3) @ Ur, basis(np.arange(7.0), 0, 6, 4, 3) @ Uc)
    K = Z @ np.diag(1 / np.add.outer(sr, sc).ravel()) @ Z.T
    lines = np.kron(np.vander(np.arange(8.0), 2), np.vander(np.arange(7.0), 2))
    cells = ((row - 1) * 7 + column - 1).astype(int)
    covariances = [Kr, Kc, Kr * np.outer(z[1], z[1]), Kc * np.outer(z[0], z[0]), scaled(K, lines, cells)]
    X = np.column_stack([np.ones(len(y)), row, column, row * column])
    values, dimensions = [], []
    for k, at in enumerate((psi, psi * [2, 1, 1, 1, 3, 1])):
        names = [*random, "residual"]
        variances = {name: {"start": v, "fixed": True} for name, v in zip(names, at, strict=True)}
        variances["residual"] = {"start": at[-1]}
        source = analysis(plots, {"field": FIELD}, fixed, tmp_path / f"run{k}", variances=variances)
        run = mmgibbs.run(source, progress=False)
        residual = dict(run.summary.select("parameter", "mean").iter_rows())["residual.var[y]"]
        known, ED, _ = log_likelihood(y, X, covariances, np.append(at[:-1], residual))
        values.append(run.info["log_likelihood"] - known)
        dimensions.append(([run.info["effective_dimensions"][name]["y"]["effective"] for name in random], ED))
    assert values[0] == pytest.approx(values[1], abs=1e-4)  # the scale of covariates is in both
    for found, ED in dimensions:
        np.testing.assert_allclose(found, ED, rtol=2e-3, atol=1e-3)
        check_trend(run, plots, X, covariances, np.append(at[:-1], residual))
    assert run.info["warnings"] == []
    again = load_config(load_config(source).resolved() | {"data": {"phenotypes": plots}})
    assert again.model == load_config(source).model


def check_trend(run, plots, X, covariances, psi):
    """The trend of all parts and of the plane, at the plots with records, and what is left beside it."""
    y, G = plots["y"].to_numpy(), sum(v * K for v, K in zip(psi, covariances, strict=False))
    V = G + psi[-1] * np.eye(len(y))
    known, _ = dense.predicted(y, X, G, V, X)
    field = run.field
    assert field["term"].unique().to_list() == ["field"] and field.height == 56 and field["records"].sum() == 52
    assert abs(field["mean"].mean()) < 1e-8 and field["sd"].min() > 0
    both = plots.join(field, on=["row", "column"], maintain_order="left")
    np.testing.assert_allclose(both["mean"] - both["mean"].mean(), known - known.mean(), atol=1e-4)
    e = both["residual"] - both["mean"]
    np.testing.assert_allclose(e, psi[-1] * dense.projection(X, V) @ y, atol=1e-4)


def test_a_field_without_empty_plots_has_the_errors_of_the_dense_model(plots, tmp_path):
    full = plots.join(
        pl.DataFrame({"row": np.repeat(np.arange(1, 9), 7), "column": np.tile(np.arange(1, 8), 8)}),
        on=["row", "column"],
        how="right",
    ).with_columns(pl.col("y").fill_null(4.0))
    random = {"rows": FIELD | {"part": "rows"}}
    known = {"rows": 1.3, "residual": 0.7}
    source = analysis(full, random, {"row": {"kind": "covariate"}}, tmp_path / "run", "blup", known)
    run = mmgibbs.run(source, progress=False, report=True)
    row, y = full["row"].to_numpy().astype(float), full["y"].to_numpy()
    X, G = np.vander(row, 2), 1.3 * of_curve(row, 4)
    mean, errors = dense.predicted(y, X, G, G + 0.7 * np.eye(56), X)
    M = np.eye(56) - 1 / 56
    np.testing.assert_allclose(run.field["mean"], M @ mean, atol=1e-5)
    np.testing.assert_allclose(run.field["sd"], np.sqrt(np.diag(M @ errors @ M)), atol=1e-5)
    page = (run.directory / "report.html").read_text(encoding="utf-8")
    assert "Trend of rows, y" in page and "Sample variogram of rows, y" in page


def test_draws_are_made_all_at_once(records, tmp_path):
    source = analysis(records, {"curve": CURVE}, SLOPE, tmp_path / "run", "gibbs", samples=600, burn_in=500, chains=1)
    run = mmgibbs.run(source, progress=False)
    assert run.info["engine"] == "marginal"
    for changed, why in (
        (
            {"sampler": {"method": "gibbs", "engine": "serial"}},
            "found serial, which cannot draw splines.*needed method: reml or blup, engine: marginal, or relationship",
        ),
        (
            {"variances": {"mode": "fixed", "curve": 1, "residual": 1}},
            r"cannot be combined with fixed variances\); needed method: reml or blup, or relationship: random_walk",
        ),
    ):
        with pytest.raises(ConfigError, match=why):
            mmgibbs.run(source | changed, progress=False, overwrite=True)


def test_each_class_has_a_spline_with_common_knots(records):
    classes = records.with_columns(sex=pl.Series(["a", "b"] * 60))
    loaded = load_config(analysis(classes, {"curve": CURVE | {"within": "sex"}}, {"sex": {}}, "run"))
    of = prepare(loaded)
    labels, kind = of.levels[-1], of.design.terms[-1].relationship
    assert kind.sizes.tolist() == [
        classes.filter(sex=name).select("day").n_unique() for name in ("a", "b")
    ] and labels.ids[0].startswith("a:")
    assert load_config(loaded.resolved() | {"data": {"phenotypes": classes}}).model == loaded.model


@pytest.mark.parametrize(
    ("relationship", "message"),
    [
        ("spline", r"found no covariate, needed of: COLUMN for a curve, or row and column"),
        ({"kind": "spline", "row": "day"}, r"needed of: COLUMN for a curve, or row and column"),
        ({"kind": "spline", "of": "day", "row": "day"}, r"row: cannot be combined with of"),
        ({"kind": "spline", "of": "day", "by": "day"}, r"found one column twice"),
        ({"kind": "spline", "row": "day", "column": "y", "by": "z"}, r"by: found without of"),
        (CURVE | {"knots": 0}, r"knots: found 0"),
        ({"kind": "spline", "of": "day", "knots": 1, "degree": 1, "order": 3}, r"knots: found 1, needed"),
    ],
)
def test_keys_that_do_not_fit_are_named(records, relationship, message):
    with pytest.raises(ConfigError, match=message):
        load_config(analysis(records, {"curve": relationship}, {}, "run"))


@pytest.mark.parametrize(
    ("change", "relationship", "message"),
    [
        ({"row": pl.col("row") + 0.5}, FIELD, r"found 1\.5 in column 'row'"),
        ({"row": 1}, FIELD | {"part": "surface"}, r"found one row in every trial"),
        ({"row": 1}, FIELD, r"found one row in every trial .*f_rows.* or a model without this effect"),
        ({"row": pl.col("row") % 2}, FIELD | {"part": "surface"}, r"found no trial with at least 3 rows and columns"),
        ({"row": 1}, {"kind": "spline", "of": "row"}, r"at most 1 distinct value in column 'row'"),
        ({"column": 1}, {"kind": "spline", "of": "row", "by": "column"}, r"found one value in column 'column'.*\.by"),
        (
            {"column": None},
            {"kind": "spline", "of": "row", "by": "column"},
            r"row 1: found no value in column 'column'",
        ),
    ],
)
def test_values_that_do_not_fit_are_named(plots, change, relationship, message):
    with pytest.raises(DataError, match=message):
        prepare(load_config(analysis(plots.with_columns(**change), {"f": relationship}, {}, "run")))


def test_too_many_points_are_refused(plots, monkeypatch):
    monkeypatch.setattr(splines, "MAX_ELEMENTS", 1000)
    with pytest.raises(DataError, match=r"found 56 points in the largest of 1 spline .*fewer trials.*relationship ar1"):
        prepare(load_config(analysis(plots, {"f": FIELD | {"part": "surface"}}, {}, "run")))


def test_a_surface_without_its_plane_is_warned_of(plots):
    trials = plots.with_columns(trial=pl.lit("A"))
    (warning,) = prepare(load_config(analysis(trials, {"f": FIELD | {"within": "trial"}}, {}, "run"))).warnings
    assert (
        '"trial:row": {covariates: [row]}' in warning and '"trial:row:column": {covariates: [row, column]}' in warning
    )
    fixed = {"row": {"kind": "covariate"}, "row:column": {"covariates": ["row", "column"]}}
    (warning,) = prepare(load_config(analysis(plots, {"f": FIELD}, fixed, "run"))).warnings
    assert 'needed model.fixed: {"column": {kind: covariate}} for' in warning


@pytest.mark.parametrize(
    ("effects", "message"),
    [
        ({"a": {"level": "day", "covariates": ["x"]}}, r"covariates: cannot be combined with relationship spline"),
        ({"a": {"level": "day"}, "b": {"level": "day"}}, r"found several with relationship spline, needed one effect"),
    ],
)
def test_effects_of_splines_are_plain(records, effects, message):
    source = analysis(records, {"curve": CURVE}, SLOPE, "run")
    source["model"]["random"]["curve"]["effects"] = effects
    with pytest.raises(ConfigError, match=message):
        load_config(source)


def test_a_factor_is_scaled_over_the_records_of_the_effect(plots):
    """Of a curve times a column on one of two traits."""
    halves = pl.int_range(pl.len()) % 2 == 0
    records = plots.with_columns(
        y=pl.when(halves).then("y"), z=pl.when(~halves).then("y"), column=pl.col("column") ** 2 + 9 * halves
    )
    source = analysis(records, {}, {}, "run")
    source["traits"] = ["y", "z"]
    relationship = {"kind": "spline", "of": "row", "by": "column", "knots": 3}
    source["model"]["random"] = {"slope": {"relationship": relationship, "traits": ["y"]}}
    (effect,) = prepare(load_config(source)).design.terms[-1].effects
    factor = effect.covariates[effect.level >= 0, 0]
    assert factor.size == records["y"].drop_nulls().len()
    np.testing.assert_allclose([factor.mean(), factor.std()], [0.0, 1.0], atol=1e-9)
