"""A small run of two chains that is stopped, killed or continued, and what it finds in one go.

The fixtures that go with it are in tests/unit/runs/conftest.py.
"""

import os
import signal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import xarray
from helpers.small_analysis import ANALYSIS, command, replaced, write_files

from mmgibbs.engines.serial import SerialEngine

PRIORS = """\
  genetic: {start: [[6, 8], [8, 90]], prior: {df: 8, scale: [[30, 40], [40, 450]]}}
  residual: {start: [[9, 10], [10, 160]], prior: {df: 8, scale: [[45, 50], [50, 800]]}}
"""
SAMPLER = "chains: 2, burn_in: 10, samples: 50, thin: 2, checkpoint_every: 7, refresh_every: 9"
SMALL = replaced(ANALYSIS, "  genetic: [[6, 8], [8, 90]]\n  residual: [[9, 10], [10, 160]]\n", PRIORS)
SMALL = replaced(SMALL, "directory: run", "directory: run, save_levels: [genetic]")
SAMPLED = replaced(SMALL, "method: blup", SAMPLER)
RUN = ("run", "analysis.yaml", "--quiet")
SWEEPS = 2 * 60  # of both chains


def found_in_one_go(folder: Path) -> dict:
    write_files(folder, {"analysis.yaml": SAMPLED})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmgibbs.runs.local.cores", lambda: 1)
        assert command(folder, *RUN).code == 0
    return found_in(folder / "run")


def found_in(run: Path) -> dict:
    """All that a run has drawn and computed."""
    with xarray.open_datatree(run / "draws.nc", engine="h5netcdf") as tree:
        draws = {
            f"{group}/{name}": v.values
            for group in ("posterior", "sample_stats")
            for name, v in tree[group].data_vars.items()
        }
    return {
        "draws": draws,
        "summary": pl.read_parquet(run / "summary.parquet"),
        "solutions": pl.read_parquet(run / "solutions.parquet"),
    }


def assert_same(run: Path, whole: dict) -> None:
    found = found_in(run)
    assert found["draws"].keys() == whole["draws"].keys()
    for name, values in whole["draws"].items():
        np.testing.assert_array_equal(found["draws"][name], values, err_msg=name)
    for table in ("summary", "solutions"):
        assert found[table].equals(whole[table], null_equal=True)


def at_sweep(monkeypatch, number: int, act) -> None:
    """Do something in the middle of the number-th sweep from now."""
    sweep, seen = SerialEngine.sweep, [0]

    def counted(engine, *arguments):
        seen[0] += 1
        if seen[0] == number:
            act()
        return sweep(engine, *arguments)

    monkeypatch.setattr(SerialEngine, "sweep", counted)


def stop_at(monkeypatch, folder: Path, number: int, *arguments: str, how=signal.SIGTERM):
    """A run that gets a signal at some sweep."""
    with monkeypatch.context() as patch:
        at_sweep(patch, number, lambda: os.kill(os.getpid(), how))
        outcome = command(folder, *RUN, *arguments)
    assert outcome.code == 128 + how, outcome
    return outcome
