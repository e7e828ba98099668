"""REML estimates, standard errors and log likelihoods that others published, to the digits that they print."""

import numpy as np
import polars as pl
import pytest
from helpers.shared_cases import analysis
from helpers.support import published
from published import test_gryphon as gryphon
from published import test_simdata as simdata
from scipy.sparse import csr_array

import mmgibbs
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.likelihood.coefficients import factorise_inverse


def estimates(result):
    table = {row["parameter"]: (row["mean"], row["sd"]) for row in result.summary.iter_rows(named=True)}
    return lambda *names: np.array([table[name] for name in names])


@pytest.mark.parametrize("model", ["m1", "m2", "m3"])
def test_gryphon(tmp_path, model):
    result = gryphon.run(tmp_path / "run", model, method="reml")
    of, expected = estimates(result), gryphon.expected(model)
    reml = expected["REML_asreml" if model == "m1" else "REML"]
    names = {"VA": "genetic.var[bwt]", "VR": "residual.var[bwt]", "byear": "byear.var[bwt]"}
    for key, name in names.items():
        if key in reml:
            np.testing.assert_allclose(of(name)[0, 0], reml[key], rtol=2e-5)
    if "se" in reml:
        np.testing.assert_allclose(of(names["VA"], names["VR"])[:, 1], reml["se"], rtol=1e-4)
        np.testing.assert_allclose(of("h2[bwt]")[0], [reml["h2"], reml["h2se"]], rtol=1e-4)
    np.testing.assert_allclose(result.info["log_likelihood_without_2_pi"], reml["logL"], atol=6e-4)
    if "b" in reml:
        levels = result.solutions.filter(pl.col("term") == "sex").sort("level")["mean"].to_numpy()
        np.testing.assert_allclose([levels[0], levels[1] - levels[0]], reml["b"], rtol=2e-6)


@pytest.mark.parametrize("inbreeding", ["ignore", "account"])
def test_simdata(tmp_path, inbreeding):
    config = simdata.analysis(inbreeding, tmp_path / "run", method="reml")
    result = mmgibbs.run(config, progress=False)
    of, expected = estimates(result), published("simdata_trait1")["expected"]
    found = of("genetic.var[y1]", "residual.var[y1]")
    key = "independent_REML" if inbreeding == "ignore" else "with_inbreeding_REML"
    np.testing.assert_allclose(found[:, 0], expected[key], atol=1e-4)
    if inbreeding == "ignore":
        reml = expected["AIREML_published"]
        np.testing.assert_allclose(found[:, 0], [reml["s2u"], reml["s2e"]], atol=1e-3)
        np.testing.assert_allclose(found[:, 1], reml["se"], rtol=1e-3)
        np.testing.assert_allclose(of("h2[y1]")[0], [reml["h2"], reml["h2_se"]], atol=1e-4)
    # the exact solutions and PEV at variances of three decimals
    beside = simdata.beside_exact(result.solutions, inbreeding)
    if inbreeding == "ignore":
        np.testing.assert_allclose(beside["mean"], beside["u"], rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(beside["pev"], beside["pev_exact"], rtol=1e-4)


def test_milk(tmp_path):
    """Animals beside their permanent environment (Vazquez et al. 2010), found by quasi-Newton on the likelihood without
    2 pi, without log|A|, and with the covariate as it is, which is in units of its standard deviation here."""
    config = analysis("milk", tmp_path, method="reml")
    result = mmgibbs.run(config, progress=False)
    names = ("genetic.var[sd_milk]", "cow.var[sd_milk]", "herd.var[sd_milk]", "residual.var[sd_milk]")
    np.testing.assert_allclose(estimates(result)(*names)[:, 0], [0.0538, 0.2076, 0.2074, 0.4773], atol=6e-5)
    terms = prepare(load_config(config)).design.terms
    indptr, indices, values = next(t for t in terms if t.name == "genetic").relationship.inverse_csr()
    inverse = csr_array((values, indices, indptr), shape=(indptr.size - 1,) * 2)
    found = result.info["log_likelihood_without_2_pi"] - factorise_inverse(inverse).log_determinant / 2
    scale = pl.read_csv(tmp_path / "milk.csv")["log_dim"].std(ddof=0)
    assert found - np.log(scale) == pytest.approx(-2065.467, abs=6e-4)
