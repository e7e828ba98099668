"""Fitted values: residuals have nothing in common with fixed effects, and are what BLUP shrinks (Z'e = lambda u)."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import as_mapping

import mmgibbs
from mmgibbs.errors import ConfigError

RATIO = 2.5
FIXED = {
    "classes": {"herd": {}, "sex": {}},
    "a reference level": {"herd": {"reference": "h3"}, "sex": {}},
    "curves": {"sex": {}, "age": {"kind": "covariate", "degree": 2}},
    "slopes in classes": {"herd": {}, "age": {"kind": "covariate", "by": "sex"}},
    "confounded classes": {"herd": {}, "region": {}, "sex": {}},
}


@pytest.fixture(scope="module")
def records():
    """Words as levels, unequal numbers, an empty class of the second trait, and records without one."""
    rng = np.random.default_rng(4)
    n = 90
    herd = rng.choice(["h1", "h2", "h3", "h10"], n, p=[0.5, 0.2, 0.2, 0.1])
    frame = pl.DataFrame(
        {
            "herd": herd,
            "region": np.where(np.isin(herd, ["h1", "h2"]), "north", "south"),
            "sex": rng.choice(["male", "female"], n, p=[0.3, 0.7]),
            "age": 20 + 10 * rng.random(n),
            "sire": rng.choice([f"s{i}" for i in range(12)], n),
            "y": 300 + 25 * rng.standard_normal(n),
            "z": rng.standard_normal(n),
        }
    )
    return frame.with_columns(z=pl.when(pl.int_range(n) % 3 != 0).then("z"))


def run(records, fixed, traits=("y",), **sections):
    source = as_mapping(
        records, traits, fixed=fixed, random={"sire": {}}, output={"fitted": True},
        variances=sections.pop("variances", {"sire": 1.0, "residual": RATIO}), **sections,
    )  # fmt: skip
    return mmgibbs.run(source, progress=False)


def fitted_of(result, trait="y"):
    return pl.read_parquet(result.directory / "fitted.parquet").filter(pl.col("trait") == trait)


@pytest.mark.parametrize("name", FIXED)
def test_residuals_of_blup(name, records, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(records, FIXED[name])
    found = fitted_of(result)
    e = found["residual"].to_numpy()
    assert found["row"].to_list() == list(range(1, 91))
    np.testing.assert_allclose(found["observed"], records["y"])
    np.testing.assert_allclose(found["fitted"] + e, records["y"])
    joined = records.with_columns(e=e)
    for effect, keys in FIXED[name].items():
        if "kind" not in keys:
            assert joined.group_by(effect).agg(pl.col("e").sum())["e"].abs().max() < 1e-6
        elif "by" in keys:
            assert joined.group_by("sex").agg((pl.col("e") * pl.col(effect)).sum())["e"].abs().max() < 1e-4
        else:
            assert all(abs(np.sum(e * records[effect].to_numpy() ** power)) < 1e-2 for power in (0, 1, 2))
    sums = joined.group_by("sire").agg(pl.col("e").sum() / RATIO)
    sires = result.solutions.filter(pl.col("term") == "sire").join(sums, left_on="level", right_on="sire")
    assert sires.height == 12
    np.testing.assert_allclose(sires["mean"], sires["e"], atol=1e-8)


def test_several_traits_in_another_order(records, tmp_path, monkeypatch):
    """With nothing in common they are fitted as each alone."""
    monkeypatch.chdir(tmp_path)
    variances = {"sire": {"start": [[0.2, 0], [0, 30]]}, "residual": {"start": [[1.0, 0], [0, 500.0]]}}
    both = run(records, FIXED["classes"], ("z", "y"), variances=variances)
    assert fitted_of(both, "z").height == 60
    alone = run(records, FIXED["classes"], variances={"sire": 30.0, "residual": 500.0}, name="alone")
    np.testing.assert_allclose(fitted_of(both)["fitted"], fitted_of(alone)["fitted"], rtol=1e-8)


def test_a_liability_has_no_residual(records, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ill = records.with_columns(ill=(pl.col("z") > 0).replace_strict({True: "yes", False: "no"}))
    sampler = {"burn_in": 20, "samples": 60, "chains": 1}
    traits = {"ill": {"type": "binary", "positive": "yes"}}
    prior = {"sire": {"prior": {"df": 4, "scale": 0.5}}}
    result = run(ill, {"sex": {}}, traits, method="gibbs", sampler=sampler, variances=prior)
    found = fitted_of(result, "ill")
    assert found.height == 60 and found["observed"].null_count() == found["residual"].null_count() == 60
    values = dict(result.solutions.select("level", "mean").iter_rows())
    (mean,) = result.solutions.filter(pl.col("term") == "intercept")["mean"]
    rows = records.drop_nulls("z").select("sex", "sire").iter_rows()
    expected = [mean + values[sex] + values[sire] for sex, sire in rows]
    np.testing.assert_allclose(found["fitted"], expected, atol=1e-9)


def test_fitted_values_and_snp_effects_are_not_combined(records):
    source = as_mapping(records, ("y",), output={"fitted": True})
    source["model"]["markers"] = {"snps": {"prior": "rr", "level": "sire"}}
    source["data"]["genotypes"] = "g.bed"
    with pytest.raises(ConfigError, match=r"output.fitted: cannot be combined with model.markers"):
        mmgibbs.load_config(source)
