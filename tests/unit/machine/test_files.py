"""Files that are complete or not there."""

import hashlib
import os
from pathlib import Path

import pytest

from mmgibbs.machine.files import WORK, flush_and_hash, replaced_file, replaced_files, sha256_of_file


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_checksums_are_those_of_other_programs(tmp_path):
    for name, content in (("empty", b""), ("large", bytes(3_000_000))):
        (tmp_path / name).write_bytes(content)
        assert sha256_of_file(tmp_path / name) == hashlib.sha256(content).hexdigest()
    found = flush_and_hash(sorted(tmp_path.iterdir()))
    assert {name: of["bytes"] for name, of in found.items()} == {"empty": 0, "large": 3_000_000}


@pytest.mark.parametrize("earlier", [None, "earlier"])
def test_a_file_is_replaced_when_it_is_complete(tmp_path, earlier):
    path = tmp_path / "a"
    if earlier is not None:
        path.write_text(earlier)
    before = contents(tmp_path)
    with pytest.raises(KeyboardInterrupt), replaced_file(path) as new:
        new.write_text("half")
        assert contents(tmp_path).get("a") == earlier
        raise KeyboardInterrupt
    assert contents(tmp_path) == before
    with replaced_file(path) as new:
        new.write_text("whole")
    assert contents(tmp_path) == {"a": "whole"}


def fill(folder, names, text):
    with replaced_files(folder, ("a", "b", "c")) as work:
        for name in names:
            (work / name).write_text(text)


def test_files_are_replaced_together(tmp_path):
    folder = tmp_path / "out"
    fill(folder, "ab", "1")
    (folder / "mine").write_text("stays")
    fill(folder, "bc", "2")
    assert contents(folder) == {"b": "2", "c": "2", "mine": "stays"}  # a is of an earlier state
    with pytest.raises(ValueError, match="no"), replaced_files(folder, ("a", "b", "c")) as work:
        (work / "a").write_text("3")
        raise ValueError("no")
    assert contents(folder) == {"b": "2", "c": "2", "mine": "stays"}


@pytest.mark.parametrize("number", range(5))
def test_what_cannot_be_moved_leaves_all_as_it_was(tmp_path, monkeypatch, number):
    fill(tmp_path, "abc", "1")
    rename, count = Path.rename, [0]

    def refuses_once(self, target):
        count[0] += 1
        if count[0] == number + 1:
            raise PermissionError(13, "not now", str(self))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuses_once)
    with pytest.raises(PermissionError):
        fill(tmp_path, "ab", "2")
    assert contents(tmp_path) == dict.fromkeys("abc", "1")


@pytest.mark.parametrize("number", range(5))
def test_an_end_between_two_renames_loses_nothing(tmp_path, number):
    """The process is killed: what it had begun is finished by the next one."""
    fill(tmp_path, "abc", "1")
    pid = os.fork() if hasattr(os, "fork") else pytest.skip("needs fork")
    if pid == 0:
        rename, count = Path.rename, [0]

        def ends(self, target):
            if count[0] == number:
                os._exit(0)
            count[0] += 1
            return rename(self, target)

        Path.rename = ends
        fill(tmp_path, "abc", "2")
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    kept = {p.name: p.read_text() for p in tmp_path.iterdir() if p.is_file()}
    waiting = {p.name: p.read_text() for p in (tmp_path / WORK).iterdir() if p.is_file()}
    assert (waiting | kept).keys() == set("abc")
    with pytest.raises(ZeroDivisionError), replaced_files(tmp_path, "abc"):
        raise ZeroDivisionError  # a next attempt, which fails: what was begun is complete all the same
    assert contents(tmp_path) == dict.fromkeys("abc", "2")
