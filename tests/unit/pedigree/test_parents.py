"""Parents without a row as they are written: codes for unknown, other spellings, founders that are asked about."""

import re

import numpy as np
import polars as pl
import pytest

import mmgibbs.pedigree.parents
from mmgibbs.pedigree.errors import PedigreeError
from mmgibbs.pedigree.parents import find_codes
from mmgibbs.pedigree.read import ParentGroups, read_pedigree

FOUNDERS, N = 8, 44


def herd(name=lambda i: f"F{i}", sire=None, dam=None, unknown=("", "")):
    """Eight founders and their descendants; sire, dam: how parents are written, as functions of the id."""
    rng = np.random.default_rng(5)
    rows = [(name(i), *unknown) for i in range(1, FOUNDERS + 1)]
    for i in range(FOUNDERS + 1, N + 1):
        s, d = 2 * int(rng.integers(0, i // 2)) + 1, 2 * int(rng.integers(1, i // 2)) if i > 4 else 2
        rows.append((name(i), (sire or str)(name(s)), (dam or sire or str)(name(d))))
    return rows


def read(tmp_path, rows, **options):
    path = tmp_path / "pedigree.csv"
    path.write_text(
        "id,sire,dam\n" + "".join(",".join(f'"{v}"' if "," in v else v for v in row) + "\n" for row in rows)
    )
    return read_pedigree(path, **options)


def assert_same(p, tmp_path, **options):
    """The pedigree is that of the same herd with empty cells and ids in one spelling."""
    clean = read(tmp_path, herd(**options))
    assert p.ids.to_list() == clean.ids.to_list()
    assert p.sire.tolist() == clean.sire.tolist() and p.dam.tolist() == clean.dam.tolist()


@pytest.mark.parametrize(
    "unknown",
    [(".", "."), ("-", "-"), ("*", "?"), ("UNK", "UNK"), ("Unknown", "unknown "), ("-9", "-9"), ("-999", "-1"),
     ("NaN", "nan"), ("None", "NULL"), ("#N/A", "N/A"), ("\u2013", "\u2212"), ("", "UNK"), ("Unbekannt", "--")],
)  # fmt: skip
def test_other_codes_are_unknown_with_a_warning(tmp_path, unknown):
    p = read(tmp_path, herd(unknown=unknown))
    assert_same(p, tmp_path)
    (warning,) = p.warnings
    assert "taken for an unknown parent: add" in warning and all(
        repr(u.strip()) in warning for u in unknown if u < "\u2000" and u
    )
    assert not read(tmp_path, herd(unknown=unknown), unknown=("", *(u.strip() for u in unknown))).warnings


@pytest.mark.parametrize("code", ["UNK", "none", "Unknown"])
def test_an_animal_with_a_row_is_an_animal(tmp_path, code):
    """Whatever its name: also where it is a parent."""
    p = read(tmp_path, [(code, "", ""), ("a", "", ""), ("b", "a", code), ("c", "a", code)])
    assert p.n_animals == 4 and not p.warnings
    assert p.ids[int(p.dam[p.codes(pl.Series(["c"]))[0]])] == code


def test_codes_are_a_choice_and_no_recorded_animals(tmp_path):
    p = read(tmp_path, [("a", ".", "0")], unknown=())
    assert set(p.ids) == {"a", ".", "0"}
    p = read(tmp_path, herd(), founders=["UNK", ".", "F1", "new", "0.0"])
    assert set(p.ids) - {f"F{i}" for i in range(1, N + 1)} == {"new"}


@pytest.mark.parametrize("code", ["X", "XX", "999", "99999", "FOUNDER", "FREMD"])
def test_a_founder_that_may_be_a_code_is_questioned(tmp_path, code):
    p = read(tmp_path, herd(unknown=("", code)))
    (warning,) = p.warnings
    assert f"'{code}' has no row and is the dam of 8 animals" in warning and "mean an unknown parent?" in warning


def test_a_parent_without_a_row_with_many_mates_is_questioned(tmp_path):
    rows = [(f"F{i}", "", "") for i in range(1, 31)]
    rows += [(f"G{i}", f"F{i % 12 + 1}", f"F{13 + i % 18}") for i in range(60)]
    rows += [(f"H{i}", f"F{i % 12 + 1}", "F777") for i in range(40)]
    (warning,) = read(tmp_path, rows).warnings
    assert "'F777' has no row and is the dam of 40 animals, with 12 mates" in warning


@pytest.mark.parametrize(
    "rows",
    [
        # parents without rows, as in many pedigrees of records: sires of a sire model, a flock with one ram
        [(f"K{i}", f"S{i % 7}", f"D{i}") for i in range(60)],
        [(f"K{i}", "S1", f"D{i}") for i in range(60)],
        [(str(i), str(900 + i % 7), str(1000 + i)) for i in range(1, 60)],
        [(str(i), "999" if i % 3 else "998", str(1000 + i)) for i in range(1, 1999) if i not in (998, 999)],
        [(f"K{i}", ("Apollo", "Bacchus", "Castor", "Donar", "Eros", "Frey")[i % 6], f"D{i}") for i in range(60)],
        [(f"lamb {i}", "", f"ewe {i // 2}") for i in range(60)],
    ],
)
def test_founders_without_rows_are_not_questioned(tmp_path, rows):
    p = read(tmp_path, rows)
    assert not p.warnings and "without a row of their own became founders" in p.notes[-1]


@pytest.mark.parametrize("hint", ["both sire and dam", "is a sire in row"])
def test_an_animal_of_both_sexes_without_a_row_may_be_a_code(tmp_path, hint):
    rows = [("a", "X1", "X1")] if hint.startswith("both") else [("a", "X1", "d"), ("b", "s", "X1")]
    with pytest.raises(PedigreeError, match=f"{hint}.*if it means an unknown parent, add it to"):
        read(tmp_path, rows)


@pytest.mark.parametrize("spell", [lambda i: f"{i}.0", lambda i: f"{i}.00"])
@pytest.mark.parametrize("columns", ["both", "sire", "dam"])
def test_whole_numbers_written_as_floats(tmp_path, spell, columns):
    """As pandas writes a column of integers with gaps: the same animals, also where one column has no gaps."""
    plain = str
    options = {"sire": plain if columns == "dam" else spell, "dam": plain if columns == "sire" else spell}
    p = read(tmp_path, herd(name=lambda i: f"{1000 + i}", **options))
    assert_same(p, tmp_path, name=lambda i: f"{1000 + i}")
    assert not p.warnings and any("written as a number with '.0'" in note for note in p.notes)


DASHED = "De-{:03d}".format


@pytest.mark.parametrize(
    ("name", "spell"),
    [
        (DASHED, str.lower),
        (DASHED, str.upper),
        (DASHED, lambda i: i.replace("-", "\u2013")),
        (DASHED, lambda i: i.replace("-", " - ")),
        (DASHED, lambda i: f"\ufeff{i}"),
        (DASHED, lambda i: i[0] + "\u200b" + i[1:]),
        (DASHED, lambda i: "".join(chr(ord(c) + 0xFEE0) for c in i)),
        (str, lambda i: f"00{i}"),
        (lambda i: f"0{i}", lambda i: i.lstrip("0")),
    ],
)
def test_parents_in_another_spelling_are_refused(tmp_path, name, spell):
    with pytest.raises(PedigreeError, match="known sires and dams have no row as they are written, and one in another"):
        read(tmp_path, herd(name=name, sire=spell))


@pytest.mark.parametrize("most", [100_000, 1])
def test_a_few_parents_in_another_spelling_are_warned_of(tmp_path, monkeypatch, most):
    """Also by the usual spellings alone, as in large pedigrees."""
    monkeypatch.setattr(mmgibbs.pedigree.parents, "_MAX_IDS_RESPELLED", most)
    rows = herd(name=lambda i: f"DE{i}")
    rows[-1] = (rows[-1][0], rows[-1][1].lower(), rows[-1][2])
    p = read(tmp_path, rows)
    (warning,) = p.warnings
    assert warning.startswith(
        "pedigree.csv: 1 parent without a row is taken for a founder (1 time a sire or dam), and has"
    )
    assert repr(rows[-1][1]) in warning


def test_007_and_7_are_two_animals(tmp_path):
    p = read(tmp_path, [("007", "", ""), ("7", "", ""), ("07", "", ""), ("a", "007", "7"), ("b", "007", "07")])
    assert p.n_animals == 5 and not p.warnings and len(p.notes) == 1


def test_ids_with_and_without_the_zero_of_a_float(tmp_path):
    p = read(tmp_path, herd(name=str))
    ids = pl.Series("animal", ["9.0", "9", None, "9.5", "77.0", "10.00"])
    found = p.codes(ids).to_list()
    assert [None if c is None else p.ids[c] for c in found] == ["9", "9", None, None, None, "10"]
    assert p.spelled(ids).to_list() == ["9", "9", None, "9.5", "77.0", "10"]
    q = read(tmp_path, [("5", "", ""), ("5.0", "", "")])  # two animals
    assert [q.ids[c] for c in q.codes(pl.Series(["5", "5.0"]))] == ["5", "5.0"]


@pytest.mark.parametrize("code", [".", "00", "-9"])
def test_a_code_with_a_row_is_questioned_where_it_is_a_parent(tmp_path, code):
    p = read(tmp_path, [(code, "", ""), ("a", code, ""), ("b", code, "")])
    (warning,) = p.warnings
    assert f"row 2: '{code}' has a row and is thus an animal, 2 times a parent" in warning


@pytest.mark.parametrize("name", ["1.23457E+11", "2.5e+12", "9,87654E+14"])
def test_ids_that_a_spreadsheet_has_rounded_are_refused(tmp_path, name):
    with pytest.raises(PedigreeError, match="row 3: the id '.*' .column 'id'. is a number that has lost digits;"):
        read(tmp_path, [("a", "", ""), (name, "", "")])


@pytest.mark.parametrize("name", ["1e+05", "1.5E+1", "1.25E+2", "KE+11", "1E5", "12E+7"])
def test_ids_that_only_look_rounded_are_ids(tmp_path, name):
    assert name in read(tmp_path, [("a", "", ""), (name, "", "a")]).ids


def grouped(tmp_path, groups):
    path = tmp_path / "pedigree.csv"
    rows = [f"F{i},0,0,{g}" for i, g in enumerate(groups)] + ["G1,F0,F1,"]
    path.write_text("\n".join(["id,sire,dam,origin", *rows, ""]))
    return read_pedigree(path, groups=ParentGroups("origin"))


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (["F1", "west"], "1 group of unknown parents has the id of an animal \\('F1'\\): the solutions have two rows"),
        (["F1", "F0", "G1"], "3 groups of unknown parents have the id of an animal \\('F0', 'F1', 'G1'\\)"),
        (["west", "West"], "'West' and 'west' are groups of their own, but may be one in different spellings"),
        (["1990", "1990.0", "1991"], "'1990' and '1990.0' are groups"),
        (["west", "."], "'.' counts as any other group of unknown parents"),
        (["west", "UNK"], "'UNK' counts as any other group"),
    ],
)
def test_groups_are_questioned(tmp_path, groups, said):
    p = grouped(tmp_path, groups)
    assert sorted(p.groups) == sorted(groups)
    assert any(re.search(said, w) for w in p.warnings)


@pytest.mark.parametrize("groups", [["west", "east"], ["1990", "1991"], ["F", "G"], ["F2", "f3"], ["male", "female"]])
def test_groups_of_other_names_are_silent(tmp_path, groups):
    assert not grouped(tmp_path, groups).warnings


def herd_with_code(code):
    """Sixty animals; every third lacks its sire, every fourth its dam: written as the code."""
    rows = [(f"2760009{i:08d}", "", "") for i in range(20)]
    for i in range(20, 80):
        sire = code if i % 3 == 0 else rows[i % 10][0]
        dam = code if i % 4 == 0 else rows[10 + i % 10][0]
        rows.append((f"2760009{i:08d}", sire, dam))
    return rows


@pytest.mark.parametrize("code", ["99999999", "999999"])
def test_a_number_of_nines_that_is_sire_and_dam_is_found_or_refused(tmp_path, code):
    """99999999 is smaller than the ids, and both parents of one animal in twelve."""
    rows = herd_with_code(code)
    with pytest.raises(PedigreeError, match=f"'{code}' is both sire and dam of .* if it means an unknown parent, add"):
        read(tmp_path, rows)
    columns = [pl.Series([row[k] or None for row in rows], dtype=pl.String) for k in range(3)]
    assert find_codes(columns[0], columns[1:]).to_list() == [code]
    allowed = read_pedigree(tmp_path / "pedigree.csv", hermaphrodites=True)  # as `mmgibbs pedigree` reads
    (warning,) = [w for w in allowed.warnings if "does it mean an unknown parent" in w]
    assert f"'{code}' has no row and is the sire of 20 animals and the dam of 15, with" in warning
    assert read_pedigree(tmp_path / "pedigree.csv", unknown=("", code)).n_animals == 80


def test_a_parent_of_many_mates_without_a_row_is_asked_about_once(tmp_path):
    """An id like the others, that is sire and dam: a plant may be, a cow is not."""
    rows = [tuple(c.replace("CODE", "276000900000999") for c in row) for row in herd_with_code("CODE")]
    allowed = read(tmp_path, rows, hermaphrodites=True)
    (warning,) = [w for w in allowed.warnings if "does it mean an unknown parent" in w]
    assert "the sire of 20 animals and the dam of 15, with 11 mates" in warning
    assert not any("does it mean" in w for w in read(tmp_path, rows, hermaphrodites=True, unknown=()).warnings)
