"""Runs with SNP effects on several traits together: every form of prior, its tables, in pieces and in one go."""

import json

import numpy as np
import polars as pl
import pytest
from helpers.estimates import assert_same_draws
from helpers.marker_runs import GENOTYPED, analysis, finite, run, tables

import mmgibbs
from mmgibbs.errors import MmgibbsError

__all__ = ["tables"]
FORMS = [("rr", "joint"), ("bayes_c", "joint"), ("bayes_c", "one_by_one"), ("bayes_c", "shared"), ("bayes_r", "shared")]
TWO = {"milk": {}, "fat": {}}


@pytest.fixture(scope="module")
def two(tables):
    """With a second trait, which some records miss."""
    phenotypes, pedigree, genotypes = tables
    rng = np.random.default_rng(3)
    fat = 10 * (0.7 * phenotypes["milk"].to_numpy() + rng.standard_normal(phenotypes.height))
    seen = rng.random(phenotypes.height) < 0.8
    return phenotypes.with_columns(fat=pl.Series(np.where(seen, fat, np.nan), nan_to_null=True)), pedigree, genotypes


@pytest.mark.parametrize(("prior", "across"), FORMS)
def test_every_form(two, tmp_path, prior, across):
    found = run(two, tmp_path / "run", TWO, {"prior": prior, "across_traits": across})
    assert finite(found.summary) and finite(found.solutions)
    names = set(found.summary["parameter"])
    for a in TWO:
        assert {f"snps.var[{a}]", f"snps.effect_var[{a}]", f"h2[{a}]"} <= names
    both = "[milk,fat]"
    assert {f"snps.cov{both}", f"snps.corr{both}", f"snps.effect_cov{both}", f"snps.effect_corr{both}"} <= names
    gebv = found.solutions.filter(effect="gebv")
    assert gebv.height == 2 * GENOTYPED and gebv["pev"].min() > 0
    kept = pl.read_parquet(tmp_path / "run" / "markers.parquet").filter("kept")
    assert kept["effect_fat"].is_not_null().all() and ("pip_fat" in kept.columns) == (prior != "rr")
    states = [f"state_{s}" for s in ("none", "milk", "fat", "milk+fat")]
    assert (states[0] in kept.columns) == (across in ("joint", "one_by_one") and prior != "rr")
    if states[0] in kept.columns:
        np.testing.assert_allclose(kept.select(pl.sum_horizontal(states)).to_series(), 1, rtol=1e-5)
        assert {"snps.pi[none]", "snps.pi[milk+fat]", "snps.in_class[fat]"} <= names
        if across == "joint":
            np.testing.assert_allclose(kept["pip_fat"], kept["state_fat"] + kept["state_milk+fat"], rtol=1e-4)
    if across == "shared":
        np.testing.assert_allclose(kept["pip_fat"], kept["pip_milk"])
        assert "snps.pi[milk+fat:1]" in names
    markers = json.loads((tmp_path / "run" / "run.json").read_text())["markers"]
    assert markers[0]["joint"]["traits"] == list(TWO) and "joint" not in markers[1]
    assert found.info["analysis"]["model"]["markers"]["snps"]["across_traits"] == across


@pytest.mark.parametrize(("prior", "across"), FORMS[1:3])
def test_a_run_in_pieces_is_a_run_in_one_go(two, tmp_path, prior, across):
    section = {"prior": prior, "across_traits": across}
    whole = run(two, tmp_path / "whole", TWO, section)
    run(two, tmp_path / "pieces", TWO, section, samples=11)
    config = analysis(two, tmp_path / "pieces", TWO, section, samples=11)
    pieces = mmgibbs.run(config, extend=19, progress=False)
    assert_same_draws(whole, pieces)
    for name in ("mean", "sd"):
        np.testing.assert_array_equal(whole.solutions[name].to_numpy(), pieces.solutions[name].to_numpy())


def test_the_default(two, tmp_path):
    across = lambda section, traits=TWO: mmgibbs.load_config(
        analysis(two, tmp_path / "run", traits, section)
    ).model.markers["snps"].across_traits  # fmt: skip
    assert across({"prior": "rr"}) == across({"prior": "bayes_c"}) == "joint"
    assert across({"prior": "bayes_r"}) == across({"prior": "horseshoe"}) == "independent"
    assert across({"prior": "rr"}, {"milk": {}}) == across({"traits": ["fat"]}) == "independent"
    five = {f"y{i}": {} for i in range(5)}  # with a state for every set of them where SNPs may lack an effect
    assert across({"prior": "rr"}, five) == "joint" and across({"prior": "bayes_c"}, five) == "independent"
    assert across({"prior": "bayes_c", "traits": ["y1", "y2", "y3", "y4"]}, five) == "joint"


def test_independent_traits_are_independent(two, tmp_path):
    found = run(two, tmp_path / "run", TWO, {"prior": "bayes_c", "across_traits": "independent"})
    names = set(found.summary["parameter"])
    assert {"snps.pi[milk:0]", "snps.pi[fat:1]"} <= names and "snps.corr[milk,fat]" not in names


def test_beside_liabilities_residual_classes_and_totals(two, tmp_path):
    traits = TWO | {"alive": {"type": "binary", "positive": "yes"}}
    found = run(two, tmp_path / "run", traits, {"prior": "bayes_c"}, variances={"residual": {"by": "barn"}})
    assert finite(found.summary)
    assert {"snps.corr[milk,alive]", "h2[alive|one]"} <= set(found.summary["parameter"])
    assert found.solutions.filter(effect="total").height == 3 * GENOTYPED


def test_some_traits_of_the_analysis_and_matrices(two, tmp_path):
    traits = {"milk": {}, "fat": {}, "alive": {"type": "binary", "positive": "yes"}}
    G = [[0.02, 0.1], [0.1, 2.0]]
    section = {"traits": ["alive", "fat"], "variance": {"start": G, "fixed": True}, "windows": {"snps": 10}}
    found = run(
        two, tmp_path / "run", traits, section, stop={"ess": 3, "parameters": ["snps.corr*"], "max_samples": 60}
    )
    posterior = found.draws["posterior"]
    assert np.all(posterior["snps.effect_cov[alive,fat]"].to_numpy() == 0.1)
    assert "snps.var[milk]" not in set(found.summary["parameter"])
    assert pl.read_parquet(tmp_path / "run" / "windows.parquet")["trait"].unique().sort().to_list() == ["alive", "fat"]


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"prior": "bayes_a", "across_traits": "joint"}, "joint cannot be combined with prior: bayes_a; needed rr or"),
        ({"prior": "rr", "across_traits": "shared"}, "shared cannot be combined with prior: rr; needed bayes_c or"),
        ({"traits": ["milk"], "across_traits": "joint"}, "found joint with one trait, milk; needed several"),
        ({"across_traits": "both"}, "across_traits: found 'both', needed"),
        (
            {"prior": "bayes_c", "pi": [0.5, 0.3, 0.2]},
            "found 3 shares, needed 2, one for each class, or 4, one for each",
        ),
        ({"variance": {"start": [[1.0, 2.0], [2.0, 1.0]]}}, "variance.start: found the correlation 2"),
        ({"variance": {"start": [[1.0]]}}, "variance.start: found the number 1, needed a 2 x 2 matrix"),
        ({"prior": "bayes_r", "variance": {"start": [[1, 0], [0, 1]]}}, "found a matrix, needed one number"),
    ],
)
def test_mistakes(two, tmp_path, section, said):
    with pytest.raises(MmgibbsError) as caught:
        run(two, tmp_path / "run", TWO, section)
    assert said in str(caught.value)


def test_too_many_traits_for_every_set_of_them(two, tmp_path):
    phenotypes, pedigree, genotypes = two
    traits = {f"y{i}": {} for i in range(7)}
    more = phenotypes.with_columns(**{name: pl.col("milk") for name in traits}), pedigree, genotypes
    for across, most in (("joint", 4), ("one_by_one", 6)):
        with pytest.raises(MmgibbsError, match=f"7 traits, which are 128 sets of traits; needed at most {most}"):
            run(more, tmp_path / "run", traits, {"prior": "bayes_c", "across_traits": across})
