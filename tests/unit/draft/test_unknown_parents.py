"""`mmgibbs init` on pedigrees that write unknown parents as codes, as groups among parents, or in a column."""

import pytest
import yaml
from helpers.support import ROOT

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.errors import ConfigError, DataError

CODES = (".", "-9", "NA", "0", "", "unknown")


@pytest.fixture
def records(tmp_path):
    rows = "".join(f"A{i},{'FM'[i % 2]},{200 + i % 7 + 0.5}\n" for i in range(60))
    (tmp_path / "records.csv").write_text(f"id,sex,weight\n{rows}")
    return tmp_path / "records.csv"


def write(tmp_path, names, shift=0, more=""):
    rows = "".join(f"A{i},{names[i % len(names)]},{names[(i + shift) % len(names)]}\n" for i in range(60))
    (tmp_path / "pedigree.csv").write_text(f"id,sire,dam\n{rows}B1,A1,A2\n{more}")
    return tmp_path / "pedigree.csv"


def init(tmp_path, records, pedigree, **options):
    made = mmgibbs.init(records, pedigree=pedigree, output=tmp_path / "a.yaml", **options)
    return made, yaml.safe_load(made.path.read_text())["data"]


@pytest.mark.parametrize("names", [("UPG_1", "UPG_2"), ("G1", "G2", "G3"), ("-1", "-2", "-3")])
def test_groups_among_the_parents_are_written_and_can_be_run(tmp_path, records, names):
    made, data = init(tmp_path, records, write(tmp_path, names))
    stem = names[0].rstrip("0123456789")
    assert made.refused is None
    assert data["groups"] == {"parents": [f"{stem}*"], "effect": "random"}
    assert any("look like genetic groups and are taken for these" in line for line in made.said)
    assert any("61 animals, 60 of them without parents" in line for line in made.said)
    prepared = mmgibbs.check(made.path)
    assert prepared is not None


def test_codes_of_an_unknown_parent_are_found_or_given(tmp_path, records):
    made, data = init(tmp_path, records, write(tmp_path, CODES, shift=1))
    assert made.refused is None and sorted(data["unknown_parent"]) == sorted(CODES)
    assert "groups" not in data
    pedigree = write(tmp_path, ("x9", ""), shift=1)
    _, data = init(tmp_path, records, pedigree, data={"unknown_parent": ["", "x9"]}, overwrite=True)
    assert data["unknown_parent"] == ["", "x9"]


def test_a_column_of_groups_is_offered_and_can_be_given(tmp_path):
    sheep = ROOT / "data_samples" / "sheep"
    made, data = init(tmp_path, sheep / "shearings.csv", sheep / "pedigree.csv")
    assert "groups" not in data and "  # groups: {column: origin, effect: random}" in made.path.read_text()
    assert any("column 'origin' may have the groups of unknown parents" in line for line in made.said)
    of_column = {"groups": {"column": "origin"}}
    _, data = init(tmp_path, sheep / "shearings.csv", sheep / "pedigree.csv", data=of_column, overwrite=True)
    assert data["groups"] == {"column": "origin", "effect": "random"}
    formula = {"formula": "fleece_weight ~ (1 | animal)", "check": False}
    files = (sheep / "shearings.csv", sheep / "pedigree.csv")
    _, data = init(tmp_path, *files, data={"groups": {"column": "origin"}}, overwrite=True, **formula)
    assert data["groups"]["column"] == "origin"


def test_command_and_formula_take_the_options(tmp_path, records, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pedigree = write(tmp_path, ("UPG_1", "UPG_2"))
    command = ["init", str(records), "--pedigree", str(pedigree), "--groups", "UPG_*", "--unknown=-9,.", "--overwrite"]
    formula = ["--formula", "weight ~ sex + (1 | id)", "--no-check"]
    for options in ([], formula):
        assert main([*command, *options]) == 0, capsys.readouterr().err
        data = yaml.safe_load((tmp_path / "analysis.yaml").read_text())["data"]
        assert data["groups"]["parents"] == ["UPG_*"] and data["unknown_parent"] == ["-9", "."]


def test_what_is_refused(tmp_path, records):
    with pytest.raises(ConfigError, match="init: data.groups belongs to pedigree; expected both"):
        mmgibbs.init(records, data={"groups": {"parents": ["G*"]}}, output=tmp_path / "a.yaml")
    with pytest.raises(ConfigError, match="init: data.groups: found both column and parents, needed one of them"):
        init(tmp_path, records, write(tmp_path, CODES), data={"groups": {"parents": ["G*"], "column": "origin"}})
    mixed = write(tmp_path, ("UPG_1", "UPG_2"), more="B2,A1,0\n")
    with pytest.raises(DataError, match="pedigree.csv row 63: the dam of 'B2' is unknown and no group"):
        init(tmp_path, records, mixed)
