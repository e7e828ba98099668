"""Effective draws of the variances per sweep and per second: site by site, level by level, interwoven, and exact draws.

    python benchmarks/interweaving.py [--sweeps 20000] [--seed 1] [--case simdata ...] [--json result.json]

One chain; seconds are the processor time of the sampling steps (locations, variances), burn-in and what is recorded
left out. Effective draws are the rank-normalised bulk ESS. simdata and gryphon need ../shared/data and are left out
where it is absent.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
SHARED = ROOT.parent / "shared" / "data"

from mmgibbs.config.sampling import TOLERANCES  # noqa: E402
from mmgibbs.engines.choice import EngineChoice  # noqa: E402
from mmgibbs.engines.pcg.engine import PcgEngine  # noqa: E402
from mmgibbs.engines.serial import SerialEngine  # noqa: E402
from mmgibbs.equations.partition import partition  # noqa: E402
from mmgibbs.equations.structured import structured_equations  # noqa: E402
from mmgibbs.posterior.diagnostics import diagnose  # noqa: E402
from mmgibbs.sampler.covariances import starting_matrices  # noqa: E402
from mmgibbs.sampler.interweave import terms_to_interweave  # noqa: E402
from mmgibbs.sampler.schedule import Schedule  # noqa: E402
from mmgibbs.sampler.steps import gibbs_steps  # noqa: E402

BURN_IN = 1000
ANIMAL = {"level": "animal", "relationship": "pedigree"}


def from_analysis(config, *overrides):
    from mmgibbs.build.assemble import assemble
    from mmgibbs.config import load_config
    from mmgibbs.data.prepare import prepare

    analysis = load_config(config, list(overrides))
    return assemble(analysis, prepare(analysis)).model


def simdata():
    """One trait, 4,800 equations, h2 = 0.38, weights."""
    return from_analysis({
        "name": "simdata",
        "data": {
            "phenotypes": str(SHARED / "simdata/simdata.txt"),
            "header": ["animal", "sire", "dam", "weight", "mu", "farm", "sex", "year", "y1", "y2", "y3", "y4"],
            "pedigree": str(SHARED / "simdata/simped.txt"),
            "pedigree_columns": {"id": 1, "sire": 2, "dam": 3},
            "weights": "weight",
            "inbreeding": "ignore",
        },
        "traits": {"y1": {"missing": [0]}},
        "model": {"fixed": {"farm": {}, "sex": {}, "year": {}}, "random": {"genetic": ANIMAL}},
    })  # fmt: skip


def gryphon(traits=("bwt",)):
    """m2: birth weight on sex, 1,309 animals, h2 = 0.51."""
    return from_analysis({
        "name": "gryphon",
        "data": {
            "phenotypes": str(SHARED / "gryphon/gryphon.csv"),
            "pedigree": str(SHARED / "gryphon/gryphonped.csv"),
            "pedigree_columns": {"id": "id", "sire": "father", "dam": "mother"},
        },
        "traits": list(traits),
        "model": {"fixed": {"sex": {}}, "random": {"genetic": ANIMAL}},
    })  # fmt: skip


def gryphon_bivariate():
    """Birth weight and tarsus length: k = 2."""
    return gryphon(("bwt", "tarsus"))


def beef():
    """Three traits, direct and one maternal effect: k = 4, and a maternal environment."""
    return from_analysis(ROOT / "configs" / "beef.yaml")


def sheep():
    """Repeated records: genetic effect and permanent environment of one animal, k = 1 twice."""
    return from_analysis(ROOT / "configs" / "repeated_records.yaml")


def low_heritability(n_animals=6000, h2=0.05):
    """One record per animal of the last two thirds, ten herds, 100 founders, h2 = 0.05."""
    from mmgibbs.models.covariance import CovarianceModel, full_block
    from mmgibbs.models.design import Design
    from mmgibbs.models.relationships.pedigree import Pedigree
    from mmgibbs.models.terms import Effect, Levels, Related, Term
    from mmgibbs.pedigree.inbreeding import inbreeding
    from mmgibbs.pedigree.relationship import mendelian_variance, relatives
    from mmgibbs.sampler.mixed_model import MixedModel

    rng = np.random.default_rng(5)
    sire, dam = np.full(n_animals, -1, np.int32), np.full(n_animals, -1, np.int32)
    for i in range(100, n_animals):
        oldest = max(0, i - 1000)
        sire[i] = oldest + 2 * int(rng.integers(0, min(40, (i - oldest) // 2)))  # few sires at a time
        dam[i] = oldest + 1 + 2 * int(rng.integers(0, (i - oldest) // 2))
    F = inbreeding(sire, dam)
    u, d = np.zeros(n_animals + 1), mendelian_variance(sire, dam, F)  # u[-1]: the unknown parent
    for i in range(n_animals):
        u[i] = (u[sire[i]] + u[dam[i]]) / 2 + np.sqrt(h2 * d[i]) * rng.standard_normal()
    recorded = np.arange(n_animals // 3, n_animals, dtype=np.int32)
    herd = rng.integers(0, 10, recorded.size).astype(np.int32)
    y = u[recorded] + np.sqrt(1 - h2) * rng.standard_normal(recorded.size)
    terms = (
        Term("herd", Levels((Effect("", herd, (0,)),), 10)),
        Term("genetic", Levels((Effect("", recorded, (0,)),), n_animals), Related(Pedigree(relatives(sire, dam, F)))),
    )
    design = Design(("y",), y[:, None], np.zeros(y.size, np.int32), np.ones((1, 1), bool), np.ones(y.size), terms)
    start = lambda v: CovarianceModel(np.array([[v]]), False, full_block(1))
    return MixedModel(design, (None, start(0.1)), start(0.9))


CASES = {f.__name__: f for f in (simdata, gryphon, low_heritability, gryphon_bivariate, sheep, beef)}
CHAINS = {  # name: engine and update, interwoven
    "site": ("site", False),
    "level": ("level", False),
    "site, interwoven": ("site", True),
    "level, interwoven": ("level", True),
    "structured": ("structured", False),  # level by level on one thread
    "structured, interwoven": ("structured", True),
    "exact": ("pcg", False),
    "exact, interwoven": ("pcg", True),
}


def engine_of(equations, how: str):
    if how == "structured":
        return EngineChoice("structured", "level", 1).build(equations)
    return PcgEngine(equations, TOLERANCES["gibbs"]) if how == "pcg" else SerialEngine(equations, update=how)


def chain(model, equations, how: str, interwoven: bool, sweeps: int, seed: int):
    """Draws of all variances (sweeps, parameters), their names, and seconds per sweep."""
    engine = engine_of(equations, how)
    matrices = starting_matrices(model, 0)
    schedule = Schedule(BURN_IN, sweeps, interweave=terms_to_interweave(model, True) if interwoven else ())
    steps = gibbs_steps(model, engine, schedule, (seed, 0), matrices)
    names = [f"{model.design.terms[i].name}[{c}]" for i in model.random_terms for c in range(len(matrices.G[i]))]
    names += [f"residual[{t}]" for t in range(len(matrices.R))]
    draws, burn_in = np.empty((sweeps, len(names))), min(BURN_IN, sweeps)
    for number in range(1, burn_in + sweeps + 1):
        if number == burn_in + 1:
            started = time.thread_time()
        for step in steps:
            step(number)
        if number > burn_in:
            draws[number - burn_in - 1] = np.concatenate(
                [np.diag(matrices.G[i]) for i in model.random_terms] + [np.diag(matrices.R)]
            )
    return draws, names, (time.thread_time() - started) / sweeps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweeps", type=int, default=20_000)
    parser.add_argument(
        "--exact-sweeps",
        type=int,
        default=2000,
        help="sweeps of the exact draws, which take longer (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--chain", nargs="*", choices=CHAINS, default=list(CHAINS))
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    rows = []
    for case in arguments.case:
        if case in ("simdata", "gryphon", "gryphon_bivariate") and not SHARED.exists():
            continue
        model = CASES[case]()
        by_term, by_colour = (
            structured_equations(model.design, partition(model.design, how)) for how in ("term", "colour")
        )
        print(
            f"{case}: {CASES[case].__doc__.strip()} {by_term.n_equations:,} equations",
            flush=True,
        )
        for name in arguments.chain:
            sweeps = arguments.exact_sweeps if CHAINS[name][0] == "pcg" else arguments.sweeps
            equations = by_colour if CHAINS[name][0] == "structured" else by_term
            draws, names, seconds = chain(model, equations, *CHAINS[name], sweeps, arguments.seed)
            found = [diagnose(d) for d in draws.T]
            for parameter, f in zip(names, found, strict=True):
                effective = f["ess_bulk"] / sweeps
                row = {"case": case, "chain": name, "parameter": parameter, "mean": f["mean"], "sd": f["sd"]}
                row |= {
                    "ms_per_sweep": 1e3 * seconds,
                    "ess_per_sweep": effective,
                    "ess_per_second": effective / seconds,
                }
                rows.append(row)
            text = "  ".join(
                f"{p} {r['ess_per_sweep']:.4f} {r['ess_per_second']:6.1f}/s"
                for p, r in zip(names, rows[-len(names) :], strict=True)
            )
            print(f"  {name:18s} {1e3 * seconds:8.3f} ms  {text}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
