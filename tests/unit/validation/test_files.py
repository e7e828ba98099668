"""The files of a validation and of a comparison of several: all of one state, whatever happens while writing."""

import csv
import json
from types import SimpleNamespace

import polars as pl
import pytest

import mmgibbs.report.render
import mmgibbs.validation.comparison_page
import mmgibbs.validation.page
from mmgibbs.errors import ConfigError
from mmgibbs.validation.files import COMPARISON, FILES, output_folder, write, write_comparison


def validation(number):
    frame = pl.DataFrame({"value": [number]})
    return SimpleNamespace(table=frame, predictions=frame, info={"notes": [f"note {number}"]}, notes=[f"note {number}"])


WRITERS = {"validation": (write, FILES), "comparison": (write_comparison, COMPARISON)}


@pytest.fixture(autouse=True)
def pages(monkeypatch):
    page = lambda found, path: path.write_text(f"page {found.table['value'][0]}")
    monkeypatch.setattr(mmgibbs.validation.page, "write_page", page)
    monkeypatch.setattr(mmgibbs.validation.comparison_page, "write_page", page)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("kind", WRITERS)
def test_all_files_are_written_and_replaced(kind, tmp_path):
    writer, names = WRITERS[kind]
    folder, said = tmp_path / "out", []
    for number in (1, 2):
        writer(validation(number), folder, True, said.append)
        assert sorted(contents(folder)) == sorted(names)
        assert pl.read_csv(folder / names[0])["value"].to_list() == [number]
        assert contents(folder)[names[-1]] == f"page {number}".encode()
    writer(validation(3), folder, False, said.append)
    assert sorted(contents(folder)) == sorted(names[:-1])  # the page is of an earlier state
    assert said == ["note: note 1", "note: note 2", "note: note 3"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("kind", WRITERS)
def test_what_cannot_be_written_leaves_the_earlier_files(kind, tmp_path, monkeypatch):
    writer, _ = WRITERS[kind]
    writer(validation(1), tmp_path / "out", True, lambda text: None)
    before = contents(tmp_path / "out")

    def full(found, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mmgibbs.validation.page, "write_page", full)
    monkeypatch.setattr(mmgibbs.validation.comparison_page, "write_page", full)
    with pytest.raises(ConfigError, match="cannot write .*out': No space left on device"):
        writer(validation(2), tmp_path / "out", True, lambda text: None)
    assert contents(tmp_path / "out") == before
    assert {path.name for path in (tmp_path / "out").iterdir()} == before.keys()


@pytest.mark.parametrize("kind", WRITERS)
def test_a_page_that_cannot_be_made_is_reported(kind, tmp_path, monkeypatch):
    writer, names = WRITERS[kind]
    monkeypatch.setattr(mmgibbs.report.render, "missing_libraries", lambda: ["jinja2"])
    said = []
    writer(validation(1), tmp_path / "out", True, said.append)
    assert said == [f"no {names[-1]}: found no jinja2; needed: pip install jinja2", "note: note 1"]
    assert sorted(contents(tmp_path / "out")) == sorted(names[:-1])
    said.clear()
    writer(validation(1), tmp_path / "out", False, said.append)
    assert said == ["note: note 1"]  # nobody asked for one


def test_what_else_is_in_the_folder(tmp_path):
    (tmp_path / "birth").mkdir()
    (tmp_path / "birth" / "validation.json").write_text(json.dumps({}))
    write_comparison(validation(1), tmp_path, True, lambda text: None)
    assert (tmp_path / "birth" / "validation.json").read_text() == "{}"
    (tmp_path / "killed" / ".writing").mkdir(parents=True)
    assert output_folder(tmp_path / "killed", False) == tmp_path / "killed"


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("escaped", [False, True])
def test_names_with_separators_quotes_and_line_ends_come_back(kind, escaped, tmp_path):
    writer, names = WRITERS[kind]
    traits = ["milk, kg", 'say "moo"', "two\nlines", "x;y\tz", "=1+1"]
    found = validation(1)
    found.table = pl.DataFrame({"trait": traits, "value": range(5)})
    writer(found, tmp_path / "out", False, lambda text: None, escaped)
    with (tmp_path / "out" / names[0]).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["trait"] for row in rows] == [*traits[:4], "'=1+1" if escaped else "=1+1"]
    assert [row["value"] for row in rows] == list("01234")
    assert pl.read_parquet(tmp_path / "out" / names[1])["trait"].to_list() == traits
