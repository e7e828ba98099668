"""Classic, hybrid and structured engines side by side, on simulated systems of the size of the poster's three.

Golden, Lupo & Garrick: three traits, direct and maternal genetic effects, permanent environment, nine fixed-effect
blocks (three effects on three traits). Their seconds per sample are printed beside ours; their systems are their own
data, ours are simulated. Engines take turns, so that a machine that slows down slows all of them; random draws are
included everywhere; single precision. The classic sampler updates one equation after another and centred, the others
levels jointly and interwoven.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from benchmarks.effective import SAMPLED, mixing, sampled_model, steps_and_seconds, sweeps_that_fit
from benchmarks.gpu import NOT_MEASURED, structured_row
from mmgibbs.engines.base import Engine
from mmgibbs.engines.coloured.engine import StructuredEngine
from mmgibbs.engines.hybrid.engine import HybridEngine
from mmgibbs.equations.nonzeros import count_nonzeros
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import StructuredEquations, structured_equations
from mmgibbs.errors import DeviceError
from mmgibbs.machine.device import Device
from mmgibbs.machine.memory import free_bytes, peak_bytes
from mmgibbs.models.design import Design
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.simulation.simulate import Beef, beef_design, simulate_beef

# animals that give the poster's number of equations; the poster's equations and seconds per sample: classic, with its
# GPU
SYSTEMS = {
    "small": (1_180_000, 5.1e6, 1.482, 0.407),
    "medium": (6_550_000, 28.3e6, 11.46, 2.007),
    "large": (11_900_000, 51.4e6, 22.7, 4.352),
}
Classic = Callable[[StructuredEquations], Engine]
BYTES_PER_EXPLICIT_NONZERO = 12  # value and index, and the parts that new variances are made from, single precision


@dataclass
class Candidate:
    """An engine that takes part, or `missing`: why it does not."""

    label: str
    size: int  # bytes of its equations
    engine: Engine | None = None
    missing: str = ""
    built: float = 0.0  # seconds
    times: list[float] = field(default_factory=list)

    @property
    def classic(self) -> bool:
        return self.label.startswith("classic")

    def row(self) -> dict:
        row = {"engine": self.label, "bytes": self.size}
        if self.missing:
            return row | {"s per sample": self.missing}
        return row | {"build s": self.built, "s per sample": statistics.median(self.times)}


def bench_engines(args: argparse.Namespace) -> dict:
    out = {"scale": args.scale}
    for name in args.systems:
        about, rows = one_system(name, args)
        out |= {f"{name}: {k}": v for k, v in about.items()} | {f"{name}: engines": rows}
    return out | {"peak resident bytes": peak_bytes()}


def one_system(
    name: str, args: argparse.Namespace, device: Device | None = None, classic: Classic | None = None
) -> tuple[dict, list[dict]]:
    """What the system is, and a row per engine and number of threads.

    device: a mmgibbs.machine.device.Device, the current one where None. classic: makes the classic sampler, a
    baseline that benchmarks has."""
    animals, poster_equations, poster_classic, poster_gpu = SYSTEMS[name]
    beef = simulate_beef(int(animals * args.scale), args.seed)
    design = beef_design(beef)
    nonzeros = count_nonzeros(design)[0] if design.n_records < 3_000_000 else None
    about = {
        "equations": design.n_equations,
        "nonzeros": nonzeros if nonzeros else "not counted",
        "density": nonzeros / design.n_equations**2 if nonzeros else "",
        "animals observed": design.n_records,
    }
    try:
        device = device or Device()
    except DeviceError as error:
        about["GPU"] = str(error)
    candidates = list(candidates_of(design, args, nonzeros, device, classic))
    take_turns(candidates, beef, args)
    rows = [c.row() for c in candidates]
    if "structured" in args.engines:
        row, figures = structured_on_a_gpu(design, beef, args, device)
        rows.append(row)
        about |= figures
    if rows[0]["engine"].startswith("classic") and not candidates[0].missing:
        for row in rows:
            if isinstance(row["s per sample"], float):
                row["of classic"] = row["s per sample"] / rows[0]["s per sample"]
    about |= add_effective_draws(rows, candidates, sampled_model(design, beef.G, beef.R, args.seed), args)
    rows += [
        {"engine": f"the poster, classic ({poster_equations / 1e6:g} M equations)", "s per sample": poster_classic},
        {
            "engine": "the poster, hybrid with its GPU",
            "s per sample": poster_gpu,
            "of classic": poster_gpu / poster_classic,
        },
    ]
    return about, rows


def structured_on_a_gpu(
    design: Design, beef: Beef, args: argparse.Namespace, device: Device | None
) -> tuple[dict, dict]:
    """Its row, and what else is known of it."""
    if device is None:
        return {"engine": "structured on a GPU", "s per sample": NOT_MEASURED}, {}
    figures = structured_row(design, beef.G, beef.R, 10 * args.sweeps, args.seed, device=device)
    columns = [c for c in ("engine", "build s", "s per sample", SAMPLED) if c in figures]
    return {c: figures.pop(c) for c in columns}, {f"structured on a GPU, {k}": v for k, v in figures.items()}


def candidates_of(
    design: Design,
    args: argparse.Namespace,
    nonzeros: int | None,
    device: Device | None,
    classic: Classic | None = None,
) -> Iterator[Candidate]:
    """Every engine asked for, the classic one first; the hybrid one on the device too, where there is one."""
    explicit = BYTES_PER_EXPLICIT_NONZERO * (nonzeros or 31 * design.n_equations)
    coloured = structured_equations(design, partition(design, "colour"), "single")
    makers: list[tuple[str, int, Callable[[], Engine] | None]] = []
    if classic is not None:
        natural = structured_equations(design, partition(design, "term"), "single")
        makers.append(("classic explicit, 1 thread", explicit, partial(classic, natural)))
    if "hybrid" in args.engines:
        for t in (1, 2):
            makers.append((f"hybrid, colours, {t} thread(s)", explicit, partial(HybridEngine, coloured, threads=t)))
        on_gpu = None if device is None else partial(HybridEngine, coloured, device=device)
        makers.append(("hybrid on a GPU", explicit, on_gpu))
    if "structured" in args.engines:
        for t in (1, 2):
            makers.append(
                (f"structured, {t} thread(s)", coloured.bytes, partial(StructuredEngine, coloured, threads=t))
            )
    for label, size, make in makers:
        free = free_bytes()
        if make is None:
            yield Candidate(label, size, missing=NOT_MEASURED)
        elif size == explicit and free is not None and size > free:
            yield Candidate(label, size, missing=f"not run: about {size / 1e9:.1f} GB needed, {free / 1e9:.1f} GB free")
        else:
            started = time.perf_counter()
            try:
                engine = make()
            except DeviceError as error:
                yield Candidate(label, size, missing=f"{NOT_MEASURED} ({error})")
            else:
                yield Candidate(label, size, engine, built=time.perf_counter() - started)


def take_turns(candidates: list[Candidate], beef: Beef, args: argparse.Namespace) -> None:
    """A turn: a sweep, then one that is timed, then a wait for what it left to other threads, or it would cost the next
    engine.

    So the timed sweep finds the updates that the one before has left, and leaves as many."""
    present = [(c, c.engine) for c in candidates if c.engine is not None]
    for turn in range(args.sweeps + 1):  # the first one compiles
        for c, engine in present:
            if turn == 0:
                engine.set_variances(list(beef.G), beef.R)
            engine.sweep(2 * turn + 1, (args.seed, 0))
            started = time.perf_counter()
            engine.sweep(2 * turn + 2, (args.seed, 0))
            seconds = time.perf_counter() - started
            if isinstance(engine, HybridEngine):
                engine.settle()
            if turn > 0:
                c.times.append(seconds)


def add_effective_draws(
    rows: list[dict], candidates: list[Candidate], model: MixedModel, args: argparse.Namespace
) -> dict:
    """ESS per second of the rows that have been measured; returns the sweeps behind it, and the steps of a sweep of the
    structured engine."""
    if args.ess_sweeps == 0:
        return {}
    present, key = [(c, c.engine) for c in candidates if c.engine is not None], (args.seed, 0)
    timed = {c.label: steps_and_seconds(model, engine, not c.classic, key, args.sweeps) for c, engine in present}
    seconds = {label: whole for label, (_, whole) in timed.items()}
    seconds |= {row["engine"]: row[SAMPLED] for row in rows if SAMPLED in row}
    behind: dict = {f"steps of a sweep, {label}": steps for label, (steps, _) in timed.items() if "struct" in label}
    for classic, chain in ((True, "classic, centred"), (False, "levels, interwoven")):
        alike = [(c, engine) for c, engine in present if c.classic == classic]
        if not alike:
            continue
        fastest, engine = min(alike, key=lambda found: seconds[found[0].label])
        found = mixing(model, engine, not classic, key, args.ess_sweeps or sweeps_that_fit(seconds[fastest.label]))
        behind[f"sweeps behind ESS, {chain}"] = found.sweeps
        for row in rows:
            if row["engine"] in seconds and row["engine"].startswith("classic") == classic:
                row |= found.per_second(seconds[row["engine"]])
    return behind
