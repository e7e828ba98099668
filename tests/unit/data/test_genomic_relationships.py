"""Blending, tuning and frequencies of genomic relationships against their formulas on small matrices."""

import numpy as np
import polars as pl
import pytest
from reference import models, tabular

from mmgibbs.config import load_config
from mmgibbs.data.genomic_relationships import tune
from mmgibbs.data.prepare import prepare

N, P = 40, 80


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """(data section, genotypes (n, p), A): all animals of a looped pedigree, genotyped by gene dropping."""
    rng = np.random.default_rng(6)
    sire, dam = models.looped_pedigree(rng, N, 8)
    M = np.zeros((N, P), int)
    for i in range(N):
        for parent in (sire[i], dam[i]):
            M[i] += rng.binomial(1, M[parent] / 2 if parent >= 0 else np.full(P, 0.4))
    ids = [f"x{i}" for i in range(N)]
    name = lambda code: [None if c < 0 else ids[c] for c in code]
    path = tmp_path_factory.mktemp("genotypes") / "geno.csv"
    pl.DataFrame({"animal": ids} | {f"s{j}": M[:, j] for j in range(P)}).write_csv(path)
    pedigree = pl.DataFrame({"id": ids, "sire": name(sire), "dam": name(dam)})
    records = pl.DataFrame({"animal": ids[:20], "y": rng.standard_normal(20)})
    quality = {"maf": 0, "call_rate": 0, "animal_call_rate": 0, "monomorphic": "keep"}
    data = {"phenotypes": records, "pedigree": pedigree, "genotypes": {"file": str(path), "quality": quality}}
    return data, M.astype(float), tabular.relationship(sire, dam)


def inverse_of(case, **spec):
    relationship = {"kind": "genomic", **spec}
    random = {"genetic": {"level": "animal", "relationship": relationship}}
    prepared = prepare(load_config({"data": case[0], "traits": ["y"], "model": {"random": random}}))
    ids = prepared.levels[-1].ids.to_list()
    kind = prepared.design.terms[-1].relationship
    at = np.array([ids.index(f"x{i}") for i in range(N)])
    indptr, indices, values = kind.inverse_csr()
    found = np.zeros((N, N))
    for i in range(N):
        found[i, indices[indptr[i] : indptr[i + 1]]] = values[indptr[i] : indptr[i + 1]]
    return found[np.ix_(at, at)], kind


def vanraden(M, p):
    Z = M - 2 * p
    return Z @ Z.T / (2 * p @ (1 - p))


@pytest.mark.parametrize("frequencies", ["genotyped", "recorded", "half", "base"])
@pytest.mark.parametrize("blended", ["A22", "I"])
def test_frequencies_and_blending(case, frequencies, blended):
    _, M, A = case
    w = np.linalg.inv(A).sum(axis=0)
    p = {
        "genotyped": M.mean(axis=0) / 2,
        "recorded": M[:20].mean(axis=0) / 2,
        "half": np.full(P, 0.5),
        "base": np.clip(w @ M / w.sum() / 2, 0, 1),
    }[frequencies]
    other = A if blended == "A22" else np.eye(N)
    expected = np.linalg.inv(0.8 * vanraden(M, p) + 0.2 * other)
    found, kind = inverse_of(case, frequencies=frequencies, blend=0.2, **{"with": blended})
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())
    assert kind.facts["frequencies"] == frequencies


def test_frequencies_of_a_file(case, tmp_path):
    _, M, _ = case
    p = np.linspace(0.1, 0.6, P)
    pl.DataFrame({"snp": [f"s{j}" for j in range(P)], "p": p}).write_csv(tmp_path / "p.csv")
    found, _ = inverse_of(case, frequencies=str(tmp_path / "p.csv"), blend=0.1)
    expected = np.linalg.inv(0.9 * vanraden(M, p) + 0.1 * np.eye(N))
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


def test_single_step_of_a_wholly_genotyped_pedigree_is_tuned_g(case):
    """H = G where every animal is genotyped: blended, then tuned."""
    _, M, A = case
    G = 0.9 * vanraden(M, M.mean(axis=0) / 2) + 0.1 * A
    off = ~np.eye(N, dtype=bool)
    b = (A.diagonal().mean() - A[off].mean()) / (G.diagonal().mean() - G[off].mean())
    G = A.diagonal().mean() - b * G.diagonal().mean() + b * G
    found, kind = inverse_of(case, kind="single_step", blend=0.1)
    np.testing.assert_allclose(found @ G, np.eye(N), atol=1e-8)
    assert sorted(kind.diagonal) == pytest.approx(sorted(G.diagonal()), abs=1e-8)


@pytest.mark.parametrize("way", ["A22", "unit", "mean", "fst", "none"])
def test_ways_of_tuning(case, way):
    _, M, A = case
    G = vanraden(M, np.full(P, 0.45))
    off = ~np.eye(N, dtype=bool)
    tuned = G.copy()
    said = tune(tuned, A, way)
    np.testing.assert_allclose(tuned, said["a"] + said["b"] * G, atol=1e-12)
    if way in ("A22", "unit"):
        target = A if way == "A22" else np.eye(N)
        assert tuned.diagonal().mean() == pytest.approx(target.diagonal().mean())
        assert tuned[off].mean() == pytest.approx(target[off].mean(), abs=1e-12)
    if way == "mean":
        assert tuned.mean() == pytest.approx(A.mean()) and said["b"] == 1
    if way == "fst":
        assert said["a"] == pytest.approx(A.mean() - G.mean()) and said["b"] == 1 - said["a"] / 2
    if way == "none":
        np.testing.assert_array_equal(tuned, G)
