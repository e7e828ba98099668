"""One finished run of each analysis in configs/, made once a session for all tests and workers that read it."""

import os
import shutil
import time
from pathlib import Path

import pytest
from helpers.support import ROOT

import mmgibbs

# Two chains, for what compares them; moments, for what reads covariances of levels.
FEW_SWEEPS = ["chains=2", "burn_in=20", "samples=60", "thin=1", "pev_limit=100", "threads=1"]
SETTINGS = [f"sampler.{setting}" for setting in FEW_SWEEPS]
MORE = {"repeated_records": ["output.moments=[fleece_weight]"]}
SECONDS = 600.0  # that a worker waits for another one's run


def shared_run(factory: pytest.TempPathFactory, name: str) -> Path:
    """The folder of a finished run of configs/NAME.yaml with few sweeps. Read it only; `copy_of_run` is to write in."""
    session = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        session = session.parent  # of all workers
    kept = session / "shared-runs" / name
    done = kept / "done"
    kept.parent.mkdir(exist_ok=True)
    try:
        kept.mkdir()
    except FileExistsError:
        end = time.monotonic() + SECONDS
        while not done.exists():
            assert not (kept / "failed").exists(), f"the run of {name} failed in another worker or test"
            assert time.monotonic() < end, f"no other worker has made the run of {name}"
            time.sleep(0.05)
        return kept / "run"
    try:
        settings = [*SETTINGS, *MORE.get(name, [])]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mmgibbs.runs.local.cores", lambda: 1)  # no processes to be started
            mmgibbs.run(ROOT / "configs" / f"{name}.yaml", settings, directory=kept / "run", progress=False)
        done.touch()
    finally:
        if not done.exists():
            (kept / "failed").touch()
    return kept / "run"


def copy_of_run(factory: pytest.TempPathFactory, name: str, folder: Path) -> Path:
    """A copy of the shared run, for tests that change it or write beside it."""
    return shutil.copytree(shared_run(factory, name), folder)
