"""SNP effects against numbers of others: the SNP-BLUP of Mrode (2014, example 11.1), ridge regression on the wheat of
Crossa et al. (2010) against a grid over the variances, and BLUPF90's example 6 as SNPs beside a polygenic term.
"""

import numpy as np
import polars as pl
import pytest
from helpers.monte_carlo import chain_batches, compare
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
        20_000,
    )
    table = pl.read_parquet(tmp_path / "run" / "markers.parquet")
    effects = [0.08702093, -0.31079216, 0.26246003, -0.08027711, 0.11010812, 0.13908022, 0, 0, -0.06069044, -0.01580233]
    z = (table["effect_dyd"].to_numpy() - effects) / table["effect_mcse_dyd"].to_numpy()
    assert np.abs(z).max() < 4, z
    mean = found.solutions.filter(pl.col("term") == "intercept")
    assert abs(mean["mean"][0] - 9.94392543) < 4 * mean["mcse"][0]


def test_blupf90_example_6_beside_a_polygenic_term(tmp_path):
    """0.95 ZZ'/(2 sum pq) + 0.05 I: SNPs with 0.95 of the variance, animals without relationship with 0.05 of it."""
    folder = shared_data("data/genomics/blupf90_gblup6")
    rows = np.loadtxt(folder / "data6.txt", dtype=str)
    records = pl.DataFrame({"animal": rows[:, 4], "y": rows[:, 2].astype(float), "weight": rows[:, 3].astype(float)})
    from mmgibbs.config.genotypes import Genotypes
    from mmgibbs.data.genotypes.prepare import prepare_genotypes

    keys = {"file": str(folder / "snp6.txt"), "quality": {"maf": 0.05}}
    total = prepare_genotypes(Genotypes.model_validate(keys), None, None).sum_2pq
    found = run(
        tmp_path / "run",
        {"phenotypes": records, "weights": "weight", "genotypes": keys},
        {"y": {}},
        {
            "random": {"polygenic": {"level": "animal"}},
            "markers": {"snps": {"variance": {"start": 0.95 * 0.3 / total, "fixed": True}}},
        },
        {"mode": "fixed", "polygenic": 0.05 * 0.3, "residual": 0.7},
        20_000,
    )
    parts = {
        name: dict(found.solutions.filter(pl.col("term") == name).select("level", "mean").rows())
        for name in ("snps", "polygenic")
    }
    errors = dict(found.solutions.filter(pl.col("term") == "snps").select("level", "mcse").rows())
    printed = {
        "ID001": -0.42220198, "ID002": -0.44672494, "ID003": 0.26450865, "ID004": 0.24686356,
        "ID005": 0.05496292, "ID006": 0.16937536, "ID007": -0.17601451, "ID008": -0.24385662,
    }  # fmt: skip
    for animal, value in printed.items():
        u = parts["snps"][animal] + parts["polygenic"].get(animal, 0.0)
        assert abs(u - value) < 5 * errors[animal], (animal, u, value)


# h2, genetic and residual variance of each environment
WHEAT = ((0.5022, 0.5457, 0.5348), (0.4584, 0.4919, 0.5746), (0.4372, 0.4863, 0.6179), (0.4432, 0.4797, 0.5951))


@pytest.mark.slow
@pytest.mark.parametrize("environment", range(4))
def test_wheat_by_a_grid(tmp_path, environment):
    """599 lines at 1,279 SNPs under BGLR's default priors: h2, genetic and residual variance."""
    data = np.load(shared_data("data/genomics/bglr_wheat/wheat.npz"), allow_pickle=True)
    X, y = data["X"].astype(int), data["Y"][:, environment]
    n, p = X.shape
    ids = [f"line{i}" for i in range(n)]
    pl.DataFrame({"animal": ids} | {f"snp{j}": X[:, j] for j in range(p)}).write_csv(tmp_path / "genotypes.csv")
    S = 0.5 * 7 * y.var(ddof=1)
    found = run(
        tmp_path / "run",
        {
            "phenotypes": pl.DataFrame({"animal": ids, "y": y}),
            "genotypes": {"file": str(tmp_path / "genotypes.csv"), "quality": EVERY},
        },
        {"y": {}},
        {"markers": {"snps": {"scale": "standard", "variance": {"start": 0.5 / p, "df": 5, "scale": S / 5 / p}}}},
        {"residual": {"prior": {"df": 5, "scale": S}}},
        10_000,
    ).draws["posterior"]
    genetic, residual = p * found["snps.effect_var[y]"].to_numpy(), found["residual.var[y]"].to_numpy()
    draws = np.stack([genetic / (genetic + residual), genetic, residual], axis=-1)
    comparison = compare(chain_batches(draws, 100), WHEAT[environment], 0.0005)
    assert comparison.agrees, comparison
