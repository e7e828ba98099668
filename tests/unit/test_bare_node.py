"""The tests of a real device need NumPy, SciPy, Numba and pytest, and no more than what the solver core needs."""

import os
import re
import subprocess
import sys

import pytest
from helpers.support import ROOT

BARE = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {missing}:
            raise ModuleNotFoundError(f"No module named {{name!r}}")

sys.meta_path.insert(0, Missing())
import pytest
sys.exit(pytest.main(["-q", "-rs", "-p", "no:cacheprovider", "tests/gpu"]))
"""
MISSING = (
    "polars pydantic pydantic_core joblib xarray h5py h5netcdf arviz_stats threadpoolctl hypothesis xdist cuda jinja2 "
    "matplotlib cupy".split()
)


@pytest.mark.slow
def test_tests_of_a_device_are_collected_without_them_and_skipped_with_a_reason():
    done = subprocess.run(
        [sys.executable, "-c", BARE.format(missing=MISSING)], cwd=ROOT, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    files = {p.name for p in (ROOT / "tests" / "gpu").glob("test_*.py")}
    skipped = re.findall(
        r"SKIPPED \[\d+\] tests/gpu/(\w+\.py):\d+: no CUDA device: device: gpu needs CuPy", done.stdout
    )
    assert set(skipped) == files and done.stdout.count("SKIPPED") == len(skipped)
    assert re.search(r"^\d+ skipped", done.stdout.splitlines()[-1])
