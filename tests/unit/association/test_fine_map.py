"""Regions that pass, the analysis that is drafted of them, and how often credible sets hold the simulated effect."""

import numpy as np
import polars as pl
import pytest
import yaml

import mmgibbs
from mmgibbs.association.fine_map import credible_set
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


def test_a_fine_mapping_is_not_written_over(simulated, mapped, capsys):
    assert main(["finemap", str(simulated[0].directory)]) == 2
    assert "holds a fine-mapping" in capsys.readouterr().err


def test_refusals(simulated, tmp_path):
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


# ------------------------------------------------------------------------------------------------ parts


def test_regions_that_overlap_are_one():
    values = pl.DataFrame(
        {
            "snp": list("abcdefg"),
            "chromosome": ["1", "1", "1", "1", "2", None, "1"],
            "position": [10.0, 100.0, 130.0, 400.0, 10.0, None, 115.0],
            "p": [0.0, 9.0, 7.0, 8.0, 0.0, 6.5, 1.0],
        }
    )
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
