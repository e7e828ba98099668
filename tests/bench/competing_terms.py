"""Effective draws a second of the variances of two competing terms, with `sampler.joint_variances` and without.

    PYTHONPATH=.:tests python tests/bench/competing_terms.py [--cases milk,warcolak,herd] [--sweeps 8000]
        [--engine serial]

By turns, one chain each, one thread. herd: 30,000 simulated animals of six generations, cows with one to four records,
shares of variance .25 genetic and .15 permanent: a herd whose records tell both apart.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from helpers.shared_cases import analysis

from mmgibbs.bench.command import print_table
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.posterior.diagnostics import diagnose
from mmgibbs.posterior.parameters import matrix_name
from mmgibbs.runs.assemble import assemble
from mmgibbs.runs.engine import choose_engine
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.competing import competing_terms
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule

BURN_IN = 500
GENERATIONS, BULLS = 6, 50  # one bull of so many males of a generation


def herd(folder: Path, animals: int = 30_000) -> dict:
    """What load_config takes."""
    rng, each = np.random.default_rng(1), animals // GENERATIONS
    female, sire, dam, a = rng.random(animals) < 0.5, *np.full((2, animals), -1), np.empty(animals)
    a[:each] = 0.5 * rng.normal(size=each)
    for first in range(each, animals, each):
        parents = np.arange(first - each, first)
        bulls = rng.choice(parents[~female[parents]], (~female[parents]).sum() // BULLS, replace=False)
        young = slice(first, first + each)
        sire[young], dam[young] = rng.choice(bulls, each), rng.choice(parents[female[parents]], each)
        a[young] = (a[sire[young]] + a[dam[young]]) / 2 + np.sqrt(0.125) * rng.normal(size=each)
    cows = np.flatnonzero(female)
    cow = np.repeat(cows, rng.integers(1, 5, cows.size))
    permanent, group = np.sqrt(0.15) * rng.normal(size=animals), rng.integers(0, animals // 200, cow.size)
    y = a[cow] + permanent[cow] + rng.normal(size=animals)[group] + np.sqrt(0.6) * rng.normal(size=cow.size)
    name = lambda ids: [None if i < 0 else f"a{i}" for i in ids]
    pedigree = pl.DataFrame({"id": name(range(animals)), "sire": name(sire), "dam": name(dam)})
    pedigree.write_csv(folder / "pedigree.csv")
    pl.DataFrame({"id": name(cow), "group": [f"g{i}" for i in group], "y": y}).write_csv(folder / "records.csv")
    random = {"genetic": {"level": "id", "relationship": "pedigree"}, "permanent": {"level": "id"}}
    return {
        "name": "herd",
        "data": {"phenotypes": str(folder / "records.csv"), "pedigree": str(folder / "pedigree.csv")},
        "traits": ["y"],
        "model": {"fixed": {"group": {}}, "random": random},
        "output": {"directory": str(folder / "run")},
    }


def measured(model: MixedModel, config, engine: str, sweeps: int, joint: bool) -> list[dict]:
    """A row for each variance of the pair."""
    design = model.design
    chosen = choose_engine(config.sampler.model_copy(update={"engine": engine, "threads": 1}), model)
    built = chosen.engine.build(structured_equations(design, partition(design, chosen.partition)))
    (pair,) = competing_terms(model)
    schedule = Schedule(BURN_IN, sweeps, interweave=terms_to_interweave(model), competing=(pair,) if joint else ())
    chain = Chain(model, built, schedule, (1, 0))
    chain.advance(BURN_IN)
    start = time.process_time()
    chain.advance(BURN_IN + sweeps)
    seconds, draws, rows = time.process_time() - start, chain.result().draws, []
    for i in (pair.a, pair.p):
        effective = diagnose(draws[matrix_name(i)].reshape(1, -1))["ess_bulk"]
        facts = {"variance": design.terms[i].name, "together": joint, "ms a sweep": 1000 * seconds / sweeps}
        rows.append(facts | {"sweeps for one": sweeps / effective, "effective a second": effective / seconds})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sweeps", type=int, default=8000)
    parser.add_argument("--engine", default="serial", choices=["serial", "structured"])
    parser.add_argument("--cases", default="milk,warcolak,herd")
    args = parser.parse_args()
    rows = []
    for case in args.cases.split(","):
        with tempfile.TemporaryDirectory() as folder:
            config = load_config(herd(Path(folder)) if case == "herd" else analysis(case, Path(folder)))
            model = assemble(config, prepare(config)).model
            for joint in (False, True):
                rows += [{"case": case} | row for row in measured(model, config, args.engine, args.sweeps, joint)]
    print_table(rows)


if __name__ == "__main__":
    main()
