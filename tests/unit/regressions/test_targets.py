"""Regressions that stop once they are good enough: by parameter, to the draws of a plain run of that length."""

import json
import os

import numpy as np
import pytest
from unit.regressions.test_resumed import draws, folder, stop_at  # noqa: F401  folder is a fixture

from mmgibbs.cli import main

RUN = ["run", "a.yaml", "--no-report", "--set=sampler.samples=20"]
NEVER = "--set=sampler.stop={ess: 1e6, max_samples: 40}"


def record(run) -> dict:
    return json.loads((run / "run.json").read_text())


def assert_same_draws(run, other, n=None):
    one, two = draws(run), draws(other)
    assert one.keys() == two.keys()
    for name, values in two.items():
        np.testing.assert_array_equal(one[name], values[:, :n], err_msg=name)


@pytest.mark.parametrize("checkpoints", ["8", "never"])
def test_the_draws_of_a_plain_run_of_that_length(folder, capsys, checkpoints):  # noqa: F811
    """Also where no checkpoints are kept."""
    stop = "{rhat: 50, mcse: {'beta[*]': 10, intercept: 10}, max_samples: 100}"
    asked = [f"--set=sampler.stop={stop}", f"--set=sampler.checkpoint_every={checkpoints}"]
    assert main([*RUN, *asked]) == 0
    said = capsys.readouterr().err
    assert "after 20 samples: largest R-hat" in said and said.count(": met") == 3
    assert "largest Monte Carlo standard error" in said and "needed at most 10: met" in said
    found = record(folder / "run")
    assert (found["sweeps_per_chain"], found["kept_draws_per_chain"], found["warnings"]) == (30, 10, [])
    assert [(t["target"], t["parameters"], t["met"]) for t in found["stop"]] == [
        ("rhat", ["*"], True), ("mcse", ["beta[*]"], True), ("mcse", ["intercept"], True),
    ]  # fmt: skip
    assert main([*RUN, "--set=sampler.samples=60", "--output=plain"]) == 0
    assert_same_draws(folder / "run", folder / "plain", 10)


def test_the_first_look_that_is_good_enough_ends_the_run(folder):  # noqa: F811
    """The target lies between what 20 samples and what 200 samples give."""
    assert main([*RUN, "--quiet", "--set=sampler.stop={ess: 60, parameters: ['beta[*]'], max_samples: 400}"]) == 0
    found = record(folder / "run")
    samples = found["sweeps_per_chain"] - 10
    assert 20 < samples < 400 and found["stop"][0]["met"] and found["stop"][0]["at"].startswith("beta[")
    assert main([*RUN, "--quiet", f"--set=sampler.samples={samples}", "--output=plain"]) == 0
    assert_same_draws(folder / "run", folder / "plain")
    assert found["stop"][0]["found"] >= 60


def test_targets_that_are_missed_are_named_also_after_a_stop(folder, monkeypatch, capsys):  # noqa: F811
    with monkeypatch.context() as patch:
        stop_at(patch, 41)
        assert main([*RUN, NEVER]) == 143
    assert "stopped by SIGTERM after sweep 41 of 50; the state is kept" in capsys.readouterr().err
    assert main([*RUN, NEVER, "--resume", "--quiet"]) == 0
    warning = capsys.readouterr().err
    assert "warning: sampler.stop.ess: missed after max_samples: smallest effective sample size" in warning
    assert "needed at least 1e+06" in warning
    found = record(folder / "run")
    assert found["sweeps_per_chain"] == 50 and [t["met"] for t in found["stop"]] == [False]
    assert main([*RUN, "--set=sampler.samples=40", "--output=plain"]) == 0
    assert_same_draws(folder / "run", folder / "plain")


def test_an_extension_is_unconditional(folder):  # noqa: F811
    assert main([*RUN, NEVER, "--quiet"]) == 0
    assert main([*RUN, NEVER, "--quiet", "--extend=10"]) == 0
    found = record(folder / "run")
    assert found["sweeps_per_chain"] == 60 and "stop" not in found
    assert main([*RUN, "--set=sampler.samples=50", "--output=plain"]) == 0
    assert_same_draws(folder / "run", folder / "plain")


def test_a_look_is_at_the_named_parameters_alone(folder):  # noqa: F811
    """A penalty fixed never changes: it does not count, and alone it meets no target."""
    fixed = "--set=model.options={penalty: 2.0}"
    assert main([*RUN, "--quiet", fixed, "--set=sampler.stop={rhat: 50, max_samples: 40}"]) == 0
    assert record(folder / "run")["sweeps_per_chain"] == 30
    alone = "--set=sampler.stop={rhat: 50, parameters: [lambda], max_samples: 40}"
    assert main([*RUN, "--quiet", fixed, alone, "--output=alone"]) == 0
    (target,) = record(folder / "alone")["stop"]
    assert (target["met"], target["at"], target["found"]) == (False, "no parameter moves", None)


REFUSED = {
    "breeding values": ("{mcse_ebv: 0.1}", "sampler.stop.mcse_ebv: cannot be combined with model.plugin"),
    "a pattern of nothing": ("{ess: 100, parameters: ['bata[*]']}", "sampler.stop.parameters: no parameter fits"),
    "an error of nothing": ("{mcse: {gamma: 0.1}}", "sampler.stop.mcse: no parameter fits 'gamma'"),
    "an error for all": ("{mcse: 0.1}", "sampler.stop.mcse: found 0.1, needed a mapping from patterns"),
    "an error below 0": ("{mcse: {intercept: -1}}", "sampler.stop.mcse.intercept: found -1, needed a number above 0"),
    "parameters alone": ("{mcse: {intercept: 1}, parameters: [intercept]}", "found parameters without rhat or ess"),
    "nothing": ("{max_samples: 50}", "needed one or more of rhat, ess, mcse, mcse_ebv"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_refused_before_anything_is_written(folder, capsys, mistake):  # noqa: F811
    stop, message = REFUSED[mistake]
    assert main([*RUN, f"--set=sampler.stop={stop}"]) == 2
    assert message in capsys.readouterr().err
    assert not os.path.exists("run")
    assert main(["check", "a.yaml", f"--set=sampler.stop={stop}"]) == 2


@pytest.mark.slow
def test_on_a_cluster(folder, monkeypatch):  # noqa: F811
    for library in ("distributed", "cryptography"):
        pytest.importorskip(library, reason="needs Dask: pip install 'mmgibbs[cluster]'")
    monkeypatch.setattr("mmgibbs.runs.cluster.chains.TURN", 0.0)
    stop = "--set=sampler.stop={ess: 60, parameters: ['beta[*]'], max_samples: 400}"
    assert main([*RUN, "--quiet", stop, "--output=here"]) == 0
    assert main([*RUN, "--quiet", stop, "--cluster=local:1"]) == 0
    assert_same_draws(folder / "run", folder / "here")
    assert record(folder / "run")["stop"] == record(folder / "here")["stop"]


def test_the_device_that_auto_chooses_is_the_cpu(monkeypatch):
    """As in a mixed model: the same file gives the same bits on a machine with and without a GPU."""
    from mmgibbs.config import load_config
    from mmgibbs.regressions.arrays import gpu
    from mmgibbs.regressions.estimator import make_arrays

    monkeypatch.setattr(gpu, "Gpu", lambda: pytest.fail("a GPU was asked for"))
    tables = {"phenotypes": "p.csv"}
    regression = load_config(
        {"data": tables, "model": {"plugin": "bayesian_lasso", "response": "y", "predictors": "x"}}
    )
    assert regression.sampler.device == "auto" and make_arrays(regression.sampler.device, 1).device == "cpu"
