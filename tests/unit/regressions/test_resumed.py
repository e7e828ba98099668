"""Regressions that pause and go on, and their runs that are stopped:
the draws of a run in one go, bit for bit, for every plugin.
"""

import json
import os
import signal

import numpy as np
import polars as pl
import pytest
import xarray
import yaml

from mmgibbs.cli import main
from mmgibbs.regressions.estimator import make_arrays
from mmgibbs.regressions.loop import SideBySideChains
from mmgibbs.regressions.options import fill_options
from mmgibbs.regressions.predictors import read_predictors
from mmgibbs.regressions.protocol import Keys, RegressionData
from mmgibbs.regressions.registry import find_plugin, plugin_names
from mmgibbs.runs.checkpoints import Checkpoints
from mmgibbs.runs.fingerprint import settings

RNG = np.random.default_rng(17)
N, BURN_IN, SAMPLES = 60, 9, 13
X = RNG.normal(size=(N, 3))
BINARY = np.where(X[:, 0] + RNG.normal(size=N) > 0, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.argmax(np.c_[X[:, :2], RNG.normal(size=N)] + RNG.normal(size=(N, 3)), 1)]
RESPONSES = {
    "bayesian_lasso": X[:, 0] - X[:, 2] + RNG.normal(size=N),
    "horseshoe_probit": BINARY,
    "multinomial_hmc": THREE,
    "multinomial_pg": THREE,
    "hierarchical_slice": BINARY,
}
KEYS = Keys(3, (0, 1))


def run_of(name, options=()):
    plugin, arrays = find_plugin(name), make_arrays("cpu", 1)
    groups = np.repeat(np.arange(6), N // 6) if name == "hierarchical_slice" else None
    data = RegressionData(read_predictors(X), RESPONSES[name], "y", groups)
    return lambda state=None: SideBySideChains(
        plugin.prepare(data, fill_options(plugin.Options, dict(options)), arrays), arrays, KEYS, BURN_IN, 2, state
    )


def test_every_built_in_plugin_is_here():
    assert set(RESPONSES) == {name for name in plugin_names() if find_plugin(name).__module__.startswith("mmgibbs.")}


@pytest.mark.parametrize("name", RESPONSES)
def test_the_same_draws(name, tmp_path):
    make, checkpoints = run_of(name), Checkpoints(tmp_path, "")
    whole = make()
    whole.advance(BURN_IN + SAMPLES)
    chains = make()
    for pause in (4, 12, 15):  # in burn-in, where step sizes still adapt, at a sweep that is not kept, at one that is
        chains.advance(BURN_IN + SAMPLES, lambda now, pause=pause: now.number == pause)
        assert chains.number == pause
        checkpoints.write("chains", chains.state(), {})
        chains = make(checkpoints.read("chains")[0].arrays)
    chains.advance(BURN_IN + SAMPLES)
    one, other = chains.result(), whole.result()
    assert one.sweeps == other.sweeps == 22 and one.seconds > 0
    for kept in ("draws", "statistics"):
        assert getattr(one, kept).keys() == getattr(other, kept).keys()
        for what, values in getattr(other, kept).items():
            np.testing.assert_array_equal(getattr(one, kept)[what], values, err_msg=what)


ANALYSIS = """\
name: lasso
data: {phenotypes: table.csv}
model: {plugin: bayesian_lasso, response: y, predictors: [x0, x1, x2]}
sampler: {chains: 2, burn_in: 10, samples: 40, thin: 2, seed: 3, threads: 1, checkpoint_every: 8}
output: {directory: run}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"y": RESPONSES["bayesian_lasso"]} | {f"x{j}": X[:, j] for j in range(3)}).write_csv("table.csv")
    (tmp_path / "a.yaml").write_text(ANALYSIS)
    return tmp_path


def draws(run):
    with xarray.open_datatree(run / "draws.nc", engine="h5netcdf") as tree:
        return {name: v.values for name, v in tree["posterior"].data_vars.items()}


def stop_at(monkeypatch, number):
    from mmgibbs.regressions import lasso

    sampler = next(
        v for v in vars(lasso).values() if isinstance(v, type) and hasattr(v, "step") and hasattr(v, "start")
    )
    step = sampler.step

    def stops(self, state, sweep, keys):
        if sweep == number:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(self, state, sweep, keys)

    monkeypatch.setattr(sampler, "step", stops)


def test_a_regression_that_is_stopped_goes_on(folder, monkeypatch, capsys):
    arguments = ["run", "a.yaml", "--quiet", "--no-report"]
    assert main([*arguments, "--output", "whole"]) == 0
    with monkeypatch.context() as patch:
        stop_at(patch, 21)
        assert main(arguments) == 143
    said = capsys.readouterr().err
    assert (
        "stopped by SIGTERM after sweep 21 of 50; the state is kept in" in said
        and "a.yaml --quiet --no-report --resume" in said
    )
    assert sorted(os.listdir(folder / "run")) == ["checkpoint", "run.log"]
    assert sorted(os.listdir(folder / "run" / "checkpoint")) == ["chains.npz", "chains.previous.npz", "run.npz"]
    assert main([*arguments, "--resume", "--set=model.options={penalty: 2}"]) == 2
    assert "model.options.penalty: was not there, now 2" in capsys.readouterr().err
    assert main([*arguments, "--resume"]) == 0
    assert "continuing from checkpoints: chains at sweep 21" in (folder / "run" / "run.log").read_text()
    for name, values in draws(folder / "whole").items():
        np.testing.assert_array_equal(draws(folder / "run")[name], values)
    assert main([*arguments, "--resume"]) == 0  # finished
    assert (
        main([*arguments, "--extend=10"]) == 0
        and main([*arguments, "--output=longer", "--set=sampler.samples=50"]) == 0
    )
    for name, values in draws(folder / "longer").items():
        np.testing.assert_array_equal(draws(folder / "run")[name], values)
    record = json.loads((folder / "run" / "run.json").read_text())
    assert record["sweeps_per_chain"] == 60 and record["begun"] == "extended" and record["kept_draws_per_chain"] == 25


def test_a_run_continues_on_another_device_and_not_with_another_seed():
    def settings_of(text):
        return settings(yaml.safe_load(text))

    on_a_gpu = ANALYSIS.replace("seed: 3,", "seed: 3, device: gpu,")
    assert on_a_gpu != ANALYSIS and settings_of(on_a_gpu) == settings_of(ANALYSIS)
    assert settings_of(on_a_gpu.replace("seed: 3", "seed: 4")) != settings_of(ANALYSIS)
    mixed = {"sampler": {"device": "gpu"}}
    assert settings(mixed) == settings({"sampler": {"device": "cpu"}}) != settings({"sampler": {"seed": 4}})


def test_a_checkpoint_that_cannot_be_written_is_told(folder, monkeypatch, capsys):
    monkeypatch.setattr(
        np,
        "savez",
        lambda file, facts, **arrays: (_ for _ in ()).throw(OSError(28, "No space left on device")) if arrays else None,
    )
    assert main(["run", "a.yaml", "--no-report"]) == 0
    assert (
        "warning: chains: its checkpoint could not be written (No space left on device); there is none yet"
        in capsys.readouterr().err
    )
