"""Animals in PLINK files of which the first have records: runs with SNP effects from which others are predicted."""

import numpy as np
import polars as pl
import pytest
from helpers.genotypes import write_plink

import mmgibbs

SAMPLER = {"chains": 2, "burn_in": 20, "samples": 60, "thin": 1, "seed": 4}
N, SNPS, TRAINED = 80, 30, 60
IDS = [f"a{i}" for i in range(N)]
NAMES = [f"rs{j}" for j in range(SNPS)]
CHROMOSOMES, POSITIONS = [1 + j // 15 for j in range(SNPS)], [1000 * (j + 1) for j in range(SNPS)]


@pytest.fixture(scope="module")
def genotypes(tmp_path_factory):
    """(folder, codes (SNPs, animals)): train.bed of the first animals, all.bed of all, SNPs in another order."""
    folder, rng = tmp_path_factory.mktemp("predict"), np.random.default_rng(3)
    codes = rng.binomial(2, rng.uniform(0.2, 0.8, SNPS)[:, None], (SNPS, N)).astype(np.uint8)
    codes[rng.random(codes.shape) < 0.02] = 3
    write_plink(folder / "train.bed", codes[:, :TRAINED], IDS[:TRAINED], NAMES, CHROMOSOMES, POSITIONS)
    back = range(SNPS)[::-1]
    columns = [[values[j] for j in back] for values in (NAMES, CHROMOSOMES, POSITIONS)]
    write_plink(folder / "all.bed", codes[::-1], IDS, *columns)
    return folder, codes


def analysis(genotypes, path, section=None, output=None, data=None, traits=("milk",), **sampler):
    folder, codes = genotypes
    rng = np.random.default_rng(5)
    g = np.where(codes == 3, 1, codes)[:5, :TRAINED].T @ np.array([0.8, -0.6, 0.5, 0.4, 0.3])
    records = pl.DataFrame({"animal": IDS[:TRAINED]} | {t: g + rng.standard_normal(TRAINED) for t in traits})
    return {
        "data": {"phenotypes": records, "genotypes": {"file": str(folder / "train.bed")} | (data or {})},
        "traits": list(traits),
        "model": {"markers": {"snps": section or {}}},
        "sampler": SAMPLER | sampler,
        "output": {"directory": str(path)} | (output or {}),
    }


def run(*arguments, **options):
    return mmgibbs.run(analysis(*arguments, **options), overwrite=True, progress=False)
