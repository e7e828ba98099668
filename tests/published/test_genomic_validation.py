"""Cross-validation with SNP effects against published correlations: the wheat of Crossa et al. (2010) on its own ten
folds, lines left out predicted by GBLUP at variances by REML, all records pooled."""

import numpy as np
import polars as pl
import pytest
from helpers.support import shared_data

from mmgibbs.validation.options import Plan
from mmgibbs.validation.run import validate_analysis

EVERY = {"call_rate": 0, "animal_call_rate": 0, "maf": 0, "monomorphic": "keep", "parent_progeny": "ignore"}
POOLED = (0.5236, 0.4649, 0.3906, 0.4519)  # of the four environments


def predictions(path, environment, permuted=False):
    data = np.load(shared_data("data/genomics/bglr_wheat/wheat.npz"), allow_pickle=True)
    X, y = data["X"].astype(int), data["Y"][:, environment]
    ids = [f"line{i}" for i in range(len(X))]
    order = np.random.default_rng(1).permutation(len(X)) if permuted else np.arange(len(X))
    genotypes = pl.DataFrame({"animal": ids} | {f"snp{j}": X[order, j] for j in range(X.shape[1])})
    genotypes.write_csv(path / "genotypes.csv")
    config = {
        "name": "wheat",
        "data": {
            "phenotypes": pl.DataFrame({"animal": ids, "y": y, "fold": data["sets"]}),
            "genotypes": {"file": str(path / "genotypes.csv"), "quality": EVERY},
        },
        "traits": ["y"],
        "model": {"markers": {"snps": {"scale": "standard"}}},
        "variances": {"residual": {"prior": {"df": 5, "scale": 0.5 * 7}}},
        "sampler": {"burn_in": 200, "samples": 1000, "thin": 1, "seed": 4},
        "output": {"directory": str(path / "run")},
    }
    plan = Plan(method="kfold", by="column", column="fold", variances="sample")
    return validate_analysis(config, plan, progress=False, report=False)


@pytest.mark.slow
@pytest.mark.parametrize("environment", range(4))
def test_wheat_on_its_own_folds(tmp_path, environment):
    found = predictions(tmp_path, environment)
    assert found.predictions.height == 599 and found.predictions["fold"].n_unique() == 10
    pooled = np.corrcoef(found.predictions["predicted"], found.predictions["observed"])[0, 1]
    assert abs(pooled - POOLED[environment]) < 0.03, pooled
    dispersion = found.table.filter(statistic="dispersion")
    assert abs(dispersion["estimate"][0] - 1) < 4 * dispersion["se"][0]


@pytest.mark.slow
def test_genotypes_of_other_lines_are_noticed(tmp_path):
    """The mutant: genotypes in another order predict nothing."""
    found = predictions(tmp_path, 0, permuted=True).predictions
    assert abs(np.corrcoef(found["predicted"], found["observed"])[0, 1]) < 0.15
