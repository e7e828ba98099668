"""Simulated genomes: recombination, linkage disequilibrium, QTL, and files that say the same."""

import argparse
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.genotypes.prepare import prepare_genotypes
from mmgibbs.errors import ConfigError
from mmgibbs.pedigree.read import read_pedigree
from mmgibbs.simulation import command
from mmgibbs.simulation.genome import Genome, Map, allele_counts, drop_genes, historic_population
from mmgibbs.simulation.genome_options import describe_options
from mmgibbs.simulation.simulate import COMPONENTS, GENETIC, simulate_beef, write_beef

SMALL = Genome(snps=300, qtl=30, chromosomes=2)
N, YEARS, SEED = 500, 6, 4


@pytest.fixture(scope="module")
def beef():
    return simulate_beef(N, SEED, YEARS, SMALL)


@pytest.fixture(scope="module")
def folder(beef, tmp_path_factory):
    return write_beef(beef, tmp_path_factory.mktemp("genome") / "beef")


def bits(haplotypes, loci):
    """(n, 2, loci) in plain words."""
    return np.unpackbits(haplotypes.view(np.uint8), axis=-1, bitorder="little")[:, :, :loci]


@pytest.fixture(scope="module")
def gametes():
    """(20000, loci) which strand each locus of a gamete came from, and the map: the one parent has strands 0 and 1."""
    place = np.tile(np.linspace(0.0, 1.0, 101)[:-1], 2)
    where = Map(np.array([0, 100, 200]), place, 1.0)
    parent = np.zeros((1, 2, 4), np.uint64)
    parent[0, 1] = np.uint64(2**64 - 1)
    n = 20_000
    unknown = np.full(n, -1, np.int32)
    made = drop_genes(unknown, unknown, parent, where, np.random.default_rng(1))
    return bits(made, 200).reshape(2 * n, 200), place


def recombination_z(gametes, place, expected):
    """z of the recombined share for pairs of the first chromosome, and of one from each."""
    pairs = [(0, 1), (10, 15), (20, 40), (0, 50), (1, 99), (99, 100), (50, 150)]
    z = []
    for a, b in pairs:
        r = expected(place[b] - place[a]) if (a < 100) == (b < 100) else 0.5
        share = (gametes[:, a] != gametes[:, b]).mean()
        z.append((share - r) / np.sqrt(r * (1 - r) / len(gametes)))
    return np.abs(z)


def test_recombination_is_haldanes(gametes):
    bound = 3.8
    assert recombination_z(*gametes, lambda d: (1 - np.exp(-2 * d)) / 2).max() < bound
    assert recombination_z(*gametes, lambda d: np.tanh(2 * d) / 2).max() > bound
    assert abs(gametes[0].mean(axis=0) - 0.5).max() < 4 * 0.5 / np.sqrt(len(gametes[0]))


def test_progeny_have_what_their_parents_have():
    """At each locus of each side one of the two bits of that parent."""
    rng = np.random.default_rng(2)
    loci = 150
    where = Map(np.array([0, 70, 150]), np.r_[np.sort(rng.random(70)), np.sort(rng.random(80))], 1.0)
    historic = rng.integers(0, 2**64, (5, 2, 3), dtype=np.uint64)
    sire, dam = np.array([-1, -1, 0, 0, 2], np.int32), np.array([-1, -1, 1, 1, 3], np.int32)
    made = bits(drop_genes(sire, dam, historic, where, rng), loci)
    for i in (2, 3, 4):
        for side, parent in enumerate((sire[i], dam[i])):
            assert ((made[i, side] == made[parent, 0]) | (made[i, side] == made[parent, 1])).all()
    assert (made[2, 0] != made[3, 0]).any()


def test_counts_are_those_of_the_bits(beef):
    g = beef.genotypes
    every = bits(g.haplotypes, 300).sum(axis=1).T
    assert np.array_equal(allele_counts(g.haplotypes, np.arange(300)), every)
    some = np.array([5, 3, 200])
    assert np.array_equal(allele_counts(g.haplotypes, np.array([64, 7]), some), every[[64, 7]][:, some])


def test_linkage_disequilibrium_is_that_of_livestock():
    """r^2 of neighbours high, falling with distance, that of unlinked loci as small as the sample allows."""
    where, historic = historic_population(Genome(snps=3000, qtl=4, chromosomes=2), np.random.default_rng(3))
    unknown = np.full(400, -1, np.int32)
    counts = allele_counts(drop_genes(unknown, unknown, historic, where, np.random.default_rng(4)), np.arange(3000))
    r2 = np.corrcoef(counts) ** 2
    centimorgan = 100 * np.abs(where.place[:, None] - where.place)
    same = (where.chromosome[:, None] == where.chromosome) & ~np.eye(3000, dtype=bool)

    def mean_between(low, high):
        return r2[same & (centimorgan >= low) & (centimorgan < high)].mean()

    assert 0.25 < mean_between(0.05, 0.2) < 0.45
    assert 0.10 < mean_between(0.5, 1) < 0.25
    assert 0.03 < mean_between(2, 5) < 0.09
    assert r2[where.chromosome[:, None] != where.chromosome].mean() < 3 / 400


def test_loci_are_common_and_lie_on_their_chromosomes():
    where, historic = historic_population(SMALL, np.random.default_rng(5))
    frequency = allele_counts(historic, np.arange(300)).mean(axis=1) / 2
    assert (np.minimum(frequency, 1 - frequency) >= SMALL.maf).all()
    assert where.first[0] == 0 and where.first[-1] == 300
    for c in range(2):
        place = where.place[where.first[c] : where.first[c + 1]]
        assert (np.diff(place) >= 0).all() and place[0] >= 0 and place[-1] <= 1


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_founders_have_the_covariance_matrix_asked_for(share):
    beef = simulate_beef(N, SEED, YEARS, replace(SMALL, qtl_share=share))
    g = beef.genotypes
    founders = np.flatnonzero(beef.birth_year < 2000)  # FIRST_YEAR
    counts = allele_counts(g.haplotypes, g.qtl, founders)
    assert np.cov((counts.T @ g.effects).T) == pytest.approx(share * GENETIC, rel=1e-9)
    polygenic = simulate_beef(N, SEED, YEARS).breeding_values
    every = allele_counts(g.haplotypes, g.qtl).T
    of_qtl = (every - 2 * g.frequency) @ g.effects
    assert beef.breeding_values == pytest.approx(np.sqrt(1 - share) * polygenic + of_qtl, abs=1e-3)


def test_animals_are_those_without_a_genome(beef):
    plain = simulate_beef(N, SEED, YEARS)
    for name in ("sire", "dam", "birth_year", "sex", "herd", "maternal_environment"):
        np.testing.assert_array_equal(getattr(beef, name), getattr(plain, name), err_msg=name)


def rise(beef):
    """Genetic standard deviations of yearling weight a year, from the births of the herds on."""
    born = beef.birth_year >= 2003
    slope = np.polyfit(beef.birth_year[born], beef.breeding_values[born, 2], 1)[0]
    return slope / np.sqrt(GENETIC[2, 2])


@pytest.mark.parametrize("genome", [None, SMALL])
def test_selection_raises_the_mean(genome):
    """By the breeding value faster than by a weighing of h2 = 0.46, and neither by chance."""
    by = (None, "phenotype", "true")
    none, phenotype, true = (rise(simulate_beef(2000, 3, 10, genome, selection=of)) for of in by)
    assert abs(none) < 0.06 < 0.5 * phenotype < phenotype < true


def test_selection_is_of_weights(tmp_path, capsys):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    args = [str(tmp_path / "a"), "--animals", "300", "--years", "5", "--selection", "true"]
    command.main(parser.parse_args(args))
    assert "--selection true" in (tmp_path / "a" / "PROVENANCE.txt").read_text()


def test_files_say_the_same(beef, folder):
    """Breeding values from the .bed and the true effects are the true values."""
    g = beef.genotypes
    section = Genotypes.model_validate(str(folder / "genotypes.bed")).completed()
    pedigree = read_pedigree(folder / "pedigree.csv")
    records = pl.read_csv(folder / "phenotypes.csv")["animal"]
    found = prepare_genotypes(section, records, pedigree)
    codes = found.file.source.block(0, 300)
    assert np.array_equal(codes, allele_counts(g.haplotypes, np.arange(300)))
    assert not any("pairs of parent" in note for note in found.notes)
    effects, true = pl.read_csv(folder / "true_effects.csv"), pl.read_csv(folder / "true_values.csv")
    names = [c.replace(":", "_") for c in COMPONENTS]
    at = [found.file.snps["snp"].to_list().index(snp) for snp in effects["snp"]]
    u = (codes[at].T - 2 * effects["frequency"].to_numpy()) @ effects.select(names).to_numpy()
    assert found.file.ids.to_list() == true["animal"].to_list()
    assert u == pytest.approx(true.select(names).to_numpy(), abs=2e-3)
    where = found.file.snps[at].select("chromosome", "position", "counted")
    assert where["position"].to_list() == effects["position"].to_list()
    assert where["chromosome"].cast(pl.Int64).to_list() == effects["chromosome"].to_list()


def test_hidden_qtl_and_chosen_animals(tmp_path):
    beef = simulate_beef(N, SEED, YEARS, replace(SMALL, hide_qtl=True, genotyped=37))
    path = write_beef(beef, tmp_path / "beef")
    section = Genotypes.model_validate(str(path / "genotypes.bed")).completed()
    file = prepare_genotypes(section, None, None).file
    effects = pl.read_csv(path / "true_effects.csv")
    assert (file.n_snps, file.n_animals, effects.height) == (300, 37, 30)
    assert not set(effects["snp"]) & set(file.snps["snp"])
    shown = allele_counts(beef.genotypes.haplotypes, beef.genotypes.snps, np.arange(N - 37, N))
    assert np.array_equal(file.source.block(0, 300), shown)


def test_the_command_writes_them_and_says_so(tmp_path, capsys):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    options = ["--animals", "300", "--years", "5", "--snps", "100", "--qtl", "10", "--chromosomes", "1"]
    command.main(parser.parse_args([str(tmp_path / "with"), *options]))
    assert f"wrote {tmp_path / 'with' / 'genotypes.bed'}" in capsys.readouterr().out
    command.main(parser.parse_args([str(tmp_path / "without"), *options[:4]]))
    assert "genotypes" not in capsys.readouterr().out
    assert "  genotypes: genotypes.bed\n" in (tmp_path / "with" / "analysis.yaml").read_text()
    note = (tmp_path / "with" / "PROVENANCE.txt").read_text()
    assert "--snps 100 --qtl 10 --chromosomes 1\n" in note and "10 QTL, which are SNPs of the file" in note
    both = [(tmp_path / name / "pedigree.csv").read_bytes() for name in ("with", "without")]
    assert both[0] == both[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"qtl": 3}, "qtl: found 3, needed a whole number from 4 to 300"),
        ({"qtl": 301}, "qtl: found 301, needed a whole number from 4 to 300"),
        ({"chromosomes": 0}, "chromosomes: found 0, needed a whole number from 1 to 300"),
        ({"qtl_share": 0.0}, "qtl_share: found 0, needed a number above 0 and up to 1"),
    ],
)
def test_numbers_that_make_no_genome(change, message):
    with pytest.raises(ConfigError, match=message):
        simulate_beef(N, SEED, YEARS, replace(SMALL, **change))


def test_a_note_has_the_fields_without_an_option():
    genome = Genome(50, qtl=10, chromosomes=2, morgans=3.0)
    assert describe_options(genome) == " --snps 50 --qtl 10 --chromosomes 2, and in Python Genome(..., morgans=3.0)"
