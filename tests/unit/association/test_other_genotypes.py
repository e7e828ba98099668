"""What is said of genotypes that are not those of the run: swapped alleles, absent SNPs, mixed-up samples."""

import numpy as np
import polars as pl
from helpers.new_animals import SNPS

import mmgibbs


def notes(run, path):
    return mmgibbs.gwas(run.directory, path, quality={"maf": 0.0}, progress=False).notes


def test_other_genotypes_are_named(herd, run):
    said = notes(run, herd.write_genotypes("same.csv", herd.old))
    assert any("genotypes are those of same.csv; relationships of the run are from old.csv" in n for n in said)
    assert not any(n.startswith("warning") for n in said)
    assert not any("genotypes are those of" in n for n in mmgibbs.gwas(run.directory, progress=False).notes)
    said = notes(run, herd.write_genotypes("swapped.csv", herd.old, values=2 - herd.genotypes))
    warned = [n for n in said if n.startswith("warning: swapped.csv: ")]
    assert len(warned) == 1 and "the file seems to count the other allele" in warned[0]


def test_mixed_up_samples_are_named(herd, run):
    mixed = herd.genotypes.copy()
    mixed[herd.old] = mixed[np.random.default_rng(1).permutation(herd.old)]
    said = notes(run, herd.write_genotypes("mixed.csv", herd.old, values=mixed))
    assert any(n.startswith("warning: mixed.csv: ") and "are samples mixed up?" in n for n in said)
    few = herd.genotypes.copy()
    few[[3, 4]] = few[[4, 3]]  # two animals of a hundred are within what errors of genotyping are
    assert not any("mixed up" in n for n in notes(run, herd.write_genotypes("few.csv", herd.old, values=few)))
    old_and_young = np.concatenate([herd.old[:20], herd.young])
    predicted = mmgibbs.predict(run.directory, herd.write_genotypes("p.csv", old_and_young, values=mixed))
    assert any("are samples mixed up?" in n for n in predicted.notes)


def test_absent_snps_are_counted(herd, run):
    said = notes(run, herd.write_genotypes("half.csv", herd.old, range(0, SNPS, 2)))
    assert any(f"45 of the {SNPS} SNPs of the run are not in half.csv, such as s1, s3, s5" in n for n in said)
    other = pl.read_csv(herd.folder / "old.csv")
    other.rename({f"s{j}": f"x{j}" for j in range(SNPS)}).write_csv(herd.folder / "renamed.csv")
    assert any(n.startswith("warning: renamed.csv: has none of the 90 SNPs of the run") for n in
               notes(run, herd.folder / "renamed.csv"))  # fmt: skip
