"""SNP effects against the SNP-BLUP of Mrode (2014, example 11.1)."""

import numpy as np
import polars as pl
from helpers.support import shared_data

import mmgibbs

EVERY = {"call_rate": 0, "animal_call_rate": 0, "maf": 0, "monomorphic": "keep", "parent_progeny": "ignore"}
SAMPLER = {"chains": 2, "burn_in": 300, "thin": 1, "seed": 8, "precision": "double"}


def run(path, data, traits, model, variances, samples):
    config = {
        "name": "markers", "data": data, "traits": traits, "model": model, "variances": variances,
        "sampler": SAMPLER | {"samples": samples}, "output": {"directory": str(path), "save_levels": ["intercept"]},
    }  # fmt: skip
    return mmgibbs.run(config, overwrite=True, progress=False)


def test_snp_blup_of_mrode(tmp_path):
    """Ten SNPs, eight bulls, variances known; frequencies are those of all 14 genotyped animals."""
    folder = shared_data("data/textbook/mrode4_mixblup/Ex_12.1_ssGBLUP")
    rows = [line.split() for line in (folder / "data_12.1.txt").read_text().splitlines() if line.split()]
    bulls = pl.DataFrame({"animal": [r[0] for r in rows], "dyd": [float(r[5]) for r in rows]}).head(8)
    v = 35.241 / 3.53827  # sum of 2pq
    section = {"variance": {"start": v, "fixed": True}}
    data = {"phenotypes": bulls, "genotypes": {"file": str(folder / "geno_12.1.txt"), "quality": EVERY}}
    found = run(
        tmp_path / "run",
        data | {"genotypes": data["genotypes"] | {"format": "blupf90"}},
        {"dyd": {}},
        {"markers": {"snps": section}},
        {"residual": {"start": 245, "fixed": True}},
        8_000,
    )
    table = pl.read_parquet(tmp_path / "run" / "markers.parquet")
    effects = [0.08702093, -0.31079216, 0.26246003, -0.08027711, 0.11010812, 0.13908022, 0, 0, -0.06069044, -0.01580233]
    z = (table["effect_dyd"].to_numpy() - effects) / table["effect_mcse_dyd"].to_numpy()
    assert np.abs(z).max() < 4, z
    mean = found.solutions.filter(pl.col("term") == "intercept")
    assert abs(mean["mean"][0] - 9.94392543) < 4 * mean["mcse"][0]
