"""Which column of a pedigree is which: by name, by values, by place; a header taken for an animal, and the reverse."""

import polars as pl
import pytest

from mmgibbs.pedigree.errors import PedigreeError, TableError, UnknownColumns
from mmgibbs.pedigree.read import read_pedigree

# ids, sires, dams; the rows are not in the order of the ids
TRUE = [
    ("1", "", ""), ("2", "", ""), ("3", "", ""), ("4", "", ""), ("7", "3", "4"), ("5", "1", "2"), ("6", "1", "4"),
    ("8", "7", "2"), ("10", "7", "6"), ("9", "3", "6"),
]  # fmt: skip
EXPECTED = {i: (s or None, d or None) for i, s, d in TRUE}


def as_names(p):
    name = [*p.ids, None]
    return {p.ids[i]: (name[p.sire[i]], name[p.dam[i]]) for i in range(p.n_animals)}


def read(tmp_path, header, extra, order=("id", "sire", "dam"), name=str, **options):
    """A csv of TRUE: extra columns (header, values) by position; order: of the roles in header."""
    columns = {"id": [name(i) for i, _, _ in TRUE], "sire": [name(s) if s else "" for _, s, _ in TRUE]}
    columns["dam"] = [name(d) if d else "" for _, _, d in TRUE]
    table = [list(columns[role]) for role in order]
    names = list(header)
    for position, column_name, values in extra:
        names.insert(position, column_name)
        table.insert(position, [str(v) for v in values])
    path = tmp_path / "pedigree.csv"
    path.write_text("\n".join(",".join(row) for row in [names, *zip(*table, strict=True)]) + "\n")
    return read_pedigree(path, **options)


def read_text(tmp_path, text, **options):
    (tmp_path / "pedigree.csv").write_text(text)
    return read_pedigree(tmp_path / "pedigree.csv", **options)


ROWS = list(range(1, 11))


@pytest.mark.parametrize(
    "row_numbers", ["", '""', "Unnamed: 0", "...1", "rownames", "row.names", "X", "n", "Obs", "_N_", "index", "id"]
)
@pytest.mark.parametrize("ids", ["ewe", "name", "AnimalID", "individual_id"])
def test_row_numbers_are_no_ids(tmp_path, row_numbers, ids):
    """As R, Excel and SAS write them; both columns have all parents, as the ids are 1 to 10 in another order."""
    p = read(tmp_path, [ids, "sire", "dam"], [(0, row_numbers, ROWS)])
    if row_numbers == "id" and ids in ("ewe", "name", "vaca"):  # by its name, and questioned
        assert as_names(p) != EXPECTED
        assert f"'id' was taken by its name and numbers the rows, but '{ids}'" in p.warnings[0]
        return
    assert as_names(p) == EXPECTED
    alone = ids in ("animal", "AnimalID", "Tag", "individual_id") and row_numbers != "id"  # one recognised name
    assert alone or any("which column is the id? Column" in w for w in p.warnings)


def test_row_numbers_from_0(tmp_path):
    assert as_names(read(tmp_path, ["ewe", "sire", "dam"], [(0, "", range(10))])) == EXPECTED


@pytest.mark.parametrize("name", [lambda i: f"F{i}", lambda i: f"0{i}", lambda i: str(1000 + int(i))])
def test_ids_are_the_column_that_has_the_parents(tmp_path, name):
    for extra in (
        [(0, "breed", ["AA"] * 5 + ["BB"] * 5)],
        [(0, "", ROWS)],
        [(0, "herd", [1, 1, 2, 2, 1, 3, 3, 3, 1, 2]), (1, "ear", [f"E{i}" for i in ROWS])],
        [(4, "line", [f"L{i}" for i in ROWS])],
        [(0, "n", ROWS), (4, "sex", list("MFMFMMFMFM"))],
    ):
        p = read(tmp_path, ["nr", "sire", "dam"], extra, name=name)
        assert as_names(p) == {name(i): tuple(v and name(v) for v in parents) for i, parents in EXPECTED.items()}
        assert "column 'nr' is taken as the id" in p.notes[0] and not p.warnings


def test_other_tables_say_which_of_two_columns_is_the_id(tmp_path):
    """No parent has a row, and both columns tell all rows apart."""
    path = tmp_path / "pedigree.csv"
    path.write_text("ear,nr,sire,dam\n" + "".join(f"E{i},K{i},S{i % 3},D{i}\n" for i in range(9)))
    with pytest.raises(UnknownColumns, match="which column is the id, 'ear' or 'nr'\\? Its columns are"):
        read_pedigree(path)
    for letter in "EK":
        p = read_pedigree(path, recorded=lambda letter=letter: pl.Series([f"{letter}1", f"{letter}2"]))
        assert f"{letter}1" in p.ids
    assert "K1" in read_pedigree(path, columns={"id": "nr"}).ids  # the parents by their names


def test_two_columns_that_may_be_the_ids_are_refused(tmp_path):
    shuffled = [3, 1, 4, 2, 5, 10, 6, 7, 9, 8]
    with pytest.raises(UnknownColumns, match="which column is the id, 'ear' or 'nr'"):
        read(tmp_path, ["nr", "sire", "dam"], [(0, "ear", shuffled)])
    assert as_names(read(tmp_path, ["nr", "sire", "dam"], [(0, "ear", shuffled)], columns={"id": "nr"})) == EXPECTED


def test_numbers_of_rows_are_ids_where_no_other_column_has_the_parents(tmp_path):
    """A renumbered pedigree with the old names beside it."""
    p = read_text(tmp_path, "nr,name,sire,dam\n1,Ada,0,0\n2,Bob,0,0\n3,Cid,2,1\n4,Dot,3,1\n")
    assert as_names(p)["4"] == ("3", "1") and not p.warnings


def test_ids_that_lack_the_parents_which_another_column_has(tmp_path):
    """A recognised name of ids that are none: those of the table's rows, not of the animals."""
    extra = [(0, "id", [f"R{i}" for i in ROWS])]
    with pytest.raises(UnknownColumns, match="which column is the id\\? Column 'id' was taken, .* 0 of the 6 .* 'ewe'"):
        read(tmp_path, ["ewe", "sire", "dam"], extra)
    p = read(tmp_path, ["ewe", "sire", "dam"], extra, columns={"id": "id", "sire": "sire", "dam": "dam"})
    assert any("which column is the id?" in w for w in p.warnings)  # as stated, and said


def test_a_duplicate_says_which_column_was_taken(tmp_path):
    with pytest.raises(PedigreeError, match=r"\(columns taken: id = 'nr', sire = 'sire', dam = 'dam'; name them if"):
        read_text(tmp_path, "nr,sire,dam\n1,0,0\n1,5,0\n")
    with pytest.raises(PedigreeError, match="columns taken: id = '1', sire = '2', dam = '3'"):  # as PLINK writes .fam
        read_text(tmp_path, "FAM1 1 0 0 1\nFAM1 2 0 0 2\nFAM1 3 1 2 1\n", separator=" ")


@pytest.mark.parametrize(("header", "role"), [("id,dam", "sire"), ("animal,mother", "sire"), ("id,father", "dam")])
def test_a_pedigree_of_one_parent(tmp_path, header, role):
    path = tmp_path / "pedigree.csv"
    path.write_text(f"{header}\n1,\n2,\n3,1\n4,2\n5,3\n")
    p = read_pedigree(path)
    parent, other = (p.dam, p.sire) if role == "sire" else (p.sire, p.dam)
    assert (other == -1).all() and p.ids[int(parent[p.codes(pl.Series(["5"]))[0]])] == "3"
    assert f"found no column of {role}s" in p.warnings[0] and f"State {role}: null" in p.warnings[0]
    names = dict(zip(("id", "dam" if role == "sire" else "sire"), header.split(","), strict=True)) | {role: None}
    stated = read_pedigree(path, columns=names)
    assert not stated.warnings and (stated.sire == p.sire).all() and (stated.dam == p.dam).all()
    positions = read_pedigree(
        path, columns={r: i for i, r in enumerate(names, 1) if names[r]} | {role: None}, header=True
    )
    assert (positions.sire == p.sire).all() and (positions.dam == p.dam).all()


@pytest.mark.parametrize("column", ["stallion", "sex", "herd"])
def test_another_column_may_be_the_missing_parent(tmp_path, column):
    path = tmp_path / "pedigree.csv"
    path.write_text(f"id,dam,{column}\n1,,\n2,,\n3,1,2\n")
    said = f"which column is the sire\\? It may be '{column}'; where there are no sires, state sire: null"
    with pytest.raises(UnknownColumns, match=said):
        read_pedigree(path)
    p = read_pedigree(path, columns={"id": "id", "sire": None, "dam": "dam"})
    assert (p.sire == -1).all() and not p.warnings


def test_grandsires_are_no_dams_and_one_parent_is_needed(tmp_path):
    with pytest.raises(UnknownColumns, match="maternal grandsires .* a dam of its own"):
        read_text(tmp_path, "id,sire,mgs\n1,,\n2,1,9\n")
    with pytest.raises(PedigreeError, match="neither a sire nor a dam"):
        read_text(tmp_path, "id,sire,dam\n1,,\n", columns={"id": "id", "sire": None, "dam": None})


POSITIONS = {"id": 1, "sire": 2, "dam": 3}


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("id,sire,dam", "F1,,\nF2,,\nG1,F1,F2\n"),
        ("Nr,V,M", "1,0,0\n2,0,0\n3,1,2\n"),
        ("tier,vater,mutter", "DE1,,\nDE2,.,.\nDE3,DE1,DE2\n"),
    ],
)
def test_a_header_above_positions_is_no_animal(tmp_path, header, rows):
    p = read_text(tmp_path, f"{header}\n{rows}", columns=POSITIONS)
    assert p.n_animals == 3 and not set(header.split(",")) & set(p.ids) and p.row.min() == 2
    assert "was taken as a header" in p.warnings[0]
    stated = read_pedigree(tmp_path / "pedigree.csv", columns=POSITIONS, header=True)
    assert stated.warnings == p.warnings[1:]


@pytest.mark.parametrize(
    "rows",
    [
        "F1,,\nF2,,\nG1,F1,F2\n",
        "Ada,,\nBob,,\nCid,Bob,Ada\n",
        "Ada,NA,NA\n12,NA,NA\n13,12,Ada\n",
        "Ada,Bob,Eve\nDot,Bob,Ada\n",
    ],
)
def test_a_first_animal_below_positions_stays(tmp_path, rows):
    p = read_text(tmp_path, rows, columns=POSITIONS)
    assert rows.split(",")[0] in p.ids and not p.warnings
    assert p.ids.to_list() == read_text(tmp_path, rows, columns=POSITIONS, header=False).ids.to_list()


def test_what_is_stated_of_the_header_holds_and_is_questioned(tmp_path):
    for columns in (POSITIONS, None):
        p = read_text(tmp_path, "id,sire,dam\nF1,,\nF2,,\nG1,F1,F2\n", columns=columns, header=False)
        assert "id" in p.ids and "as stated, but has names of columns" in p.warnings[0]
    with pytest.raises(TableError, match="columns 2 and 3 are both named '0': is the first line a row of the table?"):
        read_text(tmp_path, "F1,0,0\nF2,0,0\nG1,F1,F2\n", columns=POSITIONS, header=True)
    p = read_text(tmp_path, "F1,0,NA\nF2,0,0\nG1,F1,F2\n", columns=POSITIONS, header=True)
    assert "as stated, but looks like an animal ('F1', '0', 'NA')" in p.warnings[0]


@pytest.mark.parametrize("role", ["sire", "dam"])
def test_of_two_columns_named_as_a_parent_the_one_with_animals_is_taken(tmp_path, role):
    """A column 'sire' has breeds, and 'sire_id' the sires; where neither has animals, the reader is asked."""
    header = [f"{role}_id" if name == role else name for name in ("id", "sire", "dam")]
    found = read(tmp_path, header, [(1, role, ["AN", "HE"] * 5)])
    assert as_names(found) == EXPECTED
    assert any(f"'{role}_id' is the {role}: " in note and "values are ids of animals" in note for note in found.notes)
    plain = read(tmp_path, ("id", "sire", "dam"), [(3, f"{role}_id", ["AN", "HE"] * 5)])
    assert as_names(plain) == EXPECTED and not any("which column" in warning for warning in plain.warnings)


def test_two_columns_of_a_parent_without_animals_are_questioned(tmp_path):
    text = "id,sire,sire_id,dam\n" + "".join(f"c{i},AN{i % 2},s{i % 3},d{i}\n" for i in range(6))
    found = read_text(tmp_path, text)
    said = "which column is the sire? 'sire' was taken, and 'sire_id' may be it too: name the columns if that is wrong"
    assert any(said in warning for warning in found.warnings)
