"""Runs that end early and go on: killed at any moment, stopped by a signal, their files damaged.

Whatever happens, the run that goes on ends with the draws of the run in one go.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers.kept_runs import RUN, SWEEPS, assert_same, at_sweep, found_in, stop_at
from helpers.processes import processes_of_session
from helpers.small_analysis import PHENOTYPES, command, contents, refused
from helpers.support import ROOT

from mmgibbs.runs.checkpoints import Checkpoints

pytestmark = pytest.mark.usefixtures("one_core")

# ------------------------------------------------------------------------------------------------ killed


@pytest.fixture(scope="module")
def forked(tmp_path_factory):
    """forked(folder, arguments, kind, number): see fork_server.py."""
    if not hasattr(os, "fork") or not hasattr(os, "sched_setaffinity"):
        pytest.skip("needs fork and a choice of cores")
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "helpers" / "fork_server.py")],
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "TMPDIR": str(tmp_path_factory.mktemp("forked"))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def run(folder, arguments, kind=None, number=0):
        process.stdin.write(json.dumps([str(folder), list(arguments), kind, number]) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield run
    process.stdin.close()
    code = process.wait(timeout=60)
    process.stdout.close()
    assert code == 0


def test_kill_9_at_random_moments(folder, forked, whole):
    """Within a sweep, a checkpoint, a rename; each time the next run goes on, until it is killed too, or done."""
    kills, rng, done, killed = 4, np.random.default_rng(5), 0, {"sweep": 0, "file": 0}
    arguments = (*RUN, "--no-report")
    code, events, said = forked(folder, [*arguments, "--output", "counted"])
    assert (code, events["sweep"]) == (0, SWEEPS), said
    while sum(killed.values()) < kills or (folder / "run").exists():
        kind = "file" if sum(killed.values()) % 2 else "sweep"
        number = int(rng.integers(1, events[kind] // 2))
        last = sum(killed.values()) >= kills
        code, _, said = forked(folder, [*arguments, "--resume"], *(() if last else (kind, number)))
        if code == -signal.SIGKILL:
            killed[kind] += 1
            continue
        assert code == 0, said
        assert_same(folder / "run", whole)
        assert sorted(os.listdir(folder / "run")) == sorted(os.listdir(folder / "counted"))
        assert json.loads((folder / "run" / "run.json").read_text())["sweeps_per_chain"] == 60
        # whenever it was killed, what stood there was whole
        assert "damaged" not in (folder / "run" / "run.log").read_text()
        shutil.rmtree(folder / "run")
        done += 1
    assert done >= 1 and min(killed.values()) >= kills // 2


def test_a_folder_that_is_being_written_is_refused(folder, forked, whole):
    _, _, holder = forked(folder, [*RUN, "--no-report"], "stop", 33)
    for flag in ((), ("--resume",), ("--overwrite",)):
        message = refused(folder, *flag)
        assert f"another run is writing '{folder}/run' (process {holder} on " in message
        assert message.endswith("needed another directory, or the end of that run")
    code, _, said = forked(folder, [*RUN, "--no-report", "--resume"])
    assert code == 0, said
    assert_same(folder / "run", whole)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see processes")
def test_the_chains_of_a_killed_run_end_too(folder, whole):
    """Chains in processes of their own: they notice, and write nothing more into a folder that may be another run's by
    then.
    """
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores, or chains share one process")
    long = ("--set=sampler.samples=4000000", "--set=sampler.thin=100000", "--set=sampler.checkpoint_every=500")
    run = subprocess.Popen(
        [sys.executable, "-m", "mmgibbs", *RUN, "--no-report", *long],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder)},
        start_new_session=True,
    )
    try:
        checkpoints, give_up = folder / "run" / "checkpoint", time.monotonic() + 100
        while len(list(checkpoints.glob("chain-?.npz"))) < 2 and run.poll() is None and time.monotonic() < give_up:
            time.sleep(0.02)
        assert run.poll() is None and len(processes_of_session(run.pid)) >= 3
        run.kill()
        run.wait()
        give_up = time.monotonic() + 20
        while processes_of_session(run.pid) and time.monotonic() < give_up:
            time.sleep(0.02)
        assert processes_of_session(run.pid) == []
    finally:
        if processes_of_session(run.pid):
            os.killpg(run.pid, signal.SIGKILL)
    place = Checkpoints(checkpoints, "any")
    assert all(
        "is of another run" in why for why in place.read("chain-1")[1].values()
    )  # whole, though of another identity
    assert "sampler.samples: was 4000000, now 50" in refused(folder, "--resume")
    assert command(folder, *RUN, "--overwrite").code == 0
    assert_same(folder / "run", whole)


# ------------------------------------------------------------------------------------------------ stopped by a signal


@pytest.fixture
def terminal():
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(("how", "sweep"), [(signal.SIGINT, 17), (signal.SIGTERM, 83), (signal.SIGHUP, 83)])
def test_a_signal_ends_the_sweep_and_keeps_the_state(folder, monkeypatch, whole, how, sweep):
    outcome = stop_at(monkeypatch, folder, sweep, how=how)
    at = "17 (chain-1), 0 (chain-2)" if sweep == 17 else "60 (chain-1), 23 (chain-2)"
    assert outcome.err == (
        f"\nstopped by {how.name} after sweep {at} of 60; the state is kept in '{folder}/run/checkpoint'\n"
        "continue with: mmgibbs run analysis.yaml --quiet --no-report --resume\n"
    )
    assert sorted(os.listdir(folder / "run")) == ["checkpoint", "run.log"]
    for arguments in ((), ("--set", "output.csv=always")):
        assert refused(folder, *arguments).endswith(
            "holds an unfinished run; --resume continues it, --overwrite starts again"
        )
    assert "--extend SWEEPS needs a finished one" in refused(folder, "--extend", "10")
    outcome = command(folder, "run", "analysis.yaml", "--resume")
    assert outcome.code == 0 and f"continuing from checkpoints: chain-1 at sweep {at[:2]}" in outcome.err
    assert_same(folder / "run", whole)
    log = (folder / "run" / "run.log").read_text()
    assert (
        "stopped by" in log and "continuing from" in log and log.count("begun by process") == 2 and "written to" in log
    )
    for line in outcome.err.splitlines():
        assert line in log  # every line said


def test_the_command_that_goes_on():
    from mmgibbs.cli import resuming

    for flags in (["--overwrite"], ["--extend", "50"], ["--extend=50"], ["--resume"], []):
        found = resuming(["run", "a b.yaml", *flags, "--set", "name=x"])
        assert found == ["run", "a b.yaml", "--set", "name=x", "--resume"]


def test_without_checkpoints_nothing_is_kept(folder, monkeypatch):
    before = contents(folder)
    outcome = stop_at(monkeypatch, folder, 30, "--set", "sampler.checkpoint_every=never")
    said = "stopped by SIGTERM after sweep 30 (chain-1), 0 (chain-2) of 60"
    assert outcome.err == f"\n{said}; nothing is kept (sampler.checkpoint_every: never)\n"
    assert contents(folder) == before


def test_a_failure_keeps_the_checkpoints_and_says_so(folder, monkeypatch, whole):
    """Here of writing the results, as on a full disk."""

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pl.DataFrame, "write_parquet", full)
        outcome = command(folder, *RUN)
    assert outcome.code == 2 and "No space left on device" in outcome.err
    assert f"the checkpoints in '{folder}/run/checkpoint' are kept: --resume continues from them" in outcome.err
    at_sweep(monkeypatch, 1, lambda: pytest.fail("all sweeps were done"))
    assert command(folder, *RUN, "--resume").code == 0
    assert_same(folder / "run", whole)


# ------------------------------------------------------------------------------------------------ finished, changed,
# extended


def test_a_finished_run_is_left_alone(folder):
    assert command(folder, *RUN, "--resume").code == 0  # nothing was there: it starts anew
    assert "holds no checkpoint: the run starts from the beginning" in (folder / "run" / "run.log").read_text()
    before = contents(folder)
    outcome = command(folder, "run", "analysis.yaml", "--resume")
    assert outcome.code == 0 and "holds this run, finished: nothing is left to do" in outcome.err
    assert contents(folder) == before
    assert "choose another directory, or give --overwrite" in refused(folder)


def test_what_changed_is_refused_by_name(folder, monkeypatch):
    stop_at(monkeypatch, folder, 30)
    seed = refused(folder, "--resume", "--set", "sampler.seed=43", "--set", "sampler.samples=70")
    assert seed.splitlines() == [
        f"output.directory: '{folder}/run' holds the run of another analysis:",
        "sampler.samples: was 50, now 70",
        "sampler.seed: was 42, now 43",
        "needed the analysis and the data of that run (more sweeps: --extend SWEEPS), or --overwrite",
    ]
    (folder / "phenotypes.csv").write_text(PHENOTYPES.replace("35.5", "35.6"))
    assert "the contents of the file of data.phenotypes have changed" in refused(folder, "--resume")
    (folder / "phenotypes.csv").write_text(PHENOTYPES)
    free = ["sampler.threads=1", "sampler.checkpoint_every=3m", "output.csv=always", "name=other"]
    assert command(folder, *RUN, "--resume", *(f"--set={f}" for f in free)).code == 0
    assert "sampler.seed: was 42, now 43" in refused(folder, "--extend", "10", "--set", "sampler.seed=43")


def test_an_extension_has_the_draws_of_a_longer_run(folder, monkeypatch):
    longer = ("--set", "sampler.samples=80", "--output", "longer")
    assert command(folder, *RUN, *longer).code == 0
    assert command(folder, *RUN).code == 0
    assert command(folder, *RUN, "--extend", "20").code == 0
    outcome = stop_at(monkeypatch, folder, 5, "--extend", "10")
    assert "after sweep 85 (chain-1), 80 (chain-2) of 90" in outcome.err
    assert "unfinished" in refused(folder)
    assert command(folder, *RUN, "--resume").code == 0
    one, other = found_in(folder / "run"), found_in(folder / "longer")
    for name, values in other["draws"].items():
        np.testing.assert_array_equal(one["draws"][name], values, err_msg=name)
    for column in ("mean", "sd"):  # the batches of the moments keep their length, and so their rounding
        np.testing.assert_allclose(one["solutions"][column], other["solutions"][column], rtol=1e-11, atol=1e-12)
    record = json.loads((folder / "run" / "run.json").read_text())
    assert (record["sweeps_per_chain"], record["kept_draws_per_chain"], record["begun"]) == (90, 40, "resumed")


@pytest.mark.parametrize("wrong", ["0", "many"])
def test_an_extension_by_nothing(folder, wrong, capsys):
    assert command(folder, *RUN, f"--extend={wrong}").code == 2


def test_an_extension_of_what_cannot_be_extended(folder):
    assert "holds no run; --extend SWEEPS needs a finished one" in refused(folder, "--extend", "10")
    assert command(folder, *RUN, "--set", "sampler.checkpoint_every=never").code == 0
    assert sorted(os.listdir(folder / "run"))[:2] == ["animals.parquet", "draws.nc"]
    assert "kept no checkpoints to continue from" in refused(folder, "--extend", "10")
    assert command(folder, *RUN, "--resume").code == 0  # finished all the same
    assert "sampler.seed: was 42, now 7" in refused(folder, "--resume", "--set=sampler.seed=7")


def test_an_overwritten_run_is_another_one(folder, monkeypatch, whole):
    assert command(folder, *RUN, "--set=sampler.seed=7").code == 0
    earlier = (folder / "run" / "summary.csv").read_bytes()
    stop_at(monkeypatch, folder, 30, "--overwrite")
    assert (folder / "run" / "summary.csv").read_bytes() == earlier
    assert "holds an unfinished run" in refused(folder)
    assert command(folder, *RUN, "--resume").code == 0
    assert_same(folder / "run", whole)


# ------------------------------------------------------------------------------------------------ damage


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1000])


def test_a_damaged_checkpoint_is_passed_over(folder, monkeypatch, whole):
    stop_at(monkeypatch, folder, 30)
    cut_off(folder / "run" / "checkpoint" / "chain-1.npz")
    outcome = command(folder, "run", "analysis.yaml", "--resume")
    assert outcome.code == 0
    assert "warning: checkpoint/chain-1.npz is damaged" in outcome.err
    assert "continuing from checkpoints: chain-1 at sweep 28" in outcome.err
    assert_same(folder / "run", whole)


def test_where_all_is_damaged_the_chain_starts_anew(folder, monkeypatch, whole):
    stop_at(monkeypatch, folder, 83)
    for path in (folder / "run" / "checkpoint").glob("chain-2*.npz"):
        cut_off(path)
    cut_off(folder / "run" / "checkpoint" / "run.npz")
    outcome = command(folder, "run", "analysis.yaml", "--resume")
    assert outcome.code == 0 and outcome.err.count("is damaged") == 3
    assert "continuing from checkpoints: chain-1 at sweep 60, chain-2 from the start" in outcome.err
    assert_same(folder / "run", whole)


def test_good_checkpoints_of_something_else_are_not_touched(folder, monkeypatch, whole):
    """What was run is no longer known, and the analysis is another one now: refused, and nothing is removed."""
    stop_at(monkeypatch, folder, 30)
    (folder / "run" / "checkpoint" / "run.npz").write_bytes(b"")
    chain = (folder / "run" / "checkpoint" / "chain-1.npz").read_bytes()
    outcome = command(folder, *RUN, "--resume", "--set=sampler.seed=7")
    assert outcome.code == 2 and "chain-1.npz: is of another run; needed the checkpoint of this run" in outcome.err
    assert (folder / "run" / "checkpoint" / "chain-1.npz").read_bytes() == chain
    (folder / "run" / "checkpoint" / "run.npz").write_bytes(b"")
    assert command(folder, *RUN, "--resume", "--set=sampler.checkpoint_every=never").code == 0
    assert "continuing from checkpoints: chain-1 at sweep 30" in (folder / "run" / "run.log").read_text()
    assert_same(folder / "run", whole)


def written_again(path, change, identity=None):
    """A good checkpoint with other arrays and facts: change(arrays, facts)."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    facts = json.loads(arrays.pop("facts").tobytes())
    own, _, _ = (facts.pop(key) for key in ("identity", "format", "sha256"))
    change(arrays, facts)
    Checkpoints(path.parent, own if identity is None else identity).write(path.stem, arrays, facts)


def test_a_run_keeps_the_engine_that_auto_took(folder, monkeypatch, whole):
    """Its chains know it too. Another version, or another machine, might take another one now."""
    stop_at(monkeypatch, folder, 30)
    cut_off(folder / "run" / "checkpoint" / "run.npz")
    never = lambda *_: pytest.fail("auto chose anew")
    monkeypatch.setattr("mmgibbs.build.engine._compared", never)
    assert command(folder, *RUN, "--resume").code == 0
    assert_same(folder / "run", whole)


@pytest.mark.parametrize("flag", [("--resume",), ("--extend", "10")])
def test_the_checkpoint_of_a_version_that_kept_less(folder, monkeypatch, flag):
    if flag[0] == "--resume":
        stop_at(monkeypatch, folder, 30)
    else:
        assert command(folder, *RUN).code == 0
    lacking = lambda arrays, facts: [arrays.pop(name) for name in list(arrays) if ".moments:counts" in name]
    written_again(folder / "run" / "checkpoint" / "chain-1.npz", lacking)
    outcome = command(folder, *RUN, *flag)
    assert outcome.code == 2 and outcome.err.strip() == (
        "chain 1: its checkpoint lacks 'moments:counts', without which this version cannot continue: another version "
        "of mmgibbs wrote it; needed that version, or a new run"
    )
    finished = "finished: nothing is left to do" in command(folder, "run", "analysis.yaml", "--resume").err
    assert finished == (flag[0] == "--extend")  # it is as it was


@pytest.mark.slow
def test_the_run_of_a_version_with_fewer_keys_is_continued(folder, monkeypatch, whole):
    stop_at(monkeypatch, folder, 30)
    place, then = folder / "run" / "checkpoint", {}

    def fewer(arrays, facts):
        assert facts["what"]["analysis"].pop("sampler.pev_limit") == "null"
        then.update(facts["what"])

    written_again(place / "run.npz", fewer)
    identity = hashlib.sha256(json.dumps(then, sort_keys=True).encode()).hexdigest()
    for path in list(place.glob("chain-?.npz")):
        written_again(path, lambda arrays, facts: None, identity)
    stop_at(monkeypatch, folder, 30, "--resume")
    assert command(folder, *RUN, "--resume").code == 0
    assert_same(folder / "run", whole)
    assert command(folder, *RUN, "--extend", "10").code == 0
