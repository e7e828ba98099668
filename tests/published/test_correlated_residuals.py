"""AR1 x AR1 residuals without a nugget, as ASReml fits them: the values that the help pages of agridat print."""

import numpy as np
import polars as pl
import pytest
from helpers.support import shared_data

import mmgibbs


def read_trial(name):
    return pl.read_csv(shared_data(f"data/agridat/{name}.txt"), separator="\t", null_values="NA")


def estimates(result):
    return dict(result.summary.select("parameter", "mean").iter_rows())


def errors(result):
    return dict(result.summary.select("parameter", "sd").iter_rows())


def test_nebraska_wheat(tmp_path):
    """Stroup, Baenziger & Mulitze (1994): 56 varieties fixed, 18 of the 242 plots are empty."""
    result = mmgibbs.run(
        {
            "data": {"phenotypes": read_trial("stroup.nin")},
            "traits": ["yield"],
            "model": {"fixed": {"gen": {}}},
            "variances": {"residual": {"relationship": {"kind": "ar1", "row": "row", "column": "col"}}},
            "sampler": {"method": "reml"},
            "output": {"directory": str(tmp_path / "run")},
        },
        progress=False,
    )
    found, error = estimates(result), errors(result)
    assert result.info["converged"]
    assert found["residual.var[yield]"] == pytest.approx(48.7128, abs=5e-4)
    assert found["residual.rho[column]"] == pytest.approx(0.6555, abs=5e-5)
    assert found["residual.rho[row]"] == pytest.approx(0.4375, abs=5e-5)
    assert error["residual.var[yield]"] == pytest.approx(7.155, abs=0.005)
    assert error["residual.rho[column]"] == pytest.approx(0.05638, abs=5e-5)
    assert error["residual.rho[row]"] == pytest.approx(0.0806, abs=5e-5)
    assert result.info["log_likelihood_without_2_pi"] == pytest.approx(-399.3238, abs=5e-5)
    assert result.info["estimated_elements"] == 3


LUPIN = {  # estimate and standard error, as printed
    "col_S1.var[yield]": (0.6228, 0.4284),
    "col_S2.var[yield]": (0.159, 0.1139),
    "col_S3.var[yield]": (0.04832, 0.02618),
    "row_S3.var[yield]": (0.0235, 0.008483),
    "test.var[yield]": (0.1031, 0.01468),
    "residual.var[yield|S1]": (2.771, 0.314),
    "residual.rho[column|S1]": (0.1959, 0.05375),
    "residual.rho[row|S1]": (0.6503, 0.03873),
    "residual.var[yield|S2]": (0.9926, 0.1079),
    "residual.rho[column|S2]": (0.2868, 0.05246),
    "residual.rho[row|S2]": (0.5744, 0.0421),
    "residual.var[yield|S3]": (0.1205, 0.01875),
    "residual.rho[row|S3]": (0.6394, 0.06323),
}


def test_lupins_at_three_sites(tmp_path):
    """Model m1: each site has its own residual variance and correlations, the third of rows alone."""
    sites = ("S1", "S2", "S3")
    at = lambda site, column: pl.when(pl.col("site") == site).then(pl.col(column)).alias(f"{column}_{site}")
    trial = read_trial("vsn.lupin3").with_columns(
        *(at(site, "col") for site in sites),
        at("S3", "row"),
        check=pl.when(pl.col("gen") > 336).then(0).otherwise(pl.col("gen").clip(upper_bound=7)),
        test=pl.when(pl.col("gen").is_between(7, 336)).then(pl.col("gen")).otherwise(0),
    )
    omit = {"unknown_level": "omit"}
    result = mmgibbs.run(
        {
            "data": {"phenotypes": trial},
            "traits": ["yield"],
            "model": {
                "fixed": {"site": {}, "check:site": {}},
                "random": {**{f"col_{site}": omit for site in sites}, "row_S3": omit, "test": {}},
            },
            "variances": {
                "residual": {
                    "by": "site",
                    "relationship": {"kind": "ar1", "row": "row", "column": "col"},
                    "classes": {"S3": {"relationship": {"kind": "ar1", "row": "row", "within": "col"}}},
                }
            },
            "sampler": {"method": "reml"},
            "output": {"directory": str(tmp_path / "run")},
        },
        progress=False,
    )
    found, error = estimates(result), errors(result)
    assert result.info["log_likelihood_without_2_pi"] == pytest.approx(-314.2616, abs=1e-4)
    printed = np.array([LUPIN[name] for name in LUPIN])
    computed = np.array([(found[name], error[name]) for name in LUPIN])
    np.testing.assert_allclose(computed, printed, rtol=1.5e-3)
