"""The page of words: every cell of an analysis file is understood, and names of columns and parameters are ours."""

import re

import pytest
import yaml
from helpers.support import ROOT

from mmgibbs.config import load_config
from mmgibbs.config.orders import Levels
from mmgibbs.errors import ConfigError
from mmgibbs.results.columns import OUTPUTS

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


def test_a_wrong_cell_is_seen():
    with pytest.raises(ConfigError, match="relatonship"):
        load_config(analysis_of("`model: {random: {animal: {relatonship: pedigree}}}`"))


def test_there_are_rows_of_every_program():
    assert len(ROWS) >= 25
    assert all(sum(bool(row[k].strip()) for row in ROWS) >= 10 for k in range(1, 6))


def test_columns_of_results_exist():
    columns = {column for output in OUTPUTS.values() for column in output.columns}
    assert {"mean", "pev", "sd", "accuracy", "reliability", "rhat", "ess_bulk", "ess_tail", "mcse"} <= columns
    assert all(f"`{name}`" in PARTS[3] for name in ("mean", "pev", "accuracy", "reliability", "rhat", "mcse"))
