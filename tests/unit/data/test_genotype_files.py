"""Files of genotypes: every format gives the same animals, SNPs and genotypes; what is wrong is said by its place."""

import sys

import numpy as np
import polars as pl
import pytest
from helpers.genotype_files import (
    CHROMOSOMES,
    CODES,
    DOSAGES,
    IDS,
    MAP,
    POSITIONS,
    SNPS,
    WRITERS,
    N,
    P,
    lines_of_blupf90,
    opened,
    table_frame,
    write_bed,
    write_blupf90,
    write_csv,
    write_pgen,
)
from helpers.genotypes import bed_bytes, codes_and_dosages, write_plink
from helpers.support import shared_data

from mmgibbs.errors import DataError

CASES = "data/genomics/bedreader_cases"


@pytest.mark.parametrize("write", WRITERS)
def test_every_format_gives_the_same(write, tmp_path):
    path, keys = write(tmp_path)
    file = opened(path, **keys)
    assert file.ids.to_list() == IDS and file.snps["snp"].to_list() == SNPS
    assert file.snps["chromosome"].to_list() == [str(c) for c in CHROMOSOMES]
    assert file.snps["position"].to_list() == POSITIONS
    assert np.array_equal(file.source.block(0, P), CODES) and np.array_equal(file.source.block(2, 5), CODES[2:5])
    assert not file.source.real_valued and (file.source.n_animals, file.source.n_snps) == (N, P)
    assert file.notes == () and file.warnings == ()


def test_alleles_of_plink_are_those_counted(tmp_path):
    file = opened(write_bed(tmp_path)[0])
    assert file.snps["counted"].to_list() == ["A"] * P and file.snps["other"].to_list() == ["C"] * P


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("badfile", "badfile.bed: begins with the bytes 54 68 69; needed 6c 1b 01, as in a PLINK .bed"),
        ("empty", "empty.bed: is empty; needed a PLINK .bed"),
        ("smallmode0", "smallmode0.bed: is sample-major (its third byte is 00)"),
        ("smallmodebad", "smallmodebad.bed: its third byte is 30; needed 01, as in a PLINK .bed"),
        ("small_too_short", "small_too_short.bed: is cut short: found 6 bytes; needed 7, which is 3 + 4 SNPs"),
    ],
)
def test_broken_bed_files_are_refused_by_name(name, message):
    folder = shared_data(CASES)
    with pytest.raises(DataError) as refused:
        opened(folder / f"{name}.bed", map=str(folder / "small.bim"), animals=str(folder / "small.fam"))
    assert str(refused.value).startswith(message)


def test_genotypes_of_plink_are_those_that_another_program_reads():
    """some_missing.val.npy of the same folder: made by bed-reader."""
    folder = shared_data(CASES)
    expected = np.load(folder / "some_missing.val.npy")
    file = opened(folder / "some_missing.bed")
    found = np.array([0, 1, 2, np.nan])[file.source.block(0, file.n_snps)].T
    assert np.array_equal(found, expected, equal_nan=True)


def test_bed_files_of_another_size_and_missing_ones_are_refused(tmp_path):
    write_bed(tmp_path)
    (tmp_path / "g.bed").write_bytes(bed_bytes(CODES) + bytes(2 * -(-N // 4)))
    with pytest.raises(DataError, match="is longer than its .bim and .fam say.*with these animals it holds 9 SNPs"):
        opened(tmp_path / "g.bed")
    (tmp_path / "g.bed").write_bytes(bed_bytes(CODES) + bytes(P))
    with pytest.raises(DataError, match="with these SNPs it holds 17 to 20 animals: the .fam may belong to another"):
        opened(tmp_path / "g.bed")
    write_bed(tmp_path)
    (tmp_path / "g.fam").unlink()
    with pytest.raises(DataError, match=r"g.fam: no such file; needed the .fam that belongs to the .bed"):
        opened(tmp_path / "g.bed")
    with pytest.raises(DataError, match=r"h.bed: no such file \(data.genotypes.file\)"):
        opened(tmp_path / "h.bed")


def test_snps_without_names_are_called_by_their_place(tmp_path):
    write_plink(tmp_path / "g.bed", CODES, IDS, [".", *SNPS[1:]], [1] * P, [100 * j for j in range(P)])
    file = opened(tmp_path / "g.bed")
    assert file.snps["snp"][0] == "1:0" and file.notes[0].startswith("g.bed: 1 SNP without a name")


def test_files_of_plink_2_that_do_not_fit_together(tmp_path):
    write_pgen(tmp_path)
    psam = tmp_path / "g.psam"
    psam.write_text(psam.read_text() + "more\t0\n")
    with pytest.raises(DataError, match=r"g.pgen: cannot be read with 14 animals \(g.psam\) and 7 SNPs \(g.pvar\)"):
        opened(tmp_path / "g.pgen")
    psam.write_text("IID\n")
    with pytest.raises(DataError, match="g.psam: needed a header that begins with #FID or #IID"):
        opened(tmp_path / "g.pgen")


@pytest.mark.parametrize(
    ("ids", "snps", "message"),
    [
        ([*IDS[:-1], "a2"], SNPS, r"g.fam rows 3, 13: found animal 'a2' 2 times\nneeded every animal once"),
        (IDS, [*SNPS[:-1], "m0"], r"rows 1, 7: found SNP 'm0' 2 times\nneeded every SNP once"),
    ],
)
def test_an_animal_and_a_snp_are_there_once(ids, snps, message, tmp_path):
    write_plink(tmp_path / "g.bed", CODES, ids, snps, [1] * P, [0] * P)
    with pytest.raises(DataError, match=message):
        opened(tmp_path / "g.bed")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a2    0123012", "g.txt row 3: found '3' for SNP 4 of animal 'a2'; needed 0, 1, 2, or 5 for missing"),
        ("a2    01X3012", "g.txt row 3: found 'X' for SNP 3 of animal 'a2'"),
        ("a2    012", "g.txt row 3: found 3 genotypes; needed 7, as in row 1"),
        ("a2", "g.txt row 3: found 'a2'; needed two fields, an id and a string of genotypes"),
        ("a2 0120 120", "g.txt row 3: found 'a2 0120 120'; needed two fields"),
    ],
)
def test_lines_of_blupf90_that_cannot_be_used(line, message, tmp_path):
    lines = lines_of_blupf90()
    lines[2] = line
    (tmp_path / "g.txt").write_text("\n".join(lines))
    with pytest.raises(DataError) as refused:
        opened(tmp_path / "g.txt", format="blupf90")
    assert str(refused.value).startswith(message)


def test_a_blupf90_file_over_several_chunks(tmp_path):
    codes, _ = codes_and_dosages(150, 300, seed=2)
    (tmp_path / "g.txt").write_text("\n".join(lines_of_blupf90(codes, [f"x{i}" for i in range(300)])))
    assert np.array_equal(opened(tmp_path / "g.txt").source.block(0, 150), codes)


def test_a_map_has_a_row_for_each_snp_without_a_name_and_others_are_counted(tmp_path):
    write_blupf90(tmp_path)
    (tmp_path / "map.txt").write_text(MAP + "3 5 extra\n")
    with pytest.raises(DataError, match="map.txt: found 8 SNPs, but g.txt has 7, without names"):
        opened(tmp_path / "g.txt", map=str(tmp_path / "map.txt"))
    table_frame().write_csv(tmp_path / "g.csv")
    (tmp_path / "map.csv").write_text("snp,chr,pos\nm1,X,2\nother,1,1\n")
    file = opened(tmp_path / "g.csv", map=str(tmp_path / "map.csv"))
    assert file.notes == (
        "map.csv: 6 SNPs of g.csv without a row in the map, such as m0, m2, m3, m4, m5",
        "map.csv: 1 SNP of the map without genotypes in g.csv",
    )
    assert file.snps["chromosome"].to_list() == [None, "X", *[None] * 5]


def test_real_valued_genotypes(tmp_path):
    frame = table_frame().with_columns(m3=pl.lit(0.25), m5=pl.lit(1.98))
    frame.write_csv(tmp_path / "g.csv")
    source = opened(tmp_path / "g.csv").source
    expected = DOSAGES.copy()
    expected[3], expected[5] = 0.25, 1.98
    assert source.real_valued
    assert source.block(0, P) == pytest.approx(expected, nan_ok=True)


def test_blocks_of_a_wide_table_fit_together(tmp_path, monkeypatch):
    monkeypatch.setattr("mmgibbs.data.genotypes.table.COLUMNS", 3)
    path, keys = write_csv(tmp_path)
    file = opened(path, **keys)
    assert np.array_equal(file.source.block(1, 7), CODES[1:7])


def test_maps_that_cannot_be_used(tmp_path):
    table_frame().write_csv(tmp_path / "g.csv")
    for text, message in [
        ("a,b\n1,2\n", "none of them for the snp; needed a header with one called snp"),
        ("snp,chr,pos\nm0,1,x\n", "map.csv row 2: found 'x' as the position; needed a number"),
        ("snp,chr,pos\nm0,1,2\nm0,1,3\n", "map.csv row 3: found SNP 'm0' again; needed every SNP once"),
        ("snp,chr,pos\nq,1,2\n", "none of its 1 SNPs is one of g.csv, which has 'm0' and others; the map has 'q'"),
    ]:
        (tmp_path / "map.csv").write_text(text)
        with pytest.raises(DataError, match=message):
            opened(tmp_path / "g.csv", map=str(tmp_path / "map.csv"))


@pytest.mark.parametrize("library, ending", [("cyvcf2", "vcf"), ("pgenlib", "pgen")])
def test_a_library_that_is_not_there_is_named_with_its_extra(library, ending, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)  # importing it raises ImportError
    (tmp_path / f"g.{ending}").write_bytes(b"x")
    with pytest.raises(DataError, match=rf"{library}, which is not installed; needed .*mmgibbs\[genotypes\]"):
        opened(tmp_path / f"g.{ending}")
