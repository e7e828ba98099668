"""Runs with SNP effects: every prior, beside other terms, on every engine that takes them, in pieces and in one go."""

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.config import markers as config_of_markers
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.sampler.markers import priors

SAMPLER = {"chains": 1, "burn_in": 20, "samples": 30, "thin": 1, "seed": 4}
PRIORS = ["rr", "bayes_a", "bayes_b", "bayes_c", "bayes_r", "lasso", "horseshoe"]
N, SNPS, GENOTYPED = 90, 40, 70


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """(phenotypes, pedigree, path of the genotypes): repeated records, a binary trait, some animals not genotyped."""
    rng = np.random.default_rng(9)
    sire = np.where(np.arange(N) < 20, -1, rng.integers(0, 10, N))
    dam = np.where(np.arange(N) < 20, -1, rng.integers(10, 20, N))
    gamete = lambda parent: rng.binomial(1, parent / 2)
    codes = rng.binomial(2, rng.uniform(0.2, 0.5, SNPS), (N, SNPS))
    for i in range(20, N):
        codes[i] = gamete(codes[sire[i]]) + gamete(codes[dam[i]])
    g = codes[:, :4] @ np.array([0.6, -0.5, 0.4, 0.3])
    animal = np.concatenate([np.arange(10, N), rng.integers(30, N, 40)])
    y = g[animal] + rng.standard_normal(len(animal))
    name = lambda code: [None if c < 0 else f"a{c}" for c in code]
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


def same(a, b, exactly=True):
    for name in a.draws["posterior"].data_vars:
        x, y = (r.draws["posterior"][name].to_numpy() for r in (a, b))
        np.testing.assert_array_equal(x, y) if exactly else np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)


def finite(frame):
    return frame["mean"].is_not_null().all() and frame["mean"].is_finite().all()


@pytest.mark.parametrize("prior", PRIORS)
def test_every_prior(tables, tmp_path, prior):
    found = run(tables, tmp_path / "run", section={"prior": prior})
    assert finite(found.summary) and finite(found.solutions)
    gebv = found.solutions.filter(pl.col("effect") == "gebv")
    assert gebv.height == GENOTYPED and gebv["pev"].min() > 0
    names = set(found.summary["parameter"])
    assert {"snps.var[milk]", "h2[milk]", "genetic.var[milk]"} <= names
    table = pl.read_parquet(tmp_path / "run" / "markers.parquet")
    kept = table.filter("kept")
    assert table.height == SNPS and kept["effect_milk"].is_not_null().all()
    assert ("pip_milk" in table.columns) == (prior in ("bayes_b", "bayes_c", "bayes_r"))


@pytest.mark.parametrize("prior", ["rr", "bayes_r"])
def test_a_run_in_pieces_is_a_run_in_one_go(tables, tmp_path, prior):
    whole = run(tables, tmp_path / "whole", section={"prior": prior})
    run(tables, tmp_path / "pieces", section={"prior": prior}, samples=11)
    config = analysis(tables, tmp_path / "pieces", section={"prior": prior}, samples=11)
    pieces = mmgibbs.run(config, extend=19, progress=False)
    same(whole, pieces)
    for name in ("mean", "sd"):
        np.testing.assert_array_equal(whole.solutions[name].to_numpy(), pieces.solutions[name].to_numpy())


def test_engines_and_threads_give_the_same_chain(tables, tmp_path):
    short = {"samples": 8, "burn_in": 4, "precision": "double"}
    a = run(tables, tmp_path / "a", engine="serial", partition="colour", **short)
    b = run(tables, tmp_path / "b", engine="structured", threads=1, **short)
    c = run(tables, tmp_path / "c", engine="structured", threads=2, **short)
    same(a, b, exactly=False)
    same(b, c)


@pytest.mark.parametrize("sampler", [{"engine": "pcg"}, {"engine": "hybrid"}, {"method": "blup"}])
def test_what_cannot_be_combined(tables, tmp_path, sampler):
    held = {"mode": "fixed", "genetic": 0.5, "residual": 1} if "method" in sampler else None
    with pytest.raises(ConfigError, match="cannot be combined with"):
        run(tables, tmp_path / "run", variances=held, **sampler)


def test_without_genotypes(tables, tmp_path):
    with pytest.raises(DataError, match=r"model.markers.snps: \d+ records are of animals without genotypes, such as a"):
        run(tables, tmp_path / "run", section={"without_genotypes": "refuse"})
    dropped = run(tables, tmp_path / "run", section={"without_genotypes": "drop"}, random=False)
    kept = run(tables, tmp_path / "run", random=False)
    of_dropped, of_kept = (r.info["data"]["records"] for r in (dropped, kept))
    assert of_dropped["read"] == of_kept["read"] == of_kept["used"]
    assert of_dropped["left_out"]["no genotypes"] == of_dropped["read"] - of_dropped["used"] > 0
    assert "no genotypes" not in of_kept["left_out"]


def test_the_names_of_an_analysis_are_those_of_the_sampler():
    """Two packages that do not import each other have the same list."""
    assert tuple(priors.PRIORS) == config_of_markers.PRIORS and config_of_markers.GROUP == priors.GROUP


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"prior": "bayes_q"}, "model.markers.snps.prior: found bayes_q; did you mean"),
        ({"prior": "rr", "pi": [0.9, 0.1]}, "model.markers.snps.pi: cannot be combined with prior: rr"),
        ({"prior": "bayes_r", "classes": [0.1, 1]}, "needed 0 first"),
        ({"prior": "bayes_c", "pi": [0.9, 0.2]}, "needed 1"),
        ({"prior": "bayes_r", "pi": [0.9, 0.1]}, "found 2 shares, needed 4"),
        ({"prior": "lasso", "variance": {"fixed": True}}, "variance.fixed: cannot be combined with prior: lasso"),
        ({"traits": ["milc"]}, "is not a trait; did you mean"),
        ({"variance": {"share": 1.5}}, "a number between 0 and 1"),
    ],
)
def test_mistakes(tables, tmp_path, section, said):
    with pytest.raises(mmgibbs.MmgibbsError) as caught:
        run(tables, tmp_path / "run", section=section)
    assert said in str(caught.value)


def test_markers_without_genotypes_are_refused(tables, tmp_path):
    config = analysis(tables, tmp_path / "run")
    del config["data"]["genotypes"]
    with pytest.raises(ConfigError, match="data.genotypes: missing"):
        mmgibbs.run(config, progress=False)
