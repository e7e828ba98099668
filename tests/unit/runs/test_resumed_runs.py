"""Runs that end early and go on: killed at any moment, stopped by a signal, their files damaged, the disk full.

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
from helpers.kept_runs import (
    RUN,
    SWEEPS,
    assert_same,
    at_sweep,
    found_in,
    stop_at,
)
from helpers.small_analysis import PHENOTYPES, assert_readable, command, contents, refused
from helpers.support import ROOT

import mmgibbs.runs.run
from mmgibbs.config import load_config
from mmgibbs.errors import ConfigError
from mmgibbs.results.folder import LOCK
from mmgibbs.runs.checkpoints import Checkpoints
from mmgibbs.runs.fingerprint import changes
from mmgibbs.runs.lock import FolderLock
from mmgibbs.runs.place import RunFolder
from mmgibbs.runs.progress import Console

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


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_kill_9_at_random_moments(folder, forked, whole, kills):
    """Within a sweep, a checkpoint, a rename; each time the next run goes on, until it is killed too, or done."""
    rng, done, killed = np.random.default_rng(kills), 0, {"sweep": 0, "file": 0}
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
    """The second run is told which process holds it; when that one is killed, no lock is left behind."""
    _, _, holder = forked(folder, [*RUN, "--no-report"], "stop", 33)
    for flag in ((), ("--resume",), ("--overwrite",)):
        message = refused(folder, *flag)
        assert f"another run is writing '{folder}/run' (process {holder} on " in message
        assert message.endswith("needed another directory, or the end of that run")
    code, _, said = forked(folder, [*RUN, "--no-report", "--resume"])
    assert code == 0, said
    assert_same(folder / "run", whole)


def processes_of(session: int) -> list[int]:
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and alive_in(p, session)]


def alive_in(process: Path, session: int) -> bool:
    try:
        state, _, _, sid = (process / "stat").read_text().rsplit(")", 1)[1].split()[:4]
    except OSError:
        return False
    return int(sid) == session and state != "Z"


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
        assert run.poll() is None and len(processes_of(run.pid)) >= 3
        run.kill()
        run.wait()
        give_up = time.monotonic() + 20
        while processes_of(run.pid) and time.monotonic() < give_up:
            time.sleep(0.02)
        assert processes_of(run.pid) == []
    finally:
        if processes_of(run.pid):
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
    """SIGHUP ends programs, also where the tests themselves run under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(("how", "sweep"), [(signal.SIGINT, 17), (signal.SIGTERM, 83), (signal.SIGHUP, 83)])
def test_a_signal_ends_the_sweep_and_keeps_the_state(folder, monkeypatch, whole, how, sweep):
    outcome = stop_at(monkeypatch, folder, sweep, how=how)
    at = "17, 0" if sweep == 17 else "60, 23"
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
        assert resuming(["run", "a b.yaml", *flags, "--set", "name=x"]) == [
            "run",
            "a b.yaml",
            "--set",
            "name=x",
            "--resume",
        ]


def test_without_checkpoints_nothing_is_kept(folder, monkeypatch):
    before = contents(folder)
    outcome = stop_at(monkeypatch, folder, 30, "--set", "sampler.checkpoint_every=never")
    assert (
        outcome.err
        == "\nstopped by SIGTERM after sweep 30, 0 of 60; nothing is kept (sampler.checkpoint_every: never)\n"
    )
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
    assert "after sweep 85, 80 of 90" in outcome.err
    assert "unfinished" in refused(folder)
    assert command(folder, *RUN, "--resume").code == 0
    one, other = found_in(folder / "run"), found_in(folder / "longer")
    for name, values in other["draws"].items():
        np.testing.assert_array_equal(one["draws"][name], values, err_msg=name)
    for column in ("mean", "sd"):  # the batches of the moments keep their length, and so their rounding
        np.testing.assert_allclose(one["solutions"][column], other["solutions"][column], rtol=1e-11, atol=1e-12)
    record = json.loads((folder / "run" / "run.json").read_text())
    assert (record["sweeps_per_chain"], record["kept_draws_per_chain"], record["begun"]) == (90, 40, "resumed")


@pytest.mark.parametrize("wrong", ["0", "-5", "many", "1.5"])
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
    """Killed after --overwrite: the earlier results are still there, and the new run can go on."""
    assert command(folder, *RUN, "--set=sampler.seed=7").code == 0
    earlier = (folder / "run" / "summary.csv").read_bytes()
    stop_at(monkeypatch, folder, 30, "--overwrite")
    assert (folder / "run" / "summary.csv").read_bytes() == earlier
    assert "holds an unfinished run" in refused(folder)
    assert command(folder, *RUN, "--resume").code == 0
    assert_same(folder / "run", whole)


# ------------------------------------------------------------------------------------------------ damage


DAMAGE = {
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-1000]),
    "empty": lambda path: path.write_bytes(b""),
    "a flipped byte": lambda path: path.write_bytes(flipped(path.read_bytes())),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


def flipped(content: bytes) -> bytes:
    at = content.index(b"theta.0") + 400
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.parametrize("how", ["cut off", "a flipped byte"])
def test_a_damaged_checkpoint_is_passed_over(folder, monkeypatch, whole, how):
    stop_at(monkeypatch, folder, 30)
    DAMAGE[how](folder / "run" / "checkpoint" / "chain-1.npz")
    outcome = command(folder, "run", "analysis.yaml", "--resume")
    assert outcome.code == 0
    assert "warning: checkpoint/chain-1.npz is damaged" in outcome.err
    assert "continuing from checkpoints: chain-1 at sweep 28" in outcome.err
    assert_same(folder / "run", whole)


@pytest.mark.parametrize("how", ["empty", "cut off"])
def test_where_all_is_damaged_the_chain_starts_anew(folder, monkeypatch, whole, how):
    """The same draws again: nothing but time is lost."""
    stop_at(monkeypatch, folder, 83)
    for path in (folder / "run" / "checkpoint").glob("chain-2*.npz"):
        DAMAGE[how](path)
    DAMAGE[how](folder / "run" / "checkpoint" / "run.npz")
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


@pytest.mark.parametrize("lost", ["run.npz", None])
def test_a_run_keeps_the_engine_that_auto_took(folder, monkeypatch, whole, lost):
    """Its chains know it too. Another version, or another machine, might take another one now."""
    stop_at(monkeypatch, folder, 30)
    if lost:
        DAMAGE["cut off"](folder / "run" / "checkpoint" / lost)
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


def test_the_run_of_a_version_with_fewer_keys_is_continued(folder, monkeypatch, whole):
    """A key that it did not know, and that is not given, changes nothing; nor for who continues it again."""
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


# ------------------------------------------------------------------------------------------------ the disk


def test_a_full_disk_ends_no_chain(folder, monkeypatch, whole):
    """Checkpoints cannot be written for a while: the user is told, the last good one stays, the run goes on."""
    write, calls = np.savez, [0]

    def full_for_a_while(file, **arrays):
        calls[0] += 1
        if 5 <= calls[0] < 9:
            raise OSError(28, "No space left on device")
        write(file, **arrays)

    monkeypatch.setattr(np, "savez", full_for_a_while)
    monkeypatch.setattr("mmgibbs.runs.progress_file.REPORT_EVERY", 0.001)
    outcome = command(folder, "run", "analysis.yaml")
    assert outcome.code == 0
    assert (
        "warning: chain-1: its checkpoint could not be written (No space left on device); the one of sweep 21 is kept"
        in outcome.err
    )
    assert "chain-1: its checkpoints can be written again" in outcome.err
    assert_same(folder / "run", whole)


@pytest.fixture
def disk(tmp_path):
    """A file system of its own, as a function of its size in kB, or 'ro': mounted (again), its files kept."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = []

    def mount(size):
        options = "remount,ro" if size == "ro" else f"{'remount,rw,' if mounted else ''}size={size}k"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True, text=True
        )
        if done.returncode:
            pytest.skip(f"needs the right to mount a tmpfs: {done.stderr.strip()}")
        mounted.append(size)
        return place

    if shutil.which("mount") is None:
        pytest.skip("needs mount")
    yield mount
    if mounted:
        subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_is_really_full(folder, disk, whole):
    """A tmpfs that takes a few checkpoints and no results."""
    there = ("--output", str(disk(56) / "run"))
    outcome = command(folder, "run", "analysis.yaml", *there)
    assert outcome.code == 2 and "could not be written (No space left on device)" in outcome.err
    assert_readable(outcome.err.split("\n", outcome.err.count("\n") - 2)[-1])
    kept = {p.name for p in (disk(56) / "run" / "checkpoint").iterdir()}
    assert "run.npz" in kept and not any(name.startswith(".") for name in kept)
    disk(2000)
    assert command(folder, *RUN, *there, "--resume").code == 0
    assert_same(disk(2000) / "run", whole)


def test_a_read_only_disk(folder, disk):
    run = disk(2000) / "run"
    assert command(folder, *RUN, "--output", str(run)).code == 0
    before = contents(run)
    disk("ro")
    for flag, new in (("--overwrite", "run"), ("--extend=10", "run"), ("--quiet", "other")):
        message = refused(folder, "--output", str(run.with_name(new)), flag)
        assert "Read-only file system" in message or "no permission" in message
    assert contents(run) == before


def test_a_folder_without_permission(folder, monkeypatch, tmp_path):
    (folder / "run").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "run")  # as root all is permitted
    assert "cannot be written: no permission to write in" in refused(folder)


def test_under_nohup_a_run_outlives_its_terminal(folder, monkeypatch, whole):
    """`nohup` has SIGHUP ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        at_sweep(monkeypatch, 17, lambda: os.kill(os.getpid(), signal.SIGHUP))
        assert command(folder, *RUN).code == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert_same(folder / "run", whole)


# ------------------------------------------------------------------------------------------------ data that change


def replaced_beside(path, content):
    """As editors and copying programs do: another file takes the place of this one."""
    path.with_name("new").write_bytes(content)
    os.replace(path.with_name("new"), path)


def written_over(path, content):
    """In place, and the time of the last change put back."""
    before = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("name", ["phenotypes.csv", "pedigree.csv"])
@pytest.mark.parametrize("change", [replaced_beside, written_over])
@pytest.mark.parametrize("resumed", [False, True])
def test_data_that_change_while_they_are_read_are_refused(folder, monkeypatch, name, change, resumed):
    """Else the checkpoints would go by the name of data that the run has not read, and be continued with them."""
    if resumed:
        stop_at(monkeypatch, folder, 30)
    read, path = mmgibbs.runs.run.read_problem, folder / name

    def read_and_change(*arguments):
        problem = read(*arguments)
        time.sleep(0.02)  # the clock of file systems has steps of some milliseconds
        change(path, path.read_bytes().replace(b"c1,", b"c2,") + b"\n")
        return problem

    before = contents(folder / "run") if resumed else None
    with monkeypatch.context() as patch:
        patch.setattr(mmgibbs.runs.run, "read_problem", read_and_change)
        outcome = command(folder, *RUN, *(["--resume"] if resumed else []))
    assert outcome.code == 2 and "Traceback" not in outcome.err, outcome
    assert outcome.err.startswith(f"{path}: was changed while the run read its data; needed files that stay")
    if resumed:
        now = contents(folder / "run")
        assert {k: v for k, v in now.items() if k != "run.log"} == {k: v for k, v in before.items() if k != "run.log"}
    else:
        assert not (folder / "run").exists()


def test_data_that_are_only_read_by_others_are_no_change(folder, monkeypatch):
    read = mmgibbs.runs.run.read_problem

    def read_again(*arguments):
        problem = read(*arguments)
        for name in ("phenotypes.csv", "pedigree.csv"):
            (folder / name).read_bytes()
        shutil.copy(folder / "pedigree.csv", folder / "copy.csv")
        return problem

    monkeypatch.setattr(mmgibbs.runs.run, "read_problem", read_again)
    assert command(folder, *RUN).code == 0


def test_a_lock_in_use_and_a_lock_that_is_gone(tmp_path):
    lock = FolderLock(tmp_path)
    with pytest.raises(ConfigError, match=rf"another run is writing .*\(process {os.getpid()} on .* since "):
        FolderLock(tmp_path)
    (tmp_path / LOCK).unlink()
    FolderLock(tmp_path).release()  # another file of this name is not the one that is locked
    lock.release()
    lock.release()
    FolderLock(tmp_path).release()
    assert not (tmp_path / LOCK).exists()


def test_the_log_may_be_removed_while_a_run_works(folder, monkeypatch):
    """It is not the lock: log files are rotated and tidied away."""
    said = []

    def act():
        (folder / "run" / "run.log").unlink()
        with pytest.raises(ConfigError, match="another run is writing"):
            RunFolder(load_config(folder / "analysis.yaml"), Console(False), overwrite=True)
        said.append("refused")

    at_sweep(monkeypatch, 3, act)
    monkeypatch.chdir(folder)
    assert command(folder, *RUN).code == 0
    assert said == ["refused"] and not (folder / "run" / LOCK).exists()


def test_a_lock_that_a_killed_run_has_left_means_nothing(folder):
    (folder / "run").mkdir()
    (folder / "run" / LOCK).write_text("1 on elsewhere\n")
    assert command(folder, *RUN).code == 0 and not (folder / "run" / LOCK).exists()


def test_a_lock_does_not_make_a_run_folder(folder):
    (folder / "run").mkdir()
    (folder / "run" / "thesis.txt").write_text("mine")
    assert "holds files that are not of a run (thesis.txt)" in refused(folder, "--overwrite")
    assert contents(folder / "run") == {"thesis.txt": b"mine"}


@pytest.mark.parametrize("name", ["run.log", "checkpoint", "run.json", "summary.csv", "report.html", ".writing", LOCK])
@pytest.mark.parametrize("flag", ["--overwrite", "--resume"])
def test_a_link_in_the_run_folder_is_not_followed(folder, name, flag, tmp_path):
    """A folder from someone else: the run would write to where it leads."""
    target = tmp_path / "mine"
    if name in ("checkpoint", ".writing"):
        target.mkdir()
        (target / "kept").write_text("mine")
    else:
        target.write_text("mine")
    (folder / "run").mkdir()
    (folder / "run" / name).symlink_to(target)
    outcome = command(folder, *RUN, flag)
    assert outcome.code == 2 and outcome.err.count("\n") == 1, outcome
    assert f"has a link in place of {name}" in outcome.err and "needed a directory without links" in outcome.err
    assert (target / "kept" if target.is_dir() else target).read_text() == "mine"


def test_a_run_folder_may_itself_be_a_link(folder, tmp_path):
    (tmp_path / "big disk").mkdir()
    (folder / "run").symlink_to(tmp_path / "big disk")
    assert command(folder, *RUN).code == 0
    assert (tmp_path / "big disk" / "run.json").is_file()


def test_every_change_of_a_setting_is_named():
    then = {"sampler.seed": "1", "sampler.stop.rhat": "1.01", "sampler.tolerance": "1e-08"}
    now = then | {"sampler.tolerance": "null"}
    assert changes({"analysis": now}, {"analysis": then}) == ["sampler.tolerance: was null, now 1e-08"]
    assert changes({"analysis": then}, {"analysis": then | {"sampler.stop.mcse": "null"}}) == []
    more = then | {"sampler.stop.mcse": "0.1"}
    assert changes({"analysis": then}, {"analysis": more}) == ["sampler.stop.mcse: was not there, now 0.1"]


def test_checkpoints_hold_nothing_else(folder):
    """The folder as a user finds it."""
    assert command(folder, *RUN).code == 0
    assert sorted(os.listdir(folder / "run" / "checkpoint")) == [
        "chain-1.npz", "chain-1.previous.npz", "chain-2.npz", "chain-2.previous.npz", "run.npz", "run.previous.npz",
    ]  # fmt: skip
    assert Checkpoints(folder / "run" / "checkpoint", "").names() == ["chain-1", "chain-2", "run"]
