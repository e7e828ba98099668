"""Long steps are said before they begin, and what is found by then is kept: BLUP before its PEV, REML at a signal."""

import json
import os
import signal

import numpy as np
import polars as pl
import pytest
from helpers.small_analysis import ANALYSIS, command, contents, replaced, write_files

from mmgibbs.cli import main
from mmgibbs.errors import ModelError, Stopped
from mmgibbs.machine import speed
from mmgibbs.runs import mixed_model
from mmgibbs.runs.reml import RemlWatch

REML = """\
data: {phenotypes: data/phenotypes.csv, pedigree: data/pedigree.csv}
traits: [weaning_weight]
model:
  fixed: {contemporary_group: {}, sex: {}}
  random: {genetic: {level: animal, relationship: pedigree}}
sampler: {method: reml}
output: {directory: run}
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "analysis"


@pytest.fixture
def early(monkeypatch):
    monkeypatch.setattr(mixed_model, "EARLY_FROM_EQUATIONS", 0)


@pytest.fixture(scope="module")
def herd(tmp_path_factory):
    folder = tmp_path_factory.mktemp("herd")
    assert main(["simulate", str(folder / "data"), "--animals", "600", "--seed", "3"]) == 0
    (folder / "analysis.yaml").write_text(REML)
    return folder


# ------------------------------------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (4.9, ""),
        (np.nan, ""),
        (6, ", about 10 s"),
        (80, ", about 80 s"),
        (200, ", about 3 min"),
        (7200, ", about 2.0 h"),
    ],
)
def test_about(seconds, said):
    assert speed.describe_duration(seconds) == said


def test_operations_take_time_in_proportion():
    once = speed.estimate_seconds(1e12)
    assert once > 0 and speed.estimate_seconds(2e12) == pytest.approx(2 * once)
    assert speed.estimate_seconds(1e12, 0.1) == pytest.approx(2 * speed.estimate_seconds(1e12, 0.2))
    assert speed.estimate_seconds(speed.MIN_OPERATIONS / 2) == 0.0 < speed.estimate_seconds(2 * speed.MIN_OPERATIONS)


def test_a_line_a_minute(monkeypatch):
    said, now = [], [100.0]
    monkeypatch.setattr(speed.time, "monotonic", lambda: now[0])
    lines = speed.Lines(said.append)
    for now[0] in (130.0, 161.0, 170.0, 222.0):
        lines.show(lambda seconds: f"{seconds:.0f}")
    assert said == ["61", "122"]
    speed.Lines(None).show(lambda seconds: pytest.fail("nobody listens"))


# ------------------------------------------------------------------------------------------------ BLUP


def test_each_step_is_said_before_it_begins(folder, early):
    write_files(folder)
    said = command(folder, "run", "analysis.yaml").err
    steps = ("PCG: solving ", "PCG: ", "the solutions are in", "PEV: looking for", "PEV: inverting")
    at = [said.index(words) for words in steps]
    assert at == sorted(at) and said.index("iterations (") < said.index("the solutions are in")
    by_samples = ("--overwrite", "--set=sampler.pev_limit=0", "--set=sampler.pev_samples=20")
    said = command(folder, "run", "analysis.yaml", *by_samples).err
    assert "PEV: 20 samples of the prediction errors" in said


def stop(*_):
    raise Stopped(signal.SIGTERM, "stopped")


def test_solutions_are_kept_where_their_errors_are_not_awaited(folder, early, monkeypatch):
    write_files(folder)
    whole = command(folder, "run", "analysis.yaml", "--output", "whole")
    expected = pl.read_parquet(folder / "whole" / "solutions.parquet")
    with monkeypatch.context() as patch:
        patch.setattr(mixed_model, "errors_of_solutions", stop)
        outcome = command(folder, "run", "analysis.yaml", "--quiet")
    assert whole.code == 0 and outcome.code == 128 + signal.SIGTERM
    assert "results are in" in outcome.err and "without prediction error variances" in outcome.err
    assert outcome.record["unfinished"].startswith("prediction error variances and reliabilities")
    assert outcome.record["warnings"][0].startswith("unfinished: prediction error variances")
    found = outcome.solutions
    assert found["mean"].to_list() == expected["mean"].to_list() and found["pev"].null_count() == found.height
    # the folder is that of an unfinished run
    assert "holds an unfinished run" in command(folder, "run", "analysis.yaml").err
    again = command(folder, "run", "analysis.yaml", "--resume")
    assert again.code == 0 and "unfinished" not in again.record and again.record["warnings"] == []
    assert again.solutions.equals(expected)


def test_an_error_leaves_nothing(folder, early, monkeypatch):
    write_files(folder)
    before = contents(folder)

    def fail(*_):
        raise ModelError("C is not positive definite")

    monkeypatch.setattr(mixed_model, "errors_of_solutions", fail)
    outcome = command(folder, "run", "analysis.yaml")
    assert outcome.code == 2 and "not positive definite" in outcome.err
    assert contents(folder) == before


def test_a_finished_run_stays_until_the_new_one_is_complete(folder, early, monkeypatch):
    write_files(folder)
    assert command(folder, "run", "analysis.yaml").code == 0
    before = {name: value for name, value in contents(folder / "run").items() if name not in ("run.log", ".lock")}
    monkeypatch.setattr(mixed_model, "errors_of_solutions", stop)
    write_files(folder, {"analysis.yaml": replaced(ANALYSIS, "[6, 8]", "[7, 8]")})
    assert command(folder, "run", "analysis.yaml", "--overwrite").code == 128 + signal.SIGTERM
    after = {name: value for name, value in contents(folder / "run").items() if name not in ("run.log", ".lock")}
    assert after == before


def test_few_equations_are_written_once(folder, monkeypatch):
    write_files(folder)
    monkeypatch.setattr(mixed_model, "errors_of_solutions", stop)
    outcome = command(folder, "run", "analysis.yaml")
    assert outcome.code == 128 + signal.SIGTERM and not (folder / "run").exists()


# ------------------------------------------------------------------------------------------------ REML


def iterations(said):
    return [int(line.split()[2].strip(",")) for line in said.splitlines() if line.startswith("REML: iteration")]


def test_reml_says_each_iteration_and_continues_after_a_signal(herd, monkeypatch):
    whole = command(herd, "run", "analysis.yaml", "--output", "whole", "--verbose")
    assert whole.code == 0, whole.err
    n = len(iterations(whole.err)) - 1
    assert iterations(whole.err) == list(range(n + 1)) and n >= 4
    assert not (herd / "whole" / "checkpoint").exists()  # nothing is left to continue
    called = RemlWatch.__call__

    def with_signal(self, iteration, point, distance):
        if iteration == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return called(self, iteration, point, distance)

    with monkeypatch.context() as patch:
        patch.setattr(RemlWatch, "__call__", with_signal)
        outcome = command(herd, "run", "analysis.yaml", "--verbose")
    assert outcome.code == 128 + signal.SIGTERM
    assert iterations(outcome.err) == [0, 1, 2] and "continue with: mmgibbs run analysis.yaml" in outcome.err
    record = outcome.record
    assert record["unfinished"].startswith("REML was stopped by SIGTERM at a log likelihood of ")
    assert record["warnings"][0] == f"unfinished: {record['unfinished']}"
    assert record["log_likelihood"] == pytest.approx(record["log_likelihoods"][2])
    assert outcome.solutions["mean"].is_finite().all() and outcome.summary["mean"].is_finite().all()
    again = command(herd, "run", "analysis.yaml", "--resume", "--verbose")
    assert again.code == 0, again.err
    assert "reml at iteration 2" in again.err
    assert iterations(again.err)[0] == 2 and len(iterations(again.err)) <= n
    assert "unfinished" not in again.record and not (herd / "run" / "checkpoint").exists()
    expected = pl.read_parquet(herd / "whole" / "summary.parquet")
    np.testing.assert_allclose(again.summary["mean"], expected["mean"], rtol=1e-4)
    of_whole = json.loads((herd / "whole" / "run.json").read_text(encoding="utf-8"))
    assert again.record["log_likelihood"] == pytest.approx(of_whole["log_likelihood"], abs=1e-6)
    refused = command(herd, "run", "analysis.yaml", "--extend", "10")
    assert refused.code == 2 and "kept no checkpoints" in refused.err
