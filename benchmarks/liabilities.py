"""Sweeps of traits that are not normal beside the same records as normal traits, in one run.

    python benchmarks/liabilities.py [--records 364000] [--animals 1000000] [--sweeps 2000] [--threads 2] [--part ...]

categories   a trait in three categories (91, 6 and 3 %) of `records` records with two class effects, one fixed and one
             random, and its liability as a normal trait: seconds a sweep, the autocorrelation time of t_2
animals      the simulated beef system of `animals` animals with one trait of three cut to a binary one, and as it is

One chain, variances sampled; seconds are medians, of every step and of the whole sweep; processor seconds stand still
while others use the machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from mmgibbs.engines.choice import EngineChoice  # noqa: E402
from mmgibbs.equations.partition import partition  # noqa: E402
from mmgibbs.equations.structured import structured_equations  # noqa: E402
from mmgibbs.models.covariance import CovarianceModel, full_block  # noqa: E402
from mmgibbs.models.families import Categories  # noqa: E402
from mmgibbs.models.residual import ResidualModel  # noqa: E402
from mmgibbs.sampler.interweave import terms_to_interweave  # noqa: E402
from mmgibbs.sampler.mixed_model import MixedModel  # noqa: E402
from mmgibbs.sampler.schedule import Schedule  # noqa: E402
from mmgibbs.sampler.steps import gibbs_steps  # noqa: E402


def categories(args: argparse.Namespace) -> dict:
    rng, n = np.random.default_rng(args.seed), args.records
    effects = {"age": (12, 0.3), "herd": (max(2, n // 90), 0.5)}
    levels = {name: rng.integers(0, q, n) for name, (q, _) in effects.items()}
    liability = rng.standard_normal(n) - 1.6
    for name, (q, sd) in effects.items():
        liability += (sd * rng.standard_normal(q))[levels[name]]
    category = np.searchsorted([0.0, 0.7], liability)
    out = {"records": n, "shares": np.round(np.bincount(category) / n, 4).tolist()}
    for name, trait, y in (("ordinal", {"type": "ordinal"}, category), ("normal", {}, liability)):
        model = from_table(levels | {"y": y}, trait)
        out[name] = timed(model, args, ("threshold.0",) if trait else ())
    draws = out["ordinal"].pop("threshold.0")
    return out | {
        **ratios(out["ordinal"], out["normal"]),
        "tau of t_2": autocorrelation_time(draws[:, 0]),
        "t_2": [draws.mean(), draws.std()],
    }


def from_table(columns: dict[str, np.ndarray], trait: dict) -> MixedModel:
    import polars as pl

    from mmgibbs.build.assemble import assemble
    from mmgibbs.config import load_config
    from mmgibbs.data.prepare import prepare

    frame = pl.DataFrame({name: pl.Series(values) for name, values in columns.items()})
    analysis = load_config({
        "name": "categories",
        "data": {"phenotypes": frame},
        "traits": {"y": trait},
        "model": {"fixed": {"age": {}}, "random": {"herd": {}}},
    })  # fmt: skip
    return assemble(analysis, prepare(analysis)).model


def animals(args: argparse.Namespace) -> dict:
    from mmgibbs.simulation.simulate import beef_design, simulate_beef

    beef = simulate_beef(args.animals, args.seed)
    design = beef_design(beef)
    observed = design.patterns[design.pattern, 0]
    cut = np.quantile(design.y[observed, 0], 0.8)
    category = np.where(observed, design.y[:, 0] > cut, -1).astype(np.int16)
    response = Categories(0, ("0", "1"), category)
    y = design.y.copy()
    y[:, 0] = np.where(observed, response.start(), 0.0)
    R = beef.R / np.outer(*[np.array([np.sqrt(beef.R[0, 0]), 1.0, 1.0])] * 2)
    out = {"animals": args.animals, "records": design.n_records}
    free = lambda start, unit=(): CovarianceModel(start, False, full_block(len(start)), unit=unit)
    G = [None if g is None else free(g) for g in beef.G]
    out["three normal traits"] = timed(MixedModel(design, tuple(G), ResidualModel((free(beef.R),))), args)
    binary = replace(design, y=y, responses=(response,))
    out["one binary, two normal"] = timed(MixedModel(binary, tuple(G), ResidualModel((free(R, (0,)),))), args)
    return out | ratios(out["one binary, two normal"], out["three normal traits"])


def ratios(a: dict, b: dict) -> dict:
    return {
        f"ratio of {what}": a[f"{what} a sweep"] / b[f"{what} a sweep"] for what in ("seconds", "processor seconds")
    }


def timed(model: MixedModel, args: argparse.Namespace, kept: tuple[str, ...] = ()) -> dict:
    """Median seconds of a sweep and of each of its steps, and the draws of some parameters after burn-in."""
    kind = "colour" if args.engine == "structured" else "auto"
    equations = structured_equations(model.design, partition(model.design, kind), args.precision)
    engine = EngineChoice(args.engine, "level", args.threads).build(equations)
    burn_in = args.sweeps // 4
    schedule = Schedule(burn_in, args.sweeps, interweave=terms_to_interweave(model))
    steps = gibbs_steps(model, engine, schedule, (args.seed, 0))
    seconds, draws = defaultdict(list), defaultdict(list)
    processor = []
    for number in range(1, burn_in + args.sweeps + 1):
        processor.append(-time.process_time())
        for i, step in enumerate(steps):
            seconds[f"{i} {type(step).__name__}"].append(clocked(partial(step, number)))
        processor[-1] += time.process_time()
        for step in steps if number > burn_in and kept else ():
            for name, value in step.draws().items():
                draws[name].append(np.array(value))
    after = {name: values[1:] for name, values in seconds.items()}
    total = float(np.median(np.sum(list(after.values()), axis=0)))
    each = {name: float(np.median(values)) for name, values in after.items()}
    of_all = {"seconds a sweep": total, "processor seconds a sweep": float(np.median(processor[1:]))}
    return of_all | {"seconds of each step": each} | {name: np.array(draws[name]) for name in kept}


def clocked(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def autocorrelation_time(x: np.ndarray) -> float:
    """1 + 2 sum of autocorrelations up to the first window of five times itself (Sokal's rule)."""
    x = x - x.mean()
    spectrum = np.abs(np.fft.rfft(x, 2 * len(x))) ** 2
    rho = np.fft.irfft(spectrum)[: len(x)]
    tau = 2 * np.cumsum(rho / rho[0]) - 1
    within = np.arange(len(tau)) >= 5 * tau
    return float(tau[within.argmax() if within.any() else -1])


def main() -> None:
    parser = argparse.ArgumentParser(description="sweeps of traits that are not normal")
    parser.add_argument("--part", nargs="+", choices=("categories", "animals"), default=["categories", "animals"])
    parser.add_argument("--records", type=int, default=364_000, help="default: %(default)s")
    parser.add_argument("--animals", type=int, default=1_000_000, help="default: %(default)s")
    parser.add_argument("--sweeps", type=int, default=2000, help="after a quarter of burn-in; default: %(default)s")
    parser.add_argument("--threads", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--engine", default="structured", choices=("serial", "structured"))
    parser.add_argument("--precision", default="single", choices=("single", "double"))
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for part in args.part:
        print(json.dumps({part: {"categories": categories, "animals": animals}[part](args)}, indent=1))


if __name__ == "__main__":
    main()
