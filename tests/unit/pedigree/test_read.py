"""From a pedigree table to checked codes: columns, ids, founders, every refusal with its row."""

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import tabular

from mmgibbs.pedigree.births import birth_numbers
from mmgibbs.pedigree.errors import PedigreeError, TableError, UnknownColumns
from mmgibbs.pedigree.inbreeding import inbreeding
from mmgibbs.pedigree.read import read_pedigree
from mmgibbs.pedigree.relationship import a_inverse_csr, relatives
from mmgibbs.pedigree.row_checks import SELFING


def read(tmp_path, text, file="pedigree.csv", **options):
    path = tmp_path / file
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_pedigree(path, **options)


def as_names(p):
    """{id: (sire, dam)} by id, None where unknown."""
    name = [*p.ids, *p.groups, None]
    return {p.ids[i]: (name[p.sire[i]], name[p.dam[i]]) for i in range(p.n_animals)}


def test_shuffled_rows_with_founders_without_rows(tmp_path):
    p = read(tmp_path, "id,sire,dam\nc,a,b\nd,x,c\n\na,0,\nb,NA,y\n")
    assert as_names(p) == {
        "a": (None, None), "b": (None, "y"), "c": ("a", "b"), "d": ("x", "c"), "x": (None, None), "y": (None, None)
    }  # fmt: skip
    assert all(p.sire[i] < i and p.dam[i] < i for i in range(6))
    assert {p.ids[i]: int(p.row[i]) for i in range(6)} == {"c": 2, "d": 3, "a": 5, "b": 6, "x": -1, "y": -1}
    assert [p.ids[int(c)] for c in p.file_order] == ["c", "d", "a", "b", "x", "y"]
    assert "2 parents without a row of their own became founders (the first: 'x')" in p.notes
    assert (p.sire.dtype, p.dam.dtype, p.row.dtype, p.file_order.dtype) == (np.int32, np.int32, np.int64, np.int32)
    assert p.birth is None and p.groups == ()


def test_order_and_ids_stay_as_they_are(tmp_path):
    p = read(tmp_path, "id,sire,dam\nz,,\na,,\nm,z,a\n")
    assert p.ids.to_list() == ["z", "a", "m"] and p.file_order.tolist() == [0, 1, 2]
    p = read(tmp_path, "id,sire,dam\n007,,\n7,007,\n1e3,,7\n")
    assert as_names(p) == {"007": (None, None), "7": ("007", None), "1e3": (None, "7")}


def test_codes_and_founders_added_on_request(tmp_path):
    p = read(tmp_path, "id,sire,dam\nc,a,b\n")
    codes = p.codes(pl.Series("animal", ["c", None, "q", "a", "c"]))
    assert codes.name == "animal" and codes.dtype == pl.Int32
    assert [None if c is None else p.ids[c] for c in codes] == ["c", None, None, "a", "c"]
    assert p.codes(pl.Series("animal", [], pl.String)).len() == 0
    p = read(tmp_path, "id,sire,dam\nc,a,b\n", founders=["new", "a", None, "new", "c", "other", "0"])
    assert set(as_names(p)) == {"a", "b", "c", "new", "other"}
    assert as_names(p)["new"] == (None, None)
    assert [p.ids[int(c)] for c in p.file_order] == ["c", "a", "b", "new", "other"]
    assert "2 animals without a row in pedigree.csv added as founders (the first: 'new')" in p.notes


def test_unknown_values_are_a_choice(tmp_path):
    text = "id,sire,dam\nc,.,X9\nd,c,-9\n"
    p = read(tmp_path, text, unknown=("X9",))
    assert as_names(p) == {"c": (None, None), "d": ("c", None)} and "X9" not in "".join((*p.notes, *p.warnings))
    p = read(tmp_path, text, unknown=(".", -9))
    assert as_names(p) == {"c": (None, "X9"), "d": ("c", None), "X9": (None, None)} and not p.warnings
    assert as_names(read(tmp_path, "id,sire,dam\nc,NA,0\n", unknown=()))["c"] == ("NA", "0")


def test_frames_and_parquet(tmp_path):
    frame = pl.DataFrame({"id": [1, 2, 3], "sire": [0, None, 1], "dam": [None, None, 2.0]})
    expected = {"1": (None, None), "2": (None, None), "3": ("1", "2")}
    assert as_names(read_pedigree(frame)) == expected
    frame.write_parquet(tmp_path / "p.parquet")
    assert as_names(read_pedigree(tmp_path / "p.parquet")) == expected
    twice = pl.DataFrame([[1, None, None], [1, 5, None]], schema=dict.fromkeys(frame.columns, pl.Int64), orient="row")
    with pytest.raises(PedigreeError, match="herd book row 2: animal '1' has a row already, row 1"):
        read_pedigree(twice, name="herd book")


def test_shuffled_text_to_inverse(tmp_path):
    """From shuffled csv to A-inverse times the tabular A = I, through ids only."""
    rng = np.random.default_rng(0)
    n = 60
    sires = [f"K{2 * rng.integers(0, i // 2)}" if i > 4 else "" for i in range(n)]
    dams = [f"K{2 * rng.integers(0, i // 2) + 1}" if i > 6 else "0" for i in range(n)]
    rows = [f"K{i},{sires[i]},{dams[i]}" for i in range(n)]
    p = read(tmp_path, "id,sire,dam\n" + "\n".join(rng.permutation(rows)) + "\n")
    by_age = np.array([p.codes(pl.Series([f"K{i}"]))[0] for i in range(n)])
    place = {int(c): i for i, c in enumerate(by_age)}
    sire, dam = ([place.get(int(parent[c]), -1) for c in by_age] for parent in (p.sire, p.dam))
    A = tabular.relationship(sire, dam)
    assert np.diag(A).max() > 1.1
    inverse = a_inverse_csr(relatives(p.sire, p.dam, inbreeding(p.sire, p.dam))).toarray()
    assert inverse[np.ix_(by_age, by_age)] @ A == pytest.approx(np.eye(n), abs=1e-10)


@pytest.mark.parametrize(
    ("header", "note"),
    [
        ("id,sire,dam", "id = 'id', sire = 'sire', dam = 'dam'"),
        ("Animal_ID,Sire ID,DAM.ID", "id = 'Animal_ID', sire = 'Sire ID', dam = 'DAM.ID'"),
        ("animal,father,mother", "id = 'animal', sire = 'father', dam = 'mother'"),
        ("Nr,sire,dam", "id = 'Nr', sire = 'sire', dam = 'dam' (the first column is taken as the id)"),
    ],
)
def test_recognised_names(tmp_path, header, note):
    p = read(tmp_path, f"{header}\nc,a,b\n")
    assert as_names(p)["c"] == ("a", "b") and p.notes[0] == f"columns recognised: {note}"


def test_recognised_names_in_any_order(tmp_path):
    p = read(tmp_path, "herd,dam,id,birth_year,sire\n1,b,c,2001,a\n")
    assert as_names(p)["c"] == ("a", "b") and p.birth[p.codes(pl.Series(["c"]))[0]] == 2001


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Nr,V,M\nc,a,b\n", "'Nr', 'V', 'M'"),
        ("animal,herd,sex,weight\nc,north,F,3\n", "'animal', 'herd', 'sex', 'weight'"),
        ("animal,weight1,weight2\nc,3,4\n", "'animal', 'weight1', 'weight2'"),  # a digit, and yet a header
        ("a,b,c,d,e,f,g,h,i\n1,2,3,4,5,6,7,8,9\n", "'g', 'h', ..."),
    ],
)
def test_a_header_without_parents_is_no_pedigree(tmp_path, text, named):
    """The phenotypes in place of the pedigree would make herds the sires of all animals."""
    said = f"{named}\nrecognised as the sire: sire, sireid, .*\nrecognised as the dam: dam, damid"
    with pytest.raises(UnknownColumns, match=f"^pedigree.csv: found no column named as a sire or a dam: .* {said}"):
        read(tmp_path, text)
    with pytest.raises(UnknownColumns, match=named):
        read(tmp_path, text, header=True)
    frame = pl.read_csv(text.encode(), infer_schema=False)
    with pytest.raises(UnknownColumns, match=named):
        read_pedigree(frame)


def test_a_header_may_be_told_or_denied(tmp_path):
    for columns in ({"id": "Nr", "sire": "V", "dam": "M"}, {"id": 1, "sire": 2, "dam": 3}):
        p = read(tmp_path, "Nr,V,M\nc,a,b\n", columns=columns, header=True)
        assert as_names(p)["c"] == ("a", "b") and "Nr" not in as_names(p)
    assert "Nr" in as_names(read(tmp_path, "Nr,V,M\nc,a,b\n", header=False))
    assert "id" in as_names(read(tmp_path, "id,sire,dam\nc,a,b\n", header=False))


@pytest.mark.parametrize("first", ["K1 0 0", "K1 V7 M8", "c a b", "x NA y", "a u v"])
def test_a_first_line_that_is_an_animal_is_no_header(tmp_path, first):
    """A digit, an unknown parent, or a value that stands elsewhere as well."""
    p = read(tmp_path, f"{first}\nK2 a b\n", "p.txt")
    assert first.split()[0] in as_names(p) and int(p.row.max()) == 2
    assert p.notes[0].startswith(
        "the first line was taken as an animal, not as column names; the first three columns are taken as"
    )


def test_columns_by_position_and_name(tmp_path):
    text = "9,c,a,b,2001\n9,d,c,b,2004\n"
    p = read(tmp_path, text, columns={"id": 2, "sire": 3, "dam": 4, "birth": 5})
    assert as_names(p)["d"] == ("c", "b") and p.row.max() == 2 and np.nanmax(p.birth) == 2004
    text = "k,i,s,d\n9,c,a,b\n9,d,c,b\n"
    p = read(tmp_path, text, columns={"id": 2, "sire": 3, "dam": 4}, header=True)
    assert as_names(p)["d"] == ("c", "b") and p.row.max() == 3
    p = read(tmp_path, "dam,sire,id\nc,a,b\n", columns={"id": "dam", "sire": "sire", "dam": "id", "birth": None})
    assert as_names(p)["c"] == ("a", "b")


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("a,b,c\n1,0,0\n", {"id": "a", "sire": "b", "dam": "d"}, "pedigree.csv: there is no column 'd'; found: 'a',"),
        ("1,0,0\n", {"id": 1, "sire": 2, "dam": 4}, "pedigree.csv: there is no column 4; found 3 columns"),
        (
            "a,b,c\n1,0,0\n",
            {"id": "a", "sire": "b"},
            "pedigree.csv: which column is the dam\\? It may be 'c'; where there are no dams, state dam: null. ",
        ),
        ("1,0,0\n", {"id": 1, "sire": 2}, "columns of the pedigree: 'dam' is missing; needed id, sire and dam \\(dam:"),
        ("a,b,c\n1,0,0\n", {"id": "a", "sire": "b", "dam": "c", "mum": "c"}, "columns of a pedigree are .*; 'mum'"),
        ("a,b,c\n1,0,0\n", {"id": "a", "sire": "b", "dam": "b"}, "pedigree.csv: id, sire and dam must be three"),
        (
            "id,sire,cow\n1,0,0\n2,1,3\n3,0,0\n",
            None,
            "pedigree.csv: which column is the dam\\? It may be 'cow'; where there are no dams, state "
            "dam: null. Its columns are 'id', 'sire', 'cow'\nrecognised as the dam: dam, damid",
        ),
        ("1,0\n2,0\n", None, "pedigree.csv: found 2 columns, needed id, sire and dam"),
    ],
)
def test_columns_that_cannot_be(tmp_path, text, columns, message):
    with pytest.raises((PedigreeError, TableError), match=message):
        read(tmp_path, text, columns=columns)


OR_UNKNOWN = "; it has no row of its own: if it means an unknown parent, add it to the values for an unknown parent"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "c,a,b\nc,a,x\nc,a,b\nc,,\n",  # row 4 is a copy
            "pedigree.csv row 3: animal 'c' has a row already, row 2: 'dam' is 'x' here and 'b' there; "
            "needed one row for each animal\n"
            "  row 5: animal 'c' has a row already, row 2: 'sire' is empty here and 'a' there, 'dam' is empty "
            "here and 'b' there",
        ),
        (
            "c,0,b\nc,,d\n",  # unknown in both rows is no difference
            "pedigree.csv row 3: animal 'c' has a row already, row 2: 'dam' is 'd' here and 'b' there; "
            "needed one row for each animal",
        ),
        ("c,a,b\nx,x,b\n", "pedigree.csv row 3: animal 'x' is its own sire; needed another animal"),
        (
            "x,y,\nz,x,\ny,z,\n",
            "pedigree.csv row 2: 'x' is its own ancestor: 'x' -> 'y' -> 'z' -> 'x' (each followed by a parent); "
            "needed parents older than their progeny",
        ),
        (
            "d,,c\ne,,c\nf,c,\n",
            "pedigree.csv row 4: 'c' is a sire in row 4 and a dam in row 2; needed one or the other" + OR_UNKNOWN,
        ),
        (
            "c,a,b\nd,b,a\n",
            "pedigree.csv row 3: 'a' is a sire in row 2 and a dam in row 3; needed one or the other (2 such ids)"
            + OR_UNKNOWN
            + "\n  row 3: 'b' is a sire in row 3 and a dam in row 2",
        ),
        (  # all that is wrong is said, and what is said already is not said again
            "c,a,b\nx,x,b\nc,a,d\n2.76E+11,a,b\n2.76E+11,a,e\n,a,b\ny,q,q\n",
            "found 5 things that must be changed:\n"
            "1. pedigree.csv row 7: column 'id' has an empty value; needed an animal's id\n"
            "2. pedigree.csv row 5: the id '2.76E+11' (column 'id') is a number that has lost digits; needed all "
            "digits of the id: in the spreadsheet, format the column of ids as text, write these ids again or take "
            "them from their source, and save it anew\n"
            "     row 6: the id '2.76E+11' (column 'id') is a number that has lost digits\n"
            "3. pedigree.csv row 4: animal 'c' has a row already, row 2: 'dam' is 'd' here and 'b' there; needed "
            "one row for each animal\n"
            "4. pedigree.csv row 3: animal 'x' is its own sire; needed another animal\n"
            "5. pedigree.csv row 8: 'q' is both sire and dam of 'y'; needed two parents" + OR_UNKNOWN,
        ),
        ("d,c,b\ne,a,a\n", "pedigree.csv row 3: 'a' is both sire and dam of 'e'; needed two parents" + OR_UNKNOWN),
        (  # lines of a crop, each row a generation of selfing: one list, and what to write
            "a,,\nb,,\nc,a,a\nd,c,c\ne,b,b\n",
            "pedigree.csv row 4: 'a' is both sire and dam of 'c'; needed two parents\n"
            "  row 5: 'c' is both sire and dam of 'd'\n"
            "  row 6: 'b' is both sire and dam of 'e'\n" + SELFING,
        ),
        (
            "a,,\nb,,\nc,a,b\nd,b,c\n",
            "pedigree.csv row 5: 'b' is a sire in row 5 and a dam in row 4; needed one or the other\n" + SELFING,
        ),
        ("c,a,b\n,a,b\n", "pedigree.csv row 3: column 'id' has an empty value; needed an animal's id"),
        (
            "c,a,b\n NA,a,b\n",
            "pedigree.csv row 3: column 'id' has 'NA', which means an unknown parent; needed an animal's id",
        ),
    ],
)
def test_impossible_pedigrees(tmp_path, text, message):
    with pytest.raises(PedigreeError) as error:
        read(tmp_path, "id,sire,dam\n" + text)
    assert str(error.value) == message


def test_hermaphrodites_on_request(tmp_path):
    p = read(tmp_path, "id,sire,dam\nc,a,b\nd,c,a\ne,d,d\n", hermaphrodites=True)
    assert as_names(p)["e"] == ("d", "d")
    code = p.codes(pl.Series(["e"]))[0]
    assert inbreeding(p.sire, p.dam)[code] == 0.5 * (1 + 0.25)  # selfing of d, whose parents a and c share a half
    with pytest.raises(PedigreeError, match="row 2: animal 'c' is its own sire"):
        read(tmp_path, "id,sire,dam\nc,c,b\n", hermaphrodites=True)


def test_a_long_loop_is_shortened(tmp_path):
    n = 100
    text = "id,sire,dam\n" + "".join(f"k{i},k{(i + 1) % n},\n" for i in range(n))
    with pytest.raises(PedigreeError) as error:
        read(tmp_path, text)
    assert "'k0' -> 'k1' -> " in str(error.value) and " -> ... -> " in str(error.value) and len(str(error.value)) < 400


def test_numbers_of_births():
    dates = ["04.03.2011", "4.3.2011", "2011-03-04", "2011", None, "3/4/2011", "31.02.2011", "1999.5", "2000-01-01"]
    found = birth_numbers(pl.Series([*dates, "2000-12-31T10:00"])).to_list()
    day = pytest.approx(2011 + 62 / 366)
    assert found == [day, day, day, 2011, None, None, None, 1999.5, 2000, 2000 + 365 / 366]  # 3/4 may be April or March


def test_years_of_two_digits_are_refused(tmp_path):
    short = ["31.12.99", "11.03.04", "4.3.20", "04.03.11 12:30", "99-12-31", "04.03.201", "04.03.20111", "2011-03-041"]
    assert birth_numbers(pl.Series(short)).null_count() == len(short)
    whole = birth_numbers(pl.Series(["4.3.2011 12:30", "2011-3-4 12:30", "04.03.2011"]))
    assert whole.to_list() == [pytest.approx(2011 + 62 / 366)] * 3
    with pytest.raises(PedigreeError, match="row 4: column 'byear' has '31.12.99'; needed a year"):
        read(tmp_path, YOUNG.replace("2001", "31.12.99"), columns=COLUMNS)


def test_birth_is_checked_and_kept(tmp_path):
    p = read(tmp_path, "id,sire,dam,born\nX7,X9,b,2009\nX9,,,2006\nX8,X7,,\n")
    birth = dict(zip(p.ids, p.birth))
    assert (birth["X7"], birth["X9"]) == (2009, 2006) and np.isnan(birth["X8"]) and np.isnan(birth["b"])


YOUNG = "id,sire,dam,byear\nX7,X9,X8,2009\nX9,,,2011\nX8,,,2001\n"
COLUMNS = {"id": "id", "sire": "sire", "dam": "dam", "birth": "byear"}


def test_a_parent_younger_than_its_progeny(tmp_path):
    with pytest.raises(PedigreeError) as error:
        read(tmp_path, YOUNG, columns=COLUMNS)
    said = "pedigree.csv row 2: sire 'X9' is younger than its calf 'X7' (born 2011 > 2009); "
    assert str(error.value) == said + "needed parents older than their progeny"
    with pytest.raises(PedigreeError, match="column 'byear' was recognised as the birth: name the columns to leave"):
        read(tmp_path, YOUNG)
    assert read(tmp_path, YOUNG, columns={k: COLUMNS[k] for k in ("id", "sire", "dam")}).birth is None
    swapped = YOUNG.replace("X9,X8", "X8,X9")
    with pytest.raises(PedigreeError, match=r"row 2: dam 'X9' is younger than its calf 'X7' \(born 2011 > 2009\)"):
        read(tmp_path, swapped, columns=COLUMNS)


def test_births_may_be_unknown_or_equal(tmp_path):
    p = read(tmp_path, YOUNG.replace("2011", "2009"))
    assert p.notes[-1] == "same birth as the sire, tolerated: 1 animal"
    for unknown in ("", "0", "NA"):
        birth = read(tmp_path, YOUNG.replace("2009", unknown)).birth
        assert np.isnan(birth).sum() == 1 and np.nanmax(birth) == 2011


def test_dates_of_birth(tmp_path):
    later = YOUNG.replace("2009", "2009-04-30").replace("2011", "2009-05-01").replace("2001", "2001-01-01")
    with pytest.raises(PedigreeError, match=r"\(born 2009-05-01 > 2009-04-30\)"):
        read(tmp_path, later)
    p = read(tmp_path, later.replace("2009-05-01", "2009-04-29"))
    assert np.sort(p.birth) == pytest.approx([2001, 2009 + 118 / 366, 2009 + 119 / 366])


def test_births_that_are_none(tmp_path):
    bad = YOUNG.replace("2011", "spring")
    needed = "needed a year (a number) or a date as 2011-03-04 or 04.03.2011"
    message = f"pedigree.csv row 3: column 'byear' has 'spring', {needed}"
    with pytest.raises(PedigreeError) as error:
        read(tmp_path, bad, columns=COLUMNS)
    assert str(error.value) == message.replace("', needed", "'; needed")
    p = read(tmp_path, bad)  # recognised, not asked for: a slip among births, which are not used, is a warning
    said = f"births are not used: {message} ({{}} of 3 values cannot be read)"
    assert p.birth is None and p.warnings[-1] == said.format(1)
    p = read(tmp_path, bad.replace("2009", "autumn").replace("row 3", "row 2"))  # hardly a column of births
    assert p.birth is None and not p.warnings
    assert p.notes[-1] == said.format(2).replace("row 3", "row 2").replace("spring", "autumn")


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(*[st.sampled_from(["0", "", "a", "b", "c", "d", "e", "f "])] * 3), min_size=1, max_size=7))
def test_read_right_or_refused_with_the_reason(tmp_path, rows):
    """Random tables: what is accepted is the table; what is refused has the fault that the message names (judged
    independently)."""
    text = "id,sire,dam\n" + "".join(f"{','.join(v.strip() for v in row)}\n" for row in rows)
    rows = [row for row in (tuple(v.strip() for v in row) for row in rows) if any(row)]  # blank ones are read past
    if not rows:
        with pytest.raises(TableError, match="has a header line but no rows"):
            read(tmp_path, text)
        return
    ids = [r[0] for r in rows]
    parents = {i: [p for p in (s, d) if p not in ("", "0")] for i, s, d in rows}
    sires, dams = ({r[c] for r in rows} - {"", "0"} for c in (1, 2))

    def ancestors(i):
        found, left = set(), [i]
        while left:
            for p in parents.get(left.pop(), []):
                if p not in found:
                    found.add(p)
                    left.append(p)
        return found

    faults = {
        "needed an animal's id": any(i in ("", "0") for i in ids),
        "has a row already": len(set(ids)) < len({tuple("" if v in ("", "0") else v for v in r) for r in rows}),
        "is its own": any(i in ancestors(i) for i in ids),
        "sire": bool(sires & dams),
    }
    try:
        p = read(tmp_path, text)
    except PedigreeError as error:
        assert any(faults[what] for what in faults if what in str(error)), str(error)
        return
    assert not any(faults.values())
    expected = {i: tuple(None if v in ("", "0") else v for v in (s, d)) for i, s, d in rows}
    expected |= dict.fromkeys((sires | dams) - set(ids), (None, None))
    assert as_names(p) == expected
    assert [p.ids[int(c)] for c in p.file_order][: len(set(ids))] == list(dict.fromkeys(ids))  # copies are taken once
