"""Places of SNPs: chromosomes that are unknown, units of positions, windows that fit neither."""

import numpy as np
import polars as pl
import pytest
from helpers.genotype_files import (
    CODES,
    IDS,
    SNPS,
    N,
    P,
    hapmap_text,
    lines_of_blupf90,
    opened,
    table_frame,
    vcf_row,
    vcf_text,
    write_pgen,
)
from helpers.genotypes import write_plink

from mmgibbs.config.markers import Windows
from mmgibbs.data.genotypes.snps import known_chromosomes
from mmgibbs.data.genotypes.windows import placed, windows_notes
from mmgibbs.errors import DataError

POSITIONS = [10 * (j + 1) for j in range(P)]
UNKNOWN = ["0", "Un", "-9", ".", "NA", "chrUn", "unplaced"]  # with the blank one: test_cells_without_a_chromosome
KNOWN = ["1", "10", "X", "chr2", "MT", "LG4", "Unity"]


def in_map(folder, chromosomes):
    rows = zip(SNPS, chromosomes, POSITIONS, strict=True)
    (folder / "map.txt").write_text("snp chr pos\n" + "".join(f"{snp} {c} {x}\n" for snp, c, x in rows))
    (folder / "g.txt").write_text("\n".join(lines_of_blupf90()))
    return opened(folder / "g.txt", map=str(folder / "map.txt"))


def in_bim(folder, chromosomes):
    write_plink(folder / "g.bed", CODES, IDS, SNPS, chromosomes, POSITIONS)
    return opened(folder / "g.bed")


def in_pvar(folder, chromosomes):
    path, _ = write_pgen(folder)
    rows = zip(chromosomes, POSITIONS, SNPS, strict=True)
    (folder / "g.pvar").write_text(
        "#CHROM\tPOS\tID\tREF\tALT\n" + "".join(f"{c}\t{x}\t{s}\tC\tA\n" for c, x, s in rows)
    )
    return opened(path)


def in_vcf(folder, chromosomes):
    pytest.importorskip("cyvcf2", reason="needs cyvcf2 (mmgibbs[genotypes])")
    rows = [vcf_row(c, x, snp, ["0/1"] * N) for c, x, snp in zip(chromosomes, POSITIONS, SNPS, strict=True)]
    (folder / "g.vcf").write_text(vcf_text(rows))
    return opened(folder / "g.vcf")


def in_hapmap(folder, chromosomes):
    places = list(zip(chromosomes, POSITIONS, SNPS, strict=True))
    (folder / "g.hmp.txt").write_text(hapmap_text([["A"] * N] * P, places=places))
    return opened(folder / "g.hmp.txt")


@pytest.mark.parametrize("write", [in_map, in_bim, in_pvar, in_vcf, in_hapmap])
def test_unknown_chromosomes_are_null_in_every_file(write, tmp_path):
    file = write(tmp_path, [*UNKNOWN[:4], *KNOWN[:3]])
    assert file.snps["chromosome"].to_list() == [None] * 4 + KNOWN[:3]
    assert file.notes[-1] == f"{file.name}: 4 SNPs without a known chromosome (written as '0', 'Un', '-9', '.')"
    known = write(tmp_path, KNOWN)
    assert known.snps["chromosome"].to_list() == KNOWN and known.notes == ()


@pytest.mark.parametrize(
    "code", [*UNKNOWN, "", "00", "0.0", "chr0", "Chromosome 0", "?", "unknown", "NaN", "-1", " un "]
)
def test_codes_for_unknown(code):
    found, codes = known_chromosomes(pl.Series("chromosome", ["1", code, "2"]))
    assert found.to_list() == ["1", None, "2"] and codes == (code,)


@pytest.mark.parametrize("name", [*KNOWN, "01", "10q", "chrX", "chr10", "Un_KN123", "A", "NC_0001.2", "-10", "99"])
def test_names_that_are_chromosomes(name):
    found, codes = known_chromosomes(pl.Series("chromosome", [name, None]))
    assert found.to_list() == [name, None] and codes == ()


def test_chromosomes_that_are_numbers_or_none(tmp_path):
    assert known_chromosomes(pl.Series(["1.0", "29.0", None, "X"]))[0].to_list() == ["1", "29", None, "X"]
    (tmp_path / "map.csv").write_text("snp,chr,pos\n" + "".join(f"{snp},,{x}\n" for snp, x in zip(SNPS, POSITIONS)))
    table_frame().write_csv(tmp_path / "g.csv")
    assert opened(tmp_path / "g.csv", map=str(tmp_path / "map.csv")).snps["chromosome"].null_count() == P
    snps = pl.DataFrame({"snp": ["a", "b", "c"], "chromosome": [None, "1", None], "position": [0.0, 5.0, 3e9]})
    found = placed(snps, Windows(size=10))
    assert found.windows["chromosome"].to_list() == ["1", None] and found.windows["snps"].to_list() == [1, 2]


@pytest.mark.parametrize(
    ("column", "unit", "size"),
    [
        ("Mb", "Mb", 1), ("pos_Mb", "Mb", 1), ("Position (Mb)", "Mb", 1), ("cM", "cM", 1), ("position.cM", "cM", 1),
        ("kb", "kb", 1000), ("BP", "bp", 1e6), ("pos_bp", "bp", 1e6), ("Morgan", "M", 0.01), ("pos", None, 1e6),
        ("Position", None, 1e6),
    ],
)  # fmt: skip
def test_the_unit_is_in_the_header(column, unit, size, tmp_path):
    rows = "".join(f"{snp},1,{0.4 * j}\n" for j, snp in enumerate(SNPS))
    (tmp_path / "map.csv").write_text(f"snp,chr,{column}\n{rows}")
    table_frame().write_csv(tmp_path / "g.csv")
    file = opened(tmp_path / "g.csv", map=str(tmp_path / "map.csv"))
    assert file.unit == unit and file.snps["position"].to_list() == pytest.approx([0.4 * j for j in range(P)])
    found = placed(file.snps, Windows(), file.unit)
    assert found.windows["end"].to_list()[0] == size
    assert placed(file.snps, Windows(size=2), file.unit).windows["end"].to_list() == [2, 4]


def test_positions_with_decimal_commas_and_unknown_ones(tmp_path):
    cells = ["0,5", "1,25", ".", "NA", "2", "", "3,75"]
    (tmp_path / "map.csv").write_text("snp;chr;Mb\n" + "".join(f"{s};1;{x}\n" for s, x in zip(SNPS, cells)))
    table_frame().write_csv(tmp_path / "g.csv")
    file = opened(tmp_path / "g.csv", map=str(tmp_path / "map.csv"))
    assert file.snps["position"].to_list() == [0.5, 1.25, None, None, 2, None, 3.75]


@pytest.mark.parametrize(
    ("cells", "frequencies"),
    [(["0,5", "0,123", "1,000"], [0.5, 0.123, 1.0]), (["0.5", "0.123", "1"], [0.5, 0.123, 1.0])],
)
def test_frequencies_with_decimal_commas(cells, frequencies, tmp_path):
    from mmgibbs.data.genotypes.map_file import read_frequencies

    path = tmp_path / "p.csv"
    path.write_text("snp;p\n" + "".join(f"{s};{x}\n" for s, x in zip(SNPS, cells)))
    assert read_frequencies(path, pl.Series(SNPS[:3])).tolist() == frequencies
    path.write_text("snp;p\nm0;1,5\n")
    with pytest.raises(DataError, match="p.csv row 2: found '1,5' as the frequency; needed a number from 0 to 1"):
        read_frequencies(path, pl.Series(SNPS[:1]))


def test_centimorgans_of_a_bim_without_base_pairs(tmp_path):
    write_plink(tmp_path / "g.bed", CODES, IDS, SNPS, [1] * P, [0] * P)
    assert opened(tmp_path / "g.bed").snps["position"].null_count() == P
    rows = "".join(f"1 {snp} {0.5 * j} 0 A C\n" for j, snp in enumerate(SNPS))
    (tmp_path / "g.bim").write_text(rows)
    file = opened(tmp_path / "g.bed")
    assert file.unit == "cM" and file.snps["position"].to_list() == [0.5 * j for j in range(P)]
    (tmp_path / "g.bim").write_text(rows.replace(" 0 A", " 7 A", 1))
    assert opened(tmp_path / "g.bed").unit == "bp"


def a_map(step, n=50, chromosomes=2):
    places = {"chromosome": [str(1 + j * chromosomes // n) for j in range(n)], "position": step * np.arange(1.0, n + 1)}
    return pl.DataFrame({"snp": [f"s{j}" for j in range(n)]} | places)


@pytest.mark.parametrize(
    ("step", "asked", "unit"),
    [(0.5, Windows(), None), (0.5, Windows(), "bp"), (1000, Windows(), "bp"), (0.5, Windows(size=1e6), "Mb")],
)
def test_windows_as_wide_as_chromosomes_are_said(step, asked, unit):
    (note,) = windows_notes("model.markers.snps.windows", a_map(step), asked, unit)
    assert note.startswith("model.markers.snps.windows: a window is 1000000")
    assert f"positions lie from {step:g} to {50 * step:g}, so that each chromosome is one window" in note


def test_windows_that_fit_no_map_are_said():
    (note,) = windows_notes("w", a_map(5e4), Windows(size=1), "bp")
    assert note.startswith(
        "w: a window is 1 bp wide, and positions lie from 50000 to 2500000, so that each of 50 windows"
    )
    snps = a_map(1).with_columns(position=pl.lit(None, pl.Float64))
    (note,) = windows_notes("w", snps, Windows(size=1e6), "bp")
    assert note == "w: no SNP has a place, so that a window has 100 SNPs: size needs a map (data.genotypes.map)"
    assert windows_notes("w", snps, Windows(), "bp") == []
    assert windows_notes("w", a_map(0.5), Windows(), "Mb") == [
        "w: a window is 1 Mb wide, as positions of the map are in Mb"
    ]


@pytest.mark.parametrize(
    ("step", "asked", "unit"),
    [
        (5e4, Windows(), "bp"),
        (0.5, Windows(size=2), None),
        (0.5, Windows(snps=10), None),
        (5e5, Windows(size=1e6), "bp"),
    ],
)
def test_windows_that_fit_the_map_are_not_talked_of(step, asked, unit):
    assert windows_notes("w", a_map(step), asked, unit) == []


MAPPED = [("10", 5.0), ("2", 1.0), ("X", 3.0), ("2", 1999.0), (None, None), ("2", 2000.0), ("10", 999.0), ("2", None)]


def a_table(places):
    names = [f"s{i}" for i in range(len(places))]
    kinds = {"snp": pl.String, "chromosome": pl.String, "position": pl.Float64}
    columns = names, [c for c, _ in places], [x for _, x in places]
    return pl.DataFrame(dict(zip(kinds, columns, strict=True)), schema=kinds)


def test_windows_by_place():
    found = placed(a_table(MAPPED), Windows(size=1000))
    shown = found.windows.select("window", "chromosome", "start", "end", "snps", "first_snp", "last_snp").rows()
    assert shown == [
        (1, "2", 0, 1000, 1, "s1", "s1"),
        (2, "2", 1000, 2000, 1, "s3", "s3"),
        (3, "2", 2000, 3000, 1, "s5", "s5"),
        (4, "2", None, None, 1, "s7", "s7"),
        (5, "10", 0, 1000, 2, "s0", "s6"),
        (6, "X", 0, 1000, 1, "s2", "s2"),
        (7, None, None, None, 1, "s4", "s4"),
    ]
    assert found.of_snp.tolist() == [4, 0, 5, 1, 6, 2, 4, 3]
    assert found.chromosomes.rows() == [("2", 4), ("10", 2), ("X", 1), (None, 1)]
    assert found.chromosome.tolist() == [0, 0, 0, 0, 1, 2, 3]


@pytest.mark.parametrize(("asked", "per"), [(Windows(snps=3), 3), (Windows(), 100)])
def test_windows_by_number_without_a_map(asked, per):
    found = placed(a_table([(None, None)] * 250), asked)
    assert found.windows["snps"].to_list() == [per] * (250 // per) + [250 % per] * (250 % per > 0)
    assert found.of_snp.tolist() == [i // per for i in range(250)] and found.windows["start"].null_count() > 0


def test_windows_by_number_or_by_chromosome():
    found = placed(a_table(MAPPED), Windows(snps=2))
    assert [set(found.windows.row(0)[5:]), found.windows["snps"].to_list()] == [{"s1", "s3"}, [2, 2, 2, 1, 1]]
    found = placed(a_table(MAPPED), None)
    assert found.chromosome.tolist() == [0, 1, 2, 3] and found.windows["snps"].to_list() == [4, 2, 1, 1]
