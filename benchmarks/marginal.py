"""Effective draws per second of the slowest variance: engine marginal beside serial, one core, in one run.

    PYTHONPATH=tests python -m benchmarks.marginal [--cases milk,gryphon] [--rounds 2]

The engines take turns; seconds are those of this process on its core, so that others at work on the machine matter
less, burn-in apart; the best of the rounds counts, for each. Flat priors. The chain of `serial` is longer, as its draws
follow each other.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from helpers.shared_cases import CASES, analysis
from helpers.support import ROOT

from mmgibbs.build.assemble import assemble
from mmgibbs.build.engine import choose_engine
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.posterior.diagnostics import diagnose
from mmgibbs.runs.bench.command import print_table
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.schedule import Schedule

LENGTHS = {"marginal": (1000, 2000, 2), "serial": (300, 3000, 2)}  # burn-in, sweeps, thinning


def effective(config, model, name: str) -> dict[str, float]:
    """Of one chain: least effective draws of a variance, seconds, milliseconds a sweep."""
    sampler = config.sampler.model_copy(update={"engine": name})
    chosen = choose_engine(sampler, model)
    burn_in, samples, thin = LENGTHS[name]
    interweave = () if name == "marginal" else terms_to_interweave(model)
    engine = chosen.engine.build(structured_equations(model.design, partition(model.design, chosen.partition)))
    chain = Chain(model, engine, Schedule(burn_in, samples, thin, interweave=interweave), (1, 0))
    started = time.process_time()
    chain.advance(burn_in)
    before = time.process_time()
    chain.advance(burn_in + samples)
    seconds = time.process_time() - before
    found = []
    for draws in chain.result().draws.values():
        variances = np.diagonal(draws, axis1=-2, axis2=-1).reshape(len(draws), -1)
        found += [diagnose(v[None])["ess_bulk"] for v in variances.T if np.ptp(v) > 0]
    least = min(found)
    return {"ess": least, "seconds": seconds, "sweep": 1000 * seconds / samples, "burn-in": before - started}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", default=",".join([*CASES, "beef"]).replace("gryphon, two", "gryphon; two"))
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in (case.replace(";", ",") for case in args.cases.split(",")):
            asked = ROOT / "configs/beef.yaml" if name == "beef" else analysis(name, Path(folder))
            config = load_config(asked)
            model = assemble(config, prepare(config)).model
            rounds = [{engine: effective(config, model, engine) for engine in LENGTHS} for _ in range(args.rounds)]
            best = {
                engine: max((r[engine] for r in rounds), key=lambda one: one["ess"] / one["seconds"])
                for engine in LENGTHS
            }
            row: dict[str, object] = {"case": name, "equations": model.design.n_equations}
            for engine, one in best.items():
                row |= {
                    f"{engine}, ESS/s": one["ess"] / one["seconds"],
                    f"{engine}, ms a sweep": one["sweep"],
                    f"{engine}, s burn-in": one["burn-in"],
                }
            rows.append(row)
            print(row, flush=True)
    print_table(rows)


if __name__ == "__main__":
    main()
