"""Decimal commas are read as points where they can be nothing else."""

import polars as pl
import pytest
from helpers.analyses import analysis, fixed

from mmgibbs.config import load_config
from mmgibbs.data.decimal_commas import commas_as_points, deciding_cell
from mmgibbs.data.prepare import prepare
from mmgibbs.data.regression import read_regression
from mmgibbs.errors import DataError

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
