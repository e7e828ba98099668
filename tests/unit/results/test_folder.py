"""The run folder: all of it or nothing."""

import datetime
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import xarray

from mmgibbs.errors import ConfigError
from mmgibbs.results import folder
from mmgibbs.results.folder import name_tables, write_run_folder
from mmgibbs.results.plain_values import plain

SUMMARY = pl.DataFrame({"parameter": ["h2[y]"], "mean": [1 / 3], "rhat": [None]}, schema_overrides={"rhat": pl.Float64})
SOLUTIONS = pl.DataFrame({"term": ["a", "a"], "level": ["007", "x,y"], "mean": [0.1, 0.2]})
DRAWS = {"parameters": {"h2[y]": np.full((2, 5), 0.5)}, "sample_stats": {"accepted": np.ones((2, 5))}}


def write(directory, **more):
    parts = {"summary": SUMMARY, "run": {"seed": 1}, "solutions": SOLUTIONS, "draws": DRAWS}
    return write_run_folder(directory, **parts | more)


def names(directory):
    return sorted(p.name for p in Path(directory).iterdir())


def test_the_folder_holds_the_files_of_the_contract(tmp_path):
    path = write(tmp_path / "runs" / "one", extra={"report.html": lambda p: p.write_text("<html>")})
    assert path == tmp_path / "runs" / "one"
    tables = ["solutions.csv", "solutions.parquet", "summary.csv", "summary.parquet"]
    expected = ["draws.nc", "report.html", "run.json", *tables]
    assert names(path) == expected and names(path.parent) == ["one"]
    assert pl.read_parquet(path / "summary.parquet").equals(SUMMARY)
    assert pl.read_parquet(path / "solutions.parquet").equals(SOLUTIONS)
    assert pl.read_csv(path / "solutions.csv", infer_schema=False)["level"].to_list() == ["007", "x,y"]
    read = pl.read_csv(path / "summary.csv")
    assert read["mean"][0] == 1 / 3 and read["rhat"].null_count() == 1  # full precision; a blank, not NaN
    record = json.loads((path / "run.json").read_text())
    checksums, of_record = record.pop("checksums"), record["sha256"]
    assert record == {"seed": 1, "notes": [], "files": expected, "sha256": of_record}
    assert sorted([*checksums, "run.json"]) == expected
    for name, of in checksums.items():
        content = (path / name).read_bytes()
        assert of == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    with xarray.open_datatree(path / "draws.nc") as tree:
        assert tree["/posterior/h2[y]"].shape == (2, 5) and tree["/sample_stats/accepted"].shape == (2, 5)


def test_a_folder_is_readable_by_others(tmp_path):
    old = os.umask(0o022)
    try:
        assert write(tmp_path / "run").stat().st_mode & 0o777 == 0o755
    finally:
        os.umask(old)


def test_large_solutions_are_written_as_csv_only_on_request(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "CSV_ROWS", 1)
    auto, always = write(tmp_path / "auto", run={"notes": ("first",)}), write(tmp_path / "always", csv="always")
    assert "solutions.csv" not in names(auto) and "solutions.csv" in names(always)
    notes = json.loads((auto / "run.json").read_text())["notes"]
    assert notes[0] == "first" and "solutions.csv was left out: 2 rows" in notes[1]


def test_csv_never_leaves_the_parquet_alone(tmp_path):
    never = write(tmp_path / "never", csv="never")
    assert "solutions.csv" not in names(never) and "solutions.parquet" in names(never)
    assert not any("left out" in note for note in json.loads((never / "run.json").read_text())["notes"])
    assert "solutions.csv" in names(write(tmp_path / "auto"))
    frame = pl.DataFrame({"a": [1]})
    files = {
        csv: sorted(name_tables({"decisions": frame, "response": frame, "means": None}, csv))
        for csv in ("auto", "always", "never")
    }
    assert files["never"] == ["decisions.parquet", "response.parquet"]
    assert files["auto"] == files["always"] == sorted([*files["never"], "decisions.csv", "response.csv"])


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt()])
def test_nothing_is_left_where_writing_fails(tmp_path, error):
    def fails(path):
        path.write_text("half")
        raise error

    with pytest.raises(type(error)):
        write(tmp_path / "runs" / "deep" / "one", extra={"report.html": fails})
    assert names(tmp_path) == []

    earlier = write(tmp_path / "two")
    before = {p.name: p.read_bytes() for p in earlier.iterdir()}
    with pytest.raises(type(error)):
        write(earlier, extra={"report.html": fails}, overwrite=True)
    assert names(tmp_path) == ["two"] and {p.name: p.read_bytes() for p in earlier.iterdir()} == before


def test_a_value_that_json_cannot_hold_leaves_nothing(tmp_path):
    with pytest.raises(TypeError, match="run.json cannot hold a object"):
        write(tmp_path / "one", run={"what": object()})
    assert names(tmp_path) == []


def test_an_earlier_run_is_replaced_only_on_request(tmp_path):
    path = write(tmp_path / "one", extra={"report.html": lambda p: p.write_text("old")})
    (path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="output.directory: .* holds a run; .*overwrite=True"):
        write(path)
    write(path, run={"seed": 2}, overwrite=True)
    assert json.loads((path / "run.json").read_text())["seed"] == 2
    assert "report.html" not in names(path) and (path / "notes.txt").read_text() == "mine"
    assert names(tmp_path) == ["one"]


def test_plain_values():
    of_python = {"b": (Path("x") / "y", None, True), "c": float("nan"), "e": frozenset({"z", "a"})}
    of_numpy = {1: np.float32(0.5), "a": np.array([1, 2]), "d": np.array([np.inf, 1.0])}
    found = plain(of_python | of_numpy | {"f": datetime.date(2024, 1, 2)})
    expected = {"b": ["x/y", None, True], "c": None, "e": ["a", "z"], "1": 0.5, "a": [1, 2], "d": [None, 1.0]}
    assert found == expected | {"f": "2024-01-02"} and json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("stuck", ["summary.csv", "run.json"])
def test_an_earlier_run_comes_back_where_the_new_one_cannot_take_its_place(tmp_path, monkeypatch, stuck):
    path, rename = write(tmp_path / "one", extra={"report.html": lambda p: p.write_text("old")}), Path.rename
    before = {p.name: p.read_bytes() for p in path.iterdir()}

    def refuses(self, target):
        if self.parent.name == ".writing" and self.name == stuck:
            raise PermissionError("not now")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuses)
    with pytest.raises(ConfigError, match="output.directory: cannot write .*not now"):
        write(path, run={"seed": 2}, overwrite=True)
    assert {p.name: p.read_bytes() for p in path.iterdir()} == before and names(tmp_path) == ["one"]


def test_run_json_comes_last_and_what_a_run_works_with_stays(tmp_path, monkeypatch):
    (tmp_path / "one" / "checkpoint").mkdir(parents=True)
    (tmp_path / "one" / "run.log").write_text("begun by process 1")
    (tmp_path / "one" / ".writing").mkdir()
    (tmp_path / "one" / ".writing" / "curves.csv").write_text("of a run that was killed")
    order, rename = [], Path.rename
    monkeypatch.setattr(Path, "rename", lambda self, target: order.append(self.name) or rename(self, target))
    path = write(tmp_path / "one", overwrite=True)
    assert order[-1] == "run.json" and "curves.csv" not in names(path) and ".writing" not in names(path)
    assert (path / "run.log").read_text() == "begun by process 1" and (path / "checkpoint").is_dir()
    order.clear()
    write(path, overwrite=True)
    assert order[0] == order[-1] == "run.json"
