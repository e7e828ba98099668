"""What a page says before any figure."""

from pathlib import Path

import polars as pl
import pytest

from mmgibbs.report.findings import remarks
from mmgibbs.report.finished import Finished


@pytest.mark.parametrize(
    ("note", "title"),
    [
        ("herd, milk: 2 levels set to 0 (no records): 7, 9", "Levels set to 0"),
        ("herd, milk: 2 levels held at 0 (no records): 7, 9", "Levels set to 0"),  # a folder of an older version
        ("genotypes.bed: 3 genotyped animals have no record, such as a, b, c", "Note"),
    ],
)
def test_titles_of_notes(note, title):
    (found,) = remarks(Finished(Path("run"), {"notes": [note]}, pl.DataFrame()))
    assert (found.title, found.fact) == (title, note)


def test_records_left_out_are_said_once():
    note = "40 of 912 records left out: no observed trait"
    record = {"data": {"records": {"left_out": {"no observed trait": 40, "no genotypes": 3}}}, "notes": [note]}
    found = remarks(Finished(Path("run"), record, pl.DataFrame()))
    assert [f.text for f in found] == ["3 records: no genotypes.", note]
    del record["notes"]
    assert len(remarks(Finished(Path("run"), record, pl.DataFrame()))) == 2
