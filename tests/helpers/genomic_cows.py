"""Runs with relationships from genotypes, of cows some of which are not genotyped."""

import numpy as np
import polars as pl
import pytest
from helpers.gene_dropping import drop_genes, name_animals

import mmgibbs

SAMPLER = {"chains": 1, "burn_in": 10, "samples": 30, "thin": 1, "seed": 4}
N, SNPS, GENOTYPED = 90, 60, 60


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """(phenotypes, pedigree, path of the genotypes): repeated records, some of animals that are not genotyped."""
    rng = np.random.default_rng(9)
    sire, dam, codes = drop_genes(rng, N, SNPS)
    g = codes @ rng.normal(0, 0.2, SNPS)
    animal = np.concatenate([np.arange(10, N), rng.integers(20, N, 40)])
    y = g[animal] + rng.standard_normal(len(animal))
    name = name_animals
    phenotypes = pl.DataFrame(
        {
            "animal": name(animal), "herd": [f"h{i % 3}" for i in range(len(animal))], "milk": y,
            "fat": 0.5 * y + rng.standard_normal(len(animal)), "age": rng.uniform(1, 5, len(animal)),
        }
    )  # fmt: skip
    pedigree = pl.DataFrame({"id": name(np.arange(N)), "sire": name(sire), "dam": name(dam)})
    path = tmp_path_factory.mktemp("genotypes") / "geno.csv"
    columns = {f"s{j}": codes[:GENOTYPED, j] for j in range(SNPS)}
    pl.DataFrame({"animal": name(np.arange(GENOTYPED)), **columns}).write_csv(path)
    return phenotypes, pedigree, path


def analysis(tables, path, relationship="single_step", term=None, traits=("milk",), variances=None, **sampler):
    phenotypes, pedigree, genotypes = tables
    quality = {"maf": 0, "call_rate": 0, "animal_call_rate": 0}
    data = {"phenotypes": phenotypes, "pedigree": pedigree, "genotypes": {"file": str(genotypes), "quality": quality}}
    return {
        "name": "genomic",
        "data": data,
        "traits": {trait: {} for trait in traits},
        "model": {
            "fixed": {"herd": {}},
            "random": {"genetic": (term or {"level": "animal"}) | {"relationship": relationship}},
        },
        "variances": variances or {},
        "sampler": SAMPLER | sampler,
        "output": {"directory": str(path)},
    }


def genotyped_alone(tables):
    known = [f"a{i}" for i in range(GENOTYPED)]
    return tables[0].filter(pl.col("animal").is_in(known)), *tables[1:]


def run(*arguments, **options):
    return mmgibbs.run(analysis(*arguments, **options), overwrite=True, progress=False)
