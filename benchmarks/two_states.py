"""Speed of two states of the program side by side, in turn, in one run on one machine.

    python benchmarks/two_states.py ../before . --rounds 5

Seconds per sweep of simdata, of configs/beef.yaml and of the simulated system of 1.1 M animals, and the seconds of
`mmgibbs --help`: each by the command line of the state, before and after by turns, so that the load
of a neighbour meets both. Quoted are the least of each (what the machine can do) and the median ratio of the pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIMDATA = """
name: simdata
data:
  phenotypes: {data}/simdata.txt
  header: [animal, sire, dam, weight, mu, farm, sex, year, y1, y2, y3, y4]
  pedigree: {data}/simped.txt
  pedigree_columns: {{id: 1, sire: 2, dam: 3}}
  weights: weight
traits: {{y1: {{missing: [0]}}}}
model:
  fixed: {{farm: {{}}, sex: {{}}, year: {{}}}}
  random: {{genetic: {{level: animal, relationship: pedigree}}}}
variances: {{genetic: {{start: 38.538}}, residual: {{start: 62.691}}}}
"""


def figure(tree: Path, arguments: list[str], key: str) -> float:
    """One figure of a benchmark of a checkout."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        of_package = arguments[0] == "evaluation" or not (tree / "benchmarks" / "__main__.py").exists()
        program = ["mmgibbs", "bench"] if of_package else ["benchmarks"]
        command = [sys.executable, "-m", *program, *arguments, "--json", file.name]
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{tree}: {' '.join(arguments)}: {done.stderr[-500:]}")
        return float(json.loads(Path(file.name).read_text(encoding="utf-8"))[key])


def seconds_of_help(tree: Path) -> float:
    def once() -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "mmgibbs", "--help"], cwd=tree, capture_output=True, check=True)
        return time.perf_counter() - started

    return min(once() for _ in range(5))


def measures(simdata: Path | None, animals: int, sweeps: int) -> dict:
    """Name -> what measures it in a checkout."""
    evaluation = lambda config, n: (
        lambda tree: figure(tree, ["evaluation", str(config), "--sweeps", str(n)], "milliseconds per sweep")
    )
    system = ["sweep", "--animals", str(animals), "--sweeps", "7"]
    found = {"mmgibbs --help, s": seconds_of_help}
    if simdata is not None:
        found["simdata, ms a sweep"] = evaluation(simdata, 2 * sweeps)
    found["configs/beef.yaml, ms a sweep"] = evaluation(ROOT / "configs" / "beef.yaml", sweeps // 4)
    found[f"{animals:,} animals, s a sweep"] = lambda tree: figure(tree, system, "seconds per sweep (median)")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="speed of two states of the program side by side")
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--rounds", type=int, default=5, help="pairs of each measure (default: %(default)s)")
    parser.add_argument("--animals", type=int, default=1_100_000, help="of the large system (default: %(default)s)")
    parser.add_argument("--sweeps", type=int, default=2000, help="of the small models (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data, simdata = ROOT.parent / "shared" / "data" / "simdata", None
        if data.exists():
            simdata = Path(folder) / "simdata.yaml"
            simdata.write_text(SIMDATA.format(data=os.path.realpath(data)), encoding="utf-8")
        print(f"{'measure':34}  {'before':>8}  {'after':>8}  ratio (median of pairs)")
        for name, measure in measures(simdata, options.animals, options.sweeps).items():
            measure(options.before), measure(options.after)  # compiles
            pairs = [(measure(options.before), measure(options.after)) for _ in range(options.rounds)]
            before, after = (min(column) for column in zip(*pairs, strict=True))
            ratio = statistics.median(b / a for a, b in pairs)
            print(f"{name:34}  {before:8.4g}  {after:8.4g}  {ratio:.3f}", flush=True)


if __name__ == "__main__":
    main()
