"""Chains that stop when their targets are met: the draws of a plain run, and the targets that were missed by name."""

import json

import numpy as np
import pytest
from helpers.kept_runs import PRIORS, RUN, SAMPLER, SMALL, found_in, stop_at
from helpers.small_analysis import command, refused, replaced, write_files

pytestmark = pytest.mark.usefixtures("one_core")


def with_targets(**stop) -> str:
    stop = ", ".join(f"{key}: {value}" for key, value in stop.items())
    return replaced(SMALL, "method: blup", SAMPLER.replace("samples: 50", f"samples: 20, stop: {{{stop}}}"))


def test_chains_stop_at_their_targets_with_the_draws_of_a_plain_run(folder, monkeypatch, whole):
    write_files(folder, {"analysis.yaml": with_targets(rhat=50, mcse_ebv=0.9, max_samples=50)})
    outcome = command(folder, "run", "analysis.yaml")
    assert outcome.code == 0
    record = outcome.record
    n = record["kept_draws_per_chain"]
    assert n == 10 and record["sweeps_per_chain"] == 30 and [t["met"] for t in record["stop"]] == [True, True]
    assert "after 20 samples: largest R-hat" in outcome.err and outcome.err.count(": met") == 2
    found = found_in(folder / "run")
    for name, values in whole["draws"].items():
        np.testing.assert_array_equal(found["draws"][name], values[:, :n], err_msg=name)


@pytest.mark.slow
def test_targets_that_are_missed_are_named(folder, monkeypatch, whole):
    """Also where the run was stopped between: the pauses change no draw."""
    write_files(folder, {"analysis.yaml": with_targets(ess=10**6, mcse_ebv=0.0001, max_samples=50)})
    stop_at(monkeypatch, folder, 75)
    told = command(folder, *RUN, "--resume")
    assert told.code == 0
    record = json.loads((folder / "run" / "run.json").read_text())
    assert record["sweeps_per_chain"] == 60 and [t["met"] for t in record["stop"]] == [False, False]
    missed = [w for w in record["warnings"] if w.startswith("sampler.stop.")]
    assert len(missed) == 2 and "smallest effective sample size" in missed[0] and missed[0].count("missed") == 1
    assert missed[0].endswith("needed at least 1e+06")
    assert [line for line in told.err.splitlines() if "sampler.stop" in line] == [f"warning: {m}" for m in missed]
    assert "genetic" in missed[1] and " of " in missed[1] and "MCSE of a breeding value" in missed[1]
    found = found_in(folder / "run")
    for name, values in whole["draws"].items():
        np.testing.assert_array_equal(found["draws"][name], values, err_msg=name)
    assert command(folder, *RUN, "--extend", "10").code == 0  # unconditionally
    assert json.loads((folder / "run" / "run.json").read_text())["sweeps_per_chain"] == 70


def test_targets_by_pattern(folder, whole):
    """Of a mixed model too: errors in the unit of each parameter, R-hat of some parameters alone."""
    stop = with_targets(mcse="{'h2[*]': 5, 'genetic.var[*]': 5000}", rhat=50, parameters="['h2[*]']", max_samples=50)
    write_files(folder, {"analysis.yaml": stop})
    outcome = command(folder, "run", "analysis.yaml")
    assert outcome.code == 0, outcome.err
    rhat, h2, variances = outcome.record["stop"]
    assert rhat["met"] and rhat["parameters"] == ["h2[*]"] and rhat["at"].startswith("h2[")
    assert h2["target"] == "mcse" and h2["at"].startswith("h2[") and variances["at"].startswith("genetic.var[")
    n = outcome.record["kept_draws_per_chain"]
    for name, values in whole["draws"].items():
        np.testing.assert_array_equal(found_in(folder / "run")["draws"][name], values[:, :n], err_msg=name)
    message = refused(folder, "--overwrite", "--set=sampler.stop={mcse: {'h3[*]': 1}}")
    assert message.startswith("sampler.stop.mcse: no parameter fits 'h3[*]'"), message


def test_targets_of_what_is_not_sampled(folder):
    fixed = ("--set=variances.mode=fixed", "--set=sampler.samples=20")
    assert "sampler.stop.ess: every variance is fixed" in refused(folder, *fixed, "--set=sampler.stop={ess: 100}")
    no_random = SMALL.replace("  random:\n    genetic: {relationship: pedigree, level: animal}\n", "").replace(
        ", save_levels: [genetic]", ""
    )
    no_random = no_random.replace(PRIORS.splitlines(keepends=True)[0], "").replace("method: blup", SAMPLER)
    write_files(folder, {"analysis.yaml": no_random})
    assert "sampler.stop.mcse_ebv: found no random term" in refused(folder, "--set=sampler.stop={mcse_ebv: 0.1}")
