"""`mmgibbs bench`: measured figures from one run on one machine, as a table and as JSON.

    mmgibbs bench evaluation CONFIG     sweeps of an analysis file, everything included (variances, moments, records kept)
    mmgibbs bench sweep --animals N     one sweep of the simulated beef system: seconds, bytes, resident memory
    mmgibbs bench files --animals N     the same system from files on disk to the end of its first sweep
"""

from __future__ import annotations

import json
import platform
import resource
import statistics
import sys
import tempfile
import time
from datetime import date
from pathlib import Path


def add_arguments(parser) -> None:
    kinds = parser.add_subparsers(dest="bench", required=True, metavar="KIND")
    one = kinds.add_parser("evaluation", help="milliseconds per sweep of an analysis file, one chain, everything included")
    one.add_argument("config", help="analysis file, e.g. configs/beef.yaml")
    one.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a value of the analysis file")
    one.add_argument("--sweeps", type=int, default=2000)
    for name, text in (
        ("sweep", "seconds per sweep of the simulated beef system, serial engine"),
        ("files", "simulated beef system: seconds from csv files to the end of the first sweep"),
    ):
        p = kinds.add_parser(name, help=text)
        p.add_argument("--animals", type=int, default=100_000, help="animals in the pedigree; 1100000 gives 4.7 M equations (default: %(default)s)")
        p.add_argument("--seed", type=int, default=1)
        p.add_argument("--precision", choices=("single", "double"), default="single")
        p.add_argument("--sweeps", type=int, default=5, help="timed sweeps; the median is printed (default: %(default)s)")
        if name == "sweep":
            p.add_argument("--update", choices=("level", "site"), default="level")
            p.add_argument("--partition", choices=("term", "colour", "equal"), default="term")
            p.add_argument("--engine", choices=("serial", "structured"), default="serial")
            p.add_argument("--threads", type=int, default=1)
    for p in kinds.choices.values():
        p.add_argument("--json", metavar="FILE", help="write the figures to FILE as well")


def main(args) -> int:
    figures = {"evaluation": bench_evaluation, "sweep": bench_sweep, "files": bench_files}[args.bench](args)
    figures = {"date": date.today().isoformat(), "processor": processor(), "python": platform.python_version()} | figures
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{name:<{width}}  {value:,.4g}" if isinstance(value, float) else f"{name:<{width}}  {value:,}" if isinstance(value, int) else f"{name:<{width}}  {value}")
    if args.json:
        Path(args.json).write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def peak_bytes() -> int:
    """Largest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def bench_evaluation(args) -> dict:
    from mmgibbs.assemble import assemble, choose_engine
    from mmgibbs.config import load_config
    from mmgibbs.data import prepare
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations
    from mmgibbs.sampler import Schedule, sample_chain

    analysis = load_config(args.config, [*args.set])
    prepared = prepare(analysis)
    model = assemble(analysis, prepared).model
    choice, kind, _ = choose_engine(analysis.sampler, model)
    equations = structured_equations(prepared.design, partition(prepared.design, kind), analysis.sampler.precision)
    engine = choice.build(equations)
    thin, refresh = analysis.sampler.thin, analysis.sampler.refresh_every
    sample_chain(model, engine, Schedule(0, max(thin, 10), thin, 5), (1, 0))  # compiles every kernel
    engine.start()
    result = sample_chain(model, engine, Schedule(0, args.sweeps, thin, refresh), (2, 0))
    return {
        "equations": equations.n_equations,
        "records": prepared.design.n_records,
        "sweeps": args.sweeps,
        "milliseconds per sweep": 1000 * result.seconds / args.sweeps,
    }


def bench_sweep(args) -> dict:
    from mmgibbs.simulate import beef_design, simulate_beef

    started = time.perf_counter()
    beef = simulate_beef(args.animals, args.seed)
    design = beef_design(beef)
    simulated = time.perf_counter() - started
    return {"seconds to simulate": simulated} | time_sweeps(design, beef.G, beef.R, args)


def time_sweeps(design, G, R, args) -> dict:
    from mmgibbs.engines.choice import EngineChoice
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations

    started = time.perf_counter()
    kind = "colour" if args.engine == "structured" else args.partition
    equations = structured_equations(design, partition(design, kind), args.precision)
    built = time.perf_counter() - started
    engine = EngineChoice(args.engine, args.update, args.threads).build(equations)
    engine.set_variances(G, R)
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
        "engine": f"{args.engine}, {args.threads} thread(s), {args.update} updates, {args.precision} precision, partition {kind}",
        "bytes of equations and state": equations.bytes,
        "seconds to build the equations": built,
        "seconds per sweep (median)": statistics.median(times),
        "seconds per sweep (all)": ", ".join(f"{t:.3f}" for t in times),
        "peak resident bytes": peak_bytes(),
    }


def bench_files(args) -> dict:
    """Simulate in another process, so that this one's memory and time are those of an evaluation alone."""
    import subprocess

    with tempfile.TemporaryDirectory(prefix="mmgibbs-bench-") as folder:
        target = Path(folder) / "beef"
        command = [sys.executable, "-m", "mmgibbs", "simulate", str(target), "--animals", str(args.animals), "--seed", str(args.seed)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        files = sum(f.stat().st_size for f in target.iterdir() if f.suffix == ".csv")
        script = f"import json; from mmgibbs.bench import first_sweep; print(json.dumps(first_sweep({str(target / 'analysis.yaml')!r}, {args.precision!r})))"
        out = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return {"animals": args.animals, "bytes of csv files": files} | json.loads(out.stdout.splitlines()[-1])


def first_sweep(config: str, precision: str) -> dict:
    """Seconds from an analysis file to the end of its first sweep, per stage, and the peak resident memory of this process."""
    from mmgibbs.assemble import assemble
    from mmgibbs.config import load_config
    from mmgibbs.data import prepare
    from mmgibbs.engines.serial import SerialEngine
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations
    from mmgibbs.sampler import starting_variances

    started = time.perf_counter()
    analysis = load_config(config, [f"sampler.precision={precision}"])
    prepared = prepare(analysis)
    read = time.perf_counter()
    model = assemble(analysis, prepared).model
    equations = structured_equations(prepared.design, partition(prepared.design), precision)
    built = time.perf_counter()
    engine = SerialEngine(equations, "level")
    variances = starting_variances(model, 0)
    engine.set_variances(variances.G, variances.R)
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
