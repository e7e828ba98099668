"""Runs with relationships from genotypes: every model and engine, in pieces and in one go, what follows a run, and what
is refused, told or reported."""

import json

import numpy as np
import polars as pl
import pytest
from helpers.estimates import assert_same_draws
from helpers.genomic_cows import GENOTYPED, SNPS, N, analysis, genotyped_alone, run, tables

import mmgibbs
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.report.finished import read_finished
from mmgibbs.report.make import make_report
from mmgibbs.results.columns import meaning
from mmgibbs.results.genotyped import COMPONENTS, SAMPLE

__all__ = ["tables"]

KNOWN = {"genetic": 2.0, "residual": 1.0}


TWO = [[2.0, 0.3], [0.3, 1.0]]


def test_two_traits_on_several_threads(tables, tmp_path):
    options = {"traits": ("milk", "fat"), "variances": {"genetic": TWO, "residual": TWO}}
    one, two = (run(tables, tmp_path / f"{n}", engine="structured", threads=n, **options) for n in (1, 2))
    assert_same_draws(one, two)
    assert one.solutions["mean"].is_finite().all()


@pytest.mark.parametrize("engine", ["serial", "structured"])
def test_a_run_in_pieces_is_the_run_in_one_go(tables, tmp_path, engine):
    whole = run(tables, tmp_path / "whole", engine=engine)
    first = analysis(tables, tmp_path / "parts", engine=engine, samples=15)
    mmgibbs.run(first, progress=False)
    assert_same_draws(whole, mmgibbs.run(first, extend=15, progress=False))


@pytest.fixture(scope="module")
def whole(tables, tmp_path_factory):
    return run(tables, tmp_path_factory.mktemp("whole") / "run")


def test_animals_without_records_and_without_genotypes_have_solutions(tables, whole, tmp_path):
    assert set(whole.solutions.filter(term="genetic")["level"]) == {f"a{i}" for i in range(N)}
    blup = {"method": "blup", "variances": KNOWN}
    genomic = run(genotyped_alone(tables), tmp_path / "genomic", "genomic", **blup).solutions
    assert set(genomic.filter(term="genetic")["level"]) == {f"a{i}" for i in range(GENOTYPED)}
    reliability = genomic.filter(term="genetic")["reliability"]
    assert reliability.null_count() == 0 and reliability.is_between(-1e-9, 1).all()


def test_what_the_run_says(whole):
    found = whole.info["relationships"]["genetic"]
    assert (found["words"], found["symbol"], found["degrees_of_freedom"]) == ("single-step", "H", N)
    assert (found["genotyped"], found["snps"], found["blend"], found["with"]) == (GENOTYPED, SNPS, 0.05, "A22")
    assert found["tuned"]["to"] == "A22" and found["inverse_error"] < 1e-8 and found["condition"] > 1
    assert found["pedigree_means"]["diagonal"] > 0.9 and -1 <= found["correlation_off_diagonal"] <= 1
    assert found["diagonal"]["mean"] == pytest.approx(found["pedigree_means"]["diagonal"])
    assert read_finished(whole.directory).relationships["genetic"]["related"]


def test_a_core_says_that_the_condition_is_its_own(tables, tmp_path, monkeypatch):
    monkeypatch.setattr("mmgibbs.data.genomic_relationships.WEAK", 1.0)
    spec = {"kind": "single_step", "core": 20}
    found = json.loads((run(tables, tmp_path / "run", spec).directory / "run.json").read_text())
    assert found["relationships"]["genetic"]["core"]["condition_of"] == "core"
    (note,) = [n for n in found["warnings"] if "close to singular" in n]
    assert "relationships of the core are close" in note and "nan" not in note and "inverse" not in note
    whole = json.loads((run(tables, tmp_path / "whole").directory / "run.json").read_text())
    assert any("relationships are close to singular" in n and "error of their inverse" in n for n in whole["warnings"])


@pytest.mark.parametrize("method", ["gibbs", "blup"])
def test_animals_of_a_core_file_count_once(tables, tmp_path, method):
    core = tmp_path / "core.txt"
    kind = {"kind": "single_step", "core": {"file": str(core)}}
    once = [f"a{i}" for i in range(20)]

    def prepared(text):
        core.write_text(text)
        return prepare(mmgibbs.load_config(analysis(tables, tmp_path, kind, method=method, variances=KNOWN)))

    design = prepared("\n".join(once)).design
    assert design.terms[-1].relationship.facts["core"]["animals"] == 20
    assert not any("core.txt" in note for note in design.notes)
    again = prepared("\n".join([*once, " a3", "", "a3", "a5 ", ""]))
    assert again.design.terms[-1].relationship.facts["core"]["animals"] == 20
    (note,) = [note for note in again.design.notes if "core.txt" in note]
    assert note.startswith("core.txt: 3 lines repeat animals, such as 'a3'; each animal is in the core once")
    (note,) = [note for note in prepared("a1\na2\na1").design.notes if "core.txt" in note]
    assert note.startswith("core.txt: 1 line repeats an animal, such as 'a1'")


def test_a_core_file_that_cannot_be_used(tables, tmp_path):
    core = tmp_path / "core.txt"
    asked = analysis(tables, tmp_path, {"kind": "single_step", "core": {"file": str(core)}})
    place = r"\(model.random.genetic.relationship.core.file\)"
    for content, message in [
        (None, rf"core.txt: cannot be read: No such file .*; needed the id of an animal on each line {place}"),
        (b"a1\n\xff\xfe\n", "core.txt: cannot be read: not UTF-8 text; needed the id of an animal on each line"),
        (b" \n\n", rf"core.txt: found no animals; needed the id of one on each line {place}"),
        (b"a1\nnobody\n", "core.txt: found 1 animal without genotypes, such as 'nobody'; needed genotyped animals"),
    ]:
        if content is not None:
            core.write_bytes(content)
        with pytest.raises(DataError, match=message):
            prepare(mmgibbs.load_config(asked))


def test_pictures_of_the_genotyped(tables, whole, tmp_path):
    folder = whole.directory
    components, sample = (pl.read_parquet(folder / name) for name in (COMPONENTS, SAMPLE))
    assert components.height == GENOTYPED and 0 < components["share_1"][0] < 1
    assert sample.height == GENOTYPED**2 and sample["pedigree"].null_count() == 0
    for name, table in ((COMPONENTS, components), (SAMPLE, sample)):
        assert all(meaning(name, column) for column in table.columns)
    page = make_report([folder]).read_text(encoding="utf-8")
    part = page[page.index('id="genotyped"') :]
    for heading in ("Principal components", "Genomic relationships", "Pedigree relationships"):
        assert f"<h4>{heading}</h4>" in part
    assert "what was computed from the genotypes" in part and "5\u00a0% of A22" in part
    alone = run(tables, tmp_path / "pedigree", "pedigree").directory
    assert not (alone / SAMPLE).exists() and 'id="genotyped"' not in make_report([alone]).read_text(encoding="utf-8")


def test_dominance_beside_additive_relationships(tables, tmp_path):
    made = analysis(genotyped_alone(tables), tmp_path / "run", "genomic")
    made["model"]["random"]["dominance"] = {"level": "animal", "relationship": {"kind": "dominance", "blend": 0.3}}
    parameters = mmgibbs.run(made, progress=False).summary["parameter"].to_list()
    assert {"genetic.var[milk]", "dominance.var[milk]"} <= set(parameters)


def test_storage_in_single_precision(tables, tmp_path):
    """Half the bytes; the same solutions to a millionth of a posterior standard deviation."""
    specs = [{"kind": "single_step", "storage": storage} for storage in ("double", "single")]
    options = {"variances": KNOWN, "method": "blup", "tolerance": 1e-12}
    double, single = (run(tables, tmp_path / s["storage"], s, **options).solutions for s in specs)
    u = [f.filter(pl.col("term") == "genetic") for f in (double, single)]
    assert np.abs((u[0]["mean"] - u[1]["mean"]) / u[0]["sd"]).max() < 1e-5


def test_estimates_by_reml(tables, tmp_path):
    found = run(tables, tmp_path / "run", method="reml")
    assert found.summary["mean"].is_finite().all()


# What is refused


def test_records_of_animals_without_genotypes(tables, tmp_path):
    with pytest.raises(DataError, match=r"records are of animals without genotypes, such as a60.*kind: single_step"):
        run(tables, tmp_path / "run", "genomic")


def test_genotyped_animals_outside_the_pedigree(tables, tmp_path):
    phenotypes, pedigree, genotypes = tables
    few = pedigree.filter(~pl.col("id").is_in(["a58", "a59"])), genotypes
    records = phenotypes.filter(~pl.col("animal").is_in(["a58", "a59"]))
    with pytest.raises(DataError, match="2 genotyped animals are not in the pedigree, such as a58, a59"):
        run((records, *few), tmp_path / "run")
    found = run((records, *few), tmp_path / "run", {"kind": "single_step", "outside_pedigree": "drop"})
    notes = json.loads((found.directory / "run.json").read_text())["notes"]
    assert any("such as a58, a59; left out of model.random.genetic" in note for note in notes)


def test_identical_animals_are_named(tables, tmp_path):
    path = tables[2]
    table = pl.read_csv(path)
    twin = table[21:22].with_columns(animal=pl.lit("a41"))
    pl.concat([table.filter(pl.col("animal") != "a41"), twin]).write_csv(tmp_path / "twins.csv")
    own = (*genotyped_alone(tables)[:2], tmp_path / "twins.csv")
    with pytest.raises(DataError, match="these animals have the same genotypes: a21 and a41"):
        run(own, tmp_path / "run", {"kind": "genomic", "blend": 0, "frequencies": "half"})


def test_an_engine_without_a_sweep_of_dense_blocks(tables, tmp_path):
    with pytest.raises(ConfigError, match="cannot be combined with single-step relationships"):
        run(tables, tmp_path / "run", engine="hybrid")


def test_omega_that_takes_too_much(tables, tmp_path):
    with pytest.raises(DataError, match="not positive definite.*needed a smaller omega"):
        run(tables, tmp_path / "run", {"kind": "single_step", "omega": 40})


def test_what_needs_tables_that_are_not_there(tables, tmp_path):
    for spec, drop, message in [
        ("single_step", "genotypes", "found single_step, but the analysis has no genotypes"),
        ("single_step", "pedigree", "found single_step, but the analysis has no pedigree: needed data.pedigree"),
        ({"kind": "genomic", "with": "A22"}, "pedigree", "found A22, which is computed from the pedigree"),
        ({"kind": "genomic", "frequencies": "base"}, "pedigree", "found base, which is computed from the pedigree"),
    ]:
        made = analysis(tables, tmp_path / "run", spec)
        del made["data"][drop]
        with pytest.raises(ConfigError, match=message):
            mmgibbs.check(made)
