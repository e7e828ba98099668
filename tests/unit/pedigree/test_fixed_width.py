"""Tables whose columns have fixed widths."""

import pytest

from pedigree.errors import TableError
from pedigree.read import read_pedigree
from pedigree.tables import open_table

WIDTHS = (4, 3, 6)
TEXT = "id  hrdweight\n   1 12  30.5\n\n  10  7\n200a b  12.25\n"


def table(tmp_path, text, header=True, widths=WIDTHS):
    path = tmp_path / "t.txt"
    path.write_bytes(text.encode())
    return open_table(path, widths, header)


def test_columns_and_lines(tmp_path):
    found = table(tmp_path, TEXT)
    assert found.names == ("id", "hrd", "weight") and found.n_rows == 3
    assert found.read().rows() == [("1", "12", "30.5"), ("10", "7", None), ("200a", "b", "12.25")]
    assert [found.line(row) for row in range(3)] == [2, 4, 5]
    assert found.read(["weight", "id"]).columns == ["weight", "id"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(tmp_path, end):
    found = table(tmp_path, TEXT.replace("\n", end))
    assert found.read()["weight"].to_list() == ["30.5", None, "12.25"]


def test_names_that_are_given_and_none(tmp_path):
    body = TEXT.partition("\n")[2]
    found = table(tmp_path, body, ["a", "b", "c"])
    assert found.names == ("a", "b", "c") and found.read()["a"].to_list() == ["1", "10", "200a"] and found.line(0) == 1
    assert table(tmp_path, body, False).names == ("1", "2", "3")


def test_characters_count_and_not_bytes(tmp_path):
    found = table(tmp_path, "Kühe  5\nÖÄÜß 12\n", False, (4, 3))
    assert found.read().rows() == [("Kühe", "5"), ("ÖÄÜß", "12")]


def test_quotation_marks_and_separators_are_text(tmp_path):
    assert table(tmp_path, 'a"b c,d\n', False, (4, 4)).read().rows() == [('a"b', "c,d")]


@pytest.mark.parametrize(
    ("text", "header", "widths", "message"),
    [
        (TEXT + "   5 12  30.55x\n", True, WIDTHS, r"row 6: found text behind the 3 columns, which take 13 characters"),
        ("a\t1\n", False, (2, 2), "row 1: found a tab; needed blanks"),
        ("a 1\n", False, (2, 0), r"found the widths \[2, 0\], needed one of at least 1"),
        ("a 1\n", ["x"], (2, 2), "found 2 columns, needed 1 for the given header"),
        ("x x \na 1\n", True, (2, 2), "columns 1 and 2 are both named 'x'"),
        ("x y \n", True, (2, 2), "has a header line but no rows"),
    ],
)
def test_mistakes(tmp_path, text, header, widths, message):
    with pytest.raises(TableError, match=message):
        table(tmp_path, text, header, widths)


@pytest.mark.parametrize("header", ["", "  idsire dam\n"])
def test_a_pedigree(tmp_path, header):
    """Ids that touch each other, and blanks for unknown parents."""
    path = tmp_path / "p.txt"
    path.write_text(header + "1001       \n1002       \n100310011002\n")
    found = read_pedigree(path, separator=(4, 4, 4))
    assert found.ids.to_list() == ["1001", "1002", "1003"] and found.sire.tolist() == [-1, -1, 0]
    assert found.dam.tolist() == [-1, -1, 1] and found.row.tolist()[2] == (4 if header else 3)
