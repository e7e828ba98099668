"""`sampler: {method: reml, engine: pcg}` from the analysis file to the run folder: what is written, what is refused."""

import json
import os
import signal

import numpy as np
import polars as pl
import pytest
from helpers.milk_records import ANALYSIS, records, starts
from helpers.small_analysis import replaced

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.errors import ConfigError, DeviceError
from mmgibbs.machine import memory
from mmgibbs.runs.sampled_reml import SampledRemlWatch


@pytest.fixture
def folder(tmp_path, monkeypatch):
    records().write_csv(tmp_path / "records.csv")
    by_samples = "{method: reml, engine: pcg, reml_samples: 20, threads: 1}"
    (tmp_path / "analysis.yaml").write_text(replaced(ANALYSIS, "{method: reml}", by_samples))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run(folder, capsys):
    assert main(["check", "analysis.yaml"]) == 0
    assert main(["run", "analysis.yaml", "--verbose"]) == 0
    said = capsys.readouterr().err
    assert "REML: 128 equations, by Monte Carlo with up to 20 samples" in said and "GB beside the equations" in said
    assert "REML: iteration 0, 8 samples, about" in said and "20 samples, about" in said
    assert "the likelihood itself, AIC and BIC are not computed by Monte Carlo" in said
    info = json.loads((folder / "run" / "run.json").read_text())
    assert (info["method"], info["engine"], info["samples"]) == ("reml", "pcg", 20)
    assert info["distance_to_maximum"] <= info["analysis"]["sampler"]["tolerance"] == 0.03
    assert "log_likelihood" not in info and "aic" not in info
    summary = pl.read_parquet(folder / "run" / "summary.parquet")
    assert summary["sd"].null_count() == 0 and summary["mcse"].null_count() == 0
    share = summary["mcse"] / summary["sd"] * np.sqrt(20)
    assert share.is_between(0.5, 1.7).all()
    page = (folder / "run" / "report.html").read_text()
    assert "REML by Monte Carlo: 20 samples" in page and "log likelihood" not in page
    assert "Monte Carlo standard error of the estimate" in page and ">Seed<" in page
    assert not (folder / "run" / "checkpoint").exists()


def test_solutions_and_their_errors_are_those_of_blup_at_the_estimates(folder):
    estimated = mmgibbs.run("analysis.yaml", progress=False)
    blup = ["sampler.method=blup", "sampler.engine=auto", "sampler.reml_samples=100", *starts(estimated)]
    solved = mmgibbs.run("analysis.yaml", blup, directory="blup", progress=False)
    for column in ("mean", "sd", "pev", "reliability"):
        one, other = (s.solutions[column].to_numpy() for s in (estimated, solved))
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
    settings = ["sampler.pev_limit=0", "sampler.pev_samples=40"]
    by_samples = mmgibbs.run("analysis.yaml", settings, directory="samples", progress=False)
    assert by_samples.solutions["pev_mcse"].drop_nulls().len() == 128
    assert by_samples.info["monte_carlo_pev"]["samples"] == 40


@pytest.mark.parametrize("iteration", [1, 4])
def test_a_run_that_is_continued_has_the_same_bits(folder, monkeypatch, iteration):
    assert main(["run", "analysis.yaml", "--quiet", "--output", "whole"]) == 0
    called = SampledRemlWatch.__call__

    def with_signal(self, number, point, distance, following):
        if number == iteration:
            os.kill(os.getpid(), signal.SIGTERM)
        return called(self, number, point, distance, following)

    with monkeypatch.context() as patch:
        patch.setattr(SampledRemlWatch, "__call__", with_signal)
        assert main(["run", "analysis.yaml", "--quiet"]) == 128 + signal.SIGTERM
    record = json.loads((folder / "run" / "run.json").read_text())
    assert record["unfinished"].startswith("REML was stopped by SIGTERM: estimates and solutions are those of the last")
    assert main(["run", "analysis.yaml", "--resume", "--set", "sampler.threads=2"]) == 0
    again, whole = (pl.read_parquet(folder / name / "summary.parquet") for name in ("run", "whole"))
    assert again.equals(whole)
    records = [json.loads((folder / name / "run.json").read_text()) for name in ("run", "whole")]
    assert records[0]["iterations"] == records[1]["iterations"] > iteration


def test_runs_without_a_likelihood_have_no_test_of_it(folder, capsys):
    assert main(["run", "analysis.yaml", "--quiet"]) == 0
    exact = ["sampler.engine=auto", "sampler.reml_samples=100"]
    assert main(["run", "analysis.yaml", "--quiet", "--output", "exact", *(f"--set={s}" for s in exact)]) == 0
    capsys.readouterr()
    assert main(["compare", "run", "exact"]) == 0
    said = "".join(capsys.readouterr())
    assert "no test: REML by Monte Carlo (sampler.engine: pcg) does not compute the likelihood" in said


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["traits.fat.type=ordinal"], "reml cannot be combined with traits.fat.type: ordinal"),
        (
            ["variances.cow.structure=compound_symmetry"],
            r"variances.cow.structure: compound_symmetry: its matrix is not estimated by Monte Carlo\n"
            "sampler.engine: found pcg with method: reml; needed engine: auto",
        ),
        (["sampler.engine=serial"], "sampler.engine: found serial, which cannot be combined with method: reml"),
        (["sampler.engine=auto"], "sampler.reml_samples: found 20, which is for method: reml with engine: pcg"),
        (
            ["sampler.engine=auto", "sampler.reml_samples=100", "sampler.pev_samples=40"],
            "sampler.pev_samples: found 40, which cannot be combined with method: reml, which computes every PEV",
        ),
        (["sampler.reml_samples=3"], "sampler.reml_samples"),
    ],
)
def test_what_it_cannot_do_is_refused(folder, settings, words):
    with pytest.raises(ConfigError, match=words):
        mmgibbs.check("analysis.yaml", settings)


def test_a_matrix_known_by_its_inverse_is_refused(folder):
    cows = [f"c{i}" for i in range(60)]
    pl.DataFrame({"a": cows, "b": cows, "value": [1.0] + [2.0] * 59}).write_csv(folder / "inverse.csv")
    with pytest.raises(ConfigError, match="model.random.cow.relationship: its matrix is known by its inverse alone"):
        mmgibbs.check("analysis.yaml", ["model.random.cow.relationship=inverse.csv"])


def test_correlations_that_are_estimated_are_refused(folder):
    records = pl.read_csv("records.csv").with_columns(day=pl.int_range(180) % 3)
    records.write_csv("records.csv")
    with pytest.raises(ConfigError, match="correlations of a relationship are not estimated by Monte Carlo"):
        mmgibbs.check("analysis.yaml", ["model.random.cow.relationship={kind: ar1, time: day}"])


def test_what_does_not_fit_into_memory_is_refused_before_it_is_allocated(folder, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 60_000)
    with pytest.raises(DeviceError, match="REML of 128 equations by 20 samples needs .*fewer sampler.reml_samples"):
        mmgibbs.run("analysis.yaml", progress=False)


def test_what_does_not_converge_says_so(folder):
    result = mmgibbs.run("analysis.yaml", ["sampler.max_iterations=1"], progress=False)
    (warning,) = (w for w in result.info["warnings"] if "converged" in w)
    assert warning.startswith("REML has not converged after 1 iteration: ")
    assert "sampler.max_iterations, now 1" in warning
