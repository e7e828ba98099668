"""Files of PLINK: lines that are no row, rows that are short or missing, SNPs without names."""

import numpy as np
import pytest
from helpers.genotype_files import CODES, IDS, PLACES, SNPS, N, P, opened, write_bed, write_pgen
from helpers.genotypes import bed_bytes, codes_and_dosages, write_plink

from mmgibbs.errors import DataError


def with_lines(folder, name, change):
    """A .bed or .pgen whose file `name` has its lines changed."""
    path, _ = (write_pgen if name in ("g.psam", "g.pvar") else write_bed)(folder)
    lines = change((folder / name).read_text().splitlines())
    (folder / name).write_text("".join(line + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("name", "header", "animals"),
    [
        ("g.fam", "FID IID PAT MAT SEX PHENO", N - 1),
        ("g.fam", "#FID IID PAT MAT SEX PHENO1", N - 1),
        ("g.fam", "family id father mother gender trait", N),
        ("g.bim", "CHR SNP CM BP A1 A2", N),
        ("g.bim", "chrom rsid morgan position allele1 allele2", N),
    ],
)
def test_a_header_is_refused(name, header, animals, tmp_path):
    """Of a .fam with all animals, or with one too few, so that it has as many lines as animals."""
    path = with_lines(tmp_path, name, lambda lines: [header, *lines[: animals if name == "g.fam" else P]])
    with pytest.raises(DataError, match=f"{name} row 1: found a header, '{header}'; needed no header.* delete this"):
        opened(path)


@pytest.mark.parametrize(
    ("name", "comment", "row"),
    [("g.fam", "# made by plink on Monday", 1), ("g.fam", "#a1 a1 0 0 0 -9", 5), ("g.bim", "# six words in a line", 3)],
)
def test_comments_are_refused(name, comment, row, tmp_path):
    path = with_lines(tmp_path, name, lambda lines: [*lines[: row - 1], comment, *lines[row:]])
    with pytest.raises(DataError, match=f"{name} row {row}: found a comment, '{comment}'"):
        opened(path)


def test_animals_may_be_called_as_columns_or_comments_are(tmp_path):
    ids = ["IID", "sex", "dam", *IDS[3:]]
    write_plink(tmp_path / "g.bed", CODES, ids, ["snp", "pos", *SNPS[2:]], [1] * P, range(1, P + 1))
    assert opened(tmp_path / "g.bed").ids.to_list() == ids
    path = with_lines(tmp_path, "g.fam", lambda lines: ["#" + line for line in lines])
    assert opened(path).ids.to_list() == IDS


@pytest.mark.parametrize("n", [5, 6, 7, 13, 14, 15])
def test_a_row_too_few_is_seen_in_the_bits_after_the_last_animal(n, tmp_path):
    """n animals, of whom n + 1 have genotypes in as many bytes."""
    codes, _ = codes_and_dosages(20, n + 1, seed=n)
    ids = [f"x{i}" for i in range(n + 1)]
    write_plink(tmp_path / "g.bed", codes, ids, [f"s{j}" for j in range(20)], [1] * 20, range(1, 21))
    assert opened(tmp_path / "g.bed").ids.to_list() == ids
    fam = (tmp_path / "g.fam").read_text().splitlines()
    (tmp_path / "g.fam").write_text("\n".join(fam[:-1]))
    with pytest.raises(DataError, match=f"g.bed: found genotypes after those of the {n} animals of g.fam, at .*'s"):
        opened(tmp_path / "g.bed")


@pytest.mark.parametrize("n", [5, 6, 7])
def test_a_row_too_many_is_seen_in_the_last_animal(n, tmp_path):
    """n animals and n + 1 rows: the last reads empty bits, which are two copies of A1."""
    codes, _ = codes_and_dosages(20, n, seed=n)
    ids = [f"x{i}" for i in range(n)]
    write_plink(tmp_path / "g.bed", codes, ids, [f"s{j}" for j in range(20)], [1] * 20, range(1, 21))
    assert opened(tmp_path / "g.bed").warnings == ()
    fam = (tmp_path / "g.fam").read_text()
    (tmp_path / "g.fam").write_text("new new 0 0 0 -9\n" + fam)
    (warning,) = opened(tmp_path / "g.bed").warnings
    assert warning.startswith(
        f"g.bed: the last animal of g.fam, 'x{n - 1}', has two copies of the counted allele at all 20"
    )


def test_one_bit_of_padding_is_enough(tmp_path):
    write_bed(tmp_path)
    content = bytearray(bed_bytes(CODES))
    content[3 + 4 * 4 - 1] |= 0b01000000  # the last byte of the fourth SNP
    (tmp_path / "g.bed").write_bytes(content)
    with pytest.raises(DataError, match="of the 13 animals of g.fam, at 1 SNP such as 'm3'; needed empty bits there"):
        opened(tmp_path / "g.bed")


def without_last_field(row):
    """A change of the lines of a file."""
    return lambda lines: [*lines[: row - 1], "\t".join(lines[row - 1].split()[:-1]), *lines[row:]]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("g.fam", without_last_field(7), "g.fam row 7: found 5 fields separated by white space, needed 6 as in row 1"),
        ("g.bim", without_last_field(3), "g.bim row 3: found 5 fields separated by white space, needed 6 as in row 1"),
        ("g.psam", without_last_field(7), "g.psam row 7: found 1 field; needed 2, as in the header"),
        ("g.pvar", without_last_field(5), "g.pvar row 5: found 4 fields; needed 5, as in the header"),
        ("g.psam", lambda x: [*x[:3], x[3] + "\t9", *x[4:]], "g.psam row 4: found 3 fields; needed 2"),
        ("g.psam", lambda x: [x[0], "", *x[1:4], "x", *x[5:]], "g.psam row 6: found 1 field; needed 2"),
        ("g.psam", lambda x: [*x[:2], "\t0", *x[3:]], "g.psam row 3: found no id; needed the id of an animal"),
        ("g.psam", lambda x: ["#IID\tSEX\tSEX", *(y + "\t0" for y in x[1:])], "g.psam: found column 'SEX' twice"),
        ("g.psam", lambda x: x[:1], "g.psam: has a header but no rows"),
        ("g.pvar", lambda x: [*x[:2], x[2].replace("100", "1OO"), *x[3:]], "g.pvar row 3: found '1OO' as the position"),
        ("g.bim", lambda x: [x[0].replace("\t100\t", "\tx\t"), *x[1:]], "g.bim row 1: found 'x' as the position"),
    ],
)
def test_rows_that_cannot_be_used(name, change, message, tmp_path):
    with pytest.raises(DataError) as refused:
        opened(with_lines(tmp_path, name, change))
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("name", ["g.psam", "g.pvar"])
def test_byte_order_marks_and_carriage_returns_are_no_characters(name, tmp_path):
    path, _ = write_pgen(tmp_path)
    text = (tmp_path / name).read_text()
    (tmp_path / name).write_bytes(("\ufeff" + text.replace("\n", "\r\n")).encode())
    file = opened(path)
    assert file.ids.to_list() == IDS and file.snps["chromosome"].to_list() == [str(c) for c, _, _ in PLACES]


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        # (chromosome, name, position, counted, other)
        ([(1, ".", 3000, "A", "G"), (1, ".", 3000, "T", "G")], ["1:3000:G:A", "1:3000:G:T"]),
        ([(1, ".", 3000, "A", "G"), (1, ".", 3000, "A", "G")], ["snp1", "snp2"]),
        ([(1, "1:3000", 5, "A", "G"), (1, ".", 3000, "T", "G")], ["1:3000", "1:3000:G:T"]),
        ([(1, ".", 3000, "A", "G"), (1, ".", 4000, "T", "G")], ["1:3000", "1:4000"]),
        ([(0, ".", 0, "A", "G"), (0, ".", 0, "T", "G"), (1, "snp2", 5, "T", "G")], ["snp1", "snp2_", "snp2"]),
        ([(1, ".", 7, "0", "G"), (1, "NA", 7, "A", "G"), (1, "---", 7, "C", "T")], ["1:7:G:0", "1:7:G:A", "1:7:T:C"]),
        ([(1, "0", 7, "A", "G"), (1, "none", 7, "A", "G")], ["0", "1:7"]),
    ],
)
def test_names_made_for_snps_without_one_differ(rows, names, tmp_path):
    codes = CODES[: len(rows)]
    write_plink(tmp_path / "g.bed", codes, IDS, names, [1] * len(rows), range(1, len(rows) + 1))
    (tmp_path / "g.bim").write_text("".join(f"{c}\t{snp}\t0\t{x}\t{a}\t{b}\n" for c, snp, x, a, b in rows))
    file = opened(tmp_path / "g.bed")
    assert file.snps["snp"].to_list() == names and np.array_equal(file.source.block(0, len(rows)), codes)
