"""Device memory of the chains of a regression and the least time of a sweep: counted by hand for small models, said by
`mmgibbs check`, and refused before a run where they do not fit.
"""

import re
import sys
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from helpers.hierarchical_tables import sampler as hierarchical
from helpers.hierarchical_tables import table
from helpers.host_device import HostDevice
from unit.regressions.test_horseshoe_device import sampler as horseshoe
from unit.regressions.test_lasso_device import sampler as lasso
from unit.regressions.test_multinomial_device import sampler as multinomial
from unit.regressions.test_multinomial_hmc_device import sampler as hmc

from mmgibbs.cli import main
from mmgibbs.errors import DeviceError
from mmgibbs.machine.device import explain_device_errors
from mmgibbs.regressions.arrays import gpu
from mmgibbs.regressions.device_memory import count_device
from mmgibbs.regressions.protocol import Keys

KEYS, C = Keys(1, (0, 1)), 2
NUMBERS = 2 * 4 * C  # bytes of the numbers of sweeps and chains, four each


def count_lasso_of_predictors():
    """n = 30, p = 5: Z'Z is half read, and three vectors; a matrix is half written, read and written, and half read."""
    p = 5
    data, state = 8 * p * p / 2 + 3 * 8 * p, 8 * C * (2 * p + 3)
    work = 8 * C * p + 4 * 8 * C * (p + 1) * p / 2 + 4
    return lasso(30, p), data + state + work, C * p**3 / 3


def count_lasso_of_rows():
    """n = 12, p = 20: H is written, and read for the matrix and for the draw."""
    n, p = 12, 20
    data, state = 8 * n * p + 8 * (p + p + n), 8 * C * (2 * p + 3)
    work = 8 * C * n + 3 * 8 * C * n * p + 4 * 8 * C * (n + 2) * n / 2 + 4
    return lasso(n, p), data + state + work, C * (n**3 / 3 + n * (n + 1) * p + 2 * 2 * n * p)


def count_horseshoe():
    """n = 50, p = 4: two pieces of rows, whose sums are written and read."""
    n, p, pieces = 50, 4, 2
    data, state = 8 * n * p + n + 8 * (p + 1) ** 2 / 2 + 2 * 8 * p, 8 * C * (3 * p + 5)
    work = 2 * 8 * C * pieces * (p + 2) + 8 * C + 8 * C * (p + 1) + 4 * 8 * C * (p + 2) * (p + 1) / 2 + 4
    return horseshoe(n, p), data + state + work, C * ((p + 1) ** 3 / 3 + 2 * 2 * n * p)


def count_multinomial():
    """n = 60, p = 4, three classes: all rows are read for each of two."""
    n, p, K1 = 60, 4, 2
    d, pieces = p + 1, 2
    data = K1 * 8 * n * p + 4 * n * K1 + 2 * 8 * p + 8 * K1 * d * d / 2 + 8 * K1 * d
    work = (K1 + 1) * 8 * C * K1 * n + K1 * 8 * C * pieces * (d + 1) * d + K1 * 8 * C * d
    work += K1 * 4 * 8 * C * (d + 1) * d / 2 + 4
    return multinomial(n, p), data + 8 * C * K1 * d + work, C * K1 * (n * (2 * d + d * (d + 1)) + d**3 / 3)


def count_hmc():
    """n = 40, p = 3, three classes: a leapfrog step by a mass matrix that all chains share."""
    n, p, K1 = 40, 3, 2
    d = p + 1
    data = 8 * n * p + 8 * K1 * d + 8 * (K1 * K1 + d * d)
    vectors = 3 + 2 * 2  # gradient, slopes and velocity are written, momentum and position change
    moved = data + 8 * C * K1 * d * vectors + 2 * 8 * C * K1 * d
    return hmc(), moved, C * K1 * (2 * 2 * n * d + 2 * d * (K1 + d))


def count_hierarchical():
    """70 rows, five groups of two predictors: what the groups' rows need is data, drawn by slice steps."""
    model = hierarchical(*table(np.random.default_rng(21)))
    n, G, q, d = 70, 5, 1, 3
    g = model.groups
    data = sum(getattr(g, name).nbytes for name in ("columns", "ptr", "centre", "factor", "reach", "fifth", "cross"))
    data += model.information.nbytes + 8 * (model.Z.size + model.W.size + model.U.size + model.eigenvalues.size)
    state, work = 8 * C * (q * d + d * d + G * d), 8 * C * (d * d + q * d + G * d)
    return model, data + state + work, C * n * 2 * d


COUNTS = {
    "lasso, p <= n": count_lasso_of_predictors,
    "lasso, n < p": count_lasso_of_rows,
    "horseshoe": count_horseshoe,
    "multinomial": count_multinomial,
    "HMC": count_hmc,
    "hierarchical": count_hierarchical,
}


@pytest.mark.parametrize("name", COUNTS)
def test_bytes_and_operations_of_a_sweep_by_hand(name):
    model, n_bytes, n_operations = COUNTS[name]()
    found = model.plan_device_chains(KEYS, 0, 1).count_sweep()
    assert (found.n_bytes, found.n_operations) == (int(n_bytes + NUMBERS * (name != "HMC")), int(n_operations))
    assert found.unit == ("a leapfrog step of all chains" if name == "HMC" else "a sweep of all chains")


class IdleKernels(HostDevice):
    """A device whose kernels are never launched."""

    def instances(self, source, names, cooperative=False):
        return dict.fromkeys(names)


@pytest.mark.parametrize("name", COUNTS)
def test_memory_is_counted_without_a_device(name):
    """What the chains allocate when they start, each buffer rounded up; one byte less is too little, as bytes."""
    model = COUNTS[name]()[0]
    chains, device = model.plan_device_chains(KEYS, 0, 1), IdleKernels(())
    said = chains.count_bytes()
    allocated = []
    device.zeros = lambda shape, dtype, stream: (
        allocated.append(HostDevice.zeros(device, shape, dtype, stream)) or allocated[-1]
    )
    device.free = said - 1
    needed = f"found {said - 1:,} bytes free on the device, needed {said:,} for"
    with pytest.raises(DeviceError, match=f"{needed} the sampler; {re.escape(chains.remedy)}"):
        chains.open(device)
    data = SimpleNamespace(predictors=model.X if hasattr(model, "X") else model.predictors)
    with pytest.raises(DeviceError, match=f"{needed} 2 chains; {re.escape(chains.remedy)}"):
        count_device(model, data, device, KEYS, 0, 1)
    assert not device.asked
    device.free = said
    chains.open(device)
    assert sum(-(-array.nbytes // 512) * 512 for array in allocated) == said
    counts = count_device(model, data, device, KEYS, 0, 1)
    assert counts["bytes"] == said and counts["bound"]["seconds_at_least"] == chains.count_sweep().n_bytes / 1e12


def test_array_operations_need_at_least_the_predictors():
    model = horseshoe(20, 30)
    counts = count_device(model, SimpleNamespace(predictors=model.X), HostDevice(()), KEYS, 0, 1)
    assert counts == {"name": "this host", "free_bytes": 1 << 40, "bytes_at_least": 8 * 20 * 30}


class OutOfMemoryError(MemoryError):
    """What CuPy raises."""


def test_arrays_that_do_not_fit_are_no_bug_of_the_program(monkeypatch):
    cuda = SimpleNamespace(memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    message = r"too little memory \(Out of memory allocating 800 bytes\); use fewer"
    with pytest.raises(DeviceError, match=message), explain_device_errors():
        raise OutOfMemoryError("Out of memory allocating 800 bytes")


# ---------------------------------------------------------------------------------------------------------------- runs

PLUGINS = {
    "bayesian_lasso": "response: gain",
    "horseshoe_probit": "response: ill",
    "multinomial_pg": "response: score",
    "multinomial_hmc": "response: score",
    "hierarchical_slice": "response: ill, groups: herd",
}


@pytest.fixture
def device(monkeypatch):
    """The device that a run finds."""
    made = IdleKernels(())
    made.cupy = np
    made.kernels = lambda text: None
    monkeypatch.setattr(gpu, "Device", lambda: made)
    return made


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng, n = np.random.default_rng(4), 60
    columns = {"gain": rng.normal(10, 2, n), "ill": rng.integers(0, 2, n), "score": rng.integers(1, 4, n)}
    columns |= {"herd": [f"h{i % 4}" for i in range(n)]} | {f"x{j}": rng.normal(size=n) for j in range(3)}
    pl.DataFrame(columns).write_csv(tmp_path / "table.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_analysis(folder, plugin):
    (folder / "a.yaml").write_text(
        "name: small\ndata: {phenotypes: table.csv}\n"
        f"model: {{plugin: {plugin}, {PLUGINS[plugin]}, predictors: [x0, x1, x2]}}\n"
        "sampler: {chains: 2, burn_in: 4, samples: 20, thin: 1, device: gpu}\noutput: {directory: run}\n"
    )


@pytest.mark.parametrize("plugin", PLUGINS)
def test_check_says_memory_and_the_least_time_of_a_sweep(plugin, folder, device, capsys):
    write_analysis(folder, plugin)
    assert main(["check", "a.yaml"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("device ")]
    unit = "a leapfrog step" if plugin == "multinomial_hmc" else "a sweep"
    number = "[0-9,]+"
    assert re.fullmatch(
        f"device this host: {1 << 40:,} bytes free, {number} bytes needed; {unit} of all chains moves {number} bytes "
        f"in {number} operations, at least [0-9.e-]+ ms at the nominal 1,000 GB/s \\(not measured\\)",
        line,
    )


def test_check_says_what_array_operations_need_at_least(folder, device, capsys, monkeypatch):
    write_analysis(folder, "horseshoe_probit")
    monkeypatch.setattr("mmgibbs.regressions.device_memory.has_device_kernels", lambda sampler: False)
    assert main(["check", "a.yaml"]) == 0
    line = f"device this host: {1 << 40:,} bytes free, at least {8 * 60 * 3:,} bytes needed, for the predictors"
    assert line in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("plugin, command", [*((name, "check") for name in PLUGINS), ("multinomial_pg", "run")])
def test_too_little_memory_is_said_before_the_run_in_bytes(plugin, command, folder, device, capsys):
    device.free = 1000
    write_analysis(folder, plugin)
    assert main([command, "a.yaml"]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "device: gpu" in line]
    assert re.match(r"device: gpu: found 1,000 bytes free on the device, needed [\d,]+ for 2 chains; use ", line)
    assert not device.asked and not (folder / "run" / "run.json").exists()
