"""Curves of a random regression as a table: variances and heritabilities with their errors."""

import json

import numpy as np
import polars as pl
import pytest
from helpers.finished_run import describe_random
from helpers.shared_runs import shared_run

from mmgibbs.data.covariates import legendre
from mmgibbs.results.columns import meaning
from mmgibbs.results.curves import CURVE_COLUMNS, POINTS, curves_frame
from mmgibbs.results.folder import name_tables

RNG = np.random.default_rng(6)
DRAWS = {
    "genetic.var[rr.0:weight]": RNG.uniform(20, 30, (2, 50)),
    "genetic.var[rr.1:weight]": RNG.uniform(3, 4, (2, 50)),
    "genetic.cov[rr.0:weight,rr.1:weight]": RNG.uniform(1, 2, (2, 50)),
    "litter.var[weight]": RNG.uniform(2, 3, (2, 50)),
    "residual.var[weight]": RNG.uniform(9, 10, (2, 50)),
}


def record(legendre_of=None):
    rr = {"level": "animal", "legendre": legendre_of or {"column": "age", "degree": 1, "range": [1.0, 6.0]}}
    random = {
        "genetic": {"relationship": "pedigree", "effects": {"rr": rr | {"traits": ["weight"]}}},
        "litter": {"relationship": "identity", "level": "litter", "traits": ["weight"]},
    }
    analysis = {"traits": {"weight": {}}, "model": {"random": random, "markers": {}}}
    return {"analysis": analysis, "relationships": describe_random(analysis)}


def test_every_point_has_the_moments_of_its_draws():
    found = curves_frame(record(), DRAWS)
    assert found.columns == list(CURVE_COLUMNS) and found.height == 2 * POINTS
    assert [meaning("curves.csv", c) is None for c in found.columns] == [False] * len(CURVE_COLUMNS)
    assert set(found.select("term", "trait", "covariate").unique().row(0)) == {"genetic", "weight", "age"}
    phi = legendre(found["at"].to_numpy()[:POINTS], 1, 1.0, 6.0)
    v0, v1, c = (DRAWS[f"genetic.{name}"].ravel()[:, None] for name in
                 ("var[rr.0:weight]", "var[rr.1:weight]", "cov[rr.0:weight,rr.1:weight]"))  # fmt: skip
    variance = v0 * phi[:, 0] ** 2 + v1 * phi[:, 1] ** 2 + 2 * c * phi[:, 0] * phi[:, 1]
    of_variance = found.filter(quantity="variance")
    np.testing.assert_allclose(of_variance["mean"], variance.mean(axis=0))
    np.testing.assert_allclose(of_variance["sd"], variance.std(axis=0, ddof=1))
    total = variance + DRAWS["litter.var[weight]"].ravel()[:, None] + DRAWS["residual.var[weight]"].ravel()[:, None]
    share = found.filter(quantity="heritability")
    np.testing.assert_allclose(share["mean"], (variance / total).mean(axis=0))
    assert (share["hpd_low"] < share["mean"]).all() and (share["mean"] < share["hpd_high"]).all()
    assert (found["mcse"] < found["sd"]).all() and (found["mcse"] > 0).all()


def test_a_curve_needs_no_relationship():
    """Random regressions of levels that are independent, and of a term with two curves."""
    of = record()
    of["relationships"]["genetic"] = of["relationships"]["litter"]
    found = curves_frame(of, DRAWS).filter(quantity="variance")
    assert found.height == POINTS and found.equals(curves_frame(record(), DRAWS).filter(quantity="variance"))


def test_each_curve_of_a_term_is_written():
    of = record()
    effects = of["analysis"]["model"]["random"]["genetic"]["effects"]
    effects["dam"] = effects["rr"] | {"level": "dam"}
    of_dams = {name.replace("rr.", "dam."): 2 * values for name, values in DRAWS.items()}
    found = curves_frame(of, of_dams | DRAWS)
    assert found.select("term", "effect", "quantity").unique(maintain_order=True).rows() == [
        ("genetic", "rr", "variance"),
        ("genetic", "dam", "variance"),
    ]
    of_animals, of_mothers = (found.filter(effect=effect)["mean"].to_numpy() for effect in ("rr", "dam"))
    np.testing.assert_allclose(of_mothers, 2 * of_animals)


def test_estimates_have_no_errors():
    found = curves_frame(record(), {name: values[:1, :1] for name, values in DRAWS.items()})
    assert found["mean"].null_count() == 0 and found["sd"].null_count() == found.height


@pytest.mark.parametrize("given", [{"column": "age", "degree": 1, "range": None}, None])
def test_no_curve_no_file(given, tmp_path):
    of = record(given)
    if given is None:
        of["analysis"]["model"]["random"].pop("genetic")
    assert name_tables({"curves": curves_frame(of, DRAWS)}, "auto") == {}
    assert curves_frame(record(), DRAWS).height


def test_a_run_writes_them(tmp_path_factory):
    folder = shared_run(tmp_path_factory, "random_regression")
    table = pl.read_csv(folder / "curves.csv")
    assert {"curves.csv", "curves.parquet"} <= set(json.loads((folder / "run.json").read_text())["files"])
    rows = table.group_by("term", "quantity").len().rows()
    assert {("genetic", "variance", POINTS), ("genetic", "heritability", POINTS)} <= set(rows)
    assert table.filter(quantity="heritability")["mean"].is_between(0, 1).all()
    assert (table["at"].min(), table["at"].max()) == (1.0, 6.0)
