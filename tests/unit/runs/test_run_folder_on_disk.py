"""The folder of a run on a disk that is full, read only or shared: data that change, locks, links.

A run that goes on ends with the draws of the run in one go.
"""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from helpers.kept_runs import RUN, assert_same, at_sweep, stop_at
from helpers.small_analysis import assert_readable, command, contents, refused

import mmgibbs.runs.run
from mmgibbs.config import load_config
from mmgibbs.errors import ConfigError
from mmgibbs.machine.files import sha256_of_file
from mmgibbs.results.folder import LOCK
from mmgibbs.runs.fingerprint import changes
from mmgibbs.runs.lock import FolderLock
from mmgibbs.runs.place import RunFolder
from mmgibbs.runs.progress import Console

pytestmark = pytest.mark.usefixtures("one_core")


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
    before = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    ("name", "change", "resumed"),
    [
        ("phenotypes.csv", replaced_beside, False),
        ("pedigree.csv", written_over, False),
        ("pedigree.csv", written_over, True),
    ],
)
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
    (folder / "run" / LOCK).write_text("1 on elsewhere since 2026-11-29 10:00:00\n")
    assert command(folder, *RUN).code == 0 and not (folder / "run" / LOCK).exists()


@pytest.mark.parametrize("name", ["run.log", "checkpoint", "run.json", "summary.csv", "report.html", ".writing", LOCK])
def test_a_link_in_the_run_folder_is_not_followed(folder, name, tmp_path):
    """A folder from someone else: the run would write to where it leads."""
    target = tmp_path / "mine"
    if name in ("checkpoint", ".writing"):
        target.mkdir()
        (target / "kept").write_text("mine")
    else:
        target.write_text("mine")
    (folder / "run").mkdir()
    (folder / "run" / name).symlink_to(target)
    outcome = command(folder, *RUN, "--resume" if name == "checkpoint" else "--overwrite")
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


def test_a_run_knows_the_contents_of_its_files(folder):
    """run.json has their SHA-256; of data frames, which are gone later, there is none."""
    result = mmgibbs.run(folder / "analysis.yaml", directory=folder / "files", progress=False)
    source = {"phenotypes": folder / "phenotypes.csv", "pedigree": folder / "pedigree.csv"}
    assert result.info["data_files"] == {f"data.{name}": sha256_of_file(path) for name, path in source.items()}
    analysis = yaml.safe_load((folder / "analysis.yaml").read_text(encoding="utf-8"))
    analysis["data"] |= {name: pl.read_csv(path) for name, path in source.items()}
    assert mmgibbs.run(analysis, directory=folder / "frames", progress=False).info["data_files"] == {}
