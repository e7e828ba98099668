"""Unknown-parent groups in place of parents: what they become, what is refused, and when they are found."""

import numpy as np
import polars as pl
import pytest

from pedigree.errors import PedigreeError
from pedigree.group_columns import find_group_column
from pedigree.group_names import find_group_names, match_groups
from pedigree.read import read_pedigree

# the same pedigree with the groups in place of parents and in a column
PARENTS = "id,sire,dam\nc1,s1,d1\nc2,s1,G_old\nd1,G_new,G_new\ns1,G_old,G_old\n"
COLUMN = "id,sire,dam,origin\nc1,s1,d1,\nc2,s1,,G_old\nd1,,,G_new\ns1,,,G_old\n"


def write(tmp_path, text):
    (tmp_path / "p.csv").write_text(text)
    return tmp_path / "p.csv"


@pytest.mark.parametrize("names", [("G_old", "G_new"), ("G_*",)])
def test_groups_in_place_of_parents_are_those_of_a_column(tmp_path, names):
    a = read_pedigree(write(tmp_path, PARENTS), group_parents=names)
    b = read_pedigree(write(tmp_path, COLUMN), group_column="origin")
    assert a.ids.to_list() == b.ids.to_list() and a.groups == b.groups == ("G_new", "G_old")
    np.testing.assert_array_equal(a.sire, b.sire)
    np.testing.assert_array_equal(a.dam, b.dam)
    assert a.warnings == ()


def test_sire_and_dam_may_have_two_groups(tmp_path):
    read = read_pedigree(write(tmp_path, PARENTS.replace("d1,G_new,G_new", "d1,G_old,G_new")), group_parents=["G_*"])
    d1 = read.ids.to_list().index("d1")
    assert [read.groups[read.sire[d1] - 4], read.groups[read.dam[d1] - 4]] == ["G_old", "G_new"]


def test_codes_can_be_groups(tmp_path):
    text = PARENTS.replace("G_old", "-1").replace("G_new", "0")
    assert read_pedigree(write(tmp_path, text), group_parents=["-*", "0"]).groups == ("-1", "0")


def test_a_star_is_one_character_or_more():
    assert match_groups(pl.Series(["-", "-1", "x-1", "-.5", None]), ["-*"]).to_list() == [
        False,
        True,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("old", "new", "names", "message"),
    [
        ("c2,s1,G_old", "c2,s1,", ["G_*"], "p.csv row 3: the dam of 'c2' is unknown and no group; .* such as 'G_new'"),
        ("d1,G_new,G_new", "d1,0,0", ["G_*"], "p.csv row 4: the sire of 'd1' is unknown and no group"),
        ("s1,G_old,G_old\n", "", ["G_*"], "p.csv: the sire of 's1', which has no row of its own, is unknown"),
        ("c1,", "G_old,", ["G_*"], r"p.csv row 2: 'G_old' is one of .* \('G_\*'\), and has a row as an animal"),
        ("c1,", "c1,", ["G_*", "H_*"], r"p.csv: .*: no sire or dam is called 'H_\*'"),
    ],
)
def test_refused(tmp_path, old, new, names, message):
    with pytest.raises(PedigreeError, match=message):
        read_pedigree(write(tmp_path, PARENTS.replace(old, new)), group_parents=names)


def test_a_column_and_names_are_refused(tmp_path):
    with pytest.raises(PedigreeError, match="expected one of them"):
        read_pedigree(write(tmp_path, COLUMN), group_parents=["G*"], group_column="origin")


def test_without_need_of_groups_a_parent_stays_unknown(tmp_path):
    text = PARENTS.replace("d1,G_new,G_new", "d1,0,G_new")
    read = read_pedigree(write(tmp_path, text), group_parents=["G_*"], require_groups=False)
    d1 = read.ids.to_list().index("d1")
    assert read.sire[d1] == -1 and read.dam[d1] == 4


def parents(*names, times=30, both=True):
    """Sires and dams without a row, each name `times` times."""
    sires = [n for n in names for _ in range(times)]
    return [pl.Series("sire", sires), pl.Series("dam", sires if both else [f"d{i}" for i in range(len(sires))])]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("UPG_2000", "UPG_2010"), ("UPG_*",)),
        (("G1", "G2"), ("G*",)),
        (("-1", "-2", "-3"), ("-*",)),
        (("Angus", "Jersey"), ("Angus", "Jersey")),
        (("old10", "old20"), ("old*",)),
        (("-1", "-9", "-99"), ()),  # codes for unknown
        (("G1",), ()),  # one parent
        (("unknown", "NA"), ()),
    ],
)
def test_groups_are_found(names, expected):
    assert find_group_names(pl.Series(["A1", "A2"]), parents(*names)) == expected


def test_what_animals_are_called_is_no_group():
    assert find_group_names(pl.Series(["G10", "G11"]), parents("G1", "G2")) == ()
    assert find_group_names(pl.Series(["ann", "bob"]), parents("Angus", "Jersey")) == ()  # names have no digits
    assert find_group_names(pl.Series(["A1"]), parents("old10", "old20", both=False)) == ()  # sires alone
    assert find_group_names(pl.Series(["A1"]), parents("G1", "G2", times=1, both=False)) == ()  # founders


def test_possible_groups_are_said_with_a_warning(tmp_path):
    rows = "".join(f"A{i},UPG_{i % 3},UPG_{i % 3}\n" for i in range(60))
    read = read_pedigree(write(tmp_path, f"id,sire,dam\n{rows}"), hermaphrodites=True)
    assert read.possible_groups == ("UPG_*",)
    assert read.warnings[0].startswith("p.csv: 'UPG_0' (40 times), 'UPG_1' (40 times), 'UPG_2' (40 times) look like")
    with pytest.raises(PedigreeError, match=r"looks like a genetic group: if they are, give .*: \[UPG_\*\]"):
        read_pedigree(tmp_path / "p.csv")


def test_codes_among_possible_groups_are_not_said_to_be_unknown(tmp_path):
    rows = "".join(f"A{i},-{i % 3 + 1},-{i % 3 + 1}\n" for i in range(60))
    read = read_pedigree(write(tmp_path, f"id,sire,dam\n{rows}"), hermaphrodites=True)
    assert len(read.warnings) == 1 and "look like genetic groups" in read.warnings[0]


def test_column_of_groups(tmp_path):
    rows = "".join(f"A{i},,,{'hill' if i % 2 else 'vale'}\n" for i in range(8))
    file = write(tmp_path, f"id,sire,dam,origin\n{rows}B1,A1,A2,\n")
    assert find_group_column(file, read_pedigree(file)) == "origin"
    file = write(tmp_path, f"id,sire,dam,origin\n{rows}B1,A1,,\n")  # an unknown parent without a group
    assert find_group_column(file, read_pedigree(file)) is None
