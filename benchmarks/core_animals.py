"""Breeding values from a core of the genotyped animals (APY) beside those of the whole inverse, by size of the core.

    PYTHONPATH=tests python -m benchmarks.core_animals [--cores 100,300,600,1200] [--explained .9,.98]

Single-step BLUP of BLUPF90's exercise (15,800 animals, 1,500 genotyped) at fixed variances, solved to 1e-13. Of the
genotyped animals: the correlation with the breeding values of the whole inverse, and the largest difference in their
standard deviations.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from helpers.support import shared_data
from published.test_genomic_relationships import BLUP, extract_laboratory, laboratory_data, solved

from mmgibbs.runs.bench.command import print_table


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cores", default="100,300,600,1200", help="numbers of animals")
    parser.add_argument("--explained", default="0.9,0.98", help="shares of the variance of G")
    args = parser.parse_args()
    cores: list[object] = [int(n) for n in args.cores.split(",") if n]
    cores += [{"explained": float(share)} for share in args.explained.split(",") if share]
    rows = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        extract_laboratory(shared_data("data/genomics/blupf90_lab_gwas"), folder)
        data = laboratory_data(folder)
        genotyped = [line.split()[0] for line in (folder / "marker.txt").read_text().splitlines() if line.strip()]

        def values_of(**core: object) -> tuple[np.ndarray, dict]:
            kind = {"kind": "single_step"} | core
            found, _ = solved(folder / "run", data, "y", kind, (0.5, 0.5), **BLUP)
            record = json.loads((folder / "run" / "run.json").read_text())
            return np.array([found[animal] for animal in genotyped]), record["relationships"]["genetic"]

        whole, _ = values_of()
        for core in cores:
            found, about = values_of(core=core)
            rows.append(
                {
                    "core": about["core"]["animals"],
                    "asked": str(core),
                    "correlation": float(np.corrcoef(found, whole)[0, 1]),
                    "largest difference, SD": float(np.abs(found - whole).max() / whole.std()),
                }
            )
            print(rows[-1], flush=True)
    print_table(rows)


if __name__ == "__main__":
    main()
