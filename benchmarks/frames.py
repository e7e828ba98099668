"""From data frames in memory to the end of the first sweep: seconds and memory, step by step, engine structured.
With --sweeps N also the medians of N sweeps with fixed and with sampled variances, by turns.

    python benchmarks/frames.py [--animals 1100000 10600000] [--threads 2] [--sweeps N] [--files] [--keep DIR]

The simulated beef herd of `mmgibbs simulate`: string ids, three weights, direct and maternal genetic effects and a
maternal environment; nine animals of ten have records. Each size is measured in a process of its own. Wall and
processor seconds of each step, resident memory after it, and the peak, the frames included. With --files the tables
are parquet files that the program reads and gives back, as `mmgibbs run` does, and no frames are held.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mmgibbs.engines.base import Engine
    from mmgibbs.sampler.mixed_model import MixedModel

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--animals", type=int, nargs="+", default=[1_100_000, 10_600_000])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sweeps", type=int, default=0, help="timed sweeps of each kind")
    parser.add_argument("--files", action="store_true", help="read the tables from files, hold no frames")
    parser.add_argument("--keep", type=Path, help="keep the simulated frames here, and use them where they are")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure, arguments.threads, arguments.sweeps, arguments.files)
        return
    with tempfile.TemporaryDirectory() as folder:
        base = arguments.keep or Path(folder)
        small = simulated(base, 110_000)
        measured = [simulated(base, animals) for animals in arguments.animals]
        for target in (small, *measured):  # the first compiles
            print(f"\n{target.name}")
            command = [sys.executable, __file__, "--measure", str(target), "--threads", str(arguments.threads)]
            command += ["--sweeps", str(arguments.sweeps), *(["--files"] if arguments.files else [])]
            subprocess.run(command, check=True)


def simulated(base: Path, animals: int) -> Path:
    """A folder with the two frames as parquet files and the analysis."""
    import polars as pl

    target = base / f"beef-{animals}"
    if target.exists():
        return target
    command = [sys.executable, "-m", "mmgibbs", "simulate", str(target), "--animals", str(animals), "--seed", "1"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    for name in ("phenotypes", "pedigree"):
        file = target / f"{name}.csv"
        pl.read_csv(file, infer_schema_length=None).write_parquet(target / f"{name}.parquet")
        file.unlink()
    (target / "true_values.csv").unlink()
    return target


class Steps:
    """Prints what each step took."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()
        self.total = [0.0, 0.0]

    def done(self, what: str) -> None:
        from mmgibbs.machine.memory import peak_bytes

        wall, processor = time.perf_counter(), time.process_time()
        spent = wall - self._wall, processor - self._processor
        self.total = [t + s for t, s in zip(self.total, spent, strict=True)]
        print(f"{what:>42} {spent[0]:7.1f} s {spent[1]:7.1f} s {resident() / 1e9:6.2f} GB {peak_bytes() / 1e9:6.2f} GB")
        self._wall, self._processor = time.perf_counter(), time.process_time()


def resident() -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def measure(folder: Path, threads: int, sweeps: int, files: bool) -> None:
    import polars as pl
    import yaml

    from mmgibbs.build.assemble import assemble
    from mmgibbs.config import load_config
    from mmgibbs.data.prepare import prepare
    from mmgibbs.engines.choice import EngineChoice
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations
    from mmgibbs.sampler.covariances import starting_matrices

    settings = yaml.safe_load((folder / "analysis.yaml").read_text(encoding="utf-8"))
    tables = {n: folder / f"{n}.parquet" for n in ("phenotypes", "pedigree")}
    settings["data"] |= tables if files else {n: pl.read_parquet(path) for n, path in tables.items()}
    steps = Steps()
    prepared = prepare(load_config(settings, ["sampler.precision=single"]), lambda stage: print(f"    {stage}"))
    steps.done("ids checked and coded, design")
    model = assemble(load_config(settings, ["sampler.precision=single"]), prepared).model
    steps.done("covariances")
    parts = partition(prepared.design, "colour")
    steps.done("colours")
    equations = structured_equations(prepared.design, parts, "single")
    steps.done("equations")
    engine = EngineChoice("structured", "level", threads).build(equations)
    starting_matrices(model, 0).give(engine)
    steps.done("engine")
    engine.sweep(1, (1, 0))
    steps.done("first sweep, with what is compiled for it")
    total = steps.total
    engine.sweep(2, (1, 0))
    steps.done("another sweep")
    records = prepared.counts["records"]["read"]
    print(f"{records:,} records, {equations.n_equations:,} equations: {total[0]:.1f} s, {total[1]:.1f} s "
          "of the processor")  # fmt: skip
    if sweeps:
        steady(model, engine, sweeps)
        steps.done("sweeps of both kinds")


def steady(model: MixedModel, engine: Engine, sweeps: int) -> None:
    """Medians of sweeps with fixed variances and of whole sweeps of a chain, interwoven, nothing recorded."""
    from mmgibbs.sampler.chain import Chain
    from mmgibbs.sampler.interweave import terms_to_interweave
    from mmgibbs.sampler.schedule import Schedule

    chain = Chain(model, engine, Schedule(0, 2**31, 2**31, interweave=terms_to_interweave(model)), (1, 0))
    chain.advance(2)
    fixed, sampled = [], []
    for number in range(sweeps):
        started = time.perf_counter()
        engine.sweep(10**6 + number, (1, 0))
        fixed.append(time.perf_counter() - started)
        started = time.perf_counter()
        chain.advance(chain.number + 1)
        sampled.append(time.perf_counter() - started)
    medians = [statistics.median(seconds) for seconds in (fixed, sampled)]
    print(f"a sweep with fixed variances {medians[0]:.4f} s, sampled {medians[1]:.4f} s: {medians[1] / medians[0]:.2f}")


if __name__ == "__main__":
    main()
