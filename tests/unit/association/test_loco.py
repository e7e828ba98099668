"""Tests of SNPs with relationships without their chromosome, against dense matrices; scans that are interrupted."""

import os
import signal

import numpy as np
import polars as pl
import pytest
from helpers.selection import first
from polars.testing import assert_frame_equal

import mmgibbs
import mmgibbs.association.chunks as chunks
from mmgibbs.association.chunks import FOLDER, plan_chunks
from mmgibbs.association.scan import Genotypes
from mmgibbs.cli import main
from mmgibbs.errors import ConfigError, Stopped

BLEND = 0.1
GENOMIC = {"kind": "genomic", "blend": BLEND}
HIDDEN = {"quality": {"maf": 0.0}, "progress": False}


@pytest.fixture(scope="module")
def tested(herd, run):
    return mmgibbs.gwas(run.directory, output=herd.folder / "whole", loco=True, **HIDDEN)


@pytest.fixture(scope="module")
def dense_tests(herd, dense_projection):
    """(effect, standard error) of each SNP by the blended G of the SNPs on other chromosomes."""
    genotypes = herd.genotypes[herd.old]
    chromosome = pl.read_csv(herd.folder / "map.csv")["chromosome"].to_numpy()
    effect, error = np.empty(len(chromosome)), np.empty(len(chromosome))
    for c in np.unique(chromosome):
        M = genotypes[:, chromosome != c] - 1.0
        Z, P, y = dense_projection((1 - BLEND) * M @ M.T / (M.shape[1] / 2) + BLEND * np.eye(len(M)))
        x = Z @ (genotypes[:, chromosome == c] - genotypes[:, chromosome == c].mean(axis=0))
        information = np.einsum("nj,nj->j", x, P @ x)
        effect[chromosome == c], error[chromosome == c] = x.T @ P @ y / information, information**-0.5
    return effect, error


def test_against_dense_matrices(tested, dense_tests):
    effect, error = dense_tests
    np.testing.assert_allclose(tested.values["effect_gain"], effect, atol=1e-8)
    np.testing.assert_allclose(tested.values["se_gain"], error, rtol=1e-8)
    assert any("without the SNPs of the chromosome that is tested" in note for note in tested.notes)


def test_single_step_with_the_second_method_of_vanraden(herd, dense_tests):
    """All animals with records are genotyped: without tuning H among them is the blended G."""
    relationship = {"kind": "single_step", "method": "vanraden2", "blend": BLEND, "with": "I", "tune": "none"}
    directory = herd.run("single_step", relationship).directory
    effect, error = dense_tests
    found = mmgibbs.gwas(directory, loco=True, **HIDDEN).values
    np.testing.assert_allclose(found["effect_gain"], effect, atol=1e-8)
    np.testing.assert_allclose(found["se_gain"], error, rtol=1e-8)


def test_effects_are_larger_than_with_the_snps_in_the_relationships(run, tested):
    """Relationships that hold a SNP take a part of what it explains (Yang et al. 2014)."""
    with_them = mmgibbs.gwas(run.directory, **HIDDEN)
    assert tested.facts["lambda"]["gain"] > with_them.facts["lambda"]["gain"]
    assert any("--loco" in note or "loco" in note for note in with_them.notes)


def test_refusals(herd, run, tmp_path):
    with pytest.raises(ConfigError, match="makes genomic relationships without the SNPs of a chromosome; .* has none"):
        mmgibbs.gwas(herd.run("polygenic", "pedigree").directory, herd.folder / "old.csv", loco=True, progress=False)
    analysis = herd.analysis(GENOMIC)
    del analysis["data"]["genotypes"]["map"]
    without = mmgibbs.run(analysis, directory=tmp_path / "without", progress=False)
    with pytest.raises(ConfigError, match="have no chromosomes; needed a run with a map"):
        mmgibbs.gwas(without.directory, loco=True, progress=False)
    with pytest.raises(ConfigError, match="has no chromosomes; needed a map of it"):
        mmgibbs.gwas(run.directory, herd.folder / "old.csv", loco=True, progress=False)
    flat = herd.write_genotypes("flat.csv", herd.old, values=np.ones_like(herd.genotypes))
    with pytest.raises(mmgibbs.MmgibbsError, match="no SNP can be tested"):
        mmgibbs.gwas(run.directory, flat, tmp_path / "scan", progress=False)
    assert not (tmp_path / "scan").exists()


def test_chunks_have_every_snp_once(monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_SNPS", 2)
    chromosome = pl.Series(["10", "2", None, "2", "10", "2", None])
    planned = plan_chunks(chromosome, True)
    assert [(c.model, c.snps.tolist()) for c in planned] == [("2", [1, 3]), ("2", [5]), ("10", [0, 4]), ("", [2, 6])]
    assert np.concatenate([c.snps for c in plan_chunks(chromosome, False)]).tolist() == list(range(7))


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_SNPS", 7)


def interrupt(monkeypatch, after):
    """SIGINT comes when so many chunks have been written."""
    write, count = chunks._write_whole, []

    def write_and_interrupt(path, content):
        write(path, content)
        count.append(path)
        if len(count) == after + 1:  # and the description of the scan
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(chunks, "_write_whole", write_and_interrupt)


@pytest.mark.parametrize("exact_limit", first(1, [0.0, 600.0]))
def test_a_scan_continues_to_the_same_bits(run, tmp_path, monkeypatch, small_chunks, exact_limit):
    monkeypatch.setattr("mmgibbs.association.run.CALIBRATION_SNPS", 20)
    monkeypatch.setattr("mmgibbs.association.scan.CALIBRATION_SNPS", 20)
    how = HIDDEN | {"loco": True, "exact_limit": exact_limit}
    whole = mmgibbs.gwas(run.directory, output=tmp_path / "whole", **how)
    output = tmp_path / "scan"
    with monkeypatch.context() as patched:
        interrupt(patched, 5)
        with pytest.raises(Stopped):
            mmgibbs.gwas(run.directory, output=output, **how)
    assert [path.name for path in output.iterdir()] == [FOLDER]
    assert len(list((output / FOLDER).iterdir())) == 6 and not list((output / FOLDER).glob(".*"))
    with pytest.raises(ConfigError, match="holds a scan that is not finished"):
        mmgibbs.gwas(run.directory, output=output, **how)
    with pytest.raises(ConfigError, match=r"holds another scan:\nmaf: was 0.0, now 0.2"):
        mmgibbs.gwas(run.directory, output=output, resume=True, **(how | {"quality": {"maf": 0.2}}))
    continued = mmgibbs.gwas(run.directory, output=output, resume=True, **how)
    assert_frame_equal(continued.values, whole.values, check_exact=True)
    assert continued.facts["effective_tests"] == whole.facts["effective_tests"]
    assert continued.facts.get("calibration") == whole.facts.get("calibration")
    assert not (output / FOLDER).exists() and (output / "markers.parquet").exists()
    with pytest.raises(ConfigError, match="holds no scan that was interrupted"):
        mmgibbs.gwas(run.directory, output=output, resume=True, **how)


def test_a_scan_that_is_not_written_stops_too(run, monkeypatch, small_chunks):
    read, count = Genotypes.read, []

    def read_and_interrupt(self, number):
        count.append(number)
        if len(count) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return read(self, number)

    monkeypatch.setattr(Genotypes, "read", read_and_interrupt)
    with pytest.raises(Stopped, match="^stopped$"):
        mmgibbs.gwas(run.directory, **HIDDEN)
    assert len(count) == 3


def test_chromosomes_that_the_run_lacks_are_named(herd, run, tmp_path):
    places = pl.read_csv(herd.folder / "map.csv").with_columns(pl.col("chromosome").cast(pl.String))
    places.with_columns(pl.col("chromosome").replace({"5": "X"})).write_csv(tmp_path / "other.csv")
    genotypes = {"file": herd.folder / "old.csv", "map": tmp_path / "other.csv"}
    tested = mmgibbs.gwas(run.directory, genotypes, loco=True, **HIDDEN)
    assert any("warning: chromosome X of old.csv is none of the run" in note for note in tested.notes)


def test_another_run_is_not_continued(herd, run, tmp_path, monkeypatch, small_chunks):
    output = tmp_path / "scan"
    with monkeypatch.context() as patched:
        interrupt(patched, 1)
        with pytest.raises(Stopped):
            mmgibbs.gwas(run.directory, output=output, **HIDDEN)
    other = herd.run("other", {"kind": "genomic", "blend": 0.3})
    with pytest.raises(ConfigError, match="holds another scan:\nrun: was"):
        mmgibbs.gwas(other.directory, output=output, resume=True, **HIDDEN)
    assert mmgibbs.gwas(other.directory, output=output, overwrite=True, **HIDDEN).directory == output.resolve()


def test_the_command_says_how_to_continue(run, tmp_path, monkeypatch, small_chunks, capsys):
    arguments = ["gwas", str(run.directory), "--output", str(tmp_path / "scan"), "--no-report", "--loco"]
    with monkeypatch.context() as patched:
        interrupt(patched, 1)
        assert main(arguments) == 130
    assert "--resume" in capsys.readouterr().err
    assert main([*arguments, "--resume"]) in (0, None)


def test_limits_of_snps_are_those_of_the_run(herd):
    """Where its genotypes are tested; a file that is named has the usual ones."""
    analysis = herd.analysis(GENOMIC)
    analysis["data"]["genotypes"]["quality"] = {"maf": 0.2, "call_rate": 0.5, "parent_progeny": "ignore"}
    run = mmgibbs.run(analysis, directory=herd.folder / "strict", progress=False).directory
    named = {"genotypes": {"file": herd.folder / "old.csv", "map": herd.folder / "map.csv"}}
    for given, limits in (({}, (0.2, 0.5)), ({"quality": {"maf": 0.05}}, (0.05, 0.5)), (named, (0.01, 0.9))):
        facts = mmgibbs.gwas(run, progress=False, **given).facts
        assert (facts["maf"], facts["call_rate"]) == limits
