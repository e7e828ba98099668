"""Typing errors in columns of numbers: the bad cells are named, all of them, and all else that is wrong with them."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import analysis, effect, fixed, random

from mmgibbs.config.genotypes import Genotypes
from mmgibbs.data.number_format import find_lost_marks, parse_column
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import DataError

GOOD = [f"{100 + 3 * i},{i % 10}" for i in range(40)]


def with_cells(cells, decimal_point=False):
    """Forty good weights and these, at the end."""
    values = [*GOOD, *cells]
    return [v.replace(",", ".") for v in values] if decimal_point else values


def write(tmp_path, values, separator=";"):
    path = tmp_path / "records.csv"
    path.write_text(f"id{separator}w\n" + "".join(f"a{i}{separator}{v}\n" for i, v in enumerate(values)))
    return path


@pytest.mark.parametrize("stated", [{}, {"decimal": ","}])
def test_bad_cells_among_decimal_commas_are_named(tmp_path, stated):
    path = write(tmp_path, with_cells(["21O,5", "198,5 kg", "3..4", "-", "-", "#N/A"]))
    with pytest.raises(DataError) as raised:
        prepare(analysis(path, ["w"], **stated))
    first, *more = str(raised.value).split("\n")
    assert first.startswith("records.csv row 42: found '21O,5' in column 'w' (traits.w); needed a finite number")
    assert first.endswith("a letter stands for a digit (O for 0, l or I for 1): correct it") or stated
    assert [line.split("'")[1] for line in more] == ["198,5 kg", "3..4", "-", "#N/A"]
    assert [line.split(":")[0] for line in more] == ["  row 43", "  row 44", "  row 45", "  row 47"]
    assert "(and in 1 further row)" in more[2]
    assert more[-1].endswith("; where - and #N/A mean a missing value, write data.missing: ['', 'NA', '-', '#N/A']")


def test_typing_errors_decide_nothing():
    """A fifth of the values at most; more are another kind of column."""
    text = pl.Series("w", with_cells(["x", "y"]))
    read = parse_column(text, (), None)
    assert read.values[:40].to_list() == [float(v.replace(",", ".")) for v in GOOD]
    assert read.values[40:].null_count() == 2 and read.comma == 0
    assert parse_column(pl.Series("w", [*GOOD[:4], "x"]), (), None).comma is None


@pytest.mark.parametrize("point", [False, True])
@pytest.mark.parametrize(
    ("cells", "rows", "meant"),
    [(["1985"], [42], ["198.5"]), (["1985", "-", "2000"], [42, 44], ["198.5", "200.0"]), (["-"], [], []),
     (["230"], [], []), (["9999"], [], [])],
)  # fmt: skip
def test_a_lost_decimal_mark(tmp_path, cells, rows, meant, point):
    """100.0 to 217.9, and 1985: 198.5. Not 230, which may be a whole number, nor 9999, which 999.9 would be."""
    values = with_cells(cells, point)
    path = write(tmp_path, values)
    warnings = prepare(analysis(path, ["w"], missing=["", "-"])).warnings
    said = [w for w in warnings if "decimal mark" in w]
    assert len(said) == bool(rows)
    for row, right in zip(rows, meant, strict=True):
        assert f"row {row}: {values[row - 2]} for {right}" in said[0]
        assert "the 40 that have one, from 100 to 217.9" in said[0]


def test_whole_numbers_and_numbers_of_three_digits_lose_no_mark():
    rng = np.random.default_rng(1)
    values = np.round(np.exp(rng.normal(5, 1, 500)), 1)  # skewed, a tenth whole
    text = pl.Series("w", [f"{v:g}" for v in values])
    assert find_lost_marks(text, text.cast(pl.Float64)) is None
    values = np.exp(np.random.default_rng(1).normal(2.5, 0.8, 2000))
    text = pl.Series("w", [f"{v:.3g}" for v in values])
    numbers = text.cast(pl.Float64)
    assert (text.str.contains(".", literal=True)).mean() > 0.8 and numbers.max() > 2 * 99.9
    assert find_lost_marks(text, numbers) is None


def test_records_without_the_trait_need_no_level(tmp_path):
    """Of a trait with a typing error too: rows 3 and 5 are right."""
    path = tmp_path / "records.csv"
    path.write_text("sex,w\nM,1.5\n,NA\nF,2O.5\n,-\nF,1.0\n")
    with pytest.raises(DataError) as raised:
        prepare(analysis(path, ["w"], {"sex": fixed("sex", traits=["w"])}, missing=["", "NA", "-"]))
    assert str(raised.value).startswith("records.csv row 4: found '2O.5'") and "sex" not in str(raised.value)


def test_everything_that_is_wrong_is_said_at_once(tmp_path):
    """A typing error in a trait, another in a covariate, a level that lacks, two faults of the pedigree, strangers, a
    genotype that is none: file by file."""
    records, pedigree, genotypes = (tmp_path / name for name in ("records.csv", "pedigree.csv", "genotypes.csv"))
    genotypes.write_text("id,s1,s2\na1,0,2\na2,1,x\n")
    rows = [["id", "sex", "age", "w"], *([f"a{i}", "mf"[i % 2], f"{i}.5", f"{100 + i}.5"] for i in range(30))]
    rows[3][3], rows[5][2], rows[7][1], rows[9][0], rows[11][0] = "1O2.5", "4..5", "", "stranger", "2.76E+11"
    records.write_text("\n".join(",".join(row) for row in rows) + "\n")
    animals = [["id", "sire", "dam"], *([f"a{i}", "", ""] for i in range(30)), ["b", "b", ""], ["a1", "a2", ""]]
    pedigree.write_text("\n".join(",".join(row) for row in animals) + "\n")
    model = analysis(
        records, ["w"],
        {"sex": fixed("sex", traits=["w"]), "age": fixed("age", "covariate", traits=["w"])},
        {"genetic": random("pedigree", genetic=effect("id", traits=["w"]))},
        pedigree=pedigree, genotypes=Genotypes(file=genotypes),
    )  # fmt: skip
    with pytest.raises(DataError) as raised:
        prepare(model)
    said = str(raised.value)
    assert said.startswith("found 8 things that must be changed:\n")
    files = [line.split()[1] for line in said.splitlines() if line[0].isdigit()]
    assert files == ["records.csv"] * 5 + ["pedigree.csv"] * 2 + ["genotypes.csv"]
    for part in (
        "records.csv row 12: found '2.76E+11' in column 'id'",
        "records.csv row 4: found '1O2.5' in column 'w' (traits.w)",
        "records.csv row 8: found no value in column 'sex' (model.fixed.sex)",
        "records.csv row 6: found '4..5' in column 'age' (model.fixed.age)",
        "pedigree.csv row 33: animal 'a1' has a row already, row 3: 'sire' is 'a2' here and empty there",
        "pedigree.csv row 32: animal 'b' is its own sire",
        "records.csv row 10: animal 'stranger' (column 'id') is not in the pedigree",
    ):
        assert part in said, said
    pedigree.write_text("id,sire\na,b,c\n")
    records.write_text("id,w\na,b,c\n")
    with pytest.raises(DataError) as raised:
        prepare(model)
    assert "1. records.csv row 2: found 3 fields" in str(raised.value)
    assert "2. pedigree.csv row 2: found 3 fields" in str(raised.value)
