"""Memory and processor time of evaluations of several sizes, written to benchmarks/sizes.csv.

    python benchmarks/sizes.py [--animals 1000 10000 100000 1000000]

The data are `mmgibbs simulate --animals N`: three weights of beef cattle with direct and maternal genetic effects and a
maternal environment; *one trait* is birth weight with direct genetic effects alone. Each size is solved by BLUP once,
in a process of its own, with kernels that an earlier run compiled. `docs/site/make_pages.py` makes a page of the table.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "benchmarks" / "sizes.csv"
ONE_TRAIT = """
name: one
data: {phenotypes: phenotypes.csv, pedigree: pedigree.csv}
traits: [birth_weight]
model:
  fixed: {contemporary_group: {}, sex: {}, dam_age: {column: dam_age_class}}
  random: {animal: {relationship: pedigree}}
variances: {animal: {start: 7}, residual: {start: 11}}
"""
THREE_TRAITS = """
variances:
  genetic:
    start: [[7, 15.5, 25, -1], [15.5, 170, 200, -25], [25, 200, 380, -18], [-1, -25, -18, 90]]
  maternal_environment: {start: [[70]]}
  residual: {start: [[11, 14, 14], [14, 300, 220], [14, 220, 450]]}
"""
BLUP = ["--set", "sampler.method=blup", "--no-report", "--set", "output.csv=never", "--overwrite", "--quiet"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--animals", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    rows = []
    for animals in parser.parse_args().animals:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "beef"
            run(["simulate", str(folder), "--animals", str(animals), "--seed", "1"])
            write_analyses(folder)
            for file, traits in (("one.yaml", 1), ("analysis.yaml", 3)):
                rows.append(measure(folder / file, animals, traits))
                print(rows[-1], flush=True)
    with open(TABLE, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_analyses(folder: Path) -> None:
    (folder / "one.yaml").write_text(ONE_TRAIT, encoding="utf-8")
    with open(folder / "analysis.yaml", "a", encoding="utf-8") as file:
        file.write(THREE_TRAITS)


def measure(analysis: Path, animals: int, traits: int) -> dict[str, object]:
    """A row of the table: what `mmgibbs check` expects of four chains, and what BLUP took."""
    counts = run(["check", str(analysis), "--set", "sampler.chains=4"])[0]
    megabytes = re.search(r"memory: about ([\d,.]+) MB beside libraries(?:, and ([\d,.]+) MB)?", counts)
    records = re.search(r"([\d,]+) used", counts)
    assert megabytes is not None and records is not None
    output = analysis.parent / f"run_{traits}"
    run(["run", str(analysis), "--output", str(output), *BLUP])  # compiles
    seconds = run(["run", str(analysis), "--output", str(output), *BLUP])[1]
    record = json.loads((output / "run.json").read_text(encoding="utf-8"))
    return {
        "date": date.today().isoformat(),
        "animals": animals,
        "traits": traits,
        "records": int(records[1].replace(",", "")),
        "equations": record["equations"],
        "megabytes_equations": round(record["bytes"] / 1e6, 1),
        "megabytes_gibbs": round(sum(float(text.replace(",", "")) for text in megabytes.groups("0")), 1),
        "megabytes_blup": round(record["peak_memory"]["main"] / 1e6),
        "seconds_blup": round(seconds, 1),
    }


def run(arguments: list[str]) -> tuple[str, float]:
    """What the command prints, and the seconds of the processor that it took."""
    before = os.times()
    command = [sys.executable, "-m", "mmgibbs", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return done.stdout, used


if __name__ == "__main__":
    main()
