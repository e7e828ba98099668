"""What holds the memory of a small run: resident megabytes that each library adds, and what a run adds to them.

    python -m benchmarks.memory ANALYSIS...

Libraries are imported one after another in a new process, in this order: each counts what those before it do not hold.
The rest of a run is its data, equations, chains, draws and tables, the kernels beside the first one, and the page.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

STEPS = {
    "Python": "",
    "NumPy": "import numpy",
    "SciPy: sparse, linalg, special": "import scipy.sparse.csgraph, scipy.linalg, scipy.special",
    "Numba, llvmlite": "import numba",
    "Polars": "import polars",
    "pydantic, the classes of the analysis file": "import mmgibbs.config",
    "modules of this program": "import mmgibbs.runs.run, mmgibbs.runs.mixed_model_input",
    "compiler and run time of Numba, once a kernel is called": (
        "from mmgibbs.pedigree.inbreeding import inbreeding; inbreeding(*numpy.full((2, 1), -1, numpy.int32))"
    ),
    "threads of Polars, once a table is read": "polars.read_csv(b'a,b\\n1,2\\n')",
    "h5py, h5netcdf: draws.nc": "import h5netcdf",
    "page: matplotlib, templates": "import mmgibbs.report.page, jinja2",
}
SAMPLED = {  # what runs that sample need beside
    "diagnostics: arviz_stats, with scipy.signal and scipy.stats": "import scipy.signal",
    "diagnostics: arviz_stats, with xarray and pandas": "from arviz_stats.base.array import array_stats",
    "processes of chains: joblib, psutil": "import joblib",
}
MEASURE = """
import json
def resident():
    text = open("/proc/self/status").read()
    return int(text[text.index("VmRSS"):].split()[1]) / 1024
sizes = []
for step in {steps}:
    exec(step)
    sizes.append(resident())
print(json.dumps(sizes))
"""


def measure_steps(steps: dict[str, str]) -> dict[str, float]:
    """Megabytes that each step adds, in a new process."""
    code = MEASURE.format(steps=list(steps.values()))
    sizes = json.loads(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout)
    return {name: after - before for name, before, after in zip(steps, [0.0, *sizes], sizes, strict=False)}


def peaks_of_run(analysis: Path) -> dict[str, float]:
    """The most megabytes that each process of a run held, its page included."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "mmgibbs", "run", str(analysis), "--quiet", "--output", f"{folder}/run"]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{analysis}: the run ended with exit code {os.waitstatus_to_exitcode(status)}")
        workers = json.loads(Path(folder, "run", "run.json").read_text(encoding="utf-8"))["peak_memory"]["workers"]
    return {"main": used.ru_maxrss / 1024} | {name: size / 2**20 for name, size in workers.items()}


def main() -> None:
    """Print a table of the libraries, and the peaks of the processes of each analysis."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("analyses", metavar="ANALYSIS", nargs="*", type=Path)
    total = 0.0
    for name, size in measure_steps(STEPS | SAMPLED).items():
        total += size
        print(f"{size:7.1f} {total:7.1f}  {name}")
    for analysis in parser.parse_args().analyses:
        print(analysis, " ".join(f"{name} {size:.0f} MB" for name, size in peaks_of_run(analysis).items()))


if __name__ == "__main__":
    main()
