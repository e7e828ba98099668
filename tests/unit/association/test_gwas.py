"""`mmgibbs gwas`: tests of SNPs from finished runs, against the SNP as a covariate of the analysis itself."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from helpers.support import ROOT
from polars.testing import assert_frame_equal

import mmgibbs
from mmgibbs.association.scan import Scan, count_effective_tests
from mmgibbs.association.statistics import effective_number, empty_tests, false_discovery_rates
from mmgibbs.association.tables import collect_notes
from mmgibbs.cli import main
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.report.finished import read_finished
from mmgibbs.runs.model_of_run import read_model_of_run, refuse_other_runs

SAMPLE = ROOT / "data_samples" / "genomic"
CHOSEN = ["snp0890", "snp1146", "snp0001"]


def analysis(folder, **changes):
    data = {"phenotypes": str(folder / "phenotypes.csv"), "pedigree": str(folder / "pedigree.csv")}
    model = {"fixed": {"sex": {}}, "random": {"genetic": {"level": "animal", "relationship": "pedigree"}}}
    return {"data": data, "traits": {"birth_weight": {}}, "model": model, "sampler": {"method": "reml"}} | changes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gwas")
    for path in SAMPLE.iterdir():
        shutil.copy(path, folder)
    mmgibbs.run(analysis(folder), directory=folder / "run", progress=False)
    return folder


@pytest.fixture(scope="module")
def tested(folder):
    return mmgibbs.gwas(folder / "run", folder / "genotypes.bed", progress=False)


def copies(folder, snps):
    """Copies of the counted allele of some SNPs, by animal."""
    from mmgibbs.config.genotypes import Genotypes
    from mmgibbs.data.genotypes.file_format import open_genotypes
    from mmgibbs.genotypes.store import dosages

    file = open_genotypes(Genotypes(file=folder / "genotypes.bed").completed())
    at = [file.snps["snp"].to_list().index(snp) for snp in snps]
    columns = {snp: dosages(file.source.block(j, j + 1))[0].astype(float) for snp, j in zip(snps, at, strict=True)}
    return pl.DataFrame({"animal": file.ids} | columns).with_columns(pl.col(snps).fill_nan(None))


def test_tests_are_those_of_the_snp_as_a_covariate(folder, tested, tmp_path):
    """The SNP in the analysis, at the variances of the run, has the same effect and standard error."""
    summary = dict(pl.read_parquet(folder / "run" / "summary.parquet").select("parameter", "mean").iter_rows())
    starts = {name: {"start": summary[f"{name}.var[birth_weight]"]} for name in ("genetic", "residual")}
    variances = {"mode": "fixed"} | starts
    records = pl.read_csv(folder / "phenotypes.csv").with_columns(pl.col("animal").cast(pl.String))
    records = records.join(copies(folder, CHOSEN), on="animal", how="left", maintain_order="left")
    means = records.filter(pl.col("birth_weight").is_not_null()).select(pl.col(CHOSEN).mean())
    records = records.with_columns(pl.col(snp).fill_null(means[snp][0]) for snp in CHOSEN)
    records.write_csv(tmp_path / "records.csv")
    rows = tested.values.filter(pl.col("snp").is_in(CHOSEN))
    for snp in CHOSEN:
        given = analysis(folder, variances=variances, sampler={"method": "blup"})
        given["data"] |= {"phenotypes": str(tmp_path / "records.csv")}
        given["model"] = given["model"] | {"fixed": {"sex": {}, snp: {"kind": "covariate"}}}
        solutions = mmgibbs.run(given, directory=tmp_path / snp, progress=False).solutions
        b, sd = solutions.filter(term=snp).select("mean", "sd").row(0)
        effect, error = rows.filter(snp=snp).select("effect_birth_weight", "se_birth_weight").row(0)
        np.testing.assert_allclose((effect, error), (b, sd), rtol=1e-6)


def test_command_writes_tables_and_a_page(folder, tested, capsys, monkeypatch):
    monkeypatch.setattr("mmgibbs.association.run.SECONDS_BETWEEN_LINES", 0.0)
    words = ["gwas", str(folder / "run"), str(folder / "genotypes.bed")]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert "beyond the threshold" in out and "exact tests" in err
    assert re.search(r"(\d[\d,]*) of \1 SNPs", err)  # what is done, of a test that takes long
    written = folder / "run-gwas"
    names = {"markers.parquet", "markers.csv", "regions.parquet", "regions.csv", "gwas.json", "gwas.html"}
    assert {path.name for path in written.iterdir()} == names
    assert_frame_equal(pl.read_parquet(written / "markers.parquet"), tested.values)
    facts = json.loads((written / "gwas.json").read_text())
    assert facts["tested"] == tested.facts["tested"] and facts["threshold_log10_p"] > 3
    page = (written / "gwas.html").read_text(encoding="utf-8")
    assert "Tests along the genome" in page and "Against chance" in page and "snp0890" in page
    assert main(words) == 2 and "--overwrite" in capsys.readouterr().err
    assert main([*words, "--overwrite", "--exact-limit", "0", "--quiet"]) == 0
    assert json.loads((written / "gwas.json").read_text())["calibration"]["snps"] == 100


def test_two_traits_have_a_joint_test(folder, tmp_path):
    rng = np.random.default_rng(1)
    records = pl.read_csv(folder / "phenotypes.csv")
    records = records.with_columns(second=0.5 * pl.col("birth_weight") + pl.Series(rng.normal(size=len(records))))
    records.write_csv(tmp_path / "records.csv")
    given = analysis(folder, traits={"birth_weight": {}, "second": {}})
    given["data"] |= {"phenotypes": str(tmp_path / "records.csv")}
    mmgibbs.run(given, directory=tmp_path / "run", progress=False)
    values = mmgibbs.gwas(tmp_path / "run", folder / "genotypes.bed", progress=False).values
    joint = values.select("log10_p_joint", "log10_p_birth_weight", "log10_p_second").drop_nulls()
    assert {"chi2_joint", "q_joint", "effect_second"} <= set(values.columns)
    assert joint["log10_p_joint"].max() > 5
    # two standardised effects with correlation r: chi2 of both is at least the larger square
    assert (values["chi2_joint"] + 1e-9 >= (values["effect_second"] / values["se_second"]) ** 2).drop_nulls().all()


def test_runs_that_cannot_be_used(folder, tmp_path):
    for given, message in (
        ({"run": tmp_path / "nothing"}, "gwas: '.*' is not the folder of a finished run"),
        ({"genotypes": None}, "is a run without genotypes; needed a file of them"),
        ({"level": "sex"}, "level=.sex.: expected the level of a random effect of the run .animal."),
        ({"quality": {"maf": 2}}, "quality.maf: found 2, needed a number"),
        ({"quality": {"conflicts": 2}}, "quality.conflicts: found 2"),
        ({"quality": {"conflicts": 0.1}}, "quality.conflicts: expected maf or call_rate"),
        ({"exact_limit": -1}, "exact_limit: expected a number of 0 or more, got -1"),
        ({"quality": {"maf": 0.5}}, "no SNP can be tested"),
        ({"quality": {"maf": 0.5}, "exact_limit": 0}, "no SNP can be tested; 1,500 left out .minor allele frequency."),
    ):
        with pytest.raises((ConfigError, DataError), match=message):
            mmgibbs.gwas(**{"run": folder / "run", "genotypes": folder / "genotypes.bed", "progress": False} | given)


def test_runs_of_other_models_are_refused(folder):
    finished = read_finished(folder / "run")
    record = finished.record["analysis"]

    def refused(**changes):
        with pytest.raises(ConfigError) as raised:
            refuse_other_runs(replace(finished, record=finished.record | {"analysis": record | changes}))
        return str(raised.value)

    binary = refused(traits={"heavy": {"type": "binary"}})
    assert "trait heavy is binary" in binary and "bayes_c" in binary
    assert "has SNP effects of its own (model.markers)" in refused(model=record["model"] | {"markers": {"snps": {}}})
    assert "is not a mixed model with random effects" in refused(model=record["model"] | {"random": {}})
    assert "was given its records from Python" in refused(data=record["data"] | {"phenotypes": "a data frame"})


def test_data_that_have_changed_or_are_gone_are_refused(folder, tmp_path):
    for path in SAMPLE.iterdir():
        shutil.copy(path, tmp_path)
    mmgibbs.run(analysis(tmp_path), directory=tmp_path / "run", progress=False)
    (tmp_path / "pedigree.csv").rename(tmp_path / "gone.csv")
    with pytest.raises((DataError, ConfigError), match="pedigree"):
        mmgibbs.gwas(tmp_path / "run", folder / "genotypes.bed", progress=False)
    (tmp_path / "gone.csv").rename(tmp_path / "pedigree.csv")
    with (tmp_path / "phenotypes.csv").open("a") as file:
        file.write("\n")
    with pytest.raises(DataError, match="gwas: the file of data.phenotypes is not the one that"):
        mmgibbs.gwas(tmp_path / "run", folder / "genotypes.bed", progress=False)


def with_other_ids(folder, target, change):
    """The .bed with other ids in its .fam."""
    for ending in ("bed", "bim"):
        shutil.copy(folder / f"genotypes.{ending}", target)
    lines = [line.split() for line in (folder / "genotypes.fam").read_text().splitlines()]
    change(lines)
    (target / "genotypes.fam").write_text("".join(" ".join(c) + "\n" for c in lines))
    return target / "genotypes.bed"


def test_ids_that_do_not_match_are_named(folder, tmp_path):
    def rename_all(lines):
        for line in lines:
            line[1] = f"x{line[1]}"

    with pytest.raises(DataError, match="none of the .* genotyped animals has a record; are ids written in the"):
        mmgibbs.gwas(folder / "run", with_other_ids(folder, tmp_path, rename_all), progress=False)


def test_ids_in_another_spelling_are_said(folder, tmp_path):
    recorded = pl.read_csv(folder / "phenotypes.csv")["animal"].cast(pl.String).to_list()

    def respell_one(lines):
        line = next(c for c in lines if c[1] in recorded)
        line[1] = line[1].replace("-", " -") if "-" not in line[1] else f"0{line[1]}"

    notes = mmgibbs.gwas(folder / "run", with_other_ids(folder, tmp_path, respell_one), progress=False).notes
    assert not any("shape:" in note for note in notes) and any("records and no genotypes" in note for note in notes)


def test_multiple_testing():
    p = np.array([0.01, 0.04, 0.03, np.nan, 0.5])
    np.testing.assert_allclose(false_discovery_rates(p), [0.04, 0.16 / 3, 0.16 / 3, np.nan, 0.5])
    x = np.random.default_rng(1).normal(size=(20, 5000))
    assert effective_number(np.repeat(x[:1], 4, axis=0)) == pytest.approx(1.0)
    assert 17 < effective_number(x) <= 20 + 1e-9  # rounding
    assert effective_number(np.concatenate([x, x])) < 32  # of 40, 20 of them twice
    x = np.random.default_rng(3).binomial(2, 0.4, (40, 256)).astype(float)
    assert count_effective_tests(x) > 0.8 * 256
    linked = np.repeat(x[:, :64], 4, axis=1)
    assert count_effective_tests(linked) < 0.3 * 256


def test_what_makes_tests_doubtful_is_a_warning(folder):
    model = read_model_of_run(folder / "run", lambda text: None)
    p = 3
    tests = empty_tests(p, 1, 0)
    found = Scan(tests, np.ones(p), np.ones(p), np.array(["", "", "call rate"], object), np.ones(p, bool), 3.0)
    facts = {"lambda": {"birth_weight": 1.3}, "exact": 3}
    notes = collect_notes(found, model, facts)
    assert notes[0] == "1 left out (call rate)" and any("lambda of birth_weight is 1.30, above 1" in n for n in notes)
    assert not any("has not converged" in n for n in notes)
    assert len(collect_notes(found, model, facts | {"lambda": {"birth_weight": 1.1}})) == 1
    with_loco = collect_notes(found, model, facts | {"loco": True})
    assert any("no fault of the tests, and p values must not be divided by it" in note for note in with_loco)
    assert not any("warning: lambda" in note for note in with_loco)
    small = collect_notes(found, model, facts | {"lambda": {"birth_weight": 0.7}})
    assert any("lambda of birth_weight is 0.70, below 1: tests are conservative, as with" in n for n in small)
    stopped = replace(model, record=model.record | {"converged": False})
    assert any(n.startswith("warning: REML of the run has not converged") for n in collect_notes(found, stopped, facts))
