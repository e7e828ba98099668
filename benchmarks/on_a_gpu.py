"""What a GPU takes: every engine that has a device side, in one run, on one machine, beside the same machine's CPU.

    python benchmarks/on_a_gpu.py [--systems small large] [--classic] [--regressions] [--kernels]
        [--threads N] [--wait-for FILE]

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
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SWEEPS = 50  # timed at once
# Seconds of a sweep with fixed and with sampled variances on an H200, by arithmetic: the location effects as an earlier
# state of their kernels took, and the kernels beside them without the waits that these had. No measurement.
PREDICTED_SECONDS = {"small": (6e-4, 1.1e-3), "large": (5.6e-3, 1.15e-2)}
PREDICTED_SECONDS_OF_A_BINARY_TRAIT = {"small": 8e-5, "large": 5e-4}  # besides
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # the latter for the classic engine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", nargs="*", default=["small", "large"])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--classic", action="store_true")
    parser.add_argument("--regressions", action="store_true")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--threads", type=int, default=16, help="of the CPU's engine; 0: not timed")
    parser.add_argument("--wait-for", type=Path)
    arguments = parser.parse_args()
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
        ratios = [a / b for a, b in zip((fixed, sampled), PREDICTED_SECONDS[name], strict=True)]
        print(f"measured over predicted: fixed {ratios[0]:.2f}, sampled {ratios[1]:.2f}")
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
        print(f"measured over predicted: {besides / PREDICTED_SECONDS_OF_A_BINARY_TRAIT[name]:.2f}")
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


def seconds_of_chain(model, engine, key: tuple[int, int], n_sweeps: int = SWEEPS) -> float:
    """Seconds of a sweep with all that is sampled, no draw kept and nothing waited for before the end."""
    from mmgibbs.sampler.chain import Chain
    from mmgibbs.sampler.interweave import terms_to_interweave
    from mmgibbs.sampler.schedule import Schedule

    chain = Chain(model, engine, Schedule(10**6, 1, interweave=terms_to_interweave(model, True)), key)
    chain.advance(3)  # compiles, then records
    engine.queue.synchronize()
    started = time.perf_counter()
    chain.advance(3 + n_sweeps)
    engine.queue.synchronize()
    return (time.perf_counter() - started) / n_sweeps


def with_binary_trait(model):
    """The model with a first trait of two categories, and its equations."""
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations
    from mmgibbs.models.response import Categories

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


def whole_table(scale: float) -> None:
    from helpers.classic import ClassicEngine

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


if __name__ == "__main__":
    main()
