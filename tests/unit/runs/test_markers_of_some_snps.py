"""Terms that have some of the SNPs each: their tables, predictions, and the same draws as from a file with these."""

import json

import numpy as np
import polars as pl
import pytest
from helpers.estimates import assert_same_draws
from helpers.marker_runs import GENOTYPED, SNPS, analysis, finite, tables

import mmgibbs
from mmgibbs.errors import MmgibbsError
from mmgibbs.runs.predict import predict

__all__ = ["tables"]
FIRST = 25  # SNPs of chromosome 1


@pytest.fixture(scope="module")
def mapped(tables, tmp_path_factory):
    path = tmp_path_factory.mktemp("map") / "map.csv"
    chromosome = ["1"] * FIRST + ["2"] * (SNPS - FIRST)
    pl.DataFrame({"snp": [f"s{j}" for j in range(SNPS)], "chr": chromosome, "pos": range(SNPS)}).write_csv(path)
    return path


def run(tables, mapped, path, markers, genotypes=None, traits=None):
    config = analysis(tables, path, traits)
    config["data"]["genotypes"] = {"file": str(genotypes or tables[2]), "map": str(mapped), "quality": {"maf": 0}}
    keep = lambda own: {} if "single_step" in own else {"without_genotypes": "keep"}
    config["model"]["markers"] = {name: keep(own) | own for name, own in markers.items()}
    config["output"]["save_marker_draws"] = 1000
    return mmgibbs.run(config, overwrite=True, progress=False)


def test_one_term_a_chromosome(tables, mapped, tmp_path):
    terms = {"first": {"snps": {"chromosomes": 1}, "prior": "bayes_c", "windows": True}, "others": {"snps": "rest"}}
    found = run(tables, mapped, tmp_path / "run", terms)
    assert finite(found.summary) and {"first.var[milk]", "others.effect_var[milk]"} <= set(found.summary["parameter"])
    table = pl.read_parquet(tmp_path / "run" / "markers.parquet")
    for name, chromosome in (("first", "1"), ("others", "2")):
        assert table.filter(pl.col(f"effect_{name}_milk").is_not_null())["chromosome"].unique().to_list() == [
            chromosome
        ]
    assert table["pip_first_milk"].count() == FIRST
    windows = pl.read_parquet(tmp_path / "run" / "windows.parquet")
    assert windows["chromosome"].unique().to_list() == ["1"] and windows["snps"].sum() == FIRST
    chromosomes = pl.read_csv(tmp_path / "run" / "chromosomes.csv")
    assert dict(chromosomes.select("term", "snps").rows()) == {"first": FIRST, "others": SNPS - FIRST}
    notes = json.loads((tmp_path / "run" / "run.json").read_text())["notes"]
    assert f"model.markers.first: {FIRST} of {SNPS} SNPs" in notes
    predicted = predict(tmp_path / "run", tables[2]).values
    own = found.solutions.filter(effect="gebv")
    for name in terms:
        both = own.filter(term=name).join(predicted.filter(term=name), on="level")
        np.testing.assert_allclose(both["mean"], both["mean_right"], atol=1e-6)
        np.testing.assert_allclose(both["sd"], both["sd_right"], rtol=1e-4)
        np.testing.assert_allclose(both["reliability"], both["reliability_right"], atol=1e-3)
    assert found.solutions.filter(effect="total").height == GENOTYPED


def test_the_draws_are_those_of_a_file_with_these_snps(tables, mapped, tmp_path):
    few = tmp_path / "few.csv"
    pl.read_csv(tables[2]).select("animal", *(f"s{j}" for j in range(FIRST))).write_csv(few)
    some = run(tables, mapped, tmp_path / "some", {"snps": {"snps": {"chromosomes": 1}}})
    alone = run(tables, mapped, tmp_path / "alone", {"snps": {}}, few)
    assert_same_draws(some, alone)


def test_several_traits_and_what_is_in_two_terms(tables, mapped, tmp_path):
    traits = {"milk": {}, "alive": {"type": "binary", "positive": "yes"}}
    terms = {"all": {}, "second": {"snps": {"chromosomes": [2]}, "prior": "bayes_c"}}
    found = run(tables, mapped, tmp_path / "run", terms, traits=traits)
    assert {"all.corr[milk,alive]", "second.pi[none]"} <= set(found.summary["parameter"])
    notes = " ".join(json.loads((tmp_path / "run" / "run.json").read_text())["notes"])
    assert f"{SNPS - FIRST} SNPs, such as s25, s26, s27, s28, s29, are in several of the terms all, second" in notes


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        (
            {"a": {"snps": "rest"}, "b": {"snps": "rest"}},
            "model.markers.b.snps: found rest, as in a; needed one such term",
        ),
        ({"a": {"snps": "rest"}, "b": {}}, "model.markers.a.snps: found rest beside a term with every SNP"),
        ({"a": {"snps": {"chromosomes": 1}, "single_step": "epsilon"}}, "a.snps: cannot be combined with single_step"),
        ({"a": {"snps": {"group": "coding"}}}, "model.markers.a.snps.file: missing"),
        ({"a": {"snps": {"file": "g.csv", "chromosomes": [1]}}}, "needed one of chromosomes: [...], file: PATH"),
        (
            {"a": {"snps": {"chromosome": [1]}}},
            "model.markers.a.snps.chromosome: unknown key; did you mean 'chromosomes'",
        ),
    ],
)
def test_mistakes(tables, mapped, tmp_path, terms, said):
    with pytest.raises(MmgibbsError) as caught:
        run(tables, mapped, tmp_path / "run", terms)
    assert said in str(caught.value)
