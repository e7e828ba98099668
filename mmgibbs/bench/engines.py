"""Classic, hybrid and structured engines side by side, on simulated systems of the size of the poster's three.

Golden, Lupo & Garrick: three traits, direct and maternal genetic effects, permanent environment, nine fixed-effect blocks (three
effects on three traits). Their seconds per sample are printed beside ours; their systems are their own data, ours are simulated.
Engines take turns, so that a machine that slows down slows all of them; random draws are included everywhere; single precision.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

from mmgibbs.bench.machine import peak_bytes

# animals that give the poster's number of equations; the poster's equations and seconds per sample: classic, with its GPU
SYSTEMS = {
    "small": (1_180_000, 5.1e6, 1.482, 0.407),
    "medium": (6_550_000, 28.3e6, 11.46, 2.007),
    "large": (11_900_000, 51.4e6, 22.7, 4.352),
}
BYTES_PER_EXPLICIT_NONZERO = 12  # values and indices of C, and the parts that new variances are made from, single precision
NOT_MEASURED = "not measured"


def bench_engines(args) -> dict:
    out = {"scale": args.scale}
    for name in args.systems:
        about, rows = one_system(name, args)
        out |= {f"{name}: {k}": v for k, v in about.items()} | {f"{name}: engines": rows}
    return out | {"peak resident bytes": peak_bytes()}


def one_system(name: str, args) -> tuple[dict, list[dict]]:
    """What the system is, and a row per engine and number of threads."""
    from mmgibbs.equations.nonzeros import count_nonzeros
    from mmgibbs.simulate import beef_design, simulate_beef

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
    rows = []
    for label, engine, built, size in engines_of(design, args, nonzeros):
        rows.append({"engine": label, "engine object": engine, "bytes": size, "build s": built})
    times: dict[int, list[float]] = {i: [] for i in range(len(rows))}
    for number in range(1, args.sweeps + 2):
        for i, row in enumerate(rows):
            engine = row["engine object"]
            if isinstance(engine, str):
                continue
            if number == 1:
                engine.set_variances(beef.G, beef.R)
            started = time.perf_counter()
            engine.sweep(number, (args.seed, 0))
            if number > 1:  # the first compiles
                times[i].append(time.perf_counter() - started)
    base = statistics.median(times[0]) if rows and times[0] and rows[0]["engine"].startswith("classic") else None
    for i, row in enumerate(rows):
        engine = row.pop("engine object")
        if isinstance(engine, str):
            row["s per sample"] = engine
            continue
        row["s per sample"] = statistics.median(times[i])
        row["of classic"] = row["s per sample"] / base if base else ""
        if args.ess_sweeps and row["engine"].startswith("structured"):
            row |= ess_per_second(beef, design, engine, args)
    rows += [
        {"engine": "hybrid on a GPU", "s per sample": NOT_MEASURED},
        {"engine": "structured on a GPU", "s per sample": NOT_MEASURED},
        {"engine": f"the poster, classic ({poster_equations / 1e6:g} M equations)", "s per sample": poster_classic},
        {"engine": "the poster, hybrid with its GPU", "s per sample": poster_gpu, "of classic": poster_gpu / poster_classic},
    ]
    return about, rows


def engines_of(design, args, nonzeros):
    """(label, engine or the reason why there is none, seconds to build, bytes) for every engine asked for; the classic one first."""
    from mmgibbs.engines.classic import ClassicEngine
    from mmgibbs.engines.hybrid import HybridEngine
    from mmgibbs.engines.structured import StructuredEngine
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations
    from mmgibbs.parallel import free_bytes

    need = BYTES_PER_EXPLICIT_NONZERO * (nonzeros or 31 * design.n_equations)
    coloured = structured_equations(design, partition(design, "colour"), "single")
    makers = []
    if "classic" in args.engines:
        natural = structured_equations(design, partition(design, "term"), "single")
        makers.append(("classic explicit, 1 thread", lambda: ClassicEngine(natural), True))
    if "hybrid" in args.engines:
        makers += [(f"hybrid, colours, {t} thread(s)", lambda t=t: HybridEngine(coloured, "level", threads=t), True) for t in (1, 2)]
    if "structured" in args.engines:
        makers += [(f"structured, {t} thread(s)", lambda t=t: StructuredEngine(coloured, "level", t), False) for t in (1, 2)]
    for label, make, explicit in makers:
        free = free_bytes()
        if explicit and free is not None and need > free:
            yield label, f"not run: about {need / 1e9:.1f} GB needed, {free / 1e9:.1f} GB free", 0.0, need
            continue
        started = time.perf_counter()
        engine = make()
        yield label, engine, time.perf_counter() - started, need if explicit else coloured.bytes


def ess_per_second(beef, design, engine, args) -> dict:
    """Effective draws per second of the genetic variances and of a sample of breeding values, variances sampled, interweaving on."""
    from mmgibbs.chains.diagnostics import diagnose
    from mmgibbs.interweave import terms_to_interweave
    from mmgibbs.sampler import MixedModel, Schedule, sample_chain
    from mmgibbs.variances import CovarianceModel, blocks_recorded_together, full_block

    covariances = tuple(None if g is None else CovarianceModel(np.asarray(g, float), False, full_block(len(g))) for g in beef.G)
    residual = CovarianceModel(np.asarray(beef.R, float), False, blocks_recorded_together(design.patterns))
    genetic = next(t for t in design.terms if t.name == "genetic")
    chosen = np.random.default_rng(args.seed).choice(genetic.n_levels, 20, replace=False)
    model = MixedModel(design, covariances, residual, {"genetic": chosen})
    burn_in = args.ess_sweeps // 5
    schedule = Schedule(burn_in, args.ess_sweeps, 1, chains=1, interweave=terms_to_interweave(model))
    engine.start()
    result = sample_chain(model, engine, schedule, (args.seed, 0))
    per_sweep = result.seconds / result.sweeps
    G = result.variances[0]
    of_variances = [diagnose(G[None, :, c, c])["ess_bulk"] for c in range(G.shape[1])]
    of_values = [diagnose(result.saved["genetic"][None, :, a, 0])["ess_bulk"] for a in range(chosen.size)]
    return {
        "s per sweep, variances sampled": per_sweep,
        "ESS/s, genetic variances (least)": min(of_variances) / (args.ess_sweeps * per_sweep),
        "ESS/s, breeding values (median)": float(np.median(of_values)) / (args.ess_sweeps * per_sweep),
    }
