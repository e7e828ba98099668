"""Unknown-parent groups from a column of the pedigree or in place of parents: codes, refusals, how they are found."""

import numpy as np
import polars as pl
import pytest
from reference import tabular

from mmgibbs.pedigree.errors import PedigreeError
from mmgibbs.pedigree.group_columns import find_group_column
from mmgibbs.pedigree.group_names import find_group_names, match_groups
from mmgibbs.pedigree.group_shares import group_composition, sum_squared_shares
from mmgibbs.pedigree.groups import group_codes
from mmgibbs.pedigree.inbreeding import inbreeding
from mmgibbs.pedigree.read import ParentGroups, read_pedigree
from mmgibbs.pedigree.relationship import a_inverse_csr, relatives

ROWS = "calf,sire,dam,origin\nc1,s1,d1,\nc2,s1,,old\nd1,,,new\ns1,,,old\n"


def test_codes_by_name():
    sire, dam, names, without = group_codes(
        np.array([-1, -1, 0], np.int32), np.array([-1, -1, -1], np.int32), pl.Series(["b", "a", None], dtype=pl.String)
    )
    assert names == ("a", "b")
    assert sire.tolist() == [4, 3, 0] and dam.tolist() == [4, 3, -1] and without.tolist() == [2]
    assert sire.dtype == dam.dtype == np.int32


def test_groups_take_the_place_of_unknown_parents(tmp_path):
    file = tmp_path / "p.csv"
    file.write_text(ROWS)
    p = read_pedigree(file, columns={"id": "calf", "sire": "sire", "dam": "dam"}, groups=ParentGroups("origin"))
    assert p.groups == ("new", "old") and p.n_groups == 2 and p.n_animals == 4
    code = dict(zip(p.ids, range(4)))
    of = {"new": 4, "old": 5}
    assert (p.sire[code["c2"]], p.dam[code["c2"]]) == (code["s1"], of["old"])
    assert (p.sire[code["d1"]], p.dam[code["d1"]]) == (of["new"], of["new"])
    assert (p.sire[code["c1"]], p.dam[code["c1"]]) == (code["s1"], code["d1"])
    F = inbreeding(p.sire, p.dam)
    qp = a_inverse_csr(relatives(p.sire, p.dam, F, p.n_groups)).toarray()
    assert qp == pytest.approx(tabular.relationship_inverse(p.sire, p.dam, 2), abs=1e-12)


def test_group_of_an_animal_with_both_parents_is_not_looked_at(tmp_path):
    file = tmp_path / "p.csv"
    file.write_text(ROWS.replace("c1,s1,d1,", "c1,s1,d1,nowhere"))
    read = read_pedigree(file, columns={"id": 1, "sire": 2, "dam": 3}, header=True, groups=ParentGroups(4))
    assert read.groups == ("new", "old")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("d1,,,new", "d1,,,", r"p.csv row 4: 'd1' has an unknown parent but no group .* 'origin'; needed a group$"),
        ("d1,,,new", "d1,,,NA", r"p.csv row 4: 'd1' has an unknown parent but no group"),
        ("c2,s1,,old", "c2,s1,,", r"p.csv row 3: 'c2' has an unknown parent but no group"),
        ("d1,,,new\ns1,,,old", "d1,,,\ns1,,,", r"p.csv row 4: 'd1' .* \(2 such animals\)"),
        ("s1,,,old\n", "", "p.csv: 's1' has no row of its own, so its unknown parents have no group; needed a row"),
    ],
)
def test_missing_groups_are_refused(tmp_path, old, new, message):
    file = tmp_path / "p.csv"
    file.write_text(ROWS.replace(old, new))
    with pytest.raises(PedigreeError, match=message):
        read_pedigree(file, columns={"id": "calf", "sire": "sire", "dam": "dam"}, groups=ParentGroups("origin"))


def test_sums_of_squared_shares_are_those_of_all_groups_at_once():
    rng = np.random.default_rng(3)
    n, n_groups = 60, 40
    parent = lambda i: rng.integers(i) if i > 20 and rng.random() < 0.8 else n + rng.integers(n_groups)
    sire, dam = (np.array([parent(i) for i in range(n)], np.int32) for _ in range(2))
    Q = group_composition(sire, dam, n_groups).astype(float)
    np.testing.assert_allclose(sum_squared_shares(sire, dam, n_groups), (Q**2).sum(axis=1), rtol=1e-6)


# the same pedigree with the groups in place of parents and in a column
PARENTS = "id,sire,dam\nc1,s1,d1\nc2,s1,G_old\nd1,G_new,G_new\ns1,G_old,G_old\n"
COLUMN = "id,sire,dam,origin\nc1,s1,d1,\nc2,s1,,G_old\nd1,,,G_new\ns1,,,G_old\n"


def write(tmp_path, text):
    (tmp_path / "p.csv").write_text(text)
    return tmp_path / "p.csv"


@pytest.mark.parametrize("names", [("G_old", "G_new"), ("G_*",)])
def test_groups_in_place_of_parents_are_those_of_a_column(tmp_path, names):
    a = read_pedigree(write(tmp_path, PARENTS), groups=ParentGroups(parents=names))
    b = read_pedigree(write(tmp_path, COLUMN), groups=ParentGroups("origin"))
    assert a.ids.to_list() == b.ids.to_list() and a.groups == b.groups == ("G_new", "G_old")
    np.testing.assert_array_equal(a.sire, b.sire)
    np.testing.assert_array_equal(a.dam, b.dam)
    assert a.warnings == ()


def test_groups_of_sire_and_dam_and_codes_that_are_groups(tmp_path):
    file = write(tmp_path, PARENTS.replace("d1,G_new,G_new", "d1,G_old,G_new"))
    read = read_pedigree(file, groups=ParentGroups(parents=["G_*"]))
    d1 = read.ids.to_list().index("d1")
    assert [read.groups[read.sire[d1] - 4], read.groups[read.dam[d1] - 4]] == ["G_old", "G_new"]
    text = PARENTS.replace("G_old", "-1").replace("G_new", "0")
    assert read_pedigree(write(tmp_path, text), groups=ParentGroups(parents=["-*", "0"])).groups == ("-1", "0")


def test_a_star_is_one_character_or_more():
    found = match_groups(pl.Series(["-", "-1", "x-1", "-.5", None]), ["-*"])
    assert found.to_list() == [False, True, False, True, False]


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
        read_pedigree(write(tmp_path, PARENTS.replace(old, new)), groups=ParentGroups(parents=names))


def test_a_column_and_names_are_refused(tmp_path):
    with pytest.raises(PedigreeError, match="expected one of them"):
        read_pedigree(write(tmp_path, COLUMN), groups=ParentGroups("origin", ["G*"]))


def test_without_need_of_groups_a_parent_stays_unknown(tmp_path):
    text = PARENTS.replace("d1,G_new,G_new", "d1,0,G_new")
    read = read_pedigree(write(tmp_path, text), groups=ParentGroups(parents=["G_*"], required=False))
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
        (("-1", "-2", "-3"), ("-*",)),
        (("Angus", "Jersey"), ("Angus", "Jersey")),
        (("old10", "old20"), ("old*",)),
        (("-1", "-9", "-99"), ()),  # codes for unknown
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
    rows = "".join(f"A{i},-{i % 3 + 1},-{i % 3 + 1}\n" for i in range(60))
    read = read_pedigree(write(tmp_path, f"id,sire,dam\n{rows}"), hermaphrodites=True)
    assert len(read.warnings) == 1 and "look like genetic groups" in read.warnings[0]


def test_column_of_groups(tmp_path):
    rows = "".join(f"A{i},,,{'hill' if i % 2 else 'vale'}\n" for i in range(8))
    file = write(tmp_path, f"id,sire,dam,origin\n{rows}B1,A1,A2,\n")
    assert find_group_column(file, read_pedigree(file)) == "origin"
    file = write(tmp_path, f"id,sire,dam,origin\n{rows}B1,A1,,\n")  # an unknown parent without a group
    assert find_group_column(file, read_pedigree(file)) is None
