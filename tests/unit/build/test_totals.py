"""Total breeding values: genomic and polygenic values of an animal together, from the draws of their sum."""

import numpy as np
import polars as pl
from helpers.marker_runs import GENOTYPED, analysis, tables

import mmgibbs
from mmgibbs.exchange.blupf90_write import export_blupf90

__all__ = ["tables"]
DRAWS = 60


def run(tables, path, section=None, change=None, **options):
    config = analysis(tables, path, section=section, samples=DRAWS, chains=2)
    config["output"] |= {"save_levels": ["genetic"], "save_marker_draws": 1000}
    (change or (lambda config: None))(config)
    return mmgibbs.run(config, **{"overwrite": True, "progress": False} | options)


def of(result, effect):
    return result.solutions.filter(effect=effect).sort("level")


def sums_of_draws(result, path, terms=1):
    """(draws, animals) of genotyped animals in the order of `of`."""
    saved = result.draws["posterior"]["genetic"]
    ids = of(result, "total")["level"].to_list()
    polygenic = saved.to_numpy()[..., 0][:, :, [saved.coords["genetic_level"].values.tolist().index(i) for i in ids]]
    snps = pl.read_parquet(path / "markers.parquet").filter("kept")
    with np.load(path / "marker_draws.npz") as file:
        effects = sum(file[f"effects.{i}"].astype(np.float64) for i in range(terms))
    return polygenic, effects, snps, ids


def test_totals_are_the_moments_of_the_sums(tables, tmp_path):
    result = run(tables, tmp_path / "run", {"prior": "bayes_c"})
    polygenic, effects, snps, ids = sums_of_draws(result, tmp_path / "run")
    codes = pl.read_csv(tables[2]).with_columns(pl.col("animal").cast(pl.String))
    codes = pl.DataFrame({"animal": ids}).join(codes, on="animal", how="left", maintain_order="left")
    x = codes.select(snps["snp"].to_list()).to_numpy() - snps["centre"].to_numpy()
    total = (polygenic + effects @ x.T).reshape(-1, len(ids))
    found = of(result, "total")
    assert found.height == GENOTYPED and found["term"].unique().to_list() == ["genetic+snps"]
    np.testing.assert_allclose(found["mean"], total.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(found["sd"], total.std(axis=0, ddof=1), rtol=1e-4)
    gebv, own = of(result, "gebv"), result.solutions.filter(pl.col("level").is_in(ids), term="genetic").sort("level")
    np.testing.assert_allclose(found["mean"], gebv["mean"] + own["mean"], atol=1e-8)
    assert (found["sd"].to_numpy() != np.hypot(gebv["sd"].to_numpy(), own["sd"].to_numpy())).all()
    prior = own["pev"] / (1 - own["reliability"]) + gebv["pev"] / (1 - gebv["reliability"])
    np.testing.assert_allclose(found["reliability"], 1 - found["pev"] / prior, rtol=1e-6)
    assert found["ess"].is_not_null().all() == gebv["ess"].is_not_null().all()
    levels = pl.read_csv(export_blupf90(result.directory, tmp_path / "export") / "levels.csv")
    assert not {"snps", "genetic+snps"} & set(levels["term"]) and "genetic" in set(levels["term"])


def test_missing_genotypes_leave_their_variance(tables, tmp_path):
    """Of two terms on one trait: 2pq times the square of the sum of both effects, of each SNP that an animal lacks."""

    def two(config):
        keep = {"without_genotypes": "keep"}
        config["model"]["markers"] = {"many": keep, "few": keep | {"prior": "bayes_c"}}

    codes = pl.read_csv(tables[2])
    row = pl.int_range(pl.len())
    gone = [pl.when(row % 15 == j % 15).then(None).otherwise(f"s{j}").alias(f"s{j}") for j in range(0, 30, 7)]
    codes.with_columns(gone).write_csv(tmp_path / "geno.csv")
    result = run((*tables[:2], tmp_path / "geno.csv"), tmp_path / "run", change=two)
    polygenic, effects, snps, ids = sums_of_draws(result, tmp_path / "run", terms=2)
    codes = pl.read_csv(tmp_path / "geno.csv").with_columns(pl.col("animal").cast(pl.String))
    codes = pl.DataFrame({"animal": ids}).join(codes, on="animal", how="left", maintain_order="left")
    m = codes.select(snps["snp"].to_list()).to_numpy().astype(float)
    p, centre = snps["frequency"].to_numpy(), snps["centre"].to_numpy()
    x = np.where(np.isnan(m), 2 * p, m) - centre
    b = effects.reshape(-1, len(p))
    square = b.mean(axis=0) ** 2 + b.var(axis=0, ddof=1)
    of_missing = np.isnan(m) @ (2 * p * (1 - p) * square)
    assert (of_missing > 0).sum() > 10 and (of_missing == 0).sum() > 20
    draws = (polygenic + effects @ x.T).reshape(-1, len(ids))
    found = of(result, "total")
    assert found["term"][0] == "genetic+many+few"
    np.testing.assert_allclose(found["mean"], draws.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(found["pev"], draws.var(axis=0, ddof=1) + of_missing, rtol=1e-4)
    own = result.solutions.filter(pl.col("level").is_in(ids), term="genetic").sort("level")
    parts = [own, *(of(result, "gebv").filter(term=term) for term in ("many", "few"))]
    prior = sum((part["pev"] / (1 - part["reliability"])).to_numpy() for part in parts)
    np.testing.assert_allclose(found["reliability"], 1 - found["pev"] / prior, rtol=1e-6, atol=1e-8)
    predicted = mmgibbs.predict(result.directory, tmp_path / "geno.csv").values.filter(pl.col("level").is_in(ids))
    for term in ("many", "few"):
        there = predicted.filter(term=term).sort("level")
        for name in ("mean", "pev", "reliability"):
            np.testing.assert_allclose(there[name], of(result, "gebv").filter(term=term)[name], rtol=1e-4, atol=1e-5)


def test_no_total_without_a_polygenic_effect_of_the_animal(tables, tmp_path):
    def no_relationship(config):
        config["model"]["random"] = {"genetic": {"level": "animal"}}

    def another_level(config):
        config["model"]["random"]["genetic"]["level"] = "mother"
        phenotypes = config["data"]["phenotypes"]
        config["data"]["phenotypes"] = phenotypes.with_columns(mother=pl.col("animal"))

    for change in (no_relationship, another_level):
        assert of(run(tables, tmp_path / "run", change=change), "total").height == 0
