"""Evaluations with genomic and single-step relationships against numbers of others and systems that are solved apart.

BLUPF90's example 6 (Masuda, github.com/masuday/data) and its exercise of single-step GWAS; Mrode (2014), example 12.1,
whose systems are written out with NumPy; the wheat of Crossa et al. (2010), heritabilities of K = SS'/p by REML and by
quadrature over the variances under BGLR's default priors, S standardised markers.
"""

import zipfile

import numpy as np
import polars as pl
import pytest
from helpers.monte_carlo import chain_batches, compare
from helpers.support import shared_data
from reference import tabular

import mmgibbs
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare

EVERY = {"call_rate": 0, "animal_call_rate": 0, "maf": 0, "monomorphic": "keep", "parent_progeny": "ignore"}
BLUP = {"method": "blup", "tolerance": 1e-13}


def analysis(path, data, trait, relationship, variances, fixed=None, **sampler):
    return {
        "name": "relationships",
        "data": data,
        "traits": {trait: {}},
        "model": {"fixed": fixed or {}, "random": {"genetic": {"level": "animal", "relationship": relationship}}},
        "variances": {"genetic": variances[0], "residual": variances[1]},
        "sampler": sampler,
        "output": {"directory": str(path)},
    }


def solved(*arguments, **options):
    run = mmgibbs.run(analysis(*arguments, **options), overwrite=True, progress=False)
    of = run.solutions.filter(pl.col("term") == "genetic")
    return dict(zip(of["level"], of["mean"], strict=True)), run


def test_blupf90_example_6(tmp_path):
    """Weighted records, VanRaden 1, 83 of 100 SNPs after quality control, 0.95 G + 0.05 I; all to 1e-6."""
    folder = shared_data("data/genomics/blupf90_gblup6")
    rows = np.loadtxt(folder / "data6.txt", dtype=str)
    records = pl.DataFrame({"animal": rows[:, 4], "y": rows[:, 2].astype(float), "weight": rows[:, 3].astype(float)})
    genotypes = {"file": str(folder / "snp6.txt"), "quality": {"maf": 0.05}}
    data = {"phenotypes": records, "weights": "weight", "genotypes": genotypes}
    found, run = solved(tmp_path, data, "y", {"kind": "genomic", "blend": 0.05, "with": "I"}, (0.3, 0.7), **BLUP)
    printed = {
        "ID001": -0.42220198, "ID002": -0.44672494, "ID003": 0.26450865, "ID004": 0.24686356,
        "ID005": 0.05496292, "ID006": 0.16937536, "ID007": -0.17601451, "ID008": -0.24385662,
    }  # fmt: skip
    assert {id: found[id] for id in printed} == pytest.approx(printed, abs=1e-6)
    intercept = run.solutions.filter(pl.col("term") == "intercept")["mean"][0]
    assert intercept == pytest.approx(-0.08090772, abs=1e-6)


# Mrode


def mrode():
    folder = shared_data("data/textbook/mrode4_mixblup/Ex_12.1_ssGBLUP")
    table = lambda name: [line.split() for line in (folder / name).read_text().splitlines() if line.split()]
    rows, parents, strings = table("data_12.1.txt"), table("ped_12.1.txt"), table("geno_12.1.txt")
    records = pl.DataFrame(
        {"animal": [r[0] for r in rows], "edc": [float(r[4]) for r in rows], "dyd": [float(r[5]) for r in rows]}
    )
    pedigree = pl.DataFrame(parents, schema=["id", "sire", "dam"], orient="row")
    M = np.array([[int(c) for c in s] for _, s in strings], float)
    genotypes = {"file": str(folder / "geno_12.1.txt"), "format": "blupf90", "quality": EVERY}
    return records, pedigree, genotypes, [id for id, _ in strings], M


def mrode_matrices():
    """A of all 26, and G of the 14 genotyped, by their formulas."""
    records, pedigree, _, genotyped, M = mrode()
    number = {id: i for i, id in enumerate(pedigree["id"])}
    sire, dam = ([number.get(p, -1) for p in pedigree[c]] for c in ("sire", "dam"))
    p = M.mean(axis=0) / 2
    Z = M - 2 * p
    A = tabular.relationship(np.array(sire), np.array(dam))
    at = [number[id] for id in genotyped]
    return A, Z @ Z.T / (2 * p @ (1 - p)), at, [number[id] for id in records["animal"]]


def test_the_inverse_of_pregsf90(tmp_path):
    records, pedigree, genotypes, genotyped, _ = mrode()
    data = {"phenotypes": records, "pedigree": pedigree, "genotypes": genotypes}
    spec = {"kind": "genomic", "blend": 0.01, "with": "A22"}
    made = prepare(load_config(analysis(tmp_path, data, "dyd", spec, (35.241, 245))))
    values = made.design.terms[-1].relationship.dense.values
    assert made.levels[-1].ids.to_list() == genotyped
    expected = {(0, 0): 36.374112147756, (0, 1): -27.980861774302, (1, 1): 88.270926666258, (13, 13): 6.133181220876}
    assert {at: values[at] for at in expected} == pytest.approx(expected, rel=1e-7)  # its frequencies are single


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tune, tau, omega", [("none", 1, 1), ("A22", 1, 1), ("A22", 1.5, 0.7)])
def test_single_step_of_mrode(tmp_path, weighted, tune, tau, omega):
    """BLUP and reliability of all animals against the system written out; the solutions that the book prints are not
    reproduced by it."""
    records, pedigree, genotypes, _, _ = mrode()
    A, G, at, of_record = mrode_matrices()
    A22 = A[np.ix_(at, at)]
    G = 0.95 * G + 0.05 * A22
    if tune == "A22":
        off = ~np.eye(len(at), dtype=bool)
        b = (np.diag(A22).mean() - A22[off].mean()) / (np.diag(G).mean() - G[off].mean())
        G = np.diag(A22).mean() - b * np.diag(G).mean() + b * G
    inverse = np.linalg.inv(A)
    inverse[np.ix_(at, at)] += tau * np.linalg.inv(G) - omega * np.linalg.inv(A22)
    w = records["edc"].to_numpy() if weighted else np.ones(len(records))
    W = np.zeros((len(records), 27))
    W[:, 0] = 1
    W[np.arange(len(records)), 1 + np.array(of_record)] = 1
    C = W.T @ (w[:, None] * W) / 245
    C[1:, 1:] += inverse / 35.241
    expected = np.linalg.solve(C, W.T @ (w * records["dyd"].to_numpy()) / 245)
    data = {"phenotypes": records, "pedigree": pedigree, "genotypes": genotypes}
    data |= {"weights": "edc"} if weighted else {}
    spec = {"kind": "single_step", "blend": 0.05, "tune": tune, "tau": tau, "omega": omega}
    found, run = solved(tmp_path, data, "dyd", spec, (35.241, 245), **BLUP)
    assert [found[id] for id in pedigree["id"]] == pytest.approx(expected[1:], abs=1e-8)
    H = np.linalg.inv(inverse)
    pev = np.diag(np.linalg.inv(C))[1:]
    table = run.solutions.filter(pl.col("term") == "genetic")
    reliability = dict(zip(table["level"], table["reliability"], strict=True))
    expected = 1 - pev / (35.241 * np.diag(H))
    assert [reliability[id] for id in pedigree["id"]] == pytest.approx(expected, abs=1e-8)


# Wheat


@pytest.fixture
def wheat_data(tmp_path):
    """Of the first environment: records, X (lines, SNPs) of 0 and 1, the data section."""
    with np.load(shared_data("data/genomics/bglr_wheat") / "wheat.npz", allow_pickle=True) as file:
        X, y = np.asarray(file["X"], float), np.asarray(file["Y"], float)[:, 0]
    ids = [f"line{i}" for i in range(len(X))]
    records = pl.DataFrame({"animal": ids, "yield": y})
    path = tmp_path / "wheat.parquet"
    codes = (2 * X).astype(np.int8)
    pl.DataFrame({"animal": ids} | {f"m{j}": codes[:, j] for j in range(X.shape[1])}).write_parquet(path)
    return records, X, {"phenotypes": records, "genotypes": {"file": str(path), "quality": EVERY}}


def test_genomic_blup_is_ridge_regression_on_snps(wheat_data, tmp_path):
    """At fixed variances, exactly: breeding values, whose level is that of the intercept, as deviations."""
    records, X, data = wheat_data
    y, M = records["yield"].to_numpy(), 2 * X
    of_allele, residual = 0.55 / (0.5 * M.shape[1]), 0.54
    Z = M - M.mean(axis=0)
    effects = np.linalg.solve(Z.T @ Z + np.eye(Z.shape[1]) * residual / of_allele, Z.T @ (y - y.mean()))
    spec = {"kind": "genomic", "blend": 0, "frequencies": "half"}
    found, _ = solved(tmp_path / "run", data, "yield", spec, (0.55, residual), **BLUP)
    u = np.array([found[id] for id in records["animal"]])
    np.testing.assert_allclose(u - u.mean(), Z @ effects, atol=1e-6)


# VanRaden 2 is 2 n / (n - 1) SS'/p on genotypes of inbred lines: S has the standard deviations of a sample.
OF_LINES = 2 * 599 / 598


def standardised(tmp_path, data, variances, **sampler):
    """A little of I makes SS' invertible. Sweeps of levels one by one mix slowly in it: pcg draws all at once."""
    spec = {"kind": "genomic", "method": "vanraden2", "blend": 1e-4}
    return mmgibbs.run(analysis(tmp_path / "run", data, "yield", spec, variances, **sampler), progress=False)


# h2, genetic and residual variance by quadrature (their last printed digit is the error that is allowed)
REML = 0.4989
BGLR = (0.5022, 0.5457, 0.5348)


def test_heritability_of_wheat_by_reml(wheat_data, tmp_path):
    run = standardised(tmp_path, wheat_data[2], (0.25, 0.5), method="reml")
    value = dict(zip(run.summary["parameter"], run.summary["mean"], strict=True))
    u, e = OF_LINES * value["genetic.var[yield]"], value["residual.var[yield]"]
    assert u / (u + e) == pytest.approx(REML, abs=1e-4)


@pytest.mark.slow
def test_heritability_of_wheat_under_the_priors_of_bglr(wheat_data, tmp_path):
    v = float(wheat_data[0]["yield"].var()) * 0.5 * 7  # var(y) R2 (df + 2)
    priors = {"start": 0.25, "prior": {"df": 5, "scale": v / OF_LINES}}, {"start": 0.5, "prior": {"df": 5, "scale": v}}
    run = standardised(
        tmp_path, wheat_data[2], priors, chains=2, burn_in=50, samples=2000, thin=1, seed=5, engine="pcg"
    )
    draws = run.draws["posterior"]
    u, e = (OF_LINES * draws["genetic.var[yield]"].to_numpy(), draws["residual.var[yield]"].to_numpy())
    comparison = compare(chain_batches(np.stack([u / (u + e), u, e], axis=-1)), BGLR, 0.0005)
    assert comparison.agrees, comparison


# Single-step on 15,800 animals


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("laboratory")
    extract_laboratory(shared_data("data/genomics/blupf90_lab_gwas"), folder)
    return folder


def extract_laboratory(source, folder):
    with zipfile.ZipFile(source / "lab_gwas_mod2026.zip") as archive:
        for name in ("pedigree.txt", "phenotypes.txt", "marker.txt"):
            (folder / name).write_bytes(archive.read(f"Lab_GWAS_Mod2026/{name}"))


def laboratory_data(folder):
    return {
        "phenotypes": str(folder / "phenotypes.txt"),
        "header": ["mean", "animal", "y", "w"],
        "pedigree": str(folder / "pedigree.txt"),
        "pedigree_columns": {"id": 1, "sire": 2, "dam": 3},
        "genotypes": {"file": str(folder / "marker.txt"), "format": "blupf90", "quality": {"maf": 0.05}},
    }


@pytest.mark.slow
def test_breeding_values_from_a_core(laboratory, tmp_path):
    """As many animals as explain 98 % of the relationships do as the whole inverse; a tenth does not."""
    data, kind = laboratory_data(laboratory), {"kind": "single_step"}
    of = lambda core: solved(tmp_path, data, "y", kind | core, (0.5, 0.5), **BLUP)
    whole, _ = of({})
    genotyped = [line.split()[0] for line in (laboratory / "marker.txt").read_text().splitlines() if line.strip()]
    alike = lambda found: np.corrcoef([found[i] for i in genotyped], [whole[i] for i in genotyped])[0, 1]
    assert alike(of({"core": {"explained": 0.98}})[0]) > 0.995
    assert alike(of({"core": 100})[0]) < 0.95
