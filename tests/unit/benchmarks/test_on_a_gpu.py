"""`benchmarks/on_a_gpu.py` prepares a system on a machine that has neither Polars nor pydantic."""

import subprocess
import sys

from helpers.support import ROOT

SCRIPT = """
import sys
sys.modules.update(dict.fromkeys(("polars", "pydantic", "matplotlib", "jinja2")))  # importing them fails
sys.path.insert(0, "benchmarks")
import on_a_gpu
from benchmarks import effective, engines, gpu, regressions
design, herds, equations = on_a_gpu.prepare("small", 0.0005)
print(design.n_equations == equations.n_equations > 1000)
"""


def test_a_system_is_prepared_without_the_libraries_of_input():
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split() == ["True"], done.stderr
