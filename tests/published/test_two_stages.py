"""Damesa, Mohring, Worku & Piepho (2017): maize at four sites in one stage, and in two by the covariances of means."""

import numpy as np
import polars as pl
import pytest
from helpers.support import shared_data

import mmgibbs

SITES = ("S1", "S2", "S3", "S4")
PRINTED = {  # Table 1, as agridat's help page fits it by ASReml; both of S3 are 0
    "rep_S1.var[yield]": 0.08819,
    "rep_S2.var[yield]": 1.383,
    "rep_S4.var[yield]": 0.01442,
    "site.var[yield]": 10.45,
    "gen:site.var[yield]": 0.1054,
    "block_S1.var[yield]": 0.3312,
    "block_S2.var[yield]": 0.4747,
    "block_S4.var[yield]": 0.06954,
    "residual.var[yield|S1]": 1.346,
    "residual.var[yield|S2]": 0.1936,
    "residual.var[yield|S3]": 1.153,
    "residual.var[yield|S4]": 0.1112,
}
OMIT = {"unknown_level": "omit"}


@pytest.fixture(scope="module")
def trial():
    """Replicates and blocks of each site in columns of their own too."""
    trial = pl.read_csv(shared_data("data/agridat/damesa.maize.txt"), separator="\t", null_values="NA")
    trial = trial.with_columns(block=pl.col("rep") + pl.col("block"))
    return trial.with_columns(
        pl.when(pl.col("site") == site).then(pl.col(column)).alias(f"{column}_{site}")
        for column in ("rep", "block")
        for site in SITES
    )


def one_stage(trial, sites, directory, variances, **sampler):
    terms = {f"{column}_{site}": OMIT for column in ("rep", "block") for site in sites}
    return mmgibbs.run(
        {
            "data": {"phenotypes": trial},
            "traits": ["yield"],
            "model": {"fixed": {"gen": {}}, "random": {"site": {}, "gen:site": {}, **terms}},
            "variances": variances,
            "sampler": sampler,
            "output": {"means": ["gen"], "directory": str(directory)},
        },
        progress=False,
    )


def test_one_stage(trial, tmp_path):
    sites = ("S1", "S2", "S4")
    result = one_stage(trial, sites, tmp_path / "run", {"residual": {"by": "site"}}, method="reml")
    found = dict(result.summary.select("parameter", "mean").iter_rows())
    assert result.info["log_likelihood_without_2_pi"] == pytest.approx(-125.4628, abs=5e-5)
    computed = np.array([found[name] for name in PRINTED])
    np.testing.assert_allclose(computed, list(PRINTED.values()), rtol=1e-3)


def first_stage(trial, directory):
    """Means of each site, with the variances of the analysis in one stage."""
    results = {}
    for site in SITES:
        given = {name: PRINTED.get(f"{name}_{site}.var[yield]", 1e-4) for name in ("rep", "block")}
        results[site] = mmgibbs.run(
            {
                "data": {"phenotypes": trial.filter(pl.col("site") == site)},
                "traits": ["yield"],
                "model": {"fixed": {"gen": {}}, "random": {"rep": {}, "block": {}}},
                "variances": {"mode": "fixed", **given, "residual": PRINTED[f"residual.var[yield|{site}]"]},
                "sampler": {"method": "blup", "tolerance": 1e-13},
                "output": {"means": ["gen"], "directory": str(directory / site)},
            },
            progress=False,
        )
    means = pl.concat([result.means.with_columns(site=pl.lit(site)) for site, result in results.items()])
    return means, {site: str(directory / site / "means_covariance.npz") for site in SITES}


def test_two_stages_are_one(trial, tmp_path):
    variances = {"mode": "fixed", "site": 10.45, "gen:site": 0.1054}
    of_sites = {
        f"{column}_{site}": PRINTED.get(f"{column}_{site}.var[yield]", 1e-4)
        for column in ("rep", "block")
        for site in SITES
    }
    residual = {"by": "site", "classes": {site: PRINTED[f"residual.var[yield|{site}]"] for site in SITES}}
    one = one_stage(
        trial, SITES, tmp_path / "one", {**variances, **of_sites, "residual": residual}, method="blup", tolerance=1e-13
    )
    means, files = first_stage(trial, tmp_path)
    two = mmgibbs.run(
        {
            "data": {"phenotypes": means},
            "traits": ["mean"],
            "model": {"fixed": {"level": {}}, "random": {"site": {}, "level:site": {}}},
            "variances": {
                "mode": "fixed",
                "site": 10.45,
                "level:site": 0.1054,
                "residual": {"known": {"files": files, "by": "site"}},
            },
            "sampler": {"method": "blup"},
            "output": {"means": ["level"], "directory": str(tmp_path / "two")},
        },
        progress=False,
    )
    assert two.means["level"].equals(one.means["level"])
    assert two.means["mean"].to_numpy() == pytest.approx(one.means["mean"].to_numpy(), abs=1e-8)
    with (
        np.load(tmp_path / "one" / "means_covariance.npz") as first,
        np.load(tmp_path / "two" / "means_covariance.npz") as second,
    ):
        np.testing.assert_allclose(second["level.mean"], first["gen.yield"], atol=1e-8)
    in_one = one.solutions.filter(term="gen:site").select("level", "mean", "sd").sort("level")
    in_two = two.solutions.filter(term="level:site").select("level", "mean", "sd").sort("level")
    assert in_two["level"].equals(in_one["level"])
    np.testing.assert_allclose(in_two["mean"], in_one["mean"], atol=1e-8)
    np.testing.assert_allclose(in_two["sd"], in_one["sd"], atol=1e-8)
