"""Runs that end before their time: Ctrl-C, a chain killed by the system, memory that would not suffice."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from helpers.processes import processes_of_session
from helpers.small_analysis import ANALYSIS, assert_readable, command, contents, refused, replaced, write_files
from helpers.support import ROOT
from reference import models

import mmgibbs.machine.memory
import mmgibbs.runs.mixed_model_input
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import estimated_bytes, structured_equations
from mmgibbs.errors import DeviceError
from mmgibbs.machine.threads import cores

GIBBS = replaced(ANALYSIS, "method: blup", "chains: 1, burn_in: 5, samples: 20, thin: 1")
FIXED = replaced(GIBBS, "variances:", "variances:\n  mode: fixed")  # few records: flat priors leave no posterior


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """Temporary files go to a folder of their own, which must be empty at the end, but for the kernels of processes
    that were killed: the next run removes them.
    """
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert [name for name in contents(folder) if not name.startswith("mmgibbs-kernels-process-")] == []


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "analysis"


# ------------------------------------------------------------------------------------------------ interrupted


def workers_of(session: int) -> list[int]:
    def is_chain(pid):
        try:
            return b"LokyProcess" in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False

    return [pid for pid in processes_of_session(session) if is_chain(pid)]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see processes")
@pytest.mark.parametrize("how", [pytest.param("Ctrl-C", marks=pytest.mark.slow), "a chain is killed"])
def test_a_run_that_is_stopped_leaves_no_process_behind(folder, scratch, how):
    """Chains in processes. Ctrl-C reaches all processes of a terminal, as here: the state is kept.

    A full memory leaves a killed chain.
    """
    text = replaced(GIBBS, "chains: 1, burn_in: 5, samples: 20, thin: 1", "chains: 2, samples: 400000000, thin: 100000")
    write_files(folder, {"analysis.yaml": replaced(text, "variances:", "variances:\n  mode: fixed")})
    if cores() < 2:
        pytest.skip("needs two cores, or chains share one process")
    before, checkpoints = contents(folder), folder / "run" / "checkpoint"
    command_of_run = "run analysis.yaml --quiet --no-report".split()
    every = "2000" if how == "Ctrl-C" else "never"
    run = subprocess.Popen(
        [sys.executable, "-m", "mmgibbs", *command_of_run, f"--set=sampler.checkpoint_every={every}"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(scratch)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        give_up = time.monotonic() + 100
        while len(workers_of(run.pid)) < 2 and run.poll() is None and time.monotonic() < give_up:
            time.sleep(0.05)
        assert run.poll() is None, run.stderr.read()
        time.sleep(0.3)
        if how == "Ctrl-C":
            while len(list(checkpoints.glob("chain-?.npz"))) < 2 and time.monotonic() < give_up:
                time.sleep(0.05)
            os.killpg(run.pid, signal.SIGINT)
        else:
            os.kill(workers_of(run.pid)[0], signal.SIGKILL)
        message = run.communicate(timeout=60)[1]
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
    if how == "Ctrl-C":
        assert run.returncode == 130
        at = r"[0-9,]+( \(chain-1\), [0-9,]+ \(chain-2\))?"
        said = rf"\nstopped by SIGINT after sweep {at} of .*; the state is kept in '{checkpoints}'\n"
        again = "mmgibbs run analysis.yaml --quiet --no-report --set=sampler.checkpoint_every=2000 --resume"
        assert re.fullmatch(rf"{said}continue with: {again}\n", message), message
        assert {"run.npz", "chain-1.npz", "chain-2.npz"} <= {p.name for p in checkpoints.iterdir()}
        shutil.rmtree(folder / "run")
    else:
        assert run.returncode == 2 and message.startswith("the process of a chain was ended from outside"), message
        assert_readable(message)
    give_up = time.monotonic() + 20
    while processes_of_session(run.pid) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert processes_of_session(run.pid) == []
    assert contents(folder) == before


# ------------------------------------------------------------------------------------------------ memory


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({}, r"solving 27 equations needs about [0-9.]+ MB, found 0\.0 MB free; needed a machine with more"),
        (
            {"analysis.yaml": FIXED},
            "sampling 27 equations in 1 chains, 20 draws kept in each, needs .*needed fewer",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_built(folder, monkeypatch, changed, what):
    monkeypatch.setattr(mmgibbs.machine.memory, "free_bytes", lambda: 1000)
    monkeypatch.setattr(
        mmgibbs.runs.mixed_model_input, "structured_equations", lambda *_: pytest.fail("the equations were built")
    )
    write_files(folder, changed)
    message = refused(folder)
    assert re.match(f"memory: {what}", message), message
    assert refused(folder, run=("check", "analysis.yaml")) == message


@pytest.mark.parametrize(
    "free, what",
    [(10_000, "the pattern of a factor of 27 equations"), (18_000, "inverting 27 equations for PEV")],
    ids=["pattern", "inverse"],
)
def test_an_inverse_that_does_not_fit_is_refused(free, what, folder, monkeypatch):
    """The equations fit, their inverse does not, or not even its pattern."""
    write_files(folder)
    monkeypatch.setattr(mmgibbs.machine.memory, "free_bytes", lambda: free)
    advice = "a machine with more memory, or sampler.pev_limit below 27 (PEV and reliability are then blank)"
    message = refused(folder, "--set", "sampler.pev_limit=27")
    assert message.startswith(f"memory: {what} needs about") and message.strip().endswith(f"needed {advice}")
    assert command(folder, "run", "analysis.yaml", "--quiet", "--set", "sampler.pev_limit=26").code == 0


def test_draws_that_would_not_fit_are_refused(folder):
    """A slip in the number of draws that are to be kept: terabytes."""
    write_files(folder, {"analysis.yaml": replaced(FIXED, "directory: run", "directory: run, save_levels: [genetic]")})
    message = refused(folder, "--set", "sampler.samples=4000000000")
    assert "4,000,000,000 draws kept in each" in message and "a larger sampler.thin" in message


@pytest.mark.parametrize("name", models.NAMES)
@pytest.mark.parametrize("precision", ["double", "single"])
def test_the_estimate_holds_for_every_kind_of_model(name, precision):
    design = models.EXAMPLES[name]()[0]
    held = structured_equations(design, partition(design), precision).bytes
    assert held <= estimated_bytes(design, precision) <= 1.4 * held


def test_free_memory_is_what_machine_and_container_leave(tmp_path, monkeypatch):
    assert mmgibbs.machine.memory.free_bytes() is None or mmgibbs.machine.memory.free_bytes() > 0
    monkeypatch.setattr(mmgibbs.machine.memory, "_free_on_machine", lambda: 5000)
    groups = ((str(tmp_path), "memory.max", "memory.current", "inactive_file"),)
    monkeypatch.setattr(mmgibbs.machine.memory, "_GROUPS", groups)
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 150\n")
    for limit, free in (("max", 5000), ("1000", 450), ("100000", 5000), ("500", 0)):
        (tmp_path / "memory.max").write_text(f"{limit}\n")
        assert mmgibbs.machine.memory.free_bytes() == free
    monkeypatch.setattr(mmgibbs.machine.memory, "free_bytes", lambda: None)
    mmgibbs.machine.memory.refuse_beyond_free(10**18, "this", "that")  # where nothing is known, nothing is refused
    monkeypatch.setattr(mmgibbs.machine.memory, "free_bytes", lambda: 2 * 10**9)
    with pytest.raises(DeviceError, match=r"^memory: this needs about 1,000\.0 GB, found 2\.0 GB free; needed that$"):
        mmgibbs.machine.memory.refuse_beyond_free(10**12, "this", "that")
