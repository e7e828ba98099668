"""`device: gpu` in an analysis file: what a user hears where there is none, and where the matrix does not fit on it."""

import importlib.abc
import sys

import numpy as np
import pytest
from helpers.small_analysis import ANALYSIS, command, refused, replaced, with_proper_priors, write_files
from reference.fake_device import FakeDevice

import mmgibbs.build.device_memory
import mmgibbs.build.engine
from mmgibbs.engines.hybrid import engine as hybrid
from mmgibbs.engines.hybrid.device import DeviceUpdates
from mmgibbs.machine.device import DeviceMemoryError

GPU = "chains: 2, burn_in: 2, samples: 6, thin: 1, interweave: false, device: gpu, engine: "


class NoCupy(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "cupy":
            raise ModuleNotFoundError("No module named 'cupy'")


def analysis(engine: str):
    return {"analysis.yaml": with_proper_priors(replaced(ANALYSIS, "method: blup", GPU + engine))}


@pytest.mark.parametrize("engine", ["hybrid", "structured", "auto"])
@pytest.mark.parametrize("what", ["run", "check"])
def test_without_a_gpu_the_message_says_what_is_missing_and_how_to_get_it(tmp_path, monkeypatch, engine, what):
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(sys, "meta_path", [NoCupy(), *sys.meta_path])
    write_files(tmp_path, analysis(engine))
    message = refused(tmp_path, run=(what, "analysis.yaml", *(["--quiet"] if what == "run" else [])))
    assert message.startswith("device: gpu needs CuPy") and 'pip install "mmgibbs[gpu]"' in message
    assert message.endswith("or use device: cpu")


def run_on_a_device(folder, monkeypatch):
    """Two chains of the hybrid engine on stand-ins for a device."""
    folder.mkdir()
    monkeypatch.setattr(mmgibbs.build.engine, "import_cupy", lambda: None)
    monkeypatch.setattr(hybrid, "Device", lambda: FakeDevice(folder))
    monkeypatch.setattr(mmgibbs.build.device_memory, "Device", lambda: FakeDevice(folder))
    write_files(folder, analysis("hybrid"))
    outcome = command(folder, "run", "analysis.yaml")
    assert outcome.code == 0 and outcome.record["device"] == "gpu"
    return outcome


def test_a_matrix_that_does_not_fit_is_streamed_and_said_to_be(tmp_path, monkeypatch):
    """The chains are those of a device with room; run.json says what happened, once for all chains."""

    def refuse(self, block_slice):
        raise DeviceMemoryError

    plain = run_on_a_device(tmp_path / "roomy", monkeypatch)
    monkeypatch.setattr(DeviceUpdates, "_allocate_lists", refuse)
    with pytest.warns(RuntimeWarning, match="copied there in every sweep"):
        tight = run_on_a_device(tmp_path / "tight", monkeypatch)
    said = [sum("does not fit on the device" in note for note in run.record["notes"]) for run in (plain, tight)]
    log = (tight.folder / "run" / "run.log").read_text()
    assert said == [0, 1] and "does not fit on the device" in log
    np.testing.assert_array_equal(tight.solutions["mean"].to_numpy(), plain.solutions["mean"].to_numpy())
