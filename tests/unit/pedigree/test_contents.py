"""Encodings of tables, and what spreadsheets leave behind in them."""

import gzip
import time

import polars as pl
import pytest

from mmgibbs.pedigree.contents import ENCODING
from mmgibbs.pedigree.errors import TableError
from mmgibbs.pedigree.read import read_pedigree
from mmgibbs.pedigree.tables import open_table, read_table


def table(tmp_path, content, **options):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return open_table(path, **options)


@pytest.mark.parametrize(
    ("text", "row", "word"),
    [
        ("id;Größe\na;1\n", 1, "Größe"),
        ("animal;père\na;b\n", 1, "père"),
        ("id;place\na;b\nc;Sørensen & Co\n", 3, "Sørensen"),
    ],
)
def test_text_that_is_not_utf8_is_windows_1252(tmp_path, text, row, word):
    read = table(tmp_path, text.encode("windows-1252"))
    assert read.read().equals(table(tmp_path, text).read()) and not table(tmp_path, text).notes
    said = f"t.csv: is not UTF-8 and was read as Windows-1252 (row {row}: '{word}'); "
    assert read.notes == (f"{said}if letters are wrong, state {ENCODING}",)


@pytest.mark.parametrize("encoding", ["cp850", "windows-1250", "utf-16", "latin-1", "utf-8"])
def test_a_stated_encoding(tmp_path, encoding):
    text = "id,sire,dam,größe\na,,,ü\n"
    read = table(tmp_path, text.encode(encoding), encoding=encoding)
    assert read.names[-1] == "größe" and read.read()["größe"][0] == "ü" and not read.notes
    assert read_pedigree(tmp_path / "t.csv", encoding=encoding).n_animals == 1
    assert read_table(tmp_path / "t.csv", encoding=encoding).height == 1


@pytest.mark.parametrize(
    ("content", "encoding", "message"),
    [
        *((b"a,b\n1,2\n", name, f"is stated as '{name}', which is none of text; expected a name such as utf-8")
          for name in ("klingon", "", "base64", "rot13", "zlib")),
        (b"a,b\n1,2\n", "a\0b", "which is none of text"),
        ("a,b\n1,ü\n".encode("cp850"), "ascii", "t.csv row 2: found byte 0x81, which is not text in ascii"),
        (b"a,b\n1,\\ud800\n", "unicode_escape", "t.csv: is not text in unicode_escape"),
        ("a,b\n1,2\n".encode("utf-32"), None, "t.csv: is UTF-32 text, needed UTF-8"),
        (b"\x6c\x1b\x01\xff\xa9\n" * 9, None, "t.csv: is a binary file, needed a text table"),
        (b"a,b\n1,\0\n", None, "found a zero byte, at byte 6 of the file; needed a text table"),
    ],
)  # fmt: skip
def test_encodings_that_cannot_be(tmp_path, content, encoding, message):
    with pytest.raises(TableError) as raised:
        table(tmp_path, content, encoding=encoding)
    assert message in str(raised.value)


@pytest.mark.parametrize("n_others", [1, 2, 50])
def test_tables_in_two_encodings_put_together_are_refused(tmp_path, n_others):
    """Köln would be two levels, Köln and KÃ¶ln."""
    first, second = "id;place\n1;Köln\n", "2;Köln\n" * n_others
    for bad, (one, other) in ((3, ("utf-8", "latin-1")), (2, ("latin-1", "utf-8"))):
        content = first.encode(one) + second.encode(other)
        with pytest.raises(TableError) as raised:
            table(tmp_path, content)
        assert str(raised.value).startswith(f"t.csv row {bad}: found byte 0xf6, which is not UTF-8 text, at byte ")
        assert f"while 'ö' in row {5 - bad} is; needed a file in one encoding" in str(raised.value)
    assert table(tmp_path, content, encoding="latin-1").n_rows == 1 + n_others


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("blank", [";;", " ; ;", ";", '"";"";""', ';" ";'])
def test_rows_without_a_value_are_read_past(tmp_path, blank, end):
    text = end.join(["a;b;c", "1;2;3", blank, "4;;", blank, ""])
    read = table(tmp_path, text)
    assert read.read().rows() == [("1", "2", "3"), ("4", None, None)] and read.lines().tolist() == [2, 4]
    assert read.notes == ("t.csv: 2 rows without a value read past (the first: row 3)",)


def test_a_cell_of_several_lines_is_kept(tmp_path):
    assert table(tmp_path, 'a,b\n"x\n,\n,,",2\n').read().rows() == [("x\n,\n,,", "2")]


def test_blank_rows_and_columns_are_read_past(tmp_path):
    read = open_table(pl.DataFrame({"a": [1, None, 2], "b": [None, None, "x"]}))
    assert read.read().rows() == [("1", None), ("2", "x")] and read.lines().tolist() == [1, 3]
    assert read.notes == ("table: 1 row without a value read past (the first: row 2)",)
    read = table(tmp_path, "a,b,,\n1,2,,\n3,4,,\n")
    assert read.names == ("a", "b") and read.read().rows() == [("1", "2"), ("3", "4")]
    assert read.notes == ("t.csv: 2 columns without a name and without a value read past",)
    assert table(tmp_path, "a,b,,\n1,2,,\n3,4,x,\n").names == ("a", "b", "column 3")


def test_blank_rows_below_a_cell_of_several_lines_are_read_past(tmp_path):
    read = table(tmp_path, 'a,b,,\n"x\ny",2,,\n3,4,,\n,,,\n,,,\n')
    assert read.read().rows() == [("x\ny", "2"), ("3", "4")] and read.lines().tolist() == [2, 4]
    assert read.notes[1:] == ("t.csv: 2 rows without a value read past (the first: row 5)",)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_empty_columns_behind_those_of_a_given_header(tmp_path, separator):
    text = "\ufeff1,2,,\r\n3,4,,\r\n,,,\r\n".replace(",", separator)
    read = table(tmp_path, text, header=["3", "4"])
    assert read.names == ("3", "4") and read.read(["4"]).rows() == [("2",), ("4",)]
    assert read.notes[-1] == "t.csv: 2 columns without a name and without a value read past"
    with pytest.raises(TableError, match="found 4 columns, needed 2 for the given header"):
        table(tmp_path, "1,2,,\n3,4,5,\n".replace(",", separator), header=["a", "b"])


@pytest.mark.parametrize("text", ["a,b\n1,2,,\n3,4\n", "a,b,,\n1,2\n3,4\n", 'a,b\n"1",2,,\n3,4,\n'])
def test_empty_cells_behind_the_last_column(tmp_path, text):
    read = table(tmp_path, text)
    assert read.names == ("a", "b") and read.read().rows() == [("1", "2"), ("3", "4")]
    assert "with cells behind the last column, all of them empty: read without these" in read.notes[0]


def test_kept_rows_keep_their_lines(tmp_path):
    read = table(tmp_path, "a,b\n1,2\n\n3,4\n5,6\n").keep(pl.Series([True, False, True]).to_numpy())
    assert read.read(["a"]).rows() == [("1",), ("5",)] and [read.line(i) for i in range(2)] == [2, 5]
    again = read.keep(pl.Series([False, True]).to_numpy())
    assert again.read().rows() == [("5", "6")] and again.lines().tolist() == [5]


def test_a_line_of_names_longer_than_a_megabyte(tmp_path):
    names = [f"s{i}" + "x" * 60_000 for i in range(20)]
    read = table(tmp_path, ",".join(names) + "\n" + ",".join(map(str, range(20))) + "\n")
    assert read.names == tuple(names) and read.read([names[-1]]).rows() == [("19",)]


def test_a_gzip_file_of_zeros_is_refused_at_once(tmp_path):
    path = tmp_path / "zeros.csv.gz"
    path.write_bytes(gzip.compress(bytes(100_000_000), 1))
    start = time.process_time()
    with pytest.raises(TableError, match="is a gzip file of zero bytes; needed a text table"):
        open_table(path)
    assert time.process_time() - start < 0.5
