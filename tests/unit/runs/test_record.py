"""What a run leaves behind about itself: run.json says what was chosen and why, draws.nc holds the facts of every kept
sweep.
"""

import re

import numpy as np
import pytest
import xarray
from helpers.small_analysis import ANALYSIS, command, replaced, write_files

SAMPLER = "chains: 2, burn_in: 6, samples: 20, thin: 2"
KNOWN = "  genetic: {start: [[6, 8], [8, 90]], fixed: true}\n"
OWN_PRIOR = "  herd: {prior: {df: 6, scale: [[9, 0], [0, 90]]}}"


def run_of(folder, sampler="", text=ANALYSIS):
    for matrix in ("[[6, 8], [8, 90]]", "[[9, 10], [10, 160]]"):  # few records: flat priors leave no posterior
        text = text.replace(f": {matrix}\n", f": {{start: {matrix}, prior: {{df: 5, scale: {matrix}}}}}\n")
    write_files(folder, {"analysis.yaml": replaced(text, "method: blup", f"{SAMPLER}, {sampler}".rstrip(", "))})
    outcome = command(folder, "run", "analysis.yaml", "--verbose")
    assert outcome.code == 0, outcome.err
    with xarray.open_datatree(folder / "run" / "draws.nc", engine="h5netcdf") as tree:
        return outcome, tree.load()


def test_interweaving_says_what_it_leaves_out(tmp_path):
    text = replaced(ANALYSIS, "    herd: {}\n", "")
    text = replaced(text, "    genetic: {", "    herd: {}\n    genetic: {")
    text = replaced(text, "  genetic: [[6, 8], [8, 90]]", KNOWN + OWN_PRIOR)
    outcome, tree = run_of(tmp_path, "interweave: true", text)
    why = "its covariance matrix is fixed"
    assert outcome.record["interweaved_terms"] == ["herd"] and outcome.record["not_interweaved"] == {"genetic": why}
    note = f"sampler.interweave: term 'genetic' is left out: {why}"
    assert note in outcome.record["notes"] and note in outcome.out + outcome.err
    stats = tree["sample_stats"]
    assert set(stats.data_vars) == {"sweep", "interweaving_acceptance[herd]"}
    assert stats["sweep"].dims == ("chain", "draw") and stats["sweep"].dtype.kind == "i"
    np.testing.assert_array_equal(stats["sweep"], [np.arange(8, 27, 2)] * 2)


@pytest.mark.parametrize("wanted", ["auto", "false"])
def test_interweaving_not_asked_for_is_no_note(tmp_path, wanted):
    outcome, tree = run_of(tmp_path, f"interweave: {wanted}")
    interwoven = ["genetic"] if wanted == "auto" else []
    assert outcome.record["interweaved_terms"] == interwoven and outcome.record["not_interweaved"] == {}
    assert not any("interweave" in note for note in outcome.record["notes"])
    accepted = [f"interweaving_acceptance[{name}]" for name in interwoven]
    assert set(tree["sample_stats"].data_vars) == {"sweep", *accepted}
    assert all(0.0 < tree["sample_stats"][name].mean() < 1.0 for name in accepted)


@pytest.mark.parametrize(
    "asked, engine, why",
    [
        ("engine: auto", "serial", r"auto, by estimates: .*; marginal cannot be combined with sampler.burn_in: 6, .*"),
        ("engine: structured, threads: 1", "structured", "asked for"),
    ],
)
def test_run_json_says_which_engine_and_why(tmp_path, asked, engine, why):
    record = run_of(tmp_path, asked)[0].record
    assert record["engine"] == engine and re.fullmatch(why, record["engine_chosen_because"])


def test_what_pcg_did_for_each_draw_is_kept(tmp_path):
    """The tolerance of the analysis file is the one that is reached."""
    outcome, tree = run_of(tmp_path, "engine: pcg, interweave: false, tolerance: 1e-3")
    stats = tree["sample_stats"]
    assert set(stats.data_vars) == {"sweep", "pcg_iterations", "pcg_error", "pcg_relative_residual"}
    assert 1e-8 < stats["pcg_error"].max() <= 1e-3 and stats["pcg_iterations"].dtype.kind == "i"
    assert outcome.record["analysis"]["sampler"]["tolerance"] == 1e-3


@pytest.mark.parametrize(("samples", "short"), [(150, True), (250, False)])
def test_runs_too_short_for_errors_of_breeding_values_say_so(tmp_path, samples, short):
    sampler = f"chains: 2, burn_in: 5, samples: {samples}, thin: 1"
    held = replaced(ANALYSIS, "variances:", "variances:\n  mode: fixed")
    write_files(tmp_path, {"analysis.yaml": replaced(held, "method: blup", sampler)})
    outcome = command(tmp_path, "run", "analysis.yaml", "--verbose")
    assert outcome.code == 0, outcome.err
    told = f"MCSE and ESS of breeding values: {2 * samples} kept draws are too few"
    assert (told in outcome.err) == any(told in note for note in outcome.record["notes"]) == short


def test_threads_that_are_not_used_are_said(tmp_path):
    """auto takes an engine of one thread for a small system; one that is asked for by its name refuses them."""
    outcome, _ = run_of(tmp_path, "threads: 3")
    (note,) = [note for note in outcome.record["notes"] if note.startswith("sampler.threads: engine serial")]
    assert "engine serial (auto, by estimates: " in note and note.endswith(") uses 1 of the 3")
    assert outcome.record["threads"] == 1 and note in outcome.err
