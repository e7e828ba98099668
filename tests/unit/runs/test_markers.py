"""Runs with SNP effects: every prior, beside other terms, on every engine that takes them, in pieces and in one go."""

import numpy as np
import polars as pl
import pytest
from helpers.estimates import assert_same_draws
from helpers.marker_runs import GENOTYPED, SNPS, analysis, finite, run, tables

import mmgibbs
from mmgibbs.errors import ConfigError, DataError

__all__ = ["tables"]
PRIORS = ["rr", "bayes_a", "bayes_b", "bayes_c", "bayes_r", "lasso", "horseshoe"]


@pytest.mark.parametrize("prior", PRIORS)
def test_every_prior(tables, tmp_path, prior):
    found = run(tables, tmp_path / "run", section={"prior": prior})
    assert finite(found.summary) and finite(found.solutions)
    gebv = found.solutions.filter(pl.col("effect") == "gebv")
    assert gebv.height == GENOTYPED and gebv["pev"].min() > 0
    names = set(found.summary["parameter"])
    assert {"snps.var[milk]", "h2[milk]", "genetic.var[milk]"} <= names
    table = pl.read_parquet(tmp_path / "run" / "markers.parquet")
    kept = table.filter("kept")
    assert table.height == SNPS and kept["effect_milk"].is_not_null().all()
    assert ("pip_milk" in table.columns) == (prior in ("bayes_b", "bayes_c", "bayes_r"))


@pytest.mark.parametrize("prior", ["rr", "bayes_r"])
def test_a_run_in_pieces_is_a_run_in_one_go(tables, tmp_path, prior):
    whole = run(tables, tmp_path / "whole", section={"prior": prior})
    run(tables, tmp_path / "pieces", section={"prior": prior}, samples=11)
    config = analysis(tables, tmp_path / "pieces", section={"prior": prior}, samples=11)
    pieces = mmgibbs.run(config, extend=19, progress=False)
    assert_same_draws(whole, pieces)
    for name in ("mean", "sd"):
        np.testing.assert_array_equal(whole.solutions[name].to_numpy(), pieces.solutions[name].to_numpy())


def test_engines_and_threads_give_the_same_chain(tables, tmp_path):
    short = {"samples": 8, "burn_in": 4, "precision": "double"}
    a = run(tables, tmp_path / "a", engine="serial", partition="colour", **short)
    b = run(tables, tmp_path / "b", engine="structured", threads=1, **short)
    c = run(tables, tmp_path / "c", engine="structured", threads=2, **short)
    assert_same_draws(a, b, rtol=1e-4, atol=1e-6)
    assert_same_draws(b, c)


@pytest.mark.parametrize("sampler", [{"engine": "pcg"}, {"engine": "hybrid"}, {"method": "blup"}])
def test_what_cannot_be_combined(tables, tmp_path, sampler):
    held = {"mode": "fixed", "genetic": 0.5, "residual": 1} if "method" in sampler else None
    with pytest.raises(ConfigError, match="cannot be combined with"):
        run(tables, tmp_path / "run", variances=held, **sampler)


def test_without_genotypes(tables, tmp_path):
    with pytest.raises(DataError, match=r"model.markers.snps: \d+ records are of animals without genotypes, such as a"):
        run(tables, tmp_path / "run", section={"without_genotypes": "refuse"})
    dropped = run(tables, tmp_path / "run", section={"without_genotypes": "drop"}, random=False)
    kept = run(tables, tmp_path / "run", random=False)
    of_dropped, of_kept = (r.info["data"]["records"] for r in (dropped, kept))
    assert of_dropped["read"] == of_kept["read"] == of_kept["used"]
    assert of_dropped["left_out"]["no genotypes"] == of_dropped["read"] - of_dropped["used"] > 0
    assert "no genotypes" not in of_kept["left_out"]


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"prior": "bayes_q"}, "model.markers.snps.prior: found bayes_q; did you mean"),
        ({"prior": "rr", "pi": [0.9, 0.1]}, "model.markers.snps.pi: cannot be combined with prior: rr"),
        ({"prior": "bayes_r", "classes": [0.1, 1]}, "needed 0 first"),
        ({"prior": "bayes_c", "pi": [0.9, 0.2]}, "needed 1"),
        ({"prior": "bayes_r", "pi": [0.9, 0.1]}, "found 2 shares, needed 4"),
        ({"prior": "lasso", "variance": {"fixed": True}}, "variance.fixed: cannot be combined with prior: lasso"),
        ({"traits": ["milc"]}, "is not a trait; did you mean"),
        ({"variance": {"share": 1.5}}, "a number between 0 and 1"),
    ],
)
def test_mistakes(tables, tmp_path, section, said):
    with pytest.raises(mmgibbs.MmgibbsError) as caught:
        run(tables, tmp_path / "run", section=section)
    assert said in str(caught.value)


def test_markers_without_genotypes_are_refused(tables, tmp_path):
    config = analysis(tables, tmp_path / "run")
    del config["data"]["genotypes"]
    with pytest.raises(ConfigError, match="data.genotypes: missing"):
        mmgibbs.run(config, progress=False)
