"""A herd of which some animals are genotyped: an analysis with SNP effects for all of them, and its dense equations."""

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.data.prepare import prepare
from mmgibbs.pedigree.inbreeding import inbreeding
from mmgibbs.pedigree.relationship_products import relationship_block

N, SNPS = 90, 120
V, POLYGENIC, RESIDUAL = 0.02, 0.8, 1.0


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Every third animal and all late ones are genotyped; every animal but the founders has a record, some two."""
    rng = np.random.default_rng(12)
    sire = np.where(np.arange(N) < 16, -1, rng.integers(0, 8, N)).astype(np.int32)
    dam = np.where(np.arange(N) < 16, -1, rng.integers(8, 16, N)).astype(np.int32)
    for i in range(50, N):
        sire[i], dam[i] = rng.integers(0, 8), rng.integers(20, 50)
    codes = rng.binomial(2, rng.uniform(0.2, 0.8, SNPS), (N, SNPS))
    for i in range(16, N):
        codes[i] = rng.binomial(1, codes[sire[i]] / 2) + rng.binomial(1, codes[dam[i]] / 2)
    genotyped = np.flatnonzero((np.arange(N) % 3 == 0) | (np.arange(N) >= 75))
    animal = np.concatenate([np.arange(16, N), rng.integers(16, N, 30)])
    y = 0.1 * codes[animal] @ rng.standard_normal(SNPS) + rng.standard_normal(len(animal))
    name = lambda code: [None if c < 0 else f"a{c}" for c in code]
    path = tmp_path_factory.mktemp("genotypes") / "geno.csv"
    columns = {f"s{j}": codes[genotyped, j] for j in range(SNPS)}
    pl.DataFrame({"animal": name(genotyped), **columns}).write_csv(path)
    phenotypes = pl.DataFrame({"animal": name(animal), "milk": y, "one": ["x"] * len(animal)})
    pedigree = pl.DataFrame({"id": name(range(N)), "sire": name(sire), "dam": name(dam)})
    return phenotypes, pedigree, path, (sire, dam, genotyped, animal, y)


def analysis(data, path, section=None, **changes):
    phenotypes, pedigree, genotypes, _ = data
    quality = {"maf": 0, "call_rate": 0, "monomorphic": "keep"}
    markers = {"single_step": "epsilon", "variance": {"start": V, "fixed": True}} | (section or {})
    return {
        "name": "single_step",
        "data": {
            "phenotypes": phenotypes,
            "pedigree": pedigree,
            "genotypes": {"file": str(genotypes), "quality": quality},
        },
        "traits": {"milk": {}},
        "model": {
            "random": {"genetic": {"level": "animal", "relationship": "pedigree"}},
            "markers": {"snps": markers},
        },
        "variances": {"mode": "fixed", "genetic": [[POLYGENIC]], "residual": [[RESIDUAL]]},
        "sampler": {"chains": 1, "burn_in": 100, "samples": 2500, "thin": 1, "seed": 5},
        "output": {"directory": str(path)},
    } | changes


def covariances(data):
    """A of all animals, and H = A + P (G - A_gg) P' scaled so that genotyped animals have X X' V."""
    sire, dam, genotyped, *_ = data[3]
    A = relationship_block(sire, dam, inbreeding(sire, dam), np.arange(N))
    codes = pl.read_csv(data[2]).drop("animal").to_numpy().astype(float)
    X = codes - codes.mean(axis=0)
    others = np.setdiff1d(np.arange(N), genotyped)
    P = A[np.ix_(others, genotyped)] @ np.linalg.inv(A[np.ix_(genotyped, genotyped)])
    columns = np.empty((N, SNPS))
    columns[genotyped], columns[others] = X, P @ X
    left = np.zeros((N, N))
    left[np.ix_(others, others)] = A[np.ix_(others, others)] - P @ A[np.ix_(genotyped, others)]
    j = np.empty(N)
    j[genotyped], j[others] = -1.0, -P.sum(axis=1)
    return A, columns, left, j


def prepared_of(data, path):
    return prepare(mmgibbs.load_config(analysis(data, path)))


def dense_solution(data):
    """Means of J's regression and of total breeding values, and their standard deviations, at the given variances."""
    _, columns, left, j = covariances(data)
    animal, y = data[3][3:]
    cov = V * columns @ columns.T + POLYGENIC * left
    V_y = cov[np.ix_(animal, animal)] + RESIDUAL * np.eye(len(y))
    X = np.column_stack([np.ones(len(y)), j[animal]])
    V_inv = np.linalg.inv(V_y)
    C = np.linalg.inv(X.T @ V_inv @ X)
    b = C @ X.T @ V_inv @ y
    K = cov[:, animal] @ V_inv
    total = K @ (y - X @ b) + j * b[1]
    D = np.column_stack([np.zeros(N), j]) - K @ X
    return b, total, np.sqrt(np.diag(cov - K @ cov[animal] + D @ C @ D.T))
