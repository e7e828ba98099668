"""Paths are what they say: `[`, `*`, `?`, `~` or `=` in the name of a folder mean nothing.

Polars takes such a path for a pattern, and `runs/y[1]` would be read from `runs/y1`.
"""

import ast
import shutil

import polars as pl
import pytest
from helpers.selection import first
from helpers.small_analysis import command, contents, write_files
from helpers.support import ROOT

import mmgibbs

READERS = ("read_", "scan_")
SOURCES = sorted(p for package in ("mmgibbs", "pedigree") for p in (ROOT / package).rglob("*.py"))
NAMES = ("y[1]", "y*", "y?", "[!a]", "**", "a~", "h2=0.3", "a{b,c}", "a%20b", "$HOME", "y[1", "a b")


def unguarded(source: str) -> list[str]:
    """Calls of functions of Polars that read, but for those with glob=False and those of bytes in memory."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "polars":
            found += [f"line {node.lineno}: import of {a.name}" for a in node.names if a.name.startswith(READERS)]
        if not (isinstance(node, ast.Attribute) and node.attr.startswith(READERS)):
            continue
        if isinstance(node.value, ast.Name) and node.value.id in ("pl", "polars"):
            found.append(f"line {node.lineno}: {node.attr}")
    return found


def calls_without_glob(source: str) -> list[str]:
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    named = {f"{ast.unparse(call.func)} line {call.lineno}": call for call in calls}
    return [
        name
        for name, call in named.items()
        if name.startswith(("pl.read_", "pl.scan_"))
        and not any(k.arg == "glob" and ast.unparse(k.value) == "False" for k in call.keywords)
    ]


def test_polars_gets_paths_in_one_module_alone():
    """pedigree/tables.py gives it bytes."""
    found = {p.relative_to(ROOT).as_posix(): unguarded(p.read_text(encoding="utf-8")) for p in SOURCES}
    guarded = ("mmgibbs/report/saved_figures.py", "mmgibbs/results/reading.py", "mmgibbs/simulation/make.py")
    readers = {*guarded, "pedigree/tables.py"}
    assert {p for p, f in found.items() if f} == readers
    for path in guarded:
        assert calls_without_glob((ROOT / path).read_text(encoding="utf-8")) == []
    tables = (ROOT / "pedigree/tables.py").read_text(encoding="utf-8")
    assert tables.count("pl.read_") == 1  # read_csv(content), of bytes; the other readers get io.BytesIO(content)
    assert "getattr(pl, reader)(io.BytesIO(content))" in tables
    assert "pl.read_csv(\n                content," in tables


@pytest.mark.parametrize(
    "source", ["pl.read_parquet(path)", "f = pl.scan_csv", "from polars import read_ipc", "polars.read_ndjson(p)"]
)
def test_an_unguarded_call_is_seen(source):
    assert len(unguarded(source)) == 1
    assert unguarded("pl.DataFrame(); table.read(); frame.write_parquet(p)") == []


def test_a_call_without_glob_is_seen():
    assert calls_without_glob("pl.read_parquet(path, glob=True)") == ["pl.read_parquet line 1"]
    assert calls_without_glob("pl.read_parquet(path, glob=False)") == []


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of an analysis with two runs: y1, of other variances, would match most patterns."""
    folder = tmp_path_factory.mktemp("paths") / "analysis"
    write_files(folder)
    other = "--set=variances.residual={start: [[90, 10], [10, 1600]]}"
    assert command(folder, "run", "analysis.yaml", "--quiet", "--output", "y1", other).code == 0
    assert command(folder, "run", "analysis.yaml", "--quiet", "--output", "plain").code == 0
    return folder


@pytest.mark.parametrize("name", first(4, NAMES))
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


@pytest.mark.parametrize("name", first(4, NAMES))
def test_data_may_lie_in_a_folder_of_any_name(name, finished, tmp_path):
    folder = tmp_path / name
    write_files(folder)
    for other in ("y1", "y", "b"):
        if other != name:
            write_files(tmp_path / other, {"phenotypes.csv": "animal\nx\n", "pedigree.csv": "id\nx\n"})
    assert command(folder, "run", "analysis.yaml", "--quiet").code == 0
    right = pl.read_parquet(finished / "plain" / "solutions.parquet")
    assert pl.read_parquet(folder / "run" / "solutions.parquet", glob=False).equals(right)
