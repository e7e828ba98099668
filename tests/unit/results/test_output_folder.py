"""A folder of results with its record: a process that ends at any moment leaves nothing that is mixed or lost."""

import json
import os

import polars as pl
import pytest

from mmgibbs.machine.files import WORK
from mmgibbs.machine.output_places import OutputKind
from mmgibbs.results.output_folder import write_file, write_files

KIND = OutputKind("record.json", frozenset({"a.csv", "b.csv", "page.html", "record.json"}), "a test")


def write(folder, names, number):
    writers = {name: lambda path: path.write_text(str(number)) for name in names}
    write_files(KIND, folder, writers, {"number": number})


def does_end(number, folder, names):
    """Whether the process that writes ended before change `number` of the file system."""
    pid = os.fork() if hasattr(os, "fork") else pytest.skip("needs fork")
    if pid == 0:
        count = [0]

        def counted(function):
            def call(*args, **keys):
                if count[0] == number:
                    os._exit(0)
                count[0] += 1
                return function(*args, **keys)

            return call

        for name in ("rename", "replace", "unlink", "rmdir", "mkdir"):
            setattr(os, name, counted(getattr(os, name)))
        write(folder, names, 2)
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("number", range(12))
def test_an_end_at_any_change_leaves_a_folder_that_can_be_written(number, tmp_path):
    folder = tmp_path / "out"
    write(folder, ["a.csv", "page.html"], 1)
    (folder / "notes.txt").write_text("mine")
    has_ended = does_end(number, folder, ["a.csv", "b.csv"])
    assert has_ended or number > 8  # later numbers are beyond the last change
    if (folder / "record.json").exists():  # where it is there, all of its files are, and of one state
        record = json.loads((folder / "record.json").read_text())
        states = {(folder / name).read_text() for name in record["files"] if name != "record.json"}
        assert states == {str(record["number"])}
    write(folder, ["b.csv"], 3)
    record = json.loads((folder / "record.json").read_text())
    assert record["number"] == 3 and (folder / "notes.txt").read_text() == "mine"
    assert set(names(folder)) == {"b.csv", "notes.txt", "record.json"} and WORK not in names(folder)


def test_a_file_is_written_as_its_content_and_ending_say(tmp_path):
    table = pl.DataFrame({"id": ["=1", "b"]})
    contents = {"a.csv": table, "a.parquet": table, "a.html": "text", "none.csv": None}
    for name, content in contents.items():
        write_file(tmp_path / name, content, escaped=True)
    assert names(tmp_path) == ["a.csv", "a.html", "a.parquet"]
    assert (tmp_path / "a.csv").read_text() == "id\n'=1\nb\n" and (tmp_path / "a.html").read_text() == "text"
    assert pl.read_parquet(tmp_path / "a.parquet").equals(table)


def test_a_table_with_another_ending_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"expected a table's file to end in .csv or .parquet, got a.txt"):
        write_file(tmp_path / "a.txt", pl.DataFrame({"id": ["a"]}), escaped=False)
    assert names(tmp_path) == []
