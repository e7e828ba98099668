"""The pass over the bytes of a text table: what it counts, what it copies, what it objects to, and where."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmgibbs.pedigree.scan import _AFTER, _CARRIAGE_RETURN, _INSIDE, _NEVER_CLOSED, WRONG, Scan, scan

NONE, NO_LINES = np.empty(0, np.uint8), np.empty(0, np.int64)
FLAWLESS = Scan(0, 0, 0, 0, 0, 0, False, False, 0, 0, 0)


def scanned(content: str, separator=",", copy=False):
    """(what was found, the copy, the line of each record)."""
    data, blanks = np.frombuffer(content.encode(), np.uint8), separator == " "
    first = scan(data, ord(separator), blanks, np.empty(0, np.uint8), np.empty(0, np.int64))
    out, lines = np.empty(data.size + 1 if copy else 0, np.uint8), np.empty(first.n_records, np.int64)
    found = scan(data, ord(separator), blanks, out, lines)
    assert found._replace(n_written=0) == first, "a copy changes nothing that is found"
    return found, out[: found.n_written].tobytes().decode(), lines.tolist()


@pytest.mark.parametrize(
    ("content", "separator", "expected"),
    [
        ("", ",", dict(n_records=0, n_fields=0, first_line=0)),
        ("\n \n\t\r\n", ",", dict(n_records=0, n_blank=3, n_fields=0, first_line=0)),
        ("a,b\n1,2\n", ",", dict(n_records=2)),
        ("\na,b\n\n1,2\n", ",", dict(n_records=2, n_blank=2, first_line=2)),
        ("a\tb\n1\t\n", "\t", dict(n_records=2)),  # the last field is empty
        ("a\tb\n\t\n", "\t", dict(n_records=2)),  # two empty fields, not a blank line
        (" a  b\t \n1\t2\r\n", " ", dict(n_records=2)),
        ('"a","b"\n"1","2"\n', ",", dict(n_records=2)),
        ('"a ""big"" one",b\n', ",", dict(n_records=1)),
        ('"a\nb",c\nd,e\n', ",", dict(n_records=2, multiline=True)),
        # a field may have outer blanks
        (" a,b\n", ",", dict(n_records=1, padded=True)),
        ("a,b \r\n", ",", dict(n_records=1, padded=True)),
        ("a,b\r\r\n", ",", dict(n_records=1, padded=True)),
        ("a,é\n", ",", dict(n_records=1, padded=True)),  # no blank, but its bytes could belong to one
        ('a,""\n', ",", dict(n_records=1, padded=True)),
        ('a,"b "\n', ",", dict(n_records=1, padded=True)),
        # records of another length: the first of them
        ("a,b\n1\n1,2,3\n", ",", dict(n_records=3, uneven_line=2, uneven_fields=1)),
        ('"a\nb",c\nd\n', ",", dict(n_records=2, multiline=True, uneven_line=3, uneven_fields=1)),
        ("a b\n1 2 3\n", " ", dict(n_records=2, uneven_line=2, uneven_fields=3)),
        # what a parser would pass over: the first of them
        ('a,b\n1,"2\n3,4\n', ",", dict(n_records=2, multiline=True, wrong=_NEVER_CLOSED, wrong_line=2)),
        ('a,b\n1,2"\n3",4\n', ",", dict(n_records=3, wrong=_INSIDE, wrong_line=2)),
        ('a,b\n1,"2"x\n', ",", dict(n_records=2, wrong=_AFTER, wrong_line=2)),
        ('a,b\n"1\n1"x,2\n', ",", dict(n_records=2, multiline=True, wrong=_AFTER, wrong_line=2)),
        ("a,b\r1,2\r\n", ",", dict(n_records=1, n_fields=3, wrong=_CARRIAGE_RETURN, wrong_line=1)),
        ('a,b\n1"\rx,2\n3,"4"x\n', ",", dict(n_records=3, wrong=_INSIDE, wrong_line=2)),
    ],
)
def test_what_is_found(content, separator, expected):
    expected = FLAWLESS._replace(**dict(n_fields=2, first_line=1) | expected)
    found, _, lines = scanned(content, separator)
    assert found == expected
    assert len(lines) == found.n_records and lines == sorted(lines) and all(line >= found.first_line for line in lines)


@given(st.text("ab1.,;\n", max_size=40), st.sampled_from(",;"))
@settings(max_examples=300)
def test_plain_tables(content, separator):
    """Each line without bytes is blank, each other one a record."""
    text = content.split("\n")[: None if content and content[-1] != "\n" else -1]
    fields = {i: 1 + line.count(separator) for i, line in enumerate(text, 1) if line}
    first = next(iter(fields), 0)
    uneven = next((i for i, n in fields.items() if n != fields[first]), 0)
    expected = FLAWLESS._replace(
        n_records=len(fields), n_blank=len(text) - len(fields), n_fields=fields.get(first, 0), first_line=first,
        uneven_line=uneven, uneven_fields=fields.get(uneven, 0),
    )  # fmt: skip
    found, _, lines = scanned(content, separator)
    assert found == expected and lines == list(fields)


@pytest.mark.parametrize(
    ("content", "separator", "copy", "lines"),
    [
        ("\n\na,b\n \n1,2\r\n", ",", "a,b\n1,2\r\n", [3, 5]),
        ("a,b\n1,2", ",", "a,b\n1,2\n", [1, 2]),
        ('"a\nb",c\n\nd,e', ",", '"a\nb",c\nd,e\n', [1, 4]),
        ("  a \t b\t\r\n\n1   2\n", " ", "a\tb\n1\t2\n", [1, 3]),
        ("a\t\n\t\n", "\t", "a\t\n\t\n", [1, 2]),
        ('"a b" c\n', " ", '"a b"\tc\n', [1]),
    ],
)
def test_the_copy_has_no_blank_lines_and_one_separator(content, separator, copy, lines):
    assert scanned(content, separator, copy=True)[1:] == (copy, lines)


def test_every_objection_has_its_words():
    assert set(WRONG) == {_NEVER_CLOSED, _INSIDE, _AFTER, _CARRIAGE_RETURN} and all(WRONG.values())
