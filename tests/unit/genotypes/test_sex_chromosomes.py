"""X, Y, Z, W and mitochondria: known by name or by the genotypes of parents, and not used to compare them."""

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.config import load_config
from mmgibbs.data.genotypes.snps import name_sex_chromosomes
from mmgibbs.data.prepare import prepare

N_AUTOSOMAL, N_X, N_SIRES, N_DAMS, N_PROGENY = 150, 60, 10, 20, 90
IDS = [f"a{i}" for i in range(N_SIRES + N_DAMS + N_PROGENY)]


@pytest.mark.parametrize(
    ("names", "kinds"),
    [
        (["1", "2", "X", "Y", "MT", "XY", None], {"X": "X", "Y": "Y", "MT": "MT"}),
        (["chr1", "chrX", "chrM", "chrX_par"], {"chrX": "X", "chrM": "MT"}),
        (["1", "X_nonPAR", "chrY_random"], {"X_nonPAR": "X", "chrY_random": "Y"}),
        (["BTA1", "BTA29", "BTAX"], {"BTAX": "X"}),
        (["Chr01", "Chr28", "ChrZ", "chr_W"], {"ChrZ": "Z", "chr_W": "W"}),
        (["1", "23", "24", "25", "26"], {}),  # of men X and Y, of cattle autosomes
        (["I", "II", "VIII", "IX", "X", "XI"], {}),  # Roman numbers
        (["A", "B", "C", "X"], {}),  # linkage groups
        (["1A", "1B", "7D"], {}),
        (["1", "mito", "chrMito"], {"mito": "MT", "chrMito": "MT"}),
        (["1", "Mitochondrion"], {"Mitochondrion": "MT"}),
    ],
)
def test_names(names, kinds):
    assert name_sex_chromosomes(names) == kinds


def simulated(is_bird=False):
    """(animals, SNPs) without errors, sire, dam: animals of one sex have one X (the Z of birds), read as 0 or 2."""
    rng = np.random.default_rng(4)
    n = len(IDS)
    sire = np.concatenate([np.full(N_SIRES + N_DAMS, -1), rng.integers(0, N_SIRES, N_PROGENY)])
    dam = np.concatenate([np.full(N_SIRES + N_DAMS, -1), rng.integers(N_SIRES, N_SIRES + N_DAMS, N_PROGENY)])
    is_male = np.concatenate([np.ones(N_SIRES, bool), np.zeros(N_DAMS, bool), rng.random(N_PROGENY) < 0.5])
    haplotypes = (rng.random((n, 2, N_AUTOSOMAL + N_X)) < 0.5).astype(int)
    is_single = is_male != is_bird
    x = slice(N_AUTOSOMAL, None)
    for i in range(n):
        if sire[i] >= 0:
            for k, parent in enumerate((sire[i], dam[i])):
                haplotypes[i, k] = np.where(rng.random(N_AUTOSOMAL + N_X) < 0.5, *haplotypes[parent])
        if is_single[i]:  # the X comes from the parent of the other sex, and is read twice
            haplotypes[i, :, x] = haplotypes[i, 0 if is_bird else 1, x]
    return haplotypes.sum(axis=1), sire, dam


@pytest.fixture(params=[("X", "X", False), ("19", "19 (X)", False), ("30", "30 (Z)", True)])
def case(request, tmp_path):
    """(analysis, pedigree, keys of genotypes, the chromosome in notes)."""
    name, words, is_bird = request.param
    genotypes, sire, dam = simulated(is_bird)
    snps = [f"s{j}" for j in range(genotypes.shape[1])]
    pl.DataFrame({"id": IDS} | {s: genotypes[:, j] for j, s in enumerate(snps)}).write_csv(tmp_path / "g.csv")
    chromosome = [str(1 + j // 50) for j in range(N_AUTOSOMAL)] + [name] * N_X
    places = {"snp": snps, "chromosome": chromosome, "position": np.arange(len(snps))}
    pl.DataFrame(places).write_csv(tmp_path / "m.csv")
    parents = np.array([*IDS, None], object)
    pedigree = pl.DataFrame({"id": IDS, "sire": list(parents[sire]), "dam": list(parents[dam])})
    section = {"file": str(tmp_path / "g.csv"), "map": str(tmp_path / "m.csv")}
    source = {
        "data": {"phenotypes": pl.DataFrame({"id": IDS, "y": np.arange(len(IDS)) % 7}), "pedigree": pedigree},
        "traits": ["y"],
        "model": {"random": {"genetic": {"level": "id", "relationship": "single_step"}}},
        "variances": {"mode": "fixed", "genetic": 1, "residual": 1},
        "sampler": {"method": "blup"},
        "output": {"directory": str(tmp_path / "run")},
    }
    return source, pedigree, section, words


def test_parents_are_not_compared_by_them(case):
    _, pedigree, section, words = case
    described = mmgibbs.describe_pedigree(pedigree, genotypes=section)
    assert described.facts["parentage"]["pairs"] == 2 * N_PROGENY
    assert described.facts["parentage"]["conflicts"] == 0
    assert described.facts["parentage"]["snps"] == N_AUTOSOMAL
    assert any(f"{N_X} SNPs of sex chromosomes or mitochondria ({words}: 60) left out" in n for n in described.notes)


@pytest.mark.parametrize("choice", ["keep", "drop"])
def test_right_animals_stay(case, choice):
    """parent_progeny: drop leaves out no animal, and says what is done with the SNPs."""
    source, _, section, words = case
    source["data"]["genotypes"] = section | {"quality": {"parent_progeny": "drop", "sex_chromosomes": choice}}
    genotypes = prepare(load_config(source)).genotypes
    assert len(genotypes.checked.kept_animals) == len(IDS)
    assert len(genotypes.checked.kept_snps) == N_AUTOSOMAL + (N_X if choice == "keep" else 0)
    assert any(words in note for note in genotypes.notes) == (choice == "keep")
    if choice == "drop":
        assert ("SNPs", "sex chromosomes and mitochondria", N_X) in genotypes.checked.dropped
