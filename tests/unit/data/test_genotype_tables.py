"""Tables of genotypes: which columns are SNPs, which cells are numbers, and which mean missing."""

import numpy as np
import polars as pl
import pytest
from helpers.genotype_files import CODES, DOSAGES, IDS, SNPS, N, opened, table_frame

from mmgibbs.errors import DataError

RAW = ["FID", "IID", "PAT", "MAT", "SEX", "PHENOTYPE"]
RNG = np.random.default_rng(3)


def a_raw(columns=tuple(f"{snp}_A" for snp in SNPS), head=RAW, codes=CODES):
    """Text of a .raw: families 0, sexes 1 and 2, a phenotype of 1 and 2."""
    rows = [
        [*("0", id, "0", "0", str(1 + i % 2), "2")[: len(head)], *np.array([*"012", "NA"])[codes[:, i]]]
        for i, id in enumerate(IDS)
    ]
    return "".join(" ".join(row) + "\n" for row in [[*head, *columns], *rows])


def codes_of(file):
    return file.source.block(0, file.n_snps)


def test_a_raw_of_plink(tmp_path):
    (tmp_path / "g.raw").write_text(a_raw())
    file = opened(tmp_path / "g.raw")
    assert file.ids.to_list() == IDS and file.snps["snp"].to_list() == SNPS and np.array_equal(codes_of(file), CODES)
    assert file.snps["counted"].to_list() == ["A"] * 7 and file.snps["other"].null_count() == 7
    assert file.warnings == ()
    assert file.notes == (
        "g.raw: columns 'FID', 'PAT', 'MAT', 'SEX', 'PHENOTYPE' are no SNPs by their names: left out",
    )


def test_a_raw_with_both_alleles_and_with_dominance(tmp_path):
    columns = [f"{snp}_A(/C)" for snp in SNPS] + [f"{snp}_HET" for snp in SNPS]
    codes = np.concatenate([CODES, np.where(CODES == 3, 3, CODES == 1)])
    (tmp_path / "g.raw").write_text(a_raw(columns, codes=codes))
    file = opened(tmp_path / "g.raw", id="IID")
    assert file.snps.select("snp", "counted", "other").rows() == [(snp, "A", "C") for snp in SNPS]
    assert np.array_equal(codes_of(file), CODES)
    assert file.notes[1] == "g.raw: 7 columns of heterozygotes, such as m0_HET, left out"


def test_a_raw_of_other_names(tmp_path):
    (tmp_path / "g.raw").write_text(a_raw([*SNPS[:-1], "m6_A"]))
    file = opened(tmp_path / "g.raw")
    assert file.snps["snp"].to_list() == [*SNPS[:-1], "m6_A"] and file.snps["counted"].null_count() == 7
    (tmp_path / "g.raw").write_text(a_raw([*SNPS[:-1], "SEX1"], head=["FID", "IID"]))
    file = opened(tmp_path / "g.raw")
    assert file.ids.to_list() == IDS and file.snps["snp"].to_list() == [*SNPS[:-1], "SEX1"]
    assert file.notes == ("g.raw: column 'FID' is no SNP by its name: left out",) and file.warnings == ()


@pytest.mark.parametrize(
    "name", ["sex", "GENDER", "phenotype", "Pheno1", "trait", "y", "Dam_ID", "breed", "Birth_Year", "status"]
)
def test_columns_that_by_their_names_are_no_snps(name, tmp_path):
    frame = table_frame().insert_column(1, pl.Series(name, 1 + np.arange(N) % 2))
    frame.write_csv(tmp_path / "g.csv")
    file = opened(tmp_path / "g.csv")
    assert file.snps["snp"].to_list() == SNPS and np.array_equal(codes_of(file), CODES)
    assert file.warnings == (
        f"g.csv: column '{name}' is no SNP by its name: left out; a column that is a SNP needs another name",
    )


@pytest.mark.parametrize("name", ["SEX1", "sex_chr_12", "Yq11", "Breed7_A", "rs1", "dam33", "M_y", "index"])
def test_names_of_snps_that_look_like_these_are_snps(name, tmp_path):
    table_frame().rename({"m2": name}).write_csv(tmp_path / "g.csv")
    file = opened(tmp_path / "g.csv")
    assert file.snps["snp"][2] == name and np.array_equal(codes_of(file), CODES)
    assert file.notes == () and file.warnings == ()


@pytest.mark.parametrize(("name", "first"), [("", 0), ("Unnamed: 0", 1), ("index", 0), ("row.names", 1), ("X", 1)])
def test_numbers_of_rows_are_no_ids_and_no_snps(name, first, tmp_path):
    numbers = pl.Series(name, np.arange(first, first + N))
    table_frame().insert_column(0, numbers).write_csv(tmp_path / "before.csv")
    table_frame().insert_column(N // 2, numbers).write_csv(tmp_path / "within.csv")
    for file in ("before.csv", "within.csv"):
        read = opened(tmp_path / file)
        assert read.ids.to_list() == IDS and read.snps["snp"].to_list() == SNPS


def test_a_column_of_a_trait_is_no_snp(tmp_path):
    table_frame().insert_column(4, pl.Series("adg", RNG.uniform(0, 2, N))).write_csv(tmp_path / "g.csv")
    file = opened(tmp_path / "g.csv", traits={"adg", "height"})
    assert file.snps["snp"].to_list() == SNPS and "column 'adg' is no SNP" in file.warnings[0]


def test_fractions_in_one_column_alone_are_said(tmp_path):
    codes = {f"s{j}": RNG.integers(0, 3, 50) for j in range(30)}
    frame = pl.DataFrame({"id": [f"x{i}" for i in range(50)], **codes})
    frame.with_columns(s7=pl.Series(RNG.uniform(0, 2, 50))).write_csv(tmp_path / "record.csv")
    assert "column 's7' is taken as a SNP, but nearly all its values" in opened(tmp_path / "record.csv").warnings[0]
    one = frame.with_columns(s7=pl.Series([0.5, *codes["s7"][1:].astype(float)]))
    one.write_csv(tmp_path / "dosage.csv")
    imputed = frame.with_columns(s7=pl.Series(RNG.uniform(0, 2, 50)), s8=pl.Series(RNG.uniform(0, 2, 50)))
    imputed.write_csv(tmp_path / "imputed.csv")
    for name in ("dosage", "imputed"):
        assert opened(tmp_path / f"{name}.csv").warnings == ()


def test_tables_without_snps_in_columns_are_refused(tmp_path):
    head = ["CHR", "SNP", "(C)M", "POS", "COUNTED", "ALT", *(f"0_{id}" for id in IDS)]
    rows = ["\t".join(["1", snp, "0", "5", "A", "C", *["1"] * N]) for snp in SNPS]
    (tmp_path / "g.traw").write_text("\n".join(["\t".join(head), *rows]))
    with pytest.raises(DataError, match="g.traw: is a PLINK .traw, with SNPs in rows; needed animals in rows"):
        opened(tmp_path / "g.traw")
    table_frame().insert_column(1, pl.Series("farm", ["north"] * N)).write_csv(tmp_path / "g.csv")
    with pytest.raises(DataError, match="(?s)found 'north' for SNP 'farm'.*if column 'farm' is no SNP, leave it out"):
        opened(tmp_path / "g.csv")
    (tmp_path / "g.csv").write_text("animal,sex,sire\na1,1,0\na2,2,0\n")
    with pytest.raises(DataError, match="g.csv: found the column 'animal', and 'sex', 'sire', which by their names"):
        opened(tmp_path / "g.csv")


@pytest.mark.parametrize(
    ("code", "written"),
    [("9", "9.0"), ("9", "9"), ("-9", "-9.00"), ("5.0", "5"), ("0", "0.0"), ("-1", "-1.0"), ("3", "3e0"), ("9", "9,0")],
)
def test_missing_codes_are_compared_as_numbers(code, written, tmp_path):
    frame = table_frame().with_columns(pl.all().cast(pl.String))
    cells = pl.Series("m2", [written, "1", "2", *["1"] * (N - 3)])
    frame.with_columns(cells).write_csv(tmp_path / "g.csv", separator=";")
    file = opened(tmp_path / "g.csv", missing=["", code])
    assert codes_of(file)[2].tolist() == [3, 1, 2, *[1] * (N - 3)]


@pytest.mark.parametrize("dtype", [pl.Int16, pl.Float32, pl.Float64, pl.Decimal(5, 1)])
def test_missing_codes_among_numbers(dtype, tmp_path):
    cells = pl.Series("m2", [9, 1, 2, *[1] * (N - 3)]).cast(dtype)
    table_frame().with_columns(cells).write_parquet(tmp_path / "g.parquet")
    assert codes_of(opened(tmp_path / "g.parquet", missing=["9"]))[2, :3].tolist() == [3, 1, 2]
    with pytest.raises(DataError, match="g.parquet row 1: found '9[.0]*' for SNP 'm2'"):
        opened(tmp_path / "g.parquet")


def test_an_animal_may_be_called_as_a_missing_genotype(tmp_path):
    ids = ["9", *IDS[1:]]
    table_frame().with_columns(pl.Series("animal", ids)).write_csv(tmp_path / "g.csv")
    assert opened(tmp_path / "g.csv", missing=["", "9"]).ids.to_list() == ids


@pytest.mark.parametrize("decimals", [1, 2, 3])
def test_decimal_commas(decimals, tmp_path):
    """With three decimals every value might be a number of thousands, were it no genotype."""
    numbers = np.round(RNG.uniform(0, 2, (7, N)), decimals)
    numbers[0] = np.rint(numbers[0])
    text = [[f"{x:.{decimals}f}".replace(".", ",") for x in row] for row in numbers]
    frame = pl.DataFrame({"animal": IDS, **dict(zip(SNPS, text, strict=True))})
    frame.write_csv(tmp_path / "g.csv", separator=";")
    file = opened(tmp_path / "g.csv")
    assert codes_of(file) == pytest.approx(numbers, abs=1e-6)
    assert file.notes == (f"g.csv: commas are decimal points in 7 columns, such as 'm0' (row 2: {text[0][0]})",)


@pytest.mark.parametrize("cells", [["0,5", "1.5"], ["1,2,3", "1"], ["0,5", "x"], ["12,5", "1,0"]])
def test_commas_that_cannot_be_decimal_are_refused(cells, tmp_path):
    frame = table_frame().with_columns(pl.Series("m2", [*cells, *["1"] * (N - 2)]))
    frame.write_csv(tmp_path / "g.csv", separator=";")
    with pytest.raises(DataError, match=r"g.csv row \d: found '.*' for SNP 'm2'; needed copies"):
        opened(tmp_path / "g.csv")


def test_nan_booleans_and_empty_columns(tmp_path):
    frame = table_frame().with_columns(m0=pl.Series(DOSAGES[0]), m1=pl.lit(None), m2=pl.Series(CODES[2] == 1))
    frame.write_parquet(tmp_path / "g.parquet")
    found = codes_of(opened(tmp_path / "g.parquet"))
    assert np.array_equal(found[0], CODES[0]) and (found[1] == 3).all()
    assert np.array_equal(found[2], (CODES[2] == 1).astype(np.uint8))


def test_categories_that_are_no_genotypes_are_refused_by_row(tmp_path):
    cells = pl.Series("m3", ["0", "AA", *["1"] * (N - 2)]).cast(pl.Categorical)
    table_frame().with_columns(cells).write_parquet(tmp_path / "g.parquet")
    with pytest.raises(DataError, match="g.parquet row 2: found 'AA' for SNP 'm3'"):
        opened(tmp_path / "g.parquet")
