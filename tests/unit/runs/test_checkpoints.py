"""Checkpoint files: whatever happens to them, what is read is whole, or it is not read."""

import os

import numpy as np
import pytest

from mmgibbs.runs.checkpoints import Checkpoints, CheckpointWriter

STATE = {
    "theta.0": np.arange(12, dtype=np.float32).reshape(4, 3),
    "R": np.array([[np.nan, -0.0], [np.inf, 1e-320]]),
    "number": np.array(7),
    "none": np.empty((0, 2)),
    "words": np.arange(5, dtype=np.uint32),
}


@pytest.fixture
def checkpoints(tmp_path):
    return Checkpoints(tmp_path, "this run")


def same(found, state):
    assert found.keys() == state.keys()
    for name, array in state.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()


def test_a_state_comes_back_bit_for_bit(checkpoints):
    assert checkpoints.read("chain-1") == (None, {})
    checkpoints.write("chain-1", STATE, {"sweep": 7, "who": "Ä"})
    found, useless = checkpoints.read("chain-1")
    same(found.arrays, STATE)
    assert found.facts == {"sweep": 7, "who": "Ä"} and useless == {}
    with np.load(checkpoints.path("chain-1")) as file:  # nothing but NumPy is needed to look into it
        assert "theta.0" in file.files


def test_the_one_before_is_kept_and_nothing_else(checkpoints):
    for sweep in (1, 2, 3):
        checkpoints.write("chain-1", STATE | {"number": np.array(sweep)}, {"sweep": sweep})
    assert sorted(os.listdir(checkpoints.folder)) == ["chain-1.npz", "chain-1.previous.npz"]
    assert checkpoints.read("chain-1")[0].facts["sweep"] == 3
    checkpoints.path("chain-1").unlink()
    assert checkpoints.read("chain-1")[0].facts["sweep"] == 2


@pytest.mark.parametrize("step", ["write", "fsync", "first rename", "second rename"])
def test_a_write_that_fails_leaves_what_was_there(checkpoints, monkeypatch, step):
    checkpoints.write("chain-1", STATE, {"sweep": 1})
    checkpoints.write("chain-1", STATE, {"sweep": 2})
    replace, calls = os.replace, []

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    def fail_at(source, target):
        calls.append(target)
        return fail() if len(calls) == (1 if step == "first rename" else 2) else replace(source, target)

    name, broken = {"write": ("numpy.savez", fail), "fsync": ("os.fsync", fail)}.get(step, ("os.replace", fail_at))
    monkeypatch.setattr(name, broken)
    with pytest.raises(OSError, match="No space left"):
        checkpoints.write("chain-1", STATE, {"sweep": 3})
    monkeypatch.undo()
    assert checkpoints.read("chain-1")[0].facts["sweep"] == 2
    assert not list(checkpoints.folder.glob(".*"))
    checkpoints.write("chain-1", STATE, {"sweep": 4})
    assert checkpoints.read("chain-1")[0].facts["sweep"] == 4


def test_a_file_that_was_cut_off_is_passed_over(checkpoints):
    for sweep in (1, 2):
        checkpoints.write("chain-1", STATE, {"sweep": sweep})
    path = checkpoints.path("chain-1")
    whole = path.read_bytes()
    for size in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        found, useless = checkpoints.read("chain-1")
        assert found.facts == {"sweep": 1} and list(useless) == [path] and "is damaged" in useless[path]
    checkpoints.previous("chain-1").write_bytes(b"")
    found, useless = checkpoints.read("chain-1")
    assert found is None and len(useless) == 2


def test_a_flipped_byte_is_found_wherever_it_matters(checkpoints):
    """Some bytes of the container mean nothing (times, padding): there the state must be unharmed."""
    checkpoints.write("chain-1", STATE, {"sweep": 1})
    path = checkpoints.path("chain-1")
    whole, found_out = path.read_bytes(), 0
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
        found, _ = checkpoints.read("chain-1")
        if found is None:
            found_out += 1
        else:
            same(found.arrays, STATE)
            assert found.facts == {"sweep": 1}
    assert found_out > 0.5 * len(range(0, len(whole), 7))


def test_an_array_put_in_by_hand_is_found_out(checkpoints):
    """The container is whole and every part of it too, but not what was written."""
    checkpoints.write("chain-1", STATE, {"sweep": 1})
    with np.load(checkpoints.path("chain-1")) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(checkpoints.path("chain-1"), **arrays | {"words": np.arange(1, 6, dtype=np.uint32)})
    found, useless = checkpoints.read("chain-1")
    assert found is None and "its checksum does not fit" in next(iter(useless.values()))


def test_a_state_of_another_run_or_format_is_not_read(checkpoints, monkeypatch):
    Checkpoints(checkpoints.folder, "another run").write("chain-1", STATE, {})
    assert list(checkpoints.read("chain-1")[1].values()) == ["is of another run"]
    monkeypatch.setattr("mmgibbs.runs.checkpoints.FORMAT", 99)
    checkpoints.write("chain-1", STATE, {})
    monkeypatch.undo()
    assert "has format 99, needed 1" in checkpoints.read("chain-1")[1][checkpoints.path("chain-1")]


class Dangerous:
    def __reduce__(self):
        return os.mkdir, ("code-ran",)


def test_no_code_runs_from_a_checkpoint(checkpoints, monkeypatch):
    monkeypatch.chdir(checkpoints.folder)
    np.savez(checkpoints.path("chain-1"), facts=np.array([Dangerous()], dtype=object))
    found, useless = checkpoints.read("chain-1")
    assert found is None and "is damaged" in useless[checkpoints.path("chain-1")]
    assert not (checkpoints.folder / "code-ran").exists()


def test_clearing(checkpoints):
    checkpoints.write("chain-1", STATE, {})
    checkpoints.write("chain-1", STATE, {})
    left = checkpoints.folder / ".chain-1.4711.npz"
    left.write_bytes(b"half")
    checkpoints.clear_unfinished()
    assert not left.exists() and checkpoints.path("chain-1").exists()
    checkpoints.remove_all()
    assert not checkpoints.folder.exists()


def test_a_file_of_another_name_is_no_checkpoint(checkpoints):
    """A user may keep arrays of their own in the folder."""
    checkpoints.write("chain-1", STATE, {})
    own = [checkpoints.folder / name for name in ("genotypes.npz", ".hidden.npz", "chain-one.npz")]
    for path in own:
        path.write_bytes(b"a user's")
    assert checkpoints.names() == ["chain-1"]
    checkpoints.clear_unfinished()
    checkpoints.remove_all()
    assert sorted(checkpoints.folder.iterdir()) == sorted(own)


def test_a_keeper_writes_when_due_and_tells(checkpoints, monkeypatch):
    told = []
    every = Checkpoints(checkpoints.folder, "this run", 10, "sweeps")
    keeper = CheckpointWriter(every, "chain-1", 5, lambda sweep, error: told.append((sweep, error)))
    assert not keeper.due(14) and keeper.due(15)
    keeper.save(15, STATE, {})
    keeper.save(15, STATE, {})  # is there already
    assert told == [(15, None)] and not keeper.due(24) and keeper.due(25)
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    keeper.save(25, STATE, {})
    assert told[1][0] == 15 and "No space" in str(told[1][1])
    assert not keeper.due(34) and keeper.due(35)  # it is tried again, though not at every sweep
    monkeypatch.undo()
    keeper.save(35, STATE, {"seconds": 1.5})
    assert told[2] == (35, None) and every.read("chain-1")[0].facts == {"sweep": 35, "seconds": 1.5}


@pytest.mark.parametrize(("asked", "between"), [(5.0, (1, 2, 4, 5, 5)), (0.5, (0.5, 0.5))])
def test_a_keeper_by_the_clock(checkpoints, monkeypatch, asked, between):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    keeper = CheckpointWriter(Checkpoints(checkpoints.folder, "", asked, "minutes"), "chain-1", 0, lambda *_: None)
    for sweep, minutes in enumerate(between, 1):
        now[0] += 60 * minutes - 1
        assert not keeper.due(10**6), minutes
        now[0] += 2
        assert keeper.due(1), minutes
        keeper.save(sweep, STATE, {})
