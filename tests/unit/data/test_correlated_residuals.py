"""Autoregressive residuals: what they may be of, and what they cannot be combined with."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import as_mapping

import mmgibbs
from mmgibbs.errors import MmgibbsError

AR1 = {"kind": "ar1", "row": "row", "column": "column"}


def trial():
    rng = np.random.default_rng(2)
    row, column = np.divmod(np.arange(24), 4)
    names = [f"V{i}" for i in rng.permutation(24) % 6]
    return pl.DataFrame({"row": row, "column": column, "variety": names, "y": rng.normal(size=24)})


def source(relationship, records=None, method="reml", **variances):
    residual = {"relationship": relationship, **variances}
    records = trial() if records is None else records
    return as_mapping(records, fixed={"variety": {}}, variances={"residual": residual}, method=method)


def expect(message, *arguments, **keys):
    with pytest.raises(MmgibbsError) as error:
        mmgibbs.check(source(*arguments, **keys))
    assert message in str(error.value)


def test_what_is_refused():
    expect("variances.residual.relationship: cannot be combined with sampler.method: gibbs", AR1, method="gibbs")
    expect("expected ar1 for residuals, got pedigree", "pedigree")
    expect("variances.residual.relationship.rho: missing, needed {row: R, column: R}", AR1, method="blup", start=1.0)
    twice = pl.concat([trial(), trial().head(1)])
    expect("row 25: found a second record of plot '0:0', as in row 1", AR1, twice)
    expect("found no direction", {"kind": "ar1"})


def test_blup_is_generalised_least_squares(tmp_path):
    records = trial().sample(20, seed=1)
    analysis = source(AR1 | {"rho": {"row": 0.5, "column": 0.2}}, records, method="blup", start=2.0)
    analysis["output"] = {"directory": str(tmp_path / "run"), "means": ["variety"]}
    result = mmgibbs.run(analysis, progress=False)
    row, column = records["row"].to_numpy(), records["column"].to_numpy()
    distance = lambda x: np.abs(np.subtract.outer(x, x))
    R = 2.0 * 0.5 ** distance(row) * 0.2 ** distance(column)
    varieties = sorted(set(records["variety"]))
    X = (records["variety"].to_numpy()[:, None] == np.array(varieties)).astype(float)
    C = np.linalg.inv(X.T @ np.linalg.solve(R, X))
    b = C @ X.T @ np.linalg.solve(R, records["y"].to_numpy())
    assert result.means["level"].to_list() == varieties
    assert result.means["mean"].to_numpy() == pytest.approx(b, abs=1e-10)
    assert result.means["se"].to_numpy() == pytest.approx(np.sqrt(np.diag(C)), abs=1e-10)
    values = dict(result.summary.select("parameter", "mean").iter_rows())
    assert values["residual.rho[row]"] == 0.5 and values["residual.rho[column]"] == 0.2


def test_validation_refuses(tmp_path):
    analysis = source(AR1 | {"rho": 0.5}, method="blup", start=1.0)
    analysis["model"]["random"] = {"column": {}}
    analysis["variances"]["column"] = 0.5
    with pytest.raises(MmgibbsError, match="expected independent residuals"):
        mmgibbs.validate(analysis, plan=mmgibbs.ValidationPlan("kfold"), output=tmp_path / "validation", progress=False)


def test_page_says_how_residuals_are_correlated(tmp_path):
    analysis = source(AR1)
    analysis["output"] = {"directory": str(tmp_path / "run")}
    mmgibbs.run(analysis, progress=False, report=True)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "random; correlated between neighbouring rows and columns (AR1)" in page
    assert "has the covariances of the residuals of all records" in page
