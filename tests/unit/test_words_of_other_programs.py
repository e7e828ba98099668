"""The page of words: every cell of an analysis file is understood, and names of columns and parameters are ours."""

import re

import pytest
import yaml
from helpers.support import ROOT

from mmgibbs.config import load_config
from mmgibbs.config.orders import Levels

PAGE = (ROOT / "docs" / "how-to" / "words.md").read_text(encoding="utf-8")
PARTS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
ROWS = [
    re.split(r"(?<!\\)\|", line.strip("|"))
    for part in PARTS[:3]
    for line in part.splitlines()
    if line.startswith("|") and not line.startswith(("|---", "| what"))
]
DATA = {"phenotypes": "records.csv", "pedigree": "pedigree.csv", "genotypes": "geno.bed"}


def analysis_of(cell):
    """The cell within an analysis of two traits, whose other sections are as small as they can be."""
    changes = yaml.safe_load(re.fullmatch(r"\s*`(.*)`\s*", cell)[1])
    base = {"name": "words", "data": DATA, "traits": ["y", "z"], "model": {"fixed": {"sex": {}}}}
    if "model" not in changes:
        base["model"] = {"fixed": {"sex": {}}, "random": {"animal": {"relationship": "pedigree"}}}
    return base | {key: DATA | value if key == "data" else value for key, value in changes.items()}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_a_cell_is_understood(row):
    assert len(row) == 7
    load_config(analysis_of(row[-1].replace(r"\|", "|")), find_levels=lambda *_: Levels(["S1", "S2"], True))


def test_there_are_rows_of_every_program():
    assert len(ROWS) >= 25
    assert all(sum(bool(row[k].strip()) for row in ROWS) >= 10 for k in range(1, 6))
