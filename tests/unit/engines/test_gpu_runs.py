"""Runs with `device: gpu` from their files, on kernels compiled by g++: memory, a lost device, another device."""

import os
import signal
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.host_device import HostDevice
from helpers.kept_runs import assert_same, found_in
from helpers.small_analysis import ANALYSIS, command, refused, replaced, with_proper_priors, write_files
from unit.engines.test_resident_variances import MODELS, chains, sampled_example, schedule_of

import mmgibbs.build.device_memory
import mmgibbs.build.engine
from mmgibbs.engines.coloured_gpu.sizes import bytes_per_sweep, resident_bytes
from mmgibbs.machine.device import DeviceMemoryError

SAMPLER = "chains: {}, burn_in: 4, samples: 20, thin: 1, checkpoint_every: 6, engine: structured, device: {}"


def analysis(device, n_chains=1):
    sampled = replaced(ANALYSIS, "method: blup", SAMPLER.format(n_chains, device))
    return {"analysis.yaml": with_proper_priors(sampled)}


@pytest.fixture
def device(shim, monkeypatch):
    """The device that every engine built from now on sees, each by a connection of its own."""
    first = HostDevice(shim("double"))

    def connect():
        made = HostDevice(shim("double"))
        made.launched, made.asked, made.free = first.launched, first.asked, first.free
        return made

    monkeypatch.setattr(mmgibbs.build.engine, "import_cupy", lambda: None)
    monkeypatch.setattr(mmgibbs.build.device_memory, "Device", connect)
    monkeypatch.setattr("mmgibbs.machine.gpu_queue.Device", connect)
    return first


class CUDARuntimeError(RuntimeError):
    """What CuPy raises."""


@pytest.fixture
def failing(device, monkeypatch):
    """failing(n): the device is lost when it is given its n-th kernel from now on, and answers nothing more."""
    cuda = SimpleNamespace(
        runtime=SimpleNamespace(CUDARuntimeError=CUDARuntimeError),
        driver=SimpleNamespace(CUDADriverError=OSError),
        memory=SimpleNamespace(OutOfMemoryError=DeviceMemoryError),
    )
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))

    def fail_at(n):
        def raise_from(name):
            last = len(device.launched) + n
            whole = getattr(HostDevice, name)

            def work(self, *arguments, **options):
                if len(device.launched) >= last:
                    raise CUDARuntimeError("cudaErrorECCUncorrectable: uncorrectable ECC error encountered")
                return whole(self, *arguments, **options)

            monkeypatch.setattr(HostDevice, name, work)

        for name in ("download", "upload", "graph", "zeros"):
            raise_from(name)

    return fail_at


@pytest.mark.parametrize(("n_chains", "kernels"), [(1, 600), (2, 1000)])
def test_a_lost_device_ends_the_run_with_its_checkpoint_kept(tmp_path, device, failing, monkeypatch, n_chains, kernels):
    """The run goes on from there on the CPU, to the results of a run that was never interrupted."""
    write_files(tmp_path / "whole", analysis("cpu", n_chains))
    whole = command(tmp_path / "whole", "run", "analysis.yaml")
    folder = tmp_path / "lost"
    write_files(folder, analysis("gpu", n_chains))
    failing(kernels)
    lost = command(folder, "run", "analysis.yaml", "--quiet")
    assert lost.code == 2
    said, kept = lost.err.strip().splitlines()
    assert said.startswith("device: gpu: the device does not answer any more (cudaErrorECCUncorrectable")
    assert "device: cpu" in said and kept.endswith("continues from them")
    monkeypatch.delitem(sys.modules, "cupy")
    resumed = command(folder, "run", "analysis.yaml", "--resume", "--set", "sampler.device=cpu")
    assert resumed.code == 0, resumed.err
    assert resumed.record["begun"] == "resumed" and resumed.record["device"] == "cpu"
    assert_same_solutions(resumed, whole)


def assert_same_solutions(one, other):
    for column in ("mean", "sd"):
        a, b = (run.solutions[column].to_numpy() for run in (one, other))
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8 * np.abs(b).max())


@pytest.mark.parametrize("first", ["cpu", "gpu"])
def test_a_run_is_extended_on_the_other_device(tmp_path, first, device):
    other = {"cpu": "gpu", "gpu": "cpu"}[first]
    for name, begun_on in (("here", first), ("there", other)):
        write_files(tmp_path / name, analysis(begun_on))
        assert command(tmp_path / name, "run", "analysis.yaml").code == 0
    extended = [
        command(tmp_path / name, "run", "analysis.yaml", "--extend", "10", "--set", f"sampler.device={other}")
        for name in ("here", "there")
    ]
    assert [run.code for run in extended] == [0, 0], extended[0].err
    assert [run.record["device"] for run in extended] == [other, other]
    assert_same_solutions(*extended)


def test_check_says_memory_and_the_bound_of_a_sweep(tmp_path, device):
    write_files(tmp_path, analysis("gpu"))
    said = command(tmp_path, "check", "analysis.yaml").out
    (line,) = [line for line in said.splitlines() if line.startswith("device ")]
    assert line.startswith("device this host: 1,099,511,627,776 bytes free, ") and " bytes needed; a sweep of" in line
    assert line.endswith(" ms at the nominal 1,000 GB/s (not measured)")


@pytest.mark.parametrize("what", ["run", "check"])
def test_too_little_memory_is_said_before_the_run_in_bytes(tmp_path, device, what):
    device.free = 70_000
    write_files(tmp_path, analysis("gpu"))
    message = refused(tmp_path, run=(what, "analysis.yaml", *(["--quiet"] if what == "run" else [])))
    assert message.startswith("device: gpu: found 70,000 bytes free on the device, needed ")
    assert device.launched == [] and "allocate" not in device.asked


MEMORY = {
    **{name: MODELS[name] for name in ("covariates", "three traits, five components")},
    "half-t priors of residual classes": MODELS["half-t priors of residual classes"],
    "a dense block": lambda: sampled_example("single_step_maternal"),
}


@pytest.mark.parametrize("name", MEMORY)
def test_memory_is_bounded_from_above(name, shim, monkeypatch):
    """What a chain allocates with its moments: as said, and the rounding of its buffers less."""
    allocated, zeros = [], HostDevice.zeros

    def count(self, shape, dtype, stream):
        array = zeros(self, shape, dtype, stream)
        allocated.append(-(-array.nbytes // 512) * 512)
        return array

    monkeypatch.setattr(HostDevice, "zeros", count)
    model = MEMORY[name]()
    _, chain = chains(model, shim("double"), schedule_of(model))
    chain.advance(33)
    chain.result()
    said, terms = resident_bytes(chain.engine.equations, chain.schedule.interweave), len(model.design.terms)
    assert sum(allocated) <= said <= 1.5 * sum(allocated) + 65_536 * terms
    assert bytes_per_sweep(chain.engine.equations) < said


def test_chains_side_by_side_draw_as_each_alone(tmp_path, device):
    """Three at once, then two and one, then one after another, as memory allows."""
    runs = []
    for at_once in (3, 2, 1):
        folder = tmp_path / str(at_once)
        write_files(folder, analysis("gpu", 3))
        if at_once < 3:
            device.free = at_once * needed_bytes(folder) + 100
        runs.append(command(folder, "run", "analysis.yaml", "--quiet"))
        assert runs[-1].code == 0, runs[-1].err
        assert runs[-1].record.get("chains_at_once", 1) == at_once
    found = found_in(runs[0].folder / "run")
    assert not np.array_equal(*found["draws"]["posterior/residual.var[birth_weight]"][:2])
    for other in runs[1:]:
        assert_same(other.folder / "run", found)


def needed_bytes(folder):
    said = command(folder, "check", "analysis.yaml").out
    (line,) = [line for line in said.splitlines() if line.startswith("device ")]
    return int(line.split(" bytes needed")[0].split()[-1].replace(",", ""))


def test_chains_side_by_side_stop_together_and_continue(tmp_path, device, monkeypatch):
    write_files(tmp_path / "whole", analysis("gpu", 2))
    whole = command(tmp_path / "whole", "run", "analysis.yaml", "--quiet")
    write_files(tmp_path / "stopped", analysis("gpu", 2))
    launch, sweeps = HostDevice.graph, []

    def interrupt(self, work, stream):
        repeat = launch(self, work, stream)

        def counted():
            sweeps.append(1)
            if len(sweeps) == 20:
                os.kill(os.getpid(), signal.SIGINT)
            repeat()

        return counted

    monkeypatch.setattr(HostDevice, "graph", interrupt)
    stopped = command(tmp_path / "stopped", "run", "analysis.yaml", "--quiet")
    assert stopped.code == 130 and "stopped by SIGINT after sweep" in stopped.err, stopped.err
    monkeypatch.setattr(HostDevice, "graph", launch)
    resumed = command(tmp_path / "stopped", "run", "analysis.yaml", "--resume", "--quiet")
    assert resumed.code == 0, resumed.err
    assert_same(resumed.folder / "run", found_in(whole.folder / "run"))
