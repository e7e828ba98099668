"""Plain names: a reader should not have to learn a word that this project made up."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.support import ROOT

from mmgibbs.errors import ConfigError
from mmgibbs.runs.place import RunFolder

# What it was called, and what it is: classes, functions, arguments, variables, attributes, modules.
RENAMED = {
    "Stand": "Position",
    "Held": "WorkerState",
    "Sent": "Payload",
    "Lost": "WorkerLost",
    "Talk": "Console",
    "Judge": "StoppingRule",
    "Keeper": "CheckpointWriter",
    "RunPlace": "RunFolder",
    "Root": "CholeskyPrior",
    "ExactEngine": "PcgEngine",
    "Walk": "ResumableChain",
    "ThisMachine": "LocalExecutor",
    "Workplace": "ClusterExecutor",
    "RegressionSchedule": "Schedule",
    "RegressionJob": "one job for both kinds of run",
    "RegressionChains": "SideBySideChains",
    "RegressionStand": "Position",
    "RUN_OPTIONS": "the options of the configuration",
    "inverse_times": "times_inverse of the one Cholesky",
    "REGRESSION": "nothing: it was not used",
    "shower": "progress_callback",
    "stored": "state",
    "begin_with": "start",
    "why_not": "reason_not_interweaved",
    "ask_for_visit": "prefetch_visit",
    "root_of": "cholesky_prior",
    "stand": "position",
    "keeper": "writer",
    "judge": "assess",
    "told": "what is said: lines, notes, messages",
    "whence": "source",
}


def identifiers(source: str) -> set[str]:
    """Every name that the source gives or uses, without leading and trailing underscores."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                found.add(name)
            case ast.keyword(arg=str(name)):
                found.add(name)
            case ast.alias(name=name, asname=alias):
                found |= {*name.split("."), alias or ""}
    return {name.strip("_") for name in found}


def renamed_in(files: Iterator[Path]) -> set[tuple[str, str]]:
    """(file, name) of names that have another name now."""
    out = set()
    for path in files:
        names = identifiers(path.read_text(encoding="utf-8")) | {path.stem}
        out |= {(path.relative_to(ROOT).as_posix(), name) for name in names & set(RENAMED)}
    return out


def test_names_are_plain():
    found = renamed_in(path for package in ("mmgibbs", "pedigree") for path in sorted((ROOT / package).rglob("*.py")))
    assert {f"{file}: {name} is {RENAMED[name]} now" for file, name in found} == set()


def test_pages_use_no_old_name():
    """Code spans of the pages."""
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        spans = re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8"))
        used = {word for span in spans for word in re.findall(r"\w+", span)}
        assert used & set(RENAMED) == set(), page.name


@pytest.mark.parametrize(
    "source",
    [
        "class Keeper: ...",
        "def why_not(model): ...",
        "x = a.told",
        "f(keeper=1)",
        "from mmgibbs.runs import job as stand",
        "def f(*, _told): ...",
    ],
)
def test_an_old_name_is_seen(source):
    assert identifiers(source) & set(RENAMED)


def test_words_of_the_language_are_no_names():
    assert not identifiers("'''What is told, where they stand.'''  # stored\nx = 'why_not'") & set(RENAMED)


def test_what_is_refused_together_cannot_be_combined():
    """One way to say it, in the messages of every package."""
    other_ways = re.compile(
        "found beside|beside (it|model|plugin), needed|together, needed|does not go with|do not go together"
    )
    for path in sorted((ROOT / "mmgibbs").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        strings = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        assert [text for text in strings if other_ways.search(text)] == [], path.name


def test_overwrite_resume_and_extend_cannot_be_combined():
    with pytest.raises(ConfigError, match="^overwrite cannot be combined with extend; needed one of them at most$"):
        RunFolder(None, None, overwrite=True, extend=10)
