"""Regions that pass, the analysis that is drafted of them, and how often credible sets hold the simulated effect."""

import numpy as np
import polars as pl
import pytest
import yaml

import mmgibbs
from mmgibbs.association.fine_map import _find_trait, credible_set
from mmgibbs.association.regions import find_regions, snps_of_region
from mmgibbs.cli import main
from mmgibbs.errors import ConfigError

N, CHROMOSOMES, PER_CHROMOSOME = 350, 12, 25
SHARE = 0.05  # of the variance by each causal SNP
SHORT = ["sampler={chains: 1, burn_in: 200, samples: 2000, thin: 2, seed: 5}"]


def linked_haplotypes(rng, n, p):
    """(n, p) of 0 and 1: each allele is that of the neighbour in 24 of 25 haplotypes."""
    out = np.empty((n, p), int)
    frequency = rng.uniform(0.3, 0.7)
    out[:, 0] = rng.random(n) < frequency
    for j in range(1, p):
        out[:, j] = np.where(rng.random(n) < 0.96, out[:, j - 1], rng.random(n) < frequency)
    return out


def simulate(folder, seed):
    """(association, names of the causal SNPs): one on each chromosome but the last three."""
    rng = np.random.default_rng(seed)
    blocks = [sum(linked_haplotypes(rng, N, PER_CHROMOSOME) for _ in range(2)) for _ in range(CHROMOSOMES + 3)]
    genotypes = np.concatenate(blocks, axis=1)
    causal = [c * PER_CHROMOSOME + int(rng.integers(PER_CHROMOSOME)) for c in range(CHROMOSOMES)]
    x = genotypes[:, causal] - genotypes[:, causal].mean(axis=0)
    y = (x / x.std(axis=0)) @ np.full(CHROMOSOMES, SHARE**0.5)
    y = y + rng.normal(size=N) * (1 - SHARE * CHROMOSOMES) ** 0.5
    names = [f"s{j}" for j in range(genotypes.shape[1])]
    ids = [f"a{i}" for i in range(N)]
    pl.DataFrame({"animal": ids, "gain": y}).write_csv(folder / "records.csv")
    pl.DataFrame({"animal": ids} | dict(zip(names, genotypes.T, strict=True))).write_csv(folder / "snps.csv")
    chromosome = np.repeat(np.arange(1, CHROMOSOMES + 4), PER_CHROMOSOME)
    position = np.tile(1000 * np.arange(1, PER_CHROMOSOME + 1), CHROMOSOMES + 3)
    pl.DataFrame({"snp": names, "chromosome": chromosome, "position": position}).write_csv(folder / "map.csv")
    data = {"phenotypes": str(folder / "records.csv")}
    data["genotypes"] = {"file": str(folder / "snps.csv"), "map": str(folder / "map.csv")}
    random = {"genetic": {"level": "animal", "relationship": "genomic"}}
    analysis = {"data": data, "traits": {"gain": {}}, "model": {"random": random}, "sampler": {"method": "reml"}}
    run = mmgibbs.run(analysis, directory=folder / "run", progress=False)
    tested = mmgibbs.gwas(run.directory, output=folder / "gwas", loco=True, report=True, progress=False)
    return tested, [names[j] for j in causal]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    return simulate(tmp_path_factory.mktemp("finemap"), 11)


@pytest.fixture(scope="module")
def mapped(simulated):
    return mmgibbs.finemap(simulated[0].directory, overrides=SHORT, progress=False)


def covered(values, sets, causal):
    """Regions whose credible set has the causal SNP, and regions with a set."""
    held = values.filter(pl.col("in_credible_set") & pl.col("snp").is_in(causal))["region"].n_unique()
    return held, sets["size"].count()


@pytest.mark.slow
def test_variances_start_at_those_of_the_run(simulated, mapped):
    """The default share of the raw variance of the trait would have fixed effects in it."""
    run = mmgibbs.open_run(simulated[0].directory.parent / "run")
    estimates = dict(run.summary.select("parameter", "mean").iter_rows())
    p = simulated[0].values.filter(pl.col("left_out").is_null())["frequency"].to_numpy()
    drafted = mapped.analysis
    expected = estimates["genetic.var[gain]"] / np.sum(2 * p * (1 - p))
    assert drafted["model"]["markers"]["rest"]["variance"]["start"] == pytest.approx(expected)
    assert drafted["variances"]["residual"]["start"] == pytest.approx(estimates["residual.var[gain]"])


def test_credible_sets_hold_the_simulated_effects(simulated, mapped):
    held, n_sets = covered(mapped.values, mapped.sets, simulated[1])
    assert n_sets >= 6 and held >= n_sets - 1  # of 10 regions at 95 % less than 9 have a chance of 0.09
    assert mapped.sets["size"].mean() < PER_CHROMOSOME / 2  # and they say something


def test_sets_of_a_lower_level_do_not(simulated, mapped):
    """The mutated twin: sets that stop at the first SNP."""
    best = mapped.values.filter(pl.col("pip") == pl.col("pip").max().over("region"))
    held = best.filter(pl.col("snp").is_in(simulated[1]))["region"].n_unique()
    assert held < 0.8 * mapped.sets["size"].count()


def test_the_prior_is_that_among_all_snps(simulated, mapped):
    tested, _ = simulated
    n_regions = tested.regions.filter(test="gain").height
    pi = mapped.analysis["model"]["markers"]["regions"]["pi"]
    assert pi["fixed"] and pi["start"][1] == pytest.approx(n_regions / tested.facts["tested"])
    assert "genetic" not in mapped.analysis["model"]["random"]
    assert mapped.analysis["model"]["markers"]["rest"]["prior"] == "rr"
    written = yaml.safe_load((mapped.directory / "analysis.yaml").read_text(encoding="utf-8"))
    assert written["model"]["markers"]["regions"]["prior"] == "bayes_c"
    assert mapped.values["pip"].max() <= 1 and mapped.values["snp"].n_unique() == mapped.values.height
    assert any("that among all SNPs" in note for note in mapped.notes)


@pytest.mark.slow
def test_a_wider_region_has_more_snps(simulated, tmp_path, capsys):
    tested, _ = simulated
    wide = mmgibbs.gwas(tested.directory.parent / "run", loco=True, progress=False).regions
    narrow = mmgibbs.gwas(tested.directory.parent / "run", loco=True, region_width=2000, progress=False).regions
    assert wide.filter(test="gain")["snps"].to_list() == tested.regions.filter(test="gain")["snps"].to_list()
    first = narrow.filter(test="gain").row(0, named=True)
    assert first["end"] - first["start"] <= 2000 + 1000 * first["significant"] * 2 and first["snps"] < PER_CHROMOSOME
    for width in (0, -1.0, True, "1Mb"):
        with pytest.raises(ConfigError, match="region_width: expected a number above 0"):
            mmgibbs.finemap(tested.directory, tmp_path / "none", region_width=width)
    tested, _ = simulated
    short = "sampler={chains: 1, burn_in: 5, samples: 100, thin: 1, seed: 5}"
    command = ["finemap", str(tested.directory), "--output", str(tmp_path / "fine"), "--region-width", "2000"]
    assert main([*command, "--set", short, "--quiet"]) == 0, capsys.readouterr().err
    sets = pl.read_csv(tmp_path / "fine" / "credible_sets.csv")
    assert 0 < sets["snps"].sum() < tested.regions.filter(test="gain")["snps"].sum()


def test_a_trial_at_several_sites_is_refused_with_what_to_run(tmp_path):
    """The analysis of all sites of the message has one trait, and is fine-mapped."""
    rng = np.random.default_rng(4)
    n, sites = 120, ["east", "west"]
    genotypes = sum(linked_haplotypes(rng, n, 60) for _ in range(2))
    names, ids = [f"s{j}" for j in range(60)], [f"l{i}" for i in range(n)]
    y = np.tile(genotypes[:, 30] * 1.5, 4) + rng.normal(size=4 * n)
    records = {"line": ids * 4, "site": np.repeat(sites * 2, n), "yield": y}
    pl.DataFrame(records).write_csv(tmp_path / "records.csv")
    pl.DataFrame({"line": ids} | dict(zip(names, genotypes.T, strict=True))).write_csv(tmp_path / "snps.csv")
    genetic = {"genetic": {"level": "line", "relationship": "genomic"}}
    data = {"phenotypes": str(tmp_path / "records.csv"), "genotypes": str(tmp_path / "snps.csv")}

    def test_snps(name, traits, fixed, random):
        model = {"fixed": fixed, "random": random}
        analysis = {"data": data, "traits": traits, "model": model, "sampler": {"method": "reml"}}
        run = mmgibbs.run(analysis, directory=tmp_path / name, progress=False)
        return mmgibbs.gwas(run.directory, output=tmp_path / f"{name}-gwas", progress=False)

    tested = test_snps("by-site", {"yield": {"by": "site"}}, {}, genetic)
    with pytest.raises(ConfigError) as refused:
        mmgibbs.finemap(tested.directory)
    message = str(refused.value)
    assert "with yield by site (yield|east, yield|west)" in message
    assert "traits: [yield], with site under model.fixed and 'line:site' under model.random" in message
    assert "traits: {yield: {where: {site: east}}}" in message
    pooled = test_snps("pooled", ["yield"], {"site": {}}, genetic | {"line:site": {}})
    short = ["sampler={chains: 1, burn_in: 5, samples: 100, thin: 1, seed: 5}"]
    mapped = mmgibbs.finemap(pooled.directory, overrides=short, progress=False)
    assert any(note.startswith("warning: the SNPs have no chromosome or position") for note in mapped.notes)
    assert any("a region of these is 50 SNPs on either side" in note for note in pooled.notes)
    unseen = mapped.values.filter(pl.col("pip") < 0.005)  # in none of 100 draws, so that the PIP may be 3 / 100
    assert unseen.height and unseen["pip_mcse"].min() > 0.69 / 100
    narrow = mmgibbs.finemap(pooled.directory, tmp_path / "narrow", region_width=10, overrides=short, progress=False)
    assert narrow.sets["snps"].sum() < mapped.sets["snps"].sum()
    assert any("a region of these is 5 SNPs on either side" in note for note in narrow.notes)


def test_refusals(simulated, mapped, capsys, tmp_path):
    with pytest.raises(ConfigError, match="expected a run with one trait, got 'r' with milk, fat: run the analysis"):
        _find_trait({"traits": {"milk": {}, "fat": {}}}, "r", "animal")
    assert main(["finemap", str(simulated[0].directory)]) == 2
    assert "holds a fine-mapping" in capsys.readouterr().err
    tested, _ = simulated
    with pytest.raises(ConfigError, match="is not the folder of an association: found no gwas.json"):
        mmgibbs.finemap(tmp_path)
    with pytest.raises(ConfigError, match="expected a number above 0 and below the 375 SNPs, got 0"):
        mmgibbs.finemap(tested.directory, tmp_path / "none", effects=0.0)
    assert not (tmp_path / "none").exists()


def test_the_page_has_the_regions(simulated):
    page = (simulated[0].directory / "gwas.html").read_text(encoding="utf-8")
    assert page.count('<div class="figures wide">') == 1
    assert "Regions beyond the threshold: gain" in page and simulated[0].regions["lead_snp"][0] in page


def test_regions_that_overlap_are_one():
    places = [("1", 10.0), ("1", 100.0), ("1", 130.0), ("1", 400.0), ("2", 10.0), (None, None), ("1", 115.0)]
    values = pl.DataFrame(places, schema=["chromosome", "position"], orient="row")
    values = values.with_columns(snp=pl.Series(list("abcdefg")), p=pl.Series([0.0, 9.0, 7.0, 8.0, 0.0, 6.5, 1.0]))
    regions = find_regions(values, {"t": "p"}, 6.0, 50.0)
    assert regions["lead_snp"].to_list() == ["b", "d", "f"]
    assert regions["snps"].to_list() == [3, 1, 1] and regions["significant"].to_list() == [2, 1, 1]
    assert regions.select("start", "end").row(0) == (50.0, 180.0)
    found = [snps_of_region(values, row).to_list() for row in regions.iter_rows(named=True)]
    assert found == [["b", "c", "g"], ["d"], ["f"]]
    assert find_regions(values, {"t": "p"}, 20.0, 50.0).is_empty()


def test_a_credible_set_is_the_shortest_by_falling_probability():
    has_effect = np.zeros((100, 4), bool)
    has_effect[:60, 2] = has_effect[60:97, 0] = has_effect[:10, 1] = True
    chosen, share = credible_set(has_effect.mean(axis=0), has_effect)
    assert chosen.tolist() == [2, 0] and share == pytest.approx(0.97)
    chosen, share = credible_set(has_effect[:, :2].mean(axis=0), has_effect[:, :2])
    assert not chosen.size and share == pytest.approx(0.47)
