"""Metafounders from the analysis file on: Gamma given, as a number, from genotypes; alone and in single-step."""

import json

import numpy as np
import polars as pl
import pytest
from reference import tabular
from reference.blup import blup

import mmgibbs
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.pedigree.metafounders import estimated_gamma

N, SNPS, GENOTYPED = 80, 60, np.arange(50, 80)
GAMMA = np.array([[0.6, 0.15], [0.15, 0.5]])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(3)
    founder = np.arange(N) < 20
    sire = np.where(founder, N + np.arange(N) % 2, rng.integers(0, 10, N))
    dam = np.where(founder, N + np.arange(N) % 2, rng.integers(10, 20, N))
    for i in range(40, N):
        sire[i], dam[i] = rng.integers(0, 10), rng.integers(20, 40)
    frequency = rng.uniform(0.1, 0.9, (2, SNPS))
    codes = np.empty((N, SNPS), int)
    for i in range(N):
        gamete = lambda p: rng.random(SNPS) < (frequency[p - N] if p >= N else codes[p] / 2)
        codes[i] = gamete(sire[i]).astype(int) + gamete(dam[i])
    animal = rng.integers(0, N, 110)
    y = 0.3 * codes[animal] @ rng.standard_normal(SNPS) + rng.standard_normal(110)
    name = lambda code: [None if c >= N else f"a{c}" for c in code]
    folder = tmp_path_factory.mktemp("metafounders")
    columns = {f"s{j}": codes[GENOTYPED, j] for j in range(SNPS)}
    pl.DataFrame({"animal": name(GENOTYPED), **columns}).write_csv(folder / "geno.csv")
    rows = ("a,b,gamma", "Angus,Angus,0.6", "Senepol,Angus,0.15", "Senepol,Senepol,0.5", "Nobody,Nobody,1")
    (folder / "gamma.csv").write_text("\n".join(rows) + "\n")
    pedigree = pl.DataFrame({"id": name(range(N)), "sire": name(sire), "dam": name(dam)}).with_columns(
        breed=pl.Series(["Angus" if i % 2 == 0 else "Senepol" for i in range(N)])
    )
    return pl.DataFrame({"animal": name(animal), "milk": y}), pedigree, folder, (sire, dam, animal, y, codes)


def analysis(data, path, gamma=None, relationship="pedigree", **sections):
    phenotypes, pedigree, folder, _ = data
    quality = {"maf": 0, "call_rate": 0, "monomorphic": "keep"}
    genotypes = {"file": str(folder / "geno.csv"), "quality": quality, "frequencies": "half"}
    groups = {"column": "breed", "effect": "metafounders", "gamma": gamma or str(folder / "gamma.csv")}
    return {
        "name": "metafounders",
        "data": {"phenotypes": phenotypes, "pedigree": pedigree, "genotypes": genotypes, "groups": groups},
        "traits": {"milk": {}},
        "model": {"random": {"genetic": {"level": "animal", "relationship": relationship}}},
        "variances": {"mode": "fixed", "genetic": [[2.0]], "residual": [[3.0]]},
        "sampler": {"method": "blup"},
        "output": {"directory": str(path)},
    } | sections


def found(result):
    rows = result.solutions.filter(pl.col("term") == "genetic")
    order = [*(f"a{i}" for i in range(N)), "Angus", "Senepol"]
    return pl.DataFrame({"level": order}).join(rows, on="level", how="left", maintain_order="left")


def test_breeding_values_of_animals_and_populations(data, tmp_path):
    K = tabular.with_metafounders(*data[3][:2], GAMMA)
    mean, pev = blup(2 * K, *data[3][2:4], 3.0)
    rows = found(mmgibbs.run(analysis(data, tmp_path), overwrite=True, progress=False))
    np.testing.assert_allclose(rows["mean"], mean, atol=1e-6)
    np.testing.assert_allclose(rows["pev"], pev, atol=1e-6)
    own = np.arange(N)
    np.testing.assert_allclose(rows["reliability"][:N], 1 - pev[own] / (2 * np.diag(K)[own]), atol=1e-6)
    np.testing.assert_allclose(rows["inbreeding"][:N], np.diag(K)[own] - 1, atol=1e-12)
    record = json.loads((tmp_path / "run.json").read_text())
    assert GAMMA.tolist() == record["relationships"]["genetic"]["metafounders"]["gamma"]
    # another Gamma is another model
    other, _ = blup(2 * tabular.with_metafounders(*data[3][:2], 0.1 * np.eye(2)), *data[3][2:4], 3.0)
    assert np.abs(other - mean).max() > 0.05


def test_single_step_with_populations(data, tmp_path):
    sire, dam, _, _, codes = data[3]
    A = tabular.with_metafounders(sire, dam, GAMMA)
    Z = codes[GENOTYPED] - 1.0
    A22 = A[np.ix_(GENOTYPED, GENOTYPED)]
    G = 0.95 * Z @ Z.T / (SNPS / 2) + 0.05 * A22
    H_inverse = np.linalg.inv(A)
    H_inverse[np.ix_(GENOTYPED, GENOTYPED)] += np.linalg.inv(G) - np.linalg.inv(A22)
    H = np.linalg.inv(H_inverse)
    mean, pev = blup(2 * H, *data[3][2:4], 3.0)
    own = {"kind": "single_step", "frequencies": "half", "tune": "none"}
    rows = found(mmgibbs.run(analysis(data, tmp_path, relationship=own), overwrite=True, progress=False))
    np.testing.assert_allclose(rows["mean"], mean, atol=1e-5)
    np.testing.assert_allclose(rows["pev"], pev, atol=1e-5)
    np.testing.assert_allclose(rows["reliability"][:N], (1 - pev / (2 * np.diag(H)))[:N], atol=1e-5)


def test_gamma_from_the_genotypes_and_as_a_number(data, tmp_path):
    sire, dam, *_, codes = data[3]
    design = prepare(mmgibbs.load_config(analysis(data, tmp_path, gamma="genotypes"))).design
    F = tabular.inbreeding(sire, dam)
    direct = estimated_gamma(sire.astype(np.int32), dam.astype(np.int32), F, 2, GENOTYPED, codes[GENOTYPED])
    np.testing.assert_allclose(design.terms[-1].relationship.gamma, direct, atol=1e-6)
    design = prepare(mmgibbs.load_config(analysis(data, tmp_path, gamma=0.3))).design
    np.testing.assert_allclose(design.terms[-1].relationship.gamma, 0.3 * np.eye(2))


def test_a_chain_goes_on_and_draws_the_populations_too(data, tmp_path):
    sampled = {"variances": {}, "sampler": {"chains": 1, "burn_in": 5, "samples": 20, "thin": 1, "seed": 8}}
    result = mmgibbs.run(analysis(data, tmp_path, **sampled), overwrite=True, progress=False)
    rows = found(result)
    assert rows["mean"].is_finite().all() and rows["effect"][N:].to_list() == ["group", "group"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"groups": {"column": "breed", "effect": "metafounders"}}, "gamma: missing"),
        ({"groups": {"column": "breed", "gamma": 0.4}}, "belongs to metafounders"),
        ({"groups": {"column": "breed", "effect": "metafounders", "gamma": 3}}, "below 2"),
        ({"groups": {"column": "breed", "effect": "metafounders", "gamma": "genotypes"}, "genotypes": None},
         "but the analysis has none: needed data.genotypes"),
        ({"inbreeding": "ignore"}, "cannot be combined with metafounders"),
    ],
)  # fmt: skip
def test_analyses_that_do_not_fit(data, tmp_path, change, words):
    given = analysis(data, tmp_path)
    given["data"] = {k: v for k, v in (given["data"] | change).items() if v is not None}
    with pytest.raises(ConfigError, match=words):
        mmgibbs.load_config(given)


def test_a_table_of_gamma_without_a_line_of_names(data, tmp_path):
    path = tmp_path / "gamma.csv"
    path.write_text("Senepol,Angus,0.15\nAngus,Angus,0.6\nSenepol,Senepol,0.5\n")
    design = prepare(mmgibbs.load_config(analysis(data, tmp_path, gamma=str(path)))).design
    np.testing.assert_allclose(design.terms[-1].relationship.gamma, GAMMA)


def test_single_step_needs_half_and_no_tuning(data, tmp_path):
    with pytest.raises(ConfigError, match="tune: needed none with metafounders"):
        mmgibbs.load_config(analysis(data, tmp_path, relationship="single_step"))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("a,b\nAngus,Angus\n", "found 2 columns"),
        ("a,b,g\nAngus,Angus,x\n", "row 2: found 'x'"),
        ("a,b,g\nAngus,Angus,0.5\nSenepol,Senepol,0.4\n", "no relationship of Angus and Senepol"),
        (
            "a,b,g\nangus ,angus,0.6\nsenepol,angus,0.15\nsenepol,senepol,0.5\n",
            "no relationship of Angus and Angus.*\n.*the pedigree has 2 of 2 such ids in another spelling: 'Angus' for",
        ),
        ("a,b,g\nAngus,Angus,0.5\nAngus,Angus,0.4\n", "row 3: found 0.4 for Angus and Angus, and 0.5"),
        ("a,b,g\nAngus,Angus,0.5\nSenepol,Senepol,0.4\nAngus,Senepol,0.9\n", "positive definite.*1 is Angus"),
    ],
)
def test_tables_of_gamma_that_do_not_fit(data, tmp_path, table, words):
    path = tmp_path / "gamma.csv"
    path.write_text(table)
    with pytest.raises(DataError, match=words):
        prepare(mmgibbs.load_config(analysis(data, tmp_path, gamma=str(path))))


def test_genotypes_that_know_too_little_of_a_population(data, tmp_path):
    """Of alleles at one half everywhere, what their error adds is taken off: Gamma may fall below 0."""
    rng = np.random.default_rng(1)
    few = pl.DataFrame({"animal": [f"a{i}" for i in GENOTYPED]} | {
        f"s{j}": rng.permutation(np.tile([0, 1, 1, 2, 1], 6)) for j in range(SNPS)})  # fmt: skip
    few.write_csv(tmp_path / "geno.csv")
    wanted = analysis(data, tmp_path, "genotypes")
    wanted["data"]["genotypes"]["file"] = str(tmp_path / "geno.csv")
    words = r"gamma: as estimated from the genotypes of 30 animals, Gamma .*needed more of them, fewer and larger pop"
    with pytest.raises(DataError, match=words):
        prepare(mmgibbs.load_config(wanted))
