"""Do REML estimates of a part of the data shorten the burn-in of Gibbs chains? Sweeps from both starts.

    python benchmarks/starts.py data/beef/analysis.yaml --column contemporary_group --share 0.1

A random share of the levels of a column keeps its records; the pedigree is that of their animals, traced. The same
chains (seed, engine) then run from both starts without burn-in. The posterior is that of the later half of both.
For each: sweeps until every variance and covariance of every chain has been within two standard deviations of its
posterior mean, and until R-hat of what follows is below 1.05 for all of them.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import mmgibbs
from mmgibbs.config import load_config
from mmgibbs.config.text import is_nothing
from mmgibbs.posterior.diagnostics import diagnose
from mmgibbs.validation.options import read_starts

CHAINS, STEP = 4, 25  # sweeps between two looks at R-hat


def part_of(analysis: str, column: str, share: float, seed: int, folder: Path) -> dict:
    """The analysis with a share of the records; files in `folder`."""
    config = load_config(analysis)
    records = pl.read_csv(config.data.phenotypes, infer_schema=False)
    levels = records[column].drop_nulls().unique().sort()
    chosen = levels.sample(max(2, round(share * len(levels))), seed=seed)
    records = records.filter(pl.col(column).is_in(chosen.implode()))
    pedigree = pl.read_csv(config.data.pedigree, infer_schema=False)
    animal, sire, dam = pedigree.columns[:3]
    kept, new = set(), set(records[animal].to_list())
    parents = {row[0]: row[1:] for row in pedigree.select(animal, sire, dam).iter_rows()}
    while new:
        kept |= new
        new = {p for a in new for p in parents.get(a, ()) if not is_nothing(p) and p in parents} - kept
    records.write_csv(folder / "phenotypes.csv")
    pedigree.filter(pl.col(animal).is_in(sorted(kept))).write_csv(folder / "pedigree.csv")
    of_file = config.resolved()
    of_file["data"] |= {"phenotypes": str(folder / "phenotypes.csv"), "pedigree": str(folder / "pedigree.csv")}
    print(f"part: {len(chosen)} of {len(levels)} levels of {column}, {records.height} records, {len(kept)} animals")
    return of_file


def chains_from(analysis: str, overrides: list[str], sweeps: int, folder: Path) -> tuple[dict, float]:
    """Draws (chains, sweeps) of the sampled variances and covariances by name, and seconds."""
    more = [f"sampler.chains={CHAINS}", "sampler.burn_in=0", f"sampler.samples={sweeps}", "sampler.thin=1"]
    off = ["sampler.checkpoint_every=never", "sampler.engine=structured", f"output.directory={folder}"]
    begun = time.perf_counter()
    found = mmgibbs.run(analysis, [*overrides, *more, *off], progress=False, report=False)
    draws = {n: v.values for n, v in found.draws["posterior"].data_vars.items() if ".var[" in n or ".cov[" in n}
    return draws, time.perf_counter() - begun


def until_inside(draws: dict, mean: dict, sd: dict) -> dict[str, int]:
    """Parameter -> sweeps until every chain has been within two standard deviations of the posterior mean."""
    first = lambda x, n: int(np.argmax(np.abs(x - mean[n]) < 2 * sd[n], axis=1).max())
    return {n: first(x, n) for n, x in draws.items()}


def until_mixed(draws: dict, limit: float = 1.05) -> int:
    """Sweeps to throw away until R-hat of those that follow is below the limit for all; as many follow as there are."""
    length = next(iter(draws.values())).shape[1]
    for b in range(0, length // 2, STEP):
        if all(diagnose(x[:, b : b + length // 2])["rhat"] < limit for x in draws.values()):
            return b
    return length // 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("analysis")
    parser.add_argument("--column", default="contemporary_group")
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--sweeps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        begun = time.perf_counter()
        part = part_of(asked.analysis, asked.column, asked.share, asked.seed, folder)
        reml = mmgibbs.run(
            part, ["sampler.method=reml", f"output.directory={folder / 'reml'}"], progress=False, report=False
        )
        seconds = time.perf_counter() - begun
        starts = read_starts(folder / "reml", load_config(asked.analysis))
        print(
            f"REML of the part: {seconds:.1f} s, {len(reml.info['log_likelihoods'])} iterations\n" + "\n".join(starts)
        )
        runs = {
            "usual starts": chains_from(asked.analysis, [], asked.sweeps, folder / "usual"),
            "REML of a part": chains_from(asked.analysis, starts, asked.sweeps, folder / "from_reml"),
        }
    half = asked.sweeps // 2
    later = {n: np.concatenate([of[n][:, half:] for of, _ in runs.values()]) for n in next(iter(runs.values()))[0]}
    mean, sd = ({n: float(f(x)) for n, x in later.items()} for f in (np.mean, np.std))
    out = {"seconds of REML": seconds}
    for name, (draws, took) in runs.items():
        inside = until_inside(draws, mean, sd)
        slowest = max(inside, key=inside.get)
        out[name] = {
            "ms a sweep of all chains": 1000 * took / asked.sweeps,
            "sweeps until inside": inside[slowest],
            "slowest": slowest,
            "sweeps until R-hat 1.05": until_mixed(draws),
            "until inside": inside,
        }
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
