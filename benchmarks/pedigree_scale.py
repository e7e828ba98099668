"""How long and how much memory from a pedigree file to the structured A-inverse, on one core.

    python benchmarks/pedigree_scale.py [--animals 10000000] [--years 40] [--seed 1] [--file kept.csv] [--json
    result.json]

Simulates overlapping generations (mean generation interval 5 years), writes them as csv with string ids in shuffled
rows, then, in a process of its own on one core with one Polars thread, reads and checks, computes inbreeding and joins
the lists. Compiled code is warmed up on a small pedigree first. Prints a table: seconds, resident memory after each
stage, peak so far.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--animals", type=int, default=10_000_000)
    parser.add_argument("--years", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", type=Path, help="keep the csv here, and use it where it is already")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure, arguments.json)
        return
    with tempfile.TemporaryDirectory() as folder:
        file = arguments.file or Path(folder) / "pedigree.csv"
        if not file.exists():
            write(file, arguments.animals, arguments.years, arguments.seed)
        command = [sys.executable, __file__, "--measure", str(file)] + (
            ["--json", str(arguments.json)] if arguments.json else []
        )
        environment = dict(os.environ, POLARS_MAX_THREADS="1", NUMBA_NUM_THREADS="1", OMP_NUM_THREADS="1")
        subprocess.run(command, check=True, env=environment)


def write(file: Path, animals: int, years: int, seed: int) -> None:
    import numpy as np
    import polars as pl

    from mmgibbs.pedigree.simulate import Population, simulate_pedigree

    start = time.perf_counter()
    p = simulate_pedigree(animals, seed, Population(years=years))
    print(f"simulated {animals:,} animals in {time.perf_counter() - start:.1f} s")
    label = np.random.default_rng(seed + 1).permutation(animals)  # ids say nothing about age
    ids = pl.concat_str([pl.lit("BEEF"), pl.Series("id", label).cast(pl.String).str.zfill(9)])
    ids = pl.select(ids.alias("id")).to_series()
    parent = {
        role: pl.select(pl.lit(ids).gather(pl.Series(code).replace(-1, None))).to_series()
        for role, code in (("sire", p.sire), ("dam", p.dam))
    }
    frame = pl.DataFrame({"id": ids, **parent, "birth_year": p.birth})
    frame[np.random.default_rng(seed + 2).permutation(animals)].write_csv(file)


def memory() -> tuple[float, float]:
    """Resident now and at its peak, GB."""
    status = Path("/proc/self/status").read_text()
    return tuple(int(status.split(key)[1].split()[0]) / 1e6 for key in ("VmRSS:", "VmHWM:"))


def measure(file: Path, json_file: Path | None) -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    import polars as pl

    import mmgibbs.pedigree.read as reader
    from mmgibbs.pedigree.inbreeding import inbreeding
    from mmgibbs.pedigree.relationship import relatives
    from mmgibbs.pedigree.tables import Table

    small = pl.DataFrame({"id": ["a", "b", "c"], "sire": ["b", None, None], "dam": ["c", None, None]})
    with tempfile.TemporaryDirectory() as folder:
        small.write_csv(Path(folder) / "small.csv")
        warm = reader.read_pedigree(Path(folder) / "small.csv")
    relatives(warm.sire, warm.dam, inbreeding(warm.sire, warm.dam))

    # time spent in opening and parsing, apart from the rest of read_pedigree
    parsing = 0.0

    def timed(function):
        def call(*args, **kwargs):
            nonlocal parsing
            start = time.perf_counter()
            out = function(*args, **kwargs)
            parsing += time.perf_counter() - start
            return out

        return call

    reader.choose_columns = timed(reader.choose_columns)
    Table.read = timed(Table.read)

    rows = []

    def stage(name, seconds):
        rows.append({"stage": name, "seconds": round(seconds, 2), "resident_gb": memory()[0], "peak_gb": memory()[1]})

    begin = time.perf_counter()
    pedigree = reader.read_pedigree(file)
    stage("read", parsing)
    stage("check, recode", time.perf_counter() - begin - parsing)
    start = time.perf_counter()
    F = inbreeding(pedigree.sire, pedigree.dam)
    stage("inbreeding", time.perf_counter() - start)
    start = time.perf_counter()
    lists = relatives(pedigree.sire, pedigree.dam, F)
    stage("lists", time.perf_counter() - start)
    stage("total", time.perf_counter() - begin)
    print(
        f"{lists.n_animals:,} animals, {int((pedigree.sire < 0).sum()):,} without a sire, "
        f"mean F {F.mean():.5f}, largest {F.max():.4f}"
    )
    print(*pedigree.notes, sep="\n")
    print(f"{'stage':<16}{'seconds':>9}{'resident GB':>13}{'peak GB':>9}")
    for row in rows:
        print(f"{row['stage']:<16}{row['seconds']:>9.1f}{row['resident_gb']:>13.2f}{row['peak_gb']:>9.2f}")
    if json_file:
        json_file.write_text(json.dumps({"animals": lists.n_animals, "stages": rows}, indent=1))


if __name__ == "__main__":
    main()
