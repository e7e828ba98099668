"""Paths are what they say: `[`, `*`, `?`, `~` or `=` in the name of a folder mean nothing.

Polars takes such a path for a pattern, and `runs/y[1]` would be read from `runs/y1`.
"""

import re
import shutil

import polars as pl
import pytest
from helpers.selection import first
from helpers.small_analysis import command, contents, write_files
from helpers.support import ROOT

import mmgibbs

NAMES = ("y[1]", "y*", "y?", "[!a]", "**", "a~", "h2=0.3", "a{b,c}", "a%20b", "$HOME", "y[1", "a b")


READ = re.compile(
    r"\b(?:pl|polars)\.(?:read|scan)_\w+\(((?:[^()]|\([^()]*\))*)\)|from polars import .*\b(?:read|scan)_"
)


def test_polars_takes_no_path_for_a_pattern():
    """Every reader gets glob=False; pedigree/tables.py gives them bytes."""
    found = {}
    for path in (p for package in ("mmgibbs", "mmgibbs/pedigree") for p in (ROOT / package).rglob("*.py")):
        source = re.sub(r"(?m)^ *>>> .*$", "", path.read_text(encoding="utf-8"))
        found[path.relative_to(ROOT).as_posix()] = [c[0] for c in READ.finditer(source) if "glob=False" not in c[0]]
    (of_bytes,) = found.pop("mmgibbs/pedigree/tables.py")
    assert re.match(r"pl.read_csv\(\s*content,", of_bytes) and not any(found.values())


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of an analysis with two runs: y1, of other variances, would match most patterns."""
    folder = tmp_path_factory.mktemp("paths") / "analysis"
    write_files(folder)
    other = "--set=variances.residual={start: [[90, 10], [10, 1600]]}"
    assert command(folder, "run", "analysis.yaml", "--quiet", "--output", "y1", other).code == 0
    assert command(folder, "run", "analysis.yaml", "--quiet", "--output", "plain").code == 0
    return folder


@pytest.mark.parametrize("name", first(2, NAMES))
def test_the_run_folder_may_have_any_name(name, finished, tmp_path):
    folder = tmp_path / "analysis"
    shutil.copytree(finished, folder)
    right = pl.read_parquet(folder / "plain" / "solutions.parquet")
    for other in ("y", "yy", "b", "HOME", "ab", "ac"):
        shutil.copytree(folder / "y1", folder / other)
    before = {other: contents(folder / other) for other in ("y", "yy", "b", "y1", "ab", "HOME")}
    assert command(folder, "run", "analysis.yaml", "--quiet", "--output", name).code == 0
    result = mmgibbs.open_run(folder / name)
    assert result.solutions.equals(right) and result.directory == folder / name
    assert result.draws["posterior"].attrs is not None
    for arguments in (
        ["run", "analysis.yaml", "--quiet", "--output", name, "--overwrite"],
        ["report", name],
        ["export", "--format", "blupf90", name, "--output", f"{name} exported"],
    ):
        outcome = command(folder, *arguments)
        assert outcome.code == 0, outcome
    outcome = command(folder, "compare", name, "plain")
    assert outcome.code == 0 and "y1" not in outcome.out
    again = command(folder, "compare", "plain", "plain")
    assert outcome.out.replace(name, "plain") == again.out
    assert (folder / name / "report.html").is_file()
    assert {other: contents(folder / other) for other in before} == before


@pytest.mark.parametrize("name", first(2, NAMES))
def test_data_may_lie_in_a_folder_of_any_name(name, finished, tmp_path):
    folder = tmp_path / name
    write_files(folder)
    for other in ("y1", "y", "b"):
        if other != name:
            write_files(tmp_path / other, {"phenotypes.csv": "animal\nx\n", "pedigree.csv": "id\nx\n"})
    assert command(folder, "run", "analysis.yaml", "--quiet").code == 0
    right = pl.read_parquet(finished / "plain" / "solutions.parquet")
    assert pl.read_parquet(folder / "run" / "solutions.parquet", glob=False).equals(right)
