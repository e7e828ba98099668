"""What a GPU takes: every engine that has a device side, in one run, on one machine, beside the same machine's CPU.

    python benchmarks/on_a_gpu.py --all --out DIR [--parts PART ...]
    python benchmarks/on_a_gpu.py [--systems small large] [--classic] [--regressions] [--kernels]
        [--threads N] [--wait-for FILE]

With --all everything in turn, in less than eight minutes by its own prediction: first small cases beside draws that
are recorded (recorded.py) and the tests of a real device, which compare every kernel with the CPU; then each part below
in a process of its own, which ends at its limit. What a part prints is in DIR at once; a table of measured and
predicted seconds comes last. Predictions are arithmetic.

Per system: seconds per sample of the structured engine with fixed and with sampled variances, beside those that
arithmetic predicted; milliseconds of a sweep and of what is kept of it; with --kernels those of each kernel of a sweep,
what a binary trait takes besides, and the structured engine of the CPU on as many threads. With --classic the whole
table of the benchmark engines (small alone: explicit matrices).
With --regressions seconds of a sweep of each regression, and the seconds that arithmetic predicted, before a GPU had
measured any.
Needs what the solver core needs and CuPy, no more. With --wait-for the systems are prepared at once and timed once that
file is there: so that tests can use the wait.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SWEEPS = 50  # timed at once
# Seconds of a sweep with fixed and with sampled variances on an H200, by arithmetic: the location effects as an earlier
# state of their kernels took, and the kernels beside them without the waits that these had. No measurement.
PREDICTED_SECONDS = {"small": (6e-4, 1.1e-3), "large": (5.6e-3, 1.15e-2)}
# Of a sampled sweep of the small system, of so many chains together: the others use what one leaves idle while a single
# thread draws or waits for memory. The bytes of all are at least 0.3 ms for each chain.
PREDICTED_SECONDS_SIDE_BY_SIDE = {2: 1.3e-3, 4: 2.2e-3}
PREDICTED_SECONDS_OF_A_BINARY_TRAIT = {"small": 8e-5, "large": 5e-4}  # besides
CALL_SECONDS, CALLS_OF_AN_ITERATION = 1.5e-5, 60  # of a library call from the host, and of conjugate gradients
DOUBLE_OPERATIONS = 3e13  # a second, of float64 products
TILE_SECONDS = 2e-4  # of 128 levels of a dense block, one after another
# Of a sweep over SNP effects: a SNP in its turn on the device, the draws of the host for it, an animal in a block of 64
# SNPs, and a barrier of all blocks.
SNP_SECONDS = {"rr": 1.2e-7, "bayes_r": 3.5e-7}
HOST_SECONDS_OF_A_SNP, ANIMAL_SECONDS, BARRIER_SECONDS, WAITS_OF_EFFECTS = 1e-7, 1.3e-10, 1.5e-6, 10
MEASURED = "measured: "  # before what the table is made of


class Part(NamedTuple):
    """Of --all: seconds by prediction, and those after which it is ended."""

    predicted: int
    limit: int


PARTS = {
    "recorded": Part(15, 40),
    "tests": Part(90, 120),
    "device": Part(10, 20),
    "small": Part(60, 75),
    "choices": Part(30, 45),
    "regressions": Part(60, 75),
    "solver": Part(30, 40),
    "genomic": Part(40, 50),
    "markers": Part(20, 40),
    "large": Part(120, 150),
}
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # the latter for the reference models


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("on_a_gpu"))
    parser.add_argument("--parts", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--part", choices=list(PARTS), help="one of --all, in this process")
    parser.add_argument("--systems", nargs="*", default=["small", "large"])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--classic", action="store_true")
    parser.add_argument("--regressions", action="store_true")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--threads", type=int, default=16, help="of the CPU's engine; 0: not timed")
    parser.add_argument("--wait-for", type=Path)
    arguments = parser.parse_args()
    if arguments.all:
        run_all(arguments.parts, arguments.out)
        return
    if arguments.part is not None:
        run_part(arguments.part)
        return
    prepared = {name: prepare(name, arguments.scale) for name in arguments.systems}
    while arguments.wait_for is not None and not arguments.wait_for.exists():
        time.sleep(0.2)
    for name, (design, herds, equations) in prepared.items():
        print(f"\n{name}: {design.n_equations:,} equations, {design.n_records:,} records", flush=True)
        system(name, design, herds, equations, arguments)
    if arguments.regressions:
        regressions(arguments.scale)
    if arguments.classic:
        whole_table(arguments.scale)


def run_all(parts: list[str], out: Path) -> None:
    """Each part in a process of its own, to its end or its limit; then the table."""
    out.mkdir(parents=True, exist_ok=True)
    rows, seconds = [], {}
    for name in parts:
        print(f"\n== {name}: {PARTS[name].predicted} s by prediction, at most {PARTS[name].limit}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "tests/gpu"]
        if name != "tests":
            command = [sys.executable, __file__, "--part", name]
        started, file = time.perf_counter(), out / f"{name}.txt"
        with open(file, "w", encoding="utf-8") as target:
            process = subprocess.Popen(command, cwd=ROOT, stdout=target, stderr=subprocess.STDOUT)
            try:
                ended = f"exit code {process.wait(PARTS[name].limit)}"
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                ended = "ended at its limit"
        text = file.read_text(encoding="utf-8")
        print(text, end="", flush=True)
        seconds[name] = f"{time.perf_counter() - started:.0f} s, {ended}"
        rows += [json.loads(line.removeprefix(MEASURED)) for line in text.splitlines() if line.startswith(MEASURED)]
    print(f"\n{'measured ms':>12} {'predicted ms':>12} {'ratio':>6}  what")
    for row in rows:
        ratio = row["seconds"] / row["predicted"]
        print(f"{1e3 * row['seconds']:12.4g} {1e3 * row['predicted']:12.4g} {ratio:6.2f}  {row['what']}")
    for name, text in seconds.items():
        print(f"{name}: {text}")
    (out / "table.json").write_text(json.dumps({"rows": rows, "parts": seconds}, indent=1), encoding="utf-8")


def measured(what: str, seconds: float, predicted: float) -> None:
    """Say a row of the table."""
    print(MEASURED + json.dumps({"what": what, "seconds": seconds, "predicted": predicted}), flush=True)


def run_part(name: str) -> None:
    """A part of --all but the tests; why it is not measured, where there is no device."""
    from mmgibbs.errors import DeviceError
    from mmgibbs.machine.device import Device

    try:
        device = Device()
    except DeviceError as error:
        print(f"not measured: {error}")
        return
    if name in ("small", "large"):
        threads = 16 if name == "small" else 0
        given = argparse.Namespace(scale=1.0, kernels=name == "small", threads=threads)
        system(name, *prepare(name, 1.0), given)
    elif name == "regressions":
        regressions(1.0)
    else:
        {
            "recorded": compare_recorded,
            "device": measure_device,
            "choices": measure_choices,
            "solver": measure_solver,
            "genomic": measure_genomic,
            "markers": measure_markers,
        }[name](device)


def compare_recorded(device) -> None:
    """Draws of small cases beside those recorded; the process fails where they differ."""
    from benchmarks.recorded import compare_device

    if compare_device(device):
        sys.exit(1)


def measure_device(device) -> None:
    """Copies, waits, launches one by one and as nodes of a graph."""
    from benchmarks.gpu import copy_bandwidth
    from mmgibbs.draws.source import cuda_source
    from mmgibbs.machine.gpu_queue import GpuQueue

    queue = GpuQueue(device)
    nominal, found = device.nominal_bandwidth, copy_bandwidth(queue)
    print(f"{device.name}: copies at {found / 1e9:.0f} GB/s, nominally {nominal / 1e9:.0f}")
    text = cuda_source("phases") + 'extern "C" __global__ void touch(double *x) { PHASE { x[0] += 1.0; } }'
    touch, x = queue.kernels(text, ["touch"])["touch"], queue.empty(1, np.float64)
    work = lambda: [touch(1, 32, x) for _ in range(1000)]
    work()
    queue.synchronize()
    measured("a launch", clock(work, queue.synchronize) / 1000, 3e-6)
    queue.repeat("nodes", work)
    queue.repeat("nodes", work)
    measured("a node of a graph", clock(lambda: queue.repeat("nodes", work), queue.synchronize) / 1000, 1.3e-6)
    measured("a launch and a wait", clock(lambda: touch(1, 32, x), queue.synchronize), 1.5e-5)


def clock(work, wait, repeats: int = 5) -> float:
    """Median seconds of work that is waited for."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        wait()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


CHOICES = {"resident.LONG_VISITS": (16, 32, 64), "resident.PIECE": (1024, 2048, 4096), "engine.FEW_PIECES": (0, 16)}


def measure_choices(_device) -> None:
    """Sweeps of the small system with one constant changed at a time, in turns: a round of all, twice."""
    from importlib import import_module

    from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine

    _, herds, equations = prepare("small", 1.0)
    settings = [(name, value) for name, values in CHOICES.items() for value in values]
    times: dict[tuple[str, int], list[float]] = {setting: [] for setting in settings}
    for _ in range(2):
        for name, value in settings:
            place, _, constant = name.partition(".")
            module = import_module(f"mmgibbs.engines.coloured_gpu.{place}")
            usual = getattr(module, constant)
            setattr(module, constant, value)
            try:
                engine = StructuredGpuEngine(equations)
                engine.set_variances(herds.G, herds.R)
                sweep_on(engine, (1, 0))
                times[name, value].append(engine.queue.seconds(partial(sweep_on, engine, (1, 0))) / SWEEPS)
            finally:
                setattr(module, constant, usual)
    for (name, value), found in times.items():
        measured(f"small, fixed, {name} = {value}", statistics.median(found), PREDICTED_SECONDS["small"][0])


def measure_solver(device, scale: float = 1.0) -> None:
    """An iteration of conjugate gradients on the small system, one right-hand side and 16 of them."""
    from mmgibbs.engines.pcg.device_solver import DevicePcgSolver, bytes_per_iteration
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations
    from mmgibbs.machine.threads import ALONE

    design, herds, _ = prepare("small", scale)
    equations = structured_equations(design, partition(design))
    solver = DevicePcgSolver(equations, ALONE, device)
    solver.set_variances(herds.G, herds.R)
    for columns in (1, 16):
        b = np.random.default_rng(1).standard_normal((int(solver.bounds[-1]), columns)) * solver.active[:, None]
        run = lambda iterations, b=b: solver._iterate(b, 0 * b, np.zeros(b.shape[1]), iterations)
        run(16)
        started = time.perf_counter()
        run(16)
        first = time.perf_counter()
        run(48)
        seconds = (time.perf_counter() - first - (first - started)) / 32
        moved = bytes_per_iteration(equations, columns)
        predicted = moved / device.nominal_bandwidth + CALLS_OF_AN_ITERATION * CALL_SECONDS
        measured(f"pcg, small, an iteration of {columns} right-hand sides", seconds, predicted)


class RandomGenotypes(NamedTuple):
    """Centred genotypes of n animals, in the place of a store."""

    n: int

    def double(self, rows: np.ndarray) -> np.ndarray:
        return np.random.default_rng(int(rows[0])).integers(-1, 2, (len(rows), self.n)).astype(np.float64)


def measure_genomic(device, n: int = 10_000, snps: int = 20_000, sweeps: bool = True) -> None:
    """Relationships made and inverted, and a sweep of the dense block."""
    from mmgibbs.genotypes.on_device import DeviceMatrices

    on, started = DeviceMatrices(device), time.perf_counter()
    K = on.multiply(RandomGenotypes(n), np.arange(snps), n) / snps
    made = time.perf_counter()
    measured(f"G of {n:,} x {snps:,}", made - started, 2 * n**2 * snps / DOUBLE_OPERATIONS + 1e-8 * n * snps)
    K[np.diag_indices(n)] += 0.1
    started = time.perf_counter()
    inverse = on.invert(K)
    measured(f"its inverse, n = {n:,}", time.perf_counter() - started, 3.4 * n**3 / DOUBLE_OPERATIONS + 2e-9 * n**2)
    if sweeps:
        del K
        sweep_dense(inverse.astype(np.float32), device)


def make_dense_engine(S: np.ndarray, device):
    """The engine of animals with one record each that S joins."""
    from reference.models import class_term, random_term

    from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations
    from mmgibbs.models.design import Design
    from mmgibbs.models.relationships.base import DenseBlock
    from mmgibbs.models.relationships.genomic import Genomic
    from mmgibbs.models.terms import Effect

    n = len(S)
    levels = np.arange(n, dtype=np.int32)
    kind = Genomic(DenseBlock(levels, S), np.ones(n), {})
    terms = (class_term("herd", levels % 50, 50, [0]), random_term("genetic", [Effect("", levels, (0,))], kind, n))
    y = np.random.default_rng(2).standard_normal((n, 1))
    design = Design(("gain",), y, np.zeros(n, np.int32), np.ones((1, 1), bool), np.ones(n), terms)
    engine = StructuredGpuEngine(structured_equations(design, partition(design, "colour"), "single"), device=device)
    engine.set_variances([None, np.eye(1)], np.eye(1))
    return engine


def sweep_dense(S: np.ndarray, device) -> None:
    """A sweep of a dense block."""
    engine, n = make_dense_engine(S, device), len(S)
    sweep_on(engine, (1, 0))
    seconds = engine.queue.seconds(partial(sweep_on, engine, (1, 0))) / SWEEPS
    measured(f"a sweep of a dense block of {n:,}", seconds, -(-n // 128) * TILE_SECONDS)


def prepare(name: str, scale: float):
    """Design, herds and equations of a system of the poster's size."""
    from benchmarks.engines import SYSTEMS
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations
    from mmgibbs.simulation.simulate import beef_design, simulate_beef

    herds = simulate_beef(int(SYSTEMS[name][0] * scale), 1)
    design = beef_design(herds)
    return design, herds, structured_equations(design, partition(design, "colour"), "single")


def system(name: str, design, herds, equations, arguments: argparse.Namespace) -> None:
    from benchmarks.effective import sampled_model, steps_and_seconds
    from benchmarks.gpu import copy_bandwidth
    from mmgibbs.engines.coloured.engine import StructuredEngine
    from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine
    from mmgibbs.engines.coloured_gpu.sizes import bytes_per_sweep

    model, key = sampled_model(design, herds.G, herds.R), (1, 0)
    started = time.perf_counter()
    engine = StructuredGpuEngine(equations)
    engine.set_variances(herds.G, herds.R)
    for number in range(1, 4):  # compiles, then records
        engine.sweep(number, key)
    engine.queue.synchronize()
    print(f"on {engine.queue.device.name}: built, compiled and recorded in {time.perf_counter() - started:.1f} s")
    for _ in range(3):
        fixed = engine.queue.seconds(partial(sweep_on, engine, key)) / SWEEPS
        sampled = seconds_of_chain(model, engine, key)
        print(f"fixed {1e3 * fixed:.3f} ms, sampled {1e3 * sampled:.3f} ms: {sampled / fixed:.2f}")
    if arguments.scale == 1:
        for what, seconds, predicted in zip(
            ("fixed", "sampled"), (fixed, sampled), PREDICTED_SECONDS[name], strict=True
        ):
            measured(f"{name}, {what}", seconds, predicted)
    if name == "small":
        several_chains(model, equations, engine, arguments.scale)
    steps, _ = steps_and_seconds(model, engine, True, key, 5)
    moved, bandwidth = bytes_per_sweep(equations), copy_bandwidth(engine.queue)
    print(f"{moved / 1e9:.3f} GB a sweep, copies at {bandwidth / 1e9:.0f} GB/s: {1e3 * moved / bandwidth:.3f} ms, "
          f"{fixed * bandwidth / moved:.1f} times that")  # fmt: skip
    for row in steps:
        print(json.dumps(row))
    if arguments.kernels:
        engine.set_variances(herds.G, herds.R)
        works = steps_of(engine, design, key)
        for what, work in works.items():
            of_kernels(engine, what, work)
    del engine
    binary, equations_of_binary = with_binary_trait(model)
    besides = seconds_of_chain(binary, StructuredGpuEngine(equations_of_binary), key) - sampled
    print(f"a binary trait besides: {1e3 * besides:.3f} ms")
    if arguments.scale == 1:
        measured(f"{name}, a binary trait besides", besides, PREDICTED_SECONDS_OF_A_BINARY_TRAIT[name])
    if arguments.threads:
        cpu = StructuredEngine(equations, threads=arguments.threads)
        cpu.set_variances(herds.G, herds.R)
        times = []
        for number in range(1, 12):
            started = time.perf_counter()
            cpu.sweep(number, key)
            times.append(time.perf_counter() - started)
        sampled = steps_and_seconds(model, cpu, True, key, 5)[1]
        print(f"the CPU on {arguments.threads} threads: fixed {statistics.median(times[2:]):.4f} s, "
              f"sampled {sampled:.4f} s")  # fmt: skip


def several_chains(model, equations, engine, scale: float) -> None:
    """Sampled sweeps of two and of four chains side by side, the first on an engine that there is."""
    from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine

    engines = [engine, *(StructuredGpuEngine(equations, beside=engine) for _ in range(3))]
    for n, predicted in PREDICTED_SECONDS_SIDE_BY_SIDE.items():
        seconds = seconds_of_chains(model, engines[:n], 1)
        print(f"{n} chains side by side, sampled: {1e3 * seconds:.3f} ms a sweep of all")
        if scale == 1:
            measured(f"small, sampled, {n} chains side by side", seconds, predicted)


def seconds_of_chain(model, engine, key: tuple[int, int], n_sweeps: int = SWEEPS) -> float:
    """Seconds of a sweep with all that is sampled, no draw kept and nothing waited for before the end."""
    return seconds_of_chains(model, [engine], key[0], n_sweeps)


def seconds_of_chains(model, engines: list, seed: int, n_sweeps: int = SWEEPS) -> float:
    """The same of a sweep of chains side by side, an engine and a thread for each."""
    from mmgibbs.sampler.chain import Chain
    from mmgibbs.sampler.interweave import terms_to_interweave
    from mmgibbs.sampler.schedule import Schedule

    schedule = Schedule(10**6, 1, interweave=terms_to_interweave(model, True))
    chains = [Chain(model, engine, schedule, (seed, c)) for c, engine in enumerate(engines)]

    def advance(chain, until: int) -> None:
        chain.advance(until)
        chain.engine.queue.synchronize()

    with ThreadPoolExecutor(len(chains)) as pool:
        for chain in chains:
            advance(chain, 3)  # compiles, then records
        started = time.perf_counter()
        list(pool.map(partial(advance, until=3 + n_sweeps), chains))
        return (time.perf_counter() - started) / n_sweeps


def with_binary_trait(model):
    """The model with a first trait of two categories, and its equations."""
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations
    from mmgibbs.models.families import Categories

    design, residual = model.design, model.residual.matrices[0]
    values = design.y[:, 0]
    is_high = np.where(np.isfinite(values), values > np.nanmedian(values), -1).astype(np.int16)
    response = Categories(0, ("low", "high"), is_high)
    y, scale = design.y.copy(), np.ones(len(residual.start))
    y[:, 0], scale[0] = response.start(), residual.start[0, 0] ** -0.5
    design = replace(design, y=y, responses=(response,))
    residual = replace(residual, start=residual.start * np.outer(scale, scale), unit=(0,))
    model = replace(model, design=design, residual=replace(model.residual, matrices=(residual,)))
    return model, structured_equations(design, partition(design, "colour"), "single")


def sweep_on(engine, key: tuple[int, int]) -> None:
    for number in range(SWEEPS):
        engine.sweep(100 + number, key)


def steps_of(engine, design, key: tuple[int, int]) -> dict:
    """What the device does in a sweep with sampled variances."""
    from mmgibbs.models.covariance import blocks_recorded_together

    genetic = next(i for i, t in enumerate(design.terms) if t.name == "genetic")
    k = design.terms[genetic].n_components
    elements = tuple((c, j) for c in range(k) for j in range(c + 1))
    blocks = blocks_recorded_together(design.patterns)

    def quadratic_forms() -> None:
        engine._quadratics.clear()
        engine.quadratic_form(genetic)

    return {
        "a sweep": engine.launch_sweep,
        "quadratic forms": quadratic_forms,
        "interweaving's sums": lambda: engine.scaling_products(genetic, elements),
        "a term moves": lambda: engine.transform_term(genetic, np.eye(k)),
        "residual products": lambda: engine.residual_products(8, key, blocks),
    }


def of_kernels(engine, what: str, work) -> None:
    """Milliseconds of each launch in the second of two runs, the device waited for between."""
    launch, found = engine.launch_blocks, []

    def timed(name, blocks, *given):
        found.append((name, blocks, engine.queue.seconds(lambda: launch(name, blocks, *given))))

    queue = engine.queue
    work()
    engine.launch_blocks = timed
    queue.repeat = lambda name, work: work()
    try:
        work()
    finally:
        del engine.launch_blocks, queue.repeat
    print(f"{what}: {1e3 * sum(s for _, _, s in found):.3f} ms in {len(found)} launches")
    for name, blocks, seconds in found:
        print(f"    {1e3 * seconds:8.4f} ms {blocks:>9,} blocks  {name}")


def measure_markers(device, n: int = 10_000, p: int = 10_240, n_sweeps: int = SWEEPS, priors=(*SNP_SECONDS,)) -> None:
    """Sweeps over the effects of p SNPs on n animals with a record each, all that is sampled included."""
    from benchmarks.markers import make_model, simulated
    from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations

    store, y = simulated(n, p, 1)
    for prior in priors:
        model = make_model(store, y, prior)
        equations = structured_equations(model.design, partition(model.design, "colour"), "single")
        seconds = seconds_of_chain(model, StructuredGpuEngine(equations, device=device), (1, 0), n_sweeps)
        predicted = p * (SNP_SECONDS[prior] + HOST_SECONDS_OF_A_SNP) + WAITS_OF_EFFECTS * CALL_SECONDS
        predicted += p / 64 * (3 * BARRIER_SECONDS + n * ANIMAL_SECONDS)
        measured(f"a sweep over {p:,} SNP effects on {n:,} animals, {prior}", seconds, predicted)


def whole_table(scale: float) -> None:
    from benchmarks.classic import ClassicEngine
    from benchmarks.engines import one_system

    given = argparse.Namespace(
        scale=scale, sweeps=5, ess_sweeps=0, engines=["hybrid", "structured"], seed=1, systems=["small"]
    )
    about, rows = one_system("small", given, classic=ClassicEngine)
    print()
    for row in rows:
        print(json.dumps(row), flush=True)
    print(json.dumps({k: v for k, v in about.items() if not isinstance(v, list)}))


def regressions(scale: float) -> None:
    from benchmarks.regressions import on_a_gpu

    print()
    for part in ("hierarchical", "lasso", "horseshoe", "multinomial", "hmc"):
        found = on_a_gpu(argparse.Namespace(scale=scale, parts=[part], threads=2))
        for row in found["on a GPU"] if isinstance(found["on a GPU"], list) else [found]:
            print(json.dumps(row), flush=True)
            if "predicted seconds" in row:
                measured(row["setting"], row["seconds per sweep"], row["predicted seconds"])


if __name__ == "__main__":
    main()
