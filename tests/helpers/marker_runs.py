"""Runs with SNP effects on records of cows, and what is asked of all of them."""

import numpy as np
import polars as pl
import pytest
from helpers.gene_dropping import drop_genes, name_animals

import mmgibbs

SAMPLER = {"chains": 1, "burn_in": 20, "samples": 30, "thin": 1, "seed": 4}
N, SNPS, GENOTYPED = 90, 40, 70


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """(phenotypes, pedigree, path of the genotypes): repeated records, a binary trait, some animals not genotyped."""
    rng = np.random.default_rng(9)
    sire, dam, codes = drop_genes(rng, N, SNPS)
    g = codes[:, :4] @ np.array([0.6, -0.5, 0.4, 0.3])
    animal = np.concatenate([np.arange(10, N), rng.integers(30, N, 40)])
    y = g[animal] + rng.standard_normal(len(animal))
    name = name_animals
    phenotypes = pl.DataFrame(
        {
            "animal": name(animal),
            "herd": [f"h{i % 3}" for i in range(len(animal))],
            "milk": y,
            "alive": np.where(y + rng.standard_normal(len(animal)) > y.mean(), "yes", "no"),
            "barn": np.where(np.arange(len(animal)) % 2 == 0, "one", "two"),
        }
    )
    pedigree = pl.DataFrame({"id": name(np.arange(N)), "sire": name(sire), "dam": name(dam)})
    path = tmp_path_factory.mktemp("genotypes") / "geno.csv"
    columns = {f"s{j}": codes[:GENOTYPED, j] for j in range(SNPS)}
    pl.DataFrame({"animal": name(np.arange(GENOTYPED)), **columns}).write_csv(path)
    return phenotypes, pedigree, path


def analysis(tables, path, traits=None, section=None, random=True, variances=None, **sampler):
    phenotypes, pedigree, genotypes = tables
    model = {"fixed": {"herd": {}}, "markers": {"snps": {"without_genotypes": "keep"} | (section or {})}}
    data = {"phenotypes": phenotypes, "genotypes": str(genotypes)}
    if random:
        model["random"] = {"genetic": {"level": "animal", "relationship": "pedigree"}}
        data["pedigree"] = pedigree
    return {
        "name": "markers",
        "data": data,
        "traits": traits or {"milk": {}},
        "model": model,
        "variances": variances or {},
        "sampler": SAMPLER | sampler,
        "output": {"directory": str(path)},
    }


def run(*arguments, **options):
    return mmgibbs.run(analysis(*arguments, **options), overwrite=True, progress=False)


def finite(frame):
    return frame["mean"].is_not_null().all() and frame["mean"].is_finite().all()
