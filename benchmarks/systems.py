"""The simulated beef system: one sweep, and the way from files on disk to the end of the first sweep."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mmgibbs.machine.memory import peak_bytes
from mmgibbs.models.design import Design

ROOT = Path(__file__).resolve().parents[1]


def bench_sweep(args: argparse.Namespace) -> dict:
    from mmgibbs.simulation.simulate import beef_design, simulate_beef

    started = time.perf_counter()
    beef = simulate_beef(args.animals, args.seed)
    design = beef_design(beef)
    simulated = time.perf_counter() - started
    return {"seconds to simulate": simulated} | time_sweeps(design, beef.G, beef.R, args)


def time_sweeps(design: Design, G: Sequence[np.ndarray | None], R: np.ndarray, args: argparse.Namespace) -> dict:
    from mmgibbs.engines.choice import EngineChoice
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations

    started = time.perf_counter()
    kind = "colour" if args.engine == "structured" else args.partition
    equations = structured_equations(design, partition(design, kind), args.precision)
    built = time.perf_counter() - started
    engine = EngineChoice(args.engine, args.update, args.threads).build(equations)
    engine.set_variances(list(G), R)
    engine.sweep(1, (args.seed, 0))  # compiles
    times = []
    for number in range(2, 2 + args.sweeps):
        started = time.perf_counter()
        engine.sweep(number, (args.seed, 0))
        times.append(time.perf_counter() - started)
    return {
        "animals": args.animals,
        "records": design.n_records,
        "equations": equations.n_equations,
        "engine": f"{args.engine}, {args.threads} thread(s), {args.update} updates, {args.precision} precision, "
        f"partition {kind}",
        "bytes of equations and state": equations.bytes,
        "seconds to build the equations": built,
        "seconds per sweep (median)": statistics.median(times),
        "seconds per sweep (all)": ", ".join(f"{t:.3f}" for t in times),
        "peak resident bytes": peak_bytes(),
    }


def bench_files(args: argparse.Namespace) -> dict:
    """Simulate in another process, so that this one's memory and time are those of an evaluation alone."""
    with tempfile.TemporaryDirectory(prefix="mmgibbs-bench-") as folder:
        target = Path(folder) / "beef"
        command = [
            sys.executable,
            "-m",
            "mmgibbs",
            "simulate",
            str(target),
            "--animals",
            str(args.animals),
            "--seed",
            str(args.seed),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        files = sum(f.stat().st_size for f in target.iterdir() if f.suffix == ".csv")
        script = (
            "import json; from benchmarks.systems import first_sweep; "
            f"print(json.dumps(first_sweep({str(target / 'analysis.yaml')!r}, {args.precision!r})))"
        )
        out = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=ROOT)
    return {"animals": args.animals, "bytes of csv files": files} | json.loads(out.stdout.splitlines()[-1])


def first_sweep(config: str, precision: str) -> dict:
    """Seconds from an analysis file to the end of its first sweep, per stage, and the peak resident memory of this
    process.
    """
    from mmgibbs.build.assemble import assemble
    from mmgibbs.config import load_config
    from mmgibbs.data.prepare import prepare
    from mmgibbs.engines.serial import SerialEngine
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations
    from mmgibbs.sampler.covariances import starting_matrices

    started = time.perf_counter()
    analysis = load_config(config, [f"sampler.precision={precision}"])
    prepared = prepare(analysis)
    read = time.perf_counter()
    model = assemble(analysis, prepared).model
    equations = structured_equations(prepared.design, partition(prepared.design), precision)
    built = time.perf_counter()
    engine = SerialEngine(equations, "level")
    starting_matrices(model, 0).give(engine)
    engine.sweep(1, (1, 0))
    swept = time.perf_counter()
    return {
        "equations": equations.n_equations,
        "seconds: read, check, code, design": read - started,
        "seconds: equations": built - read,
        "seconds: engine and first sweep, compiling included": swept - built,
        "seconds: files to the end of the first sweep": swept - started,
        "peak resident bytes": peak_bytes(),
    }
