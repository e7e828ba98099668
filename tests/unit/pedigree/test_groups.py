"""Unknown-parent groups from a column of the pedigree: which codes they get, and whose group is missing."""

import numpy as np
import polars as pl
import pytest
from reference import tabular

from pedigree.errors import PedigreeError, TableError
from pedigree.group_shares import group_composition, sum_squared_shares
from pedigree.groups import group_codes
from pedigree.inbreeding import inbreeding
from pedigree.read import read_pedigree
from pedigree.relationship import a_inverse_csr, relatives

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
    p = read_pedigree(file, columns={"id": "calf", "sire": "sire", "dam": "dam"}, group_column="origin")
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
    assert read_pedigree(file, columns={"id": 1, "sire": 2, "dam": 3}, header=True, group_column=4).groups == (
        "new",
        "old",
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("d1,,,new", "d1,,,", r"p.csv row 4: 'd1' has an unknown parent but no group .* 'origin'; needed a group$"),
        ("d1,,,new", "d1,,,NA", r"p.csv row 4: 'd1' has an unknown parent but no group"),
        ("c2,s1,,old", "c2,s1,,", r"p.csv row 3: 'c2' has an unknown parent but no group"),
        ("d1,,,new\ns1,,,old", "d1,,,\ns1,,,", r"p.csv row 4: 'd1' .* \(2 such animals\)"),
        (
            "s1,,,old\n",
            "",
            "p.csv: 's1' has no row of its own, so its unknown parents have no group; "
            "needed a row with a group in 'origin'",
        ),
    ],
)
def test_missing_groups_are_refused(tmp_path, old, new, message):
    file = tmp_path / "p.csv"
    file.write_text(ROWS.replace(old, new))
    with pytest.raises(PedigreeError, match=message):
        read_pedigree(file, columns={"id": "calf", "sire": "sire", "dam": "dam"}, group_column="origin")


def test_unknown_group_column(tmp_path):
    file = tmp_path / "p.csv"
    file.write_text(ROWS)
    with pytest.raises(TableError, match="p.csv: there is no column 'origins'; nearest: 'origin'"):
        read_pedigree(file, group_column="origins")


def test_sums_of_squared_shares_are_those_of_all_groups_at_once():
    rng = np.random.default_rng(3)
    n, n_groups = 60, 40
    parent = lambda i: rng.integers(i) if i > 20 and rng.random() < 0.8 else n + rng.integers(n_groups)
    sire, dam = (np.array([parent(i) for i in range(n)], np.int32) for _ in range(2))
    Q = group_composition(sire, dam, n_groups).astype(float)
    np.testing.assert_allclose(sum_squared_shares(sire, dam, n_groups), (Q**2).sum(axis=1), rtol=1e-6)
