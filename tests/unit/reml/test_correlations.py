"""REML of correlations of plots and times: the likelihood in plain dense form, its maximum, and standard errors."""

import os
import signal

import numpy as np
import polars as pl
import pytest
import yaml
from helpers.trends import lag_matrix
from reference.dense import restricted_log_likelihood
from scipy import optimize

import mmgibbs
from mmgibbs.build.assemble import assemble
from mmgibbs.cli import main
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.likelihood.renewable import RenewableRelationship
from mmgibbs.likelihood.restricted import RestrictedLikelihood
from mmgibbs.runs.reml import RemlWatch
from mmgibbs.validation.options import ValidationPlan
from mmgibbs.validation.run import load_with_plan

FIELD = {"kind": "ar1", "row": "row", "column": "column", "within": "trial"}


def simulate(seed=5, missing=3):
    """Two trials of 8 x 7 and 5 x 6 plots, some without a record, entries fixed, a nugget."""
    rng, rows = np.random.default_rng(seed), []
    for trial, (R, C) in {"A": (8, 7), "B": (5, 6)}.items():
        K = np.kron(
            0.7 ** np.abs(np.subtract.outer(*[np.arange(R)] * 2)), 0.4 ** np.abs(np.subtract.outer(*[np.arange(C)] * 2))
        )
        trend = np.linalg.cholesky(4.0 * K) @ rng.normal(size=R * C)
        rows += [
            (trial, r + 1, c + 3, f"e{rng.integers(4)}", 20 + trend[r * C + c] + rng.normal())
            for r in range(R)
            for c in range(C)
        ]
    frame = pl.DataFrame(rows, schema=["trial", "row", "column", "entry", "y"], orient="row")
    return frame.filter(~pl.Series(rng.permutation(frame.height) < missing))


def analysis(records, relationship=FIELD, directory="run", method="reml", **variances):
    return {
        "data": {"phenotypes": records},
        "traits": ["y"],
        "model": {"fixed": {"entry": {}}, "random": {"field": {"relationship": relationship}}},
        "variances": variances,
        "sampler": {"method": method},
        "output": {"directory": str(directory)},
    }


def log_likelihood(records, psi):
    """Of (field variance, residual variance, rho_row, rho_column), in plain dense form."""
    vf, ve, rr, rc = psi
    site, row, column = (records[c].to_numpy() for c in ("trial", "row", "column"))
    V = vf * lag_matrix(rr, row) * lag_matrix(rc, column) * (site[:, None] == site) + ve * np.eye(len(site))
    entry = records["entry"].to_numpy()
    X = (entry[:, None] == np.unique(entry)).astype(float)
    return restricted_log_likelihood(records["y"].to_numpy(), X, V)


@pytest.fixture(scope="module")
def records():
    return simulate()


@pytest.fixture(scope="module")
def run(records, tmp_path_factory):
    return mmgibbs.run(analysis(records, directory=tmp_path_factory.mktemp("field") / "run"))


NAMES = ["field.var[y]", "residual.var[y]", "field.rho[row]", "field.rho[column]"]


def estimates(run, names=NAMES):
    table = {row["parameter"]: (row["mean"], row["sd"]) for row in run.summary.iter_rows(named=True)}
    return np.array([table[name] for name in names]).T


def test_the_estimates_are_the_maximum_of_the_dense_likelihood(records, run):
    found, _ = estimates(run)
    best = optimize.minimize(
        lambda psi: -log_likelihood(records, psi),
        found,
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-10, "maxiter": 4000},
    )
    np.testing.assert_allclose(found, best.x, rtol=2e-4, atol=2e-4)
    assert run.info["log_likelihood"] == pytest.approx(-best.fun, abs=1e-7)
    assert run.info["estimated_elements"] == 4


def likelihood_of(records, relationship=FIELD):
    config = load_config(analysis(records, relationship))
    prepared = prepare(config)
    model = assemble(config, prepared).model
    blocks = [None if c is None else c.blocks for c in model.covariances]
    return RestrictedLikelihood(prepared.design, blocks, [m.blocks for m in model.residual.matrices])


@pytest.mark.parametrize("rho", [(0.6, 0.1), (-0.4, 0.9)])
def test_a_renewed_likelihood_and_its_slope_are_those_of_the_dense_form(records, rho):
    likelihood = likelihood_of(records)
    kind = RenewableRelationship(likelihood, 1)
    kind.renew(np.array([0.2, 0.3]))  # and back: nothing of it may stay
    kind.renew(np.array(rho))
    point = likelihood.evaluate(Variances([None, np.array([[3.0]])], np.array([[[1.5]]])))
    psi = np.array([3.0, 1.5, *rho])
    assert point.log_likelihood == pytest.approx(log_likelihood(records, psi), abs=1e-8)
    slopes = []
    for p in (2, 3):
        up, down = psi.copy(), psi.copy()
        up[p] += 1e-5
        down[p] -= 1e-5
        slopes.append((log_likelihood(records, up) - log_likelihood(records, down)) / 2e-5)
    np.testing.assert_allclose(kind.gradient(point), slopes, rtol=1e-5, atol=1e-6)


def test_what_a_whole_field_has_in_common_ends_at_the_bound_with_a_warning(records, tmp_path):
    lifted = records.with_columns(y=pl.col("y") + 1000.0 * (pl.col("trial") == "A"))
    run = mmgibbs.run(analysis(lifted, directory=tmp_path / "run"))
    found, errors = estimates(run, ["field.rho[row]"])
    assert found == pytest.approx([0.995], abs=1e-9)
    assert errors[0] is None or np.isnan(errors[0])
    (warning,) = (w for w in run.info["warnings"] if "field.rho[row]: the correlation is at its bound" in w)
    assert "the standard error of a mean, which means.csv leaves blank" in warning


def test_means_have_no_standard_error_where_the_variance_is_what_the_bound_makes_of_it(tmp_path):
    """Rows that differ as a whole, by a variance of 9: the bound would make it 0.5, and the error of a mean 0.3."""
    rng = np.random.default_rng(5)
    row, column = np.divmod(np.arange(120), 12)
    line = rng.permutation(np.repeat(np.arange(20), 6))
    level = 3 * rng.normal(size=10)
    frame = pl.DataFrame(
        {
            "line": [f"l{i:02d}" for i in line],
            "row": row,
            "column": column,
            "y": 10 + level[row] + 0.05 * rng.normal(size=120),
        }
    )
    given = {
        "data": {"phenotypes": frame},
        "traits": ["y"],
        "model": {"fixed": {"line": {}}},
        "variances": {"residual": {"relationship": {"kind": "ar1", "row": "row", "column": "column"}}},
        "sampler": {"method": "reml"},
        "output": {"means": ["line"]},
    }
    run = mmgibbs.run(given, directory=tmp_path / "run", progress=False)
    assert any("residual.rho[column]: the correlation is at its bound, 0.995" in w for w in run.info["warnings"])
    means = pl.read_parquet(tmp_path / "run" / "means.parquet")
    assert means["se"].null_count() == 20 and means["mean"].null_count() == 0
    assert 0 < run.info["means"][0]["sed"]["mean"] < 0.1  # differences within rows are known
    assert mmgibbs.open_run(tmp_path / "run").contrast("line", {"l00": 1, "l01": -1})[1] > 0
    given["model"]["fixed"]["row"] = {}
    given["variances"]["residual"]["relationship"] = {"kind": "ar1", "column": "column", "within": "row"}
    run = mmgibbs.run(given, directory=tmp_path / "fixed", progress=False)
    assert pl.read_parquet(tmp_path / "fixed" / "means.parquet")["se"].null_count() == 0


def test_known_correlations_stay_and_need_values(records, tmp_path):
    known = FIELD | {"rho": {"row": 0.7, "column": 0.4}, "fixed": True}
    run = mmgibbs.run(analysis(records, known, tmp_path / "run"))
    found, errors = estimates(run)
    np.testing.assert_array_equal(found[2:], [0.7, 0.4])
    np.testing.assert_array_equal(errors[2:], 0.0)
    best = optimize.minimize(lambda v: -log_likelihood(records, [*v, 0.7, 0.4]), found[:2], method="Nelder-Mead")
    np.testing.assert_allclose(found[:2], best.x, rtol=1e-3)
    variances = {"field": found[0], "residual": found[1]}
    blup = mmgibbs.run(analysis(records, known, tmp_path / "blup", "blup", **variances))
    a, b = (r.solutions.filter(term="field")["mean"].to_numpy() for r in (run, blup))
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


def test_a_resumed_estimation_begins_at_the_correlations_that_it_had(records, tmp_path, monkeypatch):
    csv = tmp_path / "plots.csv"
    records.write_csv(csv)
    source = analysis(str(csv), directory=tmp_path / "run")
    (tmp_path / "analysis.yaml").write_text(yaml.safe_dump(source))
    called, kept = RemlWatch.__call__, []

    def with_signal(self, iteration, point, distance):
        kept.append(np.array(self.correlations))
        if iteration == 10:
            os.kill(os.getpid(), signal.SIGTERM)
        return called(self, iteration, point, distance)

    with monkeypatch.context() as patch:
        patch.setattr(RemlWatch, "__call__", with_signal)
        assert main(["run", str(tmp_path / "analysis.yaml")]) == 128 + signal.SIGTERM
    stopped_at, began_at = kept[-1], []

    def without_signal(self, iteration, point, distance):
        began_at.append(np.array(self.correlations))
        return called(self, iteration, point, distance)

    with monkeypatch.context() as patch:
        patch.setattr(RemlWatch, "__call__", without_signal)
        assert main(["run", str(tmp_path / "analysis.yaml"), "--resume"]) == 0
    assert np.all(stopped_at != 0.5)
    np.testing.assert_allclose(began_at[0], stopped_at, rtol=1e-12)
    found, _ = estimates(mmgibbs.open_run(tmp_path / "run"))
    whole, _ = estimates(mmgibbs.run(analysis(records, directory=tmp_path / "whole")))
    np.testing.assert_allclose(found, whole, rtol=1e-4)


@pytest.mark.parametrize("rho", [None, 0.3])
def test_validation_takes_the_correlations_of_a_run(records, run, rho):
    """Also where the analysis has other starts of them; they are then known."""
    source = analysis(records, FIELD if rho is None else FIELD | {"rho": rho})
    held = load_with_plan(source, ValidationPlan(variances=str(run.directory)), [])
    found, _ = estimates(run)
    relationship = held.model.random["field"].relationship
    assert relationship.rho == {"row": found[2], "column": found[3]} and relationship.fixed
    assert held.variances.terms["field"].start == ((found[0],),)
    with pytest.raises(ConfigError, match="its traits or random effects are not those"):
        load_with_plan(analysis(records, FIELD | {"within": "entry"}), ValidationPlan(variances=str(run.directory)), [])
