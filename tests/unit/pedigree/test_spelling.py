"""Codes for unknown, normal forms of ids, numbers written as text."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_series_equal

from mmgibbs.pedigree.spelling import (
    are_unknown_codes,
    find_respelled,
    find_similar,
    is_unknown_code,
    normal_form,
    normal_forms,
    parse_number,
    parse_numbers,
)


@pytest.mark.parametrize(
    ("form", "spellings"),
    [
        ("5", ["5", "05", "0005", "5.0", "5.00", "5.", "5,0", "+5", "5e0", "5E+00", "５", " 5", "5\u00a0", "\ufeff5"]),
        ("5", ["'5", "'5'", '"5"', '="05"', "5\u200b", "\u200e5"]),
        ("0", ["0", "00", "0.0", "0,0", "-0", "−0.0", "0.", ".0", "0e0", "０"]),
        ("-9", ["-9", "−9", "–9.0", "-09"]),
        ("0.5", ["0.5", ".5", "0,5", "0.50", "00.5"]),
        ("100000", ["100000", "1e+05", "1.0E5", "1E+5"]),
        ("dk012-34", ["DK012-34", "dk012–34", "DK 012 - 34", "ＤＫ012‐34", "DK\u00ad012‑34", "\tDK012−34 "]),
        ("strasse", ["Straße", "STRASSE", "stra\u200bße"]),
        ("é1", ["é1", "É1", "e\u03011"]),
        ("1 1", ["1 1", "1  1", "1\u00a01", "1\t1 "]),
    ],
)
def test_spellings_of_one_id(form, spellings):
    assert [normal_form(s) for s in spellings] == [form] * len(spellings)


@pytest.mark.parametrize(
    ("one", "another"),
    [
        ("1E5", "100000"),  # names that look like numbers with an exponent
        ("1 1", "11"),
        ("1,205", "1205"),  # the comma may be a decimal point
        ("1,205", "1.205"),
        ("DK007", "DK7"),  # a number is canonical only where it is the whole id
        ("-5", "5"),
        ("12345678901234567890", "12345678901234567891"),  # floats would make them one
        ("1.0e99", "1"),
        ("A_1", "A1"),
    ],
)
def test_different_ids(one, another):
    assert normal_form(one) != normal_form(another)


@given(st.integers(0, 10**25), st.integers(0, 4), st.integers(0, 3), st.sampled_from(["", " ", "\u00a0", "\ufeff"]))
def test_whole_numbers_keep_their_digits(number, leading, decimals, around):
    written = around + "0" * leading + str(number) + ("." + "0" * decimals if decimals else "") + around
    assert normal_form(written) == str(number)


@settings(max_examples=40)
@given(st.lists(st.one_of(st.none(), st.text(max_size=12), st.from_regex(r"[-+]?[0-9.,eE]{0,9}", fullmatch=True))))
def test_normal_forms_are_stable_and_leave_the_column_alone(texts):
    column = pl.Series("id", texts, dtype=pl.String)
    before = column.to_list()
    forms = normal_forms(column)
    assert column.to_list() == before and forms.name == "id"
    assert [t is None for t in texts] == [f is None for f in forms]
    assert_series_equal(forms, pl.Series("id", [None if t is None else normal_form(t) for t in texts], dtype=pl.String))


@given(st.from_regex(r"[A-Za-z]{1,3}[ -]?[0-9]{1,9}", fullmatch=True))
def test_normal_forms_of_names_are_their_own(text):
    form = normal_form(text)
    assert normal_form(form) == form == normal_form(text.upper()) == normal_form(f"\ufeff {text.lower()}\u200b")


@pytest.mark.parametrize(
    ("codes", "roles"),
    [
        (["", " ", ".", "..", "?", "NA", "N/A", "na ", "nan", "NaN", "<NA>", "NULL", "UNK", "Unknown", "#N/A"], "plv"),
        (["#VALUE!", "n.a.", "\u00a0", "*", "\\N", "Unbekannt", "(blank)", "not known", "(null)"], "plv"),
        (["-", "–", "--", "None", "missing", "_", "***"], "pv"),
        (["-9", "-99", "-999", "-9999", "−9", "-9.0", "-99,0"], "pl"),
        (["0", "00", "0.0", "0,0", "000000", "-0", "-1", "-1.0"], "p"),
        (["1", "9", "999", "-2", "A", "S1", "nano", "unkempt", "0A", "-9A", "+", "x", "nobody", "10", "DK0"], ""),
    ],
)
def test_codes_for_unknown(codes, roles):
    for role in ("parent", "level", "value"):
        assert [is_unknown_code(c, role) for c in codes] == [role[0] in roles] * len(codes), role


def test_missing_values_and_numbers_of_other_types():
    assert is_unknown_code(None)
    assert are_unknown_codes(pl.Series(["A", None, "0.0"])).to_list() == [False, True, True]
    assert normal_forms(pl.Series([5.0, None, 7.5])).to_list() == ["5", None, "7.5"]
    assert normal_forms(pl.Series([2**64 - 1], dtype=pl.UInt64)).to_list() == [str(2**64 - 1)]
    assert normal_forms(pl.Series(["05", "A"], dtype=pl.Categorical)).to_list() == ["5", "a"]


def test_respelled_ids_and_how_many_ids_each_may_be():
    got = find_respelled(pl.Series(["5.0", "f1", "zz", None, "5.0", " "]), pl.Series(["F-1", "05", "F1", "5", "8"]))
    assert got.rows() == [("5.0", "05", 2), ("f1", "F1", 1)]


@pytest.mark.parametrize(
    ("text", "alone", "comma", "point"),
    [
        ("3.25", 3.25, None, 3.25),
        ("3,25", 3.25, 3.25, None),
        ("115,763", None, 115.763, 115763.0),
        ("1.157", 1.157, 1157.0, 1.157),
        ("1,205.5", 1205.5, None, 1205.5),
        ("0,123", 0.123, 0.123, None),
        ("1.205,5", 1205.5, 1205.5, None),
        ("1,205,000", 1205000.0, None, 1205000.0),
        ("1 205,5", 1205.5, 1205.5, None),
        ("1'205.5", 1205.5, None, 1205.5),
        ("−3.5", -3.5, None, -3.5),
        ("1e3", 1000.0, 1000.0, 1000.0),
        ("1.2.3", None, None, None),
        ("3;5", None, None, None),
        ("nan", None, None, None),
        ("", None, None, None),
    ],
)
def test_numbers_written_as_text(text, alone, comma, point):
    assert (parse_number(text), parse_number(text, ","), parse_number(text, ".")) == (alone, comma, point)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_that_python_writes(numbers):
    texts = pl.Series([repr(x) for x in numbers], dtype=pl.String)
    assert parse_numbers(texts).to_list() == numbers
    commas = texts.str.replace(".", ",", literal=True)
    assert parse_numbers(commas, ",").to_list() == numbers


def test_similar_ids_are_asked_about_and_others_are_not():
    ids = pl.Series(["DE12", "3-20", "K104", "K120", "21", "A1-2", "herd"])
    asked = pl.Series(["DE-012", "DE_12", "3/20", "K1O4", "\u041a120", "#21", "A12", "A-1-2", "3-2", "her-d", "320"])
    pairs = dict(find_similar(asked, ids).select("text", "id").iter_rows())
    assert pairs == {
        "DE-012": "DE12", "DE_12": "DE12", "3/20": "3-20", "K1O4": "K104", "\u041a120": "K120", "#21": "21",
        "A-1-2": "A1-2",
    }  # fmt: skip
