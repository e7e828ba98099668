"""`mmgibbs init` for tables that are wide, have names that are taken, or columns that say another one again."""

import numpy as np
import polars as pl
import pytest
from helpers.drafts import accepted

from mmgibbs.draft.columns import describe_columns, determines
from mmgibbs.draft.make import init
from mmgibbs.draft.wide import MAX_LOOKED_AT, split_columns
from mmgibbs.errors import DataError

RNG = np.random.default_rng(12)
N = 60


def drafted(tmp_path, separator=",", **columns):
    """(what is said, the analysis) of a table with these columns and a weight."""
    table = {"id": [f"a{i}" for i in range(N)]} | columns
    if "weight" not in table:
        table["weight"] = RNG.normal(50, 4, N).round(2)
    pl.DataFrame(table).write_csv(tmp_path / "records.csv", separator=separator)
    made = init(tmp_path / "records.csv", output=tmp_path / "analysis.yaml", overwrite=True)
    return "\n".join(made.said), accepted(made), made.path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "age",
    [
        200 + 1.37 * np.arange(N),  # another one for each record
        np.concatenate([[200.0, 200.0], 201 + np.arange(N - 2)]),  # two are the same by chance
    ],
)
def test_a_covariate_of_many_values_is_kept(tmp_path, age):
    said, analysis, _ = drafted(tmp_path, batch=[f"h{i % 3}" for i in range(N)], age=age)
    assert "age " in said and "covariate (numbers, and the name of a covariate)" in said
    assert analysis.model.fixed["age"].kind == "covariate" and "batch" in analysis.model.fixed


def test_a_class_made_of_a_covariate_is_still_seen(tmp_path):
    """dam_age in years, and its classes."""
    years = np.arange(N) % 10 + 2
    classes = np.where(years < 4, "young", np.where(years < 8, "middle", "old"))
    said, analysis, _ = drafted(tmp_path, dam_age=years, dam_age_class=classes)
    assert "left out (dam_age_class is made of it)" in said and "dam_age" not in analysis.model.fixed


@pytest.mark.parametrize(
    ("fine", "coarse", "is_determined"),
    [
        (["h1", "h1", "h2", "h2"] * 15, ["a", "a", "b", "b"] * 15, True),
        ([f"r{i}" for i in range(N)], ["a", "b"] * 30, False),  # each its own
        ([f"r{i // 2}" if i < 4 else f"r{i}" for i in range(N)], ["a", "a", "b", "b"] * 15, False),  # two pairs
        (["h1", "h2"] * 30, ["a"] * N, False),  # a constant
        (["h1", "h1", "h2", "h2"] * 15, ["a", "b", "a", "b"] * 15, False),
    ],
)
def test_what_determines_another_column(fine, coarse, is_determined):
    columns = describe_columns(pl.DataFrame({"fine": fine, "coarse": coarse}), ())
    assert determines(*columns) is is_determined


def test_squares_are_left_out_and_two_ages_are_two_covariates(tmp_path):
    age = RNG.uniform(20, 60, N).round(1)
    said, analysis, text = drafted(
        tmp_path, age_sq=(age**2).round(2), age=age, age3=(age**3).round(1), age_months=(age / 30.4).round(4)
    )
    assert "left out (the square of age: write degree: 2 there instead)" in said
    assert "left out (the cube of age: write degree: 3 there instead)" in said
    assert "left out (another unit of age)" in said
    assert set(analysis.model.fixed) == {"age"} and "# age: {kind: covariate, degree: 2}  # a curve" in text
    said, analysis, _ = drafted(tmp_path, age=RNG.uniform(20, 60, N), age2=RNG.uniform(20, 60, N))
    assert set(analysis.model.fixed) == {"age", "age2"} and "square" not in said


@pytest.mark.parametrize("name", ["genetic", "permanent_environment", "residual", "J"])
def test_names_that_are_taken(tmp_path, name):
    classes = [f"c{i % 4}" for i in range(N)]
    columns = {"id": [f"a{i % 30}" for i in range(N)], name: classes}
    pl.DataFrame(columns | {"weight": RNG.normal(50, 4, N)}).write_csv(tmp_path / "records.csv")
    rows = [f"a{i},{'s1' if i > 5 else ''},{f'a{i % 3}' if i > 5 else ''}" for i in range(30)]
    (tmp_path / "pedigree.csv").write_text("\n".join(["id,sire,dam", *rows]) + "\n")
    made = init(tmp_path / "records.csv", tmp_path / "pedigree.csv", output=tmp_path / "a.yaml")
    analysis = accepted(made)
    assert analysis.model.fixed[f"{name}_effect"].column == name
    assert set(analysis.model.random) == {"genetic", "permanent_environment"}


def test_names_that_are_taken_or_would_be_one(tmp_path):
    classes = {name: [f"c{(i // k) % 4}" for i in range(N)] for k, name in ((1, "a,b"), (2, "a_b"), (3, "a:b"))}
    classes["genetic_effect"] = [f"c{(i // 5) % 3}" for i in range(N)]
    classes["genetic"] = [f"c{(i // 7) % 3}" for i in range(N)]
    _, analysis, _ = drafted(tmp_path, **classes)
    fixed = {name: effect.column for name, effect in analysis.model.fixed.items()}
    assert fixed["a_b"] == "a_b" and sorted(fixed.values()) == sorted(classes)
    assert fixed["genetic_effect"] == "genetic_effect" and "genetic" not in fixed
    _, analysis, _ = drafted(tmp_path, weight=["5"] * N, residual=RNG.normal(3, 1, N).round(2))
    assert analysis.traits[0].column == "residual"


def test_rows_and_columns_of_a_field(tmp_path):
    place = np.arange(N)
    said, analysis, _ = drafted(
        tmp_path, site=place % 2, rep=place // 30 + 1, block=place // 15 + 1, row=place // 5 + 1, col=place % 5 + 1,
        plot=place + 101,
    )  # fmt: skip
    assert {"rep", "block"} & set(analysis.model.fixed) and "col" in analysis.model.fixed
    assert "row" in analysis.model.random and "plot" not in {*analysis.model.fixed, *analysis.model.random}
    assert [t.name for t in analysis.traits] == ["weight"] and "row" in said


SERIES, NO_SERIES = [f"s{i}" for i in range(3000)], [f"BTA{i % 29}-{i}-{'AGCT'[i % 4]}x" for i in range(3000)]


@pytest.mark.parametrize(
    ("names", "cells"), [(SERIES, ["0", "1", "2"]), (NO_SERIES, ["AA", "AG", "GG"]), (NO_SERIES, ["0/0", "0/1", "./."])]
)
def test_thousands_of_genotypes_are_one_line(names, cells):
    frame = pl.DataFrame({"id": [f"a{i}" for i in range(N)], "sex": ["m", "f"] * 30, "weight": ["50.5", "51.5"] * 30})
    genotypes = {name: RNG.choice(cells, N) for name in names}
    chosen, (aside,) = split_columns(frame.with_columns(**genotypes), ())
    assert chosen == ["id", "sex", "weight"] and (aside.first, aside.n) == (names[0], 3000)
    assert "genotypes?" in aside.why


def test_thousands_of_other_columns(tmp_path):
    """Spectra: the columns with names that say something are looked at, the others counted."""
    spectra = {f"{'abcdefg'[i % 7]}{i}nm": RNG.normal(size=N).round(3) for i in range(1000)}
    said, analysis, _ = drafted(tmp_path, **spectra, herd=["h1", "h2", "h3"] * 20)
    assert f"and {1003 - MAX_LOOKED_AT - 1:,} more: left out (init looks at {MAX_LOOKED_AT} columns at most" in said
    assert analysis.traits[0].name == "weight" and "herd" in analysis.model.fixed


def test_a_column_that_was_asked_for_is_looked_at():
    frame = pl.DataFrame({f"{'abcdefg'[i % 7]}{i}x": ["1.5", "2.5"] for i in range(500)})
    chosen, _ = split_columns(frame, (frame.columns[-1],))
    assert frame.columns[-1] in chosen and len(chosen) == MAX_LOOKED_AT


@pytest.mark.parametrize("width", [5, 40])
def test_scores_are_no_genotypes(width):
    frame = pl.DataFrame({f"item {'abcdefgh'[i % 8]} {i} of it": ["0", "1", "2", "1"] for i in range(width)})
    assert split_columns(frame, ()) == (frame.columns, [])


@pytest.mark.parametrize(("separator", "mark", "low"), [(";", ",", 78.0), (",", ".", 78000.0)])
def test_commas_that_may_separate_thousands_are_a_guess(tmp_path, separator, mark, low):
    cells = [f"{78 + i},{(137 * i) % 900 + 100}" for i in range(N)]
    said, analysis, text = drafted(tmp_path, separator=separator, weight=cells)
    assert analysis.data.decimal == mark and f'decimal: "{mark}"  # the comma of 78,100 (weight)' in text
    assert "warning: it is a guess that the comma of 78,100 (weight)" in said


def test_points_that_may_separate_thousands(tmp_path):
    cells = ["1.157" if i % 2 else f"{870 + i}" for i in range(N - 2)] + ["1.204", "1.310"]
    said, analysis, _ = drafted(tmp_path, weight=cells)
    assert "warning: column 'weight': " in said and "write data.decimal: ','" in said and analysis.data.decimal is None


def test_genotypes_are_no_records(tmp_path):
    path = tmp_path / "snps.hmp.txt"
    path.write_text("rs#\talleles\tchrom\tpos\tstrand\ta1\ta2\ns1\tA/G\t1\t100\t+\tAA\tAG\n")
    with pytest.raises(DataError, match="is a HapMap file of genotypes, needed the table of records; genotypes are na"):
        init(path, output=tmp_path / "a.yaml")
    (tmp_path / "x.vcf").write_text("##fileformat=VCFv4.2\n#CHROM\tPOS\n")
    with pytest.raises(DataError, match="is a VCF file of genotypes"):
        init(tmp_path / "x.vcf", output=tmp_path / "a.yaml")


def test_hapmap_is_said(tmp_path):
    animals = [f"a{i}" for i in range(20)]
    header = ["rs#", "alleles", "chrom", "pos", "strand", "assembly#", "center", "protLSID", "assayLSID", "panel"]
    lines = ["\t".join([*header, "QCcode", *animals])]
    for s in range(12):
        cells = RNG.choice(["AA", "AG", "GG"], 20)
        lines.append("\t".join([f"s{s}", "A/G", "1", str(100 + s), "+", *["NA"] * 6, *cells]))
    (tmp_path / "snps.hmp.txt").write_text("\n".join(lines) + "\n")
    pl.DataFrame({"id": animals, "weight": RNG.normal(50, 4, 20).round(2)}).write_csv(tmp_path / "r.csv")
    made = init(tmp_path / "r.csv", genotypes=tmp_path / "snps.hmp.txt", output=tmp_path / "a.yaml")
    assert "snps.hmp.txt: HapMap genotypes of 20 of the 20 animals with records" in made.said


def test_other_names_in_the_file_are_said(tmp_path):
    """Of columns with signs of the file's own, and with a name that it has already; of no others."""
    herds = [f"h{i % 5}" for i in range(N)]
    weight = RNG.normal(50, 4, N).round(2)
    said, analysis, _ = drafted(tmp_path, **{"herd/year": herds, "residual": weight, "weight": weight + 1})
    start = "note: the analysis file has other names for columns whose names it cannot have: "
    assert f"{start}herd_year for 'herd/year'" in said
    assert "herd_year" in {*analysis.model.fixed, *analysis.model.random}
    said, _, _ = drafted(tmp_path, herd_year=herds)
    assert start not in said


@pytest.mark.parametrize("code, is_asked", [("-", True), ("#N/A", False)])
def test_a_code_for_missing_that_may_be_a_level_elsewhere_is_asked_about(tmp_path, code, is_asked):
    """'-' is no weight, and may be a level beside '+'; '#N/A' is none anywhere."""
    rows = [f"{'MF'[i % 2]};{code if i == 7 else 20 + i / 8};{'+' if i % 3 else code}" for i in range(40)]
    (tmp_path / "records.csv").write_text("sex;weight;gene\n" + "\n".join(rows) + "\n")
    said = "\n".join(init(tmp_path / "records.csv", output=tmp_path / "a.yaml").said)
    asked = f"'{code}' means a missing value in every column (data.missing), also in gene (14 records)"
    assert (asked in said) is is_asked
