"""`benchmarks/on_a_gpu.py`: what it needs, how long it takes by its own prediction, and what it says without a GPU."""

import json
import subprocess
import sys

import pytest
from helpers.support import ROOT

from benchmarks.on_a_gpu import PARTS

BLOCKED = """
import sys
sys.modules.update(dict.fromkeys(("polars", "pydantic", "matplotlib", "jinja2")))  # importing them fails
sys.path[:0] = ["benchmarks", "tests"]
import on_a_gpu
"""
SCRIPT = (
    BLOCKED
    + """
from benchmarks import effective, engines, gpu, regressions
from helpers.host_arrays import ArraysDevice
design, herds, equations = on_a_gpu.prepare("small", 0.0005)
print(design.n_equations == equations.n_equations > 1000)
on_a_gpu.measure_solver(ArraysDevice(), 0.0005)
on_a_gpu.measure_genomic(ArraysDevice(), 40, 50, sweeps=False)
"""
)
EVERYTHING = (
    BLOCKED
    + """
from pathlib import Path
on_a_gpu.run_all(["recorded", "tests", "device"], Path(sys.argv[1]))
"""
)


def test_systems_solver_and_genomic_relationships_without_the_libraries_of_input():
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True)
    first, *lines = done.stdout.splitlines()
    assert done.returncode == 0 and first == "True", done.stderr
    rows = [json.loads(line.removeprefix("measured: ")) for line in lines if line.startswith("measured: ")]
    assert len(rows) == 4 and all(row["seconds"] > 0 and row["predicted"] > 0 for row in rows)


def test_everything_takes_less_than_eight_minutes_by_prediction():
    assert sum(part.predicted for part in PARTS.values()) < 480
    assert all(part.predicted < part.limit for part in PARTS.values())
    assert list(PARTS)[:2] == ["recorded", "tests"]


@pytest.mark.slow
def test_parts_say_why_they_are_not_measured(tmp_path):
    done = subprocess.run([sys.executable, "-c", EVERYTHING, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for part in ("recorded", "device"):
        assert (tmp_path / f"{part}.txt").read_text().startswith("not measured: device: gpu needs CuPy")
    table = json.loads((tmp_path / "table.json").read_text())
    assert table["rows"] == [] and list(table["parts"]) == ["recorded", "tests", "device"]
    assert "exit code 0" in table["parts"]["device"] and "skipped" in (tmp_path / "tests.txt").read_text()
