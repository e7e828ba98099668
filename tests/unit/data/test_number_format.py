"""Numbers with separators: read as the analysis states, or where they can be nothing else; questioned or refused."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import analysis, fixed

from mmgibbs.config import load_config
from mmgibbs.data.number_format import (
    commas_as_points,
    deciding_cell,
    explain_no_number,
    find_points_of_thousands,
    parse_column,
)
from mmgibbs.data.prepare import prepare
from mmgibbs.data.regression import read_regression
from mmgibbs.errors import DataError

THOUSANDS = ["1.157", "892", "1.070", "901", "1.109", "1.045", "934", "970"]


def series(cells):
    return pl.Series("y", cells, pl.String)


@pytest.mark.parametrize(
    ("cells", "first", "span"),
    [
        (THOUSANDS, 0, (892, 970)),
        (["980", "-1.204", "875", None, "NA"], 1, (875, 980)),
        (["12.480", "11.950", "874", "10.002"], 0, (874, 874)),  # eggs of a flock
        (["650", "7.215", "5.050", "990", "0"], 1, (0, 990)),
    ],
)
def test_points_that_may_separate_thousands(cells, first, span):
    found = find_points_of_thousands(series(cells), {"", "NA"})
    assert (found.cell, found.low, found.high) == (first, *span)


@pytest.mark.parametrize(
    "cells",
    [
        ["1.157", "1.070", "0.892"],  # a number below 1
        ["115", "107.006", "89.206", "93"],  # rounded
        ["4.250", "3.975", "70", "68"],  # lambs and ewes
        ["1.157", "1.07", "892"],  # two decimals
        ["1.157", "892", "1204"],  # a thousand without a point
        ["1.157", "0", "0", "0", "2.310"],  # zeros
        ["1.157", "1.070"],  # nothing says what the points are
    ],
)
def test_decimals_are_left_alone(cells):
    assert find_points_of_thousands(series(cells), {"", "NA"}) is None


def of_column(cells, *, use="trait", **data):
    """An analysis in which these cells are the trait or a covariate."""
    y = [f"{2 + (3 * i) % 7}" for i in range(len(cells))]
    frame = pl.DataFrame({"y": cells if use == "trait" else y, "x": y if use == "trait" else cells})
    return analysis(frame, ["y"], {"x": fixed("x", "covariate", traits=["y"])} if use != "trait" else None, **data)


@pytest.mark.parametrize("use", ["trait", "covariate"])
def test_a_warning_that_the_keys_end(use):
    (warning,) = [w for w in prepare(of_column(THOUSANDS, use=use)).warnings if "thousands" in w]
    path = "column 'y' (traits.y)" if use == "trait" else "column 'x' (model.fixed.x)"
    assert warning.startswith(f"phenotypes: {path}: 4 values have a point and three digits behind it (row 1: 1.157), ")
    assert "4 others are whole numbers, from 892 to 970: does the point separate thousands" in warning
    assert "write data.decimal: ','" in warning and "data.decimal: '.' ends this warning" in warning
    for data in ({"decimal": ","}, {"decimal": "."}):
        assert not any("thousands" in w for w in prepare(of_column(THOUSANDS, use=use, **data)).warnings)


def test_stated_thousands_are_read():
    (design, plain) = (
        prepare(of_column(cells, **data)).design
        for cells, data in ((THOUSANDS, {"decimal": ","}), ([c.replace(".", "") for c in THOUSANDS], {}))
    )
    assert np.array_equal(design.y, plain.y)


@pytest.mark.parametrize(
    ("cells", "decimal", "values"),
    [
        (["115,763", "-9,5", "3"], ",", [115.763, -9.5, 3]),
        (["1,205.5", "1,205,300", ".5", "NA"], ".", [1205.5, 1205300, 0.5, None]),
        (["1.205,5", "12.000", "1,5"], ",", [1205.5, 12000, 1.5]),
        # another column of the same table shows what its points or commas are
        (["1.5", "12.00", "1.234"], ",", [1.5, 12, 1.234]),
        (["1,5", "12,0000", "1,234"], ".", [1.5, 12, 1.234]),
        (["1.5", "1.000,5"], ",", [None, 1000.5]),
    ],
)
def test_numbers_with_the_stated_decimal_mark(cells, decimal, values):
    found = parse_column(series(cells), {"", "NA"}, decimal)
    assert found.values.to_list() == values
    written = found.plain.cast(pl.Float64, strict=False)
    assert [w for w, v in zip(written, values, strict=True) if v is not None] == [v for v in values if v is not None]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("115,763", "the comma may be decimal (115.763) or separate thousands (115763): write data.decimal: ','"),
        ("1,205.5", "commas separate thousands (1205.5): write data.decimal: '.'"),
        ("1.205,5", "points separate thousands (1205.5): write data.decimal: ','"),
        ("1 205", "blanks separate thousands (1205): write data.decimal: '.'"),
        ("1\u00a0205,5", "blanks separate thousands (1205.5): write data.decimal: '.'"),
        ("1'205", "apostrophes separate thousands (1205): write data.decimal: '.'"),
        ("\u22123.5", "its sign is a dash and not a minus"),
        ("<0.5", "a value that is only known to lie above or below a limit belongs to a trait of type: censored"),
        ("12.5 kg", "a unit is behind the number"),
        ("8..3", ""),
        ("none", ""),
    ],
)
def test_why_a_cell_is_no_number(cell, reason):
    said = explain_no_number(cell, None)
    assert said.startswith(f"; {reason}") if reason else said == ""


@pytest.mark.parametrize("use", ["trait", "covariate"])
def test_the_refusal_names_the_comma(use):
    with pytest.raises(DataError) as error:
        prepare(of_column(["115,763", "107,006", "89,206"], use=use))
    first = str(error.value).splitlines()[0]
    assert "row 1: found '115,763' in column" in first and "the comma may be decimal (115.763)" in first
    prepare(of_column(["115,763", "107,006", "89,206"], use=use, decimal=","))
    with pytest.raises(DataError, match=r"no number with the decimal mark that data.decimal: ',' states"):
        prepare(of_column(["115,763", "1.5"], use=use, decimal=","))


@pytest.mark.parametrize(
    "trait",
    [
        {"type": "count"},
        {"type": "censored", "lower": "y", "upper": "u"},
        {"type": "censored", "censored": "s", "values": {"right": ["1"], "none": ["0"]}},
    ],
)
def test_other_types_of_traits(trait):
    cells = ["1,157", "1,070", "1,045"]
    frame = pl.DataFrame({"y": cells, "u": cells, "s": ["0", "0", "1"]})
    tree = {"data": {"phenotypes": frame}, "traits": {"y": trait}, "model": {}}
    with pytest.raises(DataError, match="the comma may be decimal"):
        prepare(load_config(tree))
    tree["data"] = {"phenotypes": frame, "decimal": "."}
    assert prepare(load_config(tree)).design.n_records == 3


def test_weights():
    with pytest.raises(DataError, match=r"'2,500' in column 'w' \(data.weights\).*the comma may be decimal"):
        prepare(analysis(pl.DataFrame({"y": ["1.5", "2.5"], "w": ["2,500", "1,500"]}), ["y"], weights="w"))


def test_a_regression():
    frame = pl.DataFrame({"y": ["1,205", "1,190", "2,250"], "x": THOUSANDS[:3]})
    tree = {
        "name": "r",
        "data": {"phenotypes": frame},
        "model": {"plugin": "lasso", "response": "y", "predictors": "x"},
    }
    assert "does the point separate thousands" in read_regression(load_config(tree)).warnings[0]
    tree["data"] = {"phenotypes": frame, "decimal": ","}
    found = read_regression(load_config(tree))
    assert found.response.tolist() == [1.205, 1.19, 2.25] and found.predictors[:, 0].tolist() == [1157, 892, 1070]
    tree["data"]["decimal"] = "."
    assert read_regression(load_config(tree)).response.tolist() == [1205, 1190, 2250]


COMMAS = """animal;herd;gain;size
a;9,5;1205,25;1,205
b;9,5;1190;2,411
c;10;;1,377
d;10;-3,5;2,004
"""


def test_decimal_commas_are_points_where_they_can_be_nothing_else(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text(COMMAS.replace("\n", "\r\n"))
    prepared = prepare(analysis(path, ["gain"], {"herd": fixed("herd", traits=["gain"])}))
    assert sorted(prepared.design.y[:, 0] - prepared.design.y[:, 0].min()) == pytest.approx([0.0, 1193.5, 1208.75])
    assert set(prepared.levels[0].ids) == {"9,5", "10"}  # classes stay as they are written
    assert prepared.design.notes[0] == "records.csv: commas are decimal points in 'gain' (row 2: 1205,25)"
    with pytest.raises(DataError, match="found '1,205' in column 'size'"):  # 1.205 or 1205
        prepare(analysis(path, ["size"]))
    path.write_text(COMMAS.replace("1190", "1190.5"))
    with pytest.raises(DataError, match="found '1205,25' in column 'gain'"):  # points and commas
        prepare(analysis(path, ["gain"]))


def test_one_odd_cell_does_not_turn_thousands_into_points(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("gain\n9,850\n10,120\n8,975\n11,2\n".replace("\n", ";a\n"))
    with pytest.raises(DataError, match="row 2: found '9,850' in column 'gain'"):
        prepare(analysis(path, ["gain"]))
    path.write_text("gain\n9,850\n10,120\n8,975\n0,2\n".replace("\n", ";a\n"))
    (note, *_) = prepare(analysis(path, ["gain"])).design.notes
    assert note == "records.csv: commas are decimal points in 'gain' (row 5: 0,2)"


def test_decimal_commas_of_a_regression(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("y;x;count\n1,5;0,25;1\n2;-1,5;2\n3,25;1;3\n")
    model = {"plugin": "lasso", "response": "y", "predictors": ["x", "count"]}
    found = read_regression(load_config({"name": "r", "data": {"phenotypes": str(path)}, "model": model}))
    assert found.response.tolist() == [1.5, 2.0, 3.25] and found.predictors[:, 0].tolist() == [0.25, -1.5, 1.0]
    assert found.notes == ("records.csv: commas are decimal points in 'y' (row 2: 1,5), 'x' (row 2: 0,25)",)


@pytest.mark.parametrize(
    ("values", "expected"),
    [(["1,5", "2", None], ["1.5", "2", None]), (["1,5", "NA", ""], ["1.5", "NA", ""]),
     ([",5", "1,205"], [".5", "1.205"]),
     (["1,205"], None), (["1,5", "b"], None), (["1,5,2"], None), (["1", "2"], None), (["0,205"], ["0.205"]),
     (["1,5", "1e3"], None), (["9,850", "10,120", "8,975", "11,2"], None), (["9,850", "11,2"], ["9.850", "11.2"]),
     (["9,850", "10,120", "-,2"], ["9.850", "10.120", "-.2"]), (["9,850", "10,120", "0,2"], ["9.850", "10.120", "0.2"]),
     (["9,850", "10,120", "11,2001"], ["9.850", "10.120", "11.2001"]), (["9,850", "10,120", "10,2"], None)],
)  # fmt: skip
def test_which_commas_are_decimal_points(values, expected):
    text, absent = pl.Series("x", values, pl.String), {"", "NA"}
    is_decimal = deciding_cell(text, absent) is not None
    assert (commas_as_points(text, absent).to_list() if is_decimal else None) == expected


def test_decimal_commas_within_quotation_marks(tmp_path):
    """A table with commas between its columns has its decimal commas in quoted cells."""
    path = tmp_path / "records.csv"
    path.write_text('animal,gain,age\na,"1205,25","3,5"\nb,1190,"4,5"\nc,"1180,5",4\n')
    prepared = prepare(analysis(path, ["gain"], {"age": fixed("age", "covariate", traits=["gain"])}))
    assert sorted(prepared.design.y[:, 0] - prepared.design.y[:, 0].min()) == pytest.approx([0.0, 9.5, 24.75])
    (note,) = [n for n in prepared.design.notes if "decimal points" in n]
    assert note == "records.csv: commas are decimal points in 'gain' (row 2: 1205,25), 'age' (row 2: 3,5)"
