"""The page on adding a command is followed in a copy of the source, and the result is used."""

import re

import pytest
from helpers.followed_pages import copy_source, follow, read_page, run_script
from helpers.support import ROOT

from mmgibbs.cli import _COMMANDS

PAGE = read_page("adding-a-command.md")
SCRIPT = """
    from pathlib import Path

    from mmgibbs.cli import main

    Path("p.csv").write_text("id,sire,dam\\na,,\\nb,,\\nc,a,b\\nd,a,b\\ne,c,b\\n")
    assert main(["progeny", "none.csv"]) == 2 and main(["--help"]) == main(["progeny", "--help"]) == 0
    assert main(["progeny", "p.csv", "--top", "1"]) == 0
"""


@pytest.mark.slow
def test_the_page_adds_a_command_that_works(tmp_path):
    copy_source(tmp_path)
    assert follow(PAGE, tmp_path) == PAGE.count("<!-- ") == 2
    done = run_script(SCRIPT, tmp_path)
    assert done.returncode == 0 and done.stdout.endswith("\na 2\n"), done.stderr
    assert re.search("^    progeny +count the progeny of each sire$", done.stdout, re.M)


def test_no_module_asks_which_command_is_run():
    """Commands are named in their modules and in the registry alone."""
    names = "|".join(_COMMANDS)
    compared = re.compile(rf'(command|chosen|arguments\[0\]) [=!]= "({names})"')
    wrong = [p for p in sorted((ROOT / "mmgibbs").rglob("*.py")) if compared.search(p.read_text(encoding="utf-8"))]
    assert wrong == []
