"""The page on adding an export format is followed in a copy of the source, and the result is used."""

import re

import pytest
from helpers.followed_pages import copy_source, follow, read_page, run_script
from helpers.support import ROOT

from mmgibbs.exchange.export_formats import EXPORT_FORMATS

PAGE = read_page("adding-an-export-format.md")
SCRIPT = """
    import polars as pl

    import mmgibbs
    from mmgibbs.cli import main

    records = pl.DataFrame({"site": ["a", "b", "a", "b", "b"], "y": [1.0, 2, 3, 4, 6], "z": [2.0, 1, 4, 3, 5]})
    analysis = {
        "data": {"phenotypes": records}, "traits": ["y", "z"], "model": {"random": {"site": {}}},
        "variances": {"mode": "fixed", "site": {"start": [[1, 0], [0, 1]]}, "residual": {"start": [[2, 0], [0, 2]]}},
        "sampler": {"method": "blup"}, "output": {"directory": "run"},
    }
    solutions = mmgibbs.run(analysis, progress=False, report=False).solutions
    assert main(["export", "--format", "wide", "run"]) == 0 and main(["export", "--help"]) == 0
    wide = pl.read_csv("run-wide/wide.csv")
    for trait in ("y", "z"):
        assert wide[trait].to_list() == solutions.filter(trait=trait)["mean"].to_list()
"""


@pytest.mark.slow
def test_the_page_adds_a_format_that_works(tmp_path):
    copy_source(tmp_path)
    assert follow(PAGE, tmp_path) == PAGE.count("<!-- ") == 2
    done = run_script(SCRIPT, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Format wide: `wide.csv` with the solutions" in " ".join(done.stdout.split())


def test_no_module_asks_which_format_is_written():
    """Formats are named in the registry, and by the functions that write them, alone."""
    compared = re.compile(rf'format [=!]= "({"|".join(EXPORT_FORMATS)})"')
    sources = sorted((ROOT / "mmgibbs" / "exchange").rglob("*.py"))
    assert [path.name for path in sources if compared.search(path.read_text(encoding="utf-8"))] == []
