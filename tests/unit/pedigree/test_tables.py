"""Reading tables: what comes back is what stands in the file, with the right line numbers, and what is refused."""

import csv
import gzip
import io

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import mmgibbs.pedigree.contents
from mmgibbs.pedigree.errors import TableError
from mmgibbs.pedigree.read import read_pedigree
from mmgibbs.pedigree.tables import _as_text, counted, format_number, nearest, open_table, quoted, read_table

VALUE = st.text(alphabet=st.sampled_from(list("aZ0 9.,;'\"\té–\n")), max_size=5)


def file_of(folder, content, name="t.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@settings(max_examples=70, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(VALUE, min_size=3, max_size=3), min_size=1, max_size=8),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n"]),
    st.data(),
)
@example([["a\nb", "x", ""], ["1", "", "2"]], ",", "\n", None)
def test_what_is_written_comes_back(tmp_path, rows, separator, line_end, data):
    """Against Python's csv module: values, and the line on which each row begins, with blank lines between rows."""
    text = f"p{separator}q{separator}r{line_end}"
    lines = []
    for row in rows:
        for _ in range(data.draw(st.integers(0, 2)) if data else 0):
            text += line_end
        lines.append(text.count("\n") + 1)
        out = io.StringIO()
        csv.writer(out, delimiter=separator, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerow(row)
        text += out.getvalue()
    blank = [not any(value.strip(" \t\n") for value in row) for row in rows]
    if all(blank):
        return  # a table without a value
    table = open_table(file_of(tmp_path, text), separator)
    rows = [row for row, is_blank in zip(rows, blank) if not is_blank]
    lines = [line for line, is_blank in zip(lines, blank) if not is_blank]
    frame = table.read()
    assert frame.columns == ["p", "q", "r"] and frame.schema.dtypes() == [pl.String] * 3
    assert [table.line(i) for i in range(frame.height)] == lines == table.lines().tolist()
    expected = [[v.replace("\r\n", "\n").strip(" \t\n") or None for v in row] for row in rows]
    assert [list(row) for row in frame.rows()] == expected


@pytest.mark.parametrize("name", ["t.txt", "t.dat"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_white_space(tmp_path, name, end):
    path = file_of(tmp_path, "  1   0\t 007 \n\n\t \n2 1   'x'\r\n3 \"a b\" y" + end, name)
    table = open_table(path, header=False)
    assert table.names == ("1", "2", "3")
    assert table.read().rows() == [("1", "0", "007"), ("2", "1", "'x'"), ("3", "a b", "y")]
    assert table.lines().tolist() == [1, 4, 5]


def test_blanks_outside_go_and_what_is_empty_is_null(tmp_path):
    frame = read_table(file_of(tmp_path, 'id , sire,dam\n a,  ,b \nc,"","d "\n'))
    assert frame.columns == ["id", "sire", "dam"]
    assert frame.rows() == [("a", None, "b"), ("c", None, "d")]
    table = open_table(file_of(tmp_path, "\n" * 70_000 + "a b\n1 2\n"))
    assert table.read().rows() == [("1", "2")] and table.line(0) == 70_002
    assert read_table(file_of(tmp_path, "id,w\na\u00a0,\u20071\n\u3000,2\n")).rows() == [("a", "1"), (None, "2")]
    assert quoted("a\u200b\x1b[2J") == "'a\\u200b\\x1b[2J'"
    assert quoted("x" * 1000) == f"'{'x' * 60}...'"


def test_gz_bom_and_unicode(tmp_path):
    content = "\ufeffid,näme\n1,Ørsted–2\n".encode()
    for path in (file_of(tmp_path, content), file_of(tmp_path, gzip.compress(content, mtime=0), "t.csv.gz")):
        assert read_table(path).to_dict(as_series=False) == {"id": ["1"], "näme": ["Ørsted–2"]}


@pytest.mark.parametrize("write", ["write_parquet", "write_ipc"])
def test_parquet_and_arrow(tmp_path, write):
    frame = pl.DataFrame(
        {
            "id": ["007", " b "],
            "sire": [1.0, None],
            "w": [1.5, float("nan")],
            "n": [3, 4],
            "c": pl.Series(["x", ""], dtype=pl.Categorical),
        }
    )
    path = tmp_path / "t.bin"
    getattr(frame, write)(path)
    table = open_table(path)
    expected = {"id": ["007", "b"], "sire": ["1", None], "w": ["1.5", None], "n": ["3", "4"]}
    assert table.read(["id", "sire", "w", "n"]).to_dict(as_series=False) == expected
    assert table.read(["w", "n"], all_strings=False).schema == {"w": pl.Float64, "n": pl.Int64}
    assert (table.line(0), table.line(1)) == (1, 2)


def test_columns_by_name_and_position(tmp_path):
    table = open_table(file_of(tmp_path, "a,b,c\n1,2,3\n"))
    assert table.read([3, "a"]).to_dict(as_series=False) == {"c": ["3"], "a": ["1"]}
    assert table.column(2) == "b"
    with pytest.raises(TableError, match="t.csv: there is no column 4; found 3 columns"):
        table.read([4])
    with pytest.raises(TableError, match="t.csv: there is no column 'A'; nearest: 'a'"):
        table.read(["A"])
    with pytest.raises(TableError, match="t.csv: there is no column 'weight'; found: 'a', 'b', 'c'"):
        table.read(["weight"])


def test_names_of_columns_that_lack_them(tmp_path):
    path = file_of(tmp_path, "1 2\n3 4\n", "t.dat")
    assert read_table(path, header=["x", "y"]).to_dict(as_series=False) == {"x": ["1", "3"], "y": ["2", "4"]}
    with pytest.raises(TableError, match=r"t.dat: found 2 columns, needed 3 for the given header \(x, y, z\)"):
        read_table(path, header=["x", "y", "z"])
    assert open_table(file_of(tmp_path, ",b\n1,2\n")).names == ("column 1", "b")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "t.csv: is empty"),
        (" \n\n", "t.csv: is empty"),
        ("a,b\n", "t.csv: has a header line but no rows"),
        ("a,b\n1,2\n\n3\n", "t.csv row 4: found 1 field separated by ',', needed 2 as in row 1"),
        ("a,b\n1,2\n3,4,5\n6\n", "t.csv row 3: found 3 fields separated by ',', needed 2 as in row 1"),
        *(  # blanks within cells do not make white space the separator
            ("a,b,c\n" + "1,x y,2\n" * n + "1,x y,2,3\n" + "1,x y,2\n" * 5, f"t.csv row {n + 2}: found 4 fields")
            for n in (20, 150)
        ),
        (
            "a,b,c\n1,2,3\n4,5\n6,7,8\n4,5,6,7\n5\n" + "1,2,3\n" * 5,
            "t.csv row 3: found 2 fields separated by ',', needed 3 as in row 1; so have row 5 (4), row 6 (1)",
        ),
        ("a,b,c,d,e\n1,2,3\n4,5,6\n", "t.csv row 2: found 3 fields separated by ',', needed 5 as in row 1"),
        ("\na;b\n1;2;3", "t.csv row 3: found 3 fields separated by ';', needed 2 as in row 2"),
        ('a,b\n"x\ny",2\n3\n', "t.csv row 4: found 1 field"),
        ("a b\n1 2\n3\n", "t.csv row 3: found 1 field separated by white space, needed 2 as in row 1"),
        ('a,b\n1,"2\n3,4\n', "t.csv row 2: a quotation mark is opened here and never closed"),
        (b"a,b\n1,2\n\x81,3\n", "t.csv row 3: found byte 0x81, which is not text in Windows-1252, at byte 8 of the"),
        ("a,ö\n1,ü\n".encode() + b"\xff,3\n", "t.csv row 3: found byte 0xff, which is not UTF-8 text, at byte 10 of"),
        (b"a,b\n1,\x002\n", "t.csv row 2: found a zero byte, at byte 6 of the file"),
        (b"a,b\n\xc3\xa9,\x002\n", "t.csv row 2: found a zero byte, at byte 7 of the file"),
        ("a,b\n1,2\n".encode("utf-16"), "t.csv: is UTF-16 text, needed UTF-8 (save it as 'CSV UTF-8')"),
        (b"PK\x03\x04zip", "t.csv: is a spreadsheet or zip file, needed a text table (save it as csv)"),
        (b"PAR1 but not parquet", "t.csv: cannot be read: "),
        (gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-9], "t.csv: the gzip file is damaged or cut short: "),
        ("a,b,a\n1,2,3\n", "t.csv: columns 1 and 3 are both named 'a'"),
    ],
)
def test_refused(tmp_path, content, message):
    with pytest.raises(TableError) as error:
        read_table(file_of(tmp_path, content))
    assert str(error.value).startswith(message)


def test_paths_and_separators_that_cannot_be(tmp_path):
    file_of(tmp_path, "a,b\n1,2\n", "pedigree.csv")
    for path, message in (
        (tmp_path / "pedigre.csv", r"pedigre.csv: no such file \(beside it: 'pedigree.csv'\)"),
        (tmp_path / "no" / "t.csv", "t.csv: no such file .there is no folder .*no"),
        (tmp_path, "is a folder, needed a file"),
        ("/dev/null", "/dev/null: is not a regular file"),
    ):
        with pytest.raises(TableError, match=message):
            read_table(path)
    for separator in ("", "::", "\n", '"', "é"):
        with pytest.raises(TableError, match="needed one character"):
            read_table(file_of(tmp_path, "a,b\n1,2\n"), separator)
    (tmp_path / "link.csv").symlink_to("link.csv")
    with pytest.raises(TableError, match="link.csv: is a symbolic link that leads to no file"):
        read_table(tmp_path / "link.csv")


def test_small_helpers():
    assert (counted(1, "row"), counted(0, "row")) == ("1 row", "0 rows")
    assert nearest("wieght", ["id", "weight", "height"]).startswith("nearest: 'weight'")
    assert nearest("q", [str(i) for i in range(30)]).endswith("'19', ...")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("5'3\",x", "t.csv row 3: found a quotation mark inside a field"),
        (' "a",x', "t.csv row 3: found a quotation mark inside a field"),
        ('x"y"z,x', "t.csv row 3: found a quotation mark inside a field"),
        ('"a"b,x', "t.csv row 3: found text behind a closing quotation mark"),
        ('"a" ,x', "t.csv row 3: found text behind a closing quotation mark"),
        ("a\rb,x", "t.csv row 3: found a carriage return inside the row"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_what_parsers_read_in_ways_of_their_own(tmp_path, row, message, end):
    between = end or "\n"
    with pytest.raises(TableError) as error:
        read_table(file_of(tmp_path, f"a,b{between}1,2{between}{row}{end}"))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    "content", [b"BZh9", b"\xd0\xcf\x11\xe0", gzip.compress(gzip.compress(b"a", mtime=0), mtime=0), b"%PDF-1.4"]
)
def test_other_kinds_of_files_are_named(tmp_path, content):
    with pytest.raises(TableError, match="needed a text table"):
        read_table(file_of(tmp_path, content))


def test_a_field_too_long_for_a_table(tmp_path):
    with pytest.raises(TableError, match="t.csv row 1: cannot be read: field larger than"):
        read_table(file_of(tmp_path, "x" * 200_000 + ",b\n1,2\n"))


def test_what_polars_gives_up_on_is_refused(tmp_path, monkeypatch):
    def panics(source):
        raise pl.exceptions.PanicException("range end index 9920 out of range")

    monkeypatch.setattr(pl, "read_parquet", panics)
    with pytest.raises(TableError, match="the parquet file is damaged or cut short .range end index"):
        read_table(file_of(tmp_path, b"PAR1"))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(4901234.0, "4901234"), (276000912345678.0, "276000912345678"), (-3.0, "-3"), (2.1, "2.1"), (1e-7, "1e-07"),
     (1234567.25, "1234567.25"), (1e20, "1e+20"), (float("inf"), "inf"), (0.1 + 0.2, "0.3")],
)  # fmt: skip
def test_numbers_of_a_table_keep_their_digits(value, shown):
    assert format_number(value) == shown


def test_ids_of_a_frame_are_copied_only_where_blanks_go():
    """Ten million ids are 160 MB: those that stay as they are stay where they are."""
    clean, blank, empty = pl.Series(["a", None, "b c"]), pl.Series(["a", None, " b"]), pl.Series(["a", "", "b"])
    assert _as_text(clean, "t") is clean
    assert _as_text(blank, "t").to_list() == ["a", None, "b"] and blank.to_list() == ["a", None, " b"]
    assert _as_text(empty, "t").to_list() == ["a", None, "b"]
    assert open_table(pl.DataFrame({"id": blank})).read()["id"].to_list() == ["a", None, "b"]


@pytest.mark.parametrize("separator", [" ", ",", "\t"])
def test_a_header_that_lacks_the_names_of_rows(tmp_path, separator):
    """As R's write.table leaves it."""
    path = tmp_path / "r.txt"
    rows = [["id", "sire", "dam"], ["1", "F1", "NA", "NA"], ["2", "F2", "NA", "F1"]]
    path.write_text("".join(separator.join(f'"{v}"' for v in row) + "\n" for row in rows))
    with pytest.raises(TableError, match="row 2: found 4 fields .* needed 3 .* has the first column no name\\? \\(in"):
        open_table(path, separator)
    path.write_text("id,sire,dam\nF1,,\nF2,,,F1\n")
    with pytest.raises(TableError, match="needed 3 as in row 1$"):
        open_table(path, ",")


@pytest.fixture
def low_limits(monkeypatch):
    monkeypatch.setattr(mmgibbs.pedigree.contents, "UNPACKED_BYTES_ALWAYS_ALLOWED", 10_000)
    monkeypatch.setattr(mmgibbs.pedigree.contents, "MAX_UNPACKED_RATIO", 20)


def rows(n, value="7"):
    return ("id,y\n" + f"a,{value}\n" * n).encode()


@pytest.mark.parametrize("members", [1, 3])
def test_a_gzip_file_that_would_fill_the_memory_is_refused(tmp_path, low_limits, members):
    """A bomb of 10 MB unpacks to 10 GB. The message has the number, and a way for a file that is right."""
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(rows(100_000 // members)) * members)
    assert path.stat().st_size < 10_000
    with pytest.raises(TableError) as raised:
        open_table(path)
    said = str(raised.value)
    assert said.startswith("bomb.csv.gz: unpacks to more than 0.0 GB from 0.0 MB; needed at most 20 times the packed ")
    assert "gunzip" in said and "which has no limit" in said
    (tmp_path / "bomb.csv").write_bytes(rows(100_000))
    assert open_table(tmp_path / "bomb.csv").n_rows == 100_000


@pytest.mark.parametrize("n", [10, 1_000])
def test_tables_that_are_packed_well_are_read(tmp_path, low_limits, n):
    (tmp_path / "small.csv.gz").write_bytes(gzip.compress(rows(n)))  # below the size that is always allowed
    assert open_table(tmp_path / "small.csv.gz").n_rows == n
    content = "id,y\n" + "".join(f"a{i},{i * 7919 % 10007}\n" for i in range(20_000))  # larger, of a usual ratio
    (tmp_path / "large.csv.gz").write_bytes(gzip.compress(content.encode()))
    assert open_table(tmp_path / "large.csv.gz").n_rows == 20_000


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


def test_characters_count_and_marks_are_text(tmp_path):
    found = table(tmp_path, "Kühe  5\nÖÄÜß 12\n", False, (4, 3))
    assert found.read().rows() == [("Kühe", "5"), ("ÖÄÜß", "12")]
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
