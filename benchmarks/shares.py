"""Shares of the classes of SNP effects from far starts: effective draws and R-hat of shares and variance.

    python benchmarks/shares.py GENOTYPES.npz RECORDS.csv --trait COLUMN --prior bayes_r [--sweeps 10000]

GENOTYPES.npz holds X (animals, SNPs), 0, 1, 2, in the order of the rows of RECORDS.csv. One chain from each start of
the share of SNPs with an effect (.01, .1, .5, .9), all under one prior; a fifth of the sweeps besides is burn-in.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import mmgibbs  # noqa: E402
from mmgibbs.models.marker_priors import BAYES_R  # noqa: E402
from mmgibbs.posterior.diagnostics import diagnose  # noqa: E402

STARTS = (0.01, 0.1, 0.5, 0.9)
HERITABILITY = 0.5  # at which the mode of the prior of the variance lies
DF = 5.0


def write_tables(genotypes: Path, records: Path, trait: str, folder: Path) -> tuple[dict, float]:
    """The section `data` of an analysis, and the prior scale of the variance of an effect: as half the SNPs had one."""
    X = np.load(genotypes)["X"]
    y = pl.read_csv(records, infer_schema_length=None)[trait].cast(pl.Float64).to_numpy()
    ids = [f"a{i}" for i in range(len(y))]
    pl.DataFrame({"animal": ids, "y": y}).with_columns(pl.col("y").fill_nan(None)).write_csv(folder / "records.csv")
    codes = {f"s{j}": X[:, j] for j in range(X.shape[1])}
    pl.DataFrame({"animal": ids} | codes).write_csv(folder / "genotypes.csv")
    variance = HERITABILITY * np.nanvar(y) / (0.5 * X.var(axis=0).sum())
    return {"phenotypes": str(folder / "records.csv"), "genotypes": str(folder / "genotypes.csv")}, float(variance)


def run_chain(data: dict, prior: str, start: float, scale: float, arguments: argparse.Namespace, seed: int) -> dict:
    """Draws by parameter, and seconds of the processor of the whole run."""
    classes = BAYES_R if prior == "bayes_r" else (0.0, 1.0)
    shares = [1 - start, *[start / (len(classes) - 1)] * (len(classes) - 1)]
    mean = sum(share * factor for share, factor in zip(shares, classes, strict=True))
    snps = {
        "prior": prior,
        "pi": {"start": shares, "prior": [1.0] * len(classes)},
        "variance": {"start": 0.5 * scale / mean, "df": DF, "scale": scale},
    }
    analysis = {
        "name": "shares", "data": data, "traits": ["y"], "model": {"fixed": {}, "markers": {"snps": snps}},
        "sampler": {
            "chains": 1, "burn_in": arguments.sweeps // 5, "samples": arguments.sweeps, "thin": 1, "seed": seed,
            "precision": "single", "checkpoint_every": "never",
        },
    }  # fmt: skip
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        found = mmgibbs.run(analysis, directory=Path(folder) / "run", progress=False, report=False)
        draws = {name: v.values[0] for name, v in found.draws["posterior"].data_vars.items() if v.ndim == 2}
    return draws | {"seconds": time.process_time() - started}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("genotypes", type=Path)
    parser.add_argument("records", type=Path)
    parser.add_argument("--trait", required=True)
    parser.add_argument("--prior", choices=("bayes_b", "bayes_c", "bayes_r"), default="bayes_r")
    parser.add_argument("--sweeps", type=int, default=10_000)
    parser.add_argument("--starts", type=float, nargs="+", default=list(STARTS))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data, scale = write_tables(arguments.genotypes, arguments.records, arguments.trait, Path(folder))
        chains = [
            run_chain(data, arguments.prior, start, scale, arguments, 1 + i) for i, start in enumerate(arguments.starts)
        ]
    seconds = [f"{chain.pop('seconds'):.0f}" for chain in chains]
    print(f"seconds of the processor: {', '.join(seconds)}")
    starts = "".join(f"{f'from {start:g}':>22s}" for start in arguments.starts)
    print(f"{'parameter':28s}{'R-hat':>8s}{'ESS of all':>12s}{starts}   (mean, ESS)")
    for name in chains[0]:
        draws = np.array([chain[name] for chain in chains])
        if np.ptp(draws) == 0:
            continue
        row = diagnose(draws)
        each = "".join(f"{one.mean():13.4g} {diagnose(one[None])['ess_bulk']:8.0f}" for one in draws)
        print(f"{name:28s}{row['rhat']:8.3f}{row['ess_bulk']:12.0f}{each}", flush=True)


if __name__ == "__main__":
    main()
