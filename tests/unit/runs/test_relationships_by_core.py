"""BLUP and engine pcg with an inverse by a core that is never formed: the same as with that inverse as a matrix."""

import json

import numpy as np
import polars as pl
import pytest
from helpers.gene_dropping import drop_genes, name_animals
from helpers.mutants import mutant
from helpers.selection import first
from scipy.stats import norm
from threadpoolctl import ThreadpoolController

import mmgibbs
from mmgibbs.config.sampling import Sampler
from mmgibbs.data import relationships
from mmgibbs.data.prepare import prepare
from mmgibbs.data.relationships_by_core import products_suffice
from mmgibbs.engines.pcg import solver
from mmgibbs.errors import DataError, ModelError
from mmgibbs.machine.threads import blas_threads
from mmgibbs.models.relationships import core
from mmgibbs.models.relationships.base import DenseBlock
from mmgibbs.models.relationships.core import CoreBlock

N, SNPS, GENOTYPED = 90, 200, 60
TWO = [[2.0, 0.3], [0.3, 1.0]]
VARIANCES = {"mode": "fixed", "genetic": {"start": TWO}, "residual": {"start": TWO}}
BY_BLUP = {"method": "blup", "tolerance": 1e-12}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """(phenotypes, pedigree, path of the genotypes): some records are of animals that are not genotyped."""
    rng = np.random.default_rng(19)
    sire, dam, codes = drop_genes(rng, N, SNPS, late=70)
    animal = np.concatenate([np.arange(N), rng.integers(0, N, 40)])
    y = (codes @ rng.normal(0, 0.2, SNPS))[animal] + rng.standard_normal(len(animal))
    name = name_animals
    herd = [f"h{i % 3}" for i in range(len(animal))]
    fat = np.where(rng.random(len(animal)) < 0.2, np.nan, 0.5 * y + rng.standard_normal(len(animal)))
    phenotypes = pl.DataFrame({"animal": name(animal), "herd": herd, "milk": y, "fat": fat})
    pedigree = pl.DataFrame({"id": name(np.arange(N)), "sire": name(sire), "dam": name(dam)})
    path = tmp_path_factory.mktemp("genotypes") / "geno.csv"
    own = rng.permutation(N)[:GENOTYPED]
    pl.DataFrame({"animal": name(own)} | {f"s{j}": codes[own, j] for j in range(SNPS)}).write_csv(path)
    return phenotypes.with_columns(pl.col("fat").fill_nan(None)), pedigree, path


def analysis(tables, path, relationship, inbreeding="account", **sampler):
    phenotypes, pedigree, genotypes = tables
    if relationship["kind"] == "genomic":
        known = pl.read_csv(genotypes)["animal"]
        phenotypes = phenotypes.filter(pl.col("animal").is_in(known.implode()))
    quality = {"maf": 0, "call_rate": 0, "animal_call_rate": 0, "parent_progeny": "ignore"}
    return {
        "name": "core",
        "data": {
            "phenotypes": phenotypes,
            "pedigree": pedigree,
            "inbreeding": inbreeding,
            "genotypes": {"file": str(genotypes), "quality": quality},
        },
        "traits": {"milk": {}, "fat": {}},
        "model": {"fixed": {"herd": {}}, "random": {"genetic": {"level": "animal", "relationship": relationship}}},
        "variances": VARIANCES,
        "sampler": BY_BLUP | sampler,
        "output": {"directory": str(path)},
    }


def run(*arguments, **options):
    return mmgibbs.run(analysis(*arguments, **options), overwrite=True, progress=False)


def formed(monkeypatch):
    """The inverse by a core as a matrix, as every other method has it."""
    monkeypatch.setattr(relationships, "products_suffice", lambda *_: False)


def values(result):
    columns = ["mean", "sd", "reliability"]
    return result.solutions.filter(pl.col("term") == "genetic").select(columns).to_numpy()


SPECS = {
    "genomic": {"kind": "genomic", "core": 25},
    "blended with A22": {"kind": "genomic", "core": 25, "with": "A22", "blend": 0.2, "method": "vanraden2"},
    "base frequencies": {"kind": "genomic", "core": 25, "frequencies": "base"},
    "single-step": {"kind": "single_step", "core": 25},
    "as many as explain a share": {"kind": "single_step", "core": {"explained": 0.9}, "with": "I"},
    "weights of both inverses": {"kind": "single_step", "core": 40, "tau": 1.3, "omega": 0.7, "tune": "unit"},
    "omega 0": {"kind": "single_step", "core": 40, "omega": 0, "tune": "mean"},
    "everybody": {"kind": "single_step", "core": GENOTYPED, "tune": "fst"},
}


@pytest.mark.parametrize(
    ("name", "inbreeding"), first(3, [("single-step", "ignore"), *((name, "account") for name in SPECS)])
)
def test_solutions_errors_and_reliabilities(tables, tmp_path, monkeypatch, name, inbreeding):
    """Where inbreeding is ignored the diagonal of A22 is not all 1 + F."""
    monkeypatch.setattr("mmgibbs.data.relationships_by_core.COLUMNS", 7)
    found = run(tables, tmp_path / "products", SPECS[name], inbreeding=inbreeding)
    formed(monkeypatch)
    expected = run(tables, tmp_path / "matrix", SPECS[name], inbreeding=inbreeding)
    assert np.isfinite(values(found)).all()
    np.testing.assert_allclose(values(found), values(expected), atol=1e-8)
    told, as_matrix = (
        json.loads((r.directory / "run.json").read_text())["relationships"]["genetic"] for r in (found, expected)
    )
    assert told["core"].pop("inverse") == "products, never formed"
    for key in ("core", "tuned", "diagonal", "genomic_means", "pedigree_means", "condition"):
        if isinstance(as_matrix.get(key), dict):
            for inner, value in as_matrix[key].items():
                assert told[key][inner] == (value if isinstance(value, str) else pytest.approx(value, abs=1e-9)), key
        elif key in as_matrix:
            assert told[key] == pytest.approx(as_matrix[key])


@pytest.mark.parametrize("kind", ["genomic", "single_step"])
def test_the_matrix_is_never_formed(tables, tmp_path, monkeypatch, kind):
    """Without PEV; in single precision half of it is read."""

    def refuse(self):
        raise AssertionError("formed")

    monkeypatch.setattr(CoreBlock, "values", property(refuse))
    spec = {"kind": kind, "core": 25}
    double, single = (run(tables, tmp_path / s, spec | {"storage": s}, pev_limit=0) for s in ("double", "single"))
    np.testing.assert_allclose(values(single)[:, 0], values(double)[:, 0], atol=1e-4)
    assert np.abs(values(single) - values(double))[:, 0].max() > 0
    assert np.isnan(values(double)[:, 1:]).all()
    sizes = [design_of(tables, tmp_path, spec | {"storage": s}).bytes(8) for s in ("double", "single")]
    assert sizes[0] - sizes[1] == 4 * (25**2 + 25 * (GENOTYPED - 25))


@pytest.mark.parametrize("name", first(1, ["weights of both inverses", "genomic"]))
def test_errors_by_samples(tables, tmp_path, monkeypatch, name):
    expected = run(tables, tmp_path / "exact", SPECS[name])
    found = run(tables, tmp_path / "samples", SPECS[name], pev_limit=0, pev_samples=600)
    rows = found.solutions.filter(pl.col("term") == "genetic")
    exact = expected.solutions.filter(pl.col("term") == "genetic")["pev"]
    assert np.abs((rows["pev"] - exact) / rows["pev_mcse"]).max() < 5
    assert rows["pev_mcse"].is_not_null().all()
    monkeypatch.setattr(CoreBlock, "values", property(lambda self: pytest.fail("formed")))
    again = run(tables, tmp_path / "samples", SPECS[name], pev_limit=0, pev_samples=20)
    assert again.solutions["pev_mcse"].is_not_null().any()


@pytest.mark.parametrize("name", ["genomic", "single-step"])
def test_noise_of_samples_is_summed_in_one_order(tables, tmp_path, monkeypatch, name):
    """By one thread of BLAS, as in the chains of engine pcg."""
    used = set()

    def watched(method):
        def call(self, z):
            libraries = ThreadpoolController().info()
            used.update(library["num_threads"] for library in libraries if library["user_api"] == "blas")
            return method(self, z)

        return call

    of = {"genomic": "draw", "single-step": "noise"}[name]
    monkeypatch.setattr(CoreBlock, of, watched(getattr(CoreBlock, of)))
    with blas_threads(2):
        run(tables, tmp_path / "samples", SPECS[name], pev_limit=0, pev_samples=20)
    assert used == {1}


GIBBS = {"method": "gibbs", "engine": "pcg", "chains": 1, "burn_in": 10, "samples": 400, "thin": 1}


def gibbs(tables, path, spec, mode):
    made = analysis(tables, path, spec)
    made["sampler"], made["variances"] = GIBBS, VARIANCES | {"mode": mode}
    return mmgibbs.run(made, overwrite=True, progress=False)


def agree(z):
    """No deviation in standard errors is beyond the largest of one in a thousand such tables."""
    return bool(np.abs(z).max() < norm.isf(0.0005 / np.size(z)))


def with_twice_the_root(monkeypatch):
    spoilt = mutant(core, "self._root_of_core @ z[core] -", "2.0 * self._root_of_core @ z[core] -")
    monkeypatch.setattr(CoreBlock, "noise", spoilt.CoreBlock.noise)


def deviations_of_draws(tables, path, monkeypatch, spec, spoil=None):
    """Of means and of deviations, at given variances, from BLUP and the errors of its factor; nothing of all genotyped
    animals is formed. Draws do not depend on each other, so that a deviation of s has an error of s / sqrt(2 n).
    """
    exact = values(run(tables, path / "blup", spec))
    monkeypatch.setattr(CoreBlock, "values", property(lambda self: pytest.fail("formed")))
    if spoil is not None:
        spoil(monkeypatch)
    found = gibbs(tables, path / "gibbs", spec, "fixed")
    assert np.isfinite(values(found)).all()
    rows = found.solutions.filter(pl.col("term") == "genetic")
    of_means = (rows["mean"].to_numpy() - exact[:, 0]) / rows["mcse"].to_numpy()
    return of_means, (values(found)[:, 1] / exact[:, 1] - 1) * np.sqrt(2 * GIBBS["samples"])


@pytest.mark.parametrize("name", first(1, ["weights of both inverses", "genomic"]))
def test_draws_of_engine_pcg(tables, tmp_path, monkeypatch, name):
    of_means, of_deviations = deviations_of_draws(tables, tmp_path, monkeypatch, SPECS[name])
    assert agree(of_means) and agree(of_deviations), (np.abs(of_means).max(), np.abs(of_deviations).max())


def test_draws_with_wrong_noise_are_found(tables, tmp_path, monkeypatch):
    _, of_deviations = deviations_of_draws(tables, tmp_path, monkeypatch, SPECS["genomic"], with_twice_the_root)
    assert not agree(of_deviations)


def design_of(tables, path, spec, **sampler):
    made = analysis(tables, path, spec)
    made["sampler"] = sampler or BY_BLUP
    if sampler:
        made["variances"] = VARIANCES | {"mode": "sample"}
    return prepare(mmgibbs.load_config(made)).design.terms[-1].relationship.dense


def test_who_gets_products(tables, tmp_path):
    """Chains, REML and whatever sweeps read rows of the inverse; metafounders add their own block to it."""
    assert isinstance(design_of(tables, tmp_path, SPECS["single-step"]), CoreBlock)
    assert isinstance(design_of(tables, tmp_path, SPECS["genomic"]), CoreBlock)
    by_pcg = {"method": "gibbs", "engine": "pcg"}
    assert isinstance(design_of(tables, tmp_path, SPECS["single-step"], **by_pcg), CoreBlock)
    assert isinstance(design_of(tables, tmp_path, SPECS["single-step"] | {"omega": 1.01}, **by_pcg), DenseBlock)
    for sampler in ({"method": "gibbs"}, {"method": "reml"}, {"method": "gibbs", "engine": "serial"}):
        assert isinstance(design_of(tables, tmp_path, SPECS["single-step"], **sampler), DenseBlock)
    assert isinstance(design_of(tables, tmp_path, SPECS["single-step"] | {"omega": 1.01}), DenseBlock)
    assert isinstance(design_of(tables, tmp_path, {"kind": "single_step"}), DenseBlock)
    assert not products_suffice(object(), Sampler(method="blup"), None)


def test_a_core_without_an_inverse_names_its_animals(tables, tmp_path):
    phenotypes, pedigree, path = tables
    genotypes = pl.read_csv(path)
    ids = genotypes["animal"].to_list()
    twins = pl.concat([genotypes[:1], genotypes[:1].with_columns(animal=pl.lit(ids[1])), genotypes[2:]])
    twins.write_csv(tmp_path / "geno.csv")
    own = phenotypes, pedigree, tmp_path / "geno.csv"
    spec = {"kind": "genomic", "core": GENOTYPED, "blend": 0}
    with pytest.raises(DataError, match=f"same genotypes: {ids[0]} and {ids[1]}.*a larger blend than 0"):
        run(own, tmp_path / "run", spec)
    with pytest.raises(DataError, match=r"core.size: found 61, needed at most 60"):
        run(tables, tmp_path / "run", spec | {"core": GENOTYPED + 1})


def test_a_product_with_a_wrong_sign_is_found(tables, tmp_path, monkeypatch):
    """A mutant whose core gets the sum of p_i y_i added instead of subtracted."""
    from mmgibbs.engines import dense_products

    spoilt = mutant(dense_products, "straight - sums.sum(axis=0).T", "straight + sums.sum(axis=0).T")
    found = run(tables, tmp_path / "right", SPECS["genomic"], pev_limit=0)
    monkeypatch.setattr(solver, "dense_times", spoilt.dense_times)
    try:
        wrong = values(run(tables, tmp_path / "wrong", SPECS["genomic"], pev_limit=0))[:, 0]
    except ModelError:  # no longer positive definite
        return
    assert np.abs(wrong - values(found)[:, 0]).max() > 1e-3
