"""HapMap files: letters as genotypes, in one character or two."""

import numpy as np
import pytest
from helpers.genotype_files import CODES, IDS, PLACES, SNPS, N, P, hapmap_text, opened

from mmgibbs.errors import DataError

PAIRS = [("A", "G"), ("C", "T"), ("C", "G"), ("A", "T"), ("G", "T"), ("A", "C"), ("+", "-")]
HETEROZYGOTES = ["R", "Y", "S", "W", "K", "M", "0"]  # of IUPAC and, for + and -, of TASSEL


def written(folder, genotypes, name="g.hmp.txt", **keys):
    (folder / name).write_text(hapmap_text(genotypes, **keys))
    return opened(folder / name)


def codes_of(file):
    return file.source.block(0, file.n_snps)


def letters(first, second, heterozygote):
    return np.array([first, heterozygote, second, "N"])


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("two", ["one letter", "two letters", "divided"])
def test_every_pair_of_alleles(two, turned, tmp_path):
    """The second allele is counted, in whatever order they are."""
    rows, alleles = [], []
    for codes, (a, b), heterozygote in zip(CODES, PAIRS, HETEROZYGOTES, strict=True):
        a, b = (b, a) if turned else (a, b)
        mark = "/" if two == "divided" else ""
        long = np.array([a + mark + a, a + mark + b, b + mark + b, "N" + mark + "N"])
        rows.append((letters(a, b, heterozygote) if two == "one letter" else long)[codes])
        alleles.append(f"{a}/{b}")
    file = written(tmp_path, rows, alleles=alleles)
    assert np.array_equal(codes_of(file), CODES)
    assert file.snps.select("other", "counted").rows() == [tuple(x.split("/")) for x in alleles]
    assert file.ids.to_list() == IDS and file.snps["snp"].to_list() == SNPS and file.notes == ()
    assert file.snps["position"].to_list() == [x for _, x, _ in PLACES]


@pytest.mark.parametrize("alleles", ["", "N", "NA", "A", ".", "?"])
def test_alleles_that_are_not_said_are_those_seen(alleles, tmp_path):
    file = written(tmp_path, [["A", "R", "G", "N", *["A"] * (N - 4)]] * P, alleles=[alleles] * P)
    assert codes_of(file)[:, :4].tolist() == [[0, 1, 2, 3]] * P
    assert file.snps["other"][0] == "A" and file.snps["counted"][0] == "G"


def test_snps_of_other_than_two_alleles(tmp_path):
    file = written(tmp_path, [["A", "AA", "N", *["A"] * (N - 3)]] * P, alleles=["A"] * P)
    assert codes_of(file)[:, :3].tolist() == [[0, 0, 3]] * P and file.snps["counted"].null_count() == P
    alleles = ["A/C/T", "A/ATG", "A/G", "C/A", "A/G", "A/G", ""]
    rows = [["A"] * N] * (P - 1) + [["A", "C", "T", *["A"] * (N - 3)]]
    file = written(tmp_path, rows, alleles=alleles)
    assert file.snps["snp"].to_list() == ["m2", "m3", "m4", "m5"]
    assert file.notes == ("g.hmp.txt: 3 SNPs with other than two alleles left out",)


@pytest.mark.parametrize(
    ("genotype", "message"),
    [
        ("T", r"g.hmp.txt row 4: found 'T' for SNP 'm2' \(A/G\) of animal 'a3'; needed its alleles"),
        ("Y", r"g.hmp.txt row 4: found 'Y' for SNP 'm2' \(A/G\) of animal 'a3'; needed its alleles"),
        ("1", r"g.hmp.txt row 4: found '1' for SNP 'm2' \(A/G\) of animal 'a3'; needed one letter"),
        ("AGG", r"g.hmp.txt row 4: found 'AGG' for SNP 'm2' \(A/G\) of animal 'a3'; needed one letter"),
        ("B", r"g.hmp.txt row 4: found 'B' for SNP 'm2' \(A/G\) of animal 'a3'; needed one letter"),
    ],
)
def test_genotypes_that_are_none(genotype, message, tmp_path):
    rows = [["A"] * N for _ in range(P)]
    rows[2][3] = genotype
    with pytest.raises(DataError, match=message):
        written(tmp_path, rows, alleles=["A/G"] * P)


def test_animals_in_several_passes(tmp_path, monkeypatch):
    monkeypatch.setattr("mmgibbs.data.genotypes.hapmap._CELLS", 3 * P)
    monkeypatch.setattr("mmgibbs.data.genotypes.hapmap.BLOCK", 2)
    assert np.array_equal(codes_of(written(tmp_path, np.array(list("CMAN"))[CODES])), CODES)


def test_files_that_are_none(tmp_path):
    (tmp_path / "g.hmp.txt").write_text("animal\tm0\tm1\tm2\tm3\na1\t0\t1\t2\t2\n")
    with pytest.raises(DataError, match="g.hmp.txt: begins with the columns 'animal', 'm0', .*; needed rs#, alleles"):
        opened(tmp_path / "g.hmp.txt")
    with pytest.raises(DataError, match="g.hmp.txt: has no columns of animals after 'QCcode'"):
        written(tmp_path, [[]] * P, ids=[])
    with pytest.raises(DataError, match="columns 12 and 24 are both named 'a0'"):
        written(tmp_path, [["A"] * N] * P, ids=[*IDS[:-1], "a0"])
    with pytest.raises(DataError, match="g.hmp.txt: found no SNP with two alleles"):
        written(tmp_path, [["A"] * N] * P, alleles=["A/C/T"] * P)
